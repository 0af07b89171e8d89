//! Tests how each answer of the API server affects the facts that retries depend on. A fact is confirmed only by an
//! object that proves it. After any other answer nothing is written.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::name::Uid;
use wfe_tekton::Defaults;

use super::super::played::{Answer, RUNS, failures, performer};
use super::*;

fn holder() -> ExecutionId {
    ExecutionId { namespace: "ops".into(), name: "holder".into(), uid: Uid::new("u-1") }
}

fn common(strangers: &[&str]) -> Common {
    Common {
        target: TargetName::parse("node/a").ok(),
        defaults: Defaults {
            execution_namespace: RUNS.to_owned(),
            service_account: "runner".to_owned(),
            timeout: Duration::from_mins(30),
        },
        strangers: strangers.iter().map(|uid| Uid::new(uid)).collect::<BTreeSet<Uid>>(),
        now: Time::UNIX_EPOCH,
    }
}

/// Confirms one fact against an API server that gives `answer` to each request. Returns `holds`, another result, or the
/// label of the error.
async fn confirmed(
    fact: Fact,
    strangers: &[&str],
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> &'static str {
    let (performer, _) = performer(answer);
    match performer.confirm(&common(strangers), &[fact]).await {
        Ok(learned) if learned.is_empty() => "holds",
        Ok(_) => "something was learned",
        Err(error) => error.label(),
    }
}

fn execution(uid: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
        "metadata": {"namespace": "ops", "name": "holder", "uid": uid, "resourceVersion": "7"},
        "spec": {"targetResource": "node/a", "retry": 3},
        "status": status,
    })
}

/// Returns a status in this phase. An execution with retries waits for its second attempt, or has begun it; `second` is
/// that attempt.
fn status(phase: &str, second: &Value) -> Value {
    json!({
        "phase": phase, "startTime": "2027-01-01T00:00:00Z",
        "pipelineRunRef": {"name": "wfe-x-1", "uid": "r-1"},
        "attempts": [{"attempt": 1, "completionTime": "2027-01-01T00:00:09Z", "started": "False"}, second],
    })
}

fn waiting() -> Value {
    status("Running", &json!({"attempt": 2, "notBefore": "2027-01-01T00:00:11Z"}))
}

fn begun() -> Value {
    status("Running", &json!({"attempt": 2, "startTime": "2027-01-01T00:00:11Z", "pipelineRun": "wfe-x-2"}))
}

#[tokio::test(start_paused = true)]
async fn an_execution_holds_its_target_where_it_is_read_as_running_and_a_stranger_where_it_waits() {
    let ended = |phase: &str| status(phase, &json!({"attempt": 2, "notBefore": "2027-01-01T00:00:11Z"}));
    let no_attempts = json!({"phase": "Running", "startTime": "2027-01-01T00:00:00Z"});
    for (object, watched, stranger) in [
        (execution("u-1", &waiting()), "holds", "holds"),
        (execution("u-1", &begun()), "holds", "refuted"),
        (execution("u-1", &no_attempts), "holds", "refuted"),
        (execution("u-1", &ended("Completed")), "refuted", "refuted"),
        (execution("u-1", &ended("Failed")), "refuted", "refuted"),
        (execution("u-1", &ended("Skipped")), "refuted", "refuted"),
        (execution("u-1", &ended("Pending")), "refuted", "refuted"),
        (execution("u-1", &ended("Odd")), "refuted", "refuted"),
        (execution("u-1", &ended("")), "refuted", "refuted"),
        (execution("u-1", &json!(null)), "refuted", "refuted"),
        (execution("u-1", &json!([7])), "refuted", "refuted"),
        (execution("u-2", &waiting()), "refuted", "refuted"),
        (json!({}), "refuted", "refuted"),
        (json!({"metadata": null, "status": {"phase": "Running"}}), "refuted", "refuted"),
    ] {
        for (strangers, expected) in [(&[][..], watched), (&["u-1"][..], stranger)] {
            let answer = Answer::found(object.clone());
            let found = confirmed(Fact::Holds(holder()), strangers, move |_| answer.clone()).await;
            assert_eq!(found, expected, "{strangers:?} {object:#}");
        }
    }
    let gone = |_: &str| Answer::refused(404, "NotFound");
    assert_eq!(confirmed(Fact::Holds(holder()), &[], gone).await, "refuted");
    for (answer, label) in failures() {
        let shown = format!("{answer:?}");
        assert_eq!(confirmed(Fact::Holds(holder()), &["u-1"], move |_| answer.clone()).await, label, "{shown}");
    }
}

/// Returns a descendant that a run of this execution has left.
fn left(kind: &str, version: &str, owner: &str, target: &str, status: &Value) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {
            "namespace": RUNS, "name": format!("{kind}-of-{owner}").to_lowercase(), "uid": format!("{kind}-{owner}"),
            "annotations": {
                "kubernaut.ai/target-resource": target,
                "kubernaut.ai/workflow-execution": format!("ops/{owner}"),
                "kubernaut.ai/workflow-execution-uid": owner,
            },
        },
        "status": status,
    })
}

fn pod(owner: &str, target: &str, status: &Value) -> Value {
    left("Pod", "v1", owner, target, status)
}

/// Answers a list of pods with these pods, and any other list with no objects.
fn only_pods(pods: Vec<Value>) -> impl Fn(&str) -> Answer + Send + Sync + 'static {
    move |uri| if uri.contains("/pods?") { Answer::page(&pods, "") } else { Answer::page(&[], "") }
}

fn of_all() -> Fact {
    Fact::DrainedOfAll(holder())
}

#[tokio::test(start_paused = true)]
async fn a_target_has_drained_of_all_where_each_kind_was_listed_and_nothing_is_unfinished() {
    let (running, done) = (json!({"phase": "Running"}), json!({"phase": "Succeeded"}));
    for (pods, expected) in [
        (vec![], "holds"),
        (vec![pod("u-1", "node/a", &done), pod("u-2", "node/a", &json!({"phase": "Failed"}))], "holds"),
        (vec![pod("u-1", "node/a", &running)], "refuted"),
        (vec![pod("u-2", "node/a", &running)], "refuted"),
        // None of these statuses proves that the pod has finished.
        (vec![pod("u-1", "node/a", &json!(null))], "refuted"),
        (vec![pod("u-1", "node/a", &json!({"phase": 7}))], "refuted"),
        (vec![pod("u-1", "node/a", &json!({"phase": "Odd"}))], "refuted"),
        // A pod of another target whose name leads to the same label value.
        (vec![pod("u-1", "node/b", &running)], "holds"),
    ] {
        let shown = format!("{pods:?}");
        assert_eq!(confirmed(of_all(), &[], only_pods(pods)).await, expected, "{shown}");
    }
    // `Drained` ignores what the execution itself has left; no other fact does.
    let own = only_pods(vec![pod("u-1", "node/a", &running)]);
    assert_eq!(confirmed(Fact::Drained(holder()), &[], own).await, "holds");
}

#[tokio::test(start_paused = true)]
async fn every_kind_that_a_run_leaves_is_listed_to_its_last_page() {
    let unfinished = json!({"conditions": [{"type": "Succeeded", "status": "Unknown"}]});
    for (plural, object) in [
        ("taskruns", left("TaskRun", "tekton.dev/v1", "u-1", "node/a", &unfinished)),
        ("customruns", left("CustomRun", "tekton.dev/v1beta1", "u-1", "node/a", &unfinished)),
        ("pipelineruns", left("PipelineRun", "tekton.dev/v1", "u-1", "node/a", &unfinished)),
        ("pods", pod("u-1", "node/a", &json!({"phase": "Pending"}))),
    ] {
        let listed = object.clone();
        let on_the_last_page = move |uri: &str| match (uri.contains(plural), uri.contains("continue=more")) {
            (true, false) => Answer::page(&[], "more"),
            (true, true) => Answer::page(std::slice::from_ref(&listed), ""),
            (false, _) => Answer::page(&[], ""),
        };
        assert_eq!(confirmed(of_all(), &[], on_the_last_page).await, "refuted", "{plural}");
        for (answer, label) in failures() {
            let shown = format!("{plural} {answer:?}");
            let fails = move |uri: &str| if uri.contains(plural) { answer.clone() } else { Answer::page(&[], "") };
            assert_eq!(confirmed(of_all(), &[], fails).await, label, "{shown}");
        }
        // The token of the next page has expired, or the kind is not installed.
        for (code, reason) in [(410, "Expired"), (404, "NotFound")] {
            let fails = move |uri: &str| match (uri.contains(plural), uri.contains("continue=more")) {
                (true, false) => Answer::page(&[], "more"),
                (true, true) => Answer::refused(code, reason),
                (false, _) => Answer::page(&[], ""),
            };
            assert_eq!(confirmed(of_all(), &[], fails).await, "refused", "{plural} {code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fact_that_does_not_hold_ends_the_reads() {
    let pods = vec![pod("u-1", "node/a", &json!({"phase": "Running"}))];
    let (performer, asked) = performer(only_pods(pods));
    let facts = [of_all(), Fact::Holds(holder())];
    let refuted = performer.confirm(&common(&[]), &facts).await;
    assert!(matches!(refuted, Err(PerformError::Refuted { .. })), "{refuted:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 4, "one list of each kind, and no execution is read");
}
