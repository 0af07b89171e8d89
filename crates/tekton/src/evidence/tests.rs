use proptest::prelude::*;
use serde_json::json;
use wfe_core::evidence::{Doubt, Started};
use wfe_core::residue::ResidueKind;

use super::*;
use crate::testing::{Event, OUTCOMES, Owned, Story, VERSIONS, World, stories, stories_of, story, story_of, watch};

fn verdict(story: &Story, (evidence, world): &(Evidence, World)) -> Started {
    world.remains(&story.run, |remains| evidence.conclude(remains))
}

fn followed(name: &str) -> (Started, Evidence) {
    let story = story(name);
    let followed = story.follow();
    (verdict(&story, &followed), followed.0)
}

#[test]
fn every_story_of_both_versions_has_its_verdict() {
    for version in VERSIONS {
        let known: Vec<&str> = OUTCOMES.iter().map(|(name, ..)| *name).collect();
        assert_eq!(stories_of(version), known, "stories of {version}, and those with a verdict");
        for (name, status, reason, _) in OUTCOMES {
            let story = story_of(version, name);
            let verdict = verdict(&story, &story.follow());
            assert_eq!((verdict.status(), verdict.reason()), (*status, *reason), "{name} of {version}: {verdict}");
        }
    }
}

#[test]
fn the_proof_names_task_step_and_time() {
    let words = followed("image-pull-second").0.to_string();
    let begins = "step run of TaskRun wfe-ac45b7d6911e97a5-1-check was seen running, since 2026-01-01T00:00:";
    assert!(words.starts_with(begins), "{words}");
    let success = story("success");
    let words = verdict(&success, &success.follow_from(success.events.len())).to_string();
    assert!(words.ends_with("ended in container kwok://step-run"), "what was left says so too: {words}");
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
    let story = story("delete-after");
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
        assert_eq!(replayed.is_some(), name.starts_with("pod-deleted"), "{name}: {replayed:?}");
    }
    // The pods alone are sufficient evidence, and so are the TaskRuns alone.
    let story = story("pod-deleted");
    for kind in [ResidueKind::Pod, ResidueKind::TaskRun] {
        let mut evidence = Evidence::default();
        let events = story.events.iter().filter(|event| event.object.kind == kind);
        events.for_each(|event| watch(&mut evidence, &story.run, event));
        assert_eq!(evidence.seen().replayed.as_deref(), Some("wfe-ac45b7d6911e97a5-1-apply"), "{kind:?}");
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

/// Returns a failed image pull. Tekton writes the same status for a step that only waited as for a step that began to
/// run in that same second.
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
    // A container has left the state `waiting`. The watch did not show which container, nor its new state.
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
    // Tekton's own containers prepare the pod, and are not part of the workflow.
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
    // The run refers to a task that does not exist.
    let status = json!({"childReferences": [{"kind": "TaskRun", "name": "other"}]});
    assert_eq!(verdict_on(&[of_run(&status), done()]), Started::Unknown(Doubt::Vanished("other".into())));
}

#[test]
fn counts_the_tasks_of_which_all_is_done() {
    let counts = |name: &str| followed(name).1.seen().completed_tasks;
    let names = ["success", "matrix-one-fails", "task-skipped", "cancel-before", "unknown-task"];
    assert_eq!(names.map(counts), [2, 1, 1, 1, 0]);
}

#[test]
fn remembers_what_was_waited_for() {
    let waited = |name: &str| followed(name).1.waiting().map(|(wait, step)| (wait, step.map(ToOwned::to_owned)));
    assert_eq!(waited("quota-on-pods"), Some((Wait::Quota, None)));
    assert_eq!(waited("retries-after-image-pull"), Some((Wait::Image, Some("run".to_owned()))));
    assert_eq!(waited("cancel-before"), Some((Wait::Pod, None)));
    let mut evidence = Evidence::default();
    for (doing, waits) in [("Running", None), ("ResolvingPipelineRef", Some((Wait::Bundle, None)))] {
        evidence.observe_reason(doing);
        assert_eq!(evidence.waiting(), waits, "{doing}");
    }
    assert_eq!(evidence.seen().waits, Some(Wait::Bundle));
    evidence.observe_reason("Running");
    assert_eq!(evidence.seen().waits, None, "it is there");
}

#[test]
fn a_run_has_stirred_when_something_of_it_began() {
    let stirred = |events: &[Event]| {
        let mut evidence = Evidence::default();
        for event in events {
            watch(&mut evidence, &Uid::new("r"), event);
        }
        evidence.seen().has_started_anything
    };
    assert!(!stirred(&[task_run(&json!({})), pod("p", &waiting())]));
    assert!(stirred(&[pod("p", &json!({"phase": "Running"}))]));
    assert!(stirred(&[pull_failed()]), "a task has ended, and so will the run");
    assert!(followed("custom-run-cancelled").1.seen().has_started_anything, "nobody sees into it");
}

#[test]
fn what_is_proven_to_have_run_is_not_remembered_pod_by_pod() {
    let (_, evidence) = followed("success");
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
    /// Tasks and pods have separate watches. Each watch keeps its own order, and each may lag behind the other.
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
