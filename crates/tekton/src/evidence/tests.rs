use proptest::prelude::*;
use serde_json::json;
use wfe_core::evidence::{Doubt, Started};
use wfe_core::residue::ResidueKind;

use super::*;
use crate::testing::{Event, Owned, Story, World, stories, story, watch};

fn verdict(story: &Story, (evidence, world): &(Evidence, World)) -> Started {
    world.remains(&story.run, |remains| evidence.conclude(remains))
}

fn followed(name: &str) -> (Started, Evidence) {
    let story = story(name);
    let followed = story.follow();
    (verdict(&story, &followed), followed.0)
}

/// What really ran in each story, and how that is known.
const VERDICTS: &[(&str, &str, &str)] = &[
    ("all-skipped", "False", "NoTaskRun"),
    ("bad-result-reference", "False", "NoTaskRun"),
    ("both-fail", "True", "StepRunning"),
    ("cancelled-finally", "True", "StepRunning"),
    ("cancelled-running", "True", "StepRunning"),
    ("cancelled-waiting", "False", "OnlyWaited"),
    ("custom-run-cancelled", "Unknown", "Opaque"),
    ("custom-run-fails", "Unknown", "Opaque"),
    ("evicted", "True", "StepRunning"),
    ("exit-1-first", "True", "StepRunning"),
    ("finally-fails", "True", "StepRunning"),
    ("finally-timeout", "True", "StepRunning"),
    ("forbidden", "True", "StepRunning"),
    ("forbidden-result", "True", "StepRunning"),
    ("image-pull-first", "False", "OnlyWaited"),
    // Its first task ran.
    ("image-pull-second", "True", "StepRunning"),
    ("matrix", "True", "StepRunning"),
    ("on-error-continue", "True", "StepRunning"),
    ("on-error-then-fail", "True", "StepRunning"),
    ("oom-two-steps", "True", "StepRunning"),
    ("pipeline-in-pipeline", "Unknown", "Opaque"),
    ("pod-quota", "False", "OnlyWaited"),
    ("pod-security", "False", "OnlyWaited"),
    ("replayed", "True", "StepRunning"),
    ("retries", "True", "StepRunning"),
    ("retries-image-pull", "False", "OnlyWaited"),
    ("retries-timeout", "True", "StepRunning"),
    ("retries-unschedulable", "False", "OnlyWaited"),
    ("run-deleted", "True", "StepRunning"),
    ("run-timeout-second", "True", "StepRunning"),
    ("sidecar", "True", "StepRunning"),
    ("task-timeout", "True", "StepRunning"),
    ("task-timeout-waiting", "False", "OnlyWaited"),
    ("tasks-timeout", "True", "StepRunning"),
    ("two-tasks", "True", "StepRunning"),
    ("unknown-account", "False", "OnlyWaited"),
    ("unknown-task", "False", "NoTaskRun"),
    ("when-skips", "True", "StepRunning"),
    // Of these there is only what was left in the end.
    ("sample-bad-graph", "False", "NoTaskRun"),
    ("sample-cancel", "Unknown", "Ambiguous"),
    ("sample-missing-bundle", "False", "NoTaskRun"),
    ("sample-missing-bundle-resolved", "False", "NoTaskRun"),
    ("sample-needs-param", "False", "NoTaskRun"),
    // A step that really ran, at the second in which its TaskRun was made.
    ("sample-timeout", "Unknown", "PodUnseen"),
    ("sample-wrong-name", "False", "NoTaskRun"),
    ("sample-wrong-name-resolved", "False", "NoTaskRun"),
];

#[test]
fn every_story_has_its_verdict() {
    let names: Vec<&str> = VERDICTS.iter().map(|(name, ..)| *name).collect();
    let mut missing = stories();
    missing.retain(|name| !names.contains(name));
    assert_eq!(missing, Vec::<&str>::new(), "stories without a verdict");
    for (name, status, reason) in VERDICTS {
        let (verdict, _) = followed(name);
        assert_eq!((verdict.status(), verdict.reason()), (*status, *reason), "{name}: {verdict}");
    }
}

#[test]
fn the_proof_names_task_step_and_time() {
    let (verdict, _) = followed("image-pull-second");
    let words = "step run of TaskRun image-pull-second-check was seen running, since 2026-11-22T05:56:52Z";
    assert_eq!(verdict.to_string(), words);
    let end = story("two-tasks");
    let end = end.follow_from(end.events.len());
    let words = verdict_of_end(&end);
    assert!(words.contains("two-tasks-") && words.ends_with("ended in container kwok://step-run"), "{words}");
}

fn verdict_of_end(end: &(Evidence, World)) -> String {
    verdict(&story("two-tasks"), end).to_string()
}

#[test]
fn a_process_that_comes_later_never_proves_that_nothing_ran_where_something_did() {
    for name in stories() {
        let story = story(name);
        let whole = verdict(&story, &story.follow());
        for start in 1..=story.events.len() {
            let late = verdict(&story, &story.follow_from(start));
            assert!(late.may_have_run() || !whole.may_have_run(), "{name} from event {start}: {late:?}, not {whole:?}");
            let has_made_a_pod = story.events[..start].iter().any(|event| event.object.kind == ResidueKind::Pod);
            assert!(!has_made_a_pod || late.may_have_run(), "{name} from event {start}: {late:?} is guessed");
        }
    }
}

#[test]
fn a_step_that_was_seen_running_stays_seen() {
    let story = story("run-deleted");
    let mut evidence = Evidence::default();
    let mut proof = None;
    for event in &story.events {
        watch(&mut evidence, &story.run, event);
        proof = proof.or(evidence.seen().proof);
        assert_eq!(evidence.seen().proof, proof);
    }
    assert!(proof.is_some());
}

#[test]
fn only_a_pod_that_ran_and_was_replaced_is_a_replay() {
    for name in stories() {
        let replayed = followed(name).1.seen().replayed;
        assert_eq!(replayed.as_deref(), (name == "replayed").then_some("replayed-check"), "{name}");
    }
    // The pods alone show it, and so do the TaskRuns.
    let story = story("replayed");
    for kind in [ResidueKind::Pod, ResidueKind::TaskRun] {
        let mut evidence = Evidence::default();
        let events = story.events.iter().filter(|event| event.object.kind == kind);
        events.for_each(|event| watch(&mut evidence, &story.run, event));
        assert_eq!(evidence.seen().replayed.as_deref(), Some("replayed-check"), "{kind:?}");
    }
}

fn pod(uid: &str, status: &serde_json::Value) -> Event {
    let labels = json!({"tekton.dev/pipelineRunUID": "r", "tekton.dev/taskRun": "t", "tekton.dev/taskRunUID": "t-uid"});
    let metadata = json!({"name": "t-pod", "uid": uid, "labels": labels});
    Event { is_deletion: false, object: Owned::new(&json!({"kind": "Pod", "metadata": metadata, "status": status})) }
}

fn task_run(status: &serde_json::Value) -> Event {
    let labels = json!({"tekton.dev/pipelineRunUID": "r", "tekton.dev/pipelineTask": "check"});
    let created = "2026-11-22T05:56:49Z";
    let metadata = json!({"name": "t", "uid": "t-uid", "labels": labels, "creationTimestamp": created});
    Event {
        is_deletion: false,
        object: Owned::new(&json!({"kind": "TaskRun", "metadata": metadata, "status": status})),
    }
}

fn of_run(status: &serde_json::Value) -> Event {
    let run = json!({"kind": "PipelineRun", "metadata": {"name": "r", "uid": "r"}, "status": status});
    Event { is_deletion: false, object: Owned::new(&run) }
}

fn deleted(event: Event) -> Event {
    Event { is_deletion: true, ..event }
}

/// A pull that failed: what Tekton writes about a step that only waited, and about one that ran since the same second.
fn pull_failed() -> Event {
    let step = json!({"name": "run", "terminated": {"exitCode": 1, "startedAt": "2026-11-22T05:56:49Z"}});
    let condition = json!({"type": "Succeeded", "status": "False", "reason": "TaskRunImagePullFailed"});
    task_run(&json!({"podName": "t-pod", "steps": [step], "conditions": [condition]}))
}

fn waiting() -> serde_json::Value {
    let container = json!({"name": "step-run", "state": {"waiting": {"reason": "ImagePullBackOff"}}});
    json!({"phase": "Pending", "containerStatuses": [container]})
}

fn verdict_on(events: &[Event]) -> Started {
    let run = Uid::new("r");
    let (mut evidence, mut world) = (Evidence::default(), World::default());
    world.take_in(&of_run(&json!({})));
    for event in events {
        world.take_in(event);
        watch(&mut evidence, &run, event);
    }
    world.remains(&run, |remains| evidence.conclude(remains))
}

#[test]
fn an_invented_end_is_nothing_that_ran_only_where_the_pod_was_seen_to_wait_until_its_end() {
    let (pending, t) = (pod("p", &json!({"phase": "Pending"})), || "t".into());
    let gone = deleted(pod("p", &waiting()));
    assert_eq!(verdict_on(&[pending.clone(), pull_failed(), gone.clone()]).reason(), "OnlyWaited");
    let still_there = [pod("p", &waiting()), pull_failed()];
    assert_eq!(verdict_on(&still_there).reason(), "OnlyWaited", "it is read live");
    assert_eq!(verdict_on(&[pull_failed()]), Started::Unknown(Doubt::Unseen(t())));

    let running = json!({"name": "step-run", "state": {"running": {"startedAt": "2026-11-22T05:56:49Z"}}});
    let ran = json!({"phase": "Running", "containerStatuses": [running]});
    assert_eq!(verdict_on(&[pod("p", &ran), pull_failed()]).reason(), "StepRunning");
    // A container left `waiting`, and it was not seen which and how.
    for left in [
        json!({"phase": "Running"}),
        json!({"phase": "Failed"}),
        json!({"phase": "Pending", "containerStatuses": [{"name": "sidecar-x", "state": {"running": {}}}]}),
        json!({"phase": "Pending", "initContainerStatuses": [{"name": "sidecar-x", "state": {"terminated": {}}}]}),
        json!({"phase": "Pending", "containerStatuses": [{"name": "step-run", "state": {"terminated": {"exitCode": 137}}}]}),
    ] {
        let events = [pod("p", &left), pull_failed(), deleted(pod("p", &left))];
        assert_eq!(verdict_on(&events), Started::Unknown(Doubt::Ambiguous(t())), "{left}");
    }
    // Tekton's own containers prepare the pod; they are not the workflow's.
    let prepared = json!({
        "phase": "Pending",
        "initContainerStatuses": [{"name": "prepare", "state": {"terminated": {"containerID": "c"}}}],
        "containerStatuses": waiting()["containerStatuses"],
    });
    assert_eq!(verdict_on(&[pod("p", &prepared), pull_failed(), gone]).reason(), "OnlyWaited");
}

#[test]
fn a_pod_that_only_waited_and_was_replaced_ran_nothing_twice() {
    let events = |first: &serde_json::Value| {
        [pod("p", first), deleted(pod("p", first)), pod("q", &waiting()), pull_failed(), deleted(pod("q", &waiting()))]
    };
    assert_eq!(verdict_on(&events(&waiting())).reason(), "OnlyWaited");
    assert_eq!(verdict_on(&events(&json!({"phase": "Running"}))).reason(), "PodReplaced");
}

#[test]
fn a_step_in_the_middle_that_ended_for_real_counts_as_much_as_the_first() {
    let failed = json!([{"type": "Succeeded", "status": "False", "reason": "TaskRunImagePullFailed"}]);
    let real = json!({"name": "b", "terminated": {"exitCode": 0, "containerID": "containerd://1"}});
    let invented = json!({"name": "a", "terminated": {"exitCode": 1, "startedAt": "2026-11-22T05:56:49Z"}});
    let earlier = json!({"podName": "", "steps": [{"name": "b"}]});
    for status in [
        json!({"podName": "t-pod", "steps": [invented, real], "conditions": failed}),
        json!({"podName": "", "steps": [], "conditions": failed, "retriesStatus": [earlier, {"steps": [real]}]}),
    ] {
        assert_eq!(
            verdict_on(&[task_run(&status)]).to_string(),
            "step b of TaskRun t ended in container containerd://1"
        );
    }
}

#[test]
fn a_task_that_is_gone_or_goes_on_leaves_a_doubt() {
    let failed = json!([{"type": "Succeeded", "status": "False", "reason": "PodCreationFailed"}]);
    let done = || task_run(&json!({"podName": "", "conditions": failed}));
    assert_eq!(verdict_on(&[done()]).reason(), "OnlyWaited");
    assert_eq!(verdict_on(&[done(), deleted(done())]), Started::Unknown(Doubt::Vanished("t".into())));
    let goes_on = task_run(&json!({"podName": ""}));
    let doubt = Doubt::Unfinished("t".into());
    assert!(doubt.may_pass(), "it may be finished a moment later");
    assert_eq!(verdict_on(&[goes_on]), Started::Unknown(doubt));
    // The run names a task that is not there.
    let status = json!({"childReferences": [{"kind": "TaskRun", "name": "other"}]});
    assert_eq!(verdict_on(&[of_run(&status), done()]), Started::Unknown(Doubt::Vanished("other".into())));
}

#[test]
fn counts_the_tasks_of_which_all_is_done() {
    let counts = |name: &str| followed(name).1.seen().completed_tasks;
    assert_eq!(
        ["two-tasks", "matrix", "when-skips", "custom-run-cancelled", "unknown-task"].map(counts),
        [2, 2, 1, 0, 0]
    );
}

#[test]
fn remembers_what_was_waited_for() {
    let waited = |name: &str| followed(name).1.waiting().map(|(wait, step)| (wait, step.map(ToOwned::to_owned)));
    assert_eq!(waited("pod-quota"), Some((Wait::Quota, None)));
    assert_eq!(waited("retries-image-pull"), Some((Wait::Image, Some("run".to_owned()))));
    assert_eq!(waited("cancelled-waiting"), Some((Wait::Pod, None)));
    let mut evidence = Evidence::default();
    for (doing, waits) in [("Running", None), ("ResolvingPipelineRef", Some((Wait::Bundle, None)))] {
        evidence.see_doing(doing);
        assert_eq!(evidence.waiting(), waits, "{doing}");
    }
}

#[test]
fn a_run_has_stirred_when_something_of_it_began() {
    let stirred = |events: &[Event]| {
        let mut evidence = Evidence::default();
        for event in events {
            watch(&mut evidence, &Uid::new("r"), event);
        }
        evidence.seen().has_stirred
    };
    assert!(!stirred(&[task_run(&json!({})), pod("p", &waiting())]));
    assert!(stirred(&[pod("p", &json!({"phase": "Running"}))]));
    assert!(stirred(&[pull_failed()]), "a task has ended, and so will the run");
    assert!(followed("custom-run-cancelled").1.seen().has_stirred, "nobody sees into it");
}

#[test]
fn what_is_proven_to_have_run_is_not_remembered_pod_by_pod() {
    let (_, evidence) = followed("matrix");
    assert!(evidence.pods.is_empty(), "{:?}", evidence.pods);
}

#[test]
fn a_run_with_more_tasks_than_are_followed_proves_nothing() {
    let run = Uid::new("r");
    let (mut evidence, mut world) = (Evidence::default(), World::default());
    world.take_in(&of_run(&json!({})));
    for number in 0..=MAX_CHILDREN {
        let mut event = task_run(&json!({"podName": ""}));
        event.object.meta.uid = Some(format!("t-{number}"));
        event.object.meta.name = Some(format!("t-{number}"));
        event.object.data["status"]["conditions"] = json!([{"type": "Succeeded", "status": "False"}]);
        world.take_in(&event);
        watch(&mut evidence, &run, &event);
    }
    assert_eq!(evidence.children.len(), MAX_CHILDREN);
    let verdict = world.remains(&run, |remains| evidence.conclude(remains));
    assert_eq!(verdict, Started::Unknown(Doubt::TooMany));
}

proptest! {
    /// The watches of tasks and pods are two: each keeps its order, and they lag as they like.
    #[test]
    fn the_order_between_two_watches_changes_no_verdict(
        picks in prop::collection::vec(any::<bool>(), 40),
        index in any::<prop::sample::Index>(),
    ) {
        let names = stories();
        let name = names[index.index(names.len())];
        let story = story(name);
        let (pods, others): (Vec<_>, Vec<_>) =
            story.events.iter().cloned().partition(|event| event.object.kind == ResidueKind::Pod);
        let (mut pods, mut others) = (pods.into_iter().peekable(), others.into_iter().peekable());
        let mut picks = picks.into_iter().cycle();
        let mut mixed = Vec::new();
        while pods.peek().is_some() || others.peek().is_some() {
            let of_pods = picks.next().unwrap() && pods.peek().is_some() || others.peek().is_none();
            mixed.extend(if of_pods { pods.next() } else { others.next() });
        }
        let told = Story { run: story.run.clone(), events: mixed };
        let (told, whole) = (verdict(&told, &told.follow()), verdict(&story, &story.follow()));
        prop_assert_eq!((told.status(), told.reason()), (whole.status(), whole.reason()), "{}", name);
    }
}
