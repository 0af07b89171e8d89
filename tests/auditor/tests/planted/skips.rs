//! Invariant 5: a Skip requires its fact.

use serde_json::json;
use wfe_auditor::Policy;

use crate::story::{API, NODE, Plant, Story, uid};

#[test]
fn a_skip_before_the_other_commits() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.wfe("two", NODE);
    story.create("one", 1);
    story.skip("two", "one");
    story.commit("one", 1);
    assert_eq!(story.found(), ["5 no-fact"]);
}

#[test]
fn a_skip_for_a_run_that_was_over_before_the_execution_existed() {
    let mut story = Story::default();
    story.live("one", NODE, 1);
    story.wfe("two", NODE);
    story.skip("two", "one");
    assert_eq!(story.found_settled(), ["5 no-fact"]);
}

#[test]
fn a_skip_for_a_run_on_another_target() {
    let mut story = Story::default();
    story.wfe("one", API);
    story.start("one", 1);
    story.wfe("two", NODE);
    story.skip("two", "one");
    assert_eq!(story.found(), ["5 no-fact"]);
}

#[test]
fn a_skip_that_names_nobody() {
    for (reason, details) in [
        ("ResourceBusy", json!({})),
        ("ResourceBusy", json!({"conflictingWorkflow": {"name": ""}})),
        ("RecentlyRemediated", json!({})),
        ("ExhaustedRetries", json!({"conflictingWorkflow": {"name": "one"}})),
    ] {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.start("one", 1);
        story.wfe("two", NODE);
        story.skip_for("two", reason, &details);
        assert_eq!(story.found(), ["5 no-fact"], "{reason} {details}");
    }
}

#[test]
fn a_fact_that_was_true_at_some_moment_is_enough() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.start("one", 1);
    story.wfe("two", NODE);
    story.run_ends("one", 1, "True");
    story.complete("one");
    story.skip("two", "one");
    assert_eq!(story.found_settled(), Vec::<String>::new());
}

#[test]
fn a_skip_that_says_a_wrong_thing_of_its_fact() {
    for (field, value) in [
        ("workflowId", json!("another")),
        ("startedAt", json!("2020-01-01T00:00:00Z")),
        ("targetResource", json!("node/other")),
    ] {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.start("one", 1);
        story.wfe("two", NODE);
        story.skip("two", "one");
        let details = &mut story.changes.last_mut().unwrap().object["status"]["skipDetails"];
        details["conflictingWorkflow"][field] = value;
        assert_eq!(story.found(), ["5 wrong-fact"], "{field}");
    }
}

#[test]
fn a_skip_for_a_remediation_that_was_none() {
    let planted: [(&str, Plant); 5] = [
        ("another outcome", |recent| recent["outcome"] = json!("Failed")),
        ("another time", |recent| recent["completedAt"] = json!("2020-01-01T00:00:00Z")),
        ("another name", |recent| recent["name"] = json!("nobody")),
        ("another namespace", |recent| recent["namespace"] = json!("elsewhere")),
        ("another name, as an earlier version wrote it", |recent| {
            (recent["namespace"], recent["name"]) = (json!(null), json!("ops/nobody"));
        }),
    ];
    for (what, plant) in planted {
        let mut story = Story::by(Policy::default());
        story.live("one", NODE, 1);
        story.wfe("two", NODE);
        story.await_time(4 * 60, "one");
        let mut recent = story.recent("one");
        recent["cooldownRemaining"] = json!("1m0s");
        let mut right = story.clone();
        let mut earlier = story.clone();
        right.skip_for("two", "RecentlyRemediated", &json!({"recentRemediation": recent}));
        assert_eq!(right.found_settled(), Vec::<String>::new());
        recent.as_object_mut().unwrap().remove("namespace");
        earlier.skip_for("two", "RecentlyRemediated", &json!({"recentRemediation": recent}));
        assert_eq!(earlier.found_settled(), Vec::<String>::new(), "as an earlier version wrote it");
        plant(&mut recent);
        story.skip_for("two", "RecentlyRemediated", &json!({"recentRemediation": recent}));
        assert_eq!(story.found_settled(), ["5 no-fact"], "{what}");
    }
}

#[test]
fn a_holder_whose_namespace_was_not_recorded_may_have_committed() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.wfe("two", NODE);
    let elsewhere = "kubernaut.ai/workflow-execution";
    let created = story.changes.iter_mut().find(|change| change.kind == "PipelineRun").unwrap();
    created.object["metadata"]["annotations"][elsewhere] = json!("elsewhere/one");
    story.changes.retain(|change| change.object["metadata"]["name"] != "one");
    let conflict = json!({"name": "elsewhere/one", "workflowId": "restart", "targetResource": NODE});
    story.requests.clear();
    let name = "two";
    let mut skipped = story.object(&uid(name)).clone();
    skipped["status"] = json!({"phase": "Skipped", "target": NODE, "completionTime": "t", "skipDetails": {
        "reason": "ResourceBusy", "skippedAt": "t", "conflictingWorkflow": conflict}});
    let mut change = story.changes.last().unwrap().clone();
    change.change = wfe_auditor::ChangeType::Modified;
    change.resource_version += 1;
    change.object = skipped;
    story.changes.push(change);
    let report = story.report(false);
    assert!(report.is_clean(), "{report}");
    assert!(report.unjudged.iter().any(|what| what.contains("not recorded")), "{report}");
}
