//! Reads the end of an execution from its status, to announce it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use wfe_api::SkipReason;
use wfe_api::conditions::SUCCEEDED;
use wfe_core::duration;
use wfe_core::execution::ExecutionState;
use wfe_tekton::Redaction;

use crate::index::{EndPhase, EndShown};

/// Reads the end of an execution; `None` if it has not ended, or if its status does not record when and how.
pub(super) fn end_shown(data: &Value, conditions: &[Condition], state: &ExecutionState) -> Option<EndShown> {
    let (phase, at) = match state {
        ExecutionState::Undecided { .. } | ExecutionState::Running { .. } => return None,
        ExecutionState::Completed { completed_at, .. } => (EndPhase::Completed, (*completed_at)?),
        ExecutionState::Failed(failed) => (EndPhase::Failed, failed.completed_at.or(failed.failed_at)?),
        ExecutionState::Skipped { completed_at } => {
            let text = |path| data.pointer(path).and_then(Value::as_str).unwrap_or_default();
            let said = text("/status/skipDetails/reason");
            let reason = SkipReason::ALL.into_iter().find(|known| known.as_str() == said)?;
            // After a success, the wait is a cooldown and not a backoff.
            let failed = text("/status/skipDetails/recentRemediation/outcome") != "Completed";
            let backs_off = reason == SkipReason::RecentlyRemediated && failed;
            (EndPhase::Skipped { reason, backs_off }, (*completed_at)?)
        }
    };
    let condition = conditions.iter().find(|condition| condition.type_ == SUCCEEDED)?;
    let ran_for = data.pointer("/status/duration").and_then(Value::as_str);
    Some(EndShown {
        at,
        phase,
        reason: condition.reason.as_str().into(),
        message: Redaction::of_execution(&data["spec"]).apply(&condition.message).into(),
        ran_for: ran_for.and_then(|text| duration::parse(text).ok()),
    })
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use serde_json::json;

    use super::*;
    use crate::observe::observe_execution;

    fn shown(status: &Value) -> Option<EndShown> {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"namespace": "ops", "name": "fix", "uid": "u"},
            "spec": {"targetResource": "node/n", "parameters": {"TOKEN": "hunter2-hunter2"}},
            "status": status,
        }))
        .unwrap();
        observe_execution(&object, "runs").unwrap().end.map(|end| *end)
    }

    /// Returns a status with this phase, and with a condition that shows how it ended.
    fn status(phase: &str, more: &Value) -> Value {
        let condition = json!({"type": "Succeeded", "status": "False", "reason": "Reason",
            "message": "no hunter2-hunter2", "lastTransitionTime": "2027-01-01T00:00:09Z"});
        let mut status = json!({"phase": phase, "completionTime": "2027-01-01T00:00:09Z", "conditions": [condition]});
        status.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        status
    }

    #[test]
    fn an_end_is_read_with_its_words_and_without_the_values_of_parameters() {
        let end = shown(&status("Completed", &json!({"duration": "1m3s"}))).unwrap();
        assert_eq!((end.phase, end.ran_for), (EndPhase::Completed, Some(std::time::Duration::from_secs(63))));
        let end = shown(&status("Failed", &json!({}))).unwrap();
        assert_eq!((end.phase, end.ran_for), (EndPhase::Failed, None));
        assert_eq!((&*end.reason, &*end.message), ("Reason", "no <TOKEN>"));
        for (outcome, backs_off) in [("Failed", true), ("Completed", false)] {
            let details = json!({"reason": "RecentlyRemediated", "recentRemediation": {"outcome": outcome}});
            let reason = SkipReason::RecentlyRemediated;
            let end = shown(&status("Skipped", &json!({"skipDetails": details}))).unwrap();
            assert_eq!(end.phase, EndPhase::Skipped { reason, backs_off });
        }
    }

    #[test]
    fn there_is_no_end_where_a_status_does_not_say_when_and_how() {
        for status in [
            status("Running", &json!({})),
            status("", &json!({})),
            status("Completed", &json!({"completionTime": null})),
            status("Failed", &json!({"conditions": []})),
            status("Skipped", &json!({"skipDetails": {"reason": "Odd"}})),
            status("Odd", &json!({})),
            json!(null),
        ] {
            assert_eq!(shown(&status), None, "{status}");
        }
    }
}
