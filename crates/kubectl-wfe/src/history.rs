//! `kubectl wfe history`: what happened on a target, the oldest first: executions, and what people did.

use anyhow::Result;
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::json;
use wfe_core::Time;

use crate::cli::{ClusterArgs, Format, HistoryArgs};
use crate::moment::shown;
use crate::object::text;
use crate::output::output;
use crate::progress::place_of_failure;
use crate::table::table;
use crate::view::Lookout;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) at: String,
    pub(crate) what: String,
    /// The execution or the user.
    pub(crate) who: String,
    pub(crate) detail: String,
    /// How many equal skips in a row this event stands for.
    pub(crate) count: usize,
    #[serde(skip)]
    pub(crate) time: Time,
}

/// Runs the command. Always yes.
pub(crate) async fn run(cluster: &ClusterArgs, args: HistoryArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let seen = lookout.look_at(Some(&args.target), None).await?;
    let is_on = |object: &&DynamicObject| {
        seen.known(object).is_some_and(|(target, _)| target.name.as_ref() == Some(&args.target))
    };
    let events = folded(seen.objects().filter(is_on).flat_map(events).collect());
    if args.output == Some(Format::Json) {
        output().json("History", &json!({"target": args.target.as_str(), "events": events}))?;
    } else if events.is_empty() {
        writeln!(output(), "Nothing that happened on {} is on record; check the spelling.", args.target.as_str())?;
    } else {
        let rows = events.iter().map(|event| {
            let times = if event.count > 1 { format!(" x{}", event.count) } else { String::new() };
            [event.at.clone(), format!("{}{times}", event.what), event.who.clone(), event.detail.clone()]
        });
        write!(output(), "{}", table(["WHEN", "WHAT", "EXECUTION OR USER", "DETAIL"], rows))?;
    }
    Ok(true)
}

/// Returns what an execution and people did, by its status.
pub(crate) fn events(object: &DynamicObject) -> Vec<Event> {
    let meta = &object.metadata;
    let name =
        format!("{}/{}", meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    let event = |pointer: &str, what: &str, who: &str, detail: String| {
        let time: Time = text(object, pointer)?.parse().ok()?;
        let (what, who) = (what.to_owned(), who.to_owned());
        Some(Event { at: shown(time), what, who, detail, count: 1, time })
    };
    let workflow = text(object, "/spec/workflowRef/workflowId").unwrap_or_default();
    let version = text(object, "/spec/workflowRef/version").unwrap_or_default();
    let of = format!("{workflow} {version}");
    let end = match text(object, "/status/phase") {
        Some("Completed") => {
            let took = text(object, "/status/duration").map(|took| format!(", after {took}")).unwrap_or_default();
            event("/status/completionTime", "Completed", &name, format!("{of}{took}"))
        }
        Some("Failed") => {
            let reason = text(object, "/status/failureDetails/reason").unwrap_or_default().to_owned();
            let ran = object.data.pointer("/status/failureDetails/wasExecutionFailure");
            let ran = if ran == Some(&json!(false)) { ", nothing ran" } else { ", half way" };
            let why = place_of_failure(object).unwrap_or(reason);
            event("/status/completionTime", "Failed", &name, format!("{of}, {why}{ran}"))
        }
        Some("Skipped") => {
            let reason = text(object, "/status/skipDetails/reason").unwrap_or_default();
            event("/status/completionTime", "Skipped", &name, reason.to_owned())
        }
        _ => event("/status/startTime", "Running", &name, of),
    };
    let by = text(object, "/status/clearance/clearedBy").unwrap_or_default();
    let reason = text(object, "/status/clearance/reason").unwrap_or_default();
    let cleared = event("/status/clearance/clearedAt", "cleared", by, format!("{name}: {reason}"));
    end.into_iter().chain(cleared).collect()
}

/// Orders events by time, and folds skips in a row for the same reason into one.
pub(crate) fn folded(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by(|a, b| (a.time, &a.who).cmp(&(b.time, &b.who)));
    let mut folded: Vec<Event> = Vec::new();
    for event in events {
        match folded.last_mut() {
            Some(last) if event.what == "Skipped" && (&last.what, &last.detail) == (&event.what, &event.detail) => {
                last.count += 1;
            }
            _ => folded.push(event),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_in_a_row_are_one_line_and_what_people_did_is_there() {
        let object = |name: &str, status: serde_json::Value| -> DynamicObject {
            let spec = json!({"workflowRef": {"workflowId": "clean", "version": "1"}});
            serde_json::from_value(
                json!({"metadata": {"namespace": "a", "name": name}, "spec": spec, "status": status}),
            )
            .unwrap()
        };
        let skipped = |name: &str, second: u32| {
            let at = format!("2026-01-02T03:00:{second:02}Z");
            object(name, json!({"phase": "Skipped", "completionTime": at, "skipDetails": {"reason": "ResourceBusy"}}))
        };
        let failed = object(
            "broken",
            json!({
                "phase": "Failed", "completionTime": "2026-01-02T03:00:20Z",
                "failureDetails": {"failedTaskName": "restart", "exitCode": 1, "wasExecutionFailure": true},
                "clearance": {"clearedBy": "jo", "clearedAt": "2026-01-02T03:01:00Z", "reason": "looked"},
            }),
        );
        let all = [failed, skipped("y", 2), skipped("x", 1), skipped("z", 30)];
        let told = folded(all.iter().flat_map(events).collect());
        let told: Vec<String> =
            told.iter().map(|it| format!("{} x{} {}: {}", it.what, it.count, it.who, it.detail)).collect();
        assert_eq!(
            told,
            [
                "Skipped x2 a/x: ResourceBusy",
                "Failed x1 a/broken: clean 1, task restart: exit code 1, half way",
                "Skipped x1 a/z: ResourceBusy",
                "cleared x1 jo: a/broken: looked",
            ]
        );
    }
}
