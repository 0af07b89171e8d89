//! What section 9 wants an execution to say of an outcome.

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
    /// The status of the condition `Started`.
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::No => "False",
            Self::Yes => "True",
            Self::NobodyKnows => "Unknown",
        }
    }
}

/// One outcome and what is expected of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The name of the outcome.
    pub(super) play: &'static str,
    /// Whether it takes seconds only, and is played always.
    pub(super) quick: bool,
    /// The operator's `--start-deadline`, where the outcome waits for that.
    pub(super) start_deadline: Option<&'static str>,
    started: Started,
    /// The reason of the failure; none where it is Completed.
    reason: Option<FailureReason>,
    task: (&'static str, i64),
    step: Option<&'static str>,
    exit: Option<i64>,
    event: Option<&'static str>,
    /// What differs with the oldest Tekton, which has fewer words.
    oldest: Option<fn(Self) -> Self>,
}

/// A row whose execution is Completed after something has run.
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

/// A row whose execution is Failed with this reason.
pub(super) const fn failed(play: &'static str, reason: FailureReason, started: Started) -> Row {
    Row { reason: Some(reason), started, ..completed(play) }
}

impl Row {
    /// The same, played always.
    pub(super) const fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    pub(super) const fn started(self, started: Started) -> Self {
        Self { started, ..self }
    }

    /// Which task of the pipeline failed, and its place.
    pub(super) const fn task(self, name: &'static str, index: i64) -> Self {
        Self { task: (name, index), ..self }
    }

    pub(super) const fn step(self, name: &'static str) -> Self {
        Self { step: Some(name), ..self }
    }

    pub(super) const fn exit(self, code: i64) -> Self {
        Self { exit: Some(code), ..self }
    }

    /// An event that must be told.
    pub(super) const fn event(self, reason: &'static str) -> Self {
        Self { event: Some(reason), ..self }
    }

    /// With this reason.
    pub(super) const fn because(self, reason: FailureReason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// Changes what is expected with the oldest Tekton.
    pub(super) const fn on_oldest(self, change: fn(Self) -> Self) -> Self {
        Self { oldest: Some(change), ..self }
    }

    /// The row for this Tekton.
    pub(super) fn with(self, tekton: Tekton) -> Self {
        match self.oldest {
            Some(change) if tekton == Tekton::Oldest => change(self),
            _ => self,
        }
    }

    /// It ends because nothing starts in time.
    pub(super) const fn by_start_deadline(self, deadline: &'static str) -> Self {
        Self { start_deadline: Some(deadline), ..self }
    }

    /// Returns where what was seen is not as expected.
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
