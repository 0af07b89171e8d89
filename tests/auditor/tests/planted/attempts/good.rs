//! Stories of several attempts without a violation.

use std::time::Duration;

use serde_json::{Value, json};
use wfe_auditor::Policy;

use crate::story::{NODE, PERSON, Story, run, uid};

const NOTHING: [&str; 0] = [];

/// Two attempts fail before anything runs, and the third succeeds.
fn three_attempts() -> Story {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story.try_in_vain("one", 2);
    story.try_again("one", "False", 2);
    story.begin_attempt("one", 3);
    story.work("one", 3);
    story.work_ends("one", 3, "True");
    story.complete_attempt("one");
    story
}

#[test]
fn three_attempts_of_which_the_last_succeeds() {
    let story = three_attempts();
    assert_eq!(story.found_settled(), NOTHING);
    let counts = story.report(true).counts;
    assert_eq!((counts.of("attempts"), counts.of("runs"), counts.of("ran")), (2, 3, 1));
}

#[test]
fn attempts_are_of_no_account_without_a_policy() {
    let mut story = three_attempts();
    story.changes[0].object["spec"]["retry"] = json!(false);
    assert_eq!(story.found_settled(), ["2 second-run", "2 second-run"]);
}

#[test]
fn attempts_of_an_execution_whose_namespace_was_not_recorded_are_not_judged() {
    let mut story = three_attempts();
    story.changes.retain(|change| change.kind != "WorkflowExecution");
    assert_eq!(story.found(), NOTHING);
}

#[test]
fn one_that_ended_while_it_waited_by_the_hand_of_a_person() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!({"initialDelay": "1m"}));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 60);
    story.ask_to_cancel("one");
    story.is_cancelled_attempt("one");
    assert_eq!(story.found_settled(), NOTHING);
    assert_eq!(story.report(true).counts.of("ended-waiting"), 1);
}

#[test]
fn one_that_ended_while_it_waited_because_time_was_over() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!({"initialDelay": "1m", "maxDuration": "10m"}));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 60);
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn one_that_is_deleted_while_it_waits_frees_the_target_at_once() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story.create("one", 2);
    story.delete_wfe("one");
    story.delete_run("one", 2);
    story.live("two", NODE, 2);
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn one_whose_second_attempt_was_refused() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story.is_refused_attempt("one", 2, 2);
    story.begin_attempt("one", 2);
    story.run_ends("one", 2, "True");
    story.complete_attempt("one");
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn a_rival_is_skipped_while_the_holder_waits() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story.wfe("two", NODE);
    story.skip("two", "one");
    // The rival's run is created before the holder's next run.
    story.wfe("three", NODE);
    story.create("three", 2);
    story.create("one", 3);
    story.skip("three", "one");
    story.delete_run("three", 2);
    story.commit_attempt("one", 3);
    story.release("one", 3);
    story.run_ends("one", 3, "False");
    story.fail_attempt("one", "False");
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn what_ran_is_tried_again_where_the_policy_says_so() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!({"retryExecutionFailures": true}));
    story.begin_attempt("one", 1);
    story.work("one", 1);
    story.work_ends("one", 1, "False");
    story.try_again("one", "True", 1);
    story.try_in_vain("one", 2);
    story.fail_attempt("one", "False");
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn rules_2_to_5_are_asked_at_the_first_attempt_only() {
    let mut story = Story::by(Policy::default());
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    // From now on, backoff would forbid a first attempt.
    story.wfe("bad", NODE);
    story.fail("bad", "ConfigurationError", false);
    // The next write is based on a version after the failure, so every possible view contains the failure.
    story.change(PERSON, &uid("one"), "", Value::Null, |wfe| wfe["metadata"]["labels"] = json!({}));
    story.begin_attempt("one", 2);
    story.run_ends("one", 2, "True");
    story.complete_attempt("one");
    assert_eq!(story.found_settled(), NOTHING);
    assert_eq!(story.report(true).counts.of("raced-turns"), 0);
}

#[test]
fn the_counter_is_that_of_the_time_at_which_an_attempt_begins() {
    let mut story = Story::default();
    story.policy.failure_quiet_period = Duration::from_mins(1);
    story.stalls("refused", NODE, 1);
    story.retrying("one", NODE, &json!({"initialDelay": "1m"}));
    story.try_in_vain("one", 2);
    story.try_again("one", "False", 60);
    story.await_time(120, "refused");
    story.failures.clear();
    story.begin_attempt("one", 3);
    story.run_ends("one", 3, "True");
    story.complete_attempt("one");
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn what_somebody_released_is_committed_to_before_its_time_and_after_a_cancellation() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!({"initialDelay": "1h"}));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 3600);
    story.create("one", 2);
    story.release_by(PERSON, "one", 2);
    assert_eq!(story.found(), NOTHING, "it is yet to be recorded");
    story.ask_to_cancel("one");
    story.commit_attempt("one", 2);
    story.run_ends("one", 2, "False");
    story.is_cancelled_attempt("one");
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn what_somebody_released_is_committed_to_beside_what_the_attempt_before_has_left() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.begin_attempt("one", 1);
    story.task("one", 1);
    story.run_ends("one", 1, "False");
    story.try_again("one", "False", 1);
    story.create("one", 2);
    story.release_by(PERSON, "one", 2);
    story.commit_attempt("one", 2);
    story.task_ends("one", 1);
    assert_eq!(story.found(), ["1 drain"], "that two drain at once is the person's doing");
    // The stopped run is over at once, so it is not in conflict with any other run.
    let mut stopped = Story::default();
    stopped.retrying("one", NODE, &json!(true));
    stopped.begin_attempt("one", 1);
    stopped.task("one", 1);
    stopped.run_ends("one", 1, "False");
    stopped.try_again("one", "False", 1);
    stopped.create("one", 2);
    let cancelled = json!([{"op": "add", "path": "/spec/status", "value": "Cancelled"}]);
    stopped.change(PERSON, &run("one", 2), "", cancelled, |run| run["spec"]["status"] = json!("Cancelled"));
    stopped.commit_attempt("one", 2);
    assert_eq!(stopped.found(), NOTHING);
}

#[test]
fn with_jitter_a_wait_is_anything_within_its_bounds() {
    for (delay, seconds) in [("2s", 2), ("2.345s", 3), ("3s", 3)] {
        let mut story = Story::default();
        story.retrying("one", NODE, &json!({"initialDelay": "2s", "maxDelay": "7s", "jitter": true}));
        story.try_in_vain("one", 1);
        story.try_again_with("one", "False", &json!({"delay": delay, "notBefore": story.later(seconds)}));
        assert_eq!(story.found(), NOTHING, "{delay}");
    }
}

#[test]
fn a_holder_whose_run_somebody_erased_holds_no_more() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story.erase("one", 1);
    story.live("two", NODE, 2);
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), NOTHING);
}

#[test]
fn a_pending_run_above_the_last_number_is_no_leftover() {
    let mut story = pending_second_run();
    assert_eq!(story.found_settled(), ["6 undecided"]);
    // The execution commits to the next run, so this run is a leftover from now on.
    story.create("one", 3);
    story.commit_attempt("one", 3);
    assert_eq!(story.found_settled(), ["6 leftover", "6 undecided"]);
    story.delete_run("one", 2);
    assert_eq!(story.found_settled(), ["6 undecided"]);
}

/// Returns a story in which the second attempt has a pending run.
fn pending_second_run() -> Story {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story.create("one", 2);
    story
}

#[test]
fn a_pending_run_of_an_execution_that_is_being_deleted_may_go() {
    let mut story = pending_second_run();
    story.change(PERSON, &uid("one"), "", Value::Null, |wfe| {
        wfe["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:05Z");
    });
    story.delete_run("one", 2);
    assert_eq!(story.found(), NOTHING);
}

#[test]
fn a_pending_run_that_an_execution_needs_is_deleted() {
    let mut story = pending_second_run();
    story.delete_run("one", 2);
    assert_eq!(story.found(), ["7 deleted-needed"]);
}
