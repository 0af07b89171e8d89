//! Runs that take too long: the whole run, a task, or a `finally` task, before or after a step has started.

use serde_json::json;
use wfe_testkit::{Outcome, Pipeline};

use super::play::Play;

/// An outcome in which the containers wait for ever for their creation.
const WAITING: Outcome = Outcome::Waiting("ContainerCreating");

pub(super) fn plays() -> Vec<Play> {
    let one = |outcome| Pipeline::new().task("apply", outcome);
    let short = |pipeline: Pipeline| pipeline.patch(|task| task["timeout"] = json!("5s"));
    let at_the_end = || one(Outcome::Ok).finally("notify", Outcome::Hold);
    vec![
        Play::of("timeout-of-run-before", "The run times out while its container is being created.", one(WAITING))
            .timeout("8s"),
        Play::of("timeout-of-run-after", "The run times out while its step runs.", one(Outcome::Hold)).timeout("8s"),
        Play::of(
            "timeout-of-run-in-second",
            "The run times out in its second task.",
            Pipeline::new().task("check", Outcome::Ok).task("apply", Outcome::Hold),
        )
        .timeout("10s"),
        Play::of(
            "timeout-of-task-before",
            "A task times out while its container is being created.",
            short(one(WAITING)),
        ),
        Play::of("timeout-of-task-after", "A task times out while its step runs.", short(one(Outcome::Hold))),
        Play::of(
            "timeout-of-finally-before",
            "A task at the end times out while its container is being created.",
            short(one(Outcome::Ok).finally("notify", WAITING)),
        ),
        Play::of("timeout-of-finally-after", "A task at the end times out while its step runs.", short(at_the_end())),
        Play::of(
            "timeout-while-image-is-pulled",
            "The run times out while its image is tried again.",
            one(Outcome::Waiting("ErrImagePull")),
        )
        .timeout("8s"),
        Play::of(
            "timeouts-tasks",
            "The time for the tasks before the end is over.",
            one(Outcome::Hold).finally("notify", Outcome::Ok),
        )
        .plain_timeouts(json!({"pipeline": "1m0s", "tasks": "8s"})),
        Play::of("timeouts-finally", "The time for the tasks at the end is over.", at_the_end())
            .plain_timeouts(json!({"pipeline": "1m0s", "finally": "8s"})),
    ]
}
