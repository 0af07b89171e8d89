//! Refuses what the schema, the admission rules and rule 0 of the decision refuse.
//!
//! The fields are checked in the order in which a person reads them. The first wrong field is reported.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use wfe_core::target::{TargetName, is_dns_label};

use super::error::{BuildError, Problem};
use crate::image::{is_digest, is_image_reference};
use crate::retry::{self, Refusal};
use crate::{RemediationRequestRef, WorkflowExecution, WorkflowRef, limits, variable};

/// The parameter under which the operator passes the target.
const TARGET_PARAMETER: &str = "TARGET_RESOURCE";
const TIMEOUT: &str = "spec.executionConfig.timeout";
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);
const FIRST_SECOND: Timestamp = Timestamp::UNIX_EPOCH;
/// 9999-01-01T00:00:00Z: the days from 1970 to then, in seconds.
const YEAR_9999: i64 = 2_932_532 * 86_400;

const SUBDOMAIN: &str = "a DNS subdomain (at most 253 of a-z, 0-9, - and .), e.g. payment-restart";
const IMAGE: &str = "an image reference (host:port/path:tag@sha256:digest, all but the path optional, the path in lower \
    case), e.g. registry.example/workflows/node-disk-cleanup:1.4.0";

type Verdict = Result<(), BuildError>;

/// Checks a whole object, and returns the first fault.
pub(super) fn execution(execution: &WorkflowExecution) -> Verdict {
    verdicts(execution).into_iter().collect()
}

/// Lists all faults of an object that was not made by a builder, at most one fault of each field.
pub(super) fn faults(execution: &WorkflowExecution) -> Vec<BuildError> {
    let spec = &execution.spec;
    let timeout = spec.execution_config.as_ref().and_then(|config| config.timeout.as_deref());
    let is_timeout = |text: &str| {
        wfe_core::duration::parse(text).is_ok_and(|it| (Duration::from_secs(1)..=LONGEST_TIMEOUT).contains(&it))
    };
    let later = |is_set: bool, field: &str| if is_set { Err(BuildError::new(field, Problem::Later)) } else { Ok(()) };
    let of_objects_only = [
        demand(timeout.is_none_or(is_timeout), TIMEOUT, "a Go duration from 1s to 24h, e.g. 30m or 1h30m"),
        later(spec.cancellation.is_some(), "spec.cancellation"),
        later(spec.clearance.is_some(), "spec.clearance"),
    ];
    verdicts(execution).into_iter().chain(of_objects_only).filter_map(Result::err).collect()
}

fn verdicts(execution: &WorkflowExecution) -> [Verdict; 12] {
    let (metadata, spec) = (&execution.metadata, &execution.spec);
    let config = spec.execution_config.as_ref();
    let namespace = metadata.namespace.as_deref().is_none_or(is_dns_label);
    let in_range = spec.confidence.is_none_or(|confidence| (0.0..=1.0).contains(&confidence));
    let known = |moment: Timestamp| moment >= FIRST_SECOND && moment.as_second() < YEAR_9999;
    let lives = spec.ttl_seconds_after_finished.is_none_or(|seconds| seconds >= 0);
    [
        subdomain("metadata.name", metadata.name.as_deref().unwrap_or_default()),
        demand(namespace, "metadata.namespace", "a DNS label (at most 63 of a-z, 0-9 and -), e.g. payment"),
        match TargetName::parse(&spec.target_resource) {
            Err(error) => Err(BuildError::new("spec.targetResource", Problem::Target(error))),
            Ok(_) => Ok(()),
        },
        workflow(&spec.workflow_ref),
        parameters(spec.parameters.iter()),
        spec.remediation_request_ref.as_ref().map_or(Ok(()), request),
        demand(in_range, "spec.confidence", "a number from 0 to 1, e.g. 0.92"),
        at_most("spec.rationale", spec.rationale.as_deref(), limits::RATIONALE),
        match config.and_then(|config| config.service_account_name.as_deref()) {
            Some(name) => subdomain("spec.executionConfig.serviceAccountName", name),
            None => Ok(()),
        },
        demand(
            spec.start_before.as_ref().is_none_or(|moment| known(moment.0)),
            "spec.startBefore",
            "in the years 1970 to 9998, e.g. 2026-01-02T03:04:05Z",
        ),
        demand(lives, "spec.ttlSecondsAfterFinished", "0 or more, e.g. 604800 for a week"),
        retry::judge(spec.retry.as_ref())
            .map(|_| ())
            .map_err(|Refusal { field, problem }| BuildError::new(field, Problem::Retry(problem)))
            .and_then(|()| spec.recovery_of.as_deref().map_or(Ok(()), |name| subdomain("spec.recoveryOf", name))),
    ]
}

/// Checks a time-out. The object holds it as text.
pub(super) fn timeout(timeout: Duration) -> Verdict {
    let whole = timeout.subsec_nanos() == 0 && (Duration::from_secs(1)..=LONGEST_TIMEOUT).contains(&timeout);
    demand(whole, TIMEOUT, "whole seconds, from 1s to 24h, e.g. 30m")
}

fn workflow(workflow: &WorkflowRef) -> Verdict {
    let (id, version) = (&workflow.workflow_id, &workflow.version);
    some("spec.workflowRef.workflowId", id, limits::NAME, "node-disk-cleanup")?;
    some("spec.workflowRef.version", version, limits::WORKFLOW_VERSION, "1.4.0")?;
    let (image, example) = (&workflow.container_image, "registry.example/workflows/node-disk-cleanup:1.4.0");
    some("spec.workflowRef.containerImage", image, limits::IMAGE, example)?;
    demand(is_image_reference(image), "spec.workflowRef.containerImage", IMAGE)?;
    let Some(digest) = &workflow.container_digest else { return Ok(()) };
    let field = "spec.workflowRef.containerDigest";
    demand(is_digest(digest), field, "sha256: followed by 64 hexadecimal digits in lower case")?;
    match image.split_once('@') {
        Some((_, inside)) if inside != digest => Err(BuildError::new(field, Problem::TwoDigests)),
        _ => Ok(()),
    }
}

fn parameters<'a>(parameters: impl ExactSizeIterator<Item = (&'a String, &'a String)>) -> Verdict {
    let count = parameters.len();
    if count > to_usize(limits::PARAMETERS) {
        return Err(BuildError::new("spec.parameters", Problem::TooManyParameters(count)));
    }
    let mut size = 0;
    for (key, value) in parameters {
        size += key.chars().count() + value.chars().count();
        let rest = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let snake = key.starts_with(|first: char| first.is_ascii_uppercase()) && key.bytes().all(rest);
        demand(
            snake && key.len() <= to_usize(limits::PARAMETER_KEY),
            "spec.parameters",
            "a map with keys in UPPER_SNAKE_CASE (a capital first, then capitals, digits and _; at most 253), e.g. DISK_THRESHOLD",
        )?;
        let field = format!("spec.parameters.{key}");
        if key == TARGET_PARAMETER {
            return Err(BuildError::new(field, Problem::Reserved));
        }
        at_most(&field, Some(value), limits::PARAMETER_VALUE)?;
        if variable::refers_to_one(value) {
            return Err(BuildError::new(field, Problem::Variable));
        }
    }
    if size > to_usize(limits::PARAMETERS_SIZE) {
        return Err(BuildError::new("spec.parameters", Problem::LargeParameters(size)));
    }
    Ok(())
}

fn request(reference: &RemediationRequestRef) -> Verdict {
    some("spec.remediationRequestRef.name", &reference.name, limits::NAME, "rr-1")?;
    at_most("spec.remediationRequestRef.apiVersion", reference.api_version.as_deref(), limits::API_VERSION)?;
    at_most("spec.remediationRequestRef.kind", reference.kind.as_deref(), limits::KIND)?;
    at_most("spec.remediationRequestRef.namespace", reference.namespace.as_deref(), limits::NAMESPACE)?;
    at_most("spec.remediationRequestRef.uid", reference.uid.as_deref(), limits::UID)
}

// The parts of a target's kind have a length limit of their own, the parts of a name have none.
fn subdomain(field: &str, text: &str) -> Verdict {
    let part = |part: &str| {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(legal) && !part.starts_with('-') && !part.ends_with('-')
    };
    demand(text.len() <= to_usize(limits::NAME) && text.split('.').all(part), field, SUBDOMAIN)
}

fn some(field: &str, text: &str, limit: u32, example: &'static str) -> Verdict {
    if text.is_empty() {
        return Err(BuildError::new(field, Problem::Empty { example }));
    }
    at_most(field, Some(text), limit)
}

fn at_most(field: &str, text: Option<&str>, limit: u32) -> Verdict {
    let length = text.map_or(0, |text| text.chars().count());
    if length > to_usize(limit) {
        return Err(BuildError::new(field, Problem::TooLong { length, limit }));
    }
    Ok(())
}

fn demand(holds: bool, field: &str, expected: &'static str) -> Verdict {
    if holds { Ok(()) } else { Err(BuildError::new(field, Problem::Malformed { expected })) }
}

fn to_usize(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
