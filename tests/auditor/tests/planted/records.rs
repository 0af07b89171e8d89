//! Invariants 3 and 6: how a status may change, and what may be left at the end.

use serde_json::{Value, json};

use crate::story::{API, NODE, PERSON, Plant, Story, run};

/// Returns a story with a Running execution whose run is released.
fn running() -> Story {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story
}

fn completed() -> Story {
    let mut story = running();
    story.run_ends("one", 1, "True");
    story.complete("one");
    story
}

#[test]
fn a_phase_that_goes_back_or_jumps_or_is_none() {
    for phase in [json!("Running"), json!("Pending"), json!("Failed"), json!("Skipped"), json!("Done"), Value::Null] {
        let mut story = completed();
        story.write("one", &json!({"phase": phase}));
        assert_eq!(story.found(), ["3 phase"], "Completed to {phase}");
    }
    for (phase, expected) in
        [("Pending", vec!["3 phase"]), ("Done", vec!["3 phase"]), ("Skipped", vec!["2 ran-after-all", "3 phase"])]
    {
        let mut story = running();
        story.write("one", &json!({"phase": phase}));
        assert_eq!(story.found(), expected, "Running to {phase}");
    }
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.write("one", &json!({"phase": "Pending", "target": NODE}));
    story.write("one", &json!({"phase": "Completed"}));
    assert_eq!(story.found(), ["3 phase"]);
}

#[test]
fn a_terminal_status_that_changes() {
    for (field, value) in [
        ("completionTime", json!("2027-01-01T00:00:00Z")),
        ("startTime", Value::Null),
        ("pipelineRunRef", Value::Null),
        ("duration", json!("2s")),
        ("runSequence", json!(9)),
        ("consecutiveFailures", json!(1)),
        ("nextAllowedExecution", json!("2027-01-01T00:00:00Z")),
        ("attempts", json!([])),
    ] {
        let mut story = completed();
        story.write("one", &json!({field: value}));
        assert_eq!(story.found(), ["3 final"], "{field}");
    }
    let mut story = completed();
    story.write("one", &json!({"clearance": {"clearedBy": "sre"}, "conditions": [], "observedGeneration": 3}));
    assert_eq!(story.found_settled(), Vec::<String>::new());
}

#[test]
fn what_is_set_once_changes() {
    for (field, value) in [("startTime", json!("2027-01-01T00:00:00Z")), ("pipelineRunRef", Value::Null)] {
        let mut story = running();
        story.write("one", &json!({field: value}));
        assert_eq!(story.found(), ["3 fixed"], "{field}");
    }
}

#[test]
fn a_status_that_does_not_fit_its_phase() {
    let planted: [(&str, Plant); 8] = [
        ("no failureDetails", |status| status["failureDetails"] = Value::Null),
        ("skipDetails of a Failed one", |status| status["skipDetails"] = json!({})),
        ("no completionTime", |status| status["completionTime"] = Value::Null),
        ("an eighth reason", |status| status["failureDetails"]["reason"] = json!("Tired")),
        ("no review", |status| status["failureDetails"]["requiresManualReview"] = json!(false)),
        ("another target", |status| status["target"] = json!("node/other")),
        ("no target", |status| status["target"] = Value::Null),
        ("a review of nothing", |status| status["failureDetails"]["wasExecutionFailure"] = Value::Null),
    ];
    for (what, plant) in planted {
        let mut story = running();
        story.run_ends("one", 1, "False");
        story.fail("one", "Unknown", true);
        plant(&mut story.changes.last_mut().unwrap().object["status"]);
        assert_eq!(story.found(), ["3 shape"], "{what}");
    }
}

#[test]
fn a_skipped_status_that_does_not_fit() {
    let planted: [(&str, Plant); 4] = [
        ("a start", |status| status["startTime"] = json!("2026-01-01T00:00:00Z")),
        ("a duration", |status| status["duration"] = json!("0s")),
        ("another time", |status| status["completionTime"] = json!("2027-01-01T00:00:00Z")),
        ("a fifth reason", |status| status["skipDetails"]["reason"] = json!("Tired")),
    ];
    for (what, plant) in planted {
        let mut story = running();
        story.wfe("two", NODE);
        story.skip("two", "one");
        plant(&mut story.changes.last_mut().unwrap().object["status"]);
        assert_eq!(story.found(), ["3 shape"], "{what}");
    }
}

#[test]
fn a_running_status_without_a_run() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.write("one", &json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "target": NODE}));
    assert_eq!(story.found(), ["3 shape"]);
}

#[test]
fn what_a_person_writes_is_not_held_against_the_operator() {
    let mut story = completed();
    story.write_by(PERSON, "one", &json!({"phase": "Running"}));
    assert_eq!(story.found(), Vec::<String>::new());
    // The author of the write is unknown.
    story.requests.pop();
    assert_eq!(story.found(), ["3 phase"]);
}

#[test]
fn an_execution_that_never_ends() {
    for phase in [None, Some("Pending")] {
        let mut story = Story::default();
        story.live("elsewhere", API, 1);
        story.wfe("one", NODE);
        if let Some(phase) = phase {
            story.write("one", &json!({"phase": phase, "target": NODE}));
        }
        assert_eq!(story.found(), Vec::<String>::new(), "not settled");
        assert_eq!(story.found_settled(), ["6 undecided"]);
        // Consequences of the undecided execution are not reported separately.
        story.create("one", 1);
        assert_eq!(story.found_settled(), ["6 undecided"]);
    }
    assert_eq!(running().found_settled(), ["6 undecided"]);
}

#[test]
fn a_pending_run_that_is_left_over() {
    let mut gone = Story::default();
    gone.wfe("one", NODE);
    gone.create("one", 1);
    gone.delete_wfe("one");
    assert_eq!(gone.found_settled(), ["6 leftover"], "the owner is gone");

    let mut ended = completed();
    ended.create("one", 2);
    assert_eq!(ended.found_settled(), ["6 leftover"], "the owner has ended");

    let mut other = running();
    other.create("one", 2);
    assert_eq!(other.found_settled(), ["6 undecided", "6 leftover"], "the owner is committed to another");
}

#[test]
fn a_run_that_goes_on_without_its_owner() {
    let mut story = running();
    story.delete_wfe("one");
    assert_eq!(story.found_settled(), ["6 abandoned"]);
    story.remove(PERSON, &run("one", 1), &Value::Null);
    assert_eq!(story.found_settled(), Vec::<String>::new());
}
