//! Why an execution is skipped, in the words that its status, its event and the log share.

use std::fmt;
use std::time::Duration;

use crate::awaiting::Unanswered;
use crate::moment::shown;
use crate::name::ExecutionId;
use crate::retry::NextAttempt;
use crate::{Time, duration};

/// Why an execution is skipped, with the facts behind it.
#[derive(Clone, Debug, PartialEq)]
pub enum Skip {
    /// Rule 1: another execution holds the target.
    ResourceBusy(Conflict),
    /// Rule 2: the last execution that ran failed half way.
    PreviousExecutionFailed {
        /// The execution that failed.
        failed: Remediation,
        /// Whether the skipped execution is a recovery whose own workflow or bundle has already failed.
        is_repeated: bool,
    },
    /// Rule 3: too many failures in a row before anything ran.
    ExhaustedRetries {
        /// The latest failure.
        latest: Remediation,
        /// The number of failures.
        failures: u32,
        /// The limit.
        limit: u32,
        /// When time alone lifts the block, if it does.
        until: Option<Time>,
    },
    /// Rule 4: the latest execution failed before anything ran, and its backoff is not over.
    Backoff {
        /// The latest failure.
        latest: Remediation,
        /// The number of failures in a row.
        failures: u32,
        /// The `nextAllowedExecution` of that failure. `None` if the time of the failure is unknown.
        until: Option<Time>,
    },
    /// Rule 5: the same workflow has just succeeded.
    Cooldown {
        /// The latest success of the workflow.
        last: Remediation,
        /// How long the cooldown is.
        cooldown: Duration,
        /// When the cooldown is over. `None` if its beginning is unknown.
        until: Option<Time>,
    },
}

/// The earlier execution behind a skip (`skipDetails.recentRemediation`).
#[derive(Clone, Debug, PartialEq)]
pub struct Remediation {
    /// The execution.
    pub execution: ExecutionId,
    /// The `workflowId` of the execution.
    pub workflow_id: Box<str>,
    /// When the execution ended. If its status has no such time: when it was created.
    pub completed_at: Time,
    /// Whether the execution completed.
    pub completed: bool,
    /// Whether the status of the execution contains the time of its end.
    pub is_dated: bool,
}

impl Remediation {
    fn dated(&self) -> String {
        if self.is_dated {
            shown(self.completed_at).to_string()
        } else {
            "a time that its status does not say".to_owned()
        }
    }
}

impl fmt::Display for Remediation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (workflow {})", self.execution, self.workflow_id)
    }
}

/// The execution that holds the target of a skipped execution (`skipDetails.conflictingWorkflow`).
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The execution whose run holds the target.
    pub holder: ExecutionId,
    /// The holder's `workflowId`.
    pub workflow_id: Box<str>,
    /// When the holder started: its `startTime`, or, if that is unknown, the creation of its run or remains.
    pub started_at: Time,
    /// Whether the holder was deleted while it ran.
    pub deleted: bool,
    /// Whether the holder's run has ended, and only its tasks and pods are still stopping.
    pub draining: bool,
    /// The attempt that the holder waits for, if any.
    pub next: Option<Box<NextAttempt>>,
    /// The request to stop the holder's run that Tekton has not acted on, if there is one.
    pub unanswered: Option<Box<Unanswered>>,
}

impl Skip {
    /// Returns the skip reason in the spelling of the API.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ResourceBusy(_) => "ResourceBusy",
            Self::PreviousExecutionFailed { .. } => "PreviousExecutionFailed",
            Self::ExhaustedRetries { .. } => "ExhaustedRetries",
            Self::Backoff { .. } | Self::Cooldown { .. } => "RecentlyRemediated",
        }
    }

    /// Returns the earlier execution behind the skip, if no execution holds the target.
    #[must_use]
    pub fn remediation(&self) -> Option<&Remediation> {
        match self {
            Self::ResourceBusy(_) => None,
            Self::PreviousExecutionFailed { failed: past, .. }
            | Self::ExhaustedRetries { latest: past, .. }
            | Self::Backoff { latest: past, .. }
            | Self::Cooldown { last: past, .. } => Some(past),
        }
    }

    /// Returns how long until time alone ends the reason of the skip, rounded up to seconds. `None` if time does not
    /// end it.
    #[must_use]
    pub fn remaining(&self, now: Time) -> Option<Duration> {
        let (Self::ExhaustedRetries { until, .. } | Self::Backoff { until, .. } | Self::Cooldown { until, .. }) = self
        else {
            return None;
        };
        let remaining = ((*until)? - now).to_std().unwrap_or_default();
        Some(Duration::from_secs(remaining.as_secs().saturating_add(u64::from(remaining.subsec_nanos() > 0))))
    }

    /// Describes why the execution is skipped, and what would change that.
    #[must_use]
    pub fn message(&self, target: &str) -> String {
        match self {
            Self::ResourceBusy(conflict) => conflict.message(target),
            Self::PreviousExecutionFailed { failed, is_repeated } => {
                let repeated = if *is_repeated {
                    "; recoveryOf names it, but this workflow has itself failed on the target since the last success \
                     or clearance, or one from its bundle has, so choose another one"
                } else {
                    ""
                };
                format!(
                    "{failed} failed on {target} at {} after something of it had run, or may have run{repeated}; see \
                     what it left behind, then clear {} (spec.clearance) or create a WorkflowExecution of another \
                     workflow with recoveryOf: {} (and from another bundle)",
                    failed.dated(),
                    failed.execution,
                    failed.execution.name,
                )
            }
            Self::ExhaustedRetries { latest, failures, limit, until } => {
                let until = until.map_or(String::new(), |until| format!(", or wait until {}", shown(until)));
                format!(
                    "{failures} executions in a row on {target} failed before anything ran (the limit is {limit}), the \
                     latest, {latest}, at {}; end the cause that its status names, then clear {} \
                     (spec.clearance){until}",
                    latest.dated(),
                    latest.execution,
                )
            }
            Self::Backoff { latest, failures, until } => format!(
                "backoff: {latest} failed on {target} at {} before anything ran, failure {failures} in a row; {}",
                latest.dated(),
                next(*until, latest),
            ),
            Self::Cooldown { last, cooldown, until } => format!(
                "cooldown: {last} completed on {target} at {}, and the same workflow is not run again within {}; {}",
                last.dated(),
                duration::format(*cooldown),
                next(*until, last),
            ),
        }
    }
}

/// Describes when the reason for a skip will be over, and what a person can do to end it. The time can be far off, if a
/// wrong clock or a person wrote it, so the text also names what a person can do.
fn next(until: Option<Time>, past: &Remediation) -> String {
    match until {
        Some(until) => {
            format!("a new WorkflowExecution can run from {} on, or when {} is deleted", shown(until), past.execution)
        }
        None => format!("its status does not tell when that is over: delete {} to go on", past.execution),
    }
}

impl Conflict {
    fn message(&self, target: &str) -> String {
        let Self { holder, workflow_id, started_at, deleted, draining, next, unanswered } = self;
        if let Some(NextAttempt { attempt, of, not_before, ends_by }) = next.as_deref() {
            format!(
                "{holder} (workflow {workflow_id}) holds {target} since {} and waits for attempt {attempt} of {of}, which \
                 begins at {}; it ends by {}, and then a new WorkflowExecution can run",
                shown(*started_at),
                shown(*not_before),
                shown(*ends_by),
            )
        } else if let Some(unanswered) = unanswered {
            format!(
                "{holder} (workflow {workflow_id}) holds {target} since {}, and its run does not stop: {}; when it has \
                 stopped, a new WorkflowExecution can run",
                shown(*started_at),
                unanswered.message(),
            )
        } else if *draining {
            format!(
                "the run of {holder} (workflow {workflow_id}) on {target} has ended, but tasks or pods of it are still \
                 stopping; when they are gone, a new WorkflowExecution can run"
            )
        } else if *deleted {
            format!(
                "{holder} (workflow {workflow_id}) was deleted while it ran on {target}; its run is being cancelled, and \
                 when that has stopped, a new WorkflowExecution can run"
            )
        } else {
            format!(
                "{holder} (workflow {workflow_id}) has been running on {target} since {}; when it has ended, a new \
                 WorkflowExecution can run, of the same workflow only after the cooldown if it succeeds",
                shown(*started_at),
            )
        }
    }
}
