//! `kubectl wfe schedule run | suspend | resume`: what a person may ask of a schedule, by the rights of that person.

use std::io::{Write, stdout};

use anyhow::{Result, bail};
use chrono::{SecondsFormat, SubsecRound, TimeDelta, Utc};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_view::call::within;

use super::{clean, get, open, said};
use crate::cli::ClusterArgs;
use crate::view::ANSWERS_WITHIN;

/// How long the hint counts that asks for a run now (SPEC section 12.4).
const COUNTS_FOR: TimeDelta = TimeDelta::minutes(10);

/// Asks for a run now: a hint.
pub(super) async fn run(cluster: &ClusterArgs, name: &str, reason: &str) -> Result<bool> {
    let (schedules, namespace) = open(cluster).await?;
    let found = get(&schedules, &namespace, name).await?;
    let shown = describe(&found);
    let mut out = stdout();
    if found.data["spec"]["suspend"] == true {
        writeln!(out, "{shown} is suspended, and a hint does not lift that: kubectl wfe schedule resume {name}")?;
        return Ok(false);
    }
    let hint = hint(Utc::now(), reason);
    patch(&schedules, &found, &json!({"spec": {"hint": hint}})).await?;
    writeln!(out, "{shown} is asked to run now, and not sooner than minInterval after its last slot.")?;
    if let Some(held) = held(&found) {
        writeln!(out, "It is held ({held}), and runs when that ends within ten minutes.")?;
    }
    writeln!(
        out,
        "See what it does: kubectl wfe schedule explain {} -n {namespace}",
        found.metadata.name.unwrap_or_default()
    )?;
    Ok(true)
}

/// Suspends a schedule, or resumes it.
pub(super) async fn suspend(cluster: &ClusterArgs, name: &str, suspend: bool) -> Result<bool> {
    let (schedules, namespace) = open(cluster).await?;
    let found = get(&schedules, &namespace, name).await?;
    let shown = describe(&found);
    let mut out = stdout();
    if found.data["spec"]["suspend"].as_bool().unwrap_or(false) == suspend {
        writeln!(
            out,
            "{shown} is {} already; nothing was written.",
            if suspend { "suspended" } else { "not suspended" }
        )?;
        return Ok(true);
    }
    patch(&schedules, &found, &json!({"spec": {"suspend": suspend}})).await?;
    let what = if suspend {
        "is suspended: nothing new runs, slots of this time are lost, and a run that is at work goes on."
    } else {
        "is resumed: its plan begins anew from now, and nothing of the time between is made up for."
    };
    writeln!(out, "{shown} {what}")?;
    Ok(true)
}

/// Writes to the schedule as it was read.
async fn patch(schedules: &kube::Api<DynamicObject>, found: &DynamicObject, change: &Value) -> Result<()> {
    let meta = &found.metadata;
    let mut patch = change.clone();
    patch["metadata"] = json!({"uid": meta.uid, "resourceVersion": meta.resource_version});
    let name = meta.name.as_deref().unwrap_or_default();
    let params = PatchParams::default();
    if let Err(error) = within(ANSWERS_WITHIN, schedules.patch(name, &params, &Patch::Merge(&patch))).await {
        bail!("{} was not changed: {}", describe(found), said(&error));
    }
    Ok(())
}

fn hint(now: Time, reason: &str) -> Value {
    let shown = |time: Time| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    // The next second: what lies in the past has no effect.
    let at = now.trunc_subsecs(0) + TimeDelta::seconds(1);
    json!({"nextRunAt": shown(at), "interval": null, "expiresAt": shown(at + COUNTS_FOR), "reason": reason})
}

fn held(schedule: &DynamicObject) -> Option<String> {
    let conditions = schedule.data.pointer("/status/conditions").and_then(Value::as_array)?;
    let held = conditions.iter().find(|it| it["type"] == "Held" && it["status"] == "True")?;
    Some(clean(held["reason"].as_str()?))
}

fn describe(schedule: &DynamicObject) -> String {
    let meta = &schedule.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("WorkflowSchedule {}/{}", text(&meta.namespace), text(&meta.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_now_is_a_hint_that_lives_for_ten_minutes() {
        let now = "2026-01-02T03:04:05.600Z".parse().unwrap();
        assert_eq!(
            hint(now, "why not"),
            json!({
                "nextRunAt": "2026-01-02T03:04:06Z", "interval": null, "expiresAt": "2026-01-02T03:14:06Z",
                "reason": "why not",
            })
        );
    }
}
