//! The API server carries out a write if its precondition is met. The true history judges each write.

use crate::claim::Claim;
use crate::cluster::{Answer, Awaited, Cluster, Created, Event, Made};
use crate::leave_out::LeftOut;
use crate::object::{Execution, ExecutionId, Number, Phase, Progress, Run, RunUid, Version};
use crate::request::{Fact, Request, StatusWrite};

/// More runs than any sequence of steps needs. Deleted runs count while something refers to them.
const MAX_RUNS: usize = 12;

impl Cluster {
    /// Carries out a write if its precondition is met.
    pub fn apply(&mut self, request: Request, left_out: LeftOut) -> Answer {
        match request {
            Request::Create { owner, number } => self.create(owner, number, left_out),
            Request::Status { execution, version, write } => self.write_status(execution, version, write, left_out),
            Request::Release { run, number } => self.release(run, number, left_out),
            Request::Delete { run, number, version } => self.delete(run, number, version, left_out),
            Request::Cancel { run, .. } => self.cancel(run),
        }
    }

    fn create(&mut self, owner: ExecutionId, number: Number, left_out: LeftOut) -> Answer {
        if number == self.terms.stranger {
            return Answer::TakenUnseen;
        }
        if let Some(taken) = self.named(number) {
            return Answer::Taken(Awaited::Run(taken.uid, taken.version));
        }
        if self.runs.len() >= MAX_RUNS {
            self.breaks(Claim::Ends);
            return Answer::Changed;
        }
        let uid = RunUid(u8::try_from(self.runs.len()).unwrap_or(u8::MAX));
        let progress = Progress::Pending;
        let run = Run { uid, number, owner: Some(owner), version: 0, progress, cancelled: false };
        self.runs.push(Created { object: Some(run), ..Created::default() });
        if left_out == LeftOut::Pending {
            self.start(uid);
        } else {
            self.run_events.push(Event::Applied(run));
        }
        Answer::Written(Awaited::Run(uid, 0))
    }

    fn write_status(
        &mut self,
        execution: ExecutionId,
        version: Version,
        write: StatusWrite,
        left_out: LeftOut,
    ) -> Answer {
        let unchecked = match write {
            StatusWrite::Commit { .. } => left_out == LeftOut::CommitPrecondition,
            StatusWrite::Retry { .. } => left_out == LeftOut::RetryPrecondition,
            StatusWrite::GiveUp(_) | StatusWrite::Finish { .. } | StatusWrite::Freed | StatusWrite::Skip(_) => {
                left_out == LeftOut::EndPrecondition
            }
        };
        let found = self.existing().find(|found| found.id.name == execution.name).copied();
        let Some(mut object) = found.filter(|found| unchecked || (found.id == execution && found.version == version))
        else {
            return Answer::Changed;
        };
        self.judge_status(object, write);
        let ends = matches!(write, StatusWrite::Finish { .. } | StatusWrite::Skip(_));
        if ends {
            self.note_hold(object.id);
        }
        match write {
            StatusWrite::Commit { run, number } => {
                object.phase = Phase::Running(run);
                object.sequence = number;
                if !object.waits && self.terms.attempts > 1 {
                    object.attempts = 1;
                }
                object.waits = false;
                self.note_commit(object, run);
            }
            StatusWrite::Retry { ran } => {
                (object.attempts, object.waits, object.ran) = (object.attempts + 1, true, ran);
            }
            StatusWrite::GiveUp(number) => object.sequence = number,
            StatusWrite::Finish { phase, number, draining } => {
                object.phase = phase;
                object.sequence = number.unwrap_or(object.sequence);
                object.draining = draining;
                object.waits = false;
            }
            StatusWrite::Freed => object.draining = false,
            StatusWrite::Skip(_) => object.phase = Phase::Skipped,
        }
        object.version += 1;
        self.executions[usize::from(object.id.uid)].object = Some(object);
        self.execution_events.push(Event::Applied(object));
        Answer::Written(Awaited::Execution(object.id, object.version))
    }

    /// Records that an execution has committed to a run, and for which attempt. The run may already be released.
    fn note_commit(&mut self, object: Execution, run: RunUid) {
        let Some(created) = self.runs.get_mut(usize::from(run.0)) else { return };
        created.committed |= created.object.is_some();
        if self.terms.attempts > 1 {
            created.attempt = object.attempts;
            if created.released {
                self.executions[usize::from(object.id.uid)].released |= 1 << object.attempts;
            }
        }
    }

    fn judge_status(&mut self, object: Execution, write: StatusWrite) {
        if object.phase.is_terminal() && write != StatusWrite::Freed {
            self.breaks(Claim::Final);
        }
        if let (StatusWrite::Finish { .. } | StatusWrite::Retry { .. }, Phase::Running(run)) = (write, object.phase)
            && self.run(run).is_some_and(|run| run.is_unfinished())
        {
            self.breaks(Claim::AfterItsRun);
        }
        match write {
            StatusWrite::Commit { run, .. } => {
                if self.run(run).is_some_and(|run| run.owner != Some(object.id)) {
                    self.breaks(Claim::Own);
                }
                if matches!(object.phase, Phase::Running(_)) && !object.waits {
                    self.breaks(Claim::OneRunEach);
                }
            }
            StatusWrite::Retry { .. } => {
                if object.attempts >= self.terms.attempts {
                    self.breaks(Claim::OneRunEach);
                }
            }
            StatusWrite::Finish { phase: Phase::Failed { ran: true }, .. } => {
                let lost = |created: &Created| created.object.is_none() && !created.erased;
                if let Phase::Running(run) = object.phase
                    && self.runs.get(usize::from(run.0)).is_some_and(lost)
                {
                    self.breaks(Claim::NotLost);
                }
            }
            StatusWrite::GiveUp(_) | StatusWrite::Finish { .. } | StatusWrite::Freed => {}
            StatusWrite::Skip(fact) => {
                let (true_now, met) = match fact {
                    Fact::Unfinished(run) | Fact::Draining(run) => (
                        self.holds(run) || self.has_residue(run),
                        self.runs.get(usize::from(run.0)).map_or(0, |created| created.met),
                    ),
                    Fact::Holds(holder) => (
                        self.is_running(holder),
                        self.executions.get(usize::from(holder.uid)).map_or(0, |made| made.met),
                    ),
                };
                if !true_now && met & object.id.bit() == 0 {
                    self.breaks(Claim::TrueSkip);
                }
            }
        }
    }

    fn release(&mut self, run: RunUid, number: Number, left_out: LeftOut) -> Answer {
        let unchecked = left_out == LeftOut::ReleasePrecondition;
        let found = self.named(number).filter(|found| unchecked || found.uid == run);
        // Even without its `test` operations, the JSON patch removes `spec.status`, and fails if that field is absent.
        match found.filter(|found| found.progress == Progress::Pending) {
            Some(found) => {
                self.start(found.uid);
                Answer::Written(Awaited::Run(found.uid, found.version + 1))
            }
            None => Answer::Changed,
        }
    }

    /// Releases a run to Tekton.
    fn start(&mut self, uid: RunUid) {
        self.change_run(uid, |run| run.progress = Progress::Released);
        let Some(run) = self.run(uid) else { return };
        let created = &mut self.runs[usize::from(uid.0)];
        created.released = true;
        let uncommitted = !created.committed;
        let bit = 1 << created.attempt;
        let owner = run.owner.and_then(|owner| self.executions.get_mut(usize::from(owner.uid)));
        let mut before = 0;
        if let Some(owner) = owner {
            before = owner.released;
            owner.released |= bit;
        }
        let again = before & bit != 0 || before.count_ones() >= u32::from(self.terms.attempts);
        if self.executions.iter().any(|other| Some(other.id) != run.owner && self.is_held_by(other)) {
            self.breaks(Claim::Held);
        }
        let runs = |created: &&Created| created.released && created.object.is_some_and(|run| run.is_released());
        if self.runs.iter().filter(runs).count() > 1 {
            self.breaks(Claim::OneAtATime);
        }
        if self.runs.iter().any(|created| created.residue.is_some()) {
            self.breaks(Claim::Drained);
        }
        self.leave(run);
        if again {
            self.breaks(Claim::OneRunEach);
        }
        if uncommitted {
            self.breaks(Claim::Committed);
        }
    }

    /// Returns whether an execution holds the target. It does if it is Running, one of its runs was released, and no
    /// user has deleted its run.
    fn is_held_by(&self, made: &Made) -> bool {
        let Some(Execution { phase: Phase::Running(run), .. }) = made.object else { return false };
        made.released != 0 && !self.runs.get(usize::from(run.0)).is_some_and(|created| created.erased)
    }

    fn delete(&mut self, run: RunUid, number: Number, version: Version, left_out: LeftOut) -> Answer {
        let unchecked = left_out == LeftOut::DeletePrecondition;
        let found = self.named(number).filter(|found| unchecked || (found.uid == run && found.version == version));
        let Some(found) = found else { return Answer::Changed };
        let is_over = !found.is_unfinished() && self.owner(found).is_none_or(|owner| owner.phase.is_terminal());
        if found.owner.is_none() || (found.progress != Progress::Pending && !is_over) {
            self.breaks(Claim::Kept);
        }
        self.delete_run(found.uid, false);
        Answer::Written(Awaited::NoRun(found.uid))
    }

    fn cancel(&mut self, run: RunUid) -> Answer {
        let Some(found) = self.run(run) else { return Answer::Changed };
        if found.owner.is_none() || self.owner(found).is_some_and(|owner| !owner.cancelled) {
            self.breaks(Claim::Kept);
        }
        self.change_run(run, |run| {
            run.cancelled = true;
            // The cancelled run is released, but Tekton ends it without starting anything.
            if run.progress == Progress::Pending {
                run.progress = Progress::Released;
            }
        });
        Answer::Written(Awaited::Run(run, found.version + 1))
    }
}
