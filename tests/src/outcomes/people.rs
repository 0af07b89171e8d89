//! Runs in which a person intervenes by a cancellation or by deleting the run or a pod, before or after a step has
//! started.

use wfe_testkit::{Outcome, Pipeline};

use super::play::{End, Play};
use super::script::{Act, When};

pub(super) fn plays() -> Vec<Play> {
    let one = |outcome| Pipeline::new().task("apply", outcome);
    let waiting = || one(Outcome::Waiting("ContainerCreating"));
    let held = || one(Outcome::Hold);
    let (before, after) = (When::Waiting("apply"), When::Running("apply"));
    vec![
        Play::of("cancel-while-resolving", "Somebody cancels the run while Tekton waits for the bundle.", held())
            .bundle_missing()
            .then(When::Resolving, Act::Set("Cancelled")),
        Play::of("cancel-before", "Somebody cancels the run while its container is being created.", waiting())
            .then(before, Act::Set("Cancelled")),
        Play::of("cancel-after", "Somebody cancels the run while its step runs.", held())
            .then(after, Act::Set("Cancelled")),
        Play::of(
            "cancel-and-run-finally",
            "Somebody cancels the run while its step runs, and lets the tasks at the end run.",
            held().finally("notify", Outcome::Ok),
        )
        .then(after, Act::Set("CancelledRunFinally")),
        Play::of("delete-while-resolving", "Somebody deletes the run while Tekton waits for the bundle.", held())
            .bundle_missing()
            .then(When::Resolving, Act::Delete)
            .ends(End::Gone),
        Play::of("delete-before", "Somebody deletes the run while its container is being created.", waiting())
            .then(before, Act::Delete)
            .ends(End::Gone),
        Play::of("delete-after", "Somebody deletes the run while its step runs.", held())
            .then(after, Act::Delete)
            .ends(End::Gone),
        Play::of(
            "pod-deleted",
            "Somebody deletes the pod of a running task; Tekton makes another, and that succeeds.",
            held(),
        )
        .then(after, Act::DeletePod("apply"))
        .then(after, Act::End("apply", Outcome::Ok)),
        Play::of(
            "pod-deleted-then-fails",
            "Somebody deletes the pod of a running task; Tekton makes another, and that exits with 1.",
            held(),
        )
        .then(after, Act::DeletePod("apply"))
        .then(after, Act::End("apply", Outcome::Exit(1))),
    ]
}
