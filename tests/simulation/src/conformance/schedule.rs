//! Random specs and statuses of schedules, most of them valid.

use fastrand::Rng;
use serde_json::{Value, json};

use super::spoil::spoil;

/// Returns the smallest valid spec of a schedule.
pub(super) fn least_spec() -> Value {
    json!({"interval": "5m", "template": {"spec": super::status::least_spec()}})
}

/// Draws a spec of a schedule. In most cases it is valid.
pub(super) fn spec(random: &mut Rng) -> Value {
    let mut spec = least_spec();
    if random.bool() {
        spec["template"]["spec"] = super::status::spec(random);
        // A template must not contain the fields that the operator sets in each child.
        for field in ["startBefore", "recoveryOf", "remediationRequestRef", "cancellation", "clearance"] {
            if random.u8(..8) != 0 {
                spec["template"]["spec"].as_object_mut().map(|spec| spec.remove(field));
            }
        }
    }
    let metadata = [
        json!({"labels": {"team": "a"}, "annotations": {"why": "disk"}}),
        json!({"labels": {"kubernaut.ai/schedule": "mine"}}),
        json!({"labels": {"not valid": "a"}}),
        json!({"labels": {"team": "not valid"}}),
        json!({"annotations": {"kubernaut.ai/paused": "x"}}),
        json!({}),
    ];
    if random.u8(..4) == 0 {
        spec["template"]["metadata"] = random.choice(metadata).unwrap_or_default();
    }
    if random.u8(..3) == 0 {
        spec["cron"] =
            json!(random.choice(["0 2 * * *", "*/5 * * * 1-5", "@daily", "1 2 3", "0 0 31 FEB *", "61 * * * *"]));
        spec.as_object_mut().map(|spec| if random.u8(..6) != 0 { spec.remove("interval") } else { None });
        if random.bool() {
            spec["timeZone"] = json!(random.choice(ZONES));
        }
    } else {
        spec["interval"] = duration(random);
    }
    let durations = [duration(random), duration(random), duration(random)];
    let triage = triage(random);
    let mut add = |name: &str, value: &Value| {
        if random.u8(..4) == 0 {
            spec[name] = value.clone();
        }
    };
    for (name, value) in ["minInterval", "maxInterval", "spread"].iter().zip(&durations) {
        add(name, value);
    }
    add("suspend", &json!(true));
    add("startingDeadlineSeconds", &json!(20));
    add("history", &json!({"successful": 0, "failed": 100}));
    add("hint", &hint(&"2026-01-02T03:04:05Z"));
    add("triage", &triage);
    if random.u8(..4) == 0 {
        spoil(random, &mut spec);
    }
    spec
}

/// Valid and invalid names of time zones.
const ZONES: [&str; 8] =
    ["Europe/Berlin", "UTC", "America/New_York", "Asia/Kathmandu", "Mars/Olympus", "Local", "+02:00", "Europe Berlin"];

fn duration(random: &mut Rng) -> Value {
    json!(random.choice(["1s", "20s", "5m", "1h30m", "24h", "720h", "721h", "0s", "1500ms", "1 m", "-5s", "99999h"]))
}

fn triage(random: &mut Rng) -> Value {
    let mut triage = json!({
        "analyst": random.choice(["Off", "BuiltIn", "Pipeline", "Pipeline", "Pipeline", "Odd"]), "after": random.u32(..12),
        "workflowRef": super::status::least_spec()["workflowRef"], "serviceAccountName": "analyst",
        "timeout": random.choice(["1m", "5m", "1h", "61m", "59s", "-5s"]),
        "allowAdjust": random.choice([json!([]), json!(["interval", "timeout"]), json!(["timeout", "timeout"]),
            json!(["parameters.SOME"]), json!(["odd"])]),
    });
    for field in ["analyst", "after", "workflowRef", "serviceAccountName", "timeout", "allowAdjust"] {
        if random.u8(..3) == 0 {
            triage.as_object_mut().map(|triage| triage.remove(field));
        }
    }
    triage
}

fn hint(next: &impl serde::Serialize) -> Value {
    json!({"nextRunAt": next, "expiresAt": "2026-01-02T04:00:00Z", "reason": "traffic is low"})
}

/// Draws a change that a person makes to an existing spec.
pub(super) fn later(random: &mut Rng) -> Value {
    let mut later = match random.u8(..8) {
        0 => json!({"suspend": random.choice([json!(true), json!(null), json!("yes")])}),
        1 => json!({"hint": hint(&random.choice(["2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z"]))}),
        2 => json!({"hint": {"interval": duration(random), "nextRunAt": null, "expiresAt": "2026-01-02T04:00:00Z"}}),
        3 => json!({"interval": duration(random), "cron": null, "timeZone": null}),
        4 => json!({"triage": random.choice([json!({"after": 2}), json!({"analyst": "Pipeline"}), json!(null)])}),
        5 => json!({"resume": random.choice([json!(null), json!({"triage": "a", "reason": "b", "resumedBy": "c"})])}),
        6 => json!({"template": {"spec": {"targetResource": random.choice(["node/worker-2", "odd", "a/b/c/d"])}}}),
        _ => spec(random),
    };
    if random.u8(..6) == 0 {
        spoil(random, &mut later);
    }
    later
}

/// Draws a status of a schedule. In most cases it is valid.
pub(super) fn status(random: &mut Rng) -> Value {
    let outcomes = ["Completed", "Failed", "Skipped", "Cancelled", "TooLate", "Deleted", "Refused", "Odd"];
    let mut status = json!({
        "observedGeneration": random.u32(..3),
        "plannedFrom": "2026-01-01T00:00:00Z",
        "revision": "0123456789abcdef",
        "failureCount": random.u32(..4),
        "nextRunTime": random.choice([json!("2026-01-01T00:05:00Z"), json!(null)]),
        "nextRunReason": random.choice(["Interval", "Cron", "Backoff", "Hint", "ClampedMin", "CatchUp", "Odd"]),
        "conditions": [{
            "type": random.choice(["Ready", "Held"]), "status": random.choice(["True", "False"]), "reason": "Suspended",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    });
    if random.bool() {
        status["lastRun"] = json!({"slot": "2026-01-01T00:00:00Z", "name": "a-1", "outcome": random.choice(outcomes)});
    }
    if random.u8(..4) == 0 {
        status["lastMissed"] = json!({"slot": "2026-01-01T00:00:00Z", "count": random.u32(..200)});
    }
    if random.u8(..3) == 0 {
        status["triage"] = json!({
            "of": "a-1", "at": "2026-01-01T00:00:00Z", "analyst": random.choice(["BuiltIn", "Pipeline", "Odd"]),
            "verdict": random.choice(["DoNothing", "FileFix", "PauseAndNotify", "AdjustConfig"]), "why": "it is broken",
            "refused": ["interval: no"], "state": random.choice(["Analysing", "Paused", "Adjusted", "Over", "Odd"]),
        });
        status["adjust"] = json!({
            "interval": duration(random), "timeout": "5m",
            "parameters": random.choice([json!({"SOME": "1"}), json!({"some": "1"})]),
        });
    }
    if random.u8(..4) == 0 {
        spoil(random, &mut status);
    }
    status
}
