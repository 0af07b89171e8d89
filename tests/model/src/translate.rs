//! Translates from the model to the core: a view becomes a [`Target`], and actions become [`Step`]s. This module calls
//! the real `decide`.

mod attempts;
mod left_out;
mod words;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use wfe_core::action::{Action, Change, Ending, RunChange, Says, Write};
use wfe_core::check::violations;
use wfe_core::decide::decide;
use wfe_core::evidence::{Absence, Ran, Started};
use wfe_core::execution::{self, Cancellation, ExecutionMemory, ExecutionState};
use wfe_core::findings::Findings;
use wfe_core::name::{self, Uid};
use wfe_core::policy::{Policy, Scope};
use wfe_core::reason::{FailureReason, Refusal};
use wfe_core::residue::{self, ResidueId, ResidueKind};
use wfe_core::run::{self, Look, Order, Outcome, Owner, Presence, RunMemory};
use wfe_core::target::{Target, TargetMemory};
use wfe_core::uid_map::UidMap;
use wfe_core::verdict;

use crate::leave_out::LeftOut;
use crate::object::{Execution, ExecutionId, Phase, Progress, Residue, Run, RunUid};
use crate::request::{Fact, Premise, Read, Request, StatusWrite, Step};
use crate::view::{Seen, View};
use words::{LAST_UID, failed, moment, number_of, parse, read_run, read_version, run_id, small, version};

/// The options of the translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Translation {
    /// Whether all executions were created in the same second, with smaller uids for later ones. The later ones are
    /// then preferred.
    pub latest_first: bool,
    /// Whether finished runs are deleted at once instead of after a day.
    pub retains_nothing: bool,
    /// Which changeable facts an operator reads live before a write.
    pub reads: Reads,
    /// The most attempts of an execution. With fewer than two, there is no retry policy.
    pub attempts: u8,
    /// The rule that is left out of the protocol.
    pub left_out: LeftOut,
}

/// Live reads whose answer may be outdated when the write arrives. Most searches omit such a read: without it, a write
/// can do everything that it could do with the read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reads {
    /// There is no such read.
    #[default]
    Nothing,
    /// Before a commit, the operator reads that nothing is left of other runs.
    Residue,
}

type Memo = HashMap<(Translation, View), Rc<[Step]>>;

thread_local! {
    /// The decisions so far. The same view occurs in very many states of a search.
    static DECIDED: RefCell<Memo> = RefCell::default();
}

impl Translation {
    /// Returns what the core decides on a view.
    #[must_use]
    pub fn decide(self, view: &View) -> Rc<[Step]> {
        DECIDED.with_borrow_mut(|memo| {
            let key = (self, view.clone());
            Rc::clone(memo.entry(key).or_insert_with(|| self.decide_anew(view).into()))
        })
    }

    fn decide_anew(self, view: &View) -> Vec<Step> {
        let (target, policy) = (self.target(view), self.policy());
        let decision = decide(&target, &policy, moment(100));
        debug_assert_eq!(violations(&target, &policy, moment(100), &decision), [], "decided on {target:?}");
        let mut steps: Vec<Step> = decision.actions.iter().filter_map(|action| self.step(view, action)).collect();
        self.leave_out(view, &mut steps);
        steps
    }

    /// Returns a policy by which the past of a target forbids nothing, because the searches are about the lock. Every
    /// execution has a workflow of its own, and failures neither count nor back off.
    fn policy(self) -> Policy {
        Policy {
            retention: if self.retains_nothing { Duration::ZERO } else { Policy::default().retention },
            previous_execution_failed_scope: Scope::Workflow,
            max_consecutive_failures: 0,
            ..Policy::default()
        }
    }

    fn target(self, view: &View) -> Target {
        let executions: UidMap<execution::Execution> = view
            .executions
            .iter()
            .map(|execution| self.execution(view, *execution))
            .map(|execution| (execution.id.uid.clone(), execution))
            .collect();
        let runs: UidMap<run::Run> =
            view.runs.iter().map(|seen| self.run(view, seen)).map(|run| (run.id.uid.clone(), run)).collect();
        let residue: UidMap<residue::Residue> = view
            .residue
            .iter()
            .filter(|left| self.left_out != LeftOut::Drain && !self.overlooks(view, **left))
            .map(|left| self.residue(view, *left))
            .map(|left| (left.id.uid.clone(), left))
            .collect();
        let highest_taken = view.highest_taken.into();
        let memory = TargetMemory { highest_taken, unwatched_owners: self.elsewhere(view), ..TargetMemory::default() };
        Target { executions, runs, residue, memory, ..Target::default() }
    }

    fn execution(self, view: &View, execution: Execution) -> execution::Execution {
        let refused = view.refused.iter().find(|(id, ..)| *id == execution.id);
        let refusal = refused.map(|(_, _, number)| Refusal {
            reason: FailureReason::Forbidden,
            message: "refused".into(),
            number: (*number).into(),
        });
        let state = match execution.phase {
            Phase::Undecided => ExecutionState::Undecided { unusable: None, start_before: None },
            Phase::Running(run) => {
                ExecutionState::Running { run: Some(run_id(run, execution.sequence)), started_at: Some(moment(50)) }
            }
            Phase::Completed => ExecutionState::Completed { started_at: None, completed_at: Some(moment(60)) },
            Phase::Failed { ran } => failed(ran),
            Phase::Skipped => ExecutionState::Skipped { completed_at: None },
        };
        let created = if self.latest_first { moment(0) } else { moment(execution.id.uid.into()) };
        let id = self.execution_id(execution.id);
        let cancellation =
            || Cancellation { reason: "reason".into(), requested_by: "somebody".into(), unguarded: None };
        execution::Execution {
            run_sequence: (execution.sequence > 0).then_some(execution.sequence.into()),
            cancellation: execution.cancelled.then(|| Box::new(cancellation())),
            draining_shown: execution.draining,
            workflow_id: execution.id.uid.to_string().into(),
            state,
            retry: self.retry(execution),
            memory: refusal.map(|refusal| Box::new(ExecutionMemory { refusal: Some(refusal), ..Default::default() })),
            ..execution::Execution::undecided(id, version(execution.version), created)
        }
    }

    fn residue(self, view: &View, left: Residue) -> residue::Residue {
        let uid = Uid::new(&format!("{:02}", left.run.0));
        let id = ResidueId { kind: ResidueKind::Pod, name: left.run.0.to_string().into(), uid };
        residue::Residue { id, owner: self.owner(view, left.owner, false), created: moment(45) }
    }

    fn owner(self, view: &View, owner: Option<ExecutionId>, orphan: bool) -> Owner {
        owner.map_or(Owner::Nobody, |owner| Owner::Execution {
            id: self.execution_id(owner),
            workflow_id: "workflow".into(),
            presence: match orphan {
                true => Presence::Gone,
                false if view.is_elsewhere(owner) => Presence::Unwatched,
                false => Presence::Watched,
            },
        })
    }

    fn run(self, view: &View, seen: &Seen) -> run::Run {
        let Run { uid, number, owner, version: seen_version, progress, cancelled } = seen.run;
        let listed = view.runs.iter().filter(|other| other.place == seen.place).count() > 1;
        let order = match self.left_out {
            LeftOut::Order => u64::from(number),
            LeftOut::ListOrder if listed => u64::from(seen.place) << 8 | u64::from(number),
            _ => u64::from(seen.place) << 8,
        };
        let overlooked = |known: &Execution| owner == Some(known.id) && known.waits && number <= known.sequence;
        let is_overlooked = self.left_out == LeftOut::OwnRuns && view.executions.iter().any(overlooked);
        let progress = if is_overlooked { Progress::Done { ok: false, ran: true } } else { progress };
        let owner = self.owner(view, owner.map(|owner| self.taken_for_owner(view, owner)), seen.orphan);
        let mut findings = Findings::unread("message".into());
        if let Progress::Done { ran: false, .. } = progress {
            findings.started = Started::NotStarted(Absence::OnlyWaited);
        }
        let progress = match progress {
            Progress::Pending => run::Progress::Pending,
            Progress::Released => run::Progress::Released,
            Progress::Done { ok, .. } => run::Progress::Done(Outcome {
                succeeded: ok,
                reason: "Reason".into(),
                message: "message".into(),
                completed_at: Some(moment(60)),
            }),
        };
        run::Run {
            id: run_id(uid, number),
            number: number.into(),
            version: version(seen_version),
            created: moment(40),
            order: Order(order),
            owner,
            progress,
            cancelled,
            cancel_reason: None,
            stopped: false,
            deleting: false,
            stays: run::Stays::default(),
            stop: None,
            doing: "Running".into(),
            total_tasks: None,
            skipped_tasks: 0,
            undeclared: Box::default(),
            timeout: None,
            released_at: Some(moment(55)),
            memory: RunMemory {
                seen: run::Seen::default(),
                // The time is far in the past. The findings about a run change nothing in the cluster.
                diagnosed: Some(Box::new(Look { at: moment(60), since: moment(0), findings })),
                // The time is far in the past. The core waits some time for the pods of a finished run, but here time
                // stands still.
                done_seen: Some(moment(60)),
                release_tried: None,
            },
        }
    }

    fn taken_for_owner(self, view: &View, owner: ExecutionId) -> ExecutionId {
        let namesake = || view.executions.iter().map(|known| known.id).find(|id| id.name == owner.name);
        if self.left_out == LeftOut::Owner { namesake().unwrap_or(owner) } else { owner }
    }

    /// Returns the step of an action. `None` if the action does not change the cluster, or happens only after some
    /// time.
    fn step(self, view: &View, action: &Action) -> Option<Step> {
        Some(match action {
            Action::Create { execution, number, .. } => {
                let owner = self.read_execution(execution);
                let request = Request::Create { owner, number: small(*number) };
                let had_run = view.had_runs & owner.bit() != 0;
                match view.executions.iter().find(|known| known.id == owner && (had_run || known.waits)) {
                    Some(Execution { id, version, .. }) => {
                        let read = Read::Unchanged(*id, *version);
                        Step::ReadFirst { read, premise: Premise::None, request }
                    }
                    None => Step::Write(Premise::None, request),
                }
            }
            Action::Write(write) => return self.write(view, write),
            Action::Skip { skipped, fact, .. } => Step::ReadFact {
                fact: match fact {
                    verdict::Fact::Unfinished(run) => Fact::Unfinished(read_run(run)),
                    // Rules about the history never skip here (see `policy`). No skip is based on the other facts.
                    verdict::Fact::Stands(_)
                    | verdict::Fact::OwnerGone(_)
                    | verdict::Fact::RunGone(..)
                    | verdict::Fact::NothingLeft(_)
                    | verdict::Fact::NoRunOf(_)
                    | verdict::Fact::NothingMade(..)
                    | verdict::Fact::Drained(_)
                    | verdict::Fact::DrainedOfAll(_) => return None,
                    verdict::Fact::Holds(holder) => Fact::Holds(self.read_execution(holder)),
                    verdict::Fact::Draining(residue) => Fact::Draining(RunUid(parse(&residue.uid.to_string()))),
                },
                skipped: skipped
                    .iter()
                    .map(|(execution, version)| (self.read_execution(execution), read_version(version)))
                    .collect(),
            },
            // The run is already marked for cancellation, so this changes nothing in the model.
            Action::Change(change) if matches!(change.to, RunChange::AskedAgain(_)) => return None,
            Action::Change(change) => self.change(change),
            Action::ReadOwner { owner } => Step::ReadOwner(self.read_execution(owner)),
            // No decision in the protocol uses the results of these actions, and no execution here has a time to live.
            Action::Remove { .. }
            | Action::Examine { .. }
            | Action::Ask { .. }
            | Action::CreateChild { .. }
            | Action::Record(_)
            | Action::Triage(_)
            | Action::Tell(_) => return None,
        })
    }

    fn write(self, view: &View, Write { execution, version, facts, says }: &Write) -> Option<Step> {
        let write = match says {
            Says::Running { run, number, .. } => StatusWrite::Commit { run: read_run(run), number: small(*number) },
            Says::GaveUp { number } if self.left_out == LeftOut::GiveUp => {
                let Run { uid: run, number, version, .. } =
                    view.runs.iter().map(|seen| seen.run).find(|run| u64::from(run.number) == *number)?;
                return Some(Step::Write(Premise::None, Request::Delete { run, number, version }));
            }
            Says::GaveUp { number } => StatusWrite::GiveUp(small(*number)),
            Says::Retry { end, .. } => {
                let known = view.executions.iter().find(|known| known.id == self.read_execution(execution));
                let before = known.is_some_and(|known| known.ran) && self.left_out != LeftOut::Worst;
                StatusWrite::Retry { ran: before || end.started != Ran::No }
            }
            Says::Ended { ending, draining } => {
                let (phase, number) = match ending {
                    Ending::Completed(_) => (Phase::Completed, None),
                    Ending::Failed(failure) => (Phase::Failed { ran: failure.was_execution_failure() }, failure.number),
                };
                StatusWrite::Finish { phase, number: number.map(small), draining: *draining }
            }
            Says::Freed => StatusWrite::Freed,
            // These change only conditions, which no decision in the protocol uses.
            Says::Progress { .. }
            | Says::Waiting { .. }
            | Says::HeldBack { .. }
            | Says::Cleared { .. }
            | Says::Blocked(_)
            | Says::Unguarded { .. } => return None,
        };
        let (premise, request) = (self.premise(facts), self.status(execution, version, write));
        // The model also reads before the first commit of a chain. The operator does not, because nothing can be left
        // then.
        let reads = self.reads == Reads::Residue && self.left_out != LeftOut::Drain;
        Some(if reads && matches!(says, Says::Running { .. }) {
            let of_all = facts.iter().any(|fact| matches!(fact, verdict::Fact::DrainedOfAll(_)));
            let read = if of_all && self.left_out != LeftOut::OwnRemains {
                Read::AllDrained
            } else {
                Read::NothingLeft(self.read_execution(execution))
            };
            Step::ReadFirst { read, premise, request }
        } else {
            Step::Write(premise, request)
        })
    }

    fn change(self, Change { run, facts, to }: &Change) -> Step {
        let (uid, number) = (read_run(run), number_of(run));
        let request = match to {
            RunChange::Released => Request::Release { run: uid, number },
            RunChange::Cancelled(_) | RunChange::AskedAgain(_) => Request::Cancel { run: uid, number },
            RunChange::Deleted { version, .. } => Request::Delete { run: uid, number, version: read_version(version) },
        };
        Step::Write(self.premise(facts), request)
    }

    fn status(self, execution: &name::ExecutionId, version: &name::Version, write: StatusWrite) -> Request {
        Request::Status { execution: self.read_execution(execution), version: read_version(version), write }
    }

    /// Returns what is read before a write: that owners or a run are gone. The remains of runs are read in a separate
    /// step.
    fn premise(self, facts: &[verdict::Fact]) -> Premise {
        let mut owners = 0;
        for fact in facts {
            match fact {
                verdict::Fact::RunGone(_, run) => return Premise::RunGone(read_run(run)),
                verdict::Fact::OwnerGone(owner) => owners |= self.read_execution(owner).bit(),
                _ => {}
            }
        }
        if owners == 0 { Premise::None } else { Premise::OwnersGone(owners) }
    }

    fn execution_id(self, id: ExecutionId) -> name::ExecutionId {
        let uid = if self.latest_first { LAST_UID - id.uid } else { id.uid };
        name::ExecutionId { namespace: "ops".into(), name: id.name.to_string().into(), uid: Uid::new(&uid.to_string()) }
    }

    fn read_execution(self, id: &name::ExecutionId) -> ExecutionId {
        let uid = parse(&id.uid.to_string());
        ExecutionId { uid: if self.latest_first { LAST_UID - uid } else { uid }, name: parse(&id.name) }
    }
}
