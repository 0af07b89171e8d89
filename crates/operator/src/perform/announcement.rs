//! Announces successful writes in the log, in the counters and in events.
//!
//! If the answer to a write is lost, its outcome is unknown. The announcement is then kept, and made when a watch
//! delivers the result of the write
//! ([`UnconfirmedAnnouncements`](crate::perform::unconfirmed::UnconfirmedAnnouncements)).

mod schedule;

use std::sync::Arc;

use tokio::time::Instant;
use wfe_core::action::{Announce, Ending, Says};
use wfe_core::duration;
use wfe_core::ending::{Skip, Tried};
use wfe_core::execution::ExecutionState;
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::reason::FailureReason;
use wfe_core::retry::{AttemptEnd, Stop};
use wfe_core::target::{Target, TargetName};

use super::quoted::without_values;
use super::{Common, Learned, Performer, Shown};
use crate::events::{FailedAttempt, NewEvent};
use crate::metrics::{AttemptLabel, OutcomeLabel};
use crate::status::Subject;

pub use schedule::OfSchedule;

/// The announcement of one write.
#[derive(Clone, Debug)]
pub enum Announcement {
    /// A write to an execution, or the creation of its run.
    Execution(OfExecution),
    /// A write to the status of a schedule.
    Schedule(OfSchedule),
}

/// The announcement of one write to an execution.
#[derive(Clone, Debug)]
pub struct OfExecution {
    /// The execution that the write is about.
    execution: ExecutionId,
    target: Option<TargetName>,
    /// The version of the execution that the write requires. A newer version shows that the write succeeded, or that it
    /// can no longer succeed.
    base: Version,
    told: AnnouncedWrite,
}

/// Identifies a write by its execution or schedule, and by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AnnouncementKey(Uid, &'static str);

/// A write that concerns an execution.
#[derive(Clone, Debug)]
pub(crate) enum AnnouncedWrite {
    /// The creation of a run with this name.
    Created(Box<str>),
    /// A change of the status, and the execution as it was before.
    Said(Box<Says>, Box<Subject>),
    /// The skip of the execution, with its message.
    Skipped(Arc<Skip>, String),
    /// The deletion of the execution.
    Removed,
}

/// What a view shows about the result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The view shows that the write succeeded.
    Shown,
    /// The view shows nothing newer than the version that the write requires.
    NotYet,
    /// The view shows that the write did not succeed, and no longer can.
    Never,
}

impl Announcement {
    pub(crate) fn new(
        target: Option<&TargetName>,
        execution: &ExecutionId,
        base: &Version,
        told: AnnouncedWrite,
    ) -> Self {
        let (execution, target, base) = (execution.clone(), target.cloned(), base.clone());
        Self::Execution(OfExecution { execution, target, base, told })
    }

    /// Returns whether events and counters announce the write. Other writes have only a line in the log.
    pub(super) fn is_announced(&self) -> bool {
        !matches!(self, Self::Execution(OfExecution { told: AnnouncedWrite::Said(says, _), .. }) if !says.is_announced())
    }

    /// Returns the key of the write. An object has at most one unconfirmed write of each kind.
    #[must_use]
    pub fn key(&self) -> AnnouncementKey {
        let kind = match self {
            Self::Execution(of) => of.told.name(),
            Self::Schedule(_) => "record",
        };
        AnnouncementKey(self.about().clone(), kind)
    }

    /// Returns the uid of the execution or the schedule.
    #[must_use]
    pub fn about(&self) -> &Uid {
        match self {
            Self::Execution(of) => &of.execution.uid,
            Self::Schedule(of) => of.about(),
        }
    }

    /// Looks for the result of the write in the present view of its target; `target` is `None` if the target was
    /// removed from the view.
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
            (AnnouncedWrite::Created(name), _) if is_created(name) => true,
            // A create does not depend on the version of the execution. While the execution waits for its run, the
            // create may still succeed.
            (AnnouncedWrite::Created(_), Some(execution))
                if execution.is_undecided() || execution.next_attempt().is_some() =>
            {
                return Sight::NotYet;
            }
            (AnnouncedWrite::Removed, execution) => execution.is_none(),
            (AnnouncedWrite::Said(says, _), Some(execution)) => says.is_shown_by(execution),
            (AnnouncedWrite::Skipped(..), Some(execution)) => matches!(execution.state, ExecutionState::Skipped { .. }),
            (AnnouncedWrite::Created(_), _) | (_, None) => false,
        };
        match execution {
            _ if shown => Sight::Shown,
            Some(execution) if execution.version == self.base => Sight::NotYet,
            _ => Sight::Never,
        }
    }
}

impl AnnouncedWrite {
    fn name(&self) -> &'static str {
        match self {
            Self::Created(_) => "create",
            Self::Said(says, _) => says.name(),
            Self::Skipped(..) => "skip",
            Self::Removed => "remove",
        }
    }
}

impl Performer {
    /// Announces something that no status records. `attempt` is set from the second attempt on.
    pub(super) fn tell_people(&self, common: &Common, tell: Announce, attempt: Option<u32>) -> Vec<Learned> {
        let target = common.shown();
        match tell {
            Announce::Replay { execution, run, task_run } => {
                tracing::warn!(wfe = %execution, %target, %run, %task_run, "steps have run again");
                self.events.announce(NewEvent::steps_replayed(&execution, &run, &task_run, attempt));
                vec![Learned::ReplayAnnounced(run.uid)]
            }
            Announce::CancelUnanswered { execution, unanswered } => {
                let (run, why) = (&unanswered.run, unanswered.message());
                tracing::warn!(wfe = %execution, %target, %run, "Tekton does not stop the run: {why}");
                self.events.announce(NewEvent::cancel_unanswered(&execution, &unanswered, attempt));
                vec![Learned::CancelAnnounced(unanswered.run.uid)]
            }
            Announce::DrainSlow { holder, residue, since } => {
                self.metrics.drain_slow();
                let (kind, name) = (residue.kind.as_str(), &residue.name);
                tracing::warn!(wfe = %holder, %target, kind, name, %since, "the target does not drain");
                self.events.announce(NewEvent::drain_slow(&holder, &residue, since));
                vec![Learned::DrainWarned]
            }
            Announce::HintIgnored { schedule, generation, why } => {
                tracing::info!(%schedule, "hint ignored: {why}");
                self.events.announce(NewEvent::hint_ignored(&schedule, generation, why));
                Vec::new()
            }
        }
    }

    /// Announces a successful write. A process announces each write once; events have fixed names, so several processes
    /// also create each event only once.
    pub fn tell(&self, announcement: &Announcement) {
        match announcement {
            Announcement::Execution(of) => self.tell_of_execution(of),
            Announcement::Schedule(of) => self.tell_of_schedule(of),
        }
    }

    fn tell_of_execution(&self, of: &OfExecution) {
        let OfExecution { execution, target: name, told, .. } = of;
        let target = Shown(name.as_ref());
        match told {
            AnnouncedWrite::Created(run) => {
                self.metrics.run_created();
                tracing::debug!(wfe = %execution, %target, run = &**run, "created, pending");
            }
            AnnouncedWrite::Said(says, before) => match &before.redaction {
                Some(redaction) => self.tell_said(execution, name.as_ref(), &without_values(says, redaction), before),
                None => self.tell_said(execution, name.as_ref(), says, before),
            },
            AnnouncedWrite::Skipped(skip, message) => {
                self.metrics.skipped(skip);
                let (phase, reason) = ("Skipped", skip.reason());
                if let Some(unlogged) = self.skips_logged.may_log(name.as_ref(), Instant::now()) {
                    tracing::info!(wfe = %execution, %target, phase, reason, unlogged, "skipped: {message}");
                } else {
                    tracing::debug!(wfe = %execution, %target, phase, reason, "skipped: {message}");
                }
                self.events.announce(NewEvent::skipped(execution, skip, message));
            }
            AnnouncedWrite::Removed => {
                self.metrics.expired();
                tracing::info!(wfe = %execution, %target, "removed, as its time to live is over");
            }
        }
    }

    /// Announces a change of a status.
    fn tell_said(&self, execution: &ExecutionId, name: Option<&TargetName>, says: &Says, before: &Subject) {
        let target = Shown(name);
        match says {
            Says::Running { run, .. } => {
                let attempt = before.retry.as_ref().map(|retry| (retry.current(), retry.policy.max_attempts));
                let number = attempt.map(|(number, _)| number);
                tracing::info!(wfe = %execution, %target, %run, phase = "Running", attempt = number, "committed");
                self.events.announce(NewEvent::pipeline_run_created(execution, run, attempt));
            }
            Says::GaveUp { number } => {
                tracing::info!(wfe = %execution, %target, number, "gave its pending run up");
            }
            Says::Retry { attempt, of, run, end, delay, not_before, proof: _ } => {
                let failed = failed_attempt(*attempt, *of, run.clone(), end);
                self.metrics.attempt(AttemptLabel::Retried);
                tracing::info!(
                    wfe = %execution, %target, attempt, of, reason = %failed.reason, %not_before,
                    "the attempt failed, and there is another: {}", failed.error
                );
                self.events.announce(NewEvent::attempt_failed(execution, &failed));
                self.events.announce(NewEvent::step_retry(execution, &failed, *delay, *not_before));
            }
            Says::HeldBack { waiting } => {
                let (reason, message) = (waiting.reason(), waiting.message());
                tracing::info!(wfe = %execution, %target, reason, "the next attempt is held back: {message}");
            }
            Says::Ended { ending, .. } => self.tell_end(execution, name, ending, before),
            Says::Progress { shown, .. } => {
                let (tasks, started) = (shown.tasks, shown.proof.as_ref().map(|proof| &*proof.words));
                if let Some(awaits) = &shown.awaits {
                    tracing::info!(wfe = %execution, %target, reason = &*awaits.reason, "waits: {}", awaits.message);
                } else {
                    tracing::debug!(wfe = %execution, %target, ?tasks, started, "goes on");
                }
            }
            Says::Waiting { waiting, .. } => {
                let (phase, reason, message) = ("Pending", waiting.reason(), waiting.message());
                if waiting.is_trouble() {
                    tracing::warn!(wfe = %execution, %target, phase, reason, "waits: {message}");
                } else {
                    tracing::info!(wfe = %execution, %target, phase, reason, "waits: {message}");
                }
            }
            Says::Freed => {
                tracing::info!(wfe = %execution, %target, "drained, the target is free");
                self.events.announce(NewEvent::lock_released(execution, name));
            }
            Says::Cleared { clearance, effective } => {
                let by = clearance.author();
                tracing::info!(wfe = %execution, %target, %by, effective, "cleared: {}", clearance.reason);
                if *effective {
                    self.events.announce(NewEvent::block_cleared(execution, clearance));
                }
            }
            Says::Blocked(blocked) => {
                let message = blocked.message(name.map_or("the target", TargetName::as_str));
                tracing::info!(wfe = %execution, %target, reason = blocked.reason(), "blocked: {message}");
            }
            Says::Unguarded { kind, counts: true } => {
                tracing::info!(wfe = %execution, %target, reason = kind.reason(true), "{}", kind.message(true));
            }
            Says::Unguarded { kind, counts: false } => {
                tracing::warn!(wfe = %execution, %target, reason = kind.reason(false), "{}", kind.message(false));
                self.events.announce(NewEvent::unguarded(execution, *kind));
            }
        }
    }

    fn tell_end(&self, execution: &ExecutionId, name: Option<&TargetName>, ending: &Ending, before: &Subject) {
        let target = &Shown(name);
        // Between two attempts, the execution has no run yet.
        let run = before.run.as_ref().filter(|_| !before.waits());
        match ending {
            Ending::Completed(success) => {
                self.metrics.ended(OutcomeLabel::Completed, Some(success.ran_for));
                if success.attempt.is_some() {
                    self.metrics.attempt(AttemptLabel::Completed);
                }
                let took = duration::format(success.ran_for);
                tracing::info!(wfe = %execution, %target, phase = "Completed", took, "ended");
                self.events.announce(NewEvent::completed(execution, success));
            }
            Ending::Failed(failure) => {
                self.metrics.ended(OutcomeLabel::Failed, before.is_running.then_some(failure.ran_for));
                tracing::info!(
                    wfe = %execution, %target, phase = "Failed", reason = %failure.reason,
                    execution_failure = failure.was_execution_failure(), "ended: {}", failure.message
                );
                if let Some(tried) = &failure.tried {
                    self.tell_last_attempt(execution, target, tried, run);
                }
                self.events.announce(NewEvent::failed(execution, failure));
                if let Some((reason, target)) = failure.blocks().filter(|_| !before.analyses).zip(name) {
                    self.events.announce(NewEvent::target_blocked(execution, target, reason));
                }
            }
        }
        if !before.undeclared.is_empty() {
            let names = before.undeclared.join(", ");
            tracing::warn!(wfe = %execution, %target, %names, "the pipeline does not declare these parameters");
            self.events.announce(NewEvent::parameters_undeclared(execution, run, &names));
        }
        if let Some(skew) = ending.skew(before.started_at) {
            tracing::warn!(wfe = %execution, %target, ?skew, "the run ended by a clock that is not ours");
            self.events.announce(NewEvent::clock_skewed(execution, skew));
        }
    }

    /// Announces how the last attempt ended and why no other attempt follows; the end of the execution is announced
    /// after it.
    fn tell_last_attempt(&self, execution: &ExecutionId, target: &Shown<'_>, tried: &Tried, run: Option<&RunId>) {
        let Tried { attempt, of, end, stop } = tried;
        self.metrics.retry_stopped(stop);
        let why = stop.message();
        tracing::info!(wfe = %execution, %target, attempt, of, stop = stop.reason(), "not tried again: {why}");
        if let Some(end) = end {
            self.metrics.attempt(AttemptLabel::Failed);
            let failed = failed_attempt(*attempt, *of, run.cloned(), end);
            self.events.announce(NewEvent::attempt_failed(execution, &failed));
        }
        if *stop == Stop::Exhausted {
            self.events.announce(NewEvent::step_retry_exhausted(execution, tried));
        }
        self.events.announce(NewEvent::step_failed_terminal(execution, tried));
    }
}

fn failed_attempt(attempt: u32, of: u32, run: Option<RunId>, end: &AttemptEnd) -> FailedAttempt {
    let reason = end.reason.unwrap_or(FailureReason::Unknown);
    FailedAttempt { attempt, of, run, reason, error: end.message.clone() }
}
