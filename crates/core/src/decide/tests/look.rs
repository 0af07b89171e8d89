//! The look: earlier runs, and lost answers to creates.

use super::*;

#[test]
fn at_the_look_a_run_withdraws_before_an_earlier_one() {
    for earlier in [Progress::Pending, Progress::Released] {
        let mut first = run(1, "x", earlier);
        // The execution belongs to another operator, in a namespace that is not watched.
        first.owner = Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Unwatched };
        let target = target(vec![undecided("a")], vec![first, run(2, "a", Progress::Pending)]);
        let decided = actions(&target);
        let is_pending = target.runs[&Uid::new("r1")].is_pending();
        match &decided[..] {
            // The earlier run may be withdrawn, too. The operator then decides again.
            [Action::Write(Write { execution, says: Says::GaveUp { number: 2 }, .. })] if is_pending => {
                assert_eq!(*execution, id("a"));
            }
            [Action::Skip { skipped, .. }] if !is_pending => assert_eq!(skipped[0].0, id("a")),
            _ => panic!("{decided:?}"),
        }
    }
}

#[test]
fn a_run_that_was_given_up_is_deleted_and_never_committed_to() {
    let mut given_up = undecided("a");
    given_up.run_sequence = Some(1);
    let before = target(vec![given_up.clone()], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&before), [deleted("r1", Unneeded::Withdrawn, None)]);
    assert_eq!(waiting(&before), [("a".into(), Waiting::Withdrawn)]);
    assert_eq!(actions(&target(vec![given_up.clone()], vec![])), [create("a", 2)]);
    let next = target(vec![given_up.clone()], vec![run(2, "a", Progress::Pending)]);
    assert_eq!(actions(&next), [committed("a", "r2", 2, &[])]);
    let released = target(vec![given_up], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&released), [committed("a", "r1", 1, &[])], "somebody has released it all the same");
}

#[test]
fn at_the_look_a_later_run_does_not_count() {
    let mut later = run(2, "x", Progress::Pending);
    later.owner = Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Unwatched };
    let target = target(vec![undecided("a")], vec![run(1, "a", Progress::Pending), later]);
    assert_eq!(actions(&target), [committed("a", "r1", 1, &[])]);
}

#[test]
fn at_the_look_one_that_is_running_on_a_later_run_does_not_count() {
    let later = run(2, "b", Progress::Pending);
    let target = target(vec![undecided("a"), running("b", "r2")], vec![run(1, "a", Progress::Pending), later]);
    assert!(actions(&target).contains(&committed("a", "r1", 1, &[])));
}

#[test]
fn two_runs_of_one_list_both_withdraw() {
    let mut second = run(2, "b", Progress::Pending);
    second.order = Order(1);
    let target = target(vec![undecided("a"), undecided("b")], vec![run(1, "a", Progress::Pending), second]);
    assert_eq!(actions(&target), [gives_up("a", 1), gives_up("b", 2)]);
}

#[test]
fn a_run_that_was_released_past_its_owner_is_committed_to_and_never_deleted() {
    let released = target(vec![undecided("a")], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&released), [committed("a", "r1", 1, &[])]);
    let finished = target(vec![undecided("a")], vec![run(1, "a", done(true))]);
    assert_eq!(actions(&finished), [committed("a", "r1", 1, &[])]);
}

#[test]
fn a_commit_reads_live_that_the_unknown_owners_of_finished_runs_are_gone() {
    let history = vec![run(1, "x", done(true)), run(2, "y", done(false)), run(3, "a", Progress::Pending)];
    let mut target = target(vec![undecided("a")], history);
    assert_eq!(actions(&target), [committed("a", "r3", 3, &["x", "y"])]);
    if let Some(Owner::Execution { presence, .. }) = target.runs.get_mut(&Uid::new("r1")).map(|run| &mut run.owner) {
        *presence = Presence::Gone;
    }
    assert_eq!(actions(&target), [committed("a", "r3", 3, &["y"])]);
}
