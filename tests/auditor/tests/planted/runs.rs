//! Invariants 1, 2 and 4: which execution runs at which time.

use serde_json::{Value, json};

use crate::story::{API, NODE, OPERATOR, PERSON, Story, run};

#[test]
fn two_released_runs_at_once() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", NODE);
    story.start("one", 1);
    story.start("two", 2);
    story.run_ends("one", 1, "True");
    story.complete("one");
    story.run_ends("two", 2, "True");
    story.complete("two");
    assert_eq!(story.found_settled(), ["1 overlap"]);
    let report = story.report(true);
    let violation = &report.violations[0];
    assert_eq!(violation.target, NODE);
    assert_eq!(violation.objects[0].uid, run("two", 2), "the offender first");
    assert_eq!(
        violation.text,
        "PipelineRun kubernaut-workflows/wfe-ac45b7d6911e97a5-2 was released while \
         PipelineRun kubernaut-workflows/wfe-ac45b7d6911e97a5-1 was released and unfinished"
    );
}

#[test]
fn two_spellings_of_one_target_are_one_and_two_targets_are_two() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", API);
    story.start("one", 1);
    story.start("two", 1);
    assert_eq!(story.found(), Vec::<String>::new());
}

#[test]
fn a_run_that_is_released_while_a_pod_of_the_earlier_one_is_left() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.work("one", 1);
    story.task_ends("one", 1);
    story.run_ends("one", 1, "True");
    story.complete("one");
    story.live("two", NODE, 2);
    story.pod_ends("one", 1);
    assert_eq!(story.found_settled(), ["1 drain"]);
}

#[test]
fn a_deleted_run_drains_too() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.work("one", 1);
    story.delete_wfe("one");
    story.remove(PERSON, &run("one", 1), &Value::Null);
    story.live("two", NODE, 2);
    story.pod_ends("one", 1);
    story.task_ends("one", 1);
    assert_eq!(story.found_settled(), ["1 drain"]);
}

#[test]
fn an_earlier_run_that_makes_something_late() {
    let mut story = Story::default();
    story.live("one", NODE, 1);
    story.wfe("two", NODE);
    story.start("two", 2);
    story.remove("gc", "run-one-1-pod", &Value::Null);
    story.pod("one", 1);
    story.changes.last_mut().unwrap().object["metadata"]["uid"] = json!("late");
    story.requests.last_mut().unwrap().response = Value::Null;
    assert_eq!(story.found(), ["1 drain"]);
}

#[test]
fn two_released_runs_of_one_execution() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.run_ends("one", 1, "False");
    story.start("one", 2);
    story.run_ends("one", 2, "True");
    story.complete("one");
    assert_eq!(story.found_settled(), ["2 second-run"]);
}

#[test]
fn a_skipped_one_that_runs_later() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", NODE);
    story.create("one", 1);
    story.create("two", 2);
    story.commit("one", 1);
    story.skip("two", "one");
    story.release("one", 1);
    story.run_ends("one", 1, "True");
    story.complete("one");
    let mut by_operator = story.clone();
    story.release_by(PERSON, "two", 2);
    story.run_ends("two", 2, "True");
    assert_eq!(story.found_settled(), ["2 ran-after-all"]);
    by_operator.release("two", 2);
    assert_eq!(by_operator.found(), ["2 ran-after-all", "8 uncommitted"]);
}

#[test]
fn one_that_failed_before_it_had_a_run_and_had_run() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.release_by(PERSON, "one", 1);
    story.run_ends("one", 1, "True");
    story.fail("one", "Forbidden", false);
    assert_eq!(story.found_settled(), ["2 ran-after-all"]);
}

#[test]
fn one_that_says_that_nothing_ran_and_a_step_did() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.work("one", 1);
    story.work_ends("one", 1, "False");
    story.fail("one", "ImagePullBackOff", false);
    assert_eq!(story.found_settled(), ["2 steps-ran"]);
}

#[test]
fn a_task_run_tells_that_a_step_ran_unless_tekton_made_its_end_up() {
    for (state, expected) in [
        (json!({"terminated": {"exitCode": 1, "containerID": "containerd://1"}}), vec!["2 steps-ran"]),
        (json!({"running": {"startedAt": "now"}}), vec!["2 steps-ran"]),
        (json!({"terminated": {"exitCode": 1}}), vec![]),
        (json!({"waiting": {"reason": "ImagePullBackOff"}}), vec![]),
    ] {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.start("one", 1);
        story.task("one", 1);
        story.change("tekton", "run-one-1-task", "status", Value::Null, |task| {
            task["status"] = json!({"retriesStatus": [{"steps": [state.clone()]}]});
        });
        story.task_ends("one", 1);
        story.run_ends("one", 1, "False");
        story.fail("one", "ImagePullBackOff", false);
        assert_eq!(story.found_settled(), expected, "{state}");
    }
}

#[test]
fn a_run_that_is_cancelled_while_pending_never_ran() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.cancel("one", 1);
    story.run_ends("one", 1, "False");
    story.fail("one", "Unknown", false);
    assert_eq!(story.found_settled(), Vec::<String>::new());
}

#[test]
fn a_turn_while_another_run_is_committed() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", NODE);
    story.create("one", 1);
    story.create("two", 2);
    story.commit("one", 1);
    story.commit("two", 2);
    story.release("one", 1);
    story.run_ends("one", 1, "True");
    story.complete("one");
    story.release("two", 2);
    story.run_ends("two", 2, "True");
    story.complete("two");
    assert_eq!(story.found_settled(), ["4 busy"]);
}

#[test]
fn a_turn_while_the_target_drains() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.work("one", 1);
    story.task_ends("one", 1);
    story.run_ends("one", 1, "True");
    story.complete("one");
    story.wfe("two", NODE);
    story.create("two", 2);
    story.commit("two", 2);
    story.pod_ends("one", 1);
    story.release("two", 2);
    story.run_ends("two", 2, "True");
    story.complete("two");
    assert_eq!(story.found_settled(), ["4 busy"]);
}

#[test]
fn a_turn_before_a_run_that_came_first_is_out_of_the_way() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", NODE);
    story.create("one", 1);
    story.create("two", 2);
    story.commit("two", 2);
    story.delete_run("one", 1);
    story.skip("one", "two");
    story.release("two", 2);
    story.run_ends("two", 2, "True");
    story.complete("two");
    assert_eq!(story.found_settled(), ["4 order"]);
}

#[test]
fn a_turn_past_a_pending_run_that_is_being_deleted_and_held_by_a_finalizer() {
    let past = |let_go_before: bool| {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.wfe("two", NODE);
        story.create("one", 1);
        if let_go_before {
            story.release_by(PERSON, "one", 1);
        }
        story.change(PERSON, &run("one", 1), "", Value::Null, |run| {
            run["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:05Z");
        });
        story.create("two", 2);
        story.commit("two", 2);
        story.found()
    };
    assert_eq!(past(false), Vec::<String>::new(), "it never starts");
    assert_eq!(past(true), ["4 busy"], "it may run on");
}

#[test]
fn a_turn_on_a_target_that_is_none() {
    let mut story = Story::default();
    story.wfe("one", "nonsense");
    story.create("one", 1);
    story.commit("one", 1);
    // The status does not contain a target that is invalid.
    story.changes.last_mut().unwrap().object["status"].as_object_mut().unwrap().remove("target");
    assert_eq!(story.found(), ["4 unusable-target"]);
}

#[test]
fn a_commit_to_a_run_that_somebody_cancelled_while_it_was_pending_is_none_of_the_operators_faults() {
    for (user, expected) in [(PERSON, Vec::new()), (OPERATOR, vec!["8 commit".to_owned()])] {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.create("one", 1);
        let cancelled = json!({"spec": {"status": "Cancelled"}});
        story.change(user, &run("one", 1), "", cancelled, |run| run["spec"]["status"] = json!("Cancelled"));
        story.run_ends("one", 1, "False");
        story.commit("one", 1);
        assert_eq!(story.found().into_iter().filter(|it| it.starts_with('8')).collect::<Vec<_>>(), expected, "{user}");
    }
}
