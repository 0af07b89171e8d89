//! Tests how attempts appear in a written status.

use serde_json::{Value, json};
use wfe_core::action::Says;
use wfe_core::ending::{Charge, Failure, Success, Tried};
use wfe_core::evidence::{Absence, Doubt};
use wfe_core::execution::RunShown;
use wfe_core::fingerprint::Stage;
use wfe_core::name::Uid;
use wfe_core::retry::Stop;
use wfe_core::run::Outcome;

use super::*;
use crate::status::render;

fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn run(number: u32) -> RunId {
    RunId { name: format!("wfe-x-{number}").into(), uid: Uid::new(&format!("r{number}")) }
}

fn end(seconds: i64, started: Ran, reason: Option<FailureReason>, message: &str) -> AttemptEnd {
    AttemptEnd { completed_at: at(seconds), started, reason, message: message.into() }
}

/// Returns how the first attempt failed.
fn first_end() -> AttemptEnd {
    end(9, Ran::No, Some(FailureReason::ImagePullBackOff), "no image")
}

fn ran(number: u32, seconds: i64, end: Option<AttemptEnd>) -> Attempt {
    Attempt { run: Some(run(number).name), started_at: Some(at(seconds)), end, ..Attempt::default() }
}

fn waits() -> Attempt {
    Attempt { delay: Some(Duration::from_secs(1)), not_before: Some(at(11)), ..Attempt::default() }
}

/// Returns a Running execution with these attempts, which committed to this run at second 0.
fn subject(attempts: Vec<Attempt>, number: u32) -> Subject {
    let policy = wfe_api::retry::read(Some(&json!(true))).unwrap().unwrap();
    Subject {
        generation: 1,
        workflow_id: "w".into(),
        is_running: true,
        started_at: Some(at(0)),
        run: Some(run(number)),
        retry: Some(Box::new(Retry { policy, attempts })),
        ..Subject::default()
    }
}

/// Returns what a write contains: the attempts, and for each type of condition its status, reason, message and time.
fn written(subject: &Subject, what: &Says, now: i64) -> (Value, Value) {
    let target = TargetName::parse("node/n").unwrap();
    let status = render(Some(&target), subject, what, Vec::new(), "runs", at(now));
    let conditions = status.conditions.iter().map(|it| {
        let since = it.last_transition_time.0.as_second() - at(0).timestamp();
        (it.type_.clone(), json!([it.status, it.reason, it.message, since]))
    });
    let conditions = Value::Object(conditions.collect());
    (serde_json::to_value(&status).unwrap(), conditions)
}

fn failed(tried: Option<Tried>) -> Says {
    let failure = Failure {
        reason: FailureReason::Unknown,
        message: "no".into(),
        started: Started::NotStarted(Absence::NoRun),
        task: None,
        tasks: None,
        failed_at: at(30),
        ran_for: Duration::ZERO,
        number: None,
        outcome: None,
        cancelled: false,
        stage: Stage::Creating,
        fingerprint: None,
        shared_outage: false,
        charge: Charge::default(),
        tried: tried.map(Box::new),
    };
    Says::Ended { ending: Ending::Failed(failure), draining: false }
}

const FIRST_ENDED: &str = r#"{"attempt": 1, "pipelineRun": "wfe-x-1", "startTime": "2027-01-15T08:00:00Z",
    "completionTime": "2027-01-15T08:00:09Z", "started": "False", "reason": "ImagePullBackOff", "message": "no image"}"#;

fn first_ended() -> Value {
    serde_json::from_str(FIRST_ENDED).unwrap()
}

#[test]
fn the_first_attempt_begins_with_its_commit() {
    let subject = Subject { is_running: false, started_at: None, run: None, ..subject(Vec::new(), 1) };
    let commit = Says::Running { run: run(1), number: 1, consecutive_failures: 0 };
    let (status, conditions) = written(&subject, &commit, 0);
    let begun = json!([{"attempt": 1, "pipelineRun": "wfe-x-1", "startTime": "2027-01-15T08:00:00Z"}]);
    assert_eq!((&status["attempts"], &status["startTime"]), (&begun, &json!("2027-01-15T08:00:00Z")));
    assert_eq!(conditions["Retrying"], json!(["False", "Running", "attempt 1 of 3 runs", 0]));
    let without = Subject { retry: None, ..subject };
    let (status, conditions) = written(&without, &commit, 0);
    assert_eq!((status.get("attempts"), conditions.get("Retrying")), (None, None));
}

#[test]
fn a_failed_attempt_is_recorded_with_the_wait_for_the_next() {
    let what = |proof| Says::Retry {
        attempt: 1,
        of: 3,
        run: Some(run(1)),
        end: first_end(),
        proof,
        delay: Duration::from_millis(1500),
        not_before: at(11),
    };
    let subject = subject(vec![ran(1, 0, None)], 1);
    let (status, conditions) = written(&subject, &what(None), 9);
    let waits = json!({"attempt": 2, "delay": "1.5s", "notBefore": "2027-01-15T08:00:11Z"});
    assert_eq!(status["attempts"], json!([first_ended(), waits]));
    for absent in ["phase", "startTime", "pipelineRunRef", "pipelineRunStatus", "completionTime", "failureDetails"] {
        assert_eq!(status.get(absent), None, "{absent} stays as it is");
    }
    let message = "attempt 2 of 3 begins at 2027-01-15T08:00:11Z: attempt 1 failed, ImagePullBackOff: no image";
    assert_eq!(conditions["Retrying"], json!(["True", "Backoff", message, 9]));
    let held = "the execution holds the target until its next attempt";
    assert_eq!(conditions["TargetLocked"], json!(["True", "Held", held, 0]));
    assert_eq!(conditions["Succeeded"][1], "Running");
    assert_eq!(conditions.get("Started"), None, "nothing of it ran");

    let proof = Proof::running("attempt 1: t", "s", "c", Some(at(3)));
    let (_, conditions) = written(&subject, &what(Some(proof.clone())), 9);
    assert_eq!(conditions["Started"][1], "StepRunning");
    let on_record = Subject { proof: Some(Box::new(proof.clone())), ..subject };
    let (_, again) = written(&on_record, &what(None), 9);
    assert_eq!(again["Started"], conditions["Started"], "one that is on record stays");
    let commit = Says::Running { run: run(2), number: 2, consecutive_failures: 0 };
    let (_, again) = written(&on_record, &commit, 12);
    assert_eq!(again["Started"], conditions["Started"], "also in the next attempt");
}

#[test]
fn a_refused_create_is_recorded_without_a_run() {
    let end = end(12, Ran::No, Some(FailureReason::ResourceExhausted), "quota");
    let (delay, not_before) = (Duration::from_secs(2), at(14));
    let what = Says::Retry { attempt: 2, of: 3, run: None, end, proof: None, delay, not_before };
    let (status, _) = written(&subject(vec![ran(1, 0, Some(first_end())), waits()], 1), &what, 12);
    let second = json!({
        "attempt": 2, "delay": "1s", "notBefore": "2027-01-15T08:00:11Z", "completionTime": "2027-01-15T08:00:12Z",
        "started": "False", "reason": "ResourceExhausted", "message": "quota",
    });
    let third = json!({"attempt": 3, "delay": "2s", "notBefore": "2027-01-15T08:00:14Z"});
    assert_eq!(status["attempts"], json!([first_ended(), second, third]));
}

#[test]
fn a_later_attempt_keeps_the_start_of_the_execution() {
    let commit = Says::Running { run: run(2), number: 2, consecutive_failures: 1 };
    let (status, conditions) = written(&subject(vec![ran(1, 0, Some(first_end())), waits()], 1), &commit, 12);
    let second = json!({
        "attempt": 2, "delay": "1s", "notBefore": "2027-01-15T08:00:11Z", "pipelineRun": "wfe-x-2",
        "startTime": "2027-01-15T08:00:12Z",
    });
    assert_eq!(status["attempts"], json!([first_ended(), second]));
    assert_eq!((status.get("startTime"), &status["runSequence"]), (None, &json!(2)));
    assert_eq!(status["pipelineRunRef"]["uid"], "r2");
    assert_eq!(conditions["Retrying"], json!(["False", "Running", "attempt 2 of 3 runs", 12]));
    let locked = json!(["True", "Held", format!("PipelineRun {} holds the target", run(2)), 0]);
    assert_eq!(conditions["TargetLocked"], locked, "it was held all the time");
}

#[test]
fn progress_says_of_attempts_what_the_commit_said() {
    let shown = RunShown::default();
    let what = Says::Progress { run: run(2), shown, doing: "Running".into(), wait: None, started_at: at(0) };
    let second = Attempt { run: Some(run(2).name), started_at: Some(at(12)), ..waits() };
    let subject = subject(vec![ran(1, 0, Some(first_end())), second], 2);
    let (status, conditions) = written(&subject, &what, 20);
    assert_eq!(status.get("attempts"), None, "they stay as they are");
    assert_eq!(conditions["Retrying"], json!(["False", "Running", "attempt 2 of 3 runs", 12]));
}

#[test]
fn the_end_completes_the_last_attempt_unless_that_only_waited() {
    let tried = |end, stop| Tried { attempt: 2, of: 3, end, stop };
    let second = Attempt { run: Some(run(2).name), started_at: Some(at(12)), ..waits() };
    let ran_twice = subject(vec![ran(1, 0, Some(first_end())), second], 2);
    let last = end(30, Ran::Unknown, Some(FailureReason::Unknown), &"x".repeat(2000));
    let (status, conditions) = written(&ran_twice, &failed(Some(tried(Some(last), Stop::Ran))), 31);
    let written_last = &status["attempts"][1];
    assert_eq!((&status["attempts"][0], &written_last["started"]), (&first_ended(), &json!("Unknown")));
    assert_eq!(written_last["message"].as_str().map(|text| text.chars().count()), Some(1024));
    assert_eq!(conditions["Retrying"], json!(["False", "Ran", Stop::Ran.message(), 30]));

    let waiting = subject(vec![ran(1, 0, Some(first_end())), waits()], 1);
    let (status, conditions) = written(&waiting, &failed(Some(tried(None, Stop::MaxDuration))), 31);
    assert_eq!(status.get("attempts"), None);
    assert_eq!(conditions["Retrying"][1], "MaxDuration");

    // The execution was refused before its turn, so it has no attempts.
    let undecided = Subject { is_running: false, started_at: None, run: None, ..subject(Vec::new(), 1) };
    let (status, conditions) = written(&undecided, &failed(None), 31);
    assert_eq!((status.get("attempts"), conditions.get("Retrying")), (None, None));
}

#[test]
fn a_success_completes_the_last_attempt() {
    let success = Success {
        completed_at: at(30),
        ran_for: Duration::from_secs(30),
        outcome: Outcome { succeeded: true, reason: "r".into(), message: "m".into(), completed_at: None },
        started: Started::Unknown(Doubt::Unread),
        attempt: Some(Box::new(end(30, Ran::Yes, None, ""))),
        tasks: None,
    };
    let what = Says::Ended { ending: Ending::Completed(success), draining: false };
    let (status, conditions) = written(&subject(vec![ran(1, 0, None)], 1), &what, 31);
    let only = json!([{
        "attempt": 1, "pipelineRun": "wfe-x-1", "startTime": "2027-01-15T08:00:00Z",
        "completionTime": "2027-01-15T08:00:30Z", "started": "True",
    }]);
    assert_eq!(status["attempts"], only);
    assert_eq!(conditions["Retrying"], json!(["False", "Succeeded", "attempt 1 of 3 succeeded", 30]));
    let (status, _) = written(&subject(Vec::new(), 1), &what, 31);
    assert_eq!(status["attempts"], only, "somebody else wrote the status");
}

#[test]
fn delays_are_read_back_as_they_are() {
    for (millis, text) in [(0, "0s"), (1000, "1s"), (1500, "1.5s"), (60_001, "1m0.001s"), (3_600_000, "1h0m0s")] {
        let delay = Duration::from_millis(millis);
        assert_eq!(delay_text(delay), text);
        assert_eq!(duration::parse(text), Ok(delay));
    }
}

#[test]
fn what_holds_the_next_attempt_back_is_said_beside_what_is_said_already() {
    let subject = subject(vec![ran(1, 0, Some(first_end())), waits()], 1);
    let (_, recorded) = (0, retrying(&subject, at(9), "True", conditions::BACKOFF, "attempt 2 of 3 begins at N"));
    let said = |kept: Vec<Condition>, waiting| {
        let status = render(None, &subject, &Says::HeldBack { waiting }, kept, "runs", at(60));
        assert_eq!((status.phase, status.attempts.len()), (None, 0), "nothing but conditions");
        status.conditions
    };
    let remains = said(vec![recorded], Waiting::Remains);
    let told = |all: &[Condition]| {
        all.iter().map(|it| format!("{} {} {}", it.type_, it.reason, it.message)).collect::<Vec<_>>()
    };
    let why = "tasks or pods of an earlier attempt, or of another run on the target, are still stopping";
    let expected = [
        format!("Retrying Backoff attempt 2 of 3 begins at N; it is held back: {why}"),
        format!("Waiting Draining {why}"),
    ];
    assert_eq!(told(&remains), expected);
    let since: Vec<i64> = remains.iter().map(|it| it.last_transition_time.0.as_second() - at(0).timestamp()).collect();
    assert_eq!(since, [9, 60]);
    let beside = told(&said(remains, Waiting::Beside));
    assert!(
        beside[0].matches("held back").count() == 1 && beside[1].starts_with("Waiting RivalUndecided"),
        "{beside:?}"
    );
    let long = retrying(&subject, at(9), "True", conditions::BACKOFF, &"x".repeat(40_000));
    assert!(said(vec![long], Waiting::Remains)[0].message.ends_with(why));
}
