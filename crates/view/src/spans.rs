//! The trace of an ended execution, from its own object alone.
//!
//! Every id follows from the uid of the execution, so each process makes the same tree, even after a crash. A span has
//! names, phases and reasons, and no message: a message can quote the value of a parameter.

use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wfe_api::{AttemptStatus, ConditionStatus, FailureReason, Phase, WorkflowExecutionStatus, conditions};
use wfe_core::Time;
use wfe_tekton::moment;

/// The name of the root span.
const EXECUTION: &str = "execution";

/// A part of an execution, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The id of the span.
    pub id: [u8; 8],
    /// The id of the span that contains this one; `None` for the root.
    pub parent: Option<[u8; 8]>,
    /// The name of the part, such as `attempt 2`.
    pub name: String,
    /// When the part began.
    pub start: Time,
    /// When the part ended; never before `start`, even if two clocks disagree.
    pub end: Time,
    /// Names, phases and reasons.
    pub attributes: Vec<(&'static str, String)>,
    /// Why the part failed, if it failed.
    pub failed: Option<FailureReason>,
}

/// Returns the id of the trace of an execution: the 128 bits of its uid.
#[must_use]
pub fn trace_id(uid: &str) -> [u8; 16] {
    let digits: String = uid.chars().filter(|it| *it != '-').collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(bits) if digits.len() == 32 && bits != 0 => bits.to_be_bytes(),
        _ => first_bytes(uid, ""), // no API server makes such a uid
    }
}

/// Returns the id of the span of an attempt. This span is the parent of Tekton's spans of the attempt's run.
#[must_use]
pub fn attempt_id(uid: &str, attempt: u32) -> [u8; 8] {
    first_bytes(uid, &attempt_name(attempt))
}

fn attempt_name(attempt: impl std::fmt::Display) -> String {
    format!("attempt {attempt}")
}

/// Returns the first bytes of a hash of two texts.
fn first_bytes<const N: usize>(uid: &str, name: &str) -> [u8; N] {
    let hash = Sha256::new().chain_update(uid).chain_update("/").chain_update(name).finalize();
    std::array::from_fn(|place| hash[place])
}

/// Returns the spans of an execution that is Completed or Failed, the root first. Other executions have no spans.
#[must_use]
pub fn spans_of(execution: &DynamicObject) -> Vec<Span> {
    EndedExecution::read(execution).map(|execution| execution.spans()).unwrap_or_default()
}

/// Returns the span of the drain of an execution: the time after its end in which its target was not free.
#[must_use]
pub fn drain_of(execution: &DynamicObject) -> Option<Span> {
    let execution = EndedExecution::read(execution)?;
    let lock = execution.status.conditions.iter().find(|it| it.type_ == conditions::TARGET_LOCKED)?;
    let (end, freed_at) = (execution.end, moment(&lock.last_transition_time));
    let has_drained = lock.status == ConditionStatus::False.as_str() && freed_at > end;
    has_drained.then(|| execution.child("drain", end, freed_at))
}

/// An execution that is Completed or Failed.
struct EndedExecution<'a> {
    uid: &'a str,
    namespace: &'a str,
    name: &'a str,
    workflow_id: &'a str,
    created: Time,
    end: Time,
    status: WorkflowExecutionStatus,
}

impl<'a> EndedExecution<'a> {
    fn read(execution: &'a DynamicObject) -> Option<Self> {
        let meta = &execution.metadata;
        let status = WorkflowExecutionStatus::deserialize(execution.data.get("status")?).ok()?;
        let created = moment(meta.creation_timestamp.as_ref()?);
        let is_traced = matches!(status.phase, Some(Phase::Completed | Phase::Failed));
        let end = status.completion_time.as_ref().filter(|_| is_traced).map(moment)?;
        Some(Self {
            uid: meta.uid.as_deref()?,
            namespace: meta.namespace.as_deref().unwrap_or_default(),
            name: meta.name.as_deref()?,
            workflow_id: execution.data.pointer("/spec/workflowRef/workflowId").and_then(Value::as_str)?,
            created,
            end: end.max(created),
            status,
        })
    }

    fn spans(&self) -> Vec<Span> {
        let started_at = self.status.start_time.as_ref().map(moment);
        let mut spans = vec![self.root(), self.child("wait", self.created, started_at.unwrap_or(self.end))];
        let mut ended_at = started_at;
        for attempt in self.attempts() {
            let number = attempt.attempt;
            let began = attempt.start_time.as_ref().map(moment);
            let ended = attempt.completion_time.as_ref().map_or(self.end, moment);
            if let Some(before) = ended_at.filter(|_| number > 1) {
                spans.push(self.child(&format!("wait {number}"), before, began.unwrap_or(ended)));
            }
            // An attempt without a begin and a reason did not begin: the execution only waited for it.
            if began.is_some() || attempt.reason.is_some() {
                let mut span = self.child(&attempt_name(number), began.unwrap_or(ended), ended);
                span.attributes.extend(attempt.pipeline_run.map(|run| ("wfe.pipelinerun", run)));
                span.attributes.extend(attempt.reason.map(|reason| ("wfe.reason", reason.to_string())));
                span.failed = attempt.reason;
                spans.push(span);
            }
            ended_at = Some(ended);
        }
        spans
    }

    fn root(&self) -> Span {
        let reason = self.status.failure_details.as_ref().map(|failure| failure.reason);
        let text = |name: &'static str, value: &str| (name, value.to_owned());
        let mut attributes = vec![
            text("wfe.namespace", self.namespace),
            text("wfe.name", self.name),
            text("wfe.uid", self.uid),
            text("wfe.workflow", self.workflow_id),
        ];
        attributes.extend(self.status.target.as_deref().map(|target| text("wfe.target", target)));
        attributes.extend(self.status.phase.map(|phase| text("wfe.phase", phase.as_str())));
        attributes.extend(reason.map(|reason| ("wfe.reason", reason.to_string())));
        Span { parent: None, attributes, failed: reason, ..self.child(EXECUTION, self.created, self.end) }
    }

    fn child(&self, name: &str, start: Time, end: Time) -> Span {
        Span {
            id: first_bytes(self.uid, name),
            parent: Some(first_bytes(self.uid, EXECUTION)),
            name: name.to_owned(),
            start,
            end: end.max(start),
            attributes: Vec::new(),
            failed: None,
        }
    }

    /// Returns the attempts. An execution without a retry policy has one attempt if it got its turn.
    fn attempts(&self) -> Vec<AttemptStatus> {
        if !self.status.attempts.is_empty() {
            return self.status.attempts.clone();
        }
        let only = self.status.start_time.clone().map(|start_time| AttemptStatus {
            attempt: 1,
            pipeline_run: self.status.pipeline_run_ref.as_ref().map(|run| run.name.clone()),
            start_time: Some(start_time),
            reason: self.status.failure_details.as_ref().map(|failure| failure.reason),
            ..AttemptStatus::default()
        });
        only.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const UID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    /// An execution that was created at 10:00:00, with a status.
    fn execution(status: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
            "metadata": {"name": "fix", "namespace": "ops", "uid": UID, "creationTimestamp": "2026-11-28T10:00:00Z"},
            "spec": {
                "workflowRef": {"workflowId": "cleanup", "version": "1", "containerImage": "r/c:1"},
                "targetResource": "node/n", "parameters": {"TOKEN": "s3cret"},
            },
            "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn at(second: u32) -> String {
        format!("2026-11-28T10:{:02}:{:02}Z", second / 60, second % 60)
    }

    fn failure(reason: &str) -> Value {
        json!({
            "failedTaskIndex": 0, "failedTaskName": "", "failedStepName": "", "reason": reason, "message": "s3cret",
            "failedAt": at(30), "executionTimeBeforeFailure": "1s", "naturalLanguageSummary": "s3cret",
            "wasExecutionFailure": true, "requiresManualReview": true,
        })
    }

    /// A line for each span: its name, its seconds, and its own attributes.
    fn lines(spans: &[Span]) -> Vec<String> {
        let zero = wfe_tekton::parse_moment("2026-11-28T10:00:00Z").unwrap();
        let line = |span: &Span| {
            let seconds = |time: Time| (time - zero).num_seconds();
            let own = span.attributes.iter().filter(|_| span.parent.is_some());
            let own = own.map(|(key, value)| format!(" {}={value}", key.trim_start_matches("wfe.")));
            let own = own.collect::<Vec<_>>().concat();
            let failed = span.failed.map(|reason| format!(" failed: {reason}")).unwrap_or_default();
            format!("{} {}..{}{own}{failed}", span.name, seconds(span.start), seconds(span.end))
        };
        spans.iter().map(line).collect()
    }

    #[test]
    fn the_spans_follow_from_the_status() {
        let run = json!({"name": "run-1", "uid": "r", "namespace": "runs"});
        let attempt = |number: u32, began: Option<u32>, ended: Option<u32>, reason: Option<&str>| {
            let mut it = json!({"attempt": number});
            if let Some(began) = began {
                it["startTime"] = json!(at(began));
                it["pipelineRun"] = json!(format!("run-{number}"));
            }
            if let Some(ended) = ended {
                it["completionTime"] = json!(at(ended));
                it["started"] = json!("False");
            }
            if let Some(reason) = reason {
                it["reason"] = json!(reason);
                it["message"] = json!("s3cret");
            }
            it
        };
        for (case, status, expected) in [
            (
                "a success",
                json!({
                    "phase": "Completed", "startTime": at(12), "completionTime": at(30), "pipelineRunRef": run,
                }),
                vec!["execution 0..30", "wait 0..12", "attempt 1 12..30 pipelinerun=run-1"],
            ),
            (
                "a failure half way",
                json!({
                    "phase": "Failed", "startTime": at(1), "completionTime": at(30), "pipelineRunRef": run,
                    "failureDetails": failure("Unknown"),
                }),
                vec![
                    "execution 0..30 failed: Unknown",
                    "wait 0..1",
                    "attempt 1 1..30 pipelinerun=run-1 reason=Unknown failed: Unknown",
                ],
            ),
            (
                "a failure without a turn",
                json!({"phase": "Failed", "completionTime": at(5), "failureDetails": failure("ConfigurationError")}),
                vec!["execution 0..5 failed: ConfigurationError", "wait 0..5"],
            ),
            (
                "the second of two attempts succeeds",
                json!({
                    "phase": "Completed", "startTime": at(2), "completionTime": at(40), "pipelineRunRef": run,
                    "attempts": [
                        attempt(1, Some(2), Some(10), Some("ImagePullBackOff")), attempt(2, Some(20), Some(39), None),
                    ],
                }),
                vec![
                    "execution 0..40",
                    "wait 0..2",
                    "attempt 1 2..10 pipelinerun=run-1 reason=ImagePullBackOff failed: ImagePullBackOff",
                    "wait 2 10..20",
                    "attempt 2 20..39 pipelinerun=run-2",
                ],
            ),
            (
                "an attempt is refused, and the next is only waited for",
                json!({
                    "phase": "Failed", "startTime": at(2), "completionTime": at(50), "pipelineRunRef": run,
                    "failureDetails": failure("Forbidden"),
                    "attempts": [
                        attempt(1, Some(2), Some(10), Some("Unknown")), attempt(2, None, Some(20), Some("Forbidden")),
                        attempt(3, None, None, None),
                    ],
                }),
                vec![
                    "execution 0..50 failed: Forbidden",
                    "wait 0..2",
                    "attempt 1 2..10 pipelinerun=run-1 reason=Unknown failed: Unknown",
                    "wait 2 10..20",
                    "attempt 2 20..20 reason=Forbidden failed: Forbidden",
                    "wait 3 20..50",
                ],
            ),
            ("it runs", json!({"phase": "Running", "startTime": at(1)}), vec![]),
            (
                "a skip is no execution",
                json!({
                    "phase": "Skipped", "completionTime": at(1),
                    "skipDetails": {"reason": "ResourceBusy", "message": "m", "skippedAt": at(1)},
                }),
                vec![],
            ),
            ("another version wrote it", json!({"phase": "Odd", "completionTime": 7}), vec![]),
        ] {
            let object = execution(&status);
            let spans = spans_of(&object);
            assert_eq!(lines(&spans), expected, "{case}");
            assert!(!format!("{spans:?}").contains("s3cret"), "{case}: {spans:?}");
        }
    }

    #[test]
    fn the_root_has_the_names_and_every_other_span_is_part_of_it() {
        let status = json!({
            "phase": "Completed", "target": "node/n", "startTime": at(1), "completionTime": at(9),
        });
        let spans = spans_of(&execution(&status));
        let root: Vec<String> = spans[0].attributes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = [
            "wfe.namespace=ops",
            "wfe.name=fix",
            "wfe.uid=0f8fad5b-d9cb-469f-a165-70867728950e",
            "wfe.workflow=cleanup",
            "wfe.target=node/n",
            "wfe.phase=Completed",
        ];
        assert_eq!(root, expected);
        assert_eq!(spans[0].parent, None);
        assert!(spans[1..].iter().all(|span| span.parent == Some(spans[0].id)));
        assert_eq!(spans[2].id, attempt_id(UID, 1), "Tekton names it before it exists");
    }

    #[test]
    fn the_ids_follow_from_the_uid() {
        assert_eq!(format!("{:032x}", u128::from_be_bytes(trace_id(UID))), UID.replace('-', ""));
        assert_eq!(format!("{:016x}", u64::from_be_bytes(attempt_id(UID, 1))), "f76f2a91144dd622");
        for odd in ["", "no uid", "0", "00000000-0000-0000-0000-000000000000"] {
            assert_ne!(trace_id(odd), [0; 16], "{odd}");
        }
    }

    #[test]
    fn the_drain_ends_when_the_target_is_free() {
        let with = |status: &str, second: u32| {
            execution(&json!({
                "phase": "Completed", "startTime": at(1), "completionTime": at(9),
                "conditions": [{
                    "type": "TargetLocked", "status": status, "reason": "Free", "message": "",
                    "lastTransitionTime": at(second),
                }],
            }))
        };
        let drain = |object: &DynamicObject| lines(&drain_of(object).into_iter().collect::<Vec<_>>());
        assert_eq!(drain(&with("False", 20)), ["drain 9..20"]);
        assert_eq!(drain(&with("False", 9)), [""; 0], "nothing was left");
        assert_eq!(drain(&with("True", 20)), [""; 0], "it drains");
    }
}
