//! Rows 7, 9 and 10: a slot that is due, and what holds it.

use super::*;
use crate::run::Run;

fn beside(executions: Vec<Execution>, runs: Vec<Run>) -> Target {
    scheduled(target(executions, runs), vec![schedule("s")])
}

fn held_by(view: &Target, policy: &Policy, second: i64) -> Option<HeldBy> {
    decide(view, policy, at(second)).schedules[0].1.held
}

/// Returns the condition that is written, if any.
fn shown(view: &Target, policy: &Policy, second: i64) -> Option<(HeldBy, String)> {
    decide(view, policy, at(second)).actions.iter().find_map(|action| match action {
        Action::Record(Record { status, .. }) => match &status.held {
            Held::By { reason, message } => Some((*reason, message.to_string())),
            Held::Never | Held::Released | Held::Ahead(_) => None,
        },
        _ => None,
    })
}

/// Each reason that holds a child, with a word from the rule that reports it.
fn holds() -> Vec<(&'static str, Target, Policy, Option<HeldBy>, &'static str)> {
    let default = Policy::default;
    let exhausted = (1..=5).map(|n: i64| stalled(&format!("p{n}"), "x", n.cast_unsigned(), -5000 + n, -4000)).collect();
    let everywhere = Policy { paused_by: Some("ConfigMap x".into()), ..default() };
    let mut paused = beside(vec![], vec![]);
    paused.schedules.get_mut(&Uid::new("s")).unwrap().paused = Some(pause("maintenance"));
    let waits = Execution { paused: Some(pause("x")), ..undecided("a") };
    let leaves = Execution { deleting: true, ..undecided("a") };
    vec![
        ("nothing", beside(vec![], vec![]), default(), None, ""),
        ("all paused", beside(vec![], vec![]), everywhere, Some(HeldBy::Paused), "ConfigMap x"),
        ("its namespace is paused", paused, default(), Some(HeldBy::Paused), "maintenance"),
        (
            "a run of another",
            beside(vec![running("a", "r1")], vec![run(1, "a", Progress::Released)]),
            default(),
            Some(HeldBy::ResourceBusy),
            "ops/wfe-a",
        ),
        (
            "a pending run of another",
            beside(vec![undecided("a")], vec![run(1, "a", Progress::Pending)]),
            default(),
            Some(HeldBy::ResourceBusy),
            "created its PipelineRun",
        ),
        ("another asks", beside(vec![undecided("a")], vec![]), default(), Some(HeldBy::ResourceBusy), "ops/wfe-a asks"),
        ("another asks, and is paused", beside(vec![waits], vec![]), default(), None, ""),
        ("another asks, and is being deleted", beside(vec![leaves], vec![]), default(), None, ""),
        ("it drains", left(beside(vec![], vec![]), pod("x")), default(), Some(HeldBy::ResourceBusy), "stopping"),
        (
            "one broke",
            beside(vec![broke("p", "x", 1, 0)], vec![]),
            default(),
            Some(HeldBy::PreviousExecutionFailed),
            "ops/wfe-p",
        ),
        ("five failed", beside(exhausted, vec![]), default(), Some(HeldBy::ExhaustedRetries), "5 executions in a row"),
        (
            "backoff",
            beside(vec![stalled("p", "x", 1, 0, 300)], vec![]),
            default(),
            Some(HeldBy::RecentlyRemediated),
            "backoff",
        ),
        (
            "cooldown of the same workflow",
            beside(vec![completed("p", "wf", 1, 0)], vec![]),
            default(),
            Some(HeldBy::RecentlyRemediated),
            "cooldown",
        ),
        ("cooldown of another workflow", beside(vec![completed("p", "x", 1, 0)], vec![]), default(), None, ""),
    ]
}

#[test]
fn no_child_is_made_that_would_wait_or_be_skipped() {
    for (what, view, policy, by, words) in holds() {
        let decision = decide(&view, &policy, at(75));
        assert_eq!(decision.schedules[0].1.held, by, "{what}");
        let makes = decision.actions.iter().any(|action| matches!(action, Action::CreateChild { .. }));
        assert_eq!(makes, by.is_none(), "{what}");
        let told = shown(&view, &policy, 75);
        assert_eq!(told.as_ref().map(|(reason, _)| *reason), by, "{what}");
        assert!(told.is_none_or(|(_, message)| message.contains(words)), "{what}: {:?}", shown(&view, &policy, 75));
    }
}

#[test]
fn a_hold_is_shown_ten_seconds_after_the_slot_and_once() {
    let mut view = beside(vec![broke("p", "x", 1, 0)], vec![]);
    view.executions.get_mut(&Uid::new("p")).unwrap().blocked_shown = Some("PreviousExecutionFailed".into());
    let policy = Policy::default();
    for second in [60, 69] {
        let decision = decide(&view, &policy, at(second));
        assert_eq!((decision.actions, decision.wake), (vec![], Some(at(70))), "at {second}");
    }
    let decision = decide(&view, &policy, at(70));
    let status = only_record(&decision).status.clone();
    assert_eq!((status.held.by(), status.next), (Some(HeldBy::PreviousExecutionFailed), None));
    assert_eq!(status.last_run, schedule("s").status.last_run, "a held slot is not used");
    view.schedules.get_mut(&Uid::new("s")).unwrap().status = *status;
    for second in [70, 71, 130, 100_000] {
        let decision = decide(&view, &policy, at(second));
        assert_eq!((decision.actions, decision.wake), (vec![], None), "at {second}");
    }
}

#[test]
fn a_hold_is_shown_at_once_where_an_earlier_slot_was_due_before() {
    let view = beside(vec![broke("p", "x", 1, 0)], vec![]);
    for (second, is_shown) in [(69, false), (70, true), (125, true)] {
        assert_eq!(shown(&view, &Policy::default(), second).is_some(), is_shown, "at {second}");
    }
}

#[test]
fn a_hold_that_is_shown_already_is_written_only_where_something_is_next_beside_it() {
    let mut view = beside(vec![broke("p", "x", 1, 0)], vec![]);
    view.executions.get_mut(&Uid::new("p")).unwrap().blocked_shown = Some("PreviousExecutionFailed".into());
    let mut decided = |next, second| {
        let it = view.schedules.get_mut(&Uid::new("s")).unwrap();
        (it.status.held, it.status.next) = (held(HeldBy::PreviousExecutionFailed), next);
        let decision = decide(&view, &Policy::default(), at(second));
        (decision.actions.len(), decision.wake)
    };
    assert_eq!(decided(None, 65), (0, None));
    let next = Some(Planned { at: at(60), why: PlannedBy::Interval });
    assert_eq!(decided(next, 65), (0, Some(at(70))));
    assert_eq!(decided(next, 70), (1, None));
}

#[test]
fn a_hold_of_another_kind_is_shown_at_once_and_a_process_that_begins_says_the_same() {
    let held = |reason| {
        let mut view = beside(vec![broke("p", "x", 1, 0)], vec![]);
        view.schedules.get_mut(&Uid::new("s")).unwrap().status.held = held(reason);
        shown(&view, &Policy::default(), 200).map(|(by, _)| by)
    };
    assert_eq!(held(HeldBy::ResourceBusy), Some(HeldBy::PreviousExecutionFailed));
}

#[test]
fn many_held_slots_are_one_run_when_the_target_is_free() {
    let mut view = beside(vec![], vec![]);
    let shown = view.schedules.get_mut(&Uid::new("s")).unwrap();
    (shown.status.held, shown.status.next) = (held(HeldBy::PreviousExecutionFailed), None);
    let decision = decide(&view, &Policy::default(), at(1000));
    assert_eq!(decision.actions, [made(960, 1000 + 3600)]);
    let lies_ahead = decide(&view, &Policy::default(), at(50));
    assert_eq!(only_record(&lies_ahead).status.held, Held::Released);
    let strict = Plan { deadline: Some(Duration::from_secs(20)), ..every(60) };
    view.schedules.get_mut(&Uid::new("s")).unwrap().plan = Ok(strict);
    let late = decide(&view, &Policy::default(), at(1000));
    let status = &only_record(&late).status;
    assert_eq!((status.last_missed, status.held.clone()), (Some(Missed { slot: at(960), count: 16 }), Held::Released));
}

#[test]
fn what_time_ends_is_tried_when_it_ends() {
    let view = beside(vec![stalled("p", "x", 1, 0, 300)], vec![]);
    assert_eq!(decide(&view, &Policy::default(), at(65)).wake, Some(at(70)));
    assert_eq!(decide(&view, &Policy::default(), at(75)).wake, Some(at(300)));
    assert_eq!(held_by(&view, &Policy::default(), 299), Some(HeldBy::RecentlyRemediated));
    assert_eq!(held_by(&view, &Policy::default(), 300), None);
    let mut hinted = view;
    let schedule = hinted.schedules.get_mut(&Uid::new("s")).unwrap();
    schedule.hint = Some(hint(Wish::At(at(40)), 200).into());
    assert_eq!(decide(&hinted, &Policy::default(), at(75)).wake, Some(at(200)), "the hint expires");
}

#[test]
fn a_late_slot_is_missed_and_told_once() {
    let strict = with(|it| plan(it).deadline = Some(Duration::from_secs(20)));
    let decision = decided(&strict, 81);
    let status = only_record(&decision).status.clone();
    assert_eq!(status.last_missed, Some(Missed { slot: at(60), count: 1 }));
    assert_eq!(status.next, Some(Planned { at: at(120), why: PlannedBy::Interval }));
    assert_eq!(decision.wake, Some(at(120)));
    assert_eq!(status.last_run, strict.status.last_run);
    let told = Schedule { status: *status, ..strict };
    assert_eq!(decided(&told, 119).actions, []);
    assert_eq!(decided(&told, 120).actions, [made(120, 140)]);
    let again = said(&told, 150);
    assert_eq!(again.last_missed, Some(Missed { slot: at(120), count: 2 }));
    assert_eq!(row(&decided(&told, 80)), "10 otherwise", "at the deadline it runs");
}

#[test]
fn what_would_hold_a_slot_that_lies_ahead_is_said_today() {
    let default = Policy::default;
    let exhausted = |quiet: Option<Duration>| {
        let failures =
            (1..=5).map(|n: i64| stalled(&format!("p{n}"), "x", n.cast_unsigned(), -500 + n, -400)).collect();
        (failures, Policy { failure_quiet_period: quiet, ..default() })
    };
    let said = |held: Held, executions: Vec<Execution>, policy: &Policy| {
        let mut schedule = schedule("s");
        schedule.status.held = held;
        schedule.plan = Ok(every(3600));
        let view = scheduled(target(executions, vec![]), vec![schedule]);
        let decision = decide(&view, policy, at(30));
        assert_eq!(crate::check::violations(&view, policy, at(30), &decision), []);
        decision.actions.into_iter().find_map(|action| match action {
            Action::Record(record) => Some(record.status.held),
            _ => None,
        })
    };
    let ahead = |executions, policy: &Policy| match said(Held::Never, executions, policy) {
        Some(Held::Ahead(message)) => message.to_string(),
        other => format!("{other:?}"),
    };
    let broken = || vec![broke("p", "x", 1, 0)];
    assert!(ahead(broken(), &default()).starts_with("PreviousExecutionFailed: "), "{}", ahead(broken(), &default()));
    let (failures, policy) = exhausted(None);
    assert!(ahead(failures, &policy).starts_with("ExhaustedRetries: "));
    // A block that ends by itself before the slot is not reported.
    let (failures, policy) = exhausted(Some(Duration::from_mins(10)));
    assert!(!ahead(failures, &policy).contains("ExhaustedRetries"));
    assert!(!ahead(vec![stalled("p", "x", 1, 0, 9000)], &default()).contains("Recently"));
    assert!(!ahead(vec![running("a", "r1")], &default()).contains("Busy"));
    // When the block has ended, the condition shows it.
    assert_eq!(said(Held::Ahead("PreviousExecutionFailed: x".into()), vec![], &default()), Some(Held::Released));
}

#[test]
fn a_block_that_is_over_does_not_hold_a_slot_that_is_due_already() {
    let failures = (1..=5).map(|n: i64| stalled(&format!("p{n}"), "x", n.cast_unsigned(), -500 + n, -400)).collect();
    let policy = Policy { failure_quiet_period: Some(Duration::from_mins(10)), ..Policy::default() };
    // The child lost a race, and its slot runs once more.
    let skipped = with(|it| {
        it.status.last_run = None;
        it.children = vec![ended_child(20, Outcome::Skipped, 25)];
    });
    let view = scheduled(target(failures, vec![]), vec![skipped]);
    let held = |second: i64| {
        let decision = decide(&view, &policy, at(second));
        assert_eq!(crate::check::violations(&view, &policy, at(second), &decision), []);
        decision.actions.into_iter().find_map(|action| match action {
            Action::Record(record) => Some((record.status.next.map(|next| next.at), record.status.held)),
            _ => None,
        })
    };
    assert!(matches!(held(100), Some((Some(_), Held::Ahead(_)))), "{:?}", held(100));
    assert!(matches!(held(105), Some((Some(slot), Held::Never)) if slot < at(100)), "{:?}", held(105));
}
