//! `kubectl wfe schedule list`: the schedules of one or all namespaces, one per line.

use anyhow::{Result, bail};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use wfe_api::workflow_schedule::conditions::{HELD, WOULD_BE_HELD};
use wfe_view::call::within;
use wfe_view::index::Kind;
use wfe_view::source::{PAGE, objects};

use super::{held, said};
use crate::cli::{ClusterArgs, ListFormat, ScheduleListArgs};
use crate::connection::{ANSWERS_WITHIN, Connection};
use crate::object::condition;
use crate::output::output;
use crate::table::{names, table as render};

/// The columns: heading and path. Only `-o wide` shows the last two.
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
const NARROW: usize = 10;
/// The kind of the answer for programs.
const KIND: &str = "ScheduleList";

/// Lists them. Always yes.
pub(super) async fn run(cluster: &ClusterArgs, args: &ScheduleListArgs) -> Result<bool> {
    let Connection { client, namespace, .. } = Connection::open(cluster).await?;
    let within_namespace = (!args.all_namespaces).then_some(&*namespace);
    let found = all(&objects(&client, Kind::Schedule, within_namespace)).await?;
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
        None => write!(out, "{}", table::<NARROW>(&found))?,
        Some(ListFormat::Wide) => write!(out, "{}", table::<{ COLUMNS.len() }>(&found))?,
    }
    Ok(true)
}

async fn all(schedules: &Api<DynamicObject>) -> Result<Vec<DynamicObject>> {
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = match within(ANSWERS_WITHIN, schedules.list(&params)).await {
            Ok(page) => page,
            Err(error) => bail!("cannot list workflowschedules: {}", said(&error)),
        };
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
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

/// Returns what would hold the next run of a schedule, if its status tells.
fn would_be_held(schedule: &DynamicObject) -> Option<String> {
    let held = condition(schedule, HELD).filter(|held| held["reason"] == WOULD_BE_HELD)?;
    let (reason, _) = held["message"].as_str()?.split_once(':')?;
    Some(format!("would be: {reason}"))
}

/// Renders the first columns.
fn table<const N: usize>(schedules: &[DynamicObject]) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let heading = |place: usize| COLUMNS.get(place).map_or("", |(name, _)| *name);
    let rows = schedules.iter().map(|schedule| {
        let row = row(schedule);
        std::array::from_fn(|place| {
            let name = heading(place);
            let cell = row.get(&name.to_ascii_lowercase()).map(text).unwrap_or_default();
            match row.get("zone").filter(|_| name == "CRON") {
                Some(zone) => format!("{cell} {}", text(zone)),
                None => cell,
            }
        })
    });
    render(std::array::from_fn::<_, N, _>(heading), rows)
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
        let shown = table::<NARROW>(&schedules);
        let cells = |shown: &str| -> Vec<Vec<String>> {
            let cells =
                |line: &str| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
            shown.lines().map(cells).collect()
        };
        let wide = cells(&table::<{ COLUMNS.len() }>(&schedules));
        assert_eq!(wide[0], COLUMNS.map(|(name, _)| name));
        assert_eq!(wide[1][7..], ["node/n", "drain"]);
        let cells = cells(&shown);
        assert_eq!(cells[0], COLUMNS.map(|(name, _)| name)[..NARROW]);
        assert_eq!(cells[1], ["ops", "nightly", "0 2 * * * Europe/Berlin", "2", "Failed", "Suspended", "Filed"]);
        let second = ["ops", "b", "5m", "2026-01-02T03:04:05Z", "Interval\\u{1b}[2J", "would be: ExhaustedRetries"];
        assert_eq!(cells[2], second);
    }
}
