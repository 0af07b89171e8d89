//! Invariant 2 for attempts: the length of the wait before an attempt, and that the attempt does not begin earlier.

use serde_json::{Value, json};

use crate::story::{NODE, PERSON, Story, uid};

/// Returns a story in which one attempt has failed, and the next is recorded with this wait.
fn waiting(retry: &Value, delay: &str, seconds: u64) -> Story {
    let mut story = Story::default();
    story.retrying("one", NODE, retry);
    story.try_in_vain("one", 1);
    story.try_again_with("one", "False", &json!({"delay": delay, "notBefore": story.later(seconds)}));
    story
}

#[test]
fn an_attempt_that_begins_before_its_time() {
    let mut story = waiting(&json!({"initialDelay": "1m"}), "1m0s", 60);
    story.begin_attempt("one", 2);
    assert_eq!(story.found(), ["2 attempt-early"]);
}

#[test]
fn a_wait_that_is_not_what_the_policy_says() {
    let jittered = json!({"initialDelay": "2s", "maxDelay": "7s", "jitter": true});
    for (retry, delay, seconds) in [
        (json!(true), "2s", 2),
        (json!(true), "999ms", 1),
        (json!(true), "1.001s", 2),
        (jittered.clone(), "1.999s", 2),
        (jittered, "3.001s", 4),
        (json!(true), "soon", 1),
    ] {
        assert_eq!(waiting(&retry, delay, seconds).found(), ["2 attempt-delay"], "{retry} {delay}");
    }
}

#[test]
fn a_wait_that_does_not_grow() {
    let mut story = waiting(&json!(true), "1s", 1);
    story.try_in_vain("one", 2);
    story.try_again("one", "False", 1);
    assert_eq!(story.found(), ["2 attempt-delay"]);
}

#[test]
fn a_wait_that_is_over_at_another_time_than_that_long_after_it_was_written() {
    let minute = json!({"initialDelay": "1m"});
    for (seconds, expected) in
        [(59, vec!["2 attempt-delay"]), (60, vec![]), (61, vec![]), (62, vec!["2 attempt-delay"])]
    {
        assert_eq!(waiting(&minute, "1m", seconds).found(), expected, "{seconds}");
    }
    let mut story = waiting(&minute, "1m", 60);
    story.correct("one", |status| status["attempts"][1]["notBefore"] = Value::Null);
    assert_eq!(story.found(), ["2 attempt-delay"], "no time at all");
}

#[test]
fn the_wait_after_a_refused_create_counts_from_its_end() {
    let refused = |seconds: u64| {
        let mut story = waiting(&json!(true), "1s", 1);
        // Time passes, but nothing is written to this execution.
        for _ in 0..5 {
            story.change(PERSON, &uid("one"), "", Value::Null, |_| {});
        }
        story.is_refused_attempt("one", 2, 2);
        let not_before = story.later(seconds);
        story.correct("one", |status| status["attempts"][2]["notBefore"] = json!(not_before));
        story.found()
    };
    assert_eq!(refused(1), Vec::<String>::new());
    assert_eq!(refused(60), ["2 attempt-delay"]);
}

#[test]
fn a_wait_that_is_written_anew() {
    for field in ["delay", "notBefore"] {
        let mut story = waiting(&json!(true), "1s", 1);
        let mut attempts = story.attempts("one");
        attempts[1][field] = if field == "delay" { json!("3s") } else { json!(story.later(5)) };
        story.write("one", &json!({"attempts": attempts}));
        assert_eq!(story.found(), ["2 attempt-delay"], "{field}");
    }
}

#[test]
fn the_first_attempt_with_a_wait() {
    let mut story = Story::default();
    story.retrying("one", NODE, &json!(true));
    story.create("one", 1);
    story.commit_attempt("one", 1);
    story.correct("one", |status| status["attempts"][0]["delay"] = json!("1s"));
    assert_eq!(story.found(), ["2 attempt-delay"]);
}

#[test]
fn what_somebody_else_writes_is_none_of_the_operators_faults() {
    let mut story = waiting(&json!(true), "1s", 1);
    let mut attempts = story.attempts("one");
    attempts[1]["delay"] = json!("3s");
    story.write_by(PERSON, "one", &json!({"attempts": attempts}));
    assert_eq!(story.found(), Vec::<String>::new());
}
