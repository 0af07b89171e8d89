//! An execution whose run has ended while tasks or pods of the run still stop.
use super::*;

#[test]
fn a_run_that_is_done_ends_its_execution_at_once_or_when_what_is_left_of_it_had_time_to_be_seen() {
    let mut finished = run(1, "a", done(true));
    finished.memory.done_seen = Some(at(49));
    let target = left(target(vec![running("a", "r1")], vec![finished]), pod("a"));
    let waits = decide(&target, &Policy::default(), at(50));
    assert_eq!((waits.actions, waits.wake), (vec![], Some(at(49) + SETTLE)));
    let decided = decide(&target, &Policy::default(), at(51)).actions;
    assert!(
        matches!(&decided[..], [Action::Write(Write { says: Says::Ended { draining: true, .. }, .. })]),
        "{decided:?}"
    );
}

#[test]
fn a_run_that_failed_has_longer_to_drain_where_a_look_could_not_tell_whether_anything_ran() {
    use crate::evidence::{Doubt, Started};
    let draining = |started: Option<Started>, second| {
        let mut finished = run(1, "a", done(false));
        finished.memory.done_seen = Some(at(49));
        let finished = match started {
            Some(started) => looked_at(finished, 51, started),
            None => finished,
        };
        let view = left(target(vec![running("a", "r1")], vec![finished]), pod("a"));
        let decided = decide(&view, &Policy::default(), at(second));
        (decided.actions.first().map(std::mem::discriminant), decided.wake)
    };
    let is_examined = Some(std::mem::discriminant(&Action::Examine { run: run_id("r1") }));
    assert_eq!(draining(None, 50), (None, Some(at(49) + SETTLE)));
    assert_eq!(draining(None, 51).0, is_examined);
    let unseen = || Some(Started::Unknown(Doubt::Unseen("t".into())));
    assert_eq!(draining(unseen(), 60), (None, Some(at(51) + DRAIN)));
    assert_eq!(draining(unseen(), 51 + 32).0, is_examined);
    assert!(![None, is_examined].contains(&draining(Some(waited()), 51).0), "that is an answer");
}

#[test]
fn a_failed_run_that_drains_waits_for_another_look_only_where_that_look_may_find_more() {
    use crate::evidence::{Doubt, Started};
    let decided = |looked: i64, started: Started, is_certain: bool, second: i64| {
        let mut finished = run(1, "a", done(false));
        finished.memory.done_seen = Some(at(49));
        let mut finished = looked_at(finished, looked, started);
        finished.memory.seen.proof = is_certain.then(proof);
        let view = left(target(vec![running("a", "r1")], vec![finished]), pod("a"));
        let decision = decide(&view, &Policy::default(), at(second));
        (decision.actions, decision.wake)
    };
    let unseen = || Started::Unknown(Doubt::Unseen("t".into()));
    let settled = (vec![], Some(at(49) + SETTLE));
    assert_eq!(decided(49, waited(), false, 50), settled, "another look finds nothing more");
    assert_eq!(decided(49, unseen(), true, 50), settled, "the proof that a step ran settles it");
    assert_eq!(decided(49, unseen(), false, 50), (vec![], Some(at(49) + DRAIN)), "another look may find more");
    assert_eq!(decided(49, unseen(), false, 49 + 32).0, [Action::Examine { run: run_id("r1") }], "it took too long");
}

#[test]
fn while_a_target_drains_rivals_are_skipped_on_what_is_left() {
    let drains = left(target(vec![failed("a"), undecided("b")], vec![run(1, "a", done(false))]), pod("a"));
    let decided = actions(&drains);
    let [Action::Skip { skip: Skip::ResourceBusy(conflict), fact: Fact::Draining(left), .. }] = &decided[..] else {
        panic!("{decided:?}")
    };
    assert_eq!((conflict.draining, &conflict.holder, &*left.name), (true, &id("a"), "pod"));
}

#[test]
fn what_is_left_of_a_deleted_run_drains_too_and_what_names_nobody_is_waited_for() {
    assert!(matches!(&actions(&left(target(vec![undecided("b")], vec![]), pod("a")))[..], [Action::Skip { .. }]));
    let nobodys = Residue { owner: Owner::Nobody, ..pod("a") };
    let target = left(target(vec![undecided("b")], vec![]), nobodys);
    assert_eq!(waiting(&target), [("b".into(), Waiting::Draining)]);
}

#[test]
fn at_the_look_an_execution_is_skipped_by_what_drains() {
    let decided = actions(&left(target(vec![undecided("b")], vec![run(2, "b", Progress::Pending)]), pod("a")));
    assert!(matches!(&decided[..], [Action::Skip { fact: Fact::Draining(_), .. }]), "{decided:?}");
}

#[test]
fn a_status_that_says_draining_says_free_when_nothing_is_left() {
    let mut ended = failed("a");
    ended.draining_shown = true;
    let drains = target(vec![ended], vec![]);
    let freed = written("a", vec![], Says::Freed);
    assert_eq!(actions(&drains), [freed]);
    assert_eq!(actions(&left(drains, pod("a"))), []);
}

#[test]
fn a_status_whose_phase_somebody_else_wrote_says_free_when_its_run_has_ended() {
    let ended = || Execution { draining_shown: true, ..failed("a") };
    let goes_on = target(vec![ended()], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&goes_on), []);
    let over = target(vec![ended()], vec![run(1, "a", done(true))]);
    assert_eq!(actions(&over), [written("a", vec![], Says::Freed)]);
}

#[test]
fn a_target_that_does_not_drain_is_told_of_once() {
    let mut drains = left(target(vec![failed("a")], vec![run(1, "a", done(false))]), pod("a"));
    let deadline = at(40) + Policy::default().drain_deadline;
    let early = decide(&drains, &Policy::default(), at(50));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&drains, &Policy::default(), deadline).actions;
    assert!(matches!(&late[..], [Action::Tell(Announce::DrainSlow { holder, .. })] if *holder == id("a")), "{late:?}");
    drains.drain_warned = true;
    assert_eq!(decide(&drains, &Policy::default(), deadline).actions, []);
}
