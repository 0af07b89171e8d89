//! What a person has set counts where its policies were there all the time (SPEC section 17, ADR 13).

use super::*;
use crate::execution::Recorded;
use crate::guard::{Guard, GuardMark, Touch, WordKind};

fn guarded(number: u32, executions: Vec<Execution>, runs: Vec<Run>) -> Target {
    Target { guard: guard(number), ..target(executions, runs) }
}

/// It broke half way, and its status says that it blocks.
fn blocks(uid: &str) -> Execution {
    Execution { blocked_shown: Some("PreviousExecutionFailed".into()), ..broke(uid, "w", 1, 0) }
}

fn cancelled(execution: Execution) -> Execution {
    Execution { cancellation: Some(Box::new(cancellation(None))), ..execution }
}

/// It was created at a second.
fn created(second: i64, execution: Execution) -> Execution {
    Execution { created: at(second), ..execution }
}

fn looks(uid: &str, cancellation: bool, clearance: bool) -> Action {
    Action::Look { execution: id(uid), touch: Touch { cancellation, clearance } }
}

fn says_unguarded(uid: &str, kind: WordKind) -> Action {
    written(uid, vec![], Says::Unguarded(kind))
}

fn says_guarded(uid: &str, number: u32) -> Action {
    written(uid, vec![], Says::Guarded(GuardMark::new(number)))
}

#[test]
fn a_clearance_counts_where_its_policies_were_there_all_the_time() {
    let set = |number| named(number, cleared(blocks("b"), Recorded::Not));
    let clears = |effective| {
        let clearance = *cleared(blocks("b"), Recorded::Not).clearance.unwrap();
        vec![written("b", vec![], Says::Cleared { clearance, effective })]
    };
    let unguarded = || vec![says_unguarded("b", WordKind::Clearance)];
    let other_look = {
        let mut execution = looked_into(named(1, blocks("b")), Some(1));
        execution.clearance = set(1).clearance;
        execution
    };
    let off = Target { guard: Guard::Off, ..target(vec![set(0)], vec![]) };
    let table: Vec<(&str, Target, Vec<Action>)> = vec![
        ("nobody looks", off, clears(true)),
        ("it is looked into first", guarded(1, vec![set(1)], vec![]), vec![looks("b", false, true)]),
        ("the policies are the same", guarded(1, vec![looked_into(set(1), Some(1))], vec![]), clears(true)),
        (
            "they are the same, and this process has known others",
            guarded(2, vec![looked_into(set(1), Some(1))], vec![]),
            clears(true),
        ),
        ("they were made anew", guarded(2, vec![looked_into(set(1), Some(2))], vec![]), unguarded()),
        ("they are missing", guarded(0, vec![looked_into(set(1), None)], vec![]), unguarded()),
        ("the status names none", guarded(1, vec![looked_into(set(0), Some(1))], vec![]), unguarded()),
        ("the look began before it was set", guarded(1, vec![other_look], vec![]), vec![looks("b", false, true)]),
        (
            "what is recorded stays so",
            guarded(2, vec![named(1, cleared(broke("b", "w", 1, 0), Recorded::Effective))], vec![]),
            vec![],
        ),
        ("the status says it", guarded(2, vec![named(1, cleared(blocks("b"), Recorded::Unguarded))], vec![]), vec![]),
    ];
    for (name, target, expected) in table {
        assert_eq!(actions(&target), expected, "{name}");
    }
}

#[test]
fn whoever_asks_for_a_turn_waits_until_a_clearance_is_looked_into() {
    let set = named(1, cleared(blocks("b"), Recorded::Not));
    let asks = asks("a", "w");
    let open = guarded(1, vec![set.clone(), asks.clone()], vec![]);
    assert_eq!(actions(&open), vec![looks("b", false, true)]);
    assert_eq!(waiting(&open), vec![("a".to_owned(), Waiting::Guard)]);
    // At the look of its own run too, which stays.
    let pending = guarded(1, vec![set.clone(), asks.clone()], vec![run(2, "a", Progress::Pending)]);
    assert_eq!(actions(&pending), vec![looks("b", false, true)]);
    let honest = guarded(1, vec![looked_into(set.clone(), Some(1)), asks.clone()], vec![]);
    assert!(actions(&honest).contains(&create("a", 2)), "{:?}", actions(&honest));
    let forged = actions(&guarded(2, vec![looked_into(set, Some(2)), asks], vec![]));
    assert!(forged.iter().any(|action| matches!(action, Action::Skip { .. })), "{forged:?}");
}

#[test]
fn a_cancellation_counts_where_its_policies_were_there_all_the_time() {
    let runs = |number| cancelled(named(number, running("a", "r1")));
    let released = || vec![run(1, "a", Progress::Released)];
    let pending = || vec![run(1, "a", Progress::Pending)];
    let stops = || vec![cancels("r1", CancelReason::Requested)];
    let unguarded = || vec![says_unguarded("a", WordKind::Cancellation)];
    let ignored = Execution { cancellation: Some(Box::new(cancellation(Some(at(1))))), ..runs(1) };
    let table: Vec<(&str, Target, Vec<Action>)> = vec![
        ("it is looked into first", guarded(1, vec![runs(1)], released()), vec![looks("a", true, false)]),
        ("nothing begins meanwhile", guarded(1, vec![runs(1)], pending()), vec![looks("a", true, false)]),
        ("the policies are the same", guarded(1, vec![looked_into(runs(1), Some(1))], released()), stops()),
        ("they were made anew", guarded(2, vec![looked_into(runs(1), Some(2))], released()), unguarded()),
        ("they are missing", guarded(1, vec![looked_into(runs(1), None)], released()), unguarded()),
        ("the status names none", guarded(1, vec![looked_into(runs(0), Some(1))], released()), unguarded()),
        ("the status says that it does not count", guarded(1, vec![ignored.clone()], released()), vec![]),
        ("and so it begins", guarded(1, vec![ignored], pending()), vec![releases("r1")]),
    ];
    for (name, target, expected) in table {
        assert_eq!(actions(&target), expected, "{name}");
    }
}

#[test]
fn a_cancellation_before_the_start_counts_where_its_execution_is_younger_than_its_policies() {
    let set = |number, second| named(number, created(second, cancelled(undecided("a"))));
    let found = |number, second| looked_into(set(number, second), Some(1));
    let unguarded = || vec![says_unguarded("a", WordKind::Cancellation)];
    // The policies are known since second -50.
    let table: Vec<(&str, Execution, Option<Vec<Action>>)> = vec![
        ("younger than what is known", found(0, -49), None),
        ("as old", found(0, -50), None),
        ("older", found(0, -51), Some(unguarded())),
        ("older, and its status names the policies", found(1, -51), None),
        ("younger, and its status names others", found(2, -49), Some(unguarded())),
        ("younger, and other policies are found", looked_into(set(0, -49), Some(2)), Some(unguarded())),
        ("younger, and none are found", looked_into(set(0, -49), None), Some(unguarded())),
        ("it is looked into first", set(0, -49), Some(vec![looks("a", true, false)])),
    ];
    for (name, execution, expected) in table {
        let found = actions(&guarded(1, vec![execution], vec![]));
        match expected {
            Some(expected) => assert_eq!(found, expected, "{name}"),
            None => assert!(only_failure(&found).cancelled, "{name}: {found:?}"),
        }
    }
    let ignored = Execution { cancellation: Some(Box::new(cancellation(Some(at(1))))), ..undecided("a") };
    assert_eq!(actions(&guarded(1, vec![ignored], vec![])), vec![create("a", 1)], "what does not count stops nothing");
}

#[test]
fn a_status_names_the_policies_again_when_they_change_and_nothing_is_set() {
    let released = || vec![run(1, "a", Progress::Released)];
    let table: Vec<(&str, Target, Vec<Action>)> = vec![
        ("it runs", guarded(2, vec![named(1, running("a", "r1"))], released()), vec![says_guarded("a", 2)]),
        ("it runs, and names them", guarded(2, vec![named(2, running("a", "r1"))], released()), vec![]),
        ("it blocks", guarded(2, vec![named(1, blocks("b"))], vec![]), vec![says_guarded("b", 2)]),
        ("an older operator has written it", guarded(2, vec![blocks("b")], vec![]), vec![says_guarded("b", 2)]),
        ("it blocks nobody", guarded(2, vec![named(1, failed("f"))], vec![]), vec![]),
        ("it completed", guarded(2, vec![completed("c", "w", 1, 0)], vec![]), vec![]),
        ("they do not protect", guarded(0, vec![named(1, blocks("b"))], vec![]), vec![]),
        (
            "what is set was set before",
            guarded(
                2,
                vec![looked_into(cancelled(named(1, running("a", "r1"))), Some(1))],
                vec![run(1, "a", done(true))],
            ),
            vec![],
        ),
    ];
    for (name, target, expected) in table {
        let mut found = actions(&target);
        found.retain(|action| !matches!(action, Action::Write(Write { says: Says::Ended { .. }, .. })));
        assert_eq!(found, expected, "{name}");
    }
    let marks = [(1, undecided("a")), (1, cancelled(undecided("a"))), (0, undecided("a"))];
    let marks = marks.map(|(number, execution)| guarded(number, vec![], vec![]).guard_of(&execution));
    assert_eq!(marks, [Some(GuardMark::new(1)), None, None]);
}
