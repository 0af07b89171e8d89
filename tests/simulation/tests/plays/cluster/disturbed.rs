//! A controller that is stopped, and servers that lose objects.

use serde_json::{Value, json};
use wfe_simulation::cluster::scripts::VERSIONS;

use super::compare::{assert_same, expected, plain, timeless};
use super::stage::{Stage, path};

const RUN: &str = "wfe-0123456789abcdef-12";

#[tokio::test(start_paused = true)]
async fn a_controller_goes_on_where_it_was() {
    for at in [0.0, 0.9, 1.1, 2.05, 2.2, 3.4] {
        let stage = Stage::set(21);
        stage.make(RUN, VERSIONS[0], "success");
        stage.wait(1.0).await;
        stage.release(RUN);
        let begun = stage.now();
        if at > 0.0 {
            stage.wait(at).await;
        }
        stage.weather.send_modify(|it| it.tekton_is_down = true);
        let before = stage.log().len();
        stage.wait(300.0).await;
        assert_eq!(stage.log().len(), before, "while it is down, it does nothing");
        stage.weather.send_modify(|it| it.tekton_is_down = false);
        stage.wait((2.9 - at).max(0.0)).await;
        assert_eq!(stage.condition(RUN)["reason"] == "Succeeded", at > 3.0, "{at}: what is left takes its time");
        stage.wait(60.0).await;
        let left = plain(stage.objects(), begun);
        let run = &left[&("PipelineRun".to_owned(), RUN.to_owned())];
        let ended = run["status"]["completionTime"].as_str().unwrap();
        assert!(ended == "after 303 s" || at > 3.0, "{at}: {ended}");
        assert_same(&format!("{at}"), &timeless(left), &timeless(expected(VERSIONS[0], "success", RUN)));
    }
}

#[tokio::test(start_paused = true)]
async fn compaction_loses_nothing() {
    let stage = Stage::set(22);
    stage.make(RUN, VERSIONS[1], "exit-second");
    stage.release(RUN);
    let begun = stage.now();
    for _ in 0..100 {
        stage.wait(0.1).await;
        stage.api.with(wfe_simulation::server::Server::compact);
    }
    assert_same("compacted", &plain(stage.objects(), begun), &expected(VERSIONS[1], "exit-second", RUN));
    stage.delete(RUN);
    stage.api.with(wfe_simulation::server::Server::compact);
    stage.wait(40.0).await;
    assert!(stage.objects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_waited_for() {
    let stage = Stage::set(23);
    let name = format!("{RUN}-check");
    let other = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"name": name}, "spec": {}});
    stage.send("POST", &path("taskruns", ""), "application/json", &other);
    stage.make(RUN, VERSIONS[0], "success");
    stage.release(RUN);
    stage.wait(60.0).await;
    assert_eq!(stage.condition(RUN)["reason"], "ResolvingPipelineRef");
    stage.send("DELETE", &path("taskruns", &name), "application/json", &Value::Null);
    stage.wait(10.0).await;
    assert_eq!(stage.condition(RUN)["reason"], "Succeeded");
    assert_eq!(stage.of_kind("Pod").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_the_same_name_is_another_run() {
    let stage = Stage::set(23);
    for story in ["cancel-after", "success"] {
        // The garbage collector deletes the objects of the first run while the second run begins.
        stage.make(RUN, VERSIONS[0], story);
        stage.release(RUN);
        stage.wait(4.0).await;
        if story == "cancel-after" {
            stage.delete(RUN);
        }
    }
    stage.wait(60.0).await;
    assert_eq!(stage.condition(RUN)["reason"], "Succeeded");
    let owner = |task: &Value| task["metadata"]["ownerReferences"][0]["uid"].clone();
    let owners: Vec<Value> = stage.of_kind("TaskRun").iter().map(owner).collect();
    let uid = stage.of_kind("PipelineRun")[0]["metadata"]["uid"].clone();
    assert_eq!(owners, [uid.clone(), uid]);
}
