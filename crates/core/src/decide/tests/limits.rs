//! Limits of how many targets are worked on at once (section 18).

use super::*;
use crate::action::Probe;
use crate::circuit::Asks;
use crate::execution::WaitingShown;
use crate::fingerprint::Fingerprint;
use crate::limit::{Ask, Limit, LimitSet, Limits, Places, SeenPlaces};
use crate::schedule::{ChildOf, HeldBy, LastRun, Outcome as RunOutcome, Retention, Schedule};
use crate::target::TargetName;
use crate::testing::limits::{limit, limited, place_of};

fn of(workflow: &str, execution: Execution) -> Execution {
    Execution { workflow_id: workflow.into(), origin: origin(workflow), ..execution }
}

fn of_workflow(workflow: &str) -> Limit {
    Limit { workflow_id: Some(workflow.into()), ..limit(workflow) }
}

fn named(name: &str, target: Target) -> Target {
    Target { name: TargetName::parse(name).ok(), ..target }
}

/// Returns the executions that wait for a place, with the messages.
fn waits(decision: &Decision) -> Vec<(String, String)> {
    let limits = |(id, waiting): &(crate::name::ExecutionId, Waiting)| match waiting {
        Waiting::Limit(wait) => Some((id.uid.to_string(), wait.message())),
        _ => None,
    };
    decision.waiting.iter().filter_map(limits).collect()
}

fn asked(decision: &Decision) -> Vec<(String, Vec<usize>)> {
    decision.asks.iter().map(|ask| (ask.uid.to_string(), ask.limits.positions().collect())).collect()
}

#[test]
fn a_limit_matches_by_all_that_it_names() {
    let limits: Limits = [
        limit("all"),
        Limit { kind: Some("node".into()), ..limit("nodes") },
        Limit { namespace: Some("shop".into()), ..limit("shop") },
        Limit { kind: Some("deployment".into()), workflow_id: Some("wf".into()), ..limit("both") },
    ]
    .into_iter()
    .collect();
    let matches = |name: &str, workflow: Option<&str>| -> Vec<usize> {
        let target = named(name, Target::default());
        target.limits_matching(workflow, &limits).positions().collect()
    };
    for (name, workflow, expected) in [
        ("node/a", Some("wf"), &[0, 1][..]),
        ("shop/deployment/a", Some("wf"), &[0, 2, 3]),
        ("shop/deployment/a", Some("other"), &[0, 2]),
        ("shop/deployment/a", None, &[0, 2, 3]),
        ("cart/statefulset/a", Some("wf"), &[0]),
        ("", Some("wf"), &[0, 1, 2, 3]),
        ("", Some("other"), &[0, 1, 2]),
    ] {
        assert_eq!(matches(name, workflow), expected, "{name} {workflow:?}");
    }
}

#[test]
fn without_a_place_an_execution_waits_and_with_one_it_begins() {
    let policy = limited(&[limit("all"), of_workflow("other")]);
    let without = target(vec![undecided("a")], vec![]);
    let decision = decide(&without, &policy, at(50));
    assert_eq!(decision.actions, []);
    let message = "it needs a place in each of these limits: all (0 of 3 taken)";
    assert_eq!(waits(&decision), [("a".into(), message.into())]);
    assert_eq!((asked(&decision), decision.uses_place), (vec![("a".into(), vec![0])], false));
    assert_eq!(decision.judged[0].1.rule(), "5b limit");

    let with = Target { places: place_of("a"), ..without.clone() };
    let decision = decide(&with, &policy, at(50));
    assert_eq!(decision.actions, [create("a", 1)]);
    assert_eq!((asked(&decision), decision.uses_place), (vec![], true));

    let of_another = Target { places: place_of("b"), ..without };
    assert_eq!(asked(&decide(&of_another, &policy, at(50))), [("a".into(), vec![0])]);
}

#[test]
fn what_a_limit_does_not_match_runs_as_if_there_were_none() {
    let policy = limited(&[of_workflow("other")]);
    let decision = decide(&target(vec![undecided("a")], vec![]), &policy, at(50));
    assert_eq!((decision.actions, decision.asks, decision.uses_place), (vec![create("a", 1)], vec![], false));
    let child = ChildOf { schedule: Uid::new("s"), slot: at(0), analyses: true, keep: Retention::Needed };
    let analysis = Execution { child: Some(Box::new(child)), ..undecided("a") };
    assert_eq!(decide(&target(vec![analysis], vec![]), &limited(&[limit("all")]), at(50)).actions, [create("a", 1)]);
}

#[test]
fn one_that_waits_has_no_claim_on_its_target() {
    let policy = limited(&[of_workflow("wf"), of_workflow("third")]);
    let rivals = vec![
        Execution { created: at(-9), ..undecided("a") },
        undecided("b"),
        of("third", undecided("c")),
        of("free", undecided("d")),
    ];
    let decision = decide(&target(rivals, vec![]), &policy, at(50));
    assert_eq!(decision.actions, [create("d", 1)]);
    // Only the oldest request for each set of limits is reported.
    assert_eq!(asked(&decision), [("a".into(), vec![0]), ("c".into(), vec![1])]);
    assert!(!decision.uses_place);
}

#[test]
fn the_other_rules_are_asked_as_if_there_were_no_limit() {
    let policy = limited(&[limit("all")]);
    let decided = |target: Target| decide(&target, &policy, at(50));
    let paused = Execution { paused: Some(pause("ask sre")), ..undecided("a") };
    let decision = decided(target(vec![paused], vec![]));
    assert_eq!((decision.waiting[0].1.reason(), decision.asks), ("Paused", vec![]));
    let busy = decided(target(vec![running("a", "r1"), undecided("b")], vec![run(1, "a", Progress::Released)]));
    assert!(busy.actions.iter().any(|it| matches!(it, Action::Skip { .. })), "{:?}", busy.actions);
    assert_eq!(busy.asks, []);
    let cancelled = Execution { cancellation: Some(Box::new(cancellation(None))), ..undecided("a") };
    assert_eq!(only_failure(&decided(target(vec![cancelled], vec![])).actions).shown_reason(), "Cancelled");
    let mut late = undecided("a");
    if let ExecutionState::Undecided { start_before, .. } = &mut late.state {
        *start_before = Some(at(60));
    }
    let late = target(vec![late], vec![]);
    assert_eq!(decide(&late, &policy, at(50)).wake, Some(at(60)), "its wait is shown, or its time is over");
    assert_eq!(only_failure(&decide(&late, &policy, at(61)).actions).reason, FailureReason::DeadlineExceeded);
}

#[test]
fn a_pending_run_has_its_place_at_the_look() {
    let policy = limited(&[limit("all")]);
    let looking = target(vec![undecided("a")], vec![run(1, "a", Progress::Pending)]);
    let decision = decide(&looking, &policy, at(50));
    assert_eq!((decision.actions, decision.asks), (vec![committed("a", "r1", 1, &[])], vec![]));
}

#[test]
fn a_wait_is_shown_once_and_has_no_deadline() {
    let policy = limited(&[limit("all")]);
    let mut waiting = undecided("a");
    waiting.remember().waits_since = Some(at(0));
    let seen = SeenPlaces { given: None, taken: vec![3], ahead: Some(2) };
    let in_line =
        |execution: &Execution| Target { places: seen.clone().into(), ..target(vec![execution.clone()], vec![]) };
    let decision = decide(&in_line(&waiting), &policy, at(50));
    let [Action::Write(Write { says: Says::Waiting { waiting: said, tried }, .. })] = &decision.actions[..] else {
        panic!("{:?}", decision.actions)
    };
    let message = "it needs a place in each of these limits: all (3 of 3 taken); 2 older targets wait";
    assert_eq!((said.reason(), said.message().as_str(), tried), ("Limit", message, &None));
    waiting.waiting_shown = Some(Box::new(WaitingShown { reason: "Limit".into(), tried: Duration::ZERO }));
    let later = decide(&in_line(&waiting), &policy, at(1_000_000));
    assert_eq!((later.actions, later.wake), (vec![], None));
}

#[test]
fn a_target_holds_places_from_its_pending_run_until_it_has_drained() {
    let limits: Limits = [of_workflow("wf"), of_workflow("other")].into_iter().collect();
    let pending = || run(1, "a", Progress::Pending);
    let given_up = Execution { run_sequence: Some(1), ..undecided("a") };
    let gone = |progress| Run {
        owner: match run(1, "a", Progress::Pending).owner {
            Owner::Execution { id, workflow_id, .. } => Owner::Execution { id, workflow_id, presence: Presence::Gone },
            Owner::Nobody => Owner::Nobody,
        },
        ..run(1, "a", progress)
    };
    let child = ChildOf { schedule: Uid::new("s"), slot: at(0), analyses: true, keep: Retention::Needed };
    let analysis = Execution { child: Some(Box::new(child)), ..running("a", "r1") };
    let nobody = Run { owner: Owner::Nobody, ..run(1, "a", Progress::Released) };
    for (what, target, held) in [
        ("asks", target(vec![undecided("a")], vec![]), &[][..]),
        ("created", target(vec![undecided("a")], vec![pending()]), &[0]),
        ("gave up", target(vec![given_up], vec![pending()]), &[]),
        ("committed", target(vec![running("a", "r1")], vec![pending()]), &[0]),
        ("released", target(vec![running("a", "r1")], vec![run(1, "a", Progress::Released)]), &[0]),
        ("done, and its status is late", target(vec![running("a", "r1")], vec![run(1, "a", done(true))]), &[0]),
        ("between attempts", target(vec![waits_until("a", 90)], vec![run(1, "a", done(false))]), &[0]),
        (
            "another workflow",
            target(vec![of("other", running("a", "r1"))], vec![run(1, "a", Progress::Released)]),
            &[1],
        ),
        ("ended", target(vec![failed("a")], vec![run(1, "a", done(false))]), &[]),
        ("drains", left(target(vec![failed("a")], vec![run(1, "a", done(false))]), pod("a")), &[0]),
        ("deleted", target(vec![], vec![gone(Progress::Released)]), &[0]),
        ("deleted before its commit", target(vec![], vec![gone(Progress::Pending)]), &[]),
        ("unknown owner of a pending run", target(vec![], vec![pending()]), &[0]),
        ("a run without an owner", target(vec![], vec![nobody]), &[]),
        ("an analysis", target(vec![analysis], vec![run(1, "a", Progress::Released)]), &[]),
    ] {
        let is: Vec<usize> = target.limits_in_use(&limits).positions().collect();
        assert_eq!(is, held, "{what}");
    }
}

fn due(uid: &str) -> Schedule {
    schedule(uid)
}

#[test]
fn a_schedule_is_held_without_a_place_and_its_child_has_its_place() {
    let policy = limited(&[limit("all")]);
    let schedule = due("s");
    let (slot, held_at) = (at(60), at(71));
    let without = scheduled(Target::default(), vec![schedule.clone()]);
    let decision = decide(&without, &policy, held_at);
    assert_eq!(decision.schedules[0].1.held, Some(HeldBy::Limit));
    assert_eq!(decision.schedules[0].1.asked.last().unwrap().0, "9b limit");
    let ask = Ask { limits: decision.asks[0].limits, since: slot, uid: schedule.id.uid.clone() };
    assert_eq!((decision.asks.clone(), decision.uses_place), (vec![ask], false));
    let with = Target { places: place_of("s"), ..without };
    let decision = decide(&with, &policy, held_at);
    assert!(matches!(&decision.actions[..], [Action::CreateChild { .. }]), "{:?}", decision.actions);
    assert!(decision.uses_place && decision.asks.is_empty());

    let child = ChildOf { schedule: schedule.id.uid.clone(), slot, analyses: false, keep: Retention::Needed };
    let child = Execution { child: Some(Box::new(child)), ..undecided("c") };
    let decision = decide(&Target { places: place_of("s"), ..target(vec![child], vec![]) }, &policy, held_at);
    assert_eq!((decision.actions, decision.uses_place), (vec![create("c", 1)], true));
}

#[test]
fn a_turn_to_probe_needs_a_place_and_stays_while_it_waits_for_one() {
    const PULL: &str = "ImagePullBackOff/registry/registry.example";
    let fingerprint = Fingerprint::parse(PULL);
    let mut failed = due("s");
    failed.status.last_run = Some(LastRun { fingerprint, ..last_run(0, Some((RunOutcome::Failed, 10))) });
    let circuits = circuits(vec![open_circuit(PULL, 20, 1220, Some("s"))], vec![]);
    let target = Target { circuits, ..scheduled(Target::default(), vec![failed]) };
    let decision = decide(&target, &limited(&[limit("all")]), at(90));
    let asks = Asks { circuit: Fingerprint::parse(PULL).unwrap(), failures: 0 };
    assert_eq!(
        (decision.schedules[0].1.held, &decision.schedules[0].1.probe),
        (Some(HeldBy::Limit), &Probe::Awaits(asks))
    );
    assert_eq!(decision.asks.len(), 1);
}

#[test]
fn places_by_default_are_none() {
    assert!(!Places::default().are_given_to(&Uid::new("a")) && LimitSet::default().is_empty());
}
