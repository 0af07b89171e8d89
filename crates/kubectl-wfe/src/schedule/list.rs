//! `kubectl wfe schedule list`: the schedules of one or all namespaces, one per line.

use std::ops::RangeFrom;

use anyhow::{Result, anyhow};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use wfe_api::workflow_schedule::conditions::{HELD, WOULD_BE_HELD};
use wfe_core::Time;
use wfe_view::index::Kind;
use wfe_view::partial::PartialObject;
use wfe_view::source::objects;

use super::{held, said};
use crate::cli::{ClusterArgs, ListFormat, ScheduleListArgs};
use crate::connection::Connection;
use crate::moment::since;
use crate::object::condition;
use crate::output::output;
use crate::table::{names, table as render};
use crate::view;

/// The columns of `-o wide` and the keys for programs: heading and path.
const COLUMNS: [(&str, &str); 12] = [
    ("NAMESPACE", "/metadata/namespace"),
    ("NAME", "/metadata/name"),
    ("EVERY", "/spec/interval"),
    ("CRON", "/spec/cron"),
    ("FAILURES", "/status/failureCount"),
    ("LAST", "/status/lastRun/outcome"),
    ("NEXT", "/status/nextRunTime"),
    ("WHY", "/status/nextRunReason"),
    ("HELD", ""),
    ("TRIAGE", "/status/triage/state"),
    ("TARGET", "/spec/template/spec/targetResource"),
    ("WORKFLOW", "/spec/template/spec/workflowRef/workflowId"),
];
/// The columns that fit a terminal.
const NARROW: [&str; 6] = ["NAMESPACE", "NAME", "EVERY", "LAST", "NEXT", "THEN"];
/// The kind of the answer for programs.
const KIND: &str = "ScheduleList";

/// Lists them. Always yes.
pub(super) async fn run(cluster: &ClusterArgs, args: &ScheduleListArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let within_namespace = (!args.all_namespaces).then_some(&*connection.namespace);
    let found = all(&objects(&connection.client, Kind::Schedule, within_namespace)).await?;
    // As in kubectl, only `--all-namespaces` shows the column of the namespace.
    let columns = usize::from(!args.all_namespaces)..;
    let mut out = output();
    let items = || json!({"items": found.iter().map(row).collect::<Vec<_>>()});
    match args.output {
        Some(ListFormat::Json) => out.json(KIND, &items())?,
        Some(ListFormat::Yaml) => out.yaml(KIND, &items())?,
        Some(ListFormat::Name) => {
            let found = found.iter().filter_map(|it| it.metadata.name.as_deref());
            write!(out, "{}", names("workflowschedule", found))?;
        }
        None | Some(ListFormat::Wide) if found.is_empty() => {
            let place = within_namespace.map(|it| format!(" in {it}")).unwrap_or_default();
            writeln!(out, "There is no WorkflowSchedule{place}.")?;
        }
        None => write!(out, "{}", narrow(&found, columns, connection.now()))?,
        Some(ListFormat::Wide) => write!(out, "{}", wide(&found, columns))?,
    }
    Ok(true)
}

async fn all(schedules: &Api<PartialObject>) -> Result<Vec<DynamicObject>> {
    let listed = view::list(schedules, ListParams::default(), |_| true).await;
    listed.map_err(|error| anyhow!("cannot list workflowschedules: {}", said(&error)))
}

/// Returns the cells of a schedule by column name in lower case.
fn row(schedule: &DynamicObject) -> serde_json::Map<String, Value> {
    let whole =
        json!({"metadata": schedule.metadata, "spec": schedule.data["spec"], "status": schedule.data["status"]});
    let cell = |(name, path): &(&str, &str)| {
        let value = match *name {
            "HELD" => json!(held(schedule).map(str::to_owned).or_else(|| would_be_held(schedule))),
            _ => whole.pointer(path).cloned().unwrap_or_default(),
        };
        (name.to_ascii_lowercase(), value)
    };
    let mut row: serde_json::Map<String, Value> = COLUMNS.iter().map(cell).collect();
    if let Some(zone) = whole.pointer("/spec/timeZone") {
        row.insert("zone".to_owned(), zone.clone());
    }
    row
}

/// Returns what would hold the next run of a schedule, if its status has that.
fn would_be_held(schedule: &DynamicObject) -> Option<String> {
    let held = condition(schedule, HELD).filter(|held| held["reason"] == WOULD_BE_HELD)?;
    let (reason, _) = held["message"].as_str()?.split_once(':')?;
    Some(format!("would be: {reason}"))
}

/// Renders the columns that fit a terminal: how often it runs, how the last run ended, and what the next slot does.
fn narrow(schedules: &[DynamicObject], columns: RangeFrom<usize>, now: Time) -> String {
    let rows = schedules.iter().map(|schedule| {
        let row = row(schedule);
        let cell = |name| shown(&row, name);
        let last = match (cell("last"), cell("failures")) {
            (last, failures) if last == "Failed" && failures != "0" => format!("Failed x{failures}"),
            (last, _) => last,
        };
        let next = cell("next").parse::<Time>().ok().filter(|next| *next > now);
        let next = next.map(|next| format!("in {}", since(now, next))).unwrap_or_default();
        let then = match (cell("held"), &*next) {
            (held, "") => held,
            (held, _) if held.is_empty() => "runs".to_owned(),
            (held, _) => held,
        };
        let cells = [cell("namespace"), cell("name"), cell("every") + &cell("cron"), last, next, then];
        cells.into_iter().skip(columns.start).collect::<Vec<_>>()
    });
    render(NARROW.into_iter().skip(columns.start), rows)
}

/// Renders all columns.
fn wide(schedules: &[DynamicObject], columns: RangeFrom<usize>) -> String {
    let headings = || COLUMNS[columns.clone()].iter().map(|(name, _)| *name);
    let rows = schedules.iter().map(|schedule| {
        let row = row(schedule);
        headings().map(|name| shown(&row, &name.to_ascii_lowercase())).collect::<Vec<_>>()
    });
    render(headings(), rows)
}

/// Shows a cell; a cron plan with its time zone.
fn shown(row: &serde_json::Map<String, Value>, name: &str) -> String {
    let cell = match row.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match row.get("zone").and_then(Value::as_str).filter(|_| name == "cron") {
        Some(zone) => format!("{cell} {zone}"),
        None => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_a_line() {
        let schedules: Vec<DynamicObject> = serde_json::from_value(json!([
            {
                "metadata": {"namespace": "ops", "name": "nightly"},
                "spec": {
                    "cron": "0 2 * * *", "timeZone": "Europe/Berlin",
                    "template": {"spec": {"targetResource": "node/n", "workflowRef": {"workflowId": "drain"}}},
                },
                "status": {
                    "failureCount": 2, "lastRun": {"outcome": "Failed"},
                    "conditions": [{"type": "Held", "status": "True", "reason": "Suspended"}],
                    "triage": {"of": "nightly-1767312000", "state": "Filed", "verdict": "FileFix"},
                },
            },
            {
                "metadata": {"namespace": "ops", "name": "b"},
                "spec": {"interval": "5m"},
                "status": {
                    "nextRunTime": "2026-01-02T03:04:05Z", "nextRunReason": "Interval\u{1b}[2J",
                    "conditions": [
                        {"type": "Held", "status": "False", "reason": "WouldBeHeld", "message": "ExhaustedRetries: x: y"},
                    ],
                },
            },
        ]))
        .unwrap();
        let now = "2026-01-02T02:30:00Z".parse().unwrap();
        assert_eq!(
            narrow(&schedules, 0.., now),
            "NAMESPACE  NAME     EVERY                    LAST       NEXT    THEN\n\
             ops        nightly  0 2 * * * Europe/Berlin  Failed x2          Suspended\n\
             ops        b        5m                                  in 34m  would be: ExhaustedRetries\n"
        );
        assert_eq!(
            wide(&schedules[1..], 1..),
            "NAME  EVERY  CRON  FAILURES  LAST  NEXT                  WHY                HELD                        \
             TRIAGE  TARGET  WORKFLOW\n\
             b     5m                           2026-01-02T03:04:05Z  Interval\\u{1b}[2J  would be: ExhaustedRetries\n"
        );
    }
}
