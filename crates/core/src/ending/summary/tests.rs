use std::time::Duration;

use FailureReason::{
    ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
};

use super::*;
use crate::ending::{Charge, Tried};
use crate::evidence::{Doubt, Proof};
use crate::fingerprint::Stage;
use crate::retry::Stop;
use crate::testing::at;

const TARGET: Option<&str> = Some("node/a");

fn failure(reason: FailureReason, message: &str, started: Started, task: Option<FailedTask>) -> Failure {
    Failure {
        reason,
        message: message.into(),
        started,
        task,
        tasks: Some(TaskCount { completed: 1, total: 3 }),
        failed_at: at(0),
        ran_for: Duration::from_secs(45),
        number: None,
        outcome: None,
        cancelled: false,
        stage: Stage::Released,
        fingerprint: None,
        shared_outage: false,
        charge: Charge::default(),
        tried: None,
    }
}

fn task(step: Option<&str>, exit_code: Option<i32>) -> FailedTask {
    FailedTask { name: "apply".into(), index: 1, step: step.map(Into::into), exit_code, registry: None }
}

fn ran() -> Started {
    Started::Started(Proof::ended("t", "run", "c", None))
}

fn waited() -> Started {
    Started::NotStarted(Absence::OnlyWaited)
}

fn unrun() -> Started {
    Started::NotStarted(Absence::NoRun)
}

fn last(attempt: u32, stop: Stop) -> Tried {
    Tried { attempt, of: 20, end: None, stop }
}

#[test]
fn the_attempt_is_told_with_why_there_is_no_other() {
    let mut broke = failure(Unknown, "m", ran(), None);
    broke.tried = Some(Box::new(last(3, Stop::Exhausted)));
    let words = "Workflow 'restart' on node/a failed after 45s, on attempt 3 of 20 (not tried again: it was the last attempt). \
                 Reported: m. Part of the workflow ran, so the target may be only partly changed.";
    assert!(broke.summary("restart", TARGET, &[]).starts_with(words), "{}", broke.summary("restart", TARGET, &[]));
    for (attempt, words) in [(1, "Part of the workflow ran in attempt 1, so"), (3, "Part of the workflow ran, so")] {
        let proof = Proof::ended("t", "run", "c", None);
        let words_of_proof = format!("attempt {attempt}: {}", proof.words).into();
        broke.started = Started::Started(Proof { words: words_of_proof, ..proof });
        assert!(broke.summary("restart", TARGET, &[]).contains(words), "{}", broke.summary("restart", TARGET, &[]));
    }
}

/// Each reason: if something ran, if nothing ran, and without a run.
#[test]
fn the_words_for_each_reason() {
    let denied = "apply: StepFailed: \"step-patch\" exited with code 1: Error; deployments.apps \"x\" is forbidden";
    for (failure, words) in [
        (
            failure(
                OomKilled,
                "apply: StepOOM: \"step-run\" exited with code 137: OOMKilled",
                ran(),
                Some(task(Some("run"), Some(137))),
            ),
            "Task 'apply' (2 of 3) of workflow 'restart' on node/a failed after 45s with OOMKilled: its step 'run' took more memory \
             than it may have. Reported: apply: StepOOM: \"step-run\" exited with code 137: OOMKilled. Part of the \
             workflow ran, so the target may be only partly changed. Examine the target, clear it when it is in order, and give the step more memory before this workflow runs again.",
        ),
        (
            failure(Forbidden, denied, ran(), Some(task(Some("patch"), Some(1)))),
            "Task 'apply' (2 of 3) of workflow 'restart' on node/a failed after 45s with Forbidden: its step 'patch' was denied what \
             it tried to do. Reported: apply: StepFailed: \"step-patch\" exited with code 1: Error; deployments.apps \
             \"x\" is forbidden. Part of the workflow ran, so the target may be only partly changed. Examine the target, clear it when it is in order, and give its service account the right that it lacks before this workflow runs again.",
        ),
        (
            failure(
                Unknown,
                "apply: StepFailed: \"step-run\" exited with code 3: Error",
                ran(),
                Some(task(Some("run"), Some(3))),
            ),
            "Task 'apply' (2 of 3) of workflow 'restart' on node/a failed after 45s: its step 'run' exited with code 3. \
             Reported: apply: StepFailed: \"step-run\" exited with code 3: Error. Part of the workflow ran, so the \
             target may be only partly changed. Examine the target, clear it when it is in order, and find the cause in the logs of its pods before this workflow runs again.",
        ),
        (
            failure(Unknown, "cancelled by jo: enough.", Started::Unknown(Doubt::Opaque("inner".into())), None),
            "Workflow 'restart' on node/a failed after 45s. Reported: cancelled by jo: enough. The operator cannot tell whether anything ran, so it counts as if something had: inner is no TaskRun: only its own controller knows what it \
             did. Examine the target, clear it when it is in order, and find the cause in the logs of its pods before this workflow runs again.",
        ),
        (
            failure(DeadlineExceeded, "PipelineRunTimeout: not done within 30m0s", ran(), Some(task(None, None))),
            "Task 'apply' (2 of 3) of workflow 'restart' on node/a failed after 45s with DeadlineExceeded: its time was up. Reported: \
             PipelineRunTimeout: not done within 30m0s. Part of the workflow ran, so the target may be only \
             partly changed. Examine the target, clear it when it is in order, and find out what took so long or give it more time before this workflow runs again.",
        ),
        (
            failure(ImagePullBackOff, "check: TaskRunImagePullFailed: Back-off", waited(), Some(task(None, None))),
            "Task 'apply' (2 of 3) of workflow 'restart' on node/a failed after 45s with ImagePullBackOff: an image could not be \
             pulled. Reported: check: TaskRunImagePullFailed: Back-off. Nothing of the workflow ran. Make it available, \
             with credentials where it needs them; it is safe to try again.",
        ),
        (
            failure(ImagePullBackOff, "CouldntGetPipeline: NAME_UNKNOWN", waited(), None),
            "Workflow 'restart' on node/a failed after 45s with ImagePullBackOff: its bundle could not be fetched. Reported: \
             CouldntGetPipeline: NAME_UNKNOWN. Nothing of the workflow ran. Make it available, with credentials where it \
             needs them; it is safe to try again.",
        ),
        (
            failure(ResourceExhausted, "pods: exceeded quota", waited(), None),
            "Workflow 'restart' on node/a failed after 45s with ResourceExhausted. Reported: pods: exceeded quota. Nothing of the \
             workflow ran. Raise the quota of the execution namespace or make room on the nodes; it is safe to try again.",
        ),
        (
            failure(ResourceExhausted, "the API server refused: exceeded quota!", unrun(), None),
            "Workflow 'restart' on node/a failed before it started, with ResourceExhausted. Reported: the API server refused: \
             exceeded quota. Nothing of the workflow ran. Free or raise the quota of the execution namespace; it is safe to \
             try again.",
        ),
        (
            failure(Forbidden, "policy 'p' denied it", unrun(), None),
            "Workflow 'restart' on node/a failed before it started, with Forbidden. Reported: policy 'p' denied it. Nothing of \
             the workflow ran. Let the policy or webhook that the message names admit the PipelineRun; it is safe to try \
             again.",
        ),
        (
            failure(ConfigurationError, "", unrun(), None),
            "Workflow 'restart' on node/a failed before it started, with ConfigurationError. Reported: nothing. Nothing of the \
             workflow ran. Correct what the message names and create another WorkflowExecution.",
        ),
    ] {
        assert_eq!(failure.summary("restart", TARGET, &[]), words);
    }
}

#[test]
fn it_has_four_sentences_and_fits_whatever_is_in_it() {
    let long = "ä".repeat(5000);
    let doubts = [Doubt::Opaque(long.as_str().into()), Doubt::Unseen(long.as_str().into()), Doubt::TooMany];
    let verdicts: Vec<Started> = [ran(), waited(), unrun()].into_iter().chain(doubts.map(Started::Unknown)).collect();
    let undeclared: Vec<Box<str>> = (0..65).map(|_| long.as_str().into()).collect();
    for reason in FailureReason::ALL {
        for started in &verdicts {
            for step in [None, Some(long.as_str())] {
                let task = FailedTask {
                    name: long.as_str().into(),
                    index: u32::MAX,
                    step: step.map(Into::into),
                    exit_code: Some(i32::MIN),
                    registry: None,
                };
                for task in [Some(task), None] {
                    let mut failure = failure(reason, &long, started.clone(), task);
                    failure.ran_for = Duration::MAX;
                    let (tried, exhausting) = (Some(last(20, Stop::ConditionError(long.as_str().into()))), u32::MAX);
                    for (tried, parameters, failures) in
                        [(None, &[][..], 0), (tried.clone(), &[], exhausting), (tried, &undeclared, exhausting)]
                    {
                        failure.tried = tried.map(Box::new);
                        failure.charge = Charge {
                            consecutive_failures: failures,
                            exhausts: failures > 0 && !failure.was_execution_failure(),
                            ..Charge::default()
                        };
                        let summary = failure.summary(&long, Some(&long), parameters);
                        let (length, sentences) = (summary.chars().count(), summary.matches(". ").count() + 1);
                        let fits = length <= 1000 && (sentences == 4 || sentences == 5 && !parameters.is_empty());
                        assert!(fits, "{length} characters, {sentences} sentences: {summary}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_reported_in_lines_is_told_in_one() {
    assert!(failure(Unknown, "a\nb\t c", ran(), None).summary("w", None, &[]).contains("Reported: a b c."));
}

#[test]
fn the_failure_that_exhausts_a_target_is_no_reason_to_try_again() {
    let charge = Charge { consecutive_failures: 5, exhausts: true, ..Charge::default() };
    for reason in FailureReason::ALL {
        for started in [waited(), unrun()] {
            let failure = Failure { charge, ..failure(reason, "m", started, None) };
            let summary = failure.summary("restart", TARGET, &[]);
            let words = ", then clear node/a: after 5 such failures in a row nothing runs there until somebody does.";
            assert!(summary.ends_with(words) && !summary.contains("try again"), "{summary}");
        }
    }
}

#[test]
fn a_bundle_that_gave_no_pipeline_for_a_cause_that_nobody_names_blames_no_registry() {
    let failure = failure(ImagePullBackOff, "no pipeline came from the bundle x", waited(), None);
    let unresolved = Failure { stage: Stage::Unresolved, ..failure }.summary("restart", TARGET, &[]);
    assert!(unresolved.contains("with ImagePullBackOff: its bundle gave no pipeline."), "{unresolved}");
    assert!(unresolved.ends_with("See which of these causes it is; it is safe to try again."), "{unresolved}");
}

#[test]
fn parameters_that_the_pipeline_does_not_declare_are_told_last() {
    let summary = |names: &[&str]| {
        let names: Vec<Box<str>> = names.iter().map(|name| (*name).into()).collect();
        failure(Unknown, "m", ran(), None).summary("restart", TARGET, &names)
    };
    for (names, words) in [
        (
            &["TARGET_RESOURCE"][..],
            "Note that the pipeline declares no parameter TARGET_RESOURCE, so no task got its value.",
        ),
        (&["A", "B"], "no parameter A (and 1 other), so no task got its value."),
        (&["A", "B", "C"], "no parameter A (and 2 others), so no task got its value."),
        (&[], "find the cause in the logs of its pods before this workflow runs again."),
    ] {
        assert!(summary(names).ends_with(words), "{}", summary(names));
    }
}
