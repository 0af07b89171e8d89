//! Runs that take too long: as a whole, in a task, in a task at the end; before and after a step has started.

use serde_json::json;
use wfe_testkit::{Outcome, Pipeline};

use super::play::Play;

/// Containers that are being created, and never are.
const WAITING: Outcome = Outcome::Waiting("ContainerCreating");

pub(super) fn plays() -> Vec<Play> {
    let one = |outcome| Pipeline::new().task("apply", outcome);
    let short = |pipeline: Pipeline| pipeline.patch(|task| task["timeout"] = json!("5s"));
    let at_the_end = || one(Outcome::Ok).finally("notify", Outcome::Hold);
    vec![
        Play::of("timeout-of-run-before", one(WAITING)).timeout("8s"),
        Play::of("timeout-of-run-after", one(Outcome::Hold)).timeout("8s"),
        Play::of("timeout-of-task-before", short(one(WAITING))),
        Play::of("timeout-of-task-after", short(one(Outcome::Hold))),
        Play::of("timeout-of-finally-before", short(one(Outcome::Ok).finally("notify", WAITING))),
        Play::of("timeout-of-finally-after", short(at_the_end())),
        Play::of("timeout-while-image-is-pulled", one(Outcome::Waiting("ErrImagePull"))).timeout("8s"),
        Play::of("timeouts-tasks", one(Outcome::Hold).finally("notify", Outcome::Ok))
            .plain_timeouts(json!({"pipeline": "1m0s", "tasks": "8s"})),
        Play::of("timeouts-finally", at_the_end()).plain_timeouts(json!({"pipeline": "1m0s", "finally": "8s"})),
    ]
}
