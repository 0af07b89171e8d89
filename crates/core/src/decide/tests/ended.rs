//! The examination of a failed run, and how long it is repeated.

use super::*;
use crate::awaiting::Awaiting;
use crate::ending::Failure;
use crate::evidence::{Absence, Doubt, Started};
use crate::findings::{Cause, FailedTask, Findings, Waited};
use crate::run::{Run, RunMemory};
use crate::trouble::{OwnCause, OwnTrouble};

fn examine() -> Action {
    Action::Examine { run: run_id("r1") }
}

fn failed_run(done_seen: i64) -> Run {
    let memory = RunMemory { done_seen: Some(at(done_seen)), ..RunMemory::default() };
    Run { memory, ..run(1, "a", done(false)) }
}

fn decided(run: Run) -> Decision {
    decide(&target(vec![running("a", "r1")], vec![run]), &Policy::default(), at(50))
}

fn failure(decision: &Decision) -> &Failure {
    match &decision.actions[..] {
        [Action::Write(Write { says: Says::Ended { ending: Ending::Failed(failure), .. }, .. }), ..] => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_failed_is_looked_at_before_it_ends_its_execution() {
    let first = decided(failed_run(50));
    assert_eq!((first.actions, first.wake), (vec![examine()], None));
    assert_eq!(failure(&decided(looked_at(failed_run(50), 50, waited()))).started, waited());
}

#[test]
fn what_may_still_change_is_looked_at_again_until_it_takes_too_long() {
    let unfinished = || Started::Unknown(Doubt::Unfinished("t".into()));
    let just_now = decided(looked_at(failed_run(49), 50, unfinished()));
    assert_eq!((just_now.actions, just_now.wake), (vec![], Some(at(51))));
    assert_eq!(decided(looked_at(failed_run(48), 49, unfinished())).actions, [examine()]);
    assert_eq!(decided(looked_since(failed_run(4), 5, 49, unfinished())).actions, [examine()], "the last look");
    assert_eq!(failure(&decided(looked_since(failed_run(4), 5, 50, unfinished()))).started, unfinished());
    let mut proven = looked_at(failed_run(50), 50, unfinished());
    proven.memory.seen.proof = Some(proof());
    assert_eq!(failure(&decided(proven)).started, Started::Started(proof()), "no look can change it");
}

/// Returns what the execution waits for according to its new status.
fn awaits(decision: &Decision) -> Option<(String, String)> {
    decision.actions.iter().find_map(|action| match action {
        Action::Write(Write { says: Says::Progress { shown, .. }, .. }) => {
            shown.awaits.as_deref().map(|awaits| (awaits.reason.to_string(), awaits.message.to_string()))
        }
        _ => None,
    })
}

#[test]
fn a_failed_run_that_cannot_be_examined_ends_nothing_and_is_examined_again_without_an_end() {
    for trouble in [no_answer(), forbidden()] {
        let view = troubled(target(vec![running("a", "r1")], vec![failed_run(50)]), Some(trouble.clone()));
        for second in [51, 59, 60, 96, 1_000, 100_000] {
            let now = at(second);
            let decision = decide(&view, &Policy::default(), now);
            assert_eq!(crate::check::violations(&view, &Policy::default(), now, &decision), []);
            assert_eq!(decision.actions.first(), Some(&examine()), "{second}");
            let said = awaits(&decision);
            assert_eq!(said.is_some(), second >= 60, "it is said after ten seconds: {second}");
            assert!(said.is_none_or(|(reason, words)| reason == "Examining" && words.contains(&*trouble.words)));
        }
    }
}

#[test]
fn that_a_run_cannot_be_examined_is_written_once_whatever_the_api_server_answers_next() {
    let mut execution = running("a", "r1");
    let trouble = OwnTrouble { cause: OwnCause::CannotExamine, words: no_answer().words };
    let said = Awaiting::Examining { since: at(50), trouble }.shown(None);
    execution.run_shown.awaits = Some(Box::new(said));
    let view = troubled(target(vec![execution], vec![failed_run(50)]), Some(forbidden()));
    let decision = decide(&view, &Policy::default(), at(1_000));
    assert_eq!((decision.actions, decision.awaiting.len()), (vec![examine()], 1));
}

#[test]
fn patience_with_what_a_look_cannot_tell_ends_with_a_look_that_was_answered() {
    let unfinished = || Started::Unknown(Doubt::Unfinished("t".into()));
    let late = |run| decide(&target(vec![running("a", "r1")], vec![run]), &Policy::default(), at(10_000));
    assert_eq!(late(looked_since(failed_run(50), 50, 51, unfinished())).actions, [examine()], "then nobody answered");
    assert_eq!(failure(&late(looked_since(failed_run(50), 50, 95, unfinished()))).started, unfinished());
}

#[test]
fn a_proof_that_the_status_has_is_as_good_as_one_that_was_seen() {
    let mut execution = running("a", "r1");
    execution.run_shown.proof = Some(Box::new(proof()));
    let view = target(vec![execution.clone()], vec![looked_at(failed_run(50), 50, waited())]);
    assert_eq!(failure(&decide(&view, &Policy::default(), at(50))).started, Started::Started(proof()));
    let gone = target(vec![execution], vec![]);
    assert_eq!(
        failure(&decide(&gone, &Policy::default(), at(50))).started,
        Started::Started(proof()),
        "its run is gone"
    );
}

#[test]
fn a_success_waits_a_moment_for_the_proof_that_it_ran() {
    let succeeded = |seen: crate::run::Seen, skipped_tasks| {
        let memory = RunMemory { done_seen: Some(at(49)), seen, ..RunMemory::default() };
        decided(Run { total_tasks: Some(2), skipped_tasks, memory, ..run(1, "a", done(true)) })
    };
    let seen = |proof| crate::run::Seen { proof, ..Default::default() };
    assert_eq!(succeeded(seen(None), 1).wake, Some(at(49) + SETTLE));
    let started = |decision: &Decision| match &decision.actions[..] {
        [Action::Write(Write { says: Says::Ended { ending: Ending::Completed(success), .. }, .. })] => {
            (success.started.status(), success.tasks)
        }
        other => panic!("{other:?}"),
    };
    let count = |completed| Some(crate::findings::TaskCount { completed, total: 2 });
    assert_eq!(started(&succeeded(seen(Some(proof())), 1)), ("True", count(1)));
    assert_eq!(started(&succeeded(seen(None), 2)), ("False", count(0)), "all of its tasks were skipped");
    let opaque = crate::run::Seen { opaque: Some("custom".into()), ..seen(None) };
    assert_eq!(started(&succeeded(opaque, 0)), ("Unknown", count(2)));
}

#[test]
fn a_success_without_proof_is_unknown_unless_all_of_its_tasks_were_skipped() {
    let started = |total_tasks, skipped_tasks| {
        let decision = decided(Run { total_tasks, skipped_tasks, ..run(1, "a", done(true)) });
        match &decision.actions[..] {
            [Action::Write(Write { says: Says::Ended { ending: Ending::Completed(success), .. }, .. })] => {
                success.started.clone()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(started(Some(2), 1), Started::Unknown(Doubt::Unread));
    assert_eq!(started(Some(2), 2), Started::NotStarted(Absence::NoTaskRun));
    assert_eq!(started(None, 0), Started::Unknown(Doubt::Unread), "the number of its tasks is not known");
}

#[test]
fn a_failure_carries_the_outcome_of_its_run() {
    let Progress::Done(said) = done(false) else { panic!() };
    assert_eq!(found(Findings::unread("".into()), |_| {}).outcome, Some(said));
}

fn found(findings: Findings, change: impl FnOnce(&mut Run)) -> Failure {
    let mut run = looked_at(failed_run(50), 50, waited());
    run.memory.diagnosed = run.memory.diagnosed.map(|look| Box::new(crate::run::Look { findings, ..*look }));
    run.total_tasks = Some(3);
    change(&mut run);
    failure(&decided(run)).clone()
}

#[test]
fn what_was_found_is_told() {
    let task =
        FailedTask { name: "apply".into(), index: 1, step: Some("run".into()), exit_code: Some(3), registry: None };
    let cause = Cause { reason: FailureReason::OomKilled, message: "m".into(), task: Some(task.clone()) };
    let findings = Findings { started: waited(), cause, completed_tasks: 2, ..Findings::unread("".into()) };
    let told = found(findings.clone(), |_| {});
    assert_eq!((told.reason, &*told.message, told.task), (FailureReason::OomKilled, "m", Some(task)));
    assert_eq!(told.tasks.map(|tasks| (tasks.completed, tasks.total)), Some((2, 3)));

    let late = |run: &mut Run| (run.cancelled, run.cancel_reason) = (true, Some(CancelReason::TimedOut));
    assert_eq!(found(findings.clone(), late).reason, FailureReason::OomKilled, "it failed before its cancel could act");
    let cancelled = Findings { was_cancelled: true, ..findings };
    assert_eq!(found(cancelled.clone(), late).reason, FailureReason::DeadlineExceeded);
    let told = |is_asked| found(cancelled.clone(), |run| run.cancelled = is_asked).message;
    assert!(told(true).starts_with("the PipelineRun was cancelled by somebody else"));
    assert!(told(false).starts_with("a task of the PipelineRun was cancelled by somebody else"));
}

#[test]
fn what_a_person_cancels_before_anything_ran_does_not_count() {
    let findings = |started| Findings { started, was_cancelled: true, ..Findings::unread("Cancelled".into()) };
    let by = |reason| move |run: &mut Run| (run.cancelled, run.cancel_reason) = (true, reason);
    let counts = |failure: &Failure| failure.charge.next_allowed_execution.is_some();
    for reason in [None, Some(CancelReason::Requested)] {
        let told = found(findings(waited()), by(reason));
        assert_eq!((told.shown_reason(), counts(&told), told.was_execution_failure()), ("Cancelled", false, false));
        let ran = found(findings(Started::Started(proof())), by(reason));
        assert_eq!((ran.shown_reason(), counts(&ran), ran.was_execution_failure()), ("Cancelled", false, true));
    }
    let late = found(findings(waited()), by(Some(CancelReason::NotStarted)));
    assert_eq!((late.shown_reason(), counts(&late)), ("Unknown", true), "our own deadline is no person");
    let by_itself = found(Findings { was_cancelled: false, ..findings(waited()) }, by(Some(CancelReason::Requested)));
    assert!(counts(&by_itself), "it failed before its cancel could act");
}

#[test]
fn a_run_that_a_person_stops_is_cancelled_by_a_person() {
    let stopped = |run: &mut Run| run.stopped = true;
    let findings = |started, was_cancelled| Findings { started, was_cancelled, ..Findings::unread("Cancelled".into()) };
    let told = found(findings(waited(), true), stopped);
    assert_eq!((told.shown_reason(), told.charge.next_allowed_execution), ("Cancelled", None));
    let words = "the PipelineRun was stopped by somebody else (StoppedRunFinally); Tekton says ";
    assert!(told.message.starts_with(words), "{}", told.message);
    assert_eq!(decided(Run { stopped: true, ..failed_run(5) }).actions, [examine()], "it does not end unread");
    let by_itself = found(findings(waited(), false), stopped);
    assert_eq!(by_itself.shown_reason(), "Unknown", "a task that went on has failed");
}

#[test]
fn a_bundle_that_gave_no_pipeline_for_a_cause_that_nobody_names_is_the_workflows() {
    let blamed = |unresolved| {
        let cause = Cause { reason: FailureReason::ImagePullBackOff, message: "m".into(), task: None };
        let findings = Findings { started: waited(), cause, unresolved, ..Findings::unread("".into()) };
        found(findings, |_| {}).fingerprint.unwrap().as_str().to_owned()
    };
    assert!(blamed(true).starts_with("ImagePullBackOff/workflow/"), "{}", blamed(true));
    assert!(blamed(false).starts_with("ImagePullBackOff/registry/"), "{}", blamed(false));
}

#[test]
fn a_run_that_did_not_start_in_time_says_what_it_waited_for() {
    let waited_for = Waited { reason: FailureReason::ResourceExhausted, words: "room".into() };
    let findings = Findings { was_cancelled: true, ..Findings::unread("Cancelled".into()) };
    let late = |run: &mut Run| (run.cancelled, run.cancel_reason) = (true, Some(CancelReason::NotStarted));
    let told = found(Findings { waited: Some(waited_for), ..findings.clone() }, late);
    assert_eq!(told.reason, FailureReason::ResourceExhausted);
    let words = "nothing of it was seen to start within 5m0s, so it was cancelled; it waited for room";
    assert_eq!(&*told.message, words);
    assert_eq!(found(findings, late).reason, FailureReason::Unknown);
}

#[test]
fn a_run_that_was_deleted_before_it_was_released_never_started() {
    let never = || Started::NotStarted(Absence::NoRun);
    let mut lost = running("a", "r1");
    lost.remember().lost_proof = Some(Lost::Vanished(never()));
    let held = Run { deleting: true, ..run(1, "a", Progress::Pending) };
    for (case, view, words) in [
        ("gone", target(vec![lost.clone()], vec![]), "PipelineRun run-r1 was deleted before it was started"),
        (
            "held by a finalizer",
            target(vec![running("a", "r1")], vec![held.clone()]),
            "PipelineRun run-r1 is being deleted, and was never started",
        ),
    ] {
        let decision = decide(&view, &Policy::default(), at(50));
        let failure = failure(&decision);
        assert_eq!(&*failure.message, words);
        assert_eq!((&failure.started, failure.was_execution_failure()), (&never(), false), "{case}");
        assert_eq!(failure.charge.consecutive_failures, 1, "{case}: it counts, and blocks nobody");
    }
    // Any proof that something ran is accepted.
    let shown = |mut execution: Execution| {
        execution.run_shown.proof = Some(Box::new(proof()));
        execution
    };
    for view in [target(vec![shown(lost)], vec![]), target(vec![shown(running("a", "r1"))], vec![held])] {
        let decision = decide(&view, &Policy::default(), at(50));
        assert!(failure(&decision).was_execution_failure());
    }
    let mut may_have_run = running("a", "r1");
    may_have_run.remember().lost_proof = Some(Lost::Vanished(Started::Unknown(Doubt::Unfollowed("t".into()))));
    let followed = decide(&target(vec![may_have_run], vec![]), &Policy::default(), at(50));
    assert_eq!(&*failure(&followed).message, "PipelineRun run-r1 was deleted while the workflow was running");
    assert_eq!(failure(&followed).started, Started::Unknown(Doubt::Unfollowed("t".into())));
    let unknown = decide(&target(vec![running("a", "r1")], vec![]), &Policy::default(), at(50));
    assert_eq!(&*failure(&unknown).message, "PipelineRun run-r1 was deleted while the workflow was running");
    assert_eq!(failure(&unknown).started, Started::Unknown(Doubt::RunGone));
}
