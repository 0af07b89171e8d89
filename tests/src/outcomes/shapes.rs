//! Runs whose pipeline is more than a sequence of tasks with one step each.

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
    let at_once = Pipeline::new()
        .task("check", Outcome::Exit(1))
        .task("apply", Outcome::Exit(2))
        .patch(|task| task["runAfter"] = json!([]));
    vec![
        Play::of("two-fail", "Two tasks at once exit, with 1 and with 2.", at_once),
        Play::of("matrix", "A matrix of two; both succeed.", matrix.clone())
            .then(When::Running("apply-0"), Act::End("apply-0", Outcome::Ok))
            .then(When::Running("apply-1"), Act::End("apply-1", Outcome::Ok)),
        Play::of("matrix-one-fails", "A matrix of two; the second exits with 7.", matrix)
            .then(When::Running("apply-0"), Act::End("apply-0", Outcome::Ok))
            .then(When::Running("apply-1"), Act::End("apply-1", Outcome::Exit(7))),
        Play::of(
            "retries-in-vain",
            "A task exits with 1, is retried by Tekton, and exits with 1 again.",
            retried(Outcome::Exit(1)),
        ),
        Play::of("retries-help", "A task exits with 1, is retried by Tekton, and succeeds.", retried(Outcome::Hold))
            .then(When::Running("apply"), Act::End("apply", Outcome::Exit(1)))
            .then(When::Retrying("apply"), Act::End("apply", Outcome::Ok)),
        Play::of(
            "retries-after-timeout",
            "A task times out while its step runs, twice.",
            retried(Outcome::Hold).patch(|task| task["timeout"] = json!("5s")),
        ),
        Play::of(
            "retries-after-image-pull",
            "The image of a task cannot be pulled, twice.",
            retried(Outcome::ImagePull),
        ),
        Play::of("error-of-task-ignored", "The first of two tasks exits with 1, which the pipeline ignores.", {
            Pipeline::new().task("check", Outcome::Exit(1)).patch(on_error).task("apply", Outcome::Ok)
        }),
        Play::of(
            "error-ignored-then-failure",
            "The first of two tasks exits with 1, which the pipeline ignores, and the second with 2.",
            Pipeline::new().task("check", Outcome::Exit(1)).patch(on_error).task("apply", Outcome::Exit(2)),
        ),
        Play::of(
            "task-skipped",
            "The second of two tasks is skipped.",
            never(Pipeline::new().task("check", Outcome::Ok).task("apply", Outcome::Ok)),
        ),
        Play::of("all-tasks-skipped", "The only task is skipped.", never(Pipeline::new().task("apply", Outcome::Ok))),
        Play::of(
            "finally-after-failure",
            "A task exits with 1, and the task at the end succeeds.",
            Pipeline::new().task("apply", Outcome::Exit(1)).finally("notify", Outcome::Ok),
        ),
        Play::of(
            "finally-fails",
            "The task at the end exits with 1.",
            Pipeline::new().task("apply", Outcome::Ok).finally("notify", Outcome::Exit(1)),
        ),
        Play::of(
            "finally-image-pull",
            "The image of the task at the end cannot be pulled.",
            Pipeline::new().task("apply", Outcome::Ok).finally("notify", Outcome::ImagePull),
        ),
    ]
}

fn of_steps() -> Vec<Play> {
    // Tekton's entrypoint reports these: an error that is to be ignored, and a step that is skipped after a failure.
    let says = |key: &str, value: &str| json!([{"key": key, "value": value, "type": 3}]).to_string();
    let three = || Pipeline::new().task("apply", Outcome::Ok).step("write", Outcome::Exit(5));
    vec![
        Play::of("step-fails", "The second of three steps exits with 5; the third is skipped.", {
            three().step("verify", Outcome::Exit(1)).annotated("message.step-verify", &says("Reason", "Skipped"))
        }),
        Play::of(
            "oom-of-second-step",
            "The second of two steps is killed for its memory.",
            Pipeline::new().task("apply", Outcome::Ok).step("write", Outcome::Oom),
        ),
        Play::of("error-of-step-ignored", "The second of two steps exits with 5, which the task ignores.", {
            Pipeline::new()
                .task("apply", Outcome::Ok)
                .step("write", Outcome::Ok)
                .annotated("message.step-write", &says("ExitCode", "5"))
                .patch(|task| task["taskSpec"]["steps"][1]["onError"] = json!("continue"))
        }),
        Play::of(
            "sidecar",
            "A task with a sidecar succeeds.",
            Pipeline::new().task("apply", Outcome::Ok).sidecar("log", Outcome::Ok),
        ),
        Play::of(
            "sidecar-fails",
            "The sidecar of a task exits with 1, and its step with 0.",
            Pipeline::new().task("apply", Outcome::Ok).sidecar("log", Outcome::Exit(1)),
        ),
        Play::of(
            "sidecar-oom",
            "The sidecar of a task is killed for its memory, and its step exits with 0.",
            Pipeline::new().task("apply", Outcome::Ok).sidecar("log", Outcome::Oom),
        ),
        Play::of(
            "step-and-sidecar-fail",
            "The sidecar of a task is killed for its memory, and its step exits with 1.",
            Pipeline::new().task("apply", Outcome::Exit(1)).sidecar("log", Outcome::Oom),
        ),
    ]
}

fn of_others() -> Vec<Play> {
    let custom = || Pipeline::new().custom("approve");
    let (asked, stop) = (When::HandedOver("approve"), When::ToldToStop("approve"));
    let nested = |outcome| Pipeline::new().pipeline("inner", &Pipeline::new().task("apply", outcome));
    vec![
        Play::of("custom-run", "A task of another controller succeeds.", custom())
            .then(asked, Act::Answer("approve", "True")),
        Play::of("custom-run-fails", "A task of another controller fails.", custom())
            .then(asked, Act::Answer("approve", "False")),
        Play::of("custom-run-times-out", "The run times out while another controller has the task.", custom())
            .timeout("8s")
            .then(stop, Act::Answer("approve", "False")),
        Play::of("custom-run-cancelled", "Somebody cancels the run while another controller has the task.", custom())
            .then(asked, Act::Set("Cancelled"))
            .then(stop, Act::Answer("approve", "False")),
        Play::of("nested", "A pipeline in the pipeline succeeds.", nested(Outcome::Ok)).repaired(),
        Play::of("nested-fails", "The task of a pipeline in the pipeline exits with 1.", nested(Outcome::Exit(1)))
            .repaired(),
        Play::of(
            "nested-image-pull",
            "The image of the task of a pipeline in the pipeline cannot be pulled.",
            nested(Outcome::ImagePull),
        )
        .repaired(),
    ]
}
