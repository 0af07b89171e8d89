//! What is told of a write, once it is known to have happened: a line of the log, the counters, the events.
//!
//! A write whose answer is lost may have happened or not. What there is to tell of it is kept then, and told when a
//! watch delivers what the write has made ([`Untold`](crate::untold::Untold)).

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use wfe_core::Time;
use wfe_core::action::{Ending, Says, Tell};
use wfe_core::duration;
use wfe_core::ending::Skip;
use wfe_core::execution::{Clearance, Execution, ExecutionState, Recorded};
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::target::{Target, TargetName};

use super::{Common, Learned, Performer, Shown};
use crate::events::Announcement;
use crate::metrics::OutcomeLabel;
use crate::status::Subject;

/// What is told of one write.
#[derive(Clone, Debug)]
pub struct Telling {
    /// The execution that it is about.
    execution: ExecutionId,
    target: Option<TargetName>,
    /// The version of the execution that the write rests on. A newer one shows what the write has made, or that it can
    /// never happen any more.
    base: Version,
    told: Told,
}

/// Which write it is: of which execution, and of which kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TellingKey(Uid, Discriminant<Told>);

/// What the write does.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// A run of this name is created.
    Created(Box<str>),
    /// The execution commits to a run.
    Committed(RunId),
    /// It ends.
    Ended {
        /// How.
        ending: Box<Ending>,
        /// Whether it was Running.
        was_running: bool,
        /// When it was committed to its run, where it was.
        started_at: Option<Time>,
    },
    /// It is skipped, in these words.
    Skipped(Arc<Skip>, String),
    /// Its target has drained.
    Freed,
    /// Its clearance is recorded; with whether that has lifted anything.
    Cleared(Box<Clearance>, bool),
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
    pub(crate) fn new(target: Option<&TargetName>, execution: &ExecutionId, base: &Version, told: Told) -> Self {
        Self { execution: execution.clone(), target: target.cloned(), base: base.clone(), told }
    }

    /// Returns what tells one kind of write to one execution from the others: of each there is one at a time.
    #[must_use]
    pub fn key(&self) -> TellingKey {
        TellingKey(self.execution.uid.clone(), discriminant(&self.told))
    }

    /// Returns the execution that it is about.
    #[must_use]
    pub fn execution(&self) -> &Uid {
        &self.execution.uid
    }

    /// Looks for the write in what is known of its target now; `None` where nothing is known of it any more.
    #[must_use]
    pub fn sight(&self, target: Option<&Target>) -> Sight {
        let execution = target.and_then(|target| target.executions.get(&self.execution.uid));
        let is_created = |name: &str| {
            let mut runs = target.into_iter().flat_map(|target| target.runs.values());
            runs.any(|run| *run.id.name == *name && run.owner.is(&self.execution))
        };
        let shown = match (&self.told, execution) {
            (Told::Created(name), _) if is_created(name) => true,
            // A create does not rest on the version of the execution; an undecided one goes on trying.
            (Told::Created(_), Some(execution)) if execution.is_undecided() => return Sight::NotYet,
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
            Says::Running { run, .. } => Some(Self::Committed(run.clone())),
            Says::Ended { ending, .. } => Some(Self::Ended {
                ending: Box::new(ending.clone()),
                was_running: subject.is_running,
                started_at: subject.started_at,
            }),
            Says::Freed => Some(Self::Freed),
            Says::Cleared { clearance, effective } => Some(Self::Cleared(Box::new(clearance.clone()), *effective)),
            Says::GaveUp { .. }
            | Says::Retry { .. }
            | Says::Progress { .. }
            | Says::Waiting { .. }
            | Says::Blocked(_) => None,
        }
    }

    /// Says whether an execution is as the write to its status makes it.
    fn is_shown_by(&self, execution: &Execution) -> bool {
        match (self, &execution.state) {
            (Self::Committed(committed), ExecutionState::Running { run: Some(run), .. }) => run.uid == committed.uid,
            (Self::Ended { ending, .. }, ExecutionState::Completed { .. }) => matches!(**ending, Ending::Completed(_)),
            (Self::Ended { ending, .. }, ExecutionState::Failed(_)) => matches!(**ending, Ending::Failed(_)),
            (Self::Skipped(..), ExecutionState::Skipped { .. }) => true,
            (Self::Freed, _) => execution.is_terminal() && !execution.draining_shown,
            (Self::Cleared(_, effective), _) => {
                let recorded = if *effective { Recorded::Effective } else { Recorded::Ineffective };
                execution.clearance.as_ref().is_some_and(|clearance| clearance.recorded == recorded)
            }
            _ => false,
        }
    }
}

impl Performer {
    /// Tells people what no status says.
    pub(super) fn tell_people(&self, common: &Common, tell: Tell) -> Vec<Learned> {
        let target = Shown(common.target.as_ref());
        match tell {
            Tell::Replay { execution, run, task_run } => {
                tracing::warn!(wfe = %execution, %target, %run, %task_run, "steps have run again");
                self.events.announce(Announcement::steps_replayed(&execution, &run, &task_run));
                vec![Learned::ReplayTold(run.uid)]
            }
            Tell::DrainSlow { holder, residue, since } => {
                self.metrics.drain_slow();
                let (kind, name) = (residue.kind.as_str(), &residue.name);
                tracing::warn!(wfe = %holder, %target, kind, name, %since, "the target does not drain");
                self.events.announce(Announcement::drain_slow(&holder, &residue, since));
                vec![Learned::DrainWarned]
            }
        }
    }

    /// Tells of a write that has happened. Nothing is told twice in one process; events are told once by all of them,
    /// as their names say what they tell.
    pub fn tell(&self, telling: &Telling) {
        let Telling { execution, target: name, told, .. } = telling;
        let target = Shown(name.as_ref());
        match told {
            Told::Created(run) => {
                self.metrics.run_created();
                tracing::debug!(wfe = %execution, %target, run = &**run, "created, pending");
            }
            Told::Committed(run) => {
                tracing::info!(wfe = %execution, %target, %run, phase = "Running", "committed");
                self.events.announce(Announcement::pipeline_run_created(execution, run));
            }
            Told::Ended { ending, was_running, started_at } => {
                self.tell_end(execution, &target, ending, *was_running);
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
                let by = &clearance.cleared_by;
                tracing::info!(wfe = %execution, %target, %by, effective, "cleared: {}", clearance.reason);
                if *effective {
                    self.events.announce(Announcement::block_cleared(execution, clearance));
                }
            }
            Told::Removed => {
                self.metrics.expired();
                tracing::info!(wfe = %execution, "removed, as its time to live is over");
            }
        }
    }

    fn tell_end(&self, execution: &ExecutionId, target: &Shown<'_>, ending: &Ending, was_running: bool) {
        match ending {
            Ending::Completed(success) => {
                self.metrics.ended(OutcomeLabel::Completed, Some(success.ran_for));
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
                self.events.announce(Announcement::failed(execution, failure));
            }
        }
    }
}
