//! Makes evidence from the results of live reads: limited in size, and without any value of a parameter.

use std::fmt::Write as _;

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use wfe_api::limits;
use wfe_core::action::{Gather, TriageStep};
use wfe_core::fingerprint::Fingerprint;
use wfe_core::reason::FailureReason;
use wfe_core::triage::{Every, Evidence, FailureSeen, Gathered};
use wfe_core::{Time, duration};
use wfe_tekton::{Redaction, api_time, parse_moment};

/// The limit of evidence, in bytes: a parameter may have 8,192.
pub(super) const LONGEST: usize = 8_000;
/// How many characters of each message are included. If the evidence is too long, the next smaller number is tried.
const MESSAGES: [u32; 4] = [500, 250, 100, 0];

/// How many circuits are named. With more open circuits, their number is sufficient.
const CIRCUITS: usize = 16;

/// Makes evidence. `failed` are the failed children that were read, the newest first.
pub(super) fn gathered(
    step: &TriageStep,
    gather: &Gather,
    schedule: &DynamicObject,
    failed: &[DynamicObject],
) -> Gathered {
    let (spec, status) = (&schedule.data["spec"], &schedule.data["status"]);
    let text = |path: &str| Box::from(spec.pointer(path).and_then(Value::as_str).unwrap_or_default());
    let cron = spec["cron"].as_str();
    let interval = status["adjust"]["interval"].as_str().or(spec["interval"].as_str()).unwrap_or_default();
    let timeouts = [&status["adjust"]["timeout"], &spec["template"]["spec"]["executionConfig"]["timeout"]];
    let timeout = timeouts.into_iter().find_map(|text| duration::parse(text.as_str()?).ok());
    let redaction = Redaction::of_schedule(&schedule.data);
    let seen = failed.iter().filter_map(|child| failure(child, &redaction));
    let refused =
        |failure: &FailureSeen| FailureSeen { message: redaction.apply(&failure.message).into(), ..failure.clone() };
    let evidence = Evidence {
        subject: format!("{}/{}", step.schedule.namespace, step.schedule.name).into(),
        target: gather.target.clone(),
        workflow_id: text("/template/spec/workflowRef/workflowId"),
        version: text("/template/spec/workflowRef/version"),
        every: cron.map_or_else(|| Every::Interval(interval.into()), |cron| Every::Cron(cron.into())),
        failure_count: gather.failure_count,
        last_success: gather.last_success,
        open_circuits: gather.open_circuits.clone(),
        timeout: timeout.unwrap_or(gather.default_timeout),
        failures: gather.refused.iter().map(refused).chain(seen).take(wfe_core::triage::MOST_FAILURES).collect(),
    };
    let text = render(&evidence);
    let digest = Sha256::digest(&text).iter().fold(String::with_capacity(64), |mut digest, byte| {
        let _ = write!(digest, "{byte:02x}"); // writing to a string cannot fail
        digest
    });
    Gathered { of: step.of.clone(), evidence, text: text.into(), digest: digest.into() }
}

/// Reads one failure from the status of an execution; `None` if the status shows no failure. The execution's parameters
/// may be those of an earlier template.
fn failure(child: &DynamicObject, of_schedule: &Redaction) -> Option<FailureSeen> {
    let details = child.data["status"]["failureDetails"].as_object()?;
    let text = |key: &str| details.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let reason = FailureReason::ALL.into_iter().find(|known| text("reason") == Some(known.as_str()));
    let redaction = Redaction::of_execution(&child.data["spec"]).and(of_schedule.clone());
    Some(FailureSeen {
        name: child.metadata.name.as_deref()?.into(),
        failed_at: text("failedAt").and_then(parse_moment),
        reason: Some(reason.unwrap_or(FailureReason::Unknown)),
        was_execution_failure: details.get("wasExecutionFailure").and_then(Value::as_bool).unwrap_or(true),
        task: text("failedTaskName").map(Into::into),
        step: text("failedStepName").map(Into::into),
        exit_code: details.get("exitCode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok()),
        ran_for: text("executionTimeBeforeFailure").map(Into::into),
        fingerprint: text("fingerprint").and_then(Fingerprint::parse),
        message: limits::cut(&redaction.apply(text("message").unwrap_or_default()), MESSAGES[0]).into(),
    })
}

/// Renders evidence for an analyst that is a workflow. If it is too long, it omits first parts of the messages, then
/// the oldest failures, and last the names of circuits.
fn render(evidence: &Evidence) -> String {
    let all = evidence.failures.len();
    let messages = MESSAGES.into_iter().map(|messages| (messages, all, CIRCUITS));
    let failures = (0..all).rev().map(|failures| (0, failures, CIRCUITS));
    let mut shortest = as_text(evidence, 0, 0, 0);
    for (messages, failures, circuits) in messages.chain(failures) {
        let text = as_text(evidence, messages, failures, circuits);
        if text.len() <= LONGEST {
            shortest = text;
            break;
        }
    }
    shortest
}

fn as_text(evidence: &Evidence, messages: u32, failures: usize, circuits: usize) -> String {
    let time = |time: Option<Time>| time.map(api_time);
    let failure = |failure: &FailureSeen| {
        json!({
            "name": failure.name,
            "failedAt": time(failure.failed_at),
            "reason": failure.reason.map_or("Refused", FailureReason::as_str),
            "wasExecutionFailure": failure.was_execution_failure,
            "task": failure.task,
            "step": failure.step,
            "exitCode": failure.exit_code,
            "ranFor": failure.ran_for,
            "fingerprint": failure.fingerprint.as_ref().map(Fingerprint::as_str),
            "message": limits::cut(&failure.message, messages),
        })
    };
    let (interval, cron) = match &evidence.every {
        Every::Interval(interval) => (Some(interval), None),
        Every::Cron(cron) => (None, Some(cron)),
    };
    let shown: Vec<Value> = evidence.failures.iter().take(failures).map(failure).collect();
    let mut text = json!({
        "subject": evidence.subject,
        "target": evidence.target,
        "workflow": {"id": evidence.workflow_id, "version": evidence.version},
        "interval": interval,
        "cron": cron,
        "timeout": duration::format(evidence.timeout),
        "failureCount": evidence.failure_count,
        "lastSuccess": time(evidence.last_success),
        "openCircuits": evidence.open_circuits.iter().take(circuits).collect::<Vec<_>>(),
        "failures": shown,
    });
    drop_nulls(&mut text);
    // The evidence becomes the value of a parameter, in which Tekton would replace variables. This escape gives the
    // same JSON without variables.
    text.to_string().replace("$(", "$\\u0028")
}

/// Removes unknown fields, which are null.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            *fields = std::mem::take(fields).into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>();
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
