use kube::api::DynamicObject;
use serde_json::json;
use wfe_core::name::Uid;
use wfe_view::index::{Delivery, Index, Kind};
use wfe_view::read::read;

use super::*;

fn at(time: &str) -> Time {
    time.parse().unwrap()
}

/// Returns the report at noon for one schedule, which is alone on its target.
fn reported(spec: &Value, status: &Value) -> Report {
    reported_beside(spec, status, None)
}

/// Returns the same report with an execution on the target.
fn reported_beside(spec: &Value, status: &Value, execution: Option<&Value>) -> Report {
    let now = at("2026-01-02T12:00:00Z");
    let mut spec = spec.clone();
    spec["template"] = json!({"spec": {
        "targetResource": "node/worker",
        "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"},
    }});
    let metadata = json!({"namespace": "ops", "name": "a", "uid": "u", "resourceVersion": "1", "generation": 1});
    let object: DynamicObject =
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap();
    let mut index = Index::new(None);
    for kind in Kind::ALL {
        index.apply(Delivery::ListBegins(kind), now);
        if kind == Kind::Schedule {
            index.apply(read(kind, &object, "runs").unwrap(), now);
        }
        if let Some(execution) = execution.filter(|_| kind == Kind::Execution) {
            let execution = serde_json::from_value(execution.clone()).unwrap();
            index.apply(read(kind, &execution, "runs").unwrap(), now);
        }
        index.apply(Delivery::ListEnds(kind), now);
    }
    let key = index.keys().next().unwrap();
    let target = &index.ready(key).unwrap().target;
    let installation = Installation {
        policy: Policy::default(),
        policy_of: "the defaults".to_owned(),
        config: crate::installation::Config::default(),
        watch_namespace: None,
        execution_namespace: "runs".to_owned(),
        leader: Leader::Is("one".to_owned()),
        log: String::new(),
        policies: crate::policies::Policies { count: 9, ..crate::policies::Policies::default() },
    };
    let (schedule, judgement) = foretell(target, &Uid::new("u"), &installation.policy, now).unwrap();
    Report::of(&schedule, target, &judgement, &installation, now)
}

fn slots_of(report: &Report) -> Vec<(&str, Option<&str>)> {
    report.slots.iter().map(|slot| (&*slot.utc, slot.zone.as_deref())).collect()
}

#[test]
fn a_schedule_that_is_new_begins_its_plan_and_the_rows_are_asked_again() {
    let report = reported(&json!({"interval": "1h"}), &Value::Null);
    let rows: Vec<_> = report.rows.iter().map(|row| row.row).collect();
    assert_eq!(
        rows,
        [
            "0 spec",
            "1 plan",
            "2 outcome",
            "3 suspended",
            "4 paused by a triage",
            "4 triage",
            "5 child at work",
            "6 slot ahead",
        ]
    );
    assert_eq!(report.held, None);
    let slots: Vec<_> = (13..18).map(|hour| format!("2026-01-02T{hour}:00:00Z")).collect();
    assert_eq!(report.slots.iter().map(|slot| slot.utc.clone()).collect::<Vec<_>>(), slots);
    let text = report.told();
    assert!(text.starts_with("WorkflowSchedule ops/a on node/worker runs next at 2026-01-02T13:00:00Z (Interval)\n"));
    assert!(text.contains("  operator     one leads\n"), "{text}");
}

#[test]
fn a_suspension_holds_a_schedule_that_does_not_exist_yet() {
    let report = reported(&json!({"interval": "1h", "suspend": true}), &Value::Null);
    assert_eq!(report.held, Some("Suspended"));
    assert_eq!(report.rows.last().map(|row| row.row), Some("3 suspended"));
    assert!(report.told().contains(" is held: Suspended\n"));
}

#[test]
fn slots_are_shown_in_the_zone_and_in_utc() {
    let report = reported(&json!({"cron": "30 2 * * *", "timeZone": "Europe/Berlin"}), &Value::Null);
    let slots = slots_of(&report);
    assert_eq!(slots.len(), SLOTS);
    assert_eq!(slots[0].0, "2026-01-03T01:30:00Z");
    assert!(slots[0].1.is_some_and(|zone| zone.contains("02:30")), "{slots:?}");
}

#[test]
fn a_spec_that_cannot_be_used_has_no_slot_and_says_why() {
    let report = reported(&json!({"cron": "0 0 31 2 *"}), &Value::Null);
    assert_eq!((report.rows.len(), report.slots.len()), (1, 0));
    assert!(report.told().contains(" has no next run\n"));
    assert!(report.rows[0].says.contains("spec.cron"), "{report:?}");
}

#[test]
fn what_others_wrote_reaches_no_terminal_as_it_is() {
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "ChildRefused", "message": "no\u{1b}[2J",
        "lastTransitionTime": "2026-01-02T11:00:00Z",
    });
    let report = reported(&json!({"interval": "1h"}), &json!({"conditions": [condition]}));
    assert!(!report.told().contains('\u{1b}'));
}

#[test]
fn a_late_slot_is_not_among_the_next_ones() {
    // Parses the schedule twice: the status of a valid plan needs the revision of its spec.
    let spec = json!({"interval": "1h", "startingDeadlineSeconds": 20});
    let mut schedule = {
        let object = json!({
            "metadata": {"namespace": "ops", "name": "a", "uid": "u"},
            "spec": {"interval": spec["interval"], "startingDeadlineSeconds": 20, "template": {"spec": {
                "targetResource": "node/worker",
                "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"},
            }}},
        });
        wfe_view::observe::observe_schedule(&serde_json::from_value(object).unwrap()).unwrap().schedule
    };
    schedule.status.planned_from = Some(at("2026-01-02T10:30:00Z"));
    let next: Vec<_> = slots(&schedule, at("2026-01-02T12:00:00Z")).take(2).map(|slot| slot.at).collect();
    assert_eq!(next, [at("2026-01-02T12:30:00Z"), at("2026-01-02T13:30:00Z")]);
}

/// Returns the report for a valid plan whose status has this triage.
fn with_triage(spec: &Value, triage: &Value, adjust: &Value) -> Value {
    let template = json!({"spec": {
        "targetResource": "node/worker",
        "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"},
    }});
    let mut spec = spec.clone();
    spec["template"] = template;
    let object = json!({"metadata": {"namespace": "ops", "name": "a", "uid": "u"}, "spec": spec});
    let seen = wfe_view::observe::observe_schedule(&serde_json::from_value(object).unwrap()).unwrap().schedule;
    json!({
        "plannedFrom": "2026-01-02T00:00:00Z", "revision": seen.revision.to_string(), "failureCount": 3,
        "triage": triage, "adjust": adjust,
    })
}

#[test]
fn what_a_triage_has_paused_is_held_and_said_in_full() {
    let spec = json!({"interval": "1h"});
    let triage = json!({
        "of": "a-1767348000", "at": "2026-01-02T11:00:00Z", "analyst": "Pipeline",
        "run": {"name": "a-1767348000-triage", "uid": "t"}, "fingerprint": "Unknown/workflow/w@1/scale",
        "verdict": "PauseAndNotify", "why": "it breaks\u{1b}[2J each time", "fix": "look at the disk",
        "refused": ["interval: is not in spec.triage.allowAdjust"], "state": "Paused",
    });
    let report = reported(&spec, &with_triage(&spec, &triage, &Value::Null));
    assert_eq!(report.held, Some("TriagePaused"), "{report:?}");
    assert_eq!(report.rows.last().map(|row| row.row), Some("4 paused by a triage"));
    let text = report.told();
    for said in [
        " is held: TriagePaused\n",
        "  triage       of a-1767348000, begun at 2026-01-02T11:00:00Z by Pipeline: Paused (PauseAndNotify): it breaks\\u{1b}",
        "  cause        Unknown/workflow/w@1/scale\n",
        "  fix          look at the disk\n",
        "  analyst      ops/a-1767348000-triage\n",
        "  refused      interval: is not in spec.triage.allowAdjust\n",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
}

#[test]
fn what_was_adjusted_is_said_without_the_values_of_parameters() {
    let spec = json!({"interval": "1h"});
    let triage = json!({
        "of": "a-1767348000", "at": "2026-01-02T11:00:00Z", "analyst": "BuiltIn", "verdict": "AdjustConfig",
        "why": "too slow", "state": "Adjusted",
    });
    let adjust = json!({"timeout": "20m", "parameters": {"LEVEL": "hunter2"}});
    let report = reported(&spec, &with_triage(&spec, &triage, &adjust));
    assert_eq!(report.held, None, "{report:?}");
    let text = report.told();
    assert!(text.contains("by BuiltIn: Adjusted (AdjustConfig): too slow\n"), "{text}");
    assert!(text.contains("  adjusted     timeout 20m0s, parameters.LEVEL\n"), "{text}");
    assert!(!text.contains("hunter2") && !serde_json::to_string(&report).unwrap().contains("hunter2"));
}

#[test]
fn what_would_hold_the_next_run_is_said_today() {
    let broke = json!({
        "metadata": {"namespace": "ops", "name": "half-way", "uid": "e", "resourceVersion": "1"},
        "spec": {
            "targetResource": "node/worker",
            "workflowRef": {"workflowId": "v", "version": "1", "containerImage": "registry.example/v:1"},
        },
        "status": {
            "phase": "Failed", "completionTime": "2026-01-02T11:00:00Z", "runSequence": 1,
            "failureDetails": {"reason": "Unknown", "wasExecutionFailure": true, "failedAt": "2026-01-02T11:00:00Z"},
        },
    });
    let report = reported_beside(&json!({"cron": "0 2 * * *", "spread": "10m"}), &Value::Null, Some(&broke));
    assert_eq!(report.held, None);
    let why = report.would_be_held.as_deref().unwrap();
    assert!(why.starts_with("PreviousExecutionFailed: ") && why.contains("ops/half-way"), "{why}");
    let told = report.told();
    assert!(told.contains(" on node/worker would be held at 2026-01-03T02:"), "{told}");
    assert!(told.contains("  condition    Held False, WouldBeHeld: PreviousExecutionFailed: "), "{told}");
    assert!(told.contains("  spread       each slot is "), "{told}");
    assert!(!reported(&json!({"cron": "0 2 * * *"}), &Value::Null).told().contains("spread"));
}
