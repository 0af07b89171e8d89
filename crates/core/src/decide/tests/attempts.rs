//! Attempts: what follows a failed attempt, what happens between two attempts, and how rivals wait (section 11).

use super::*;
use crate::action::AttemptFacts;
use crate::ending::{Failure, Tried};
use crate::evidence::{Absence, Doubt, Proof, Ran, Started};
use crate::execution::{Execution, Lost, RunShown, WaitingShown};
use crate::retry::{Answers, Attempt, AttemptEnd, NextAttempt, RetryPolicy, Stop};
use crate::run::Run;
use crate::target::{Elsewhere, OwnerRead};

/// An execution on its first attempt, with run 1.
fn first(policy: RetryPolicy) -> Execution {
    let begun = Attempt { run: Some("run-r1".into()), started_at: Some(at(0)), ..Attempt::default() };
    Execution { run_sequence: Some(1), ..with_retry(policy, vec![begun], running("a", "r1")) }
}

fn failed_run(started: Started) -> Run {
    looked_at(run(1, "a", done(false)), 49, started)
}

fn done_run() -> Run {
    run(1, "a", done(false))
}

fn pending(number: u64) -> Run {
    run(number, "a", Progress::Pending)
}

fn creates(at_most: u64) -> Action {
    Action::Create { execution: id("a"), number: 2, at_most: Some(Duration::from_secs(at_most)) }
}

fn commits_again(gone: &[&str]) -> Action {
    let mut facts: Vec<Fact> = gone.iter().map(|uid| Fact::OwnerGone(id(uid))).collect();
    facts.push(Fact::DrainedOfAll(id("a")));
    written("a", facts, Says::Running { run: run_id("r2"), number: 2, consecutive_failures: 0 })
}

fn wake(target: &Target) -> Option<Time> {
    decide(target, &Policy::default(), at(50)).wake
}

fn tried(failure: &Failure) -> &Tried {
    failure.tried.as_deref().unwrap_or_else(|| panic!("{failure:?}"))
}

fn remembers(mut execution: Execution, answers: Answers) -> Execution {
    execution.remember().answers = Some(Box::new(answers));
    execution
}

#[test]
fn an_attempt_that_failed_is_recorded_with_the_wait_before_the_next() {
    let view = target(vec![first(retry_policy())], vec![failed_run(waited())]);
    let (reason, message) = (Some(FailureReason::Unknown), "what Tekton said".into());
    let end = AttemptEnd { completed_at: at(40), started: Ran::No, reason, message };
    let (run, delay) = (Some(run_id("r1")), Duration::from_secs(1));
    let recorded = Says::Retry { attempt: 1, of: 3, run, end, proof: None, delay, not_before: at(51) };
    assert_eq!(actions(&view), [written("a", vec![], recorded)]);
}

#[test]
fn the_last_attempt_and_one_that_may_not_be_repeated_end_the_execution() {
    let careful = RetryPolicy { retry_execution_failures: false, ..retry_policy() };
    let once = RetryPolicy { max_attempts: 1, ..retry_policy() };
    let short = RetryPolicy { max_duration: Duration::from_secs(51), ..retry_policy() };
    for (policy, started, stop) in [
        (once, waited(), Stop::Exhausted),
        (careful.clone(), Started::Started(proof()), Stop::Ran),
        (careful, Started::Unknown(Doubt::TooMany), Stop::Ran),
        (short, waited(), Stop::MaxDuration),
    ] {
        let of = policy.max_attempts;
        let view = target(vec![first(policy)], vec![failed_run(started.clone())]);
        let decided = actions(&view);
        let failure = only_failure(&decided);
        assert_eq!((tried(failure).attempt, tried(failure).of, &tried(failure).stop), (1, of, &stop));
        let end = tried(failure).end.as_ref().map(|end| (end.started, end.completed_at));
        assert_eq!(end, Some((started.ran(), at(40))));
    }
}

#[test]
fn whoever_cancels_or_deletes_ends_it_and_our_own_cancels_do_not() {
    let cancelled = |reason| {
        let mut run = failed_run(waited());
        (run.cancelled, run.cancel_reason) = (true, reason);
        run.memory.diagnosed.as_mut().unwrap().findings.was_cancelled = true;
        run
    };
    let stop_of = |execution: Execution, run: Run| match &actions(&target(vec![execution], vec![run]))[..] {
        [Action::Write(Write { says: Says::Retry { .. }, .. })] => None,
        other => Some(tried(only_failure(other)).stop.clone()),
    };
    let asked = cancellation(None);
    let wished = Execution { cancellation: Some(Box::new(asked)), ..first(retry_policy()) };
    let leaving = Execution { deleting: true, ..first(retry_policy()) };
    assert_eq!(stop_of(first(retry_policy()), cancelled(None)), Some(Stop::Cancelled));
    assert_eq!(stop_of(wished, failed_run(waited())), Some(Stop::Cancelled));
    assert_eq!(stop_of(leaving, failed_run(waited())), Some(Stop::Deleted));
    for ours in [CancelReason::NotStarted, CancelReason::TimedOut] {
        assert_eq!(stop_of(first(retry_policy()), cancelled(Some(ours))), None, "{ours:?}");
    }
    // This also applies if another task failed after the stop: a person wanted no further attempt.
    let stopped = Run { stopped: true, ..failed_run(waited()) };
    assert_eq!(stop_of(first(retry_policy()), stopped), Some(Stop::Cancelled));
    let gone = actions(&target(vec![first(retry_policy())], vec![]));
    assert_eq!(tried(only_failure(&gone)).stop, Stop::RunDeleted);
}

#[test]
fn conditions_are_asked_once_of_what_is_known_of_the_attempt() {
    let policy = RetryPolicy { retry_when: Some("exitCode == 75".into()), ..retry_policy() };
    let asking = target(vec![first(policy.clone())], vec![failed_run(waited())]);
    let failed = AttemptFacts {
        attempt: 1,
        of: 3,
        reason: FailureReason::Unknown,
        message: "what Tekton said".into(),
        was_execution_failure: false,
        task: None,
    };
    let ask = Action::Ask { execution: id("a"), run: Some(run_id("r1")), failed };
    let at_end =
        Run { memory: crate::run::RunMemory { done_seen: Some(at(50)), ..failed_run(waited()).memory }, ..done_run() };
    assert_eq!(actions(&target(vec![first(policy.clone())], vec![at_end])), std::slice::from_ref(&ask));
    // The run was seen to be done at second 0, so the conditions could have been evaluated long before.
    assert_eq!(actions(&asking), [ask]);
    let says = |answer| Answers { stop_when: None, retry_when: Some(answer) };
    for (answer, stop) in [
        (Ok(false), Some(Stop::RetryWhen)),
        (Err("no such key".into()), Some(Stop::ConditionError("retryWhen: no such key".into()))),
        (Ok(true), None),
    ] {
        let execution = remembers(first(policy.clone()), says(answer));
        let decided = actions(&target(vec![execution], vec![failed_run(waited())]));
        match stop {
            Some(stop) => assert_eq!(tried(only_failure(&decided)).stop, stop),
            None => assert!(matches!(&decided[..], [Action::Write(Write { says: Says::Retry { .. }, .. })])),
        }
    }
    let late = decide(&asking, &Policy::default(), at(90_000)).actions;
    assert!(matches!(&late[..], [Action::Ask { .. }]), "what stands in the way is not the run's: {late:?}");
    let denied = troubled(asking, Some(forbidden()));
    let says_so = |action: &Action| match action {
        Action::Write(Write { says: Says::Progress { shown, .. }, .. }) => {
            shown.awaits.as_ref().is_some_and(|awaits| &*awaits.reason == "Examining")
        }
        _ => false,
    };
    assert!(!decide(&denied, &Policy::default(), at(9)).actions.iter().any(says_so), "not at once");
    assert!(decide(&denied, &Policy::default(), at(61)).actions.iter().any(says_so));
}

#[test]
fn the_next_attempt_is_created_when_it_is_due_with_the_time_that_is_left() {
    let early = target(vec![waits_until("a", 51)], vec![done_run()]);
    assert_eq!((actions(&early), wake(&early)), (vec![], Some(at(51))));
    let due = target(vec![waits_until("a", 50)], vec![done_run()]);
    assert_eq!(actions(&due), [creates(86_400 - 50)]);
    let first_of_all = with_retry(retry_policy(), vec![], undecided("a"));
    let create = Action::Create { execution: id("a"), number: 1, at_most: Some(Duration::from_hours(24)) };
    assert_eq!(actions(&target(vec![first_of_all], vec![])), [create]);
}

#[test]
fn the_next_run_is_committed_to_after_the_same_look() {
    let view = |others: Vec<Run>, more: Vec<Execution>| {
        let executions = [vec![waits_until("a", 50)], more].concat();
        target(executions, [vec![done_run(), pending(2)], others].concat())
    };
    let before = |progress, owner: &str| Run { order: Order(2), ..run(3, owner, progress) };
    let after = |progress, owner: &str| Run { order: Order(3), ..run(3, owner, progress) };
    let mut orphan = before(done(false), "x");
    orphan.owner = Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Gone };
    assert_eq!(actions(&view(vec![], vec![])), [commits_again(&[])]);
    let over = completed("b", "w", 3, 45);
    assert_eq!(actions(&view(vec![before(done(true), "b")], vec![over.clone()])), [commits_again(&[])]);
    assert_eq!(actions(&view(vec![before(done(false), "b")], vec![])), [commits_again(&["b"])], "its owner is read");
    assert_eq!(actions(&view(vec![orphan], vec![])), [commits_again(&[])]);
    for waits_for in [before(Progress::Released, "b"), before(Progress::Pending, "b")] {
        let decided = actions(&view(vec![waits_for], vec![running("b", "r3")]));
        assert!(!decided.contains(&commits_again(&[])), "{decided:?}");
    }
    let later = actions(&view(vec![after(Progress::Pending, "b")], vec![over]));
    assert!(later.contains(&commits_again(&[])), "what came later is not waited for: {later:?}");
}

#[test]
fn nothing_of_its_own_may_be_left_either() {
    let drains = left(target(vec![waits_until("a", 50)], vec![done_run()]), pod("a"));
    assert_eq!(actions(&drains), []);
    let drains = left(target(vec![waits_until("a", 50)], vec![done_run(), pending(2)]), pod("a"));
    assert_eq!(actions(&drains), []);
    let own = Run { number: 1, ..run(4, "a", Progress::Released) };
    let released = target(vec![waits_until("a", 50)], vec![done_run(), own.clone()]);
    assert_eq!(actions(&released), [], "somebody released an earlier run of its own");
    let released = target(vec![waits_until("a", 50)], vec![done_run(), own, pending(2)]);
    assert_eq!(actions(&released), []);
}

#[test]
fn a_run_that_was_unreleased_is_committed_to_before_anything_else() {
    let past_us = Run { ..run(2, "a", Progress::Released) };
    let mut cancelled = waits_until("a", 90);
    cancelled.cancellation = Some(Box::new(cancellation(None)));
    let commit = written(
        "a",
        vec![Fact::Drained(id("a"))],
        Says::Running { run: run_id("r2"), number: 2, consecutive_failures: 0 },
    );
    for execution in [waits_until("a", 90), cancelled] {
        assert_eq!(actions(&target(vec![execution], vec![done_run(), past_us.clone()])), std::slice::from_ref(&commit));
    }
}

#[test]
fn while_it_waits_a_cancellation_a_deletion_or_the_end_of_its_time_ends_it() {
    let ends = |execution: Execution, runs: Vec<Run>| {
        let decided = actions(&target(vec![execution], runs));
        let failure = only_failure(&decided).clone();
        let tried = tried(&failure).clone();
        assert_eq!((tried.attempt, &tried.end), (2, &None), "the second never began");
        assert_eq!((failure.task, failure.failed_at, failure.ran_for), (None, at(50), Duration::from_secs(50)));
        (tried.stop, failure.reason, failure.message.to_string(), failure.cancelled)
    };
    let (reason, message) = (FailureReason::ImagePullBackOff, "no image".to_owned());
    let asked = cancellation(None);
    let wished = Execution { cancellation: Some(Box::new(asked)), ..waits_until("a", 90) };
    let told = "cancelled by jo: enough; attempt 1 failed, ImagePullBackOff: no image".to_owned();
    assert_eq!(ends(wished, vec![done_run()]), (Stop::Cancelled, FailureReason::Unknown, told, true));
    let leaving = Execution { deleting: true, ..waits_until("a", 90) };
    assert_eq!(ends(leaving, vec![done_run()]), (Stop::Deleted, reason, message.clone(), false));
    let short = RetryPolicy { max_duration: Duration::from_secs(50), ..retry_policy() };
    let over = with_retry(short, vec![ended_attempt(Ran::No), next_attempt(50)], running("a", "r1"));
    assert_eq!(ends(over, vec![done_run()]), (Stop::MaxDuration, reason, message.clone(), false));
    let lost = waits_until("a", 90);
    assert_eq!(ends(lost.clone(), vec![]), (Stop::RunDeleted, reason, message, false));
    let facts = |runs: Vec<Run>| {
        let target = target(vec![lost.clone()], runs);
        let decided = actions(&target);
        let Some(Action::Write(Write { facts, .. })) = decided.first() else { panic!("{decided:?}") };
        (facts.clone(), target.next_number())
    };
    let gone = Fact::RunGone(id("a"), run_id("r1"));
    // The next run may exist: the answer to its create may have been lost, and the watch may be behind.
    let (read, number) = facts(vec![]);
    assert_eq!(read, [gone.clone(), Fact::NothingMade(id("a"), number)]);
    assert_eq!(facts(vec![pending(2)]).0, [gone], "it is known, and deleted after the end");
}

#[test]
fn a_pause_holds_the_next_attempt_back_and_ends_nothing() {
    let paused = Execution { paused: Some(pause("ask")), ..waits_until("a", 50) };
    let view = target(vec![paused], vec![done_run()]);
    assert_eq!((actions(&view), wake(&view)), (vec![], Some(at(60))));
    let everywhere = Policy { paused_by: Some("a test".into()), ..Policy::default() };
    let view = target(vec![waits_until("a", 50)], vec![done_run(), pending(2)]);
    assert_eq!(decide(&view, &everywhere, at(50)).actions, []);
}

#[test]
fn what_holds_it_back_is_said_ten_seconds_after_its_time_and_once() {
    let says = |waiting| [written("a", vec![], Says::HeldBack { waiting })];
    let shows = |reason: &str, mut execution: Execution| {
        let shown = WaitingShown { reason: reason.into(), tried: Duration::ZERO };
        execution.waiting_shown = Some(Box::new(shown));
        execution
    };
    let paused = |second| Execution { paused: Some(pause("ask")), ..waits_until("a", second) };
    let view = |execution: Execution| target(vec![execution], vec![done_run()]);
    assert_eq!(actions(&view(paused(41))), []);
    assert_eq!(actions(&view(paused(40))), says(Waiting::Paused(pause("ask"))));
    assert_eq!(actions(&view(shows("Paused", paused(40)))), []);
    let drains = |execution| left(view(execution), pod("a"));
    assert_eq!(actions(&drains(waits_until("a", 40))), says(Waiting::Remains));
    assert_eq!(actions(&drains(shows("Paused", waits_until("a", 40)))), says(Waiting::Remains));
    assert_eq!(actions(&drains(shows("Draining", waits_until("a", 40)))), []);
    let own = Run { number: 1, ..run(4, "a", Progress::Released) };
    let beside = target(vec![waits_until("a", 40)], vec![done_run(), own]);
    assert_eq!(actions(&beside), says(Waiting::Beside));
}

#[test]
fn a_refused_create_of_a_later_attempt_is_an_attempt_that_did_not_start() {
    let refused = |policy: RetryPolicy, attempts: Vec<Attempt>| {
        let mut execution = with_retry(policy, attempts, running("a", "r1"));
        execution.run_sequence = Some(1);
        let refusal = Refusal { reason: FailureReason::ResourceExhausted, message: "quota".into(), number: 2 };
        execution.remember().refusal = Some(refusal);
        execution
    };
    let second = vec![ended_attempt(Ran::No), next_attempt(50)];
    let view = target(vec![refused(retry_policy(), second.clone())], vec![done_run()]);
    let (reason, message) = (Some(FailureReason::ResourceExhausted), "quota".into());
    let end = AttemptEnd { completed_at: at(50), started: Ran::No, reason, message };
    let delay = Duration::from_secs(2);
    let again = Says::Retry { attempt: 2, of: 3, run: None, end: end.clone(), proof: None, delay, not_before: at(52) };
    assert_eq!(actions(&view), [written("a", vec![], again)]);
    let twice = RetryPolicy { max_attempts: 2, ..retry_policy() };
    let decided = actions(&target(vec![refused(twice, second.clone())], vec![done_run()]));
    let failure = only_failure(&decided);
    assert_eq!((failure.reason, failure.number), (FailureReason::ResourceExhausted, None));
    assert_eq!(*tried(failure), Tried { attempt: 2, of: 2, end: Some(end), stop: Stop::Exhausted });
    let made_after_all = target(vec![refused(retry_policy(), second)], vec![done_run(), pending(2)]);
    assert_eq!(actions(&made_after_all), [commits_again(&[])]);
}

#[test]
fn a_create_that_does_not_get_through_ends_it_at_the_start_deadline() {
    let mut tries = waits_until("a", 0);
    tries.remember().first_try = Some(at(-250));
    let view = troubled(target(vec![tries], vec![done_run()]), Some(no_answer()));
    let early = decide(&view, &Policy::default(), at(49));
    assert_eq!((early.actions.len(), early.wake), (1, Some(at(50))));
    let decided = actions(&view);
    let failure = only_failure(&decided);
    assert_eq!(tried(failure).stop, Stop::NotCreated);
    let told = "the PipelineRun could not be created within 5m0s: cannot create: no answer; attempt 1 failed, \
                ImagePullBackOff: no image";
    assert_eq!(&*failure.message, told);
}

#[test]
fn one_that_is_running_never_says_that_it_is_pending() {
    let mut tries = waits_until("a", 0);
    tries.remember().waits_since = Some(at(-60));
    let create = troubled(target(vec![tries.clone()], vec![done_run()]), Some(no_answer()));
    assert!(matches!(actions(&create)[..], [Action::Create { .. }]), "{:?}", actions(&create));
    let commit = troubled(target(vec![tries], vec![done_run(), pending(2)]), Some(no_answer()));
    assert_eq!(actions(&commit), [commits_again(&[])]);
}

#[test]
fn rivals_are_skipped_while_it_waits_also_those_that_have_a_run() {
    let next = NextAttempt { attempt: 2, of: 3, not_before: at(90), ends_by: at(86_400) };
    let conflict = Conflict {
        holder: id("a"),
        workflow_id: "wf".into(),
        started_at: at(0),
        deleted: false,
        draining: false,
        unanswered: None,
        next: Some(Box::new(next)),
    };
    let skip = Skip::ResourceBusy(conflict);
    assert_eq!(
        skip.message("node/n"),
        "ops/wfe-a (workflow wf) holds node/n since 2027-01-15T08:00:00Z and waits for attempt 2 of 3, which begins at \
         2027-01-15T08:01:30Z; it ends by 2027-01-16T08:00:00Z, and then a new WorkflowExecution can run"
    );
    let skipped = Action::Skip { skipped: vec![(id("b"), Version::new("v"))], skip, fact: Fact::Holds(id("a")) };
    let rival = Run { order: Order(2), ..run(2, "b", Progress::Pending) };
    for runs in [vec![done_run()], vec![done_run(), rival], vec![done_run(), pending(2)]] {
        let decided = actions(&target(vec![waits_until("a", 90), undecided("b")], runs));
        assert_eq!(decided, std::slice::from_ref(&skipped));
    }
    let unrecorded = target(vec![first(retry_policy()), undecided("b")], vec![done_run()]);
    assert_eq!(waiting(&unrecorded), [("b".into(), Waiting::OwnerLate)]);
}

#[test]
fn a_pending_run_is_left_over_by_its_number() {
    let needed = |execution: Execution, number: u64| {
        let mut execution = execution;
        execution.run_sequence = Some(2);
        let decided = actions(&target(vec![execution], vec![done_run(), pending(number)]));
        !decided.iter().any(|action| matches!(action, Action::Change(Change { to: RunChange::Deleted { .. }, .. })))
    };
    assert!(needed(waits_until("a", 90), 3));
    assert!(!needed(waits_until("a", 90), 2));
    let goes_on = || first(retry_policy());
    let busy = |execution: Execution| Execution { deleting: execution.deleting, ..execution };
    assert!(needed(busy(goes_on()), 3), "it may be ahead of this view");
    assert!(!needed(Execution { deleting: true, ..goes_on() }, 3));
    assert!(!needed(Execution { retry: None, ..goes_on() }, 3), "it will never have another");
}

#[test]
fn where_a_status_has_no_number_that_of_its_run_counts() {
    let unnumbered = |number: u64| {
        let attempts = vec![ended_attempt(Ran::No), next_attempt(50)];
        let execution = with_retry(retry_policy(), attempts, running("a", "r2"));
        let view = target(vec![execution], vec![run(2, "a", done(false)), pending(number)]);
        let decision = decide(&view, &Policy::default(), at(50));
        assert_eq!(crate::check::violations(&view, &Policy::default(), at(50), &decision), []);
        decision.actions
    };
    let leftover = unnumbered(1);
    assert_eq!(
        leftover,
        [
            Action::Create { execution: id("a"), number: 3, at_most: Some(Duration::from_secs(86_350)) },
            deleted("r1", Unneeded::Leftover, None)
        ]
    );
    assert!(matches!(&unnumbered(3)[..], [Action::Write(Write { says: Says::Running { number: 3, .. }, .. })]));
}

#[test]
fn the_worst_answer_of_all_attempts_is_that_of_the_execution() {
    let shown = Proof { words: "attempt 1: step s".into(), ..proof() };
    let verdict = |earlier: Ran, is_shown: bool, current: Started| {
        let begun = Attempt { run: Some("run-r2".into()), started_at: Some(at(30)), ..next_attempt(30) };
        let policy = RetryPolicy { max_attempts: 2, ..retry_policy() };
        let execution = Execution {
            run_sequence: Some(2),
            run_shown: RunShown { proof: is_shown.then(|| Box::new(shown.clone())), tasks: None, awaits: None },
            ..with_retry(policy, vec![ended_attempt(earlier), begun], running("a", "r2"))
        };
        let last = looked_at(run(2, "a", done(false)), 49, current);
        let decided = actions(&target(vec![execution], vec![done_run(), last]));
        let failure = only_failure(&decided).clone();
        (failure.started.clone(), tried(&failure).end.as_ref().map(|end| end.started))
    };
    let unknown = || Started::Unknown(Doubt::TooMany);
    assert_eq!(verdict(Ran::No, false, waited()), (waited(), Some(Ran::No)));
    assert_eq!(verdict(Ran::No, false, unknown()), (unknown(), Some(Ran::Unknown)));
    assert_eq!(verdict(Ran::Unknown, false, waited()), (Started::Unknown(Doubt::Attempt(1)), Some(Ran::No)));
    assert_eq!(verdict(Ran::Yes, true, waited()), (Started::Started(shown.clone()), Some(Ran::No)));
    assert_eq!(verdict(Ran::Yes, false, waited()), (Started::Unknown(Doubt::Attempt(1)), Some(Ran::No)));
    let (started, own) = verdict(Ran::No, false, Started::Started(proof()));
    assert_eq!((started.ran(), own), (Ran::Yes, Some(Ran::Yes)));
    assert!(started.to_string().starts_with("attempt 2: step "), "{started}");
}

#[test]
fn a_proof_of_an_earlier_attempt_satisfies_no_deadline_of_a_later_one() {
    let begun = Attempt { run: Some("run-r2".into()), started_at: Some(at(30)), ..next_attempt(30) };
    let with = |earlier| Execution {
        run_sequence: Some(2),
        run_shown: RunShown { proof: Some(Box::new(proof())), tasks: None, awaits: None },
        ..with_retry(retry_policy(), vec![ended_attempt(earlier), begun.clone()], running("a", "r2"))
    };
    let decided = |earlier| {
        let released = Run { released_at: Some(at(-260)), ..run(2, "a", Progress::Released) };
        actions(&target(vec![with(earlier)], vec![done_run(), released]))
    };
    assert_eq!(decided(Ran::Yes), [cancels("r2", CancelReason::NotStarted)]);
    assert_eq!(decided(Ran::No), [], "it is of this attempt");
}

#[test]
fn a_run_is_cancelled_a_minute_after_the_end_of_all_attempts() {
    let short = RetryPolicy { max_duration: Duration::from_secs(30), ..retry_policy() };
    let mut released = run(1, "a", Progress::Released);
    (released.released_at, released.memory.seen.has_started_anything) = (Some(at(0)), true);
    let view = target(vec![first(short)], vec![released]);
    assert_eq!(wake(&view), Some(at(90)));
    let decided = decide(&view, &Policy::default(), at(90)).actions;
    assert_eq!(decided, [cancels("r1", CancelReason::TimedOut)]);
}

#[test]
fn the_finished_run_of_one_that_no_watch_delivers_frees_the_target_when_that_is_over() {
    let view = |read: Option<(i64, OwnerRead)>| {
        let owner = Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Unwatched };
        let mut view = target(vec![undecided("b")], vec![Run { owner, ..run(1, "x", done(false)) }]);
        if let Some((second, found)) = read {
            view.memory.unwatched_owners.insert(Uid::new("x"), Elsewhere { at: at(second), found });
        }
        view
    };
    let reads = Action::ReadOwner { owner: id("x") };
    let next = NextAttempt { attempt: 2, of: 3, not_before: at(90), ends_by: at(900) };
    let waits = OwnerRead::Waits { started_at: at(0), next };
    assert_eq!(actions(&view(None)), std::slice::from_ref(&reads));
    assert_eq!(waiting(&view(None)), [("b".into(), Waiting::OwnerLate)]);
    assert_eq!(actions(&view(Some((0, OwnerRead::Over)))), [create("b", 2)]);
    let late = view(Some((45, OwnerRead::Late)));
    assert_eq!((actions(&late), wake(&late)), (vec![], Some(at(55))));
    assert_eq!(actions(&view(Some((40, OwnerRead::Late)))), [reads]);
    match &actions(&view(Some((45, waits))))[..] {
        [Action::Skip { fact: Fact::Holds(holder), .. }] => assert_eq!(*holder, id("x")),
        other => panic!("{other:?}"),
    }
    let nobody_asks = Target { executions: crate::uid_map::UidMap::default(), ..view(None) };
    assert_eq!(actions(&nobody_asks), []);
}

#[test]
fn a_status_that_somebody_else_wrote_is_the_first_attempt() {
    let none = with_retry(retry_policy(), vec![], running("a", "r1"));
    let decided = actions(&target(vec![none], vec![failed_run(waited())]));
    assert!(matches!(&decided[..], [Action::Write(Write { says: Says::Retry { attempt: 1, .. }, .. })]), "{decided:?}");
    let never = actions(&target(vec![first(retry_policy())], vec![Run { deleting: true, ..pending(1) }]));
    assert_eq!(only_failure(&never).started, Started::NotStarted(Absence::NoRun));
    assert_eq!(tried(only_failure(&never)).stop, Stop::RunDeleted);
}

#[test]
fn whoever_asked_for_the_end_comes_before_a_run_that_is_gone() {
    let asked = cancellation(None);
    let unnamed = ExecutionState::Running { run: None, started_at: Some(at(0)) };
    let never_starts = Run { deleting: true, ..pending(1) };
    let anothers = run(1, "b", Progress::Released);
    let unreleased = |mut execution: Execution| {
        execution.remember().lost_proof = Some(Lost::Unreleased(no_answer()));
        execution
    };
    let cases: [(&str, Execution, Vec<Run>); 6] = [
        ("its status names no run", Execution { state: unnamed, ..first(retry_policy()) }, vec![]),
        ("its run never starts", first(retry_policy()), vec![never_starts]),
        ("its run is another's", first(retry_policy()), vec![anothers]),
        ("its run is gone", first(retry_policy()), vec![]),
        ("its run was not released in time", unreleased(first(retry_policy())), vec![]),
        ("its run is gone between two attempts", waits_until("a", 90), vec![]),
    ];
    for (what, execution, runs) in cases {
        for (cancelled, deleting, stop) in [
            (false, false, Stop::RunDeleted),
            (false, true, Stop::Deleted),
            (true, false, Stop::Cancelled),
            (true, true, Stop::Cancelled),
        ] {
            let cancellation = cancelled.then(|| Box::new(asked.clone()));
            let execution = Execution { deleting, cancellation, ..execution.clone() };
            let view = target(vec![execution], runs.clone());
            let decision = decide(&view, &Policy::default(), at(50));
            assert_eq!(crate::check::violations(&view, &Policy::default(), at(50), &decision), [], "{what}");
            let ended: Vec<Action> = decision.actions.into_iter().filter(|it| matches!(it, Action::Write(_))).collect();
            assert_eq!(tried(only_failure(&ended)).stop, stop, "{what}, {cancelled}, {deleting}");
        }
    }
}

#[test]
fn the_end_of_its_time_is_judged_when_its_runs_are_seen_again() {
    let short = RetryPolicy { max_duration: Duration::from_secs(50), ..retry_policy() };
    let attempts = vec![ended_attempt(Ran::No), next_attempt(50)];
    let over = target(vec![with_retry(short, attempts, running("a", "r1"))], vec![done_run()]);
    let blind = decide_blind(&over, &Policy::default(), "the watch of PipelineRuns is broken", |_| false, at(50));
    // The next run may exist, and another party may have released it.
    assert_eq!((blind.actions, blind.wake), (vec![], None));
    assert_eq!(tried(only_failure(&actions(&over))).stop, Stop::MaxDuration);
}
