//! No endless wait without a sign (section 16.16). An execution whose run outlasts its limits must say what it waits
//! for, and the operator must repeat a cancel that Tekton does not answer.
//!
//! The recording does not show what hinders an operator, so this module only reports what lasted too long. A caller
//! that knows the faults decides whether one of them is an excuse.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::Value;
use wfe_api::labels;
use wfe_core::{Time, duration};

/// How long after its time-out a status may still say only that the workflow runs. The operator cancels the run after a
/// minute, Tekton has a minute to answer, and a failed step is retried after half a minute.
pub const TOLD_WITHIN: TimeDelta = TimeDelta::minutes(8);
/// How long after a request to cancel the next request is due, with a reserve.
const REPEATED_WITHIN: TimeDelta = TimeDelta::minutes(12);
/// The time-out of a run that sets none.
const TIMEOUT: TimeDelta = TimeDelta::minutes(30);

/// A version of an object, from a time on.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// When the version begins.
    pub at: Time,
    /// Such as `PipelineRun`.
    pub kind: &'a str,
    /// The uid of the object.
    pub uid: &'a str,
    /// The object; `None` if it was deleted at this time.
    pub object: Option<&'a Value>,
}

/// A state that lasted longer than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasted {
    /// The state and its object, as text.
    pub what: String,
    /// When the state began.
    pub since: Time,
    /// When the state should have ended at the latest.
    pub late: Time,
    /// When the state ended.
    pub until: Time,
}

impl std::fmt::Display for Lasted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} for {} minutes, and nothing else", self.what, (self.until - self.since).num_minutes())
    }
}

/// Returns the states of executions and runs that lasted too long, up to an end, in order of time. The versions must be
/// in order.
#[must_use]
pub fn lasted<'a>(versions: impl IntoIterator<Item = Version<'a>>, end: Time) -> Vec<Lasted> {
    let mut lasting: BTreeMap<&str, Lasted> = BTreeMap::new();
    let mut found = Vec::new();
    let mut ends = |lasted: Lasted, until: Time| {
        if until > lasted.late {
            found.push(Lasted { until, ..lasted });
        }
    };
    for Version { at, kind, uid, object } in versions {
        let is = object.and_then(|object| match kind {
            "WorkflowExecution" => only_runs(object),
            "PipelineRun" => only_cancelled(object),
            _ => None,
        });
        let was = lasting.remove(uid);
        match (was, is) {
            (Some(was), Some((what, _))) if was.what == what => drop(lasting.insert(uid, was)),
            (was, is) => {
                if let Some(was) = was {
                    ends(was, at);
                }
                if let Some((what, may)) = is {
                    lasting.insert(uid, Lasted { what, since: at, late: at + may, until: at });
                }
            }
        }
    }
    for lasted in lasting.into_values() {
        ends(lasted, end);
    }
    found
}

/// Describes an execution whose status says only that its workflow runs. Also returns how long this may last.
fn only_runs(execution: &Value) -> Option<(String, TimeDelta)> {
    let status = &execution["status"];
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    let says = |kind: &str, status: &str| conditions().find(|it| it["type"] == kind && it["status"] == status);
    let names_a_wait = says("Waiting", "True").is_some() || says("Retrying", "True").is_some();
    let is_plain = says("Succeeded", "Unknown").is_none_or(|it| it["reason"] == "Running");
    if status["phase"] != "Running" || names_a_wait || !is_plain {
        return None;
    }
    let timeout = execution["spec"]["executionConfig"]["timeout"].as_str().and_then(|text| duration::parse(text).ok());
    let timeout = timeout.and_then(|timeout| TimeDelta::from_std(timeout).ok()).unwrap_or(TIMEOUT);
    let (name, run) = (&execution["metadata"]["name"], &status["pipelineRunRef"]["name"]);
    Some((format!("execution {name} said of {run} that it runs"), timeout + TOLD_WITHIN))
}

/// Describes an unfinished run that the operator has asked Tekton to cancel, and that is not being deleted. Also
/// returns how long this may last.
fn only_cancelled(run: &Value) -> Option<(String, TimeDelta)> {
    let meta = &run["metadata"];
    let text = |key: &str| meta["annotations"][key].as_str().unwrap_or_default();
    let is_ours = !text(labels::ANNOTATION_CANCEL_REASON).is_empty();
    let mut conditions = run["status"]["conditions"].as_array().into_iter().flatten();
    let is_done = conditions.any(|it| it["type"] == "Succeeded" && it["status"] != "Unknown");
    if !is_ours || is_done || !meta["deletionTimestamp"].is_null() {
        return None;
    }
    let (at, asked) = (text(labels::ANNOTATION_CANCELLED_AT), text(labels::ANNOTATION_CANCEL_ASKED));
    Some((format!("run {} was asked to end at {at} ({asked})", meta["name"]), REPEATED_WITHIN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn minutes(minutes: i64) -> Time {
        Time::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    /// Returns what lasted too long for an object up to minute 100. Each state begins at a minute.
    fn found(kind: &str, versions: &[(i64, Value)]) -> Vec<String> {
        let version = |(at, object): &'_ (i64, Value)| (minutes(*at), object.clone());
        let versions: Vec<_> = versions.iter().map(version).collect();
        let versions = versions.iter().map(|(at, object)| Version { at: *at, kind, uid: "u", object: Some(object) });
        lasted(versions, minutes(100)).iter().map(ToString::to_string).collect()
    }

    fn running(reason: &str) -> Value {
        let condition = json!({"type": "Succeeded", "status": "Unknown", "reason": reason});
        let status = json!({"phase": "Running", "pipelineRunRef": {"name": "r"}, "conditions": [condition]});
        json!({"metadata": {"name": "a"}, "spec": {"executionConfig": {"timeout": "10m"}}, "status": status})
    }

    #[test]
    fn an_execution_may_say_that_it_runs_until_eight_minutes_after_its_time_out() {
        let ended = || json!({"metadata": {"name": "a"}, "status": {"phase": "Failed"}});
        let broken = ["execution \"a\" said of \"r\" that it runs for 19 minutes, and nothing else"];
        assert_eq!(found("WorkflowExecution", &[(0, running("Running")), (19, ended())]), broken);
        assert_eq!(
            found("WorkflowExecution", &[(0, running("Running")), (5, running("Running")), (19, ended())]),
            broken
        );
        let none: [&str; 0] = [];
        assert_eq!(found("WorkflowExecution", &[(0, running("Running")), (18, ended())]), none);
        assert_eq!(found("WorkflowExecution", &[(0, running("Running")), (12, running("Cancelling"))]), none);
        assert_eq!(found("WorkflowExecution", &[(0, running("Running"))]).len(), 1, "it lasts until the end");
    }

    #[test]
    fn a_cancel_is_to_be_repeated_within_twelve_minutes() {
        let cancelled = |asked: &str, more: &Value| {
            let annotations =
                json!({"kubernaut.ai/cancel-reason": "DeadlineExceeded", "kubernaut.ai/cancel-asked": asked});
            let mut run = json!({"metadata": {"name": "r", "annotations": annotations}});
            run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            run
        };
        let done = json!({"status": {"conditions": [{"type": "Succeeded", "status": "False"}]}});
        let none: [&str; 0] = [];
        let again: Vec<_> = (0..10).map(|n| (n * 10, cancelled(&n.to_string(), &json!({})))).collect();
        assert_eq!(found("PipelineRun", &again), none);
        assert_eq!(found("PipelineRun", &again[..8]).len(), 1, "nobody asked after the seventieth minute");
        assert_eq!(found("PipelineRun", &[(0, cancelled("", &json!({}))), (11, cancelled("", &done))]), none);
    }
}
