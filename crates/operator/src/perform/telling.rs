//! What is told of a write, once it is known to have happened: a line of the log, the counters, the events.
//!
//! A write whose answer is lost may have happened or not. What there is to tell of it is kept then, and told when a
//! watch delivers what the write has made ([`Untold`](crate::perform::untold::Untold)).

mod schedule;

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::time::Duration;

use wfe_core::Time;
use wfe_core::action::{Ending, Says, Tell};
use wfe_core::duration;
use wfe_core::ending::{Skip, Tried};
use wfe_core::execution::{Clearance, Execution, ExecutionState, Recorded};
use wfe_core::guard::WordKind;
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::reason::FailureReason;
use wfe_core::retry::{AttemptEnd, Stop};
use wfe_core::target::{Target, TargetName};
use wfe_tekton::Redaction;

use super::{Common, Learned, Performer, Shown};
use crate::events::{Announcement, FailedAttempt};
use crate::metrics::{AttemptLabel, OutcomeLabel};
use crate::status::Subject;

pub use schedule::OfSchedule;

/// What is told of one write.
#[derive(Clone, Debug)]
pub enum Telling {
    /// To an execution, or for one.
    Execution(OfExecution),
    /// To the status of a schedule.
    Schedule(OfSchedule),
}

/// What is told of one write to an execution.
#[derive(Clone, Debug)]
pub struct OfExecution {
    /// The execution that it is about.
    execution: ExecutionId,
    target: Option<TargetName>,
    /// The version of the execution that the write rests on. A newer one shows what the write has made, or that it can
    /// never happen any more.
    base: Version,
    told: Told,
    /// What no text may quote that leaves the execution; none where nothing of it is told in the words of others.
    redaction: Option<Arc<Redaction>>,
}

/// Which write it is: of which execution or schedule, and of which kind, where there are several.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TellingKey(Uid, Option<Discriminant<Told>>);

/// What the write does.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// A run of this name is created.
    Created(Box<str>),
    /// The execution commits to a run; with the attempt and how many there are, where it has a retry policy.
    Committed(RunId, Option<(u32, u32)>),
    /// An attempt of it has failed, and there is another.
    Retried {
        /// How.
        failed: Box<FailedAttempt>,
        /// How long the wait before the next one is.
        delay: Duration,
        /// When that may begin.
        not_before: Time,
    },
    /// It ends.
    Ended {
        /// How.
        ending: Box<Ending>,
        /// Whether it was Running.
        was_running: bool,
        /// When it was committed to its run, where it was.
        started_at: Option<Time>,
        /// The run that it was committed to last, where it was.
        run: Option<RunId>,
        /// The names of parameters that the pipeline of the run does not declare.
        undeclared: Box<[Box<str>]>,
    },
    /// It is skipped, in these words.
    Skipped(Arc<Skip>, String),
    /// Its target has drained.
    Freed,
    /// Its clearance is recorded; with whether that has lifted anything.
    Cleared(Box<Clearance>, bool),
    /// What a person has set on it does not count now.
    Unguarded(WordKind),
    /// It is removed.
    Removed,
}

/// Whether a view shows what a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It shows it.
    Shown,
    /// It shows nothing newer than what the write rests on.
    NotYet,
    /// It shows something else: the write has not happened, and cannot happen any more.
    Never,
}

impl Telling {
    pub(crate) fn new(
        target: Option<&TargetName>,
        execution: &ExecutionId,
        base: &Version,
        told: Told,
        redaction: Option<Arc<Redaction>>,
    ) -> Self {
        let (execution, target, base) = (execution.clone(), target.cloned(), base.clone());
        Self::Execution(OfExecution { execution, target, base, told, redaction })
    }

    /// Returns what tells one kind of write to one object from the others: of each there is one at a time.
    #[must_use]
    pub fn key(&self) -> TellingKey {
        let kind = match self {
            Self::Execution(of) => Some(discriminant(&of.told)),
            Self::Schedule(_) => None,
        };
        TellingKey(self.about().clone(), kind)
    }

    /// Returns the execution or the schedule that it is about.
    #[must_use]
    pub fn about(&self) -> &Uid {
        match self {
            Self::Execution(of) => &of.execution.uid,
            Self::Schedule(of) => of.about(),
        }
    }

    /// Looks for the write in what is known of its target now; `None` where nothing is known of it any more.
    #[must_use]
    pub fn sight(&self, target: Option<&Target>) -> Sight {
        match self {
            Self::Execution(of) => of.sight(target),
            Self::Schedule(of) => of.sight(target),
        }
    }
}

impl OfExecution {
    fn sight(&self, target: Option<&Target>) -> Sight {
        let execution = target.and_then(|target| target.executions.get(&self.execution.uid));
        let is_created = |name: &str| {
            let mut runs = target.into_iter().flat_map(|target| target.runs.values());
            runs.any(|run| *run.id.name == *name && run.owner.is(&self.execution))
        };
        let shown = match (&self.told, execution) {
            (Told::Created(name), _) if is_created(name) => true,
            // A create does not rest on the version of the execution: while it waits for its run, it goes on trying.
            (Told::Created(_), Some(execution)) if execution.is_undecided() || execution.next_attempt().is_some() => {
                return Sight::NotYet;
            }
            (Told::Removed, execution) => execution.is_none(),
            (told, Some(execution)) => told.is_shown_by(execution),
            (_, None) => false,
        };
        match execution {
            _ if shown => Sight::Shown,
            Some(execution) if execution.version == self.base => Sight::NotYet,
            _ => Sight::Never,
        }
    }
}

impl Told {
    /// Returns what there is to tell of a write that says this, where it is told at all.
    pub(super) fn of(says: &Says, subject: &Subject) -> Option<Self> {
        match says {
            Says::Running { run, .. } => {
                let attempt = subject.retry.as_ref().map(|retry| (retry.current(), retry.policy.max_attempts));
                Some(Self::Committed(run.clone(), attempt))
            }
            Says::Retry { attempt, of, run, end, delay, not_before, proof: _ } => {
                let failed = failed_attempt(*attempt, *of, run.clone(), end);
                Some(Self::Retried { failed: Box::new(failed), delay: *delay, not_before: *not_before })
            }
            Says::Ended { ending, .. } => Some(Self::Ended {
                ending: Box::new(ending.clone()),
                was_running: subject.is_running,
                started_at: subject.started_at,
                // One that waits has none yet.
                run: subject.run.clone().filter(|_| !subject.waits()),
                undeclared: subject.undeclared.clone(),
            }),
            Says::Freed => Some(Self::Freed),
            Says::Cleared { clearance, effective } => Some(Self::Cleared(Box::new(clearance.clone()), *effective)),
            Says::Unguarded { kind, counts: false } => Some(Self::Unguarded(*kind)),
            Says::GaveUp { .. }
            | Says::Progress { .. }
            | Says::Waiting { .. }
            | Says::HeldBack { .. }
            | Says::Blocked(_)
            | Says::Unguarded { counts: true, .. } => None,
        }
    }

    /// Says whether an execution is as the write to its status makes it.
    fn is_shown_by(&self, execution: &Execution) -> bool {
        match (self, &execution.state) {
            (Self::Committed(committed, _), ExecutionState::Running { run: Some(run), .. }) => run.uid == committed.uid,
            (Self::Retried { failed, .. }, ExecutionState::Running { .. }) => {
                execution.retry.as_ref().is_some_and(|retry| retry.current() > failed.attempt)
            }
            (Self::Ended { ending, .. }, ExecutionState::Completed { .. }) => matches!(**ending, Ending::Completed(_)),
            (Self::Ended { ending, .. }, ExecutionState::Failed(_)) => matches!(**ending, Ending::Failed(_)),
            (Self::Skipped(..), ExecutionState::Skipped { .. }) => true,
            (Self::Freed, _) => execution.is_terminal() && !execution.draining_shown,
            (Self::Cleared(_, effective), _) => {
                let recorded = if *effective { Recorded::Effective } else { Recorded::Ineffective };
                execution.clearance.as_ref().is_some_and(|clearance| clearance.recorded == recorded)
            }
            (Self::Unguarded(WordKind::Clearance), _) => {
                execution.clearance.as_ref().is_some_and(|clearance| clearance.unguarded.is_some())
            }
            (Self::Unguarded(WordKind::Cancellation), _) => {
                execution.cancellation.as_ref().is_some_and(|cancellation| cancellation.unguarded.is_some())
            }
            _ => false,
        }
    }
}

impl Performer {
    /// Tells people what no status says; `attempt` is the one that the execution is on, where it is a later one.
    pub(super) fn tell_people(&self, common: &Common, tell: Tell, attempt: Option<u32>) -> Vec<Learned> {
        let target = Shown(common.target.as_ref());
        match tell {
            Tell::Replay { execution, run, task_run } => {
                tracing::warn!(wfe = %execution, %target, %run, %task_run, "steps have run again");
                self.events.announce(Announcement::steps_replayed(&execution, &run, &task_run, attempt));
                vec![Learned::ReplayTold(run.uid)]
            }
            Tell::CancelUnanswered { execution, unanswered } => {
                let (run, why) = (&unanswered.run, unanswered.message());
                tracing::warn!(wfe = %execution, %target, %run, "Tekton does not stop the run: {why}");
                self.events.announce(Announcement::cancel_unanswered(&execution, &unanswered, attempt));
                vec![Learned::CancelTold(unanswered.run.uid)]
            }
            Tell::DrainSlow { holder, residue, since } => {
                self.metrics.drain_slow();
                let (kind, name) = (residue.kind.as_str(), &residue.name);
                tracing::warn!(wfe = %holder, %target, kind, name, %since, "the target does not drain");
                self.events.announce(Announcement::drain_slow(&holder, &residue, since));
                vec![Learned::DrainWarned]
            }
            Tell::HintIgnored { schedule, generation, why } => {
                tracing::info!(%schedule, "hint ignored: {why}");
                self.events.announce(Announcement::hint_ignored(&schedule, generation, why));
                Vec::new()
            }
        }
    }

    /// Tells of a write that has happened. Nothing is told twice in one process; events are told once by all of them,
    /// as their names say what they tell.
    pub fn tell(&self, telling: &Telling) {
        match telling {
            Telling::Execution(of) => self.tell_of_execution(of),
            Telling::Schedule(of) => self.tell_of_schedule(of),
        }
    }

    fn tell_of_execution(&self, of: &OfExecution) {
        let OfExecution { execution, target: name, .. } = of;
        let target = Shown(name.as_ref());
        let told = of.redaction.as_ref().map_or_else(|| of.told.clone(), |redaction| of.told.without_values(redaction));
        match &told {
            Told::Created(run) => {
                self.metrics.run_created();
                tracing::debug!(wfe = %execution, %target, run = &**run, "created, pending");
            }
            Told::Committed(run, attempt) => {
                let number = attempt.map(|(number, _)| number);
                tracing::info!(wfe = %execution, %target, %run, phase = "Running", attempt = number, "committed");
                self.events.announce(Announcement::pipeline_run_created(execution, run, *attempt));
            }
            Told::Retried { failed, delay, not_before } => {
                let FailedAttempt { attempt, of, reason, error, .. } = &**failed;
                self.metrics.attempt(AttemptLabel::Retried);
                tracing::info!(
                    wfe = %execution, %target, attempt, of, %reason, %not_before,
                    "the attempt failed, and there is another: {error}"
                );
                self.events.announce(Announcement::attempt_failed(execution, failed));
                self.events.announce(Announcement::step_retry(execution, failed, *delay, *not_before));
            }
            Told::Ended { ending, was_running, started_at, run, undeclared } => {
                self.tell_end(execution, &target, ending, *was_running, run.as_ref());
                if !undeclared.is_empty() {
                    let names = undeclared.join(", ");
                    tracing::warn!(wfe = %execution, %target, %names, "the pipeline does not declare these parameters");
                    self.events.announce(Announcement::parameters_undeclared(execution, run.as_ref(), &names));
                }
                if let Some(skew) = ending.skew(*started_at) {
                    tracing::warn!(wfe = %execution, %target, ?skew, "the run ended by a clock that is not ours");
                    self.events.announce(Announcement::clock_skewed(execution, skew));
                }
            }
            Told::Skipped(skip, message) => {
                self.metrics.skipped(skip);
                tracing::info!(
                    wfe = %execution, %target, phase = "Skipped", reason = skip.reason(), "skipped: {message}"
                );
                self.events.announce(Announcement::skipped(execution, skip, message));
            }
            Told::Freed => {
                tracing::info!(wfe = %execution, %target, "drained, the target is free");
                self.events.announce(Announcement::lock_released(execution, name.as_ref()));
            }
            Told::Cleared(clearance, effective) => {
                let by = clearance.author();
                tracing::info!(wfe = %execution, %target, %by, effective, "cleared: {}", clearance.reason);
                if *effective {
                    self.events.announce(Announcement::block_cleared(execution, clearance));
                }
            }
            Told::Unguarded(kind) => {
                tracing::warn!(wfe = %execution, %target, reason = kind.reason(false), "{}", kind.message(false));
                self.events.announce(Announcement::unguarded(execution, *kind));
            }
            Told::Removed => {
                self.metrics.expired();
                tracing::info!(wfe = %execution, "removed, as its time to live is over");
            }
        }
    }

    fn tell_end(
        &self,
        execution: &ExecutionId,
        target: &Shown<'_>,
        ending: &Ending,
        was_running: bool,
        run: Option<&RunId>,
    ) {
        match ending {
            Ending::Completed(success) => {
                self.metrics.ended(OutcomeLabel::Completed, Some(success.ran_for));
                if success.attempt.is_some() {
                    self.metrics.attempt(AttemptLabel::Completed);
                }
                let took = duration::format(success.ran_for);
                tracing::info!(wfe = %execution, %target, phase = "Completed", took, "ended");
                self.events.announce(Announcement::completed(execution, success));
            }
            Ending::Failed(failure) => {
                self.metrics.ended(OutcomeLabel::Failed, was_running.then_some(failure.ran_for));
                tracing::info!(
                    wfe = %execution, %target, phase = "Failed", reason = %failure.reason,
                    execution_failure = failure.was_execution_failure(), "ended: {}", failure.message
                );
                if let Some(tried) = &failure.tried {
                    self.tell_last_attempt(execution, target, tried, run);
                }
                self.events.announce(Announcement::failed(execution, failure));
            }
        }
    }

    /// Tells how the last attempt ended, and why there is no other: before the end of the execution.
    fn tell_last_attempt(&self, execution: &ExecutionId, target: &Shown<'_>, tried: &Tried, run: Option<&RunId>) {
        let Tried { attempt, of, end, stop } = tried;
        self.metrics.retry_stopped(stop);
        let why = stop.message();
        tracing::info!(wfe = %execution, %target, attempt, of, stop = stop.reason(), "not tried again: {why}");
        if let Some(end) = end {
            self.metrics.attempt(AttemptLabel::Failed);
            let failed = failed_attempt(*attempt, *of, run.cloned(), end);
            self.events.announce(Announcement::attempt_failed(execution, &failed));
        }
        if *stop == Stop::Exhausted {
            self.events.announce(Announcement::step_retry_exhausted(execution, tried));
        }
        self.events.announce(Announcement::step_failed_terminal(execution, tried));
    }
}

fn failed_attempt(attempt: u32, of: u32, run: Option<RunId>, end: &AttemptEnd) -> FailedAttempt {
    let reason = end.reason.unwrap_or(FailureReason::Unknown);
    FailedAttempt { attempt, of, run, reason, error: end.message.clone() }
}
