//! What is written of a run while it goes on.

use super::*;
use crate::execution::{Execution, RunShown};
use crate::findings::TaskCount;
use crate::run::{Run, RunMemory, Seen};

fn released(completed_tasks: u32) -> Run {
    let seen = Seen { has_stirred: true, proof: Some(proof()), completed_tasks, ..Seen::default() };
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

fn says(completed: u32) -> RunShown {
    RunShown { proof: Some(Box::new(proof())), tasks: Some(TaskCount { completed, total: 3 }) }
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

#[test]
fn steps_that_ran_again_are_told_of_once() {
    let owner = running("a", "r1");
    let mut replayed = released(0);
    replayed.memory.seen.replayed = Some("task-run".into());
    let tell = Action::Tell(Tell::Replay { execution: id("a"), run: run_id("r1"), task_run: "task-run".into() });
    assert_eq!(decided(&owner, replayed.clone(), 3).actions, [tell]);
    replayed.memory.seen.replay_told = true;
    assert_eq!(decided(&owner, replayed, 3).actions, []);
}
