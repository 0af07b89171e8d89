//! Cancellation, startBefore, pause, and the condition `Waiting`.

use super::*;
use crate::execution::WaitingShown;

/// The condition `Waiting` of a status, with the seconds for which the operator has tried to create the run.
fn shows(reason: &str, tried: u64) -> WaitingShown {
    WaitingShown { reason: reason.into(), tried: Duration::from_secs(tried) }
}

#[test]
fn a_cancelled_execution_stops_wherever_it_is() {
    let cancelled = |mut execution: Execution| {
        execution.cancellation = Some(Box::new(cancellation(None)));
        execution
    };
    let decided = actions(&target(vec![cancelled(undecided("a"))], vec![]));
    let failure = only_failure(&decided);
    assert_eq!(
        (failure.was_execution_failure(), &*failure.message),
        (false, "cancelled by jo before it started: enough")
    );
    assert_eq!((failure.reason, failure.shown_reason()), (FailureReason::Unknown, "Cancelled"));
    assert_eq!(failure.charge, crate::ending::Charge::default(), "the target did not fail");
    assert!(failure.summary("w", None, &[]).ends_with("Create another WorkflowExecution if it is to run after all."));
    let looking = actions(&target(vec![cancelled(undecided("a"))], vec![run(1, "a", Progress::Pending)]));
    assert!(
        matches!(&looking[..], [Action::Write(Write { says: Says::Ended { ending: Ending::Failed(_), .. }, .. })]),
        "{looking:?}"
    );
    for progress in [Progress::Pending, Progress::Released] {
        let committed = target(vec![cancelled(running("a", "r1"))], vec![run(1, "a", progress)]);
        let cancel = cancels("r1", CancelReason::Requested);
        assert_eq!(actions(&committed), [cancel]);
    }
}

#[test]
fn an_execution_that_was_not_started_before_its_time_fails() {
    let mut late = undecided("a");
    if let ExecutionState::Undecided { start_before, .. } = &mut late.state {
        *start_before = Some(at(50));
    }
    let target = target(vec![late], vec![]);
    let in_time = decide(&target, &Policy::default(), at(50));
    assert_eq!((in_time.actions, in_time.wake), (vec![create("a", 1)], Some(at(50) + Duration::from_nanos(1))));
    let decided = decide(&target, &Policy::default(), at(51)).actions;
    let failure = only_failure(&decided);
    assert_eq!((failure.reason, failure.was_execution_failure()), (FailureReason::DeadlineExceeded, false));
}

#[test]
fn in_a_paused_namespace_nothing_new_starts_and_what_runs_goes_on() {
    let paused = |mut execution: Execution| {
        execution.paused = Some(pause("ask sre"));
        execution
    };
    let waits = Waiting::Paused(pause("ask sre"));
    assert_eq!(waiting(&target(vec![paused(undecided("a"))], vec![])), [("a".into(), waits)]);
    let looking = target(vec![paused(undecided("a"))], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&looking), [gives_up("a", 1)]);
    let committed = target(vec![paused(running("a", "r1"))], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&committed), [releases("r1")]);
}

#[test]
fn while_all_is_paused_nothing_new_starts_what_runs_goes_on_and_what_ended_stays() {
    let paused = Policy { paused_by: Some("ConfigMap ops/config".into()), ..Policy::default() };
    let decided = |target: &Target| decide(target, &paused, at(50));
    let waits = Waiting::PausedEverywhere("ConfigMap ops/config".into());
    let asked = decided(&target(vec![undecided("a")], vec![]));
    assert_eq!((asked.actions, asked.waiting), (vec![], vec![(id("a"), waits)]));
    let looking = target(vec![undecided("a")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(decided(&looking).actions, [gives_up("a", 1)]);
    let committed = target(vec![running("a", "r1")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(decided(&committed).actions, [releases("r1")]);
    let ended = target(vec![running("a", "r1")], vec![run(1, "a", done(true))]);
    assert_eq!(decided(&ended).actions, actions(&ended), "it ends as if nothing were paused");
    let skipped =
        target(vec![Execution { state: ExecutionState::Skipped { completed_at: None }, ..undecided("a") }], vec![]);
    assert_eq!(decided(&skipped), decide(&skipped, &Policy::default(), at(50)));
}

#[test]
fn the_status_says_what_an_execution_waits_for_after_ten_seconds_and_once() {
    let mut paused = undecided("a");
    paused.paused = Some(pause("ask sre"));
    paused.remember().waits_since = Some(at(0));
    let early = decide(&target(vec![paused.clone()], vec![]), &Policy::default(), at(9));
    assert_eq!((early.actions, early.wake), (vec![], Some(at(10))));
    let late = decide(&target(vec![paused.clone()], vec![]), &Policy::default(), at(10)).actions;
    assert!(
        matches!(&late[..], [Action::Write(Write { says: Says::Waiting { waiting: Waiting::Paused(_), .. }, .. })]),
        "{late:?}"
    );
    paused.waiting_shown = Some(Box::new(shows("Paused", 0)));
    assert_eq!(decide(&target(vec![paused], vec![]), &Policy::default(), at(10)).actions, []);
}

#[test]
fn for_how_long_a_run_was_tried_is_said_anew_with_every_step() {
    let view = |shown: Option<&str>, tried, waits_since| {
        let mut trying =
            Execution { waiting_shown: shown.map(|reason| Box::new(shows(reason, tried))), ..undecided("a") };
        (trying.remember().waits_since, trying.remember().first_try) = (Some(at(waits_since)), Some(at(0)));
        troubled(target(vec![trying], vec![]), Some(no_answer()))
    };
    let says = |target: &Target, now| {
        let decision = decide(target, &Policy::default(), at(now));
        let tried = decision.actions.iter().find_map(|action| match action {
            Action::Write(Write { says: Says::Waiting { tried, .. }, .. }) => Some(*tried),
            _ => None,
        });
        (tried, decision.wake)
    };
    let seconds = |seconds| Some(Some(Duration::from_secs(seconds)));
    assert_eq!(says(&view(None, 0, 50), 59), (None, Some(at(60))));
    assert_eq!(
        says(&view(None, 0, 50), 60).0,
        seconds(60),
        "what was tried before this process saw it wait counts too"
    );
    assert_eq!(says(&view(Some("ApiErrors"), 60, 50), 89), (None, Some(at(90))));
    assert_eq!(says(&view(Some("ApiErrors"), 60, 50), 90).0, seconds(90));
    assert_eq!(says(&view(Some("Paused"), 0, 50), 90).0, seconds(90), "a pause is over");
    let mut ours = view(Some("OperatorForbidden"), 0, 50);
    ours.memory.trouble = Some(Box::new(forbidden()));
    assert_eq!(says(&ours, 200).0, None, "what no deadline ends is said once");
}

#[test]
fn a_target_that_cannot_be_seen_is_left_alone_but_its_executions_say_so() {
    let mut waits = undecided("a");
    waits.remember().waits_since = Some(at(0));
    let target = target(vec![waits, running("b", "r1")], vec![run(1, "b", Progress::Pending)]);
    let blind = decide_blind(&target, &Policy::default(), "cannot watch pipelineruns", |_| false, at(50)).actions;
    assert!(
        matches!(&blind[..], [Action::Write(Write { says: Says::Waiting { waiting: Waiting::Blind(_), .. }, .. })]),
        "{blind:?}"
    );
}

#[test]
fn a_run_that_lost_its_annotations_is_still_the_one_that_was_committed_to() {
    let mut stripped = run(1, "a", Progress::Released);
    stripped.owner = Owner::Nobody;
    let target = target(vec![running("a", "r1"), undecided("b")], vec![stripped]);
    let decided = actions(&target);
    assert!(matches!(&decided[..], [Action::Skip { .. }]), "{decided:?}");
}

#[test]
fn whoever_waits_for_a_request_that_fails_says_so_whatever_it_is_for() {
    let free = target(vec![undecided("b")], vec![]);
    let looked = target(vec![undecided("b")], vec![run(1, "b", Progress::Pending)]);
    let busy = target(vec![running("a", "r1"), undecided("b")], vec![run(1, "a", Progress::Released)]);
    for mut target in [free, looked, busy] {
        assert_eq!(waiting(&target), []);
        target.memory.trouble = Some(Box::new(no_answer()));
        assert_eq!(waiting(&target), [("b".into(), Waiting::ApiErrors("cannot create: no answer".into()))]);
    }
}

#[test]
fn who_waits_until_a_write_of_the_operator_is_seen_says_so_after_ten_seconds() {
    let what = "PipelineRun wfe-x-1";
    let waiting = Waiting::Unseen(what.into());
    let waits = |uid, second| {
        let mut waits = undecided(uid);
        waits.remember().waits_since = Some(at(second));
        waits
    };
    let waits_since = |second| waits("a", second);
    let unseen = |view: &Target, since| decide_unseen(view, &Policy::default(), (what, at(since)), |_| false, at(50));
    for (first_waited, written, wake) in [(45, 45, 55), (45, 30, 55), (10, 49, 59)] {
        let early = unseen(&target(vec![waits_since(first_waited)], vec![]), written);
        assert_eq!((early.actions, early.wake), (vec![], Some(at(wake))), "{first_waited} {written}");
    }
    let own = target(vec![waits_since(40), waits("b", 40)], vec![]);
    let own = decide_unseen(&own, &Policy::default(), (what, at(40)), |uid| *uid == id("a").uid, at(50));
    let shown: Vec<_> = own.waiting.iter().map(|(execution, _)| execution).collect();
    assert_eq!((shown, own.actions.len()), (vec![&id("b")], 1), "what was written to itself is out of date");
    let late = unseen(&target(vec![waits_since(40), running("b", "r1")], vec![]), 40);
    let (execution, version) = (id("a"), Version::new("v"));
    assert_eq!(
        late.actions,
        [Action::Write(Write {
            execution,
            version,
            facts: Vec::new(),
            says: Says::Waiting { waiting: waiting.clone(), tried: None }
        })]
    );
    assert!(waiting.message().contains(what), "{}", waiting.message());
}
