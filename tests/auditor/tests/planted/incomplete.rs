//! Recordings with gaps. They prove nothing, and the report says so.

use serde_json::{Value, json};
use wfe_auditor::ChangeType;

use crate::story::{NODE, OPERATOR, PERSON, Story, run, uid};

fn gaps(story: &Story) -> Vec<String> {
    story.report(true).gaps
}

fn one_gap(story: &Story, expected: &str) {
    let gaps = gaps(story);
    assert!(gaps.len() == 1 && gaps[0].contains(expected), "{gaps:?}");
}

fn told() -> Story {
    let mut story = Story::default();
    story.live("one", NODE, 1);
    story
}

#[test]
fn an_object_that_was_there_before() {
    for kind in ["WorkflowExecution", "PipelineRun", "TaskRun", "Pod"] {
        let mut story = told();
        let first = story.changes.iter_mut().find(|change| change.kind == kind).unwrap();
        first.change = ChangeType::Existing;
        one_gap(&story, "was there before the recording began");
    }
}

#[test]
fn an_object_whose_creation_is_missing() {
    let mut story = told();
    let first = story.changes.iter().position(|change| change.kind == "PipelineRun").unwrap();
    story.changes.remove(first);
    let gaps = gaps(&story);
    assert!(gaps.iter().any(|gap| gap.contains("was never seen to be created")), "{gaps:?}");
}

#[test]
fn a_change_that_is_missing() {
    let mut story = told();
    let release = story
        .changes
        .iter()
        .position(|change| change.kind == "PipelineRun" && change.object["spec"] == json!({}))
        .unwrap();
    let version = story.changes[release].resource_version;
    story.changes.remove(release);
    // The audit log contains this write.
    one_gap(&story, &format!("had resourceVersion {version} by a patch of {OPERATOR}"));
}

#[test]
fn a_change_of_a_spec_that_is_missing_shows_in_the_count_of_these() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.changes.pop();
    story.cancel("one", 1);
    story.requests.pop();
    story.requests.pop();
    one_gap(&story, "has changed unseen");
}

#[test]
fn an_object_that_is_missing_altogether_is_known_by_the_audit_log() {
    let mut story = told();
    story.live("two", NODE, 2);
    story.changes.retain(|change| change.object["metadata"]["uid"] != uid("one"));
    let gaps = gaps(&story);
    // The create, the commit and the completion of the missing execution.
    assert!(gaps.len() == 3 && gaps.iter().all(|gap| gap.contains("which the watch does not show")), "{gaps:?}");
}

#[test]
fn a_deletion_that_is_missing() {
    let mut story = told();
    story.delete_wfe("one");
    story.changes.pop();
    story.wfe("one", NODE);
    story.changes.last_mut().unwrap().object["metadata"]["uid"] = json!("another");
    story.requests.pop();
    one_gap(&story, "its deletion before that is missing");
}

#[test]
fn a_run_that_is_missing_under_what_was_made_from_it() {
    let mut story = told();
    story.changes.retain(|change| change.object["metadata"]["uid"] != run("one", 1));
    story.requests.clear();
    let gaps = gaps(&story);
    assert!(gaps.iter().filter(|gap| gap.contains("a run that the recording does not have")).count() == 2, "{gaps:?}");
}

#[test]
fn a_life_that_goes_on_after_its_end() {
    let mut story = told();
    story.delete_wfe("one");
    let mut again = story.changes.last().unwrap().clone();
    again.change = ChangeType::Modified;
    again.resource_version += 1;
    story.changes.push(again);
    one_gap(&story, "after its deletion");
}

#[test]
fn an_object_without_a_uid() {
    let mut story = told();
    let mut change = story.changes[0].clone();
    change.object = Value::Null;
    story.changes.push(change);
    one_gap(&story, "without a uid");
}

#[test]
fn an_audit_log_without_the_operator_or_without_bodies() {
    let mut silent = told();
    silent.requests.retain(|request| request.user != OPERATOR);
    one_gap(&silent, "has no request of");
    let mut bodiless = told();
    for request in &mut bodiless.requests {
        (request.request, request.response) = (Value::Null, Value::Null);
    }
    one_gap(&bodiless, "has no bodies of 4 writes");
    assert!(bodiless.report(true).violations.is_empty());
}

#[test]
fn what_others_do_with_their_own_objects_may_be_missing() {
    let mut story = told();
    let object = json!({"kind": "PipelineRun", "metadata": {"name": "build", "namespace": "x"}, "spec": {}});
    story.add(PERSON, object, "stranger");
    story.changes.last_mut().unwrap().change = ChangeType::Existing;
    assert_eq!(gaps(&story), Vec::<String>::new());
    assert_ne!(story.object(&uid("one")), &Value::Null);
}
