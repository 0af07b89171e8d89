//! `kubectl wfe schedule run | suspend`: changes to a schedule, with the caller's own permissions.

use anyhow::{Result, bail};
use chrono::{SecondsFormat, SubsecRound, TimeDelta, Utc};
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::schedule::PlannedBy;
use wfe_view::observe::observe_schedule;

use super::{describe, get, held, open, patch, said};
use crate::cli::ClusterArgs;
use crate::moment::shown;
use crate::output::{line, output};

/// How long a hint to run now counts (section 12.4).
const COUNTS_FOR: TimeDelta = TimeDelta::minutes(10);

/// Asks for a run now: sets a hint.
pub(super) async fn run(cluster: &ClusterArgs, name: &str, reason: &str) -> Result<bool> {
    let (schedules, namespace) = open(cluster).await?;
    let mut found = get(&schedules, &namespace, name).await?;
    let shown = describe(&found);
    let name = found.metadata.name.clone().unwrap_or_default();
    let mut out = output();
    if found.data["spec"]["suspend"] == true {
        writeln!(
            out,
            "{shown} is suspended, and a hint does not lift that; nothing was written. First: kubectl wfe schedule resume \
             {name} -n {namespace}"
        )?;
        return Ok(false);
    }
    let now = Utc::now();
    let replaces = !found.data["spec"]["hint"].is_null();
    found.data["spec"]["hint"] = hint(begun(&found, now), reason);
    let outlook = match outlook(&found, now) {
        Ok(outlook) => outlook,
        Err(why) => {
            writeln!(out, "{shown} cannot run now: {}; nothing was written.", line(&why))?;
            return Ok(false);
        }
    };
    write(&schedules, &found, &json!({"spec": {"hint": found.data["spec"]["hint"]}})).await?;
    writeln!(out, "{shown} is asked to run now: {}.", line(&outlook))?;
    if replaces {
        writeln!(out, "The hint that it had is replaced.")?;
    }
    if let Some(held) = held(&found).map(line) {
        writeln!(out, "It is held ({held}): it runs when that ends within ten minutes, else the hint is lost.")?;
    }
    writeln!(out, "See what it does: kubectl wfe schedule explain {name} -n {namespace}")?;
    Ok(true)
}

/// Predicts the effect of a hint with the operator's own code; or returns why it would have none.
fn outlook(schedule: &DynamicObject, now: Time) -> Result<String, String> {
    let record = observe_schedule(schedule).ok_or("the API server sent an object without a uid")?;
    let schedule = record.schedule;
    if let Err(why) = &schedule.plan {
        return Err(format!("its spec cannot be used: {why}"));
    }
    let next = schedule.next_run(now).ok_or("it has no slot any more")?;
    let at = shown(next.planned.at);
    let until = next.until.filter(|until| next.planned.at < *until);
    if until.is_none() {
        return Err(format!("minInterval after its last slot ends at {at}, later than a hint for now counts"));
    }
    let is_at_work = schedule.status.last_run.as_ref().is_some_and(|last| last.outcome.is_none());
    Ok(match next.planned.why {
        _ if is_at_work => {
            format!("not before {at}, and after the run that is at work, if that ends within ten minutes")
        }
        PlannedBy::ClampedMin => format!("at {at}, minInterval after its last slot"),
        _ => format!("at {at}"),
    })
}

/// Suspends a schedule.
pub(super) async fn suspend(cluster: &ClusterArgs, name: &str) -> Result<bool> {
    let (schedules, namespace) = open(cluster).await?;
    let found = get(&schedules, &namespace, name).await?;
    let shown = describe(&found);
    let mut out = output();
    if found.data["spec"]["suspend"] == true {
        writeln!(out, "{shown} is suspended already; nothing was written.")?;
        return Ok(true);
    }
    write(&schedules, &found, &json!({"spec": {"suspend": true}})).await?;
    writeln!(
        out,
        "{shown} is suspended: nothing new runs, slots of this time are lost, and a run that is at work goes on."
    )?;
    Ok(true)
}

/// Patches the schedule as it was read.
async fn write(schedules: &Api<DynamicObject>, found: &DynamicObject, change: &Value) -> Result<()> {
    if let Err(error) = patch(schedules, found, change).await {
        bail!("{} was not changed: {}", describe(found), said(&error));
    }
    Ok(())
}

/// Returns the time from which a hint has an effect: when the plan begins, if that lies ahead, and otherwise now.
fn begun(schedule: &DynamicObject, now: Time) -> Time {
    let planned_from = schedule.data.pointer("/status/plannedFrom").and_then(Value::as_str);
    let planned_from = planned_from.and_then(|text| text.parse::<Time>().ok());
    // A beginning further ahead comes from a wrong clock; the operator starts a new plan.
    planned_from.filter(|from| (now..now + TimeDelta::minutes(1)).contains(from)).unwrap_or(now)
}

fn hint(now: Time, reason: &str) -> Value {
    let shown = |time: Time| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    // The next second: a time in the past has no effect.
    let at = now.trunc_subsecs(0) + TimeDelta::seconds(1);
    json!({"nextRunAt": shown(at), "interval": null, "expiresAt": shown(at + COUNTS_FOR), "reason": reason})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(spec: &Value, status: &Value) -> DynamicObject {
        let mut spec = spec.clone();
        spec["template"] = json!({"spec": {
            "targetResource": "node/worker",
            "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"},
        }});
        let metadata = json!({"namespace": "ops", "name": "a", "uid": "u", "generation": 1});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn it_says_what_a_hint_will_do() {
        let now: Time = "2026-01-02T12:00:00.5Z".parse().unwrap();
        let hint = hint(now, "why not");
        let used = |slot: &str, outcome: Value| {
            let last = json!({
                "name": "a", "slot": slot, "startedAt": slot, "endedAt": slot, "outcome": outcome,
            });
            json!({"plannedFrom": "2026-01-01T00:00:00Z", "failureCount": 0, "lastRun": last})
        };
        let asked = |min: &str, status: &Value| {
            let spec = json!({"interval": "1h", "minInterval": min, "hint": hint});
            outlook(&schedule(&spec, status), now)
        };
        let done = |slot: &str| used(slot, json!("Completed"));
        assert_eq!(asked("1m", &done("2026-01-02T11:30:00Z")).unwrap(), "at 2026-01-02T12:00:01Z");
        let soon = asked("5m", &done("2026-01-02T11:58:00Z")).unwrap();
        assert_eq!(soon, "at 2026-01-02T12:03:00Z, minInterval after its last slot");
        assert!(asked("1h", &done("2026-01-02T11:58:00Z")).unwrap_err().starts_with("minInterval after"));
        let at_work = asked("1m", &used("2026-01-02T11:30:00Z", Value::Null)).unwrap();
        assert!(at_work.contains("after the run that is at work"), "{at_work}");
        let unusable = outlook(&schedule(&json!({"interval": "0s"}), &Value::Null), now).unwrap_err();
        assert!(unusable.starts_with("its spec cannot be used: spec.interval: "), "{unusable}");
    }

    #[test]
    fn a_hint_comes_after_the_second_in_which_the_plan_begins() {
        let now: Time = "2026-01-02T12:00:00.5Z".parse().unwrap();
        for (planned_from, base) in [
            ("2026-01-02T12:00:01Z", "2026-01-02T12:00:01Z"),
            ("2026-01-02T12:00:00Z", "2026-01-02T12:00:00.5Z"),
            ("2027-01-01T00:00:00Z", "2026-01-02T12:00:00.5Z"),
            ("soon", "2026-01-02T12:00:00.5Z"),
        ] {
            let schedule = schedule(&json!({}), &json!({"plannedFrom": planned_from}));
            assert_eq!(begun(&schedule, now), base.parse::<Time>().unwrap(), "{planned_from}");
        }
    }

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
