//! Invariant 4, rules 2 to 5: no execution gets its turn while the history forbids it.

use std::time::Duration;

use serde_json::json;
use wfe_auditor::{Policy, Scope};

use crate::story::{API, NODE, PERSON, Story, run};

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

fn clean() -> Vec<String> {
    Vec::new()
}

fn story() -> Story {
    Story::by(Policy::default())
}

/// Returns a story with past executions on the target, which have completed, failed half-way, or failed before anything
/// ran.
fn after(how: impl FnOnce(&mut Story)) -> Story {
    let mut story = story();
    how(&mut story);
    story
}

fn completed(story: &mut Story) {
    story.live_of("past", NODE, "w", 1);
}

fn broken(story: &mut Story) {
    story.breaks("past", NODE, "w", 1);
}

fn stalled(story: &mut Story) {
    story.stalls("past", NODE, 1);
}

fn exhausted(story: &mut Story) {
    for n in 1..=4 {
        story.stalls(&format!("past-{n}"), NODE, n);
    }
    story.stalls("past", NODE, 5);
}

/// Returns the findings after an execution of a workflow gets its turn this many seconds later.
fn found(mut story: Story, workflow: &str, seconds: u64) -> Vec<String> {
    story.turn(("next", NODE, workflow, 9), seconds, "past");
    story.found()
}

#[test]
fn the_same_workflow_inside_its_cooldown() {
    assert_eq!(found(after(completed), "w", 5 * MINUTE - 1), ["4 cooldown"]);
    assert_eq!(found(after(completed), "w", 5 * MINUTE), clean());
    assert_eq!(found(after(completed), "x", 30), clean(), "another workflow");
    let mut elsewhere = after(completed);
    elsewhere.turn(("next", API, "w", 1), 30, "past");
    assert_eq!(elsewhere.found(), clean(), "another target");
    let mut between = after(completed);
    between.live_of("between", NODE, "x", 2);
    assert_eq!(found(between, "w", 4 * MINUTE), ["4 cooldown"], "w, x, and w again");
    let mut off = after(completed);
    off.policy.cooldown_period = Duration::ZERO;
    assert_eq!(found(off, "w", 30), clean());
}

#[test]
fn any_workflow_while_the_target_backs_off() {
    assert_eq!(found(after(stalled), "x", MINUTE - 1), ["4 backoff"]);
    assert_eq!(found(after(stalled), "x", MINUTE), clean());
    let two = |story: &mut Story| {
        story.stalls("first", NODE, 1);
        story.stalls("past", NODE, 2);
    };
    assert_eq!(found(after(two), "x", 2 * MINUTE - 1), ["4 backoff"], "as its status says");
    assert_eq!(found(after(two), "x", 2 * MINUTE), clean());
    let late = |story: &mut Story| {
        story.stalls("past", NODE, 1);
        story.comes_too_late("late", NODE);
    };
    assert_eq!(found(after(late), "x", MINUTE - 1), ["4 backoff"], "what came too late hides nothing");
    assert_eq!(found(after(|story| story.comes_too_late("past", NODE)), "x", 30), clean());
    let cancelled = |story: &mut Story| {
        story.stalls("past", NODE, 1);
        story.is_cancelled("cancelled", NODE);
    };
    assert_eq!(found(after(cancelled), "x", MINUTE - 1), ["4 backoff"], "what was cancelled hides nothing");
    assert_eq!(found(after(|story| story.is_cancelled("past", NODE)), "x", 30), clean());
}

#[test]
fn the_number_of_the_run_orders_the_history_and_time_only_after_it() {
    for (number, expected) in [(3, clean()), (1, vec!["4 previous-execution-failed".to_owned()])] {
        let mut story = story();
        story.wfe_of("success", NODE, "s");
        story.wfe_of("past", NODE, "w");
        let success = json!({"phase": "Completed", "runSequence": number, "completionTime": story.later(0)});
        let details = json!({"reason": "Unknown", "message": "no", "wasExecutionFailure": true});
        let failure = json!({"phase": "Failed", "runSequence": 2, "completionTime": story.later(1),
            "failureDetails": details});
        story.write_by(PERSON, "success", &success);
        story.write_by(PERSON, "past", &failure);
        assert_eq!(found(story, "x", MINUTE), expected, "the success has number {number}");
    }
}

#[test]
fn a_turn_before_what_a_status_of_another_hand_says() {
    let by_hand = |next: Option<u64>| {
        let mut story = story();
        story.wfe("past", NODE);
        let (now, next) = (story.now(), next.map(|seconds| story.later(seconds)));
        let details = json!({"reason": "Unknown", "message": "no", "wasExecutionFailure": false, "failedAt": now});
        let status = json!({"phase": "Failed", "completionTime": now, "nextAllowedExecution": next,
            "failureDetails": details});
        story.write_by(PERSON, "past", &status);
        story.failures.insert(NODE.to_owned(), 1);
        story
    };
    for (says, until) in [(None, MINUTE), (Some(2 * MINUTE), 2 * MINUTE), (Some(30), 30)] {
        assert_eq!(found(by_hand(says), "x", until - 1), ["4 backoff"], "{says:?}");
        assert_eq!(found(by_hand(says), "x", until), clean(), "{says:?}");
    }
}

#[test]
fn any_workflow_on_a_target_that_is_exhausted() {
    assert_eq!(found(after(exhausted), "x", DAY), ["4 exhausted-retries"]);
    for (limit, why) in [(0, "no number is too many"), (6, "a sixth is allowed")] {
        let allowed = after(|story| {
            story.policy.max_consecutive_failures = limit;
            exhausted(story);
        });
        assert_eq!(found(allowed, "x", 10 * MINUTE), clean(), "{why}");
    }
    let healed = |story: &mut Story| {
        for n in 1..=3 {
            story.stalls(&format!("past-{n}"), NODE, n);
        }
        story.await_time(10 * MINUTE, "past-3");
        story.live_of("success", NODE, "s", 4);
        story.stalls("past-5", NODE, 5);
        story.stalls("past", NODE, 6);
    };
    assert_eq!(found(after(healed), "x", 2 * MINUTE), clean());
    let mut quiet = after(exhausted);
    quiet.policy.failure_quiet_period = Duration::from_hours(1);
    let mut loud = quiet.clone();
    quiet.failures.clear();
    assert_eq!(found(quiet, "x", 60 * MINUTE), clean(), "after the quiet time");
    loud.turn(("next", NODE, "x", 9), 60 * MINUTE - 1, "past");
    assert_eq!(loud.found(), ["4 exhausted-retries"]);
}

#[test]
fn any_workflow_after_an_execution_failure_at_any_age() {
    assert_eq!(found(after(broken), "x", 20 * DAY), ["4 previous-execution-failed"]);
    let later = |story: &mut Story| {
        story.breaks("broken", NODE, "w", 1);
        story.stalls("past", NODE, 2);
    };
    assert_eq!(found(after(later), "x", 60 * MINUTE), ["4 previous-execution-failed"], "a later one lifts nothing");
    let doubtful = |story: &mut Story| {
        story.breaks("past", NODE, "w", 1);
        story.correct("past", |status| {
            status["failureDetails"].as_object_mut().unwrap().remove("wasExecutionFailure");
            status["failureDetails"].as_object_mut().unwrap().remove("requiresManualReview");
        });
    };
    assert_eq!(found(after(doubtful), "x", MINUTE), ["4 previous-execution-failed"], "when in doubt it ran");
    let in_scope = |workflow: &str| {
        let mut story = after(broken);
        story.policy.previous_execution_failed_scope = Scope::Workflow;
        found(story, workflow, MINUTE)
    };
    assert_eq!(in_scope("x"), clean());
    assert_eq!(in_scope("w"), ["4 previous-execution-failed"]);
}

#[test]
fn a_recovery_that_is_none() {
    let recovers = |past: fn(&mut Story), workflow: &str, of: &str| {
        let mut story = after(past);
        story.wfe_with("next", NODE, workflow, &json!({"recoveryOf": of}));
        story.create("next", 9);
        story.commit("next", 9);
        let counted = story.report(false).counts.of("recoveries");
        assert!(counted > 0 || !story.found().is_empty());
        story.found()
    };
    let forbidden = ["4 previous-execution-failed"];
    assert_eq!(recovers(broken, "x", "past"), clean());
    assert_eq!(recovers(broken, "w", "past"), forbidden, "by the same workflow");
    assert_eq!(recovers(broken, "x", "another"), forbidden);
    let by = |image: &str| {
        let mut story = after(broken);
        story.wfe_with("next", NODE, "x", &json!({"recoveryOf": "past"}));
        let made = story.changes.last_mut().unwrap();
        made.object["spec"]["workflowRef"]["containerImage"] = json!(image);
        story.create("next", 9);
        story.commit("next", 9);
        story.found()
    };
    assert_eq!(by("registry.example/w:2"), forbidden, "from the bundle that failed");
    assert_eq!(by("registry.example/v:1"), clean());
    let twice = |story: &mut Story| {
        story.breaks("first", NODE, "x", 1);
        story.wfe_with("past", NODE, "w", &json!({"recoveryOf": "first"}));
        story.start("past", 2);
        story.run_ends("past", 2, "False");
        story.fail("past", "Unknown", true);
    };
    assert_eq!(recovers(twice, "x", "past"), forbidden, "in a circle");
    assert_eq!(recovers(twice, "y", "first"), forbidden, "of one that is not the latest");
    assert_eq!(recovers(twice, "y", "past"), clean());
    let mut healed = after(broken);
    healed.wfe_with("recovery", NODE, "x", &json!({"recoveryOf": "past"}));
    healed.start("recovery", 2);
    healed.run_ends("recovery", 2, "True");
    healed.complete("recovery");
    assert_eq!(found(healed, "w", MINUTE), clean(), "a success lifts it");
}

#[test]
fn a_clearance_lifts_rules_2_to_4_and_only_where_something_is_blocked() {
    for past in [broken, exhausted] {
        let mut story = after(past);
        story.clear("past");
        let mut recorded = story.clone();
        story.failures.clear();
        assert_eq!(found(story.clone(), "x", 30), clean(), "from the spec on");
        story.turn(("next", NODE, "x", 9), 30, "past");
        assert_eq!(story.report(false).counts.of("turns-after-clearance"), 1);
        recorded.record_clearance("past", true);
        recorded.failures.clear();
        assert_eq!(found(recorded, "x", 30), clean());
    }
    let mut ineffective = after(broken);
    ineffective.clear("past");
    ineffective.record_clearance("past", false);
    assert_eq!(found(ineffective, "x", 30), ["4 previous-execution-failed"]);
    let mut one = after(stalled);
    one.clear("past");
    assert_eq!(found(one, "x", 30), ["4 backoff"], "a backoff alone is no block");
    let mut before = after(broken);
    before.clear("past");
    before.breaks("second", NODE, "y", 2);
    assert_eq!(found(before, "x", 10 * MINUTE), ["4 previous-execution-failed"], "a failure after it");
    let hot = |story: &mut Story| {
        story.live_of("past", NODE, "w", 1);
        story.breaks("broken", NODE, "x", 2);
        story.clear("broken");
    };
    assert_eq!(found(after(hot), "w", 4 * MINUTE), ["4 cooldown"], "nothing was wrong with a success");
}

/// Returns a story in which something happens between the creation of a contender's run and its commit.
fn meanwhile(happens: fn(&mut Story)) -> Story {
    let mut story = story();
    story.wfe_of("success", NODE, "s");
    story.start("success", 1);
    story.run_ends("success", 1, "True");
    story.complete("success");
    story.wfe_of("next", NODE, "x");
    story.create("next", 2);
    happens(&mut story);
    story.failures.clear();
    story.commit("next", 2);
    story
}

#[test]
fn a_failure_that_leaves_no_run_may_be_missed_until_the_contender_is_seen_again() {
    let raced = meanwhile(|story| story.stalls("rival", NODE, 3));
    assert_eq!(raced.found(), clean());
    assert_eq!(raced.report(false).counts.of("raced-turns"), 1);
    let seen = meanwhile(|story| {
        story.stalls("rival", NODE, 3);
        story.write("next", &json!({"phase": "Pending", "target": NODE}));
    });
    assert_eq!(seen.found(), ["4 backoff", "8 counter"], "one watch brings both");
}

#[test]
fn history_that_a_deletion_brings_back_may_be_missed_too() {
    let healed = |deleted_late: bool| {
        let mut story = story();
        story.breaks("broken", NODE, "w", 1);
        story.wfe_with("success", NODE, "s", &json!({"recoveryOf": "broken"}));
        story.start("success", 2);
        story.run_ends("success", 2, "True");
        story.complete("success");
        story.wfe_of("next", NODE, "x");
        story.create("next", 3);
        story.delete_wfe("success");
        if !deleted_late {
            story.write("next", &json!({"phase": "Pending", "target": NODE}));
        }
        story.commit("next", 3);
        story
    };
    assert_eq!(healed(true).found(), clean());
    assert_eq!(healed(false).found(), ["4 previous-execution-failed"]);
}

#[test]
fn the_end_of_one_whose_run_came_first_is_never_missed() {
    for is_deleted in [false, true] {
        let mut story = story();
        story.wfe_of("next", NODE, "x");
        story.wfe_of("rival", NODE, "w");
        story.start("rival", 1);
        story.run_ends("rival", 1, "False");
        story.fail("rival", "Unknown", true);
        if is_deleted {
            story.delete_run("rival", 1);
        }
        story.create("next", 2);
        story.commit("next", 2);
        assert_eq!(story.found(), ["4 previous-execution-failed"], "its run is deleted: {is_deleted}");
    }
}

#[test]
fn a_run_that_a_person_has_released_is_committed_to() {
    let mut story = after(broken);
    story.wfe_of("next", NODE, "x");
    story.create("next", 2);
    story.release_by(PERSON, "next", 2);
    story.commit("next", 2);
    assert_eq!(story.found(), clean());
}

#[test]
fn nothing_is_judged_where_the_history_is_not_known() {
    let mut story = after(broken);
    story.turn(("next", NODE, "x", 2), MINUTE, "past");
    assert_eq!(story.found(), ["4 previous-execution-failed"]);
    // The execution of a run on the target is in a namespace that is not recorded.
    let mut elsewhere = story.changes.iter().find(|change| change.kind == "PipelineRun").unwrap().clone();
    elsewhere.object["metadata"]["uid"] = json!(run("elsewhere", 7));
    elsewhere.object["metadata"]["name"] = json!("wfe-ac45b7d6911e97a5-7");
    elsewhere.object["metadata"]["annotations"]["kubernaut.ai/workflow-execution"] = json!("far/elsewhere");
    elsewhere.object["metadata"]["annotations"]["kubernaut.ai/workflow-execution-uid"] = json!("elsewhere");
    elsewhere.object["metadata"]["labels"]["kubernaut.ai/run-sequence"] = json!("7");
    elsewhere.resource_version = 1_000_000;
    story.changes.push(elsewhere);
    let report = story.report(false);
    assert_eq!(report.violations, []);
    assert!(report.unjudged.iter().any(|what| what.contains("the history of")), "{:?}", report.unjudged);
}
