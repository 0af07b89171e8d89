//! Invariant 2 for attempts: their runs, their number, and what forbids a further attempt.

use serde_json::{Value, json};

use crate::story::{NODE, Story, uid};

/// Returns a story in which the first attempt has failed before anything ran, and the execution waits for the next one.
fn waiting(retry: &Value) -> Story {
    let mut story = failed_once(retry);
    story.try_again("one", "False", 1);
    story
}

fn failed_once(retry: &Value) -> Story {
    let mut story = Story::default();
    story.retrying("one", NODE, retry);
    story.try_in_vain("one", 1);
    story
}

/// Commits and releases the run of the second attempt, which succeeds, and returns the findings.
fn goes_on(mut story: Story) -> Vec<String> {
    story.begin_attempt("one", 2);
    story.run_ends("one", 2, "True");
    story.complete_attempt("one");
    story.found_settled()
}

#[test]
fn a_released_run_that_no_attempt_names() {
    let mut story = waiting(&json!(true));
    story.start("one", 2);
    story.run_ends("one", 2, "False");
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), ["2 second-run"]);
}

#[test]
fn a_released_run_that_two_attempts_name() {
    let mut story = waiting(&json!(true));
    story.begin_attempt("one", 2);
    story.run_ends("one", 2, "False");
    story.try_again("one", "False", 2);
    story.correct("one", |status| status["attempts"][2]["pipelineRun"] = status["attempts"][1]["pipelineRun"].clone());
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), ["2 second-run"]);
}

#[test]
fn a_run_that_is_released_before_the_end_of_the_attempt_before_is_recorded() {
    let mut story = waiting(&json!(true));
    let ended = story.attempts("one")[0].clone();
    let without_end = |status: &mut Value| {
        for field in ["completionTime", "started", "reason"] {
            status["attempts"][0].as_object_mut().unwrap().remove(field);
        }
    };
    story.correct("one", without_end);
    story.begin_attempt("one", 2);
    story.run_ends("one", 2, "False");
    let second = story.attempts("one")[1].clone();
    assert_eq!(story.found(), ["2 second-run"], "it is not recorded at all");
    story.write("one", &json!({"attempts": [ended, second]}));
    story.fail_attempt("one", "False");
    assert_eq!(story.found_settled(), ["2 second-run"], "it is recorded later");
}

#[test]
fn more_attempts_than_the_policy_allows() {
    let mut story = waiting(&json!(2));
    story.try_in_vain("one", 2);
    story.try_again("one", "False", 2);
    story.try_in_vain("one", 3);
    story.fail_attempt("one", "False");
    assert_eq!(story.found_settled(), ["2 attempt-many"]);
}

#[test]
fn more_released_runs_than_the_policy_allows() {
    let mut story = failed_once(&json!(1));
    story.start("one", 2);
    story.run_ends("one", 2, "False");
    story.fail_attempt("one", "False");
    assert_eq!(story.found_settled(), ["2 attempt-many", "2 second-run"]);
}

#[test]
fn an_attempt_that_is_added_after_a_cancellation_or_after_the_deletion_began() {
    let deletes: fn(&mut Story) = |story| {
        story.change("admin", &uid("one"), "", Value::Null, |wfe| {
            wfe["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:05Z");
        });
    };
    for asks in [|story: &mut Story| story.ask_to_cancel("one"), deletes] {
        let mut story = failed_once(&json!(true));
        asks(&mut story);
        story.try_again("one", "False", 1);
        story.is_cancelled_attempt("one");
        assert_eq!(story.found_settled(), ["2 attempt-after"]);
    }
}

#[test]
fn an_attempt_that_begins_after_a_cancellation() {
    let mut story = waiting(&json!(true));
    story.ask_to_cancel("one");
    assert_eq!(goes_on(story), ["2 attempt-after"]);
}

#[test]
fn an_attempt_that_is_added_after_the_end() {
    let mut story = failed_once(&json!(true));
    story.fail_attempt("one", "False");
    story.try_again("one", "False", 1);
    assert_eq!(story.found_settled(), ["2 attempt-after", "3 final"]);
}

#[test]
fn an_attempt_whose_run_is_released_after_the_end() {
    let mut story = waiting(&json!(true));
    story.create("one", 2);
    story.commit_attempt("one", 2);
    story.fail_attempt("one", "False");
    story.release("one", 2);
    story.run_ends("one", 2, "False");
    assert_eq!(story.found_settled(), ["2 attempt-after"]);
}

#[test]
fn an_attempt_after_one_that_ran_or_of_which_nobody_can_tell() {
    for started in ["True", "Unknown"] {
        let mut story = failed_once(&json!(true));
        story.try_again("one", started, 1);
        assert_eq!(goes_on(story), ["2 attempt-after"], "{started}");
    }
}

#[test]
fn an_attempt_after_one_that_succeeded_or_failed_by_its_configuration() {
    let configuration = json!("ConfigurationError");
    let when = json!({"retryWhen": "true"});
    for (retry, reason, expected) in [
        (json!(true), &Value::Null, vec!["2 attempt-after"]),
        (json!(true), &configuration, vec!["2 attempt-after"]),
        (when, &configuration, vec![]),
    ] {
        let mut story = waiting(&retry);
        story.correct("one", |status| status["attempts"][0]["reason"] = reason.clone());
        assert_eq!(goes_on(story), expected, "{retry} {reason}");
    }
}

#[test]
fn an_attempt_that_comes_when_the_time_is_over() {
    // Each write takes a second. Attempt 1 begins at second 2. Attempt 2 may begin at second 6, and begins at second 7.
    for (within, expected) in [("6s", vec![]), ("5s", vec!["2 attempt-after"])] {
        assert_eq!(goes_on(waiting(&json!({"maxDuration": within}))), expected, "{within}");
    }
    assert_eq!(waiting(&json!({"maxDuration": "5s"})).found(), Vec::<String>::new());
    assert_eq!(waiting(&json!({"maxDuration": "4s"})).found(), ["2 attempt-after"], "it was not to be added");
}

#[test]
fn an_attempt_of_which_a_step_ran_and_its_record_says_that_none_did() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.begin_attempt("one", 1);
    story.work("one", 1);
    story.work_ends("one", 1, "False");
    story.try_again("one", "False", 1);
    assert_eq!(goes_on(story), ["2 steps-ran"]);
}

#[test]
fn an_execution_that_says_that_nothing_ran_where_an_earlier_attempt_did() {
    let retry = json!({"retryExecutionFailures": true});
    let mut ran = Story::default();
    ran.retrying("one", NODE, &retry);
    ran.begin_attempt("one", 1);
    ran.work("one", 1);
    ran.work_ends("one", 1, "False");
    ran.try_again("one", "True", 1);
    let mut unknown = failed_once(&retry);
    unknown.try_again("one", "Unknown", 1);
    for mut story in [ran, unknown] {
        story.try_in_vain("one", 2);
        story.fail("one", "ImagePullBackOff", false);
        assert_eq!(story.found_settled(), ["2 steps-ran"]);
    }
}
