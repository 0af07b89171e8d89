use FailureReason::{
    ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
};
use serde_json::{Value, json};

use super::*;
use crate::testing::{Owned, Story, World, stories, story};

fn found(name: &str) -> Findings {
    examined(&story(name).follow(), &story(name))
}

fn examined((evidence, world): &(Evidence, World), story: &Story) -> Findings {
    world.remains(&story.run, |remains| examine(evidence, remains))
}

/// A task as the status will name it: `name@index/step=exit code`.
fn task(findings: &Findings) -> String {
    let Some(task) = &findings.cause.task else { return String::new() };
    let step = task.step.as_deref().map(|step| format!("/{step}")).unwrap_or_default();
    let code = task.exit_code.map(|code| format!("={code}")).unwrap_or_default();
    format!("{}@{}{step}{code}", task.name, task.index)
}

/// Of each run that failed: why, which task, whether somebody cancelled it, how many tasks were done.
const CAUSES: &[(&str, FailureReason, &str, bool, u32)] = &[
    ("bad-result-reference", ConfigurationError, "", false, 0),
    ("both-fail", Unknown, "apply@1/run=1", false, 3),
    ("cancelled-finally", Unknown, "check@0", true, 2),
    ("cancelled-running", Unknown, "apply@1", true, 2),
    ("cancelled-waiting", Unknown, "check@0", true, 1),
    ("custom-run-cancelled", Unknown, "check@0", true, 0),
    ("custom-run-fails", Unknown, "check@0", false, 1),
    ("evicted", ResourceExhausted, "check@0", false, 1),
    ("exit-1-first", Unknown, "check@0/run=1", false, 1),
    ("finally-fails", Unknown, "report@1/run=1", false, 3),
    ("finally-timeout", DeadlineExceeded, "report@1", true, 2),
    ("forbidden", Forbidden, "apply@1/run=1", false, 2),
    ("forbidden-result", Forbidden, "check@0/run=1", false, 1),
    ("image-pull-first", ImagePullBackOff, "check@0/prepare", false, 1),
    ("image-pull-second", ImagePullBackOff, "apply@1/run", false, 2),
    ("matrix", Unknown, "apply@1/run=1", false, 2),
    // The first failure was ignored.
    ("on-error-then-fail", OomKilled, "apply@1/run=137", false, 2),
    ("oom-two-steps", OomKilled, "check@0/prepare=137", false, 1),
    ("pipeline-in-pipeline", Unknown, "inner@0", false, 1),
    ("pod-quota", ResourceExhausted, "check@0", false, 1),
    ("pod-security", Forbidden, "check@0", false, 1),
    ("retries", Unknown, "check@0/run=1", false, 1),
    ("retries-image-pull", ImagePullBackOff, "check@0/run", false, 1),
    ("retries-timeout", DeadlineExceeded, "check@0", false, 1),
    ("retries-unschedulable", DeadlineExceeded, "check@0", false, 1),
    ("run-timeout-second", DeadlineExceeded, "apply@1", false, 2),
    // The exit code is the sidecar's.
    ("sidecar", Unknown, "check@0=1", false, 1),
    ("task-timeout", DeadlineExceeded, "apply@1", false, 2),
    ("task-timeout-waiting", DeadlineExceeded, "check@0", false, 1),
    ("tasks-timeout", DeadlineExceeded, "check@0", false, 1),
    ("unknown-account", ConfigurationError, "check@0", false, 1),
    ("unknown-task", ConfigurationError, "", false, 0),
    ("when-skips", Unknown, "apply@1/run=1", false, 1),
    ("sample-bad-graph", ConfigurationError, "", false, 0),
    ("sample-cancel", Unknown, "check@0", true, 1),
    ("sample-missing-bundle", ImagePullBackOff, "", false, 0),
    ("sample-missing-bundle-resolved", ImagePullBackOff, "", false, 0),
    ("sample-needs-param", ConfigurationError, "", false, 0),
    ("sample-timeout", DeadlineExceeded, "check@0", false, 1),
    // With Tekton's own CRD the resolver cannot say what was wrong.
    ("sample-wrong-name", ImagePullBackOff, "", false, 0),
    ("sample-wrong-name-resolved", ConfigurationError, "", false, 0),
];

/// The stories of runs that did not fail, or are gone.
const NOT_FAILED: [&str; 5] = ["all-skipped", "on-error-continue", "replayed", "run-deleted", "two-tasks"];

#[test]
fn every_failure_has_its_cause() {
    let mut missing = stories();
    missing.retain(|name| !CAUSES.iter().any(|cause| cause.0 == *name) && !NOT_FAILED.contains(name));
    assert_eq!(missing, Vec::<&str>::new(), "stories without a cause");
    let mut wrong = Vec::new();
    for (name, reason, blamed, was_cancelled, completed) in CAUSES {
        let found = found(name);
        let cause = (found.cause.reason, task(&found), found.was_cancelled, found.completed_tasks);
        if cause != (*reason, (*blamed).to_owned(), *was_cancelled, *completed) {
            wrong.push(format!("{name}: {cause:?}: {}", found.cause.message));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_run_that_is_gone_says_nothing_but_that() {
    let gone = found("run-deleted");
    assert_eq!((gone.cause.reason, &gone.cause.task, gone.started.status()), (Unknown, &None, "True"));
    assert_eq!(&*gone.cause.message, "the PipelineRun is gone, and what it made went with it");
}

/// Until 1.12 Tekton had one word for whatever became of a pod; what became of it is in the steps.
#[test]
fn the_older_word_leads_to_the_same_cause() {
    let newer = ["StepFailed", "StepOOM", "SidecarFailed", "SidecarOOM", "PodEvicted"];
    for (name, reason, blamed, ..) in CAUSES {
        let mut story = story(name);
        for event in &mut story.events {
            let reason = event.object.data.pointer_mut("/status/conditions/0/reason");
            if let Some(reason) = reason.filter(|reason| newer.iter().any(|newer| **reason == *newer)) {
                *reason = json!("Failed");
            }
        }
        let found = examined(&story.follow(), &story);
        match *name {
            // No field of an older Tekton says these.
            "evicted" => assert_eq!(found.cause.reason, Unknown),
            "sidecar" => assert_eq!(task(&found), "check@0/run=1"),
            _ => assert_eq!((found.cause.reason, task(&found).as_str()), (*reason, *blamed), "{name}"),
        }
    }
}

#[test]
fn words_in_messages_change_nothing() {
    for name in ["exit-1-first", "sample-needs-param", "cancelled-running", "unknown-account", "task-timeout"] {
        let before = found(name);
        for word in [
            "room",
            "bathroom-svc is OOMKilled",
            "quota-service exceeded quota",
            "invalid-login",
            "Forbidden",
            "ImagePullBackOff",
            "timed out",
            "exit code 137",
        ] {
            let mut story = story(name);
            for event in &mut story.events {
                for path in ["/status/conditions/0/message", "/status/steps/0/terminated/message"] {
                    if let Some(message) = event.object.data.pointer_mut(path) {
                        *message = json!(format!("{} {word}", message.as_str().unwrap_or_default()));
                    }
                }
                if let Some(ended) = event.object.data.pointer_mut("/status/steps/0/terminated") {
                    ended["message"] = json!(word);
                }
            }
            let after = examined(&story.follow(), &story);
            assert_eq!(
                (after.cause.reason, task(&after), after.started),
                (before.cause.reason, task(&before), before.started.clone()),
                "{word} in {name}"
            );
        }
    }
}

#[test]
fn a_denial_is_quoted_and_nothing_else_of_what_a_step_left() {
    let message = found("forbidden").cause.message;
    assert!(message.contains("cannot patch resource \"deployments\""), "{message}");
    let mut story = story("exit-1-first");
    for event in &mut story.events {
        if let Some(ended) = event.object.data.pointer_mut("/status/steps/0/terminated") {
            ended["message"] = json!("[{\"key\":\"x\",\"value\":\"hunter2\"}]");
        }
    }
    let message = examined(&story.follow(), &story).cause.message;
    assert_eq!(&*message, "exit-1-first-check: StepFailed: \"step-run\" exited with code 1: Error");
}

#[test]
fn values_of_parameters_are_not_quoted() {
    let mut story = story("sample-needs-param");
    for event in &mut story.events {
        event.object.data["spec"] = json!({"params": [{"name": "SECRET", "value": "NEEDED"}]});
    }
    let message = examined(&story.follow(), &story).cause.message;
    assert!(message.ends_with("missing parameters: [<SECRET>]"), "{message}");
}

#[test]
fn what_was_waited_for_is_told_where_nothing_started() {
    let waited = |name: &str| found(name).waited.map(|waited| (waited.reason, waited.words));
    let quota = (ResourceExhausted, "room in the quota of the execution namespace".into());
    assert_eq!(waited("pod-quota"), Some(quota));
    assert_eq!(waited("cancelled-waiting"), Some((Unknown, "its pod to start".into())));
    assert_eq!(waited("cancelled-running"), None, "its first task ran");
    assert_eq!(waited("unknown-account"), None);
}

fn step(name: &str, terminated: &Value, by_tekton: &str) -> Value {
    json!({"name": name, "terminated": terminated, "terminationReason": by_tekton})
}

fn ended(code: i32, reason: &str) -> Value {
    json!({"exitCode": code, "reason": reason, "containerID": "containerd://1"})
}

fn of_task(reason: &str, steps: &[Value], sidecars: &[Value]) -> Findings {
    let failed = |reason: &str| json!([{"type": "Succeeded", "status": "False", "reason": reason, "message": "m"}]);
    let labels = json!({"tekton.dev/pipelineRunUID": "r", "tekton.dev/pipelineTask": "check"});
    let task_run = Owned::new(&json!({
        "kind": "TaskRun",
        "metadata": {"name": "t", "uid": "t", "labels": labels},
        "status": {"conditions": failed(reason), "steps": steps, "sidecars": sidecars},
    }));
    let run = Owned::new(&json!({
        "kind": "PipelineRun",
        "metadata": {"name": "r", "uid": "r"},
        "status": {"conditions": failed("Failed"), "pipelineSpec": {"tasks": [{"name": "other"}, {"name": "check"}]}},
    }));
    let remains = Remains { run: Some(run.view()), task_runs: &[task_run.view()], others: &[], pods: &[] };
    examine(&Evidence::default(), remains)
}

#[test]
fn the_failed_step_is_the_first_that_failed_by_itself() {
    let fine = step("fine", &ended(0, "Completed"), "Completed");
    let passed = step("passed", &ended(3, "Completed"), "Continued");
    let failed = step("failed", &ended(2, "Error"), "Error");
    let killed = step("killed", &ended(137, "OOMKilled"), "");
    let late = step("late", &ended(1, "Error"), "TimeoutExceeded");
    let skipped = step("skipped", &ended(1, "Error"), "Skipped");
    let invented = step("invented", &json!({"exitCode": 1, "reason": "StepFailed"}), "StepFailed");
    let proxy = json!({"name": "proxy", "terminated": ended(9, "Error")});
    let greedy = json!({"name": "proxy", "terminated": ended(137, "OOMKilled")});
    for (reason, steps, sidecars, cause, blamed) in [
        ("StepFailed", vec![&fine, &passed, &failed, &skipped], vec![], Unknown, "check@1/failed=2"),
        ("Failed", vec![&fine, &failed, &skipped], vec![&proxy], Unknown, "check@1/failed=2"),
        ("Failed", vec![&fine, &killed, &skipped], vec![], OomKilled, "check@1/killed=137"),
        ("StepFailed", vec![&late, &skipped], vec![], DeadlineExceeded, "check@1/late=1"),
        ("Failed", vec![&failed], vec![&greedy], OomKilled, "check@1=137"),
        ("SidecarOOM", vec![&skipped], vec![&greedy], OomKilled, "check@1=137"),
        ("SidecarFailed", vec![&failed], vec![&proxy], Unknown, "check@1=9"),
        ("StepOOM", vec![&invented], vec![], OomKilled, "check@1"),
        ("InitContainerOOM", vec![], vec![], OomKilled, "check@1"),
        ("InitContainerFailed", vec![], vec![], Unknown, "check@1"),
        ("StepFailed", vec![&invented], vec![], Unknown, "check@1"),
        ("SomethingNew", vec![&failed], vec![], Unknown, "check@1/failed=2"),
        ("CreateContainerConfigError", vec![&invented], vec![], ConfigurationError, "check@1"),
        ("TaskRunResultLargerThanAllowedLimit", vec![&fine], vec![], Unknown, "check@1"),
    ] {
        let owned = |steps: Vec<&Value>| steps.into_iter().cloned().collect::<Vec<_>>();
        let found = of_task(reason, &owned(steps), &owned(sidecars));
        assert_eq!((found.cause.reason, task(&found).as_str()), (cause, blamed), "{reason}");
    }
}

#[test]
fn skipping_for_a_time_out_is_a_time_out() {
    for (reason, cause) in [
        ("PipelineRun Finally timeout has been reached", DeadlineExceeded),
        ("PipelineRun Tasks timeout has been reached", DeadlineExceeded),
        ("When Expressions evaluated to false", Unknown),
    ] {
        let run = Owned::new(&json!({"kind": "PipelineRun", "metadata": {"uid": "r"}, "status": {
            "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed"}],
            "skippedTasks": [{"name": "a", "reason": reason}],
        }}));
        let remains = Remains { run: Some(run.view()), task_runs: &[], others: &[], pods: &[] };
        assert_eq!(examine(&Evidence::default(), remains).cause.reason, cause, "{reason}");
    }
}

#[test]
fn every_word_of_tekton_is_read_back_and_only_once() {
    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        all: &[T],
        word: fn(T) -> &'static str,
        parse: fn(&str) -> Option<T>,
    ) {
        for one in all {
            assert_eq!(parse(word(*one)), Some(*one));
        }
    }
    check(RunReason::ALL, RunReason::as_str, RunReason::parse);
    check(crate::reasons::TaskReason::ALL, crate::reasons::TaskReason::as_str, crate::reasons::TaskReason::parse);
    check(SkipReason::ALL, SkipReason::as_str, SkipReason::parse);
    assert_eq!(RunReason::parse("running"), None);
}
