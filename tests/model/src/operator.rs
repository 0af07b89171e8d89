//! One operator process: its knowledge, its current task, and how it performs a decision.
//!
//! The model follows the engine and the performer of the operator. Two things are left out, which has no visible
//! effect:
//! - A decision and its first step are one step of the model. An earlier decision on the same view would be equal.
//! - The operator's own write is in the view immediately, because nothing is decided before the watch has delivered it.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use crate::claim::Claim;
use crate::cluster::{Answer, Awaited, Cluster, Event};
use crate::fault::Fault;
use crate::leave_out::LeftOut;
use crate::object::{Kind, Run, RunUid};
use crate::request::{Fact, Premise, Request, StatusWrite, Step};
use crate::translate::Translation;
use crate::view::View;

/// What happens to the request of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The operator gets the answer.
    Answered,
    /// The request is carried out, but the answer is lost.
    AnswerLost,
    /// The operator gives up, and the request arrives later.
    Late,
    /// The operator gets the answer, and the request arrives again later.
    Twice,
    /// The API server refuses the create.
    Refused,
}

impl Fate {
    /// All fates.
    pub const ALL: [Self; 5] = [Self::Answered, Self::AnswerLost, Self::Late, Self::Twice, Self::Refused];

    /// Returns the fault in this fate; `None` without a fault.
    #[must_use]
    pub fn fault(self) -> Option<Fault> {
        match self {
            Self::Answered => None,
            Self::AnswerLost => Some(Fault::AnswerLost),
            Self::Late => Some(Fault::Late),
            Self::Twice => Some(Fault::Twice),
            Self::Refused => Some(Fault::Refused),
        }
    }
}

/// How far the start of a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Life {
    /// The process does not run, and has no memory.
    #[default]
    Down,
    /// The process has listed the executions, but not the runs.
    Listing,
    /// The process has all lists.
    Up,
}

/// A name for a process in texts. It is not part of the state, because processes are interchangeable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label(pub char);

/// An operator process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operator {
    /// How far the start of the process is.
    pub life: Life,
    /// The view of the process.
    pub view: View,
    /// How many of the kept events of each watch the process has seen.
    pub seen: [usize; 3],
    /// The remaining steps of the last decision. The process decides again only after the last of them.
    pub task: Vec<Step>,
    /// Own writes that the process has not seen yet. There are none if own writes are in the view immediately.
    pub awaits: Vec<Awaited>,
    /// The name of the process in texts.
    pub label: Label,
}

impl Operator {
    /// Returns the possible next steps: the rest of the task, or, if there is none, the decision on the view.
    #[must_use]
    pub fn steps(&self, translation: Translation) -> Rc<[Step]> {
        match self.life {
            Life::Up if self.task.is_empty() && !self.awaits.is_empty() => Rc::default(),
            Life::Up if self.task.is_empty() => translation.decide(&self.view),
            Life::Up => self.task.as_slice().into(),
            Life::Down | Life::Listing => Rc::default(),
        }
    }

    /// Ends the process, whose memory is lost.
    pub fn crash(&mut self) {
        let view = View { watches: self.view.watches, ..View::default() };
        *self = Self { label: self.label, view, ..Self::default() };
    }

    /// Starts with the lists of everything except runs. A second call lists the runs. No other order needs to be tried:
    /// except for the order of runs, a list is equal to an earlier list and the events since.
    pub fn list(&mut self, cluster: &Cluster) {
        if self.life == Life::Down {
            self.view.list_others(cluster);
            self.life = Life::Listing;
            self.seen = Kind::ALL.map(|kind| cluster.events(kind));
        } else {
            self.view.list_runs(cluster);
            self.life = Life::Up;
            self.seen[Kind::Run as usize] = cluster.events(Kind::Run);
        }
    }

    /// Lists the runs again.
    pub fn relist(&mut self, cluster: &Cluster, by_object: bool) {
        if by_object {
            self.view.begin_list(cluster);
        } else {
            self.view.list_runs(cluster);
        }
        self.seen[Kind::Run as usize] = cluster.events(Kind::Run);
        self.check_awaited(|uid| cluster.run(uid).is_none());
    }

    /// Applies the next event of a watch to the view. Returns whether there was one.
    pub fn deliver(&mut self, kind: Kind, cluster: &Cluster) -> bool {
        if kind == Kind::Run && self.view.go_on_listing() {
            let to_come = &cluster.run_events[self.seen[Kind::Run as usize]..];
            let is_listing = self.view.listing.is_some();
            self.check_awaited(|uid| {
                !is_listing && cluster.run(uid).is_none() && !to_come.contains(&Event::Deleted(uid.0))
            });
            return true;
        }
        let next = self.seen[kind as usize];
        let is_one = next < cluster.events(kind);
        if is_one {
            self.seen[kind as usize] += 1;
            match kind {
                Kind::Execution => self.view.see_execution(&cluster.execution_events[next]),
                Kind::Run => self.view.see_run(&cluster.run_events[next]),
                Kind::Residue => self.view.see_residue(&cluster.residue_events[next]),
            }
            let gone = |event: &Event<Run>, uid: RunUid| *event == Event::Deleted(uid.0);
            self.check_awaited(|uid| kind == Kind::Run && gone(&cluster.run_events[next], uid));
            if let (Kind::Execution, Some(Event::Deleted(uid))) = (kind, cluster.execution_events.get(next)) {
                self.awaits.retain(|awaited| !matches!(awaited, Awaited::Execution(id, _) if id.uid == *uid));
            }
        }
        is_one
    }

    /// Performs one step. Returns whether it changed the cluster or the knowledge of the process.
    pub fn perform(
        &mut self,
        index: usize,
        fate: Fate,
        cluster: &mut Cluster,
        wire: &mut Vec<Request>,
        translation: Translation,
    ) -> bool {
        let is_new = self.task.is_empty();
        let mut steps = self.steps(translation).to_vec();
        if index >= steps.len() {
            return false;
        }
        let step = steps.remove(index);
        let left_out = translation.left_out;
        let done = match step {
            Step::ReadFact { fact, skipped } => {
                let is_read = match fact {
                    Fact::Holds(_) => left_out != LeftOut::HoldsRead,
                    Fact::Unfinished(_) | Fact::Draining(_) => left_out != LeftOut::SkipRead,
                };
                let is_true = cluster.confirms_fact(fact);
                let holds = fate == Fate::Answered && (!is_read || is_true);
                if holds {
                    if !is_true {
                        cluster.breaks(Claim::FreshSkip);
                    }
                    steps.extend(skipped.into_iter().map(|(execution, version)| {
                        let write = StatusWrite::Skip(fact);
                        Step::Write(Premise::None, Request::Status { execution, version, write })
                    }));
                }
                holds
            }
            Step::ReadOwner(owner) => fate == Fate::Answered && self.view.read_owner(owner, cluster.read_owner(owner)),
            Step::ReadFirst { read, premise, request } => {
                let holds = fate == Fate::Answered
                    && cluster.confirms_read(read, left_out)
                    && cluster.confirms(premise, left_out);
                if holds {
                    steps.push(Step::Write(premise, request));
                }
                holds
            }
            Step::Write(premise, request) => {
                cluster.confirms(premise, left_out) && self.write(premise, request, fate, cluster, wire, left_out)
            }
        };
        // If the first step changes nothing, the decision is not begun, and another step may be tried first.
        if done || !is_new {
            steps.sort_unstable();
            self.task = steps;
        }
        done || !is_new
    }

    fn write(
        &mut self,
        premise: Premise,
        request: Request,
        fate: Fate,
        cluster: &mut Cluster,
        wire: &mut Vec<Request>,
        left_out: LeftOut,
    ) -> bool {
        if fate == Fate::Late {
            wire.push(request);
            return true;
        }
        if let (Fate::Refused, Request::Create { owner, number }) = (fate, request) {
            let known = self.view.executions.iter().find(|known| known.id == owner);
            self.view.refused.push((owner, known.map_or(0, |known| known.attempts), number));
            return true;
        }
        if fate == Fate::Refused {
            return false;
        }
        match cluster.apply(request, left_out) {
            Answer::Written(_) if fate == Fate::AnswerLost => true,
            Answer::Written(awaited) => {
                if fate == Fate::Twice {
                    wire.push(request);
                }
                if matches!(request, Request::Create { .. }) && cluster.is_seen_by_all() {
                    cluster.count_creation();
                }
                if left_out != LeftOut::OwnWrites {
                    self.await_own(awaited, cluster);
                }
                if let Premise::OwnersGone(owners) = premise {
                    self.view.orphan(owners);
                }
                true
            }
            Answer::Taken(awaited) if fate == Fate::Answered && !self.view.holds(awaited) => {
                self.await_own(awaited, cluster);
                true
            }
            Answer::TakenUnseen if fate == Fate::Answered => {
                let Request::Create { number, .. } = request else { return false };
                self.view.highest_taken = self.view.highest_taken.max(number);
                true
            }
            Answer::Taken(_) | Answer::TakenUnseen | Answer::Changed => false,
        }
    }

    /// Stops waiting for writes that the view shows, and for runs that are gone.
    fn check_awaited(&mut self, gone: impl Fn(RunUid) -> bool) {
        let view = &self.view;
        self.awaits.retain(|awaited| {
            let is_gone = match awaited {
                Awaited::Execution(..) => false,
                Awaited::Run(uid, _) | Awaited::NoRun(uid) => gone(*uid),
            };
            !is_gone && !view.holds(*awaited)
        });
    }

    /// Applies events to the view until it shows a write.
    fn await_own(&mut self, awaited: Awaited, cluster: &Cluster) {
        if cluster.terms.lists_again {
            if !self.view.holds(awaited) {
                self.awaits.push(awaited);
                self.awaits.sort_unstable();
            }
            return;
        }
        while !self.view.holds(awaited) {
            let delivered = match awaited {
                Awaited::Execution(..) => self.deliver(Kind::Execution, cluster),
                Awaited::Run(..) | Awaited::NoRun(_) => self.deliver(Kind::Run, cluster),
            };
            if !delivered {
                return;
            }
        }
    }
}

impl PartialEq for Label {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Label {}

impl Hash for Label {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Label {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
