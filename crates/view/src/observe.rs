//! Converts a `WorkflowExecution` to the record that the index stores. An object of any shape has a record, so one
//! malformed object never stops the watch of the others.

mod end;
mod retry;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::DynamicObject;
use serde_json::Value;
use wfe_api::conditions::{
    BLOCKED, CLEARANCE_INEFFECTIVE, DRAINING, RECONCILING, RECOVERED, RETRYING, STARTED, SUCCEEDED, TARGET_LOCKED,
    UNGUARDED, WAITING,
};
use wfe_api::{Phase, WorkflowExecutionSpec, is_image_reference, variable};
use wfe_core::awaiting::{Awaiting, AwaitingShown};
use wfe_core::bundle::Bundle;
use wfe_core::ending::CANCELLED;
use wfe_core::evidence::Proof;
use wfe_core::execution::{
    Cancellation, Clearance, Execution, ExecutionState, FailedState, Recorded, RunShown, WaitingShown,
};
use wfe_core::findings::TaskCount;
use wfe_core::fingerprint::{Fingerprint, Origin};
use wfe_core::guard::{Directive, Unguarded};
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::reason::FailureReason;
use wfe_core::retry::{Retry, RetryPolicy};
use wfe_core::schedule::{ChildOf, Retention, analysed_slot, slot_of};
use wfe_core::target::{OwnerRead, TargetName};
use wfe_core::{Time, duration, tries};
use wfe_tekton::{Redaction, RunRequest, bundle_reference, moment, parse_moment};

use crate::index::ExecutionRecord;

pub use schedule::observe_schedule;

/// Reads one `WorkflowExecution`. A run in another namespace than `execution_namespace` belongs to another operator.
/// `None` only for an object without name, namespace or uid, which no API server creates.
#[must_use]
pub fn observe_execution(object: &DynamicObject, execution_namespace: &str) -> Option<ExecutionRecord> {
    let meta = &object.metadata;
    let id = ExecutionId {
        namespace: meta.namespace.as_deref()?.into(),
        name: meta.name.as_deref()?.into(),
        uid: Uid::new(meta.uid.as_deref()?),
    };
    let spec = &object.data["spec"];
    let phase = object.data.pointer("/status/phase").and_then(Value::as_str);
    let undecided = |unusable: Option<Box<str>>, start_before| ExecutionState::Undecided { unusable, start_before };
    let conditions = conditions(&object.data);
    let as_written = spec["targetResource"].as_str();
    let (target, state, request, retry) = match phase {
        None | Some("" | "Pending") => {
            let target = as_written.and_then(|target| TargetName::parse(target).ok());
            match usable(&id, spec) {
                Ok((start_before, request, policy)) => {
                    let retry = policy.map(|policy| Retry { policy, attempts: Vec::new() });
                    (target, undecided(None, start_before), Some(Arc::new(request)), retry)
                }
                Err(why) => (target, undecided(Some(why.into()), None), None, None),
            }
        }
        Some(phase) => {
            let target = as_written.and_then(|target| TargetName::parse_recorded(target).ok());
            let state = decided_state(&object.data["status"], &conditions, phase);
            let is_running = matches!(state, ExecutionState::Running { .. });
            let retry = is_running.then(|| retry::running(spec, &object.data["status"])).flatten();
            // A later attempt needs another run.
            let request = retry.as_ref().and_then(|_| usable_request(&id, spec).ok().map(Arc::new));
            (target, state, request, retry)
        }
    };
    let reason_of = |kind: &str, status: &str| {
        conditions
            .iter()
            .find(|condition| condition.type_ == kind && condition.status == status)
            .map(|c| c.reason.as_str())
    };
    let draining_shown = if is_final(phase) {
        conditions.iter().any(is_of_one_that_goes_on)
    } else {
        reason_of(TARGET_LOCKED, "True") == Some(DRAINING)
    };
    let clearance = observe_clearance(&object.data);
    let is_told_of = matches!(state, ExecutionState::Undecided { .. } | ExecutionState::Running { .. })
        || clearance.as_ref().is_some_and(|clearance| clearance.recorded == Recorded::Not);
    let redaction = is_told_of.then(|| match &request {
        Some(request) => Redaction::new(Arc::clone(&request.parameters), target.clone()),
        None => Redaction::of_execution(spec),
    });
    let end = end::end_shown(&object.data, &conditions, &state);
    let run_namespace = object.data.pointer("/status/pipelineRunRef/namespace").and_then(Value::as_str);
    let execution = Execution {
        version: Version::new(meta.resource_version.as_deref().unwrap_or_default()),
        created: meta.creation_timestamp.as_ref().map(moment).unwrap_or_default(),
        deleting: meta.deletion_timestamp.is_some(),
        workflow_id: spec.pointer("/workflowRef/workflowId").and_then(Value::as_str).unwrap_or_default().into(),
        origin: Arc::new(origin(&spec["workflowRef"])), // the index replaces it with a shared copy
        bundle: Bundle::new(
            spec.pointer("/workflowRef/containerImage").and_then(Value::as_str).unwrap_or_default(),
            spec.pointer("/workflowRef/containerDigest").and_then(Value::as_str),
        ),
        run_sequence: object.data.pointer("/status/runSequence").and_then(Value::as_u64),
        timeout: spec.pointer("/executionConfig/timeout").and_then(Value::as_str).and_then(|t| duration::parse(t).ok()),
        ttl: spec["ttlSecondsAfterFinished"].as_u64().map(Duration::from_secs),
        recovery_of: spec["recoveryOf"].as_str().map(Into::into),
        retry: retry.map(Box::new),
        clearance: clearance.map(Box::new),
        cancellation: cancellation(&spec["cancellation"], &conditions).map(Box::new),
        paused: None, // the index knows which namespaces are paused
        elsewhere: phase == Some(Phase::Running.as_str()) && run_namespace.is_some_and(|it| it != execution_namespace),
        waiting_shown: waiting_shown(&conditions).map(Box::new),
        draining_shown,
        blocked_shown: reason_of(BLOCKED, "True")
            .or_else(|| reason_of(BLOCKED, "False").filter(|reason| *reason == RECOVERED))
            .map(Into::into),
        run_shown: match &state {
            ExecutionState::Running { .. } => run_shown(&object.data["status"], &conditions),
            _ => RunShown::default(),
        },
        child: child_of(&id, &spec["remediationRequestRef"]).map(Box::new),
        id,
        state,
        memory: None, // the index sets it
    };
    let (redaction, end) = (redaction.map(Arc::new), end.map(Box::new));
    let generation = meta.generation.unwrap_or_default();
    Some(ExecutionRecord { execution, target, generation, request, redaction, end })
}

/// Returns whether an execution in this phase has ended. An unknown phase of another version does not count as an end.
fn is_final(phase: Option<&str>) -> bool {
    [Phase::Completed, Phase::Failed, Phase::Skipped].iter().any(|it| phase == Some(it.as_str()))
}

/// Returns whether a condition applies only before the end of an execution. Such a condition may be left in a status
/// whose end another program wrote.
#[must_use]
pub fn is_of_one_that_goes_on(condition: &Condition) -> bool {
    matches!(
        (&*condition.type_, &*condition.status),
        (RECONCILING | TARGET_LOCKED | WAITING | RETRYING, "True") | (SUCCEEDED, "Unknown")
    )
}

/// Reads a `workflowRef` for fingerprints. Missing fields become empty.
fn origin(workflow: &Value) -> Origin {
    let text = |key: &str| workflow[key].as_str().unwrap_or_default();
    Origin::new(text("workflowId"), text("version"), text("containerImage"))
}

/// Reads the relation of an execution to its schedule: the execution names the schedule and its uid, is in the same
/// namespace, and its name contains the slot (section 12.5).
fn child_of(id: &ExecutionId, made_for: &Value) -> Option<ChildOf> {
    let text = |key: &str| made_for[key].as_str();
    let (group, _) = text("apiVersion")?.split_once('/')?;
    let is_here = text("namespace").is_none_or(|namespace| namespace == &*id.namespace);
    if group != wfe_api::GROUP || text("kind") != Some("WorkflowSchedule") || !is_here {
        return None;
    }
    let (schedule, name) = (Uid::new(text("uid")?), text("name")?);
    let of = |slot, analyses| (slot, analyses);
    let child = slot_of(name, &id.name).map(|slot| of(slot, false));
    let (slot, analyses) = child.or_else(|| analysed_slot(name, &id.name).map(|slot| of(slot, true)))?;
    // The index sets whether the schedule needs the child. An analyst is kept for its own time to live.
    let keep = if analyses { Retention::Own } else { Retention::Needed };
    Some(ChildOf { schedule, slot, analyses, keep })
}

/// Reads the owner of a finished run from a live read. An execution that is terminal, gone or replaced by another has
/// ended. An unreadable execution, or one in an unknown phase of another version, may not have ended.
#[must_use]
pub fn observe_owner(owner: &ExecutionId, found: Option<&DynamicObject>) -> OwnerRead {
    let Some(object) = found else { return OwnerRead::Over };
    // The execution namespace is not needed here, because the run was already found in it.
    let Some(ExecutionRecord { execution: found, .. }) = observe_execution(object, "") else {
        return OwnerRead::Late;
    };
    let phase = object.data.pointer("/status/phase").and_then(Value::as_str);
    if found.id.uid != owner.uid || is_final(phase) {
        return OwnerRead::Over;
    }
    match (found.next_attempt(), &found.state) {
        (Some(next), ExecutionState::Running { started_at, .. }) => {
            OwnerRead::Waits { started_at: started_at.unwrap_or(found.created), next }
        }
        _ => OwnerRead::Late,
    }
}

/// Reads the conditions of a `WorkflowExecution`. Malformed conditions are skipped.
pub fn conditions(data: &Value) -> Vec<Condition> {
    data.pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|condition| serde_json::from_value(condition.clone()).ok())
        .collect()
}

/// Reads from a status what the execution waits for, and for how long the operator has tried to create its run.
fn waiting_shown(conditions: &[Condition]) -> Option<WaitingShown> {
    let waiting = conditions.iter().find(|condition| condition.type_ == WAITING && condition.status == "True")?;
    let tried = tries::read(&waiting.message).unwrap_or_default();
    Some(WaitingShown { reason: waiting.reason.as_str().into(), tried })
}

/// Reads what a status shows about the run, including a proof that another process recorded.
#[must_use]
pub fn run_shown(status: &Value, conditions: &[Condition]) -> RunShown {
    let started = conditions.iter().find(|condition| condition.type_ == STARTED && condition.status == "True");
    let proof = started.and_then(|it| Proof::recorded(&it.reason, &it.message, Some(moment(&it.last_transition_time))));
    let count = |key: &str| status["pipelineRunStatus"][key].as_u64().and_then(|count| u16::try_from(count).ok());
    let tasks = count("completedTasks").zip(count("totalTasks"));
    let awaits = conditions
        .iter()
        .find(|condition| condition.type_ == SUCCEEDED && Awaiting::REASONS.contains(&condition.reason.as_str()));
    let awaits =
        awaits.map(|it| AwaitingShown { reason: it.reason.as_str().into(), message: it.message.as_str().into() });
    RunShown {
        proof: proof.map(Box::new),
        tasks: tasks.map(|(completed, total)| TaskCount { completed, total }),
        awaits: awaits.map(Box::new),
    }
}

fn cancellation(value: &Value, conditions: &[Condition]) -> Option<Cancellation> {
    value.as_object()?;
    let text = |key: &str, unknown: &str| value[key].as_str().unwrap_or(unknown).into();
    let (reason, requested_by) = (text("reason", "no reason given"), text("requestedBy", "somebody"));
    let unguarded = unguarded(conditions, Directive::Cancellation);
    Some(Cancellation { reason, requested_by, unguarded })
}

/// Reads the condition `Unguarded` of a clearance or cancellation.
fn unguarded(conditions: &[Condition], kind: Directive) -> Option<Unguarded> {
    let condition = conditions.iter().find(|condition| condition.type_ == UNGUARDED)?;
    let counts = [false, true].into_iter().find(|counts| condition.reason == kind.reason(*counts))?;
    Some(Unguarded { since: moment(&condition.last_transition_time), counts })
}

/// Reads the clearance of a `WorkflowExecution`, if there is one.
#[must_use]
pub fn observe_clearance(data: &Value) -> Option<Clearance> {
    let value = data.pointer("/spec/clearance").filter(|value| value.is_object())?;
    let text = |key: &str, unknown: &str| value[key].as_str().unwrap_or(unknown).into();
    let in_vain = |condition: &Condition| condition.type_ == CLEARANCE_INEFFECTIVE && condition.status == "True";
    let conditions = conditions(data);
    let recorded = if conditions.iter().any(in_vain) {
        Recorded::Ineffective
    } else if data["status"]["clearance"].is_object() {
        Recorded::Effective
    } else {
        Recorded::Not
    };
    Some(Clearance {
        reason: text("reason", "no reason given"),
        cleared_by: text("clearedBy", "somebody"),
        recorded,
        unguarded: unguarded(&conditions, Directive::Clearance),
    })
}

fn decided_state(status: &Value, conditions: &[Condition], phase: &str) -> ExecutionState {
    let time = |key: &str| -> Option<Time> { status[key].as_str().and_then(parse_moment) };
    if phase == Phase::Running.as_str() {
        let text = |key: &str| status["pipelineRunRef"][key].as_str();
        let run = text("name").zip(text("uid")).map(|(name, uid)| RunId { name: name.into(), uid: Uid::new(uid) });
        ExecutionState::Running { run, started_at: time("startTime") }
    } else if phase == Phase::Completed.as_str() {
        ExecutionState::Completed { started_at: time("startTime"), completed_at: time("completionTime") }
    } else if phase == Phase::Failed.as_str() {
        let reason = status.pointer("/failureDetails/reason").and_then(Value::as_str);
        let reason = FailureReason::ALL.into_iter().find(|known| Some(known.as_str()) == reason);
        let details = &status["failureDetails"];
        ExecutionState::Failed(FailedState {
            reason: reason.unwrap_or(FailureReason::Unknown),
            was_execution_failure: details["wasExecutionFailure"].as_bool().unwrap_or(true),
            cancelled: conditions.iter().any(|it| it.type_ == SUCCEEDED && it.reason == CANCELLED),
            failed_at: details["failedAt"].as_str().and_then(parse_moment),
            completed_at: time("completionTime"),
            next_allowed_execution: time("nextAllowedExecution"),
            fingerprint: details["fingerprint"].as_str().and_then(Fingerprint::parse),
            shared_outage: details["sharedOutage"] == true,
        })
    } else {
        // Skipped, or an unknown phase of another version: the execution neither asks for a turn nor counts. If the
        // other version runs something, the run holds the target.
        ExecutionState::Skipped { completed_at: time("completionTime") }
    }
}

/// Reads what an undecided execution requests, or returns why it cannot be used (rule 0).
fn usable(id: &ExecutionId, spec: &Value) -> Result<(Option<Time>, RunRequest, Option<RetryPolicy>), String> {
    let (start_before, request) = (start_before(spec)?, usable_request(id, spec)?);
    no_variables(&request)?;
    Ok((start_before, request, retry::usable_policy(spec)?))
}

/// Refuses parameters that refer to variables of Tekton. The CRD refuses them, too, but an older CRD does not.
fn no_variables(request: &RunRequest) -> Result<(), String> {
    match request.parameters.iter().find(|(_, value)| variable::refers_to_one(value)) {
        Some((key, _)) => Err(format!("spec.parameters.{key}: {}", variable::REFUSAL)),
        None => Ok(()),
    }
}

/// Reads `spec.startBefore`, or returns why it cannot be used (rule 0). A malformed time does not mean "no limit".
fn start_before(spec: &Value) -> Result<Option<Time>, String> {
    let value = &spec["startBefore"];
    if value.is_null() {
        return Ok(None);
    }
    let unusable = || {
        "spec.startBefore: is a time that this operator cannot read; create the WorkflowExecution again with one such as \
         2026-01-02T03:04:05Z"
            .to_owned()
    };
    value.as_str().and_then(parse_moment).map(Some).ok_or_else(unusable)
}

/// Reads what an execution requests to run, or returns why it cannot be used (rule 0). The text names the field and
/// never quotes a parameter's value.
fn usable_request(id: &ExecutionId, spec: &Value) -> Result<RunRequest, String> {
    let made_for = child_of(id, &spec["remediationRequestRef"]);
    let spec: WorkflowExecutionSpec = serde_json::from_value(spec.clone()).map_err(|_| {
        "spec: does not have the shape of kubernaut.ai/v1alpha1 as this operator knows it; install the CRD that belongs \
         to this operator and apply the object again"
            .to_owned()
    })?;
    let target = TargetName::parse(&spec.target_resource).map_err(|error| format!("spec.targetResource: {error}"))?;
    let workflow = &spec.workflow_ref;
    let bundle =
        bundle_reference(&workflow.container_image, workflow.container_digest.as_deref()).map_err(|conflict| {
            format!(
                "spec.workflowRef.containerDigest: is {}, but containerImage names {}; give the digest once",
                conflict.beside, conflict.in_image
            )
        })?;
    if !is_image_reference(&workflow.container_image) {
        return Err(
            "spec.workflowRef.containerImage: must be an image reference (host:port/path:tag@sha256:digest, all \
                    but the path optional, the path in lower case)"
                .to_owned(),
        );
    }
    if spec.ttl_seconds_after_finished.is_some_and(|seconds| seconds < 0) {
        return Err("spec.ttlSecondsAfterFinished: must be 0 or more".to_owned());
    }
    if spec.parameters.contains_key(wfe_tekton::TARGET_PARAMETER) {
        return Err(format!("spec.parameters: {} is reserved for the target", wfe_tekton::TARGET_PARAMETER));
    }
    let config = spec.execution_config.unwrap_or_default();
    let timeout = match &config.timeout {
        Some(text) => {
            Some(duration::parse(text).map_err(|error| format!("spec.executionConfig.timeout: '{text}' {error}"))?)
        }
        None => None,
    };
    Ok(RunRequest {
        execution: id.clone(),
        workflow_id: spec.workflow_ref.workflow_id,
        bundle,
        target,
        parameters: spec.parameters.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        timeout,
        service_account: config.service_account_name,
        scheduled_for: made_for.filter(|it| !it.analyses).map(|it| it.slot),
    })
}

#[cfg(test)]
mod tests;
