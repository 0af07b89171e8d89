//! Runs whose pipeline is more than a row of tasks with one step each.

use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline};

use super::play::Play;
use super::script::{Act, When};

pub(super) fn plays() -> Vec<Play> {
    [of_tasks(), of_steps(), of_others()].concat()
}

fn of_tasks() -> Vec<Play> {
    let retried = |outcome| Pipeline::new().task("apply", outcome).patch(|task| task["retries"] = json!(1));
    let matrix = Pipeline::new().task("apply", Outcome::Hold).patch(|task| {
        task["matrix"] = json!({"params": [{"name": "zone", "value": ["a", "b"]}]});
        task["taskSpec"]["params"] = json!([{"name": "zone", "type": "string"}]);
    });
    let never = |pipeline: Pipeline| {
        pipeline.patch(|task| task["when"] = json!([{"input": "a", "operator": "in", "values": ["b"]}]))
    };
    let on_error = |task: &mut Value| task["onError"] = json!("continue");
    vec![
        Play::of("matrix", matrix.clone())
            .then(When::Running("apply-0"), Act::End("apply-0", Outcome::Ok))
            .then(When::Running("apply-1"), Act::End("apply-1", Outcome::Ok)),
        Play::of("matrix-one-fails", matrix)
            .then(When::Running("apply-0"), Act::End("apply-0", Outcome::Ok))
            .then(When::Running("apply-1"), Act::End("apply-1", Outcome::Exit(7))),
        Play::of("retries-in-vain", retried(Outcome::Exit(1))),
        Play::of("retries-help", retried(Outcome::Hold))
            .then(When::Running("apply"), Act::End("apply", Outcome::Exit(1)))
            .then(When::Retrying("apply"), Act::End("apply", Outcome::Ok)),
        Play::of("retries-after-image-pull", retried(Outcome::ImagePull)),
        Play::of("error-of-task-ignored", {
            Pipeline::new().task("check", Outcome::Exit(1)).patch(on_error).task("apply", Outcome::Ok)
        }),
        Play::of("task-skipped", never(Pipeline::new().task("check", Outcome::Ok).task("apply", Outcome::Ok))),
        Play::of("all-tasks-skipped", never(Pipeline::new().task("apply", Outcome::Ok))),
        Play::of(
            "finally-after-failure",
            Pipeline::new().task("apply", Outcome::Exit(1)).finally("notify", Outcome::Ok),
        ),
        Play::of("finally-fails", Pipeline::new().task("apply", Outcome::Ok).finally("notify", Outcome::Exit(1))),
        Play::of(
            "finally-image-pull",
            Pipeline::new().task("apply", Outcome::Ok).finally("notify", Outcome::ImagePull),
        ),
    ]
}

fn of_steps() -> Vec<Play> {
    // What Tekton's entrypoint writes: an error that is to be ignored, and a step that is skipped after a failure.
    let says = |key: &str, value: &str| json!([{"key": key, "value": value, "type": 3}]).to_string();
    let three = || Pipeline::new().task("apply", Outcome::Ok).step("write", Outcome::Exit(5));
    vec![
        Play::of("step-fails", {
            three().step("verify", Outcome::Exit(1)).annotated("message.step-verify", &says("Reason", "Skipped"))
        }),
        Play::of("error-of-step-ignored", {
            Pipeline::new()
                .task("apply", Outcome::Ok)
                .step("write", Outcome::Ok)
                .annotated("message.step-write", &says("ExitCode", "5"))
                .patch(|task| task["taskSpec"]["steps"][1]["onError"] = json!("continue"))
        }),
        Play::of("sidecar", Pipeline::new().task("apply", Outcome::Ok).sidecar("log", Outcome::Ok)),
        Play::of("sidecar-fails", Pipeline::new().task("apply", Outcome::Ok).sidecar("log", Outcome::Exit(1))),
        Play::of("sidecar-oom", Pipeline::new().task("apply", Outcome::Ok).sidecar("log", Outcome::Oom)),
        Play::of("step-and-sidecar-fail", Pipeline::new().task("apply", Outcome::Exit(1)).sidecar("log", Outcome::Oom)),
    ]
}

fn of_others() -> Vec<Play> {
    let custom = || Pipeline::new().custom("approve");
    let (asked, stop) = (When::HandedOver("approve"), When::ToldToStop("approve"));
    let nested = |outcome| Pipeline::new().pipeline("inner", &Pipeline::new().task("apply", outcome));
    vec![
        Play::of("custom-run", custom()).then(asked, Act::Answer("approve", "True")),
        Play::of("custom-run-fails", custom()).then(asked, Act::Answer("approve", "False")),
        Play::of("custom-run-times-out", custom()).timeout("8s").then(stop, Act::Answer("approve", "False")),
        Play::of("custom-run-cancelled", custom())
            .then(asked, Act::Set("Cancelled"))
            .then(stop, Act::Answer("approve", "False")),
        Play::of("nested", nested(Outcome::Ok)).repaired(),
        Play::of("nested-fails", nested(Outcome::Exit(1))).repaired(),
        Play::of("nested-image-pull", nested(Outcome::ImagePull)).repaired(),
    ]
}
