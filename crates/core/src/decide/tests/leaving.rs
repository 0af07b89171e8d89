//! Runs that are deleted while they run, and are held by a finalizer.

use super::*;
use crate::evidence::{Doubt, Started};
use crate::execution::Execution;
use crate::run::{Run, StopRequest};

/// A run that has been deleted since second 100. No task or pod of the run has been seen since `bare_since`.
fn leaves(bare_since: Option<i64>) -> Run {
    let stop = StopRequest {
        since: Some(at(100)),
        deleted_at: Some(at(100)),
        bare_since: bare_since.map(at),
        finalizers: "example.com/archive".into(),
        told: true,
        ..StopRequest::default()
    };
    Run { deleting: true, stop: Some(Box::new(stop)), ..run(1, "a", Progress::Released) }
}

fn over(run: Run, started: Started) -> Run {
    let mut over = looked_at(run, 130, started);
    over.memory.seen.is_over = true;
    over
}

fn decided(view: &Target, second: i64) -> Decision {
    let mut decision = decide(view, &Policy::default(), at(second));
    assert_eq!(crate::check::violations(view, &Policy::default(), at(second), &decision), []);
    decision.actions.retain(|action| !matches!(action, Action::Write(Write { says: Says::Progress { .. }, .. })));
    decision
}

fn held(run: Run, owner: Option<Execution>) -> Target {
    target(owner.into_iter().collect(), vec![run])
}

#[test]
fn a_run_that_is_deleted_while_it_runs_is_looked_at_when_nothing_of_it_was_seen_for_half_a_minute() {
    let examine = Action::Examine { run: run_id("r1") };
    let looks = |view: &Target, second| decided(view, second).actions.contains(&examine);
    for (bare_since, due) in [(100, 130), (115, 145), (90, 130)] {
        let view = held(leaves(Some(bare_since)), Some(running("a", "r1")));
        assert_eq!([due - 1, due].map(|second| looks(&view, second)), [false, true], "{bare_since}");
        assert!(!looks(&left(view, pod("a")), due), "a pod of it is there");
    }
    let first = held(leaves(None), Some(running("a", "r1")));
    assert_eq!(decided(&first, 500).wake, Some(at(530)), "this decision is the first that sees nothing");
    let looked = looked_at(leaves(Some(100)), 140, Started::Unknown(Doubt::Unfinished("t".into())));
    let again = held(looked, Some(running("a", "r1")));
    assert_eq!([169, 170].map(|second| looks(&again, second)), [false, true], "the look has found something");
}

#[test]
fn when_nothing_is_left_of_it_its_execution_ends_on_the_evidence() {
    let ends = |started: Started, seen: bool| {
        let mut run = over(leaves(Some(100)), started);
        run.memory.seen.proof = seen.then(proof);
        let view = held(run, Some(running("a", "r1")));
        let decision = decided(&view, 200);
        let failure = only_failure(&decision.actions).clone();
        (failure.was_execution_failure(), failure.message.to_string())
    };
    let (ran, message) = ends(waited(), false);
    assert!(!ran, "nothing of it ran");
    assert_eq!(
        message,
        "PipelineRun run-r1 was deleted while the workflow was running, and nothing of it is left; finalizers hold it: \
         example.com/archive"
    );
    assert!(ends(Started::Unknown(Doubt::TooMany), false).0 && ends(waited(), true).0);
}

#[test]
fn its_target_is_free_when_it_is_over_and_not_before() {
    let rivals = |run: Run, owner: Execution| {
        let view = target(vec![owner, undecided("b")], vec![run]);
        let decision = decided(&view, 120);
        let creates = decision.actions.contains(&create("b", 2));
        (creates, decision.waiting.into_iter().next().map(|(_, waiting)| waiting.reason()))
    };
    let leaving = leaves(Some(100));
    assert_eq!(rivals(leaving.clone(), running("a", "r1")), (false, Some("Draining")), "it waits, and is not skipped");
    assert_eq!(rivals(leaving.clone(), failed("a")), (false, Some("Draining")), "also after a restart");
    let mut gone = over(leaving, waited());
    assert_eq!(rivals(gone.clone(), running("a", "r1")), (false, Some("OwnerLate")), "its end is not written yet");
    gone.memory.diagnosed = None;
    assert_eq!(rivals(gone, failed("a")), (true, None));
}

#[test]
fn the_run_of_a_deleted_execution_frees_its_target_too() {
    let mut orphan = leaves(Some(100));
    orphan.owner = Owner::Execution { id: id("a"), workflow_id: "wf".into(), presence: Presence::Gone };
    let view = |run: Run| target(vec![undecided("b")], vec![run]);
    let decision = decided(&view(orphan.clone()), 130);
    assert!(decision.actions.contains(&Action::Examine { run: run_id("r1") }), "{decision:?}");
    assert_eq!(decided(&view(over(orphan, waited())), 131).actions, [create("b", 2)]);
}
