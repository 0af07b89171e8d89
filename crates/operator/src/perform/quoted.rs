//! Removes parameter values from the text of a refusal. An admission policy or a webhook may quote any part of the
//! object, and errors reach the log and the statuses of other executions on the target.

use wfe_core::action::{Ending, Says};
use wfe_core::name::{ExecutionId, RunId, ScheduleId};
use wfe_tekton::Redaction;
use wfe_view::call::CallError;

use super::Performer;
use super::objects::is;
use crate::status;

/// The parameters that a refusal may quote.
pub(super) enum Quoted<'a> {
    /// The parameters that this redaction already knows.
    Known(&'a Redaction),
    /// The parameters of an execution.
    Execution(&'a ExecutionId),
    /// The parameters of a run.
    Run(&'a RunId),
    /// The parameters of a schedule's template.
    Schedule(&'a ScheduleId),
}

impl Performer {
    /// Removes the values of parameters from a refusal. If the values are unknown, the object is read to learn them. If
    /// that fails, the text is not shown at all.
    pub(super) async fn unquoted(&self, error: CallError, quoted: Quoted<'_>) -> CallError {
        // If a permission or a kind is missing, the text is the API server's own. The text of a 404 or 409 is never
        // shown.
        if error.lacks_right() || error.is_kind_missing() || matches!(error.code(), 404 | 409) {
            return error;
        }
        let CallError::Refused(mut status) = error else { return error };
        let redaction = match quoted {
            Quoted::Known(redaction) => Some(redaction.clone()),
            // The object was not judged, and a busy API server must get no further request.
            _ if matches!(status.code, 429 | 502..=504) => None,
            quoted => self.redaction_of(quoted).await,
        };
        status.message = match redaction {
            Some(redaction) => redaction.apply(&status.message),
            None => {
                format!("{} {} (in words that may quote parameters, and are not shown)", status.code, status.reason)
            }
        };
        CallError::Refused(status)
    }

    async fn redaction_of(&self, quoted: Quoted<'_>) -> Option<Redaction> {
        let (found, uid) = match &quoted {
            Quoted::Known(redaction) => return Some((*redaction).clone()),
            Quoted::Execution(execution) => (self.read_execution(execution).await, &execution.uid),
            Quoted::Run(run) => (self.read_run(&run.name).await, &run.uid),
            Quoted::Schedule(schedule) => (self.read_schedule(schedule, None).await, &schedule.uid),
        };
        let found = found.ok()?.filter(|found| is(&found.metadata, uid))?;
        Some(match quoted {
            Quoted::Run(_) => Redaction::of_run(&found.data["spec"]),
            Quoted::Schedule(_) => Redaction::of_schedule(&found.data),
            Quoted::Known(_) | Quoted::Execution(_) => Redaction::of_execution(&found.data["spec"]),
        })
    }
}

/// Returns a write for its announcement, without the values of parameters. Only texts that other programs wrote are
/// redacted; the operator writes all other texts itself.
pub(super) fn without_values(says: &Says, redaction: &Redaction) -> Says {
    let mut says = says.clone();
    let redact = |said: &mut Box<str>| *said = redaction.apply(said).into();
    match &mut says {
        Says::Retry { end, .. } => redact(&mut end.message),
        Says::Ended { ending: Ending::Failed(failure), .. } => status::redact(failure, redaction),
        Says::Cleared { clearance, .. } => redact(&mut clearance.reason),
        Says::Ended { ending: Ending::Completed(_), .. }
        | Says::Running { .. }
        | Says::GaveUp { .. }
        | Says::HeldBack { .. }
        | Says::Progress { .. }
        | Says::Waiting { .. }
        | Says::Freed
        | Says::Blocked(_)
        | Says::Unguarded { .. } => {}
    }
    says
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use kube::core::Status;
    use serde_json::{Value, json};
    use wfe_core::name::Uid;

    use super::super::played::{Answer, performer};
    use super::*;

    const SAID: &str = "denied: parameters.TOKEN is s3cr3t";

    fn refused(code: u16, message: &str) -> CallError {
        let (message, reason) = (message.to_owned(), "Invalid".to_owned());
        CallError::Refused(Box::new(Status { code, message, reason, ..Status::default() }))
    }

    fn object(spec: &Value) -> Value {
        json!({"metadata": {"namespace": "ops", "name": "a", "uid": "u-1"}, "spec": spec})
    }

    /// Returns the text shown for a refused write, if the API server gives this answer to reads, and the number of
    /// requests.
    async fn shown(code: u16, quoted: Quoted<'_>, answer: Answer) -> (String, usize) {
        let (performer, asked) = performer(move |_| answer.clone());
        let error = performer.unquoted(refused(code, SAID), quoted).await;
        (error.to_string(), asked.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_of_any_write_quotes_no_value() {
        let parameters = json!({"TOKEN": "s3cr3t"});
        let (namespace, name, uid) = ("ops".into(), "a".into(), Uid::new("u-1"));
        let execution = ExecutionId { namespace, name, uid };
        let run = RunId { name: "wfe-x-1".into(), uid: Uid::new("u-1") };
        let schedule = ScheduleId { namespace: "ops".into(), name: "a".into(), uid: Uid::new("u-1") };
        let known = Redaction::of_execution(&json!({"parameters": parameters}));
        let of_execution = object(&json!({"parameters": parameters}));
        let of_run = object(&json!({"params": [{"name": "TOKEN", "value": "s3cr3t"}]}));
        let of_schedule = object(&json!({"template": {"spec": {"parameters": parameters}}}));
        let told = "denied: parameters.TOKEN is <TOKEN>";
        for code in [400, 403, 422, 500] {
            let nothing = || Answer::refused(503, "ServiceUnavailable");
            assert_eq!(shown(code, Quoted::Known(&known), nothing()).await, (told.to_owned(), 0));
            for (quoted, found) in [
                (Quoted::Execution(&execution), &of_execution),
                (Quoted::Run(&run), &of_run),
                (Quoted::Schedule(&schedule), &of_schedule),
            ] {
                assert_eq!(shown(code, quoted, Answer::found(found.clone())).await, (told.to_owned(), 1));
            }
        }
        let hidden = |code: u16| format!("{code} Invalid (in words that may quote parameters, and are not shown)");
        let another = json!({"metadata": {"namespace": "ops", "name": "a", "uid": "u-2"}, "spec": {}});
        for unknown in [Answer::found(another), Answer::refused(404, "NotFound"), Answer::refused(503, "Unavailable")] {
            assert_eq!(shown(403, Quoted::Execution(&execution), unknown).await, (hidden(403), 1));
        }
        // A busy API server gets no further request.
        assert_eq!(shown(429, Quoted::Run(&run), Answer::found(of_run)).await, (hidden(429), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_refusal_means_does_not_depend_on_parameters() {
        let redaction = Redaction::new(Arc::new([("A".into(), "pipelineruns".into())]), None);
        let lacking: Status = serde_json::from_value(json!({
            "code": 403, "reason": "Forbidden", "details": {"group": "tekton.dev", "kind": "pipelineruns"},
            "message": "pipelineruns.tekton.dev is forbidden: User \"u\" cannot create resource \"pipelineruns\" in API \
                        group \"tekton.dev\" in the namespace \"runs\"",
        }))
        .unwrap();
        let (performer, _) = performer(|_| Answer::Never);
        let error = performer.unquoted(CallError::Refused(Box::new(lacking)), Quoted::Known(&redaction)).await;
        assert!(error.lacks_right() && error.to_string().contains("\"pipelineruns\""), "{error}");
    }
}
