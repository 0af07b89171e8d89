//! Tables of the status that each decision leads to.

use std::time::Duration;

use serde_json::json;

mod fits;

use super::*;
use wfe_api::{Outcome as ApiOutcome, SkipDetails, SkipReason};
use wfe_core::action::Ending;
use wfe_core::blocks::Blocked;
use wfe_core::ending::Charge;
use wfe_core::ending::Remediation;
use wfe_core::ending::{Failure, Skip, Success, Tried};
use wfe_core::evidence::{Absence, Doubt, Ran, Started};
use wfe_core::execution::Clearance;
use wfe_core::execution::Recorded;
use wfe_core::fingerprint::{Fingerprint, Stage};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::reason::{BlockReason, FailureReason};
use wfe_core::retry::{AttemptEnd, Stop};
use wfe_core::run::Outcome;

#[test]
fn both_spellings_of_every_reason_agree() {
    assert_eq!(json!(FailureReason::ALL), json!(FailureReason::ALL.map(FailureReason::as_str)));
    let ends = [conditions::CLEARED, conditions::SUPERSEDED, conditions::RECOVERED, conditions::LIFTED];
    let said = [Blocked::Cleared, Blocked::Superseded, Blocked::Recovered, Blocked::Lifted];
    assert_eq!(said.map(Blocked::reason), ends);
    for reason in BlockReason::ALL {
        assert!(SkipReason::ALL.iter().any(|skip| skip.as_str() == reason.as_str()), "{reason:?}");
    }
}

fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn id(namespace: &str, name: &str) -> ExecutionId {
    ExecutionId { namespace: namespace.into(), name: name.into(), uid: Uid::new(name) }
}

fn subject(is_running: bool) -> Subject {
    Subject { generation: 1, workflow_id: "w".into(), is_running, ..Subject::default() }
}

#[test]
fn a_status_that_lost_the_name_of_its_run_names_it_again() {
    let run = RunId { name: "wfe-x-3".into(), uid: Uid::new("u") };
    let lost = Subject { run: Some(run), started_at: Some(at(1)), found_run: Some(3), ..subject(true) };
    let what = Says::Blocked(Blocked::Cleared);
    let status = render(None, &lost, &what, Vec::new(), "runs", at(2));
    let named = status.pipeline_run_ref.map(|named| (named.name, named.uid, named.namespace));
    assert_eq!(named, Some(("wfe-x-3".to_owned(), "u".to_owned(), "runs".to_owned())));
    assert_eq!((status.run_sequence, status.start_time), (Some(3), Some(api_time(at(1)))));
    let whole = render(None, &Subject { found_run: None, ..lost }, &what, Vec::new(), "runs", at(2));
    assert_eq!((whole.pipeline_run_ref, whole.run_sequence, whole.start_time), (None, None, None));
}

fn any_failure() -> Failure {
    Failure {
        reason: FailureReason::Forbidden,
        message: "no".into(),
        started: Started::NotStarted(Absence::NoRun),
        task: None,
        tasks: None,
        failed_at: at(0),
        ran_for: std::time::Duration::ZERO,
        number: Some(3),
        outcome: None,
        cancelled: false,
        stage: Stage::Creating,
        fingerprint: None,
        shared_outage: false,
        charge: Charge::default(),
        tried: None,
    }
}

fn skip_details(skip: &Skip, now: Time) -> SkipDetails {
    let target = TargetName::parse("node/n").unwrap();
    skipped(Some(&target), &subject(false), skip, now).skip_details.unwrap()
}

#[test]
fn a_skip_names_what_stands_in_the_way_and_for_how_long_where_time_lifts_it() {
    let past = |namespace: &str, completed| Remediation {
        execution: id(namespace, "old"),
        workflow_id: "w".into(),
        completed_at: at(0),
        completed,
        is_dated: true,
    };
    let (until, half) = (Some(at(300)), std::time::Duration::from_millis(500));
    let cooldown = std::time::Duration::from_mins(5);
    for (skip, reason, namespace, outcome, remaining) in [
        (
            Skip::Cooldown { last: past("ops", true), cooldown, until },
            SkipReason::RecentlyRemediated,
            "ops",
            ApiOutcome::Completed,
            Some("4m30s"),
        ),
        (
            Skip::Backoff { latest: past("far", false), failures: 3, until },
            SkipReason::RecentlyRemediated,
            "far",
            ApiOutcome::Failed,
            Some("4m30s"),
        ),
        (
            Skip::ExhaustedRetries { latest: past("ops", false), failures: 5, limit: 5, until: None },
            SkipReason::ExhaustedRetries,
            "ops",
            ApiOutcome::Failed,
            None,
        ),
        (
            Skip::PreviousExecutionFailed { failed: past("ops", false), is_repeated: false },
            SkipReason::PreviousExecutionFailed,
            "ops",
            ApiOutcome::Failed,
            None,
        ),
    ] {
        // Half a second later, the remaining time is the same in whole seconds.
        let details = skip_details(&skip, at(30) + half);
        assert_eq!((details.reason, details.conflicting_workflow.is_none()), (reason, true));
        assert_eq!((details.reason.as_str(), details.message), (skip.reason(), skip.message("node/n")));
        let remediation = details.recent_remediation.unwrap();
        let named = (remediation.namespace.as_deref(), remediation.name.as_str(), remediation.outcome);
        assert_eq!(named, (Some(namespace), "old", outcome));
        assert_eq!((remediation.workflow_id.as_str(), remediation.target_resource.as_str()), ("w", "node/n"));
        assert_eq!((remediation.completed_at, remediation.cooldown_remaining.as_deref()), (api_time(at(0)), remaining));
    }
}

#[test]
fn what_a_failure_has_in_common_with_others_is_shown() {
    let target = TargetName::parse("node/n").unwrap();
    let shown = |fingerprint: Option<&str>, shared_outage| {
        let fingerprint = fingerprint.and_then(Fingerprint::parse);
        let failure = Failure { fingerprint, shared_outage, ..any_failure() };
        let status = ended(Some(&target), &subject(false), &Ending::Failed(failure), false);
        status.failure_details.map(|details| (details.fingerprint, details.shared_outage)).unwrap()
    };
    let cluster = "Forbidden/cluster";
    assert_eq!(shown(Some(cluster), true), (Some(cluster.to_owned()), Some(true)));
    assert_eq!(shown(Some(cluster), false), (Some(cluster.to_owned()), None), "absent is false");
    assert_eq!(shown(None, false), (None, None));
}

#[test]
fn the_counter_is_shown_and_only_what_counts_makes_the_next_one_wait() {
    let failure = |charge| Failure { charge, ..any_failure() };
    let target = TargetName::parse("node/n").unwrap();
    let shown = |target, charge| {
        let status = ended(target, &subject(false), &Ending::Failed(failure(charge)), false);
        (status.consecutive_failures, status.next_allowed_execution)
    };
    let counted = Charge { consecutive_failures: 2, next_allowed_execution: Some(at(120)), exhausts: false };
    assert_eq!(shown(Some(&target), counted), (Some(2), Some(api_time(at(120)))));
    let not_counted = Charge { next_allowed_execution: None, ..counted };
    assert_eq!(shown(Some(&target), not_counted), (Some(2), None));
    assert_eq!(shown(None, counted), (None, None), "an unreadable target has no counter");
}

#[test]
fn a_clearance_is_recorded_or_said_to_do_nothing_and_the_other_conditions_stay() {
    let (subject, target) = (subject(false), TargetName::parse("node/n").unwrap());
    let other = condition(&subject, at(0), conditions::SUCCEEDED, "False", "Unknown", "m");
    let blocks = blocked_condition(&subject, at(0), Blocked::Yes(BlockReason::ExhaustedRetries), Some(&target));
    let clearance =
        Clearance { reason: "looked".into(), cleared_by: "jo".into(), recorded: Recorded::Not, unguarded: None };
    let effective = cleared(Some(&target), &subject, vec![blocks, other.clone()], &clearance, true, at(9));
    let lifted = blocked_condition(&subject, at(9), Blocked::Cleared, Some(&target));
    assert_eq!(effective.conditions, [lifted, other.clone()]);
    assert_eq!(effective.clearance.map(|it| (it.cleared_by, it.reason)), Some(("jo".into(), "looked".into())));
    let ineffective = cleared(Some(&target), &subject, vec![other], &clearance, false, at(9));
    assert_eq!(ineffective.clearance, None);
    assert_eq!(ineffective.conditions[1].type_, conditions::CLEARANCE_INEFFECTIVE);
}

#[test]
fn what_was_true_before_an_end_that_somebody_else_wrote_goes() {
    let subject = subject(false);
    let said = |type_: &str, status: &str| condition(&subject, at(0), type_, status, "R", "m");
    let ended = || vec![said(conditions::STARTED, "True"), said(conditions::BLOCKED, "True")];
    let going_on = || vec![said(conditions::SUCCEEDED, "Unknown"), said(conditions::WAITING, "True")];
    let none = freed(&subject, [ended(), going_on()].concat(), at(9)).conditions;
    assert_eq!(none, ended(), "its target was never held");
    let held = vec![said(conditions::TARGET_LOCKED, "True"), said(conditions::RETRYING, "True")];
    let free = freed(&subject, [ended(), held, going_on()].concat(), at(9)).conditions;
    let expected = [ended(), vec![lock_after_the_end(&subject, at(9), false)]].concat();
    assert_eq!(free, expected);
}

#[test]
fn parameters_that_the_pipeline_does_not_declare_are_shown_at_the_end() {
    let target = TargetName::parse("node/n").unwrap();
    let subject = Subject { undeclared: ["TARGET_RESOURCE".into()].into(), ..subject(true) };
    let status = ended(Some(&target), &subject, &Ending::Failed(any_failure()), false);
    let summary = status.failure_details.unwrap().natural_language_summary;
    let words = "the pipeline declares no parameter TARGET_RESOURCE, so no task got its value";
    assert!(summary.ends_with(&format!("Note that {words}.")), "{summary}");
    let success = Success {
        completed_at: at(9),
        ran_for: Duration::from_secs(9),
        outcome: Outcome { succeeded: true, reason: "".into(), message: "".into(), completed_at: None },
        started: Started::Unknown(Doubt::Unread),
        attempt: None,
        tasks: None,
    };
    let status = ended(Some(&target), &subject, &Ending::Completed(success), false);
    let message = status.conditions.iter().find(|it| it.type_ == conditions::SUCCEEDED).unwrap().message.clone();
    assert_eq!(message, format!("the workflow completed; note that {words}"));
}

#[test]
fn a_summary_quotes_no_value_and_the_message_that_stays_with_the_object_is_whole() {
    let target = TargetName::parse("node/n").unwrap();
    let spec = json!({"parameters": {"TOKEN": "s3cr3t"}});
    let redaction = Some(Arc::new(wfe_tekton::Redaction::of_execution(&spec)));
    let subject = Subject { redaction, ..subject(false) };
    let end = AttemptEnd { completed_at: at(0), started: Ran::No, reason: None, message: "s3cr3t".into() };
    let stop = Stop::ConditionError("no such key: s3cr3t".into());
    let tried = Some(Box::new(Tried { attempt: 1, of: 3, end: Some(end), stop }));
    let failure = Failure { message: "'s3cr3t' is not allowed".into(), tried, ..any_failure() };
    let details = ended(Some(&target), &subject, &Ending::Failed(failure), false).failure_details.unwrap();
    assert_eq!(details.message, "'s3cr3t' is not allowed");
    let summary = details.natural_language_summary;
    assert!(!summary.contains("s3cr3t") && summary.contains("no such key: <TOKEN>"), "{summary}");
    assert!(summary.contains("Reported: '<TOKEN>' is not allowed."), "{summary}");
}

#[test]
fn a_failure_that_exhausts_its_target_names_no_time() {
    let target = TargetName::parse("node/n").unwrap();
    let charge = Charge { consecutive_failures: 5, next_allowed_execution: Some(at(60)), exhausts: true };
    let status = ended(Some(&target), &subject(false), &Ending::Failed(Failure { charge, ..any_failure() }), false);
    assert_eq!((status.consecutive_failures, status.next_allowed_execution), (Some(5), None));
}

#[test]
fn a_failure_that_blocks_says_so_from_its_end_on() {
    let target = TargetName::parse("node/n").unwrap();
    let reason_of = |was_execution_failure, exhausts| {
        let charge = Charge { exhausts, ..Charge::default() };
        let absence = Started::NotStarted(Absence::OnlyWaited);
        let started = if was_execution_failure { Started::Unknown(Doubt::Unread) } else { absence };
        let failure = Failure { started, charge, ..any_failure() };
        let status = ended(Some(&target), &subject(false), &Ending::Failed(failure), false);
        status.conditions.into_iter().find(|it| it.type_ == conditions::BLOCKED).map(|it| (it.status, it.reason))
    };
    let says = |reason: &str| Some(("True".to_owned(), reason.to_owned()));
    assert_eq!(reason_of(true, false), says("PreviousExecutionFailed"));
    assert_eq!(reason_of(false, true), says("ExhaustedRetries"));
    assert_eq!(reason_of(false, false), None);
}
