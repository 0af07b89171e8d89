//! Invariant 8: commits, numbers, releases and outcomes.

use serde_json::{Value, json};

use crate::story::{API, NODE, PERSON, Story, run};

#[test]
fn a_commit_to_a_run_of_another_execution() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", NODE);
    story.create("two", 1);
    story.commit_to("one", "two", 1, 1);
    assert_eq!(story.found(), ["8 commit"]);
}

#[test]
fn a_commit_to_a_run_that_never_was() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.commit("one", 1);
    assert_eq!(story.found(), ["8 commit"]);
    let text = &story.report(false).violations[0].text;
    assert!(text.ends_with("which never was"), "{text}");
}

#[test]
fn a_commit_to_a_run_that_is_not_ours() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    let mut object = story.run_object("one", 1);
    object["metadata"]["annotations"] = json!({});
    story.add(PERSON, object, &run("one", 1));
    story.commit("one", 1);
    assert_eq!(story.found(), ["8 commit"]);
    let text = &story.report(false).violations[0].text;
    assert!(text.ends_with("which is not ours"), "{text}");
}

#[test]
fn a_commit_before_the_run_exists() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.commit("one", 1);
    story.create("one", 1);
    assert_eq!(story.found(), ["8 commit"]);
}

#[test]
fn a_commit_to_a_run_that_is_finished_or_gone() {
    let mut finished = Story::default();
    finished.wfe("one", NODE);
    finished.create("one", 1);
    finished.cancel("one", 1);
    finished.run_ends("one", 1, "False");
    finished.commit("one", 1);
    assert_eq!(finished.found(), ["8 commit"]);

    let mut gone = Story::default();
    gone.wfe("one", NODE);
    gone.create("one", 1);
    gone.delete_run("one", 1);
    gone.commit("one", 1);
    assert_eq!(gone.found(), ["8 commit"]);
    // A person may delete the run at any moment, which no precondition can prevent.
    gone.requests.iter_mut().find(|request| request.verb == "delete").unwrap().user = PERSON.to_owned();
    assert_eq!(gone.found(), Vec::<String>::new());
}

#[test]
fn a_commit_that_calls_its_run_by_another_name() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.commit("one", 1);
    story.changes.last_mut().unwrap().object["status"]["pipelineRunRef"]["name"] = json!("wfe-ac45b7d6911e97a5-2");
    assert_eq!(story.found(), ["8 commit"]);
}

#[test]
fn a_commit_to_a_run_in_the_chain_of_another_target() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    let other = "wfe-cf0cc089293b1165-1";
    let mut object = story.run_object("one", 1);
    object["metadata"]["name"] = json!(other);
    story.add(crate::story::OPERATOR, object, &run("one", 1));
    story.commit("one", 1);
    story.changes.last_mut().unwrap().object["status"]["pipelineRunRef"]["name"] = json!(other);
    assert_eq!(story.found(), ["8 commit"]);
}

#[test]
fn a_number_that_is_not_the_runs() {
    let mut status = Story::default();
    status.wfe("one", NODE);
    status.create("one", 1);
    status.commit_to("one", "one", 1, 2);
    assert_eq!(status.found(), ["8 number"]);

    for label in [json!("2"), Value::Null] {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.create("one", 1);
        story.changes.last_mut().unwrap().object["metadata"]["labels"]["kubernaut.ai/run-sequence"] = label;
        assert_eq!(story.found(), ["8 number"]);
    }
}

#[test]
fn numbers_that_do_not_grow() {
    let mut story = Story::default();
    story.live("one", NODE, 5);
    story.live("elsewhere", API, 9);
    let mut withdrawn = story.clone();
    story.live("two", NODE, 3);
    assert_eq!(story.found_settled(), ["8 order"]);

    // A run that is created late and then withdrawn is not a violation.
    withdrawn.wfe("two", NODE);
    withdrawn.create("two", 3);
    withdrawn.delete_run("two", 3);
    withdrawn.start("two", 6);
    assert_eq!(withdrawn.found(), Vec::<String>::new());
}

#[test]
fn the_number_of_a_run_that_is_gone_is_known_by_its_owner() {
    let mut story = Story::default();
    story.live("one", NODE, 5);
    story.delete_run("one", 5);
    let mut forgotten = story.clone();
    story.live("two", NODE, 5);
    assert_eq!(story.found_settled(), ["8 order"]);
    forgotten.delete_wfe("one");
    forgotten.live("two", NODE, 5);
    assert_eq!(forgotten.found_settled(), Vec::<String>::new());
}

#[test]
fn a_release_before_the_commit() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.release("one", 1);
    assert_eq!(story.found(), ["8 uncommitted"]);
    story.commit("one", 1);
    assert_eq!(story.found(), ["8 uncommitted"]);
}

#[test]
fn a_run_that_is_created_released() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    let mut object = story.run_object("one", 1);
    object["spec"] = json!({});
    story.add(crate::story::OPERATOR, object, &run("one", 1));
    assert_eq!(story.found(), ["7 create", "8 uncommitted"]);
}

#[test]
fn a_released_run_whose_execution_never_was() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    let mut object = story.run_object("one", 1);
    object["metadata"]["annotations"]["kubernaut.ai/workflow-execution-uid"] = json!("uid-nobody");
    story.add(crate::story::OPERATOR, object, &run("nobody", 1));
    story.release("nobody", 1);
    assert_eq!(story.found(), ["8 uncommitted"]);
}

#[test]
fn completed_before_the_run_has_succeeded() {
    for (how, expected) in [("True", vec![]), ("False", vec!["8 outcome"])] {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.start("one", 1);
        story.run_ends("one", 1, how);
        story.complete("one");
        assert_eq!(story.found_settled(), expected, "{how}");
    }
    let mut early = Story::default();
    early.wfe("one", NODE);
    early.start("one", 1);
    early.complete("one");
    early.run_ends("one", 1, "True");
    assert_eq!(early.found_settled(), ["8 outcome"]);
}
