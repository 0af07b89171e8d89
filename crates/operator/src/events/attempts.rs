//! The events about attempts of an execution with a retry policy. One write can have several of these events, and their
//! times show the order.

use std::time::Duration;

use wfe_core::Time;
use wfe_core::ending::Tried;
use wfe_core::name::{ExecutionId, RunId};
use wfe_core::reason::FailureReason;

use super::NewEvent;
use crate::status::delay_text;

/// An attempt that has failed.
#[derive(Clone, Debug)]
pub struct FailedAttempt {
    /// The number of the attempt.
    pub attempt: u32,
    /// The largest possible number of attempts.
    pub of: u32,
    /// The run of the attempt; `None` if its creation was refused.
    pub run: Option<RunId>,
    /// The reason of the failure.
    pub reason: FailureReason,
    /// What happened, for people.
    pub error: Box<str>,
}

impl NewEvent {
    /// One attempt of the execution failed.
    #[must_use]
    pub fn attempt_failed(execution: &ExecutionId, failed: &FailedAttempt) -> Self {
        let FailedAttempt { attempt, of, run, reason, error } = failed;
        let note = format!("attempt {attempt} of {of} failed, {reason}: {error}");
        let event = Self::normal(execution, "AttemptFailed", "Retry", note);
        Self { run: run.clone(), warning: true, ..event }.of_attempt(*attempt, 0)
    }

    /// The failed attempt is followed by another.
    #[must_use]
    pub fn step_retry(execution: &ExecutionId, failed: &FailedAttempt, delay: Duration, not_before: Time) -> Self {
        let FailedAttempt { attempt, of, reason, error, .. } = failed;
        let note = format!(
            "attempt {attempt} of {of} is followed by another after {}, at {}; it failed, {reason}: {error}",
            delay_text(delay),
            not_before.format("%Y-%m-%dT%H:%M:%SZ")
        );
        Self::normal(execution, "StepRetry", "Retry", note).of_attempt(*attempt, 1)
    }

    /// The failure would allow another attempt, but the attempts are used up.
    #[must_use]
    pub fn step_retry_exhausted(execution: &ExecutionId, tried: &Tried) -> Self {
        let Tried { attempt, of, .. } = tried;
        let note = format!("attempt {attempt} of {of} failed, and it was the last");
        let event = Self::normal(execution, "StepRetryExhausted", "Retry", note);
        Self { warning: true, ..event }.of_attempt(*attempt, 1)
    }

    /// The failed attempt is not followed by another.
    #[must_use]
    pub fn step_failed_terminal(execution: &ExecutionId, tried: &Tried) -> Self {
        let Tried { attempt, of, stop, .. } = tried;
        let note = format!("not tried again on attempt {attempt} of {of}, {}: {}", stop.reason(), stop.message());
        let event = Self::normal(execution, "StepFailedTerminal", "Retry", note);
        Self { warning: true, ..event }.of_attempt(*attempt, 2)
    }

    /// Sets the attempt, and the position among the events of one write.
    fn of_attempt(self, attempt: u32, place: u8) -> Self {
        Self { attempt: Some(attempt), place, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::tests::rendered;
    use wfe_core::ending::{Charge, Failure};
    use wfe_core::evidence::{Absence, Started};
    use wfe_core::fingerprint::Stage;
    use wfe_core::name::Uid;
    use wfe_core::retry::Stop;

    fn execution() -> ExecutionId {
        ExecutionId { namespace: "ops".into(), name: "fix".into(), uid: Uid::new("u-1") }
    }

    fn failed(attempt: u32) -> FailedAttempt {
        let run = RunId { name: format!("wfe-x-{attempt}").into(), uid: Uid::new("r") };
        let (reason, error) = (FailureReason::Unknown, "503".into());
        FailedAttempt { attempt, of: 3, run: Some(run), reason, error }
    }

    fn failure(tried: &Tried) -> Failure {
        Failure {
            reason: FailureReason::Unknown,
            message: "503".into(),
            started: Started::NotStarted(Absence::NoRun),
            task: None,
            tasks: None,
            failed_at: Time::UNIX_EPOCH,
            ran_for: Duration::ZERO,
            number: None,
            outcome: None,
            cancelled: false,
            stage: Stage::Creating,
            fingerprint: None,
            shared_outage: false,
            charge: Charge::default(),
            tried: Some(Box::new(tried.clone())),
        }
    }

    #[test]
    fn each_attempt_has_events_of_its_own() {
        let run = |attempt| failed(attempt).run.unwrap();
        let created = |attempt| NewEvent::pipeline_run_created(&execution(), &run(attempt), Some((attempt, 3)));
        let at = Time::UNIX_EPOCH;
        let tried = Tried { attempt: 3, of: 3, end: None, stop: Stop::Exhausted };
        for (announcement, name, note) in [
            (created(1), "pipelineruncreated", "runs the workflow, attempt 1 of 3"),
            (created(2), "pipelineruncreated.2", "runs the workflow, attempt 2 of 3"),
            (
                NewEvent::attempt_failed(&execution(), &failed(2)),
                "attemptfailed.2",
                "attempt 2 of 3 failed, Unknown: 503",
            ),
            (
                NewEvent::step_retry(&execution(), &failed(2), Duration::from_millis(1500), at),
                "stepretry.2",
                "attempt 2 of 3 is followed by another after 1.5s, at 1970-01-01T00:00:00Z; it failed, Unknown: 503",
            ),
            (
                NewEvent::step_retry_exhausted(&execution(), &tried),
                "stepretryexhausted.3",
                "attempt 3 of 3 failed, and it was the last",
            ),
            (
                NewEvent::step_failed_terminal(&execution(), &tried),
                "stepfailedterminal.3",
                "not tried again on attempt 3 of 3, Exhausted: it was the last attempt",
            ),
        ] {
            let event = rendered(&announcement);
            assert_eq!(event.metadata.name.as_deref(), Some(&*format!("fix.u-1.{name}")));
            assert!(event.note.as_deref().unwrap().ends_with(note), "{name}: {:?}", event.note);
        }
    }

    #[test]
    fn the_events_of_one_write_are_in_order() {
        let tried = Tried { attempt: 3, of: 3, end: None, stop: Stop::Exhausted };
        let all = [
            NewEvent::attempt_failed(&execution(), &failed(3)),
            NewEvent::step_retry_exhausted(&execution(), &tried),
            NewEvent::step_failed_terminal(&execution(), &tried),
            NewEvent::failed(&execution(), &failure(&tried)),
        ];
        assert!(all.iter().map(|it| rendered(it).event_time.unwrap().0).is_sorted_by(|a, b| a < b));
        let (delay, at) = (Duration::from_secs(1), Time::UNIX_EPOCH);
        let retried = [
            NewEvent::attempt_failed(&execution(), &failed(1)),
            NewEvent::step_retry(&execution(), &failed(1), delay, at),
        ];
        assert!(retried.iter().map(|it| rendered(it).event_time.unwrap().0).is_sorted_by(|a, b| a < b));
        let event = rendered(&retried[0]);
        assert_eq!((event.type_.as_deref(), event.related.unwrap().uid.as_deref()), (Some("Warning"), Some("r")));
    }
}
