//! Executions that ask for a turn on one target at the same time.
use super::*;

#[test]
fn of_rivals_the_oldest_goes_first_and_the_others_wait_for_their_turn() {
    let mut old = undecided("z");
    old.created = at(-5);
    let target = target(vec![undecided("b"), undecided("a"), old], vec![]);
    assert_eq!(actions(&target), [create("z", 1)]);
    assert_eq!(waiting(&target), [("a".into(), behind("z")), ("b".into(), behind("z"))]);
}

#[test]
fn rivals_wait_while_a_run_is_pending_and_uncommitted() {
    let target = target(vec![undecided("a"), undecided("b")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&target), [committed("a", "r1", 1, &[])]);
    assert_eq!(waiting(&target), [("b".into(), Waiting::RivalUndecided)]);
}

#[test]
fn all_rivals_of_a_committed_run_are_skipped_in_one_batch_on_one_fact() {
    for progress in [Progress::Pending, Progress::Released] {
        let target = target(vec![running("a", "r1"), undecided("b"), undecided("c")], vec![run(1, "a", progress)]);
        let skips: Vec<_> = actions(&target).into_iter().filter(|a| matches!(a, Action::Skip { .. })).collect();
        let [Action::Skip { skipped, skip, fact }] = &skips[..] else { panic!("{skips:?}") };
        assert_eq!(skipped.iter().map(|(id, _)| id.uid.to_string()).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(*fact, Fact::Unfinished(run_id("r1")));
        let conflict = Conflict {
            holder: id("a"),
            workflow_id: "wf".into(),
            started_at: at(0),
            deleted: false,
            draining: false,
            next: None,
            unanswered: None,
        };
        assert_eq!(*skip, Skip::ResourceBusy(conflict));
    }
}

#[test]
fn rivals_wait_while_a_finished_runs_owner_is_late() {
    let done_but_running = target(vec![running("a", "r1"), undecided("b")], vec![run(1, "a", done(true))]);
    assert_eq!(waiting(&done_but_running), [("b".into(), Waiting::OwnerLate)]);
    let run_vanished = target(vec![running("a", "r1"), undecided("b")], vec![]);
    assert_eq!(waiting(&run_vanished), [("b".into(), Waiting::OwnerLate)]);
}

#[test]
fn a_terminal_owner_frees_the_target() {
    let target = target(vec![failed("a"), undecided("b")], vec![run(1, "a", done(false))]);
    assert_eq!(actions(&target), [create("b", 2)]);
}

#[test]
fn an_execution_on_its_way_out_gets_no_turn() {
    let mut leaving = undecided("a");
    leaving.deleting = true;
    assert_eq!(actions(&target(vec![leaving], vec![])), []);
}
