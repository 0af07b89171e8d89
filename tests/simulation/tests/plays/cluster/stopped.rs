//! Runs that are cancelled, time out, or are deleted.

use serde_json::json;
use wfe_simulation::cluster::scripts::VERSIONS;

use super::compare::{assert_same, expected, plain, timeless};
use super::stage::Stage;

const RUN: &str = "wfe-0123456789abcdef-12";

fn released(version: &str, story: &str, timeout: &str) -> Stage {
    let stage = Stage::set(11);
    stage.make_with_timeout(RUN, &format!("registry.test/{version}/{story}:1"), timeout);
    stage.release(RUN);
    stage
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_as_it_was_recorded() {
    for version in VERSIONS {
        for story in ["cancel-after", "cancel-before", "cancel-while-resolving", "custom-run-cancelled"] {
            let stage = released(version, story, "30m0s");
            let begun = stage.now();
            stage.wait(600.0).await;
            assert_eq!(stage.condition(RUN)["status"], "Unknown", "a recorded act of somebody is not played");
            stage.merge(RUN, &json!({"spec": {"status": "Cancelled"}}));
            stage.wait(0.5).await;
            assert_eq!(stage.condition(RUN)["reason"], "Cancelled", "the run ends at once");
            stage.wait(20.0).await;
            assert!(stage.of_kind("Pod").is_empty(), "its pods are gone");
            let (left, wanted) = (plain(stage.objects(), begun), expected(version, story, RUN));
            assert_same(&format!("{version}/{story}"), &timeless(left), &timeless(wanted));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_stopped_has_begun_when_it_began() {
    let stage = released(VERSIONS[0], "cancel-after", "30m0s");
    stage.wait(5.0).await;
    let begun = stage.of_kind("TaskRun")[0]["status"]["steps"][0]["running"]["startedAt"].clone();
    assert_ne!(begun, stage.of_kind("TaskRun")[0]["metadata"]["creationTimestamp"]);
    stage.merge(RUN, &json!({"spec": {"status": "Cancelled"}}));
    stage.wait(20.0).await;
    assert_eq!(stage.of_kind("TaskRun")[0]["status"]["steps"][0]["terminated"]["startedAt"], begun);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waited_is_ended_with_the_time_of_its_task_run() {
    let stage = released(VERSIONS[1], "cancel-before", "30m0s");
    stage.wait(5.0).await;
    stage.merge(RUN, &json!({"spec": {"status": "Cancelled"}}));
    stage.wait(20.0).await;
    let task_run = &stage.of_kind("TaskRun")[0];
    let step = &task_run["status"]["steps"][0];
    assert_eq!(step["terminated"]["startedAt"], task_run["metadata"]["creationTimestamp"]);
    assert!(step.get("imageID").is_none(), "{step}");
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_a_run_it_is_cancelled() {
    for status in ["CancelledRunFinally", "StoppedRunFinally"] {
        let stage = released(VERSIONS[0], "success", "30m0s");
        stage.wait(1.4).await;
        stage.merge(RUN, &json!({"spec": {"status": status}}));
        stage.wait(60.0).await;
        assert_eq!(stage.condition(RUN)["reason"], "Cancelled");
        assert_eq!(stage.of_kind("TaskRun").len(), 1, "its second task has not begun");
        assert_eq!(stage.of_kind("TaskRun")[0]["spec"]["status"], "TaskRunCancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_while_it_is_pending() {
    let stage = Stage::set(12);
    stage.make(RUN, VERSIONS[1], "success");
    stage.wait(30.0).await;
    stage.merge(RUN, &json!({"spec": {"status": "Cancelled"}}));
    stage.wait(30.0).await;
    let runs = stage.of_kind("PipelineRun");
    assert_eq!(runs[0]["status"]["startTime"], runs[0]["status"]["completionTime"]);
    assert_eq!(stage.condition(RUN)["reason"], "Cancelled");
    assert_eq!(stage.objects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_done_is_not_cancelled() {
    let stage = released(VERSIONS[0], "success", "30m0s");
    stage.wait(30.0).await;
    stage.merge(RUN, &json!({"spec": {"status": "Cancelled"}}));
    stage.wait(30.0).await;
    assert_eq!(stage.condition(RUN)["reason"], "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_run_times_out_as_it_was_recorded() {
    for version in VERSIONS {
        let stories = [
            ("cancel-after", "timeout-of-run-after"),
            ("cancel-before", "timeout-of-run-before"),
            ("custom-run-cancelled", "custom-run-times-out"),
        ];
        for (story, ending) in stories {
            let stage = released(version, story, "8s");
            let begun = stage.now();
            stage.wait(7.9).await;
            assert_eq!(stage.condition(RUN)["status"], "Unknown");
            stage.wait(0.2).await;
            assert_eq!(stage.condition(RUN)["reason"], "PipelineRunTimeout", "{version}/{story}");
            stage.wait(20.0).await;
            assert!(stage.of_kind("Pod").is_empty(), "its pods are gone");
            let left = plain(stage.objects(), begun);
            let run = &left[&("PipelineRun".to_owned(), RUN.to_owned())];
            assert_eq!(run["status"]["completionTime"], "after 8 s");
            assert_same(&format!("{version}/{story}"), &timeless(left), &timeless(expected(version, ending, RUN)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_out_is_told_as_the_run_says_it() {
    let stage = released(VERSIONS[0], "cancel-after", "1h30m0s");
    stage.wait(2.0 * 3600.0).await;
    let message = stage.condition(RUN)["message"].clone();
    assert_eq!(message, format!("PipelineRun \"{RUN}\" failed to finish within \"1h30m0s\""));
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_deleted_run_goes() {
    for (version, story) in [(VERSIONS[0], "success"), (VERSIONS[1], "nested"), (VERSIONS[0], "cancel-after")] {
        let stage = released(version, story, "30m0s");
        stage.wait(4.6).await;
        assert!(!stage.of_kind("Pod").is_empty());
        stage.delete(RUN);
        assert!(!stage.of_kind("TaskRun").is_empty(), "not at once");
        stage.wait(40.0).await;
        assert!(stage.objects().is_empty(), "{story}: {:?}", stage.objects());
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_being_deleted_goes_on_no_more() {
    let stage = released(VERSIONS[0], "success", "30m0s");
    stage.merge(RUN, &json!({"metadata": {"finalizers": ["people.test/hold"]}}));
    stage.wait(1.1).await;
    stage.delete(RUN);
    let before = stage.log().len();
    stage.wait(60.0).await;
    assert_eq!(stage.log().len(), before);
}
