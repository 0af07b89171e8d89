//! The API server's objects with uids and versions, the order of events, and the changes to objects from outside.
//!
//! The cluster also keeps the true history, by which every write is judged. No part of a real cluster remembers this
//! history.

mod truth;

use crate::claim::{Claim, Claims};
use crate::leave_out::LeftOut;
use crate::object::{End, Execution, ExecutionId, Kind, Number, Phase, Progress, Residue, Run, RunUid, Version};
use crate::request::{Fact, OwnerRead, Premise, Read};

/// More creations than any sequence of steps needs after all operators have seen everything except runs. With more of
/// them, the operators create and withdraw runs for ever, which breaks the claim that everything ends.
const MAX_CREATIONS: u8 = 10;

/// An execution that exists or existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Made {
    /// The identity of the execution.
    pub id: ExecutionId,
    /// The object; `None` after the deletion.
    pub object: Option<Execution>,
    /// The attempts with a released run, one bit for each.
    pub released: u8,
    /// Whether something of the execution's runs may have run. This is recorded only if there may be several attempts.
    pub ran: bool,
    /// The undecided executions that existed while this one was Running. Set when it no longer is.
    pub met: u8,
}

/// A run that exists or existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Created {
    /// The object; `None` after the deletion.
    pub object: Option<Run>,
    /// Whether the run's owner ever committed to it.
    pub committed: bool,
    /// Whether the run was ever released.
    pub released: bool,
    /// The undecided executions that existed while the run held the target or drained. Set when that ends.
    pub met: u8,
    /// What is left of the run.
    pub residue: Option<Residue>,
    /// Whether a user deleted the run, not an operator.
    pub erased: bool,
    /// The attempt for which the owner committed to the run; 0 if it did not.
    pub attempt: u8,
}

/// An event of a watch: an object after a write, or the deletion of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event<T> {
    /// The object was created or changed.
    Applied(T),
    /// The object with this uid was deleted.
    Deleted(u8),
}

/// The answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The write was carried out, and the watch will deliver this.
    Written(Awaited),
    /// A run of the chain already has the name. The watch delivers this run.
    Taken(Awaited),
    /// An object outside the chain already has the name.
    TakenUnseen,
    /// The precondition is not met.
    Changed,
}

/// What an operator waits for after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Awaited {
    /// This execution in this version.
    Execution(ExecutionId, Version),
    /// This run in this version.
    Run(RunUid, Version),
    /// The deletion of this run.
    NoRun(RunUid),
}

/// What is the same in all states of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Terms {
    /// Whether runs leave something behind, which a separate watch shows.
    pub drains: bool,
    /// The number in the name of an object outside the chain; 0 if there is none.
    pub stranger: Number,
    /// Whether operators may list runs again. A list may then show an operator its own write, so the write is not in
    /// the view immediately.
    pub lists_again: bool,
    /// Which claims are judged.
    pub judged: Claims,
    /// The most attempts of an execution.
    pub attempts: u8,
}

/// The cluster, with the true history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cluster {
    /// All executions, by uid.
    pub executions: Vec<Made>,
    /// All runs by uid, which is the order of their creation.
    pub runs: Vec<Created>,
    /// Events of executions that at least one operator has not seen yet.
    pub execution_events: Vec<Event<Execution>>,
    /// Events of runs that at least one operator has not seen yet.
    pub run_events: Vec<Event<Run>>,
    /// Events of the remains of runs that at least one operator has not seen yet.
    pub residue_events: Vec<Event<Residue>>,
    /// The values that are the same in all states of a search.
    pub terms: Terms,
    /// The number of runs that were created after all operators had seen everything except runs.
    pub creations: u8,
    /// The first claim that was broken.
    pub broken: Option<Claim>,
}

impl Cluster {
    /// Returns a cluster in which nothing has happened yet.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self {
            executions: Vec::new(),
            runs: Vec::new(),
            execution_events: Vec::new(),
            run_events: Vec::new(),
            residue_events: Vec::new(),
            terms,
            creations: 0,
            broken: None,
        }
    }

    /// Returns the executions that exist.
    pub fn existing(&self) -> impl Iterator<Item = &Execution> {
        self.executions.iter().filter_map(|made| made.object.as_ref())
    }

    /// Returns the runs that exist.
    pub fn existing_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter_map(|created| created.object.as_ref())
    }

    /// Returns the number of kept events of a watch.
    #[must_use]
    pub fn events(&self, kind: Kind) -> usize {
        match kind {
            Kind::Execution => self.execution_events.len(),
            Kind::Run => self.run_events.len(),
            Kind::Residue => self.residue_events.len(),
        }
    }

    /// Removes the first events of a watch, which all operators have seen.
    pub fn forget_events(&mut self, kind: Kind, count: usize) {
        match kind {
            Kind::Execution => drop(self.execution_events.drain(..count)),
            Kind::Run => drop(self.run_events.drain(..count)),
            Kind::Residue => drop(self.residue_events.drain(..count)),
        }
    }

    /// Returns the current execution, as a live read does.
    #[must_use]
    pub fn execution(&self, id: ExecutionId) -> Option<Execution> {
        self.executions.get(usize::from(id.uid)).and_then(|made| made.object)
    }

    /// Returns the current run, as a live read does.
    #[must_use]
    pub fn run(&self, uid: RunUid) -> Option<Run> {
        self.runs.get(usize::from(uid.0)).and_then(|created| created.object)
    }

    /// Creates an execution, with the name of an earlier one if a name is given.
    pub fn make_execution(&mut self, name: Option<u8>) {
        let uid = u8::try_from(self.executions.len()).unwrap_or(u8::MAX);
        let id = ExecutionId { uid, name: name.unwrap_or(uid) };
        let phase = Phase::Undecided;
        let object = Execution {
            id,
            version: 0,
            phase,
            sequence: 0,
            cancelled: false,
            draining: false,
            attempts: 0,
            waits: false,
            ran: false,
        };
        self.executions.push(Made { id, object: Some(object), released: 0, ran: false, met: 0 });
        self.execution_events.push(Event::Applied(object));
    }

    /// Returns whether all operators have seen everything except runs. Events that all operators have seen are not
    /// kept.
    #[must_use]
    pub fn is_seen_by_all(&self) -> bool {
        self.execution_events.is_empty() && self.residue_events.is_empty()
    }

    /// Counts a creation after all operators have seen everything except runs. The number of such creations must be
    /// limited. Other creations end when the watches deliver, because executions change only a few times.
    pub fn count_creation(&mut self) {
        self.creations += 1;
        if self.creations > MAX_CREATIONS {
            self.breaks(Claim::Ends);
        }
    }

    /// Deletes an execution, as a user does.
    pub fn delete_execution(&mut self, id: ExecutionId) {
        self.note_hold(id);
        if let Some(made) = self.executions.get_mut(usize::from(id.uid)) {
            made.object = None;
            self.execution_events.push(Event::Deleted(id.uid));
        }
    }

    /// Deletes a run. `erased` means that a user deletes it.
    pub fn delete_run(&mut self, uid: RunUid, erased: bool) {
        self.note_end(uid);
        if let Some(run) = self.run(uid).filter(Run::is_released) {
            self.note_ran(run);
        }
        if let Some(created) = self.runs.get_mut(usize::from(uid.0)) {
            *created = Created { object: None, committed: false, released: false, erased, attempt: 0, ..*created };
            self.run_events.push(Event::Deleted(uid.0));
        }
    }

    /// Changes a run, as Tekton or an operator does.
    pub fn change_run(&mut self, uid: RunUid, change: impl FnOnce(&mut Run)) {
        let Some(mut run) = self.run(uid) else { return };
        change(&mut run);
        run.version += 1;
        if !run.is_unfinished() {
            self.note_end(uid);
        }
        if let Some(created) = self.runs.get_mut(usize::from(uid.0)) {
            created.object = Some(run);
            self.run_events.push(Event::Applied(run));
        }
    }

    /// Ends a run, as Tekton does. A cancelled run does not succeed.
    pub fn end_run(&mut self, uid: RunUid, end: End) {
        if let Some(run) = self.run(uid).filter(|_| end != End::Unstarted) {
            self.note_ran(run);
        }
        self.change_run(uid, |run| {
            run.progress = Progress::Done { ok: end == End::Well && !run.cancelled, ran: end != End::Unstarted };
        });
    }

    /// Releases a run, as a user might. Claims that this breaks are not judged.
    pub fn poke(&mut self, uid: RunUid) {
        self.change_run(uid, |run| run.progress = Progress::Released);
        let Some(run) = self.run(uid) else { return };
        self.runs[usize::from(uid.0)].released = true;
        self.leave(run);
    }

    /// Records that a released run leaves something behind.
    pub(crate) fn leave(&mut self, run: Run) {
        if self.terms.drains {
            let residue = Residue { run: run.uid, owner: run.owner };
            self.runs[usize::from(run.uid.0)].residue = Some(residue);
            self.residue_events.push(Event::Applied(residue));
        }
    }

    /// Removes the last remains of a run.
    pub fn drain(&mut self, uid: RunUid) {
        if self.has_residue(uid) {
            self.note_met(uid);
            self.runs[usize::from(uid.0)].residue = None;
            self.residue_events.push(Event::Deleted(uid.0));
        }
    }

    /// Returns whether something of a run is left.
    #[must_use]
    pub fn has_residue(&self, uid: RunUid) -> bool {
        self.runs.get(usize::from(uid.0)).is_some_and(|created| created.residue.is_some())
    }

    /// Requests the cancellation of an execution, as a user does.
    pub fn ask_to_cancel(&mut self, id: ExecutionId) {
        if let Some(object) = self.executions.get_mut(usize::from(id.uid)).and_then(|made| made.object.as_mut()) {
            object.cancelled = true;
            object.version += 1;
            self.execution_events.push(Event::Applied(*object));
        }
    }

    /// Returns whether a live read confirms a fact.
    #[must_use]
    pub fn confirms_fact(&self, fact: Fact) -> bool {
        match fact {
            Fact::Unfinished(run) => self.run(run).is_some_and(|run| run.is_unfinished()),
            Fact::Draining(run) => self.has_residue(run),
            Fact::Holds(id) => self.is_running(id),
        }
    }

    /// Returns whether an execution exists and is Running.
    #[must_use]
    pub fn is_running(&self, id: ExecutionId) -> bool {
        self.execution(id).is_some_and(|execution| matches!(execution.phase, Phase::Running(_)))
    }

    /// Returns the result of a live read of an execution that no watch delivers.
    #[must_use]
    pub fn read_owner(&self, id: ExecutionId) -> OwnerRead {
        match self.execution(id) {
            None => OwnerRead::Over,
            Some(found) if found.phase.is_terminal() => OwnerRead::Over,
            Some(found) if found.waits => OwnerRead::Waits,
            Some(_) => OwnerRead::Late,
        }
    }

    /// Returns whether a live read confirms the fact on which a later write depends.
    #[must_use]
    pub fn confirms_read(&self, read: Read, left_out: LeftOut) -> bool {
        match read {
            Read::Unchanged(id, version) => self.execution(id).is_some_and(|execution| execution.version == version),
            Read::NothingLeft(_) | Read::AllDrained if left_out == LeftOut::DrainRead => true,
            Read::AllDrained => self.residue().next().is_none(),
            Read::NothingLeft(execution) => self.residue().all(|left| left.owner == Some(execution)),
        }
    }

    /// Returns the remains of all runs.
    pub fn residue(&self) -> impl Iterator<Item = &Residue> {
        self.runs.iter().filter_map(|created| created.residue.as_ref())
    }

    /// Returns whether a live read confirms the fact on which a write depends.
    #[must_use]
    pub fn confirms(&self, premise: Premise, left_out: LeftOut) -> bool {
        match premise {
            Premise::None => true,
            Premise::OwnersGone(owners) => {
                left_out == LeftOut::OwnerRead || !self.existing().any(|execution| owners & execution.id.bit() != 0)
            }
            Premise::RunGone(run) => left_out == LeftOut::LostRead || self.run(run).is_none(),
        }
    }

    pub(crate) fn owner(&self, run: Run) -> Option<Execution> {
        run.owner.and_then(|owner| self.execution(owner))
    }

    pub(crate) fn named(&self, number: Number) -> Option<Run> {
        self.existing_runs().find(|run| run.number == number).copied()
    }
}
