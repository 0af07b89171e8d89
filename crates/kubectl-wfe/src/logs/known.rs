//! What the status of an execution knows if there is no log.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use kube::api::DynamicObject;
use serde_json::Value;
use wfe_core::Time;

use super::Run;
use crate::cli::ViewArgs;
use crate::connection::Connection;
use crate::execution::{End, full_name, how_far, target};
use crate::installation::Installation;
use crate::moment::{beside, span};
use crate::output::line;

/// Until when the run of an execution was to be kept.
pub(super) struct Kept {
    pub(super) until: Time,
    retention: Duration,
}

impl Kept {
    /// Reads the retention in force. None if the execution has not ended.
    pub(super) async fn read(connection: &Connection, args: &ViewArgs, object: &DynamicObject) -> Result<Option<Self>> {
        let Some(ended) = time(object, "/status/completionTime") else { return Ok(None) };
        let retention = Installation::read(connection, args).await?.policy.retention;
        Ok(Some(Self { until: ended + retention, retention }))
    }
}

/// Describes why an execution has no run.
pub(super) fn without_run(object: &DynamicObject, now: Time) -> String {
    let said = End::of(object).map_or_else(|| how_far(object, now), |end| end.told());
    format!("{} has no run, and so no log: {}\n", line(&full_name(object)), line(&said))
}

/// Describes what the status knows of a run whose pods are gone, or not there yet.
pub(super) fn without_pods(object: &DynamicObject, run: &Run, kept: Option<&Kept>, now: Time) -> String {
    let (name, run) = (full_name(object), format!("{}/{}", run.namespace, run.name));
    let (name, run) = (line(&name), line(&run));
    let Some(end) = End::of(object) else {
        return format!("{name}: the run {run} has no pod: {}\n", line(&how_far(object, now)));
    };
    let mut text = format!("{name} on {}: the pods of its run {run} are gone\n\n", line(target(object)));
    let details = &object.data["status"]["failureDetails"];
    let place = match (details["failedTaskName"].as_str(), details["failedStepName"].as_str()) {
        (None | Some(""), _) => None,
        (Some(task), None) => Some(format!("task {task}")),
        (Some(task), Some(step)) => Some(format!("task {task}, step {step}")),
    };
    let logs = kept.map(|Kept { until, retention }| {
        let by = format!("pipelinerun-retention is {}", span(*retention));
        let until_told = beside(*until, now);
        if *until > now {
            format!("were to be kept until {until_told}; {by}, so another program has deleted them")
        } else {
            format!("were kept until {until_told}; {by}")
        }
    });
    let facts = [
        ("ended", time(object, "/status/completionTime").map(|at| beside(at, now))),
        ("where", place),
        ("exit code", details["exitCode"].as_i64().map(|code| code.to_string())),
        ("became", Some(end.told())),
        ("logs", logs),
    ];
    for (label, said) in facts.into_iter().filter_map(|(label, said)| Some((label, said?))) {
        let _ = writeln!(text, "  {label:<12} {}", line(&said));
    }
    text
}

fn time(object: &DynamicObject, pointer: &str) -> Option<Time> {
    object.data.pointer(pointer).and_then(Value::as_str)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::execution::tests::execution;

    #[test]
    fn what_is_known_without_a_log_is_told() {
        let now: Time = "2026-01-02T04:00:00Z".parse().unwrap();
        let run = Run { attempt: 1, namespace: "exec".to_owned(), name: "r-1".to_owned() };
        let failed = execution(&json!({
            "phase": "Failed", "target": "node/n", "completionTime": "2026-01-02T03:00:00Z", "duration": "3s",
            "failureDetails": {
                "failedTaskName": "restart", "failedStepName": "drain", "reason": "Unknown", "exitCode": 1,
                "message": "exited with code 1", "wasExecutionFailure": true,
            },
        }));
        let kept = |hours| {
            let (until, retention) = ("2026-01-02T03:00:00Z".parse::<Time>().unwrap(), Duration::from_hours(hours));
            Kept { until: until + retention, retention }
        };
        let told = |logs: &str| {
            format!(
                "ns/a on node/n: the pods of its run exec/r-1 are gone\n\n  ended        2026-01-02T03:00:00Z (1h ago)\n  \
                 where        task restart, step drain\n  exit code    1\n  \
                 became       Failed half way after 3s: Unknown: exited with code 1\n{logs}"
            )
        };
        let early = "  logs         were to be kept until 2026-01-03T03:00:00Z (in 23h); pipelinerun-retention is 24h, so \
                     another program has deleted them\n";
        assert_eq!(without_pods(&failed, &run, Some(&kept(24)), now), told(early));
        let late = "  logs         were kept until 2026-01-02T03:00:00Z (1h ago); pipelinerun-retention is 0s\n";
        assert_eq!(without_pods(&failed, &run, Some(&kept(0)), now), told(late));
        assert_eq!(without_pods(&failed, &run, None, now), told(""));
        let running = execution(&json!({"phase": "Running"}));
        assert_eq!(without_pods(&running, &run, None, now), "ns/a: the run exec/r-1 has no pod: Running\n");
        let skipped =
            execution(&json!({"phase": "Skipped", "skipDetails": {"reason": "ResourceBusy", "message": "m"}}));
        assert_eq!(without_run(&skipped, now), "ns/a has no run, and so no log: Skipped: ResourceBusy: m\n");
    }
}
