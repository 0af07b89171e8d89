//! Invariants 1, 4 and 5 for attempts: an execution holds its target between two attempts.

use serde_json::{Value, json};

use crate::story::{NODE, Story};

/// Returns a story in which one attempt has failed, and the execution waits for the next one.
fn waiting() -> Story {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.try_again("one", "False", 1);
    story
}

#[test]
fn a_rival_that_runs_while_the_holder_waits() {
    let mut story = waiting();
    story.live("two", NODE, 2);
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), ["1 held"]);
}

#[test]
fn a_rival_that_runs_before_the_end_of_an_attempt_is_recorded() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.live("two", NODE, 2);
    story.fail_attempt("one", "False");
    assert_eq!(story.found_settled(), ["1 held"]);
}

#[test]
fn without_a_policy_nobody_holds_a_target_between_a_run_and_its_record() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.run_ends("one", 1, "False");
    story.live("two", NODE, 2);
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), Vec::<String>::new());
}

#[test]
fn of_two_that_hold_one_target_the_first_release_is_the_offence() {
    let mut story = waiting();
    story.retrying("two", NODE, &json!(true));
    story.try_in_vain("two", 2);
    story.try_again("two", "False", 1);
    for (name, number) in [("one", 3), ("two", 4)] {
        story.try_in_vain(name, number);
        story.fail_attempt(name, "False");
    }
    assert_eq!(story.found_settled(), ["1 held"]);
}

#[test]
fn a_skip_for_a_holder_whose_attempt_is_done_and_not_recorded() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.try_in_vain("one", 1);
    story.wfe("two", NODE);
    story.skip("two", "one");
    story.try_again("one", "False", 1);
    assert_eq!(story.found(), ["5 no-fact"]);
}

#[test]
fn a_skip_that_came_when_the_wait_was_over() {
    let mut story = waiting();
    story.begin_attempt("one", 2);
    story.run_ends("one", 2, "True");
    story.complete_attempt("one");
    story.wfe("two", NODE);
    story.skip("two", "one");
    assert_eq!(story.found(), ["5 no-fact"]);
}

#[test]
fn a_skip_that_says_something_else_of_the_holder() {
    for field in ["workflowId", "startedAt", "targetResource"] {
        let mut story = waiting();
        story.wfe("two", NODE);
        story.skip("two", "one");
        story.correct("two", |status| status["skipDetails"]["conflictingWorkflow"][field] = json!("another"));
        assert_eq!(story.found(), ["5 wrong-fact"], "{field}");
    }
}

#[test]
fn an_attempt_that_is_committed_while_something_of_the_one_before_is_left() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.begin_attempt("one", 1);
    story.task("one", 1);
    story.run_ends("one", 1, "False");
    story.try_again("one", "False", 1);
    story.create("one", 2);
    story.commit_attempt("one", 2);
    story.task_ends("one", 1);
    story.release("one", 2);
    assert_eq!(story.found(), ["4 busy"]);
}

#[test]
fn an_attempt_that_is_released_while_something_of_the_one_before_is_left() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.begin_attempt("one", 1);
    story.task("one", 1);
    story.run_ends("one", 1, "False");
    story.try_again("one", "False", 1);
    story.begin_attempt("one", 2);
    story.task_ends("one", 1);
    assert_eq!(story.found(), ["1 drain"]);
}

#[test]
fn an_attempt_before_a_run_that_came_first_is_out_of_the_way() {
    let mut story = waiting();
    story.wfe("two", NODE);
    story.create("two", 2);
    story.create("one", 3);
    story.commit_attempt("one", 3);
    story.skip("two", "one");
    story.delete_run("two", 2);
    assert_eq!(story.found(), ["4 order"]);
}

#[test]
fn no_shape_of_attempts_is_too_strange() {
    let strange =
        [json!(7), json!([null, 1, [], {}]), json!({"attempt": 1}), json!(vec![json!({}); 2000]), Value::Null];
    for attempts in strange {
        let mut story = waiting();
        story.write("one", &json!({"attempts": attempts}));
        story.write("one", &json!({"attempts": [{"delay": 7, "notBefore": [], "startTime": {}}, "x"]}));
        let _any = story.report(true);
    }
}
