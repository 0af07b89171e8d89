//! Runs that nobody disturbs end as recorded.

use wfe_simulation::cluster::scripts::{VERSIONS, playable, stories};

use super::compare::{Left, assert_same, expected, plain};
use super::stage::Stage;

/// Returns a run, and the objects whose names begin with the run's name.
fn of(stage: &Stage, run: &str, begun: wfe_core::Time) -> Left {
    let belongs = |name: &str| name == run || name.strip_prefix(run).is_some_and(|rest| rest.starts_with('-'));
    let objects = stage.objects().into_iter();
    let objects = objects.filter(|object| object["metadata"]["name"].as_str().is_some_and(belongs));
    plain(objects.collect(), begun)
}

#[tokio::test(start_paused = true)]
async fn each_run_that_ends_by_itself_leaves_what_was_recorded() {
    let stage = Stage::set(1);
    let mut runs = Vec::new();
    for version in VERSIONS {
        for story in playable(version).unwrap() {
            let name = format!("wfe-0123456789abcdef-{}", 100 + runs.len());
            stage.make(&name, version, story);
            runs.push((name, version, story));
        }
    }
    stage.wait(7.0).await;
    assert_eq!(stage.objects().len(), runs.len(), "while all wait, nothing happens");
    let begun = stage.now();
    for (name, ..) in &runs {
        stage.release(name);
    }
    stage.wait(120.0).await;
    for (name, version, story) in &runs {
        assert_same(&format!("{version}/{story}"), &of(&stage, name, begun), &expected(version, story, name));
    }
    let ours = stage.of_kind("TaskRun").into_iter().chain(stage.of_kind("Pod"));
    for object in ours {
        let (labels, annotations) = (&object["metadata"]["labels"], &object["metadata"]["annotations"]);
        assert_eq!(labels["kubernaut.ai/run-sequence"], "4", "{object}");
        assert_eq!(annotations["kubernaut.ai/workflow-id"], "restart-api", "{object}");
        assert!(labels.get("kubernaut.ai/target-resource").is_none(), "the run has no such label: {object}");
    }
}

#[test]
fn most_stories_end_by_themselves() {
    for version in VERSIONS {
        let all = stories().unwrap().filter(|story| story.version == version).count();
        let playable = playable(version).unwrap();
        assert!(playable.len() >= 50 && playable.len() < all, "{} of {all}", playable.len());
        assert!(playable.contains(&"success") && playable.contains(&"timeout-of-run-after"), "{playable:?}");
        for disturbed in ["cancel-after", "delete-before", "missing-bundle", "cancel-and-run-finally"] {
            assert!(!playable.contains(&disturbed), "{disturbed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_step_by_step() {
    let stage = Stage::set(2);
    stage.make("wfe-a-1", VERSIONS[0], "success@sha256:0123");
    stage.release("wfe-a-1");
    let mut reasons = Vec::new();
    for _ in 0..50 {
        let reason = stage.condition("wfe-a-1")["reason"].clone();
        if reasons.last() != Some(&reason) {
            reasons.push(reason);
        }
        stage.wait(0.1).await;
    }
    assert_eq!(reasons[1..], ["ResolvingPipelineRef", "Running", "Succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn what_follows_from_a_time_out_does_not_come_before_it() {
    let stage = Stage::set(4);
    stage.make("wfe-a-1", VERSIONS[0], "timeout-of-run-after");
    stage.release("wfe-a-1");
    stage.wait(7.9).await;
    assert!(stage.of_kind("TaskRun")[0]["spec"].get("status").is_none());
    stage.wait(0.5).await;
    assert_eq!(stage.of_kind("TaskRun")[0]["spec"]["status"], "TaskRunCancelled");
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_grace_where_a_node_has_it() {
    for (story, wanted) in [("unschedulable", vec![0]), ("image-pull-first", vec![30, 0])] {
        let stage = Stage::set(4);
        stage.make("wfe-a-1", VERSIONS[0], story);
        stage.release("wfe-a-1");
        stage.wait(60.0).await;
        let log = stage.log().into_iter().filter_map(|(_, is)| is);
        let grace = log.filter_map(|object| object["metadata"]["deletionGracePeriodSeconds"].as_i64());
        let mut grace: Vec<i64> = grace.collect();
        grace.dedup();
        assert_eq!(grace, wanted, "{story}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_names_no_story_is_missing() {
    let stage = Stage::set(3);
    for (name, bundle) in [("a-1", "registry.test/v0.1/success:1"), ("b-1", "quay.io/ops/restart:1")] {
        stage.make_with_timeout(name, bundle, "5m0s");
        stage.release(name);
    }
    stage.wait(3600.0).await;
    for name in ["a-1", "b-1"] {
        assert_eq!(stage.condition(name)["reason"], "ResolvingPipelineRef", "it has no time-out");
    }
    assert_eq!(stage.objects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_plays_the_same() {
    let mut logs = Vec::new();
    for seed in [5, 5, 6] {
        let stage = Stage::set(seed);
        for (number, story) in ["success", "cancel-after", "nested", "pod-deleted"].into_iter().enumerate() {
            let name = format!("wfe-a-{number}");
            stage.make(&name, VERSIONS[number % 2], story);
            stage.release(&name);
        }
        stage.wait(2.5).await;
        stage.merge("wfe-a-1", &serde_json::json!({"spec": {"status": "Cancelled"}}));
        stage.wait(1.0).await;
        stage.delete("wfe-a-2");
        stage.wait(60.0).await;
        logs.push(stage.log());
    }
    assert!(logs[0].len() > 50);
    assert!(logs[0] == logs[1]);
    assert!(logs[0] != logs[2]);
}
