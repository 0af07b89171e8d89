//! Runs that somebody meddles with: cancelled, deleted, or a pod deleted under them; before and after a step started.

use wfe_testkit::{Outcome, Pipeline};

use super::play::{End, Play};
use super::script::{Act, When};

pub(super) fn plays() -> Vec<Play> {
    let one = |outcome| Pipeline::new().task("apply", outcome);
    let waiting = || one(Outcome::Waiting("ContainerCreating"));
    let held = || one(Outcome::Hold);
    let (before, after) = (When::Waiting("apply"), When::Running("apply"));
    vec![
        Play::of("cancel-while-resolving", held()).bundle_missing().then(When::Resolving, Act::Set("Cancelled")),
        Play::of("cancel-before", waiting()).then(before, Act::Set("Cancelled")),
        Play::of("cancel-after", held()).then(after, Act::Set("Cancelled")),
        Play::of("cancel-and-run-finally", held().finally("notify", Outcome::Ok))
            .then(after, Act::Set("CancelledRunFinally")),
        Play::of("delete-before", waiting()).then(before, Act::Delete).ends(End::Gone),
        Play::of("delete-after", held()).then(after, Act::Delete).ends(End::Gone),
        Play::of("pod-deleted", held())
            .then(after, Act::DeletePod("apply"))
            .then(after, Act::End("apply", Outcome::Ok)),
        Play::of("pod-deleted-then-fails", held())
            .then(after, Act::DeletePod("apply"))
            .then(after, Act::End("apply", Outcome::Exit(1))),
    ]
}
