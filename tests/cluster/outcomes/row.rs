//! The status that section 9 requires for an outcome.

use wfe_api::FailureReason;
use wfe_testkit::Tekton;

use super::seen::Seen;

/// Whether anything of the workflow ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Started {
    No,
    Yes,
    NobodyKnows,
}

impl Started {
    /// Returns the status of the condition `Started`.
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::No => "False",
            Self::Yes => "True",
            Self::NobodyKnows => "Unknown",
        }
    }
}

/// One outcome and its expected status.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The name of the outcome.
    pub(super) play: &'static str,
    /// Whether the outcome takes only seconds, and is therefore always played.
    pub(super) quick: bool,
    /// The operator's `--start-deadline`, if the outcome depends on it.
    pub(super) start_deadline: Option<&'static str>,
    started: Started,
    /// The reason of the failure; `None` for Completed.
    reason: Option<FailureReason>,
    task: (&'static str, i64),
    step: Option<&'static str>,
    exit: Option<i64>,
    event: Option<&'static str>,
    /// How the row changes with the oldest Tekton, whose statuses say less.
    oldest: Option<fn(Self) -> Self>,
}

/// Returns a row whose execution is Completed after something ran.
pub(super) const fn completed(play: &'static str) -> Row {
    Row {
        play,
        quick: false,
        start_deadline: None,
        started: Started::Yes,
        reason: None,
        task: ("", 0),
        step: None,
        exit: None,
        event: None,
        oldest: None,
    }
}

/// Returns a row whose execution is Failed with this reason.
pub(super) const fn failed(play: &'static str, reason: FailureReason, started: Started) -> Row {
    Row { reason: Some(reason), started, ..completed(play) }
}

impl Row {
    /// Makes the row one that is always played.
    pub(super) const fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    pub(super) const fn started(self, started: Started) -> Self {
        Self { started, ..self }
    }

    /// Expects this failed task of the pipeline, with its index.
    pub(super) const fn task(self, name: &'static str, index: i64) -> Self {
        Self { task: (name, index), ..self }
    }

    pub(super) const fn step(self, name: &'static str) -> Self {
        Self { step: Some(name), ..self }
    }

    pub(super) const fn exit(self, code: i64) -> Self {
        Self { exit: Some(code), ..self }
    }

    /// Expects an event with this reason.
    pub(super) const fn event(self, reason: &'static str) -> Self {
        Self { event: Some(reason), ..self }
    }

    /// Expects this reason instead.
    pub(super) const fn because(self, reason: FailureReason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// Changes the expectation for the oldest Tekton.
    pub(super) const fn on_oldest(self, change: fn(Self) -> Self) -> Self {
        Self { oldest: Some(change), ..self }
    }

    /// Returns the row for this Tekton.
    pub(super) fn with(self, tekton: Tekton) -> Self {
        match self.oldest {
            Some(change) if tekton == Tekton::Oldest => change(self),
            _ => self,
        }
    }

    /// Expects the execution to end because nothing has started by this deadline.
    pub(super) const fn by_start_deadline(self, deadline: &'static str) -> Self {
        Self { start_deadline: Some(deadline), ..self }
    }

    /// Returns the differences between the results and the expectation.
    pub(super) fn differences(&self, seen: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        let mut same = |what: &str, seen: String, expected: String| {
            if seen != expected {
                found.push(format!("{what} is {seen} and not {expected}"));
            }
        };
        same("phase", seen.phase.clone(), if self.reason.is_some() { "Failed" } else { "Completed" }.to_owned());
        same("Started", seen.started_status().to_owned(), self.started.status().to_owned());
        if let Some(reason) = self.reason {
            same("reason", seen.reason.clone(), reason.to_string());
            same("wasExecutionFailure", seen.executed.to_string(), (self.started != Started::No).to_string());
            let (name, index) = self.task;
            same("task", format!("{:?} at {}", seen.task, seen.index), format!("{name:?} at {index}"));
            same("step", format!("{:?}", seen.step.as_deref()), format!("{:?}", self.step));
            same("exit code", format!("{:?}", seen.exit), format!("{:?}", self.exit));
        }
        if let Some(event) = self.event {
            same(
                &format!("the event {event}"),
                seen.events.iter().any(|one| one == event).to_string(),
                "true".to_owned(),
            );
        }
        found.extend(seen.broken.iter().cloned());
        found
    }
}
