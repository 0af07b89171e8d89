//! Status writes while a run is in progress.

use super::*;
use crate::awaiting::Awaiting;
use crate::execution::{Execution, RunShown};
use crate::findings::{TaskCount, Wait};
use crate::run::{Run, RunMemory, Seen};

fn released(completed_tasks: u16) -> Run {
    let seen = Seen { has_started_anything: true, proof: Some(proof()), completed_tasks, ..Seen::default() };
    let memory = RunMemory { seen, ..RunMemory::default() };
    Run { total_tasks: Some(3), memory, ..run(1, "a", Progress::Released) }
}

fn decided(owner: &Execution, run: Run, second: i64) -> Decision {
    decide(&target(vec![owner.clone()], vec![run]), &Policy::default(), at(second))
}

fn shown(decision: &Decision) -> Vec<RunShown> {
    let shown = decision.actions.iter().map(|action| match action {
        Action::Write(Write { says: Says::Progress { shown, .. }, .. }) => shown.clone(),
        other => panic!("{other:?}"),
    });
    shown.collect()
}

fn says(completed: u16) -> RunShown {
    RunShown { proof: Some(Box::new(proof())), tasks: Some(TaskCount { completed, total: 3 }), awaits: None }
}

#[test]
fn how_far_a_run_is_and_that_a_step_ran_is_written_after_five_seconds() {
    let owner = running("a", "r1");
    let early = decided(&owner, released(1), 4);
    assert_eq!((shown(&early), early.wake), (vec![], Some(at(5))));
    assert_eq!(shown(&decided(&owner, released(1), 5)), [says(1)]);
    let waits = Run { memory: RunMemory::default(), total_tasks: None, ..released(0) };
    assert_eq!(shown(&decided(&owner, waits, 5)), [], "there is nothing to say");
    let pending = Run { progress: Progress::Pending, ..released(1) };
    assert_eq!(decided(&owner, pending, 5).actions, [releases("r1")]);
}

#[test]
fn it_is_written_again_when_it_changes_but_not_within_five_seconds() {
    let mut owner = running("a", "r1");
    owner.run_shown = says(1);
    owner.remember().progress_shown_at = Some(at(10));
    assert_eq!(shown(&decided(&owner, released(1), 100)), []);
    let early = decided(&owner, released(2), 14);
    assert_eq!((shown(&early), early.wake), (vec![], Some(at(15))));
    assert_eq!(shown(&decided(&owner, released(2), 15)), [says(2)]);
}

#[test]
fn a_proof_stays_where_it_is_not_seen_any_more() {
    let mut owner = running("a", "r1");
    owner.run_shown = says(1);
    let restarted = Run { memory: RunMemory::default(), ..released(0) };
    assert_eq!(shown(&decided(&owner, restarted, 100)), [says(0)]);
    owner.run_shown.tasks = None;
    let mut late = decided(&owner, Run { total_tasks: None, memory: RunMemory::default(), ..released(0) }, 400);
    assert_eq!((late.actions.len(), late.wake.take()), (0, Some(at(30 * 60 + 60))), "it has started, says the status");
}

/// A run that was released at second 100 and of which nothing has started. `wait` is what it waits for.
fn waits(wait: Option<Wait>) -> Run {
    let seen = Seen { waits: wait, ..Seen::default() };
    Run {
        released_at: Some(at(100)),
        memory: RunMemory { seen, ..RunMemory::default() },
        ..run(1, "a", Progress::Released)
    }
}

/// Returns what the execution waits for according to its new status.
fn awaited(decision: &Decision) -> Option<(String, Option<Wait>)> {
    decision.actions.iter().find_map(|action| match action {
        Action::Write(Write { says: Says::Progress { shown, wait, .. }, .. }) => {
            let message = shown.awaits.as_ref().map_or_else(String::new, |awaits| awaits.message.to_string());
            Some((message, *wait))
        }
        _ => None,
    })
}

fn waits_at(owner: &Execution, run: &Run, second: i64) -> Decision {
    let view = target(vec![owner.clone()], vec![run.clone()]);
    let decision = decide(&view, &Policy::default(), at(second));
    assert_eq!(crate::check::violations(&view, &Policy::default(), at(second), &decision), []);
    decision
}

/// Records in the status, at a second, that the run waits for this.
fn says_that_it_waits(owner: &mut Execution, wait: Wait, second: i64) {
    let awaiting = Awaiting::Starting { wait, until: at(100) + Policy::default().start_deadline };
    owner.run_shown.awaits = Some(Box::new(awaiting.shown(None)));
    let memory = owner.remember();
    memory.progress_shown_at = Some(at(second));
    memory.waits_shown.retain(|(said, _)| *said != wait);
    memory.waits_shown.push((wait, at(second)));
}

#[test]
fn what_a_run_waits_for_is_said_five_seconds_after_its_release_until_something_has_started() {
    let mut owner = running("a", "r1");
    let early = waits_at(&owner, &waits(Some(Wait::Node)), 104);
    assert_eq!((awaited(&early), early.wake, early.awaiting.len()), (None, Some(at(105)), 1));
    let until = "; cancelled at 2027-01-15T08:06:40Z if nothing starts";
    for (wait, words) in [
        (Wait::Bundle, "waits for the bundle to be fetched"),
        (Wait::Quota, "waits for room in the quota of the execution namespace"),
        (Wait::Node, "waits for a node with room for its pod"),
        (Wait::Image, "waits for an image to be pulled"),
    ] {
        let said = awaited(&waits_at(&owner, &waits(Some(wait)), 105));
        assert_eq!(said, Some((format!("{words}{until}"), Some(wait))));
    }
    let untouched = Run { doing: "".into(), ..waits(None) };
    let said = awaited(&waits_at(&owner, &untouched, 105));
    assert_eq!(said, Some((format!("waits for Tekton to take it up{until}"), Some(Wait::Controller))));
    assert_eq!(awaited(&waits_at(&owner, &waits(None), 105)), None, "Tekton does not say what for");

    says_that_it_waits(&mut owner, Wait::Node, 105);
    assert_eq!(awaited(&waits_at(&owner, &waits(Some(Wait::Node)), 200)), None, "once");
    assert_eq!(awaited(&waits_at(&owner, &waits(None), 200)), None, "nothing has started");
    let mut started = waits(Some(Wait::Node));
    started.memory.seen.has_started_anything = true;
    assert_eq!(awaited(&waits_at(&owner, &started, 200)), Some((String::new(), None)), "the workflow runs");
}

#[test]
fn a_reason_that_was_said_within_a_minute_is_not_said_again() {
    let mut owner = running("a", "r1");
    says_that_it_waits(&mut owner, Wait::Node, 110);
    says_that_it_waits(&mut owner, Wait::Image, 120);
    let flaps = waits_at(&owner, &waits(Some(Wait::Node)), 130);
    assert_eq!((awaited(&flaps), flaps.wake), (None, Some(at(170))));
    assert!(awaited(&waits_at(&owner, &waits(Some(Wait::Node)), 170)).is_some_and(|(said, _)| said.contains("a node")));
    let other = waits_at(&owner, &waits(Some(Wait::Quota)), 124);
    assert_eq!((awaited(&other), other.wake), (None, Some(at(125))), "at most every five seconds");
    assert!(awaited(&waits_at(&owner, &waits(Some(Wait::Quota)), 125)).is_some());
}

#[test]
fn steps_that_ran_again_are_told_of_once() {
    let owner = running("a", "r1");
    let mut replayed = released(0);
    replayed.memory.seen.replayed = Some("task-run".into());
    let tell = Action::Tell(Announce::Replay { execution: id("a"), run: run_id("r1"), task_run: "task-run".into() });
    assert_eq!(decided(&owner, replayed.clone(), 3).actions, [tell]);
    replayed.memory.seen.replay_told = true;
    assert_eq!(decided(&owner, replayed, 3).actions, []);
}
