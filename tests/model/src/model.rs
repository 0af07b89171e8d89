//! The model for stateright: the states and steps of the cluster, two operators, the network and their environment.

use stateright::{Model, Property};

use crate::claim::{Claim, Claims};
use crate::cluster::{Cluster, Created, Terms};
use crate::fault::{Budget, Fault};
use crate::leave_out::LeftOut;
use crate::object::{End, Execution, ExecutionId, Kind, Phase, Progress, Run, RunUid};
use crate::operator::{Fate, Label, Life, Operator};
use crate::request::Request;
use crate::translate::Translation;

/// The setting of a search.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The number of executions that are created, one after the other and at any time.
    pub executions: usize,
    /// The number of operators.
    pub operators: usize,
    /// The number of operators that run from the beginning. The others start at any time.
    pub running: usize,
    /// Which faults may happen, and how many times.
    pub budget: Budget,
    /// Whether runs leave pods behind, which a separate watch shows.
    pub drains: bool,
    /// Whether each operator watches the executions in only one of two namespaces.
    pub apart: bool,
    /// The most attempts of an execution. If this is one, there is no retry policy.
    pub attempts: u8,
    /// Which claims are judged. A path ends when the first of them is broken.
    pub judged: Claims,
    /// Which foreign object has a name that belongs to the chain.
    pub stranger: Stranger,
    /// How a view is translated for the core.
    pub translation: Translation,
}

/// A foreign object with the first name of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stranger {
    /// There is no such object.
    #[default]
    None,
    /// The object has a controller, and is therefore not a run of the chain.
    Unseen,
    /// The object has no owner of ours, and is a running run.
    Seen,
}

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The API server and the true history.
    pub cluster: Cluster,
    /// The operators. Their order has no meaning.
    pub operators: Vec<Operator>,
    /// Requests in flight whose senders no longer wait for them.
    pub wire: Vec<Request>,
    /// The faults that may still happen.
    pub budget: Budget,
}

/// One step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A user creates the next execution.
    Make,
    /// A user creates an execution with the name of a deleted one.
    Remake(u8),
    /// A user deletes an execution.
    Unmake(ExecutionId),
    /// A user deletes a run.
    Erase(RunUid),
    /// A user requests the cancellation of an execution.
    AskToCancel(ExecutionId),
    /// Tekton writes the status of a pending run.
    Touch(RunUid),
    /// Tekton finishes a run, and nothing is left of it.
    End(RunUid, End),
    /// Tekton finishes a run, but something is left of it.
    EndInPart(RunUid, End),
    /// A user releases a pending run.
    Poke(RunUid),
    /// The last remains of a run disappear.
    Drain(RunUid),
    /// An operator's process dies.
    Crash(usize),
    /// An operator starts, or continues its start.
    List(usize),
    /// An operator lists the runs again.
    Relist(usize),
    /// A watch delivers its next event to an operator.
    Deliver(usize, Kind),
    /// An operator performs the n-th step of its decision.
    Perform(usize, usize, Fate),
    /// A request in flight arrives.
    Arrive(usize),
    /// A request in flight never arrives.
    Vanish(usize),
}

impl Move {
    /// Returns the fault that this step is; `None` for any other step.
    #[must_use]
    pub fn fault(self) -> Option<Fault> {
        match self {
            Self::Remake(_) => Some(Fault::Remake),
            Self::Unmake(_) => Some(Fault::Unmake),
            Self::Erase(_) => Some(Fault::Erase),
            Self::AskToCancel(_) => Some(Fault::Cancel),
            Self::EndInPart(..) => Some(Fault::Linger),
            Self::Poke(_) => Some(Fault::Poke),
            Self::Touch(_) => Some(Fault::Touch),
            Self::Crash(_) => Some(Fault::Crash),
            Self::Relist(_) => Some(Fault::Relist),
            Self::Perform(_, _, fate) => fate.fault(),
            Self::Make
            | Self::End(..)
            | Self::Drain(_)
            | Self::List(_)
            | Self::Deliver(..)
            | Self::Arrive(_)
            | Self::Vanish(_) => None,
        }
    }
}

impl State {
    /// Returns whether a claim is not broken.
    #[must_use]
    pub fn keeps(&self, claim: Claim) -> bool {
        self.cluster.broken != Some(claim)
    }

    /// Returns whether all executions are terminal and all runs are finished.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.cluster.existing().all(|execution| execution.phase.is_terminal())
            && !self.cluster.existing_runs().any(Run::is_unfinished)
    }

    /// Returns whether a user may release a run: nothing may be in progress that could race with the release.
    fn is_poked_without_a_race(&self, run: Run) -> bool {
        let owner = self.cluster.owner(run);
        let waits = |it: Execution| it.phase == Phase::Undecided || it.waits;
        let idle = |it: &Operator| {
            it.life == Life::Up
                && it.task.is_empty()
                && it.awaits.is_empty()
                && Kind::ALL.into_iter().all(|kind| it.seen[kind as usize] == self.cluster.events(kind))
        };
        run.progress == Progress::Pending
            && owner.is_some_and(waits)
            && self.wire.is_empty()
            && !self.cluster.existing_runs().any(Run::is_released)
            && !self.cluster.existing().any(|it| matches!(it.phase, Phase::Running(_)) && !it.waits)
            && self.operators.iter().all(idle)
    }

    fn may(&self, fault: Fault) -> bool {
        self.budget.allows(fault)
    }
}

impl Setting {
    /// Lists the steps that can be tried in a state. Some of them change nothing.
    fn moves(&self, state: &State, moves: &mut Vec<Move>) {
        if state.cluster.broken.is_some() {
            return;
        }
        if self.missing(state) > 0 {
            moves.push(Move::Make);
        }
        for run in state.cluster.existing_runs() {
            match run.progress {
                Progress::Released => {
                    let fails = self.attempts > 1 && !run.cancelled;
                    let ends: &[End] = if fails { &[End::Well, End::Unstarted, End::Broken] } else { &[End::Well] };
                    moves.extend(ends.iter().map(|end| Move::End(run.uid, *end)));
                    if state.cluster.has_residue(run.uid) && state.may(Fault::Linger) {
                        moves.extend(ends.iter().map(|end| Move::EndInPart(run.uid, *end)));
                    }
                }
                Progress::Pending if state.may(Fault::Touch) => moves.push(Move::Touch(run.uid)),
                Progress::Pending | Progress::Done { .. } => {}
            }
            if state.may(Fault::Erase) {
                moves.push(Move::Erase(run.uid));
            }
            if state.may(Fault::Poke) && state.is_poked_without_a_race(*run) {
                moves.push(Move::Poke(run.uid));
            }
        }
        for left in state.cluster.residue() {
            if state.cluster.run(left.run).is_none_or(|run| !run.is_unfinished()) {
                moves.push(Move::Drain(left.run));
            }
        }
        for made in &state.cluster.executions {
            if made.object.is_some() && state.may(Fault::Unmake) {
                moves.push(Move::Unmake(made.id));
            }
            let may_cancel = |object: Execution| !object.cancelled && !object.phase.is_terminal();
            if made.object.is_some_and(may_cancel) && state.may(Fault::Cancel) {
                moves.push(Move::AskToCancel(made.id));
            }
            let name_is_free = || state.cluster.existing().all(|other| other.id.name != made.id.name);
            if made.object.is_none() && state.may(Fault::Remake) && name_is_free() {
                moves.push(Move::Remake(made.id.name));
            }
        }
        for at in 0..state.wire.len() {
            moves.extend([Move::Arrive(at), Move::Vanish(at)]);
        }
        for (who, operator) in state.operators.iter().enumerate() {
            self.operator_moves(state, who, operator, moves);
        }
    }

    fn operator_moves(&self, state: &State, who: usize, operator: &Operator, moves: &mut Vec<Move>) {
        if operator.life != Life::Up {
            moves.push(Move::List(who));
        }
        if operator.life != Life::Down && state.may(Fault::Crash) {
            moves.push(Move::Crash(who));
        }
        if operator.life != Life::Up {
            return;
        }
        // If an event is delivered during a task, it has no effect before the end of the task.
        if operator.task.is_empty() {
            for kind in Kind::ALL {
                let in_list = kind == Kind::Run && operator.view.listing.is_some();
                if in_list || operator.seen[kind as usize] < state.cluster.events(kind) {
                    moves.push(Move::Deliver(who, kind));
                }
            }
            if operator.seen[Kind::Run as usize] < state.cluster.events(Kind::Run) && state.may(Fault::Relist) {
                moves.push(Move::Relist(who));
            }
        }
        for index in 0..operator.steps(self.translation).len() {
            for fate in Fate::ALL {
                if fate.fault().is_none_or(|fault| state.may(fault)) {
                    moves.push(Move::Perform(who, index, fate));
                }
            }
        }
    }

    /// Returns the number of executions that are still to be created.
    fn missing(&self, state: &State) -> usize {
        let made = state.cluster.executions.iter().filter(|made| made.id.uid == made.id.name).count();
        self.executions.saturating_sub(made)
    }

    /// Returns whether anything except a fault can still happen.
    #[must_use]
    pub fn goes_on(&self, state: &State) -> bool {
        let mut moves = Vec::new();
        self.moves(state, &mut moves);
        moves.into_iter().any(|next| next.fault().is_none() && self.next_state(state, next).is_some())
    }

    fn ends_well(&self, state: &State) -> bool {
        state.keeps(Claim::Ends)
            && (state.cluster.broken.is_some()
                || !self.judged.has(Claim::Ends)
                || state.is_settled()
                || self.goes_on(state))
    }
}

impl Model for Setting {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        let stranger = u8::from(self.stranger == Stranger::Unseen);
        let lists_again = self.budget.allows(Fault::Relist);
        let (judged, attempts) = (self.judged, self.attempts);
        let terms = Terms { drains: self.drains, stranger, lists_again, judged, attempts };
        let mut cluster = Cluster::new(terms);
        match self.stranger {
            Stranger::None | Stranger::Unseen => {}
            Stranger::Seen => {
                let (uid, progress) = (RunUid(0), Progress::Released);
                let run = Run { uid, number: 1, owner: None, version: 0, progress, cancelled: false };
                let object = Some(run);
                cluster.runs.push(Created { object, ..Created::default() });
            }
        }
        let mut operators: Vec<Operator> =
            ('A'..).take(self.operators).map(|label| Operator { label: Label(label), ..Operator::default() }).collect();
        for (operator, namespace) in operators.iter_mut().zip(0..).filter(|_| self.apart) {
            operator.view.watches = Some(namespace);
        }
        for operator in operators.iter_mut().take(self.running) {
            operator.list(&cluster);
            operator.list(&cluster);
        }
        let mut state = State { cluster, operators, wire: Vec::new(), budget: self.budget };
        state.settle();
        vec![state]
    }

    fn actions(&self, state: &State, moves: &mut Vec<Move>) {
        self.moves(state, moves);
    }

    fn next_state(&self, last: &State, next: Move) -> Option<State> {
        let mut state = last.clone();
        if let Some(fault) = next.fault() {
            state.budget.spend(fault);
        }
        let State { cluster, operators, wire, .. } = &mut state;
        match next {
            Move::Make => {
                let uid = u8::try_from(cluster.executions.len()).unwrap_or(u8::MAX);
                cluster.make_execution(Some(uid));
            }
            Move::Remake(name) => cluster.make_execution(Some(name)),
            Move::Unmake(id) => cluster.delete_execution(id),
            Move::Erase(run) => cluster.delete_run(run, true),
            Move::AskToCancel(id) => cluster.ask_to_cancel(id),
            Move::Touch(run) => cluster.change_run(run, |_| {}),
            Move::End(run, end) => {
                cluster.end_run(run, end);
                cluster.drain(run);
            }
            Move::EndInPart(run, end) => cluster.end_run(run, end),
            Move::Poke(run) => {
                cluster.poke(run);
                // All operators see the release before anything else happens. Races with a user's release are not
                // judged.
                for operator in operators.iter_mut() {
                    while operator.deliver(Kind::Run, cluster) || operator.deliver(Kind::Residue, cluster) {}
                }
            }
            Move::Drain(run) => cluster.drain(run),
            Move::Crash(who) => operators[who].crash(),
            Move::List(who) => operators[who].list(cluster),
            Move::Relist(who) => operators[who].relist(cluster, self.translation.left_out == LeftOut::WholeLists),
            Move::Deliver(who, kind) => {
                operators[who].deliver(kind, cluster);
            }
            Move::Perform(who, index, fate) => {
                if !operators[who].perform(index, fate, cluster, wire, self.translation) {
                    return None;
                }
            }
            Move::Arrive(at) => {
                let request = wire.remove(at);
                cluster.apply(request, self.translation.left_out);
            }
            Move::Vanish(at) => {
                wire.remove(at);
            }
        }
        cluster.judge();
        state.settle();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Claim::OneAtATime.name(), |_, state: &State| state.keeps(Claim::OneAtATime)),
            Property::always(Claim::Drained.name(), |_, state: &State| state.keeps(Claim::Drained)),
            Property::always(Claim::OneRunEach.name(), |_, state: &State| state.keeps(Claim::OneRunEach)),
            Property::always(Claim::Held.name(), |_, state: &State| state.keeps(Claim::Held)),
            Property::always(Claim::NothingRan.name(), |_, state: &State| state.keeps(Claim::NothingRan)),
            Property::always(Claim::TrueSkip.name(), |_, state: &State| state.keeps(Claim::TrueSkip)),
            Property::always(Claim::FreshSkip.name(), |_, state: &State| state.keeps(Claim::FreshSkip)),
            Property::always(Claim::Final.name(), |_, state: &State| state.keeps(Claim::Final)),
            Property::always(Claim::Committed.name(), |_, state: &State| state.keeps(Claim::Committed)),
            Property::always(Claim::Own.name(), |_, state: &State| state.keeps(Claim::Own)),
            Property::always(Claim::Kept.name(), |_, state: &State| state.keeps(Claim::Kept)),
            Property::always(Claim::AfterItsRun.name(), |_, state: &State| state.keeps(Claim::AfterItsRun)),
            Property::always(Claim::NotLost.name(), |_, state: &State| state.keeps(Claim::NotLost)),
            Property::always(Claim::Ends.name(), Self::ends_well),
        ]
    }
}
