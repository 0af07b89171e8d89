use FailureReason::{ConfigurationError, DeadlineExceeded, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown};
use serde_json::{Value, json};

use super::*;
use crate::testing::{OUTCOMES, Owned, Story, VERSIONS, World, story, story_of};

fn found(name: &str) -> Findings {
    examined(&story(name).follow(), &story(name))
}

fn examined((evidence, world): &(Evidence, World), story: &Story) -> Findings {
    world.remains(&story.run, |remains| examine(evidence, remains))
}

/// Returns the blamed task as `name@index/step=exit code`.
fn task(findings: &Findings) -> String {
    let Some(task) = &findings.cause.task else { return String::new() };
    let step = task.step.as_deref().map(|step| format!("/{step}")).unwrap_or_default();
    let code = task.exit_code.map(|code| format!("={code}")).unwrap_or_default();
    format!("{}@{}{step}{code}", task.name, task.index)
}

#[test]
fn every_failure_of_both_versions_has_its_cause() {
    let mut wrong = Vec::new();
    for version in VERSIONS {
        for (name, _, _, failed) in OUTCOMES {
            let Some((reason, blamed, was_cancelled, completed)) = *failed else { continue };
            // In Tekton 1.9, no field shows that a pod was evicted.
            let reason = if (*name, version) == ("evicted", "v1.9.0") { Unknown } else { reason };
            let story = story_of(version, name);
            let found = examined(&story.follow(), &story);
            let cause = (found.cause.reason, task(&found), found.was_cancelled, found.completed_tasks);
            if cause != (reason, blamed.to_owned(), was_cancelled, completed) {
                wrong.push(format!("{name} of {version}: {cause:?}: {}", found.cause.message));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_run_that_is_gone_says_nothing_but_that() {
    let gone = found("delete-after");
    assert_eq!((gone.cause.reason, &gone.cause.task, gone.started.status()), (Unknown, &None, "True"));
    assert_eq!(&*gone.cause.message, "the PipelineRun is gone, and what it made went with it");
}

#[test]
fn words_in_messages_change_nothing() {
    for name in ["exit-first", "missing-parameter", "cancel-after", "unknown-service-account", "timeout-of-task-after"]
    {
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
    let mut story = story("exit-first");
    for event in &mut story.events {
        if let Some(ended) = event.object.data.pointer_mut("/status/steps/0/terminated") {
            ended["message"] = json!("[{\"key\":\"x\",\"value\":\"hunter2\"}]");
        }
    }
    let message = examined(&story.follow(), &story).cause.message;
    assert_eq!(&*message, "wfe-ac45b7d6911e97a5-1-check: StepFailed: \"step-run\" exited with code 1: Error");
}

#[test]
fn what_tekton_said_is_quoted_as_it_is() {
    let mut story = story("missing-parameter");
    for event in &mut story.events {
        event.object.data["spec"] = json!({"params": [{"name": "SECRET", "value": "ZONE"}]});
    }
    let message = examined(&story.follow(), &story).cause.message;
    assert!(message.ends_with("missing parameters: [ZONE]"), "{message}");
}

/// Returns the findings for a recorded run that ended with this reason and message.
fn ended_with(name: &str, reason: &str, message: &str) -> Findings {
    let mut story = story(name);
    let ended = story.events.iter_mut().filter_map(|event| event.object.data.pointer_mut("/status/conditions/0"));
    for condition in ended.filter(|condition| condition["status"] == "False") {
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
    }
    examined(&story.follow(), &story)
}

#[test]
fn a_pipeline_that_requires_a_workspace_is_told_that_none_is_bound() {
    let said = "PipelineRun ns/run doesn't bind Pipeline ns/run's Workspaces correctly: pipeline requires workspace with \
                name \"data\" be provided by pipelinerun";
    let told = "this operator binds no workspaces, so the pipeline must not require one";
    for reason in ["InvalidWorkspaceBindings", "RequiredWorkspaceMarkedOptional"] {
        let cause = ended_with("missing-parameter", reason, said).cause;
        assert_eq!(cause.reason, ConfigurationError);
        assert_eq!(&*cause.message, format!("{reason}: {said}; {told}"));
    }
    assert!(!found("missing-parameter").cause.message.contains("workspace"));
}

#[test]
fn a_bundle_that_gave_no_pipeline_is_told_with_all_causes_that_cannot_be_told_apart() {
    let retrieving = |error: &str| {
        format!("Error retrieving pipeline for pipelinerun ns/run: resolver failed to get Pipeline : {error}")
    };
    let answered = |error: &str| {
        retrieving(&format!("error requesting remote resource: error getting \"bundleresolver\" \"ns/b-1\": {error}"))
    };
    let causes = "no pipeline came from its bundle: it does not exist, Tekton has no credentials for it, it has no Pipeline \
                  named workflow, or Tekton may not create what fetches it: ";
    for (message, reason, unresolved) in [
        // The registry is to blame only if it answered and refused the image.
        (answered("cannot retrieve the oci image: NAME_UNKNOWN"), ImagePullBackOff, false),
        (answered("could not find object in image with kind: pipeline and name: workflow"), ConfigurationError, false),
        (answered("could not parse image manifest: x"), ConfigurationError, false),
        (retrieving("invalid runtime object: json: cannot unmarshal bool"), ConfigurationError, false),
        (retrieving("error requesting remote resource: took longer"), ImagePullBackOff, true),
    ] {
        let found = ended_with("missing-bundle-repaired", "CouldntGetPipeline", &message);
        assert_eq!((found.cause.reason, found.unresolved), (reason, unresolved), "{message}");
        assert_eq!(found.cause.message.starts_with(causes), unresolved, "{}", found.cause.message);
        assert_eq!(found.cause.message.contains("nobody/pushed-this"), unresolved, "{}", found.cause.message);
    }
}

#[test]
fn what_was_waited_for_is_told_where_nothing_started() {
    let waited = |name: &str| found(name).waited.map(|waited| (waited.reason, waited.words));
    let quota = (ResourceExhausted, "room in the quota of the execution namespace".into());
    assert_eq!(waited("quota-on-pods"), Some(quota));
    assert_eq!(waited("cancel-before"), Some((Unknown, "its pod to start".into())));
    assert_eq!(waited("image-pull-second"), None, "its first task ran");
    assert_eq!(waited("unknown-service-account"), None);
}

#[test]
fn the_registry_is_named_whose_image_was_not_there() {
    for version in VERSIONS {
        let registry = |name: &str| {
            let story = story_of(version, name);
            let task = examined(&story.follow(), &story).cause.task;
            task.and_then(|task| task.registry).unwrap_or_default().into_string()
        };
        for name in [
            "image-pull-first",
            "image-pull-second",
            "image-name-invalid",
            "finally-image-pull",
            "retries-after-image-pull",
            "timeout-while-image-is-pulled",
        ] {
            assert_eq!(registry(name), "test.invalid", "{name} of {version}");
        }
        for name in ["missing-bundle", "exit-first", "exit-second", "quota-on-pods"] {
            assert_eq!(registry(name), "", "{name} of {version}");
        }
    }
}

#[test]
fn the_registry_is_that_of_the_step_as_its_pod_then_its_task_then_the_pipeline_has_it() {
    let step = |name: &str, image: &str| json!({"name": name, "image": image});
    let (one, two) = (step("one", "a.example/x"), step("two", "B.example:5000/y:1"));
    let (pod_one, pod_two) = (step("step-one", "c.example/x"), step("step-two", "d.example/y"));
    let sidecar = step("sidecar-proxy", "e.example/z");
    let open = step("two", "$(params.image)");
    let same = step("three", "a.example/z");
    for (what, pod, task, pipeline, stopped_at, expected) in [
        ("the pod", vec![&pod_one, &pod_two, &sidecar], vec![&one, &two], vec![], "two", "d.example"),
        ("the task", vec![], vec![&one, &two], vec![&same], "two", "b.example:5000"),
        ("the pipeline", vec![], vec![], vec![&one, &two], "two", "b.example:5000"),
        ("a step that has no name there", vec![], vec![&one], vec![], "unnamed-0", "a.example"),
        ("steps of one registry", vec![], vec![&one, &same], vec![], "", "a.example"),
        ("steps of two registries", vec![], vec![&one, &two], vec![], "", ""),
        ("a parameter", vec![], vec![&one, &open], vec![], "two", ""),
        ("nothing", vec![], vec![], vec![], "two", ""),
    ] {
        let labels = json!({"tekton.dev/pipelineRunUID": "r", "tekton.dev/pipelineTask": "check",
                            "tekton.dev/taskRunUID": "t", "tekton.dev/taskRun": "t"});
        let failed = |reason: &str| json!([{"type": "Succeeded", "status": "False", "reason": reason, "message": "m"}]);
        let names = if stopped_at.is_empty() { vec!["one", "two"] } else { vec![stopped_at] };
        let steps: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let task_run = Owned::new(&json!({
            "kind": "TaskRun", "metadata": {"name": "t", "uid": "t", "labels": labels},
            "status": {"conditions": failed("TaskRunImagePullFailed"), "steps": steps, "taskSpec": {"steps": task}},
        }));
        let pod = Owned::new(&json!({
            "kind": "Pod", "metadata": {"name": "p", "uid": "p", "labels": labels}, "spec": {"containers": pod},
            "status": {"phase": "Pending"},
        }));
        let run = Owned::new(&json!({
            "kind": "PipelineRun", "metadata": {"name": "r", "uid": "r"},
            "status": {"conditions": failed("Failed"),
                       "pipelineSpec": {"finally": [{"name": "check", "taskSpec": {"steps": pipeline}}]}},
        }));
        let (task_runs, pods) = ([task_run.view()], [pod.view()]);
        let remains = Remains { run: Some(run.view()), task_runs: &task_runs, others: &[], pods: &pods };
        let task = examine(&Evidence::default(), remains).cause.task.unwrap();
        assert_eq!(task.registry.as_deref().unwrap_or_default(), expected, "{what}");
    }
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
