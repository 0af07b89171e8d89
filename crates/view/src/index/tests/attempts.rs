//! Tests what the index remembers about an execution with a retry policy, and what it forgets with each attempt.

use wfe_core::evidence::Ran;
use wfe_core::reason::FailureReason;
use wfe_core::retry::{Answers, Attempt, AttemptEnd, Retry};
use wfe_core::run::Outcome;
use wfe_core::target::{Elsewhere, OwnerRead};

use super::*;

/// Returns a Running execution. All attempts except the last have ended; the last one waits or runs.
fn running(version: &str, attempts: usize, waits: bool) -> Delivery {
    let policy = wfe_api::retry::read(Some(&json!(5))).unwrap().unwrap();
    let end = AttemptEnd {
        completed_at: now(),
        started: Ran::No,
        reason: Some(FailureReason::Unknown),
        message: "failed".into(),
    };
    let ended = |number: usize| Attempt {
        run: Some(format!("wfe-x-{number}").into()),
        started_at: Some(now()),
        end: Some(end.clone()),
        ..Attempt::default()
    };
    let mut all: Vec<Attempt> = (1..=attempts).map(ended).collect();
    let last = all.last_mut().unwrap();
    (last.end, last.not_before) = (None, (attempts > 1).then(now));
    if waits {
        (last.run, last.started_at) = (None, None);
    }
    let committed = if waits { attempts - 1 } else { attempts };
    let run = RunId { name: format!("wfe-x-{committed}").into(), uid: Uid::new(&format!("r{committed}")) };
    let mut execution = Execution::undecided(id("a"), Version::new(version), now());
    execution.state = ExecutionState::Running { run: Some(run), started_at: Some(now()) };
    execution.run_sequence = Some(committed as u64);
    execution.retry = Some(Box::new(Retry { policy, attempts: all }));
    Delivery::Execution(Box::new(ExecutionRecord {
        execution,
        target: Some(target()),
        generation: 1,
        request: None,
        redaction: None,
        end: None,
    }))
}

/// Returns the run of an attempt of `a`, which is done or pending.
fn run_of(attempt: u64, is_done: bool) -> Delivery {
    let Delivery::Run(chain, mut run) = run(&format!("r{attempt}"), "a", "9") else { unreachable!() };
    (run.id.name, run.number) = (format!("wfe-x-{attempt}").into(), attempt);
    if is_done {
        let (reason, message) = ("Failed".into(), "said".into());
        run.progress = Progress::Done(Outcome { succeeded: false, reason, message, completed_at: None });
    }
    Delivery::Run(chain, run)
}

fn execution_of(index: &Index) -> &Execution {
    &index.entry(&key()).unwrap().target.executions[&Uid::new("a")]
}

fn run_in<'a>(index: &'a Index, uid: &str) -> &'a Run {
    &index.entry(&key()).unwrap().target.runs[&Uid::new(uid)]
}

fn refusal() -> Refusal {
    Refusal { reason: FailureReason::ResourceExhausted, message: "quota".into(), number: 2 }
}

#[test]
fn a_refusal_counts_for_the_attempt_alone_for_which_the_create_was_sent() {
    let a = Uid::new("a");
    let mut index = synced(vec![running("1", 2, true), run_of(1, true)]);
    for (attempt, is_kept) in [(None, false), (Some(1), false), (Some(3), false), (Some(2), true)] {
        index.refuse(&key(), &a, attempt, refusal());
        assert_eq!(execution_of(&index).recall().refusal.is_some(), is_kept, "{attempt:?}");
    }
    index.apply(running("2", 2, true), now());
    assert_eq!(execution_of(&index).recall().refusal, Some(refusal()), "a new version of the same attempt");
    index.apply(running("3", 3, true), now());
    assert_eq!(execution_of(&index).recall().refusal, None, "it would use up the next attempt");
    index.apply(running("4", 3, false), now());
    index.refuse(&key(), &a, Some(3), refusal());
    assert_eq!(execution_of(&index).recall().refusal, None, "the attempt runs");
}

#[test]
fn the_tries_of_an_attempt_end_with_its_own_run_and_not_with_an_earlier_one() {
    let (a, later) = (Uid::new("a"), now() + TimeDelta::minutes(1));
    let mut index = synced(vec![running("1", 2, true), run_of(1, true)]);
    index.tried(&key(), &a, now());
    index.tried(&key(), &a, later);
    index.apply(run_of(1, true), later);
    assert_eq!(execution_of(&index).recall().first_try, Some(now()));
    index.apply(run_of(2, false), later);
    assert_eq!(execution_of(&index).recall().first_try, None);
    index.apply(running("2", 2, false), later);
    index.tried(&key(), &a, later);
    assert_eq!(execution_of(&index).recall().first_try, None, "nothing is created for an attempt that runs");
}

#[test]
fn tries_that_a_decision_does_not_go_on_with_have_ended_also_between_attempts() {
    let mut index = synced(vec![running("1", 2, true), run_of(1, true)]);
    index.tried(&key(), &Uid::new("a"), now());
    index.waits(&key(), &creates(), now());
    assert_eq!(execution_of(&index).recall().first_try, Some(now()));
    index.waits(&key(), &Decision::default(), now());
    assert_eq!(execution_of(&index).recall().first_try, None);
}

#[test]
fn answers_count_for_the_attempt_that_was_asked_about() {
    let a = Uid::new("a");
    let answers = Answers { stop_when: None, retry_when: Some(Ok(true)) };
    let mut index = synced(vec![running("1", 1, false), run_of(1, true)]);
    index.answered(&key(), &a, 2, answers.clone());
    assert_eq!(execution_of(&index).recall().answers, None);
    index.answered(&key(), &a, 1, answers.clone());
    index.apply(running("2", 1, false), now());
    assert_eq!(execution_of(&index).recall().answers.as_deref(), Some(&answers));
    index.apply(running("3", 2, true), now());
    assert_eq!(execution_of(&index).recall().answers, None);
}

#[test]
fn what_was_seen_of_a_run_is_forgotten_once_its_attempt_is_recorded() {
    let uid = Uid::new("r1");
    let said = |index: &Index| match &run_in(index, "r1").progress {
        Progress::Done(outcome) => outcome.message.to_string(),
        _ => String::new(),
    };
    let mut index = synced(vec![running("1", 1, false), run_of(1, false)]);
    index.apply(run_of(1, true), now());
    index.looked(&key(), &uid, Findings::unread("why".into()), false, now());
    assert!(run_in(&index, "r1").memory.diagnosed.is_some());
    assert_eq!(said(&index), "said");
    index.apply(running("2", 2, true), now());
    let run = run_in(&index, "r1");
    assert_eq!((&run.memory.diagnosed, run.memory.done_seen), (&None, Some(now())), "it is done all the same");
    assert_eq!(said(&index), "");
    index.apply(run_of(1, true), now());
    assert_eq!(said(&index), "", "nor is a new version of it read");
}

#[test]
fn what_a_task_shows_is_kept_for_the_run_of_the_next_attempt() {
    let mut index = synced(vec![running("1", 2, true), run_of(1, true)]);
    let entry = index.targets.get_mut(&key()).unwrap();
    let sighting = pod("p", "Running").sighting.unwrap();
    let mut of_next = pod("p", "Running").sighting.unwrap();
    of_next.run = Uid::new("r2");
    entry.see(&of_next, false, false);
    assert!(entry.evidence.contains_key(&Uid::new("r2")), "it may be still to come");
    entry.see(&sighting, false, false);
    assert!(!entry.evidence.contains_key(&Uid::new("r1")), "its attempt is recorded");
}

#[test]
fn what_was_read_of_an_owner_elsewhere_is_kept_while_a_run_of_it_is_there() {
    let (a, b) = (Uid::new("a"), Uid::new("b"));
    let read = || Elsewhere { at: now(), found: OwnerRead::Over };
    let mut index = Index::new(Some("other".to_owned()));
    for delivery in Kind::ALL.map(Delivery::ListBegins).into_iter().chain([run_of(1, true), run_of(2, true)]) {
        index.apply(delivery, now());
    }
    Kind::ALL.map(Delivery::ListEnds).into_iter().for_each(|delivery| index.apply(delivery, now()));
    index.owner_read(&key(), &a, read());
    index.owner_read(&key(), &b, read());
    let known = |index: &Index, uid| index.entry(&key()).unwrap().target.memory.unwatched_owners.get(uid).is_some();
    assert!(known(&index, &a) && !known(&index, &b), "no run is of the other one");
    index.apply(Delivery::RunDeleted(Uid::new("r1"), None), now());
    assert!(known(&index, &a));
    index.apply(execution("c", "1"), now());
    index.apply(Delivery::RunDeleted(Uid::new("r2"), None), now());
    assert!(!known(&index, &a));
}
