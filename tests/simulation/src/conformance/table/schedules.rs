//! The rows of the table about schedules.

use serde_json::{Value, json};

use super::Written;
use crate::conformance::Call;
use crate::conformance::Place::Schedules;
use crate::conformance::generate::valid;

/// Creates a schedule with these fields in the spec. Null removes a default field.
fn asks(name: &str, fields: &Value) -> Vec<Call> {
    let mut body = valid(Schedules);
    json_patch::merge(&mut body, &json!({"spec": fields}));
    vec![Call::create(Schedules, name, body)]
}

/// Creates a schedule with a time zone.
fn of_zone(name: &str, zone: &str) -> Vec<Call> {
    asks(name, &json!({"interval": null, "cron": "0 2 * * *", "timeZone": zone}))
}

/// Creates a schedule, and sends this merge patch to it or to its status.
fn merged(name: &str, at: &str, patch: Value) -> Vec<Call> {
    let make = Call::create(Schedules, name, valid(Schedules));
    vec![make, Call::merge(Schedules, &format!("{name}{at}"), patch)]
}

/// Creates a schedule whose failures a workflow analyses, with these fields in `spec.triage`.
fn triages(name: &str, fields: &Value) -> Vec<Call> {
    let image = "registry.example/analyst:1";
    let workflow = json!({"workflowId": "analyst", "version": "1", "containerImage": image});
    let mut triage = json!({"analyst": "Pipeline", "workflowRef": workflow, "timeout": "1m"});
    json_patch::merge(&mut triage, fields);
    asks(name, &json!({"triage": triage}))
}

/// Creates a schedule that allows triages to adjust these fields.
fn adjusts(name: &str, fields: &[&str]) -> Vec<Call> {
    let template = json!({"spec": {"parameters": {"SOME": "1"}}});
    asks(name, &json!({"template": template, "triage": {"allowAdjust": fields}}))
}

/// Returns the patch by which a person ends a triage.
fn resume(triage: &str) -> Value {
    json!({"spec": {"resume": {"triage": triage, "reason": "mended", "resumedBy": "jane"}}})
}

/// Returns the record of a triage in a status.
fn triage() -> Value {
    json!({"of": "a-1", "at": "2026-01-01T00:05:00Z", "analyst": "BuiltIn", "verdict": "DoNothing", "state": "Noted"})
}

/// The code, the reason, the sentence and the requests of each row.
pub(super) const ROWS: &[Written] = &[
    (201, "", "a schedule is created", |n| vec![Call::create(Schedules, n, valid(Schedules))]),
    (422, "Invalid", "a schedule has interval or cron, not both", |n| asks(n, &json!({"cron": "0 2 * * *"}))),
    (422, "Invalid", "a schedule has interval or cron, not neither", |n| asks(n, &json!({"interval": null}))),
    (422, "Invalid", "an interval is in whole seconds", |n| asks(n, &json!({"interval": "1500ms"}))),
    (422, "Invalid", "an interval has no space", |n| asks(n, &json!({"interval": "1 m"}))),
    (422, "Invalid", "an interval is not negative", |n| asks(n, &json!({"interval": "-5s"}))),
    (422, "Invalid", "an interval is not 0", |n| asks(n, &json!({"interval": "0s"}))),
    (422, "Invalid", "an interval is at most 720 hours", |n| asks(n, &json!({"interval": "721h"}))),
    (422, "Invalid", "an interval that no duration holds", |n| asks(n, &json!({"interval": "99999999999999999999h"}))),
    (422, "Invalid", "clamps do not cross", |n| asks(n, &json!({"minInterval": "2m", "maxInterval": "1m"}))),
    (422, "Invalid", "a clamp is not beyond the interval", |n| asks(n, &json!({"minInterval": "6m"}))),
    (422, "Invalid", "a wait is not shorter than the interval", |n| asks(n, &json!({"maxInterval": "4m"}))),
    (201, "", "a wait may be as long as the interval", |n| asks(n, &json!({"maxInterval": "5m"}))),
    (422, "Invalid", "a spread is less than the interval", |n| asks(n, &json!({"spread": "5m"}))),
    (422, "Invalid", "an interval knows no zone", |n| asks(n, &json!({"timeZone": "Europe/Berlin"}))),
    (201, "", "a zone is known by its name", |n| of_zone(n, "Europe/Berlin")),
    (201, "", "a zone may be UTC", |n| of_zone(n, "UTC")),
    (201, "", "a zone may have quarters of an hour", |n| of_zone(n, "Asia/Kathmandu")),
    (422, "Invalid", "a zone that nobody knows", |n| of_zone(n, "Mars/Olympus")),
    (422, "Invalid", "the zone of the machine is no zone", |n| of_zone(n, "Local")),
    (422, "Invalid", "an offset is no zone", |n| of_zone(n, "+02:00")),
    (422, "Invalid", "a zone has no dots", |n| of_zone(n, "../etc")),
    (422, "Invalid", "cron has five fields", |n| asks(n, &json!({"interval": null, "cron": "0 2 * *"}))),
    (422, "Invalid", "an hour has sixty minutes", |n| asks(n, &json!({"interval": null, "cron": "60 2 * * *"}))),
    (422, "Invalid", "a step follows a range", |n| asks(n, &json!({"interval": null, "cron": "10/15 * * * *"}))),
    (201, "", "cron of a day that never comes", |n| asks(n, &json!({"interval": null, "cron": "0 0 31 2 *"}))),
    (422, "Invalid", "the template has a target that can be read", |n| {
        asks(n, &json!({"template": {"spec": {"targetResource": "payment"}}}))
    }),
    (422, "Invalid", "the template has none of our labels", |n| {
        asks(n, &json!({"template": {"metadata": {"labels": {"kubernaut.ai/schedule": "x"}}}}))
    }),
    (422, "Invalid", "the template has none of our annotations", |n| {
        asks(n, &json!({"template": {"metadata": {"annotations": {"kubernaut.ai/note": "x"}}}}))
    }),
    (422, "Invalid", "the labels of the template are labels", |n| {
        asks(n, &json!({"template": {"metadata": {"labels": {"team": "not valid"}}}}))
    }),
    (201, "", "a field of the template that nobody knows is dropped", |n| {
        asks(n, &json!({"template": {"spec": {"startBefore": "2026-01-02T03:04:05Z", "odd": 1}}}))
    }),
    (201, "", "a hint names a time", |n| {
        asks(n, &json!({"hint": {"nextRunAt": "2026-01-02T03:04:05Z", "expiresAt": "2026-01-02T03:04:06Z"}}))
    }),
    (422, "Invalid", "a hint is not over before its time", |n| {
        asks(n, &json!({"hint": {"nextRunAt": "2026-01-02T03:04:05Z", "expiresAt": "2026-01-02T03:04:05Z"}}))
    }),
    (422, "Invalid", "a hint names a time or an interval", |n| {
        asks(n, &json!({"hint": {"expiresAt": "2026-01-02T03:04:05Z"}}))
    }),
    (422, "Invalid", "a hint ends", |n| asks(n, &json!({"hint": {"interval": "1m"}}))),
    (201, "", "a workflow analyses", |n| triages(n, &json!({}))),
    (201, "", "a table analyses", |n| asks(n, &json!({"triage": {"analyst": "BuiltIn", "after": 10}}))),
    (422, "Invalid", "an analyst is one of a few", |n| asks(n, &json!({"triage": {"analyst": "Oracle"}}))),
    (422, "Invalid", "a triage comes after at most 10 failures", |n| asks(n, &json!({"triage": {"after": 11}}))),
    (422, "Invalid", "a triage comes after a failure", |n| asks(n, &json!({"triage": {"after": 0}}))),
    (422, "Invalid", "a workflow that analyses is named", |n| triages(n, &json!({"workflowRef": null}))),
    (422, "Invalid", "a table has no workflow", |n| triages(n, &json!({"analyst": "BuiltIn"}))),
    (422, "Invalid", "a table has no account", |n| asks(n, &json!({"triage": {"serviceAccountName": "a"}}))),
    (422, "Invalid", "a table takes no time", |n| asks(n, &json!({"triage": {"timeout": "5m"}}))),
    (422, "Invalid", "an analyst has a minute", |n| triages(n, &json!({"timeout": "59s"}))),
    (422, "Invalid", "an analyst has an hour at most", |n| triages(n, &json!({"timeout": "3601s"}))),
    (422, "Invalid", "the bundle of an analyst can be read", |n| {
        triages(n, &json!({"workflowRef": {"containerImage": "Upper/Case"}}))
    }),
    (422, "Invalid", "a triage does not adjust the target", |n| adjusts(n, &["targetResource"])),
    (422, "Invalid", "a triage adjusts parameters that are there", |n| adjusts(n, &["parameters.OTHER"])),
    (422, "Invalid", "a triage adjusts each field once", |n| adjusts(n, &["interval", "timeout", "interval"])),
    (422, "Invalid", "a triage adjusts an interval only where one is", |n| {
        let triage = json!({"allowAdjust": ["timeout", "interval"]});
        asks(n, &json!({"interval": null, "cron": "0 2 * * *", "triage": triage}))
    }),
    (422, "Invalid", "an interval that a triage adjusts does not go", |n| {
        let mut calls = adjusts(n, &["interval"]);
        calls.push(Call::merge(Schedules, n, json!({"spec": {"interval": null, "cron": "0 2 * * *"}})));
        calls
    }),
    (201, "", "a triage adjusts what its author lists", |n| adjusts(n, &["interval", "parameters.SOME", "timeout"])),
    (201, "", "a resume is restored from a backup", |n| asks(n, &resume("a")["spec"])),
    (200, "", "a schedule is resumed later", |n| merged(n, "", resume("a"))),
    (422, "Invalid", "a resume says who", |n| {
        merged(n, "", json!({"spec": {"resume": {"triage": "a", "reason": "b"}}}))
    }),
    (200, "", "a resume is replaced", |n| {
        let mut calls = merged(n, "", resume("a"));
        calls.push(Call::merge(Schedules, n, resume("b")));
        calls
    }),
    (200, "", "a resume is removed", |n| {
        let mut calls = merged(n, "", resume("a"));
        calls.push(Call::merge(Schedules, n, json!({"spec": {"resume": null}})));
        calls
    }),
    (200, "", "a triage is recorded", |n| {
        merged(n, "/status", json!({"status": {"triage": triage(), "adjust": {"interval": "10m", "timeout": "1h"}}}))
    }),
    (422, "Invalid", "a triage is in one of a few states", |n| {
        let mut triage = triage();
        triage["state"] = json!("Asleep");
        merged(n, "/status", json!({"status": {"triage": triage}}))
    }),
    (422, "Invalid", "an adjustment is in whole seconds", |n| {
        merged(n, "/status", json!({"status": {"adjust": {"interval": "1500ms"}}}))
    }),
    (422, "Invalid", "an adjustment does not set the target", |n| {
        merged(n, "/status", json!({"status": {"adjust": {"parameters": {"TARGET_RESOURCE": "node/worker-2"}}}}))
    }),
    (422, "Invalid", "the name is a label of the children", |_| {
        vec![Call::create(Schedules, &"n".repeat(64), valid(Schedules))]
    }),
    (200, "", "a schedule is suspended", |n| merged(n, "", json!({"spec": {"suspend": true}}))),
    (200, "", "a target may change", |n| {
        merged(n, "", json!({"spec": {"template": {"spec": {"targetResource": "node/worker-2"}}}}))
    }),
    (200, "", "a merge may turn an interval into cron", |n| {
        merged(n, "", json!({"spec": {"interval": null, "cron": "0 2 * * *", "timeZone": "America/New_York"}}))
    }),
    (200, "", "a status is written", |n| {
        let run = json!({"slot": "2026-01-01T00:05:00Z", "name": "a-1", "outcome": "Failed", "reason": "Unknown"});
        let status = json!({"plannedFrom": "2026-01-01T00:00:00Z", "failureCount": 1, "lastRun": run});
        merged(n, "/status", json!({"status": status}))
    }),
    (422, "Invalid", "an outcome is one of a few", |n| {
        let run = json!({"slot": "2026-01-01T00:05:00Z", "outcome": "Odd"});
        merged(n, "/status", json!({"status": {"lastRun": run}}))
    }),
    (409, "Conflict", "a status is not written over a newer one", |n| {
        let write = |count: u32| {
            let meta = json!({"resourceVersion": format!("$before:WorkflowSchedule/{n}")});
            json!({"metadata": meta, "status": {"failureCount": count}})
        };
        let mut calls = merged(n, "", json!({"spec": {"suspend": true}}));
        calls.push(Call::merge(Schedules, &format!("{n}/status"), write(1)));
        calls
    }),
];
