//! Invariants 10 to 12 and 15: schedules.

use serde_json::{Value, json};
use wfe_auditor::Policy;

use crate::story::{API, NODE, OPERATOR, PERSON, Story, uid};

fn clean() -> Vec<String> {
    Vec::new()
}

/// Returns a story with a schedule whose interval is one minute and whose plan has begun. Also returns the beginning of
/// the plan.
fn planned() -> (Story, u64) {
    planned_with(&json!({}))
}

fn planned_with(more: &Value) -> (Story, u64) {
    let mut story = Story::default();
    story.schedule("nightly", NODE, more);
    let since = story.begin_plan("nightly");
    (story, since)
}

/// Returns the story of [`planned`] after one child has completed, and the child's slot.
fn one_done() -> (Story, u64) {
    let (mut story, since) = planned();
    story.succeeds("nightly", since + 60, 1);
    (story, since + 60)
}

#[test]
fn a_schedule_that_keeps_to_its_plan() {
    let mut story = Story::by(Policy::default());
    story.schedule("nightly", NODE, &json!({}));
    let since = story.begin_plan("nightly");
    let slot = since + 60;
    story.succeeds("nightly", slot, 1);
    // This is within the cooldown of five minutes, which does not apply between children of the same schedule.
    let ended = story.stumbles("nightly", slot + 60, 2, 1);
    let ended = story.stumbles("nightly", ended + 120, 3, 2).max(ended);
    // The failure counts for the schedule, but not for the target. A person's execution of another workflow can
    // therefore run at once.
    story.live_of("person", NODE, "scale", 4);
    story.succeeds("nightly", ended + 240, 5);
    // The schedule is suspended, and then a new plan begins.
    story.edit("nightly", &json!({"suspend": true}));
    story.write("nightly", &json!({"conditions": [{"type": "Held", "status": "True", "reason": "Suspended"}]}));
    story.go_on_to(ended + 1_000);
    story.edit("nightly", &json!({"suspend": false}));
    story.write("nightly", &json!({"plannedFrom": story.now(), "conditions": []}));
    let since = ended + 1_001;
    story.succeeds("nightly", since + 60, 6);
    let report = story.report(true);
    assert!(report.is_clean(), "{report}");
    for (name, expected) in [("children", 5), ("outcomes", 5), ("plans", 2)] {
        assert_eq!(report.counts.of(name), expected, "{name}");
    }
}

#[test]
fn a_failure_of_a_child_that_counts_for_its_target() {
    let (mut story, since) = planned();
    let name = story.child("nightly", since + 60);
    story.is_refused(&name, 1);
    assert_eq!(story.found(), ["8 counter"]);
}

#[test]
fn the_cooldown_of_others_holds_a_child() {
    let mut story = Story::by(Policy::default());
    story.schedule("nightly", NODE, &json!({}));
    let since = story.begin_plan("nightly");
    story.live("person", NODE, 1);
    story.child("nightly", since + 60);
    assert_eq!(story.found(), ["11 child-blocked"]);
}

#[test]
fn two_children_of_one_slot() {
    let (mut story, since) = planned();
    story.child("nightly", since + 60);
    let mut twin = story.child_object("nightly", since + 60);
    twin["metadata"]["name"] = json!("nightly-again");
    story.add(OPERATOR, twin, "uid-twin");
    assert_eq!(story.found(), ["7 child", "10 slot-twice"]);
}

#[test]
fn a_child_before_its_slot_or_the_plan() {
    let early = |slot: u64, after: u64| {
        let (mut story, since) = planned();
        story.go_on_to(since + after);
        story.child_now("nightly", since + slot);
        story.found()
    };
    assert_eq!(early(60, 59), clean());
    assert_eq!(early(60, 58), ["11 child-early"]);
    assert_eq!(early(0, 80), ["11 child-used"], "not after the plan began");
}

#[test]
fn a_child_while_something_of_its_schedule_forbids_it() {
    let found = |how: fn(&mut Story)| {
        let (mut story, slot) = one_done();
        how(&mut story);
        story.child("nightly", slot + 60);
        story.found()
    };
    assert_eq!(found(|_| {}), clean());
    assert_eq!(found(|story| story.edit("nightly", &json!({"suspend": true}))), ["11 child-suspended"]);
    assert_eq!(found(|story| story.edit("nightly", &json!({"maxInterval": "2h"}))), clean(), "a clamp begins no plan");
    assert_eq!(found(|story| story.edit("nightly", &json!({"interval": "30s"}))), ["11 child-plan"]);
    let resumed = |story: &mut Story| {
        story.write("nightly", &json!({"conditions": [{"type": "Held", "status": "True", "reason": "Suspended"}]}));
    };
    assert_eq!(found(resumed), ["11 child-plan"]);
}

#[test]
fn a_child_of_a_schedule_that_is_gone() {
    let (mut story, slot) = one_done();
    let late = story.child_object("nightly", slot + 60);
    story.remove(PERSON, &uid("nightly"), &Value::Null);
    story.go_on_to(slot + 60);
    story.add(OPERATOR, late, "uid-late");
    assert_eq!(story.found(), ["11 child-leaving"]);
    story.lag = std::time::Duration::from_hours(1);
    assert_eq!(story.found(), clean(), "its request may have been late");
}

#[test]
fn a_child_while_another_one_is_at_work_or_has_no_outcome() {
    let (mut story, since) = planned();
    story.child("nightly", since + 60);
    story.child("nightly", since + 120);
    assert_eq!(story.found(), ["11 child-at-work"]);
    let (mut story, since) = planned();
    let name = story.child("nightly", since + 60);
    story.fail(&name, "Unknown", true);
    story.child("nightly", since + 120);
    assert_eq!(story.found()[0], "11 child-unrecorded");
    let (mut story, since) = planned();
    story.child("nightly", since + 60);
    story.names("nightly", since + 60);
    story.child("nightly", since + 120);
    assert_eq!(story.found(), ["11 child-unrecorded"]);
}

#[test]
fn a_child_on_a_target_that_is_not_free() {
    let (mut story, since) = planned();
    story.wfe("person", NODE);
    story.child("nightly", since + 60);
    assert_eq!(story.found(), ["11 child-busy"]);
    let (mut story, since) = planned();
    story.wfe("person", API);
    story.child("nightly", since + 60);
    assert_eq!(story.found(), clean(), "another target");
}

#[test]
fn a_child_on_a_target_that_is_broken() {
    let (mut story, slot) = one_done();
    story.breaks("person", NODE, "scale", 2);
    story.child("nightly", slot + 60);
    assert_eq!(story.found(), ["11 child-blocked"]);
}

#[test]
fn a_child_in_a_namespace_that_is_paused() {
    let pause = |story: &mut Story, value: Value| {
        story.change(PERSON, "uid-ops", "", Value::Null, |namespace| {
            namespace["metadata"]["annotations"] = json!({"kubernaut.ai/paused": value});
        });
    };
    for (paused, expected) in [(json!("night"), vec!["11 child-paused".to_owned()]), (Value::Null, clean())] {
        let (mut story, since) = planned();
        story.add(PERSON, json!({"kind": "Namespace", "metadata": {"name": "ops"}}), "uid-ops");
        pause(&mut story, paused);
        story.child("nightly", since + 60);
        assert_eq!(story.found(), expected);
    }
}

#[test]
fn a_child_after_its_starting_deadline() {
    for (after, expected) in [(70, clean()), (71, vec!["11 child-late".to_owned()])] {
        let (mut story, since) = planned_with(&json!({"startingDeadlineSeconds": 10}));
        story.go_on_to(since + after - 1);
        story.child_now("nightly", since + 60);
        assert_eq!(story.found(), expected, "{after}");
    }
}

#[test]
fn a_count_that_is_not_the_fold() {
    let (mut story, since) = planned();
    story.stumbles("nightly", since + 60, 1, 0);
    assert_eq!(story.found(), ["12 failure-count"]);
    let (mut story, slot) = one_done();
    story.write("nightly", &json!({"failureCount": 1}));
    assert_eq!(story.found(), ["12 failure-count"]);
    story.write_by(PERSON, "nightly", &json!({"failureCount": 0}));
    story.stumbles("nightly", slot + 60, 2, 1);
    assert_eq!(story.found(), ["12 failure-count"], "from what a person wrote it goes on");
}

#[test]
fn an_outcome_that_is_not_what_became_of_the_child() {
    for (outcome, count) in [("Failed", 1), ("Skipped", 0), ("Deleted", 0), ("Refused", 1)] {
        let (mut story, since) = planned();
        let name = story.child("nightly", since + 60);
        story.names("nightly", since + 60);
        story.start(&name, 1);
        story.work(&name, 1);
        story.work_ends(&name, 1, "True");
        story.complete(&name);
        story.records("nightly", since + 60, outcome, count);
        assert_eq!(story.found(), ["12 outcome"], "{outcome}");
    }
}

#[test]
fn an_outcome_before_the_end_or_of_another_time() {
    let (mut story, since) = planned();
    story.child("nightly", since + 60);
    story.records("nightly", since + 60, "Failed", 1);
    assert_eq!(story.found(), ["12 outcome"]);
    let (mut story, _) = one_done();
    let later = json!(story.later(7));
    story.correct("nightly", |status| status["lastRun"]["endedAt"] = later);
    assert_eq!(story.found(), ["12 outcome-time"]);
}

#[test]
fn an_outcome_that_is_recorded_twice_or_never() {
    let (mut story, slot) = one_done();
    story.records("nightly", slot, "Failed", 0);
    assert_eq!(story.found(), ["12 outcome-twice"]);
    let (mut story, slot) = one_done();
    story.stumbles("nightly", slot + 60, 2, 1);
    story.records("nightly", slot, "Completed", 0);
    assert_eq!(story.found(), ["12 outcome-order"]);
    let (mut story, since) = planned();
    let name = story.child("nightly", since + 60);
    story.names("nightly", since + 60);
    story.delete_wfe(&name);
    story.child("nightly", since + 120);
    story.names("nightly", since + 120);
    assert_eq!(story.found(), ["11 child-unrecorded", "12 outcome-lost"]);
}

#[test]
fn a_child_that_is_passed_over() {
    let (mut story, since) = planned();
    let first = story.child("nightly", since + 60);
    story.fail(&first, "Unknown", false);
    story.correct(&first, |status| {
        status["consecutiveFailures"] = json!(0);
        status.as_object_mut().unwrap().remove("nextAllowedExecution");
    });
    story.child("nightly", since + 120);
    story.names("nightly", since + 120);
    assert_eq!(story.found(), ["11 child-unrecorded", "12 outcome-lost"]);
}

#[test]
fn a_child_that_was_deleted_before_its_end_was_recorded() {
    let (mut story, since) = planned();
    let name = story.child("nightly", since + 60);
    story.names("nightly", since + 60);
    story.delete_wfe(&name);
    story.records("nightly", since + 60, "Deleted", 0);
    assert_eq!(story.found(), clean());
}

#[test]
fn a_plan_that_begins_anew_for_no_reason() {
    let (mut story, _) = one_done();
    story.write("nightly", &json!({"plannedFrom": story.now()}));
    assert_eq!(story.found(), ["12 plan-anew"]);
    let (mut story, since) = planned();
    story.stumbles("nightly", since + 60, 1, 1);
    story.write("nightly", &json!({"plannedFrom": story.now(), "revision": "other"}));
    assert_eq!(story.found(), ["12 failure-count"], "the count begins anew too");
}

/// The beginning of a plan is rounded up, so the operator's clock is a fraction of a second behind it. A time exactly
/// 60 s after that beginning is therefore more than 60 s in the future.
#[test]
fn a_plan_that_begins_anew_as_its_status_lies_ahead() {
    for (ahead, expected) in [(59, ["12 plan-anew"].as_slice()), (60, &[]), (61, &[])] {
        let (mut story, _) = planned();
        // The next write is one second later.
        story.write("nightly", &json!({"plannedFrom": story.later(ahead + 1), "revision": "other"}));
        story.write("nightly", &json!({"plannedFrom": story.now()}));
        assert_eq!(story.found(), expected, "{ahead} s ahead");
    }
}

/// The slot of an open run identifies its child. If the slot were changed to the beginning of the plan, it would
/// identify no child.
#[test]
fn an_open_run_that_lies_ahead_when_a_plan_begins_anew() {
    let table = [
        ("forgotten", None, [].as_slice()),
        ("cut", Some(0), &["12 outcome-lost"]),
        ("kept", Some(68), &["12 outcome-lost"]),
    ];
    for (what, kept, expected) in table {
        let (mut story, since) = planned();
        story.names("nightly", since + 70);
        let kept = kept.map_or(Value::Null, |ahead| json!({"slot": story.later(ahead)}));
        story.write("nightly", &json!({"plannedFrom": story.now(), "lastRun": kept}));
        assert_eq!(story.found(), expected, "{what}");
    }
}

#[test]
fn an_operator_that_changes_a_spec() {
    let (mut story, _) = planned();
    story.edit_by(OPERATOR, "nightly", &json!({"suspend": true}));
    assert_eq!(story.found(), ["7 foreign", "15 spec"]);
}

/// A change that spoils a child.
type Change = fn(&mut Value);

#[test]
fn a_child_that_is_not_as_it_must_be() {
    let planted: [(&str, Change); 5] = [
        ("no label", |child| child["metadata"]["labels"] = json!({})),
        ("another slot", |child| child["metadata"]["annotations"] = json!({})),
        ("an owner", |child| child["metadata"]["ownerReferences"] = json!([{"uid": "uid-nightly"}])),
        ("no startBefore", |child| drop(child["spec"].as_object_mut().unwrap().remove("startBefore"))),
        ("another workflow", |child| child["spec"]["workflowRef"]["workflowId"] = json!("other")),
    ];
    for (what, plant) in planted {
        let (mut story, since) = planned();
        story.child("nightly", since + 60);
        plant(&mut story.requests.last_mut().unwrap().request);
        assert_eq!(story.found(), ["7 child"], "{what}");
    }
}

#[test]
fn a_status_of_a_schedule_without_its_preconditions() {
    let (mut story, _) = planned();
    story.requests.last_mut().unwrap().request["metadata"] = json!({});
    assert_eq!(story.found(), ["7 status"]);
}

/// Returns the findings after the operator has removed a completed child. A newer execution on the child's target has
/// completed too.
fn removed(recorded: bool, more: &Value) -> Vec<String> {
    let (mut story, since) = planned_with(more);
    let name = story.child("nightly", since + 60);
    story.start(&name, 1);
    story.work(&name, 1);
    story.work_ends(&name, 1, "True");
    story.complete(&name);
    if recorded {
        story.records("nightly", since + 60, "Completed", 0);
    }
    story.live_of("person", NODE, "scale", 2);
    let version = story.object(&uid(&name))["metadata"]["resourceVersion"].clone();
    story.remove(OPERATOR, &uid(&name), &json!({"uid": uid(&name), "resourceVersion": version}));
    story.found()
}

#[test]
fn a_child_that_is_removed() {
    assert_eq!(removed(true, &json!({})), clean());
    assert_eq!(removed(false, &json!({})), ["7 removed-early"], "its outcome is not recorded");
    let ttl = |history: Value| {
        let workflow = json!({"workflowId": "restart", "version": "1", "containerImage": "registry.example/restart:1"});
        let spec = json!({"targetResource": NODE, "workflowRef": workflow, "ttlSecondsAfterFinished": 1_000});
        json!({"history": history, "template": {"spec": spec}})
    };
    assert_eq!(removed(true, &ttl(json!({}))), ["7 removed-early"], "its time to live is not over");
    assert_eq!(removed(true, &ttl(json!({"successful": 0}))), clean(), "its history is full");
}

#[test]
fn a_schedule_that_has_not_said_what_came_of_its_child() {
    let (mut story, since) = planned();
    let name = story.child("nightly", since + 60);
    story.names("nightly", since + 60);
    story.delete_wfe(&name);
    assert_eq!(story.found_settled(), ["6 unrecorded"]);
}
