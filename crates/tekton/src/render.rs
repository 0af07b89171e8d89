//! Renders the `PipelineRun` of an execution (section 8).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wfe_api::labels;
use wfe_core::chain::RunNumber;
use wfe_core::name::ExecutionId;
use wfe_core::target::TargetName;
use wfe_core::{Time, duration};

use crate::labels::label_value;
use crate::moment::rfc3339;

/// The reserved parameter that every pipeline receives: the target in canonical form.
pub const TARGET_PARAMETER: &str = "TARGET_RESOURCE";

/// What an execution requests to run. It is stored until the run is created.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The execution.
    pub execution: ExecutionId,
    /// `spec.workflowRef.workflowId`.
    pub workflow_id: String,
    /// The bundle, pinned by its digest if one is given.
    pub bundle: String,
    /// The target in canonical form.
    pub target: TargetName,
    /// `spec.parameters`.
    pub parameters: Arc<Parameters>,
    /// `spec.executionConfig.timeout`.
    pub timeout: Option<Duration>,
    /// `spec.executionConfig.serviceAccountName`.
    pub service_account: Option<String>,
    /// The slot of the schedule that the execution was created for, if there is one.
    pub scheduled_for: Option<Time>,
}

/// Names and values of parameters, ordered by name. A map would reserve space for eleven entries.
pub type Parameters = [(Box<str>, Box<str>)];

impl RunRequest {
    /// Returns the same request with its time-out limited to this value.
    #[must_use]
    pub fn with_timeout_at_most(&self, most: Duration, defaults: &Defaults) -> Self {
        Self { timeout: Some(self.timeout.unwrap_or(defaults.timeout).min(most)), ..self.clone() }
    }
}

/// The default values of fields that the spec does not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The namespace of all runs.
    pub execution_namespace: String,
    /// The service account of the workflow's pods.
    pub service_account: String,
    /// The time-out of a run.
    pub timeout: Duration,
}

/// Renders the n-th run of the chain in the state pending. Durations have the form that Tekton's webhook writes.
#[must_use]
pub fn render_run(request: &RunRequest, number: RunNumber, defaults: &Defaults) -> Value {
    let target = request.target.as_str();
    let params: Vec<Value> = request
        .parameters
        .iter()
        .map(|(name, value)| json!({"name": &**name, "value": &**value}))
        .chain([json!({"name": TARGET_PARAMETER, "value": target})])
        .collect();
    json!({
        "apiVersion": format!("{}/{}", crate::GROUP, crate::VERSION),
        "kind": crate::KIND,
        "metadata": {
            "name": request.target.chain().run(number),
            "namespace": defaults.execution_namespace,
            "labels": {
                labels::LABEL_WORKFLOW_EXECUTION: label_value(&request.execution.name),
                labels::LABEL_WORKFLOW_ID: label_value(&request.workflow_id),
                labels::LABEL_TARGET: label_value(target),
                labels::LABEL_SOURCE_NAMESPACE: label_value(&request.execution.namespace),
                labels::LABEL_RUN_SEQUENCE: number.to_string(),
                labels::LABEL_MANAGED_BY: labels::MANAGED_BY,
            },
            "annotations": {
                labels::ANNOTATION_UID: request.execution.uid.to_string(),
                labels::ANNOTATION_WORKFLOW_EXECUTION: request.execution.to_string(),
                labels::ANNOTATION_WORKFLOW_ID: request.workflow_id,
                labels::ANNOTATION_TARGET: target,
                // Tekton adds the annotations of the bundle's Pipeline to a run that lacks these keys. Therefore every
                // key that is read from a run is set from the beginning.
                labels::ANNOTATION_RELEASED_AT: "",
                labels::ANNOTATION_CANCEL_REASON: "",
                labels::ANNOTATION_CANCELLED_AT: "",
                labels::ANNOTATION_CANCEL_ASKED: "",
                labels::ANNOTATION_SCHEDULED_FOR: request.scheduled_for.map(rfc3339).unwrap_or_default(),
            },
        },
        "spec": {
            "status": crate::PENDING,
            "pipelineRef": {
                "resolver": "bundles",
                "params": [
                    {"name": "bundle", "value": request.bundle},
                    {"name": "name", "value": "workflow"},
                    {"name": "kind", "value": "pipeline"},
                ],
            },
            "params": params,
            "timeouts": {"pipeline": duration::format(request.timeout.unwrap_or(defaults.timeout))},
            "taskRunTemplate": {
                "serviceAccountName": request.service_account.as_ref().unwrap_or(&defaults.service_account),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::name::Uid;
    use wfe_core::run::Stays;

    fn request() -> RunRequest {
        RunRequest {
            execution: ExecutionId { namespace: "ops".into(), name: "fix-1".into(), uid: Uid::new("u-1") },
            workflow_id: "node-disk-cleanup".into(),
            bundle: "registry.example/wf:1@sha256:aa".into(),
            target: TargetName::parse("Node/worker-node-1").unwrap(),
            parameters: Arc::new([("AGE", "7d"), ("ZONE", "b")].map(|(k, v)| (k.into(), v.into()))),
            timeout: None,
            service_account: None,
            scheduled_for: None,
        }
    }

    fn defaults() -> Defaults {
        Defaults {
            execution_namespace: "kubernaut-workflows".into(),
            service_account: "kubernaut-workflow-runner".into(),
            timeout: Duration::from_mins(30),
        }
    }

    /// Returns every key of our labels and annotations in the library, and one unknown key.
    fn keys() -> Vec<&'static str> {
        let source = include_str!("../../api/src/labels.rs");
        let keys = source.split('"').filter(|text| text.starts_with("kubernaut.ai/"));
        keys.chain(["kubernaut.ai/unknown"]).collect()
    }

    /// Tekton adds the labels and annotations of a pipeline to a run that lacks these keys
    /// (`storePipelineSpecAndMergeMeta` of 1.9 and 1.12).
    #[test]
    fn a_bundle_says_nothing_that_is_read_from_a_run() {
        let mut rendered = render_run(&request(), 3, &defaults());
        rendered["metadata"]["uid"] = json!("r-1");
        for asked in ["Cancelled", "CancelledRunFinally", "StoppedRunFinally"] {
            rendered["spec"]["status"] = json!(asked);
            let observed = |run: &Value| {
                let meta = serde_json::from_value(run["metadata"].clone()).unwrap();
                crate::observe_run(&meta, run, wfe_core::run::Order(1)).unwrap()
            };
            let before = observed(&rendered);
            assert!(keys().len() > 10);
            for key in keys() {
                for value in ["DeadlineExceeded", "2020-01-01T00:00:00Z", "node/victim", "x"] {
                    let mut merged = rendered.clone();
                    for place in ["labels", "annotations"] {
                        let known = merged["metadata"][place].as_object_mut().unwrap();
                        known.entry(key).or_insert_with(|| json!(value));
                    }
                    assert_eq!(observed(&merged), before, "{key}: {value}");
                }
            }
        }
    }

    #[test]
    fn renders_the_whole_run() {
        let expected = json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun",
            "metadata": {
                "name": "wfe-ac45b7d6911e97a5-3",
                "namespace": "kubernaut-workflows",
                "labels": {
                    "app.kubernetes.io/managed-by": "wfe-operator",
                    "kubernaut.ai/run-sequence": "3",
                    "kubernaut.ai/source-namespace": "ops",
                    "kubernaut.ai/target-resource": "node__worker-node-1",
                    "kubernaut.ai/workflow-execution": "fix-1",
                    "kubernaut.ai/workflow-id": "node-disk-cleanup",
                },
                "annotations": {
                    "kubernaut.ai/cancel-asked": "",
                    "kubernaut.ai/cancel-reason": "",
                    "kubernaut.ai/cancelled-at": "",
                    "kubernaut.ai/released-at": "",
                    "kubernaut.ai/scheduled-for": "2027-01-15T08:00:00Z",
                    "kubernaut.ai/target-resource": "node/worker-node-1",
                    "kubernaut.ai/workflow-execution": "ops/fix-1",
                    "kubernaut.ai/workflow-execution-uid": "u-1",
                    "kubernaut.ai/workflow-id": "node-disk-cleanup",
                },
            },
            "spec": {
                "status": "PipelineRunPending",
                "pipelineRef": {
                    "resolver": "bundles",
                    "params": [
                        {"name": "bundle", "value": "registry.example/wf:1@sha256:aa"},
                        {"name": "name", "value": "workflow"},
                        {"name": "kind", "value": "pipeline"},
                    ],
                },
                "params": [
                    {"name": "AGE", "value": "7d"},
                    {"name": "ZONE", "value": "b"},
                    {"name": "TARGET_RESOURCE", "value": "node/worker-node-1"},
                ],
                "timeouts": {"pipeline": "30m0s"},
                "taskRunTemplate": {"serviceAccountName": "kubernaut-workflow-runner"},
            },
        });
        let child = || RunRequest { scheduled_for: Time::from_timestamp(1_800_000_000, 0), ..request() };
        assert_eq!(render_run(&child(), 3, &defaults()), expected);
        let other = render_run(&request(), 3, &defaults());
        assert_eq!(other["metadata"]["annotations"]["kubernaut.ai/scheduled-for"], "", "it is no child's");
        let stays = |run: &Value| {
            let mut meta = run["metadata"].clone();
            meta["uid"] = json!("r-1");
            let meta = serde_json::from_value(meta).unwrap();
            crate::observe_run(&meta, run, wfe_core::run::Order(1)).unwrap().1.stays
        };
        assert_eq!((stays(&expected), stays(&other)), (Stays::WithItsExecution, Stays::ForItsRetention));
    }
}
