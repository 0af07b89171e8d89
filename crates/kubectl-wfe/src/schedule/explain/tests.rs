use kube::api::DynamicObject;
use serde_json::json;
use wfe_core::name::Uid;
use wfe_view::index::{Delivery, Index, Kind};
use wfe_view::read::read;

use super::*;

fn at(time: &str) -> Time {
    time.parse().unwrap()
}

/// What is reported of the one schedule of a target at noon.
fn reported(spec: &Value, status: &Value) -> Report {
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
            index.apply(read(kind, object.clone(), "runs").unwrap(), now);
        }
        index.apply(Delivery::ListEnds(kind), now);
    }
    let key = index.keys().next().unwrap();
    let target = &index.ready(key).unwrap().target;
    let installation = Installation {
        policy: Policy::default(),
        policy_of: "the defaults".to_owned(),
        watch_namespace: None,
        execution_namespace: "runs".to_owned(),
        leader: Leader::Is("one".to_owned()),
        policies: "all 9 are as they ship".to_owned(),
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
    assert_eq!(rows, ["0 spec", "1 plan", "2 outcome", "3 suspended", "5 child at work", "6 slot ahead"]);
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
    // One schedule, twice: the status of a plan that stands has the revision of its spec.
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
    let next: Vec<_> = slots(&schedule, at("2026-01-02T12:00:00Z")).into_iter().map(|slot| slot.at).collect();
    assert_eq!(next[..2], [at("2026-01-02T12:30:00Z"), at("2026-01-02T13:30:00Z")]);
}
