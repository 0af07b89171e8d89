//! The spec of a `WorkflowExecution`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{patterns, rules, status::WorkflowExecutionStatus};
use crate::limits;

/// Pattern of a time with at most nine decimals of a second: the API server accepts more decimals than programs can
/// read. The API server checks the rest of a time by the `format` of the schema.
pub(crate) const MOMENT: &str = "^[^.,]+([.,][0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$";

/// The fields that never change. `retry` never changes either and has a rule of its own.
const IMMUTABLE: [&str; 10] = [
    "remediationRequestRef",
    "workflowRef",
    "targetResource",
    "parameters",
    "confidence",
    "rationale",
    "executionConfig",
    "startBefore",
    "recoveryOf",
    "ttlSecondsAfterFinished",
];

/// Which workflow to run, and on which target. The spec is immutable, except that cancellation and clearance can be
/// added later. To change anything else, create another WorkflowExecution.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kubernaut.ai",
    version = "v1alpha1",
    kind = "WorkflowExecution",
    plural = "workflowexecutions",
    shortname = "wfe",
    category = "kubernaut",
    namespaced,
    status = "WorkflowExecutionStatus",
    derive = "PartialEq",
    doc = "Runs one workflow (a Tekton pipeline) on one target. At most one workflow at a time acts on a target. The operator decides whether the workflow runs, and runs it as a PipelineRun in the execution namespace. The status of the WorkflowExecution records the result, or why the workflow did not run.",
    selectable = ".spec.targetResource",
    selectable = ".spec.remediationRequestRef.name",
    selectable = ".status.target",
    selectable = ".status.phase",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase",
        description = "Phase of the execution"),
    printcolumn(name = "Why", type_ = "string", json_path = ".status.summary",
        description = "What the execution does or waits for, why it was skipped, or why it failed"),
    printcolumn(name = "Blocks", type_ = "string", json_path = ".status.conditions[?(@.type==\"Blocked\")].status",
        description = "True if later executions on the target are skipped until a person clears it"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetResource",
        description = "The target of the workflow"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp",
        description = "Time since the object was created"),
    printcolumn(name = "Workflow", type_ = "string", json_path = ".spec.workflowRef.workflowId", priority = 1,
        description = "The workflow"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason",
        priority = 1, description = "The reason of the condition Succeeded"),
    printcolumn(name = "Duration", type_ = "string", json_path = ".status.duration", priority = 1,
        description = "How long the execution ran"),
    printcolumn(name = "PipelineRun", type_ = "string", json_path = ".status.pipelineRunRef.name", priority = 1,
        description = "The Tekton PipelineRun, in the execution namespace"),
    printcolumn(name = "Next-Allowed", type_ = "string", json_path = ".status.nextAllowedExecution", priority = 1,
        description = "When the next execution on the target may run"),
    validation = rules::status_stays(),
    validation = rules::phase_begins()
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::immutable("remediationRequestRef"),
    validation = rules::immutable("workflowRef"),
    validation = rules::immutable("targetResource"),
    validation = rules::immutable("parameters"),
    validation = rules::immutable("confidence"),
    validation = rules::immutable("rationale"),
    validation = rules::immutable("executionConfig"),
    validation = rules::immutable("startBefore"),
    validation = rules::immutable("recoveryOf"),
    validation = rules::immutable("ttlSecondsAfterFinished"),
    validation = rules::retry_is_immutable(&IMMUTABLE, &["cancellation", "clearance"]),
    validation = rules::comes_later("cancellation", "leave it out, or do not create the object"),
    validation = rules::stays("cancellation", "create another WorkflowExecution"),
    validation = rules::comes_later("clearance", "set it on an execution that has Failed"),
    validation = rules::stays("clearance", "what fails later takes a clearance of its own"),
)]
pub struct WorkflowExecutionSpec {
    /// The object that asked for this execution, e.g. a RemediationRequest. It is kept for the record and does not
    /// affect decisions, with one exception: the kind WorkflowSchedule makes this execution the run of that schedule.
    /// Only the operator may set that kind. Absent: no requester is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation_request_ref: Option<RemediationRequestRef>,
    /// Which workflow to run.
    pub workflow_ref: WorkflowRef,
    /// The object that the workflow acts on: "namespace/kind/name", e.g. "payment/deployment/payment-api", or for
    /// cluster-scoped objects "kind/name", e.g. "node/worker-node-1". At most one workflow at a time runs on a target.
    /// The case of the kind, its plural and API group, and short names of built-in kinds make no difference:
    /// "payment/Deployments.apps/payment-api" is the same target. A built-in kind must have a namespace if it is
    /// namespaced, and must have none if it is cluster-scoped. status.target shows the canonical form.
    #[schemars(length(max = limits::TARGET))]
    #[x_kube(
        validation = patterns::target_parts().rule(),
        validation = patterns::target_namespace().rule(),
        validation = patterns::target_kind().rule(),
        validation = patterns::target_kind_length().rule(),
        validation = patterns::target_name().rule(),
        validation = patterns::target_takes_a_namespace().rule(),
        validation = patterns::target_takes_no_namespace().rule(),
        validation = patterns::target_namespace_is_first().rule(),
    )]
    pub target_resource: String,
    /// Parameters of the pipeline, e.g. {"DISK_THRESHOLD": "85"}. There are at most 64. Keys are UPPER_SNAKE_CASE. Each
    /// value has at most 8192 characters; keys and values together have at most 65536. A value must not contain a
    /// variable of Tekton, such as $(context.pipelineRun.name). Do not put secrets here: everybody who may read this
    /// object can read them. The operator adds TARGET_RESOURCE, the target in canonical form; you may not set that key.
    /// Absent: the pipeline's own defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "parameters_schema")]
    #[x_kube(
        validation = ("self.all(key, key.matches('^[A-Z][A-Z0-9_]{0,252}$'))",
            "spec.parameters: keys must be UPPER_SNAKE_CASE (a capital first, then capitals, digits and _; at most 253), e.g. DISK_THRESHOLD"),
        validation = ("!('TARGET_RESOURCE' in self)",
            "spec.parameters: TARGET_RESOURCE is reserved, the operator passes the target under this name"),
        validation = rules::parameters_fit(),
        validation = rules::no_variables(),
    )]
    pub parameters: BTreeMap<String, String>,
    /// Confidence in the choice of the workflow, from 0 to 1, e.g. 0.92. It is kept for the record and does not affect
    /// decisions. Absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// Why this workflow was chosen, in words, at most 32768 characters. It is kept for the record and does not affect
    /// decisions. Absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::RATIONALE))]
    pub rationale: Option<String>,
    /// How to run the workflow. Absent: the operator's configuration applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_config: Option<ExecutionConfig>,
    /// Latest time at which the operator may decide to run the execution, e.g. "2026-01-02T03:04:05Z". After this time
    /// the execution is Failed with DeadlineExceeded, which does not count as a failure of the target. Set it if a
    /// backup or GitOps tool might create this object again long after the request. Absent: no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = MOMENT))]
    #[x_kube(validation = ("self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('9999-01-01T00:00:00Z')",
        "spec.startBefore: must lie in the years 1970 to 9998, e.g. 2026-01-02T03:04:05Z"))]
    pub start_before: Option<Time>,
    /// Name of a WorkflowExecution in the same namespace that failed half way (wasExecutionFailure is true), e.g.
    /// "payment-restart". This execution becomes its recovery. The workflow and its bundle must both differ from those
    /// that failed. Bundles are compared by digest, or by repository if one of the two has no digest. Creating a
    /// recovery requires permission to create workflowexecutions/recovery. Absent: this execution is no recovery. If an
    /// earlier execution failed half way on the target, this execution is Skipped with PreviousExecutionFailed until a
    /// person clears the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    #[x_kube(validation = ("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "spec.recoveryOf: must be the name of a WorkflowExecution in the same namespace (a-z, 0-9, - and .), e.g. payment-restart"))]
    pub recovery_of: Option<String>,
    /// Seconds from the end of the execution to the removal of this object, as on a Job. For example, 604800 is a week,
    /// and 0 removes it at once. The object is kept longer while it blocks its target, counts as one of its failures,
    /// or delays other executions. It is also kept while it is the newest on its target or the newest that ran there,
    /// and while an older failure that it outweighs is still kept. Absent: the operator's configuration applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Runs the workflow again after a failed attempt. The execution holds its target until the last attempt has ended.
    /// The value is true (all defaults), a whole number of attempts from 1 to 20, or an object with the fields below,
    /// e.g. {maxAttempts: 5, initialDelay: 10s}. Each field has its own default. An attempt is repeated only if nothing
    /// of it ran, unless retryExecutionFailures is true. The field executionConfig.timeout limits each attempt;
    /// maxDuration limits all attempts and waits together. The field status.attempts and the condition Retrying show
    /// the progress. Absent or false: one attempt.
    // Plain JSON: an invalid policy must not make the rest of the spec unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "retry_schema")]
    pub retry: Option<Value>,
    /// Stops the execution and keeps its record. Set it once, before phase is Completed, Failed or Skipped. The
    /// PipelineRun is cancelled, and the execution ends as Failed; the message says who cancelled it and why. Setting
    /// it requires permission to update workflowexecutions/cancellation. It is refused when the object is created.
    /// Absent: not cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<Cancellation>,
    /// Lifts the block that this failed execution left on its target. Set it once, while the phase is Failed, after you
    /// have made sure that the target is in order. This execution and all earlier ones on the target then no longer
    /// block it (PreviousExecutionFailed), exhaust it (ExhaustedRetries), or delay the next execution (backoff). A
    /// cooldown after a success stays. If nothing was blocked or exhausted, it changes nothing, and the condition
    /// ClearanceIneffective says so. Setting it requires permission to update workflowexecutions/clearance. It is
    /// refused when the object is created. Absent: not cleared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clearance: Option<Clearance>,
}

/// The object that asked for an execution.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationRequestRef {
    /// API version of the object that asked for the execution, e.g. "kubernaut.ai/v1alpha1".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::API_VERSION))]
    pub api_version: Option<String>,
    /// Kind of the object that asked for the execution, e.g. "RemediationRequest".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::KIND))]
    pub kind: Option<String>,
    /// Name of the object that asked for the execution.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Namespace of the object that asked for the execution. Absent: the namespace of this WorkflowExecution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAMESPACE))]
    pub namespace: Option<String>,
    /// Uid of the object that asked for the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::UID))]
    pub uid: Option<String>,
}

/// Which workflow to run, and which bundle holds it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRef {
    /// Key of the workflow in your catalogue, e.g. "node-disk-cleanup". The cooldown after a success counts per target
    /// and workflowId.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub workflow_id: String,
    /// Version of the workflow, e.g. "1.4.0". It is kept for the record: containerImage determines what runs.
    #[schemars(length(min = 1, max = limits::WORKFLOW_VERSION))]
    pub version: String,
    /// Tekton bundle (an OCI image) with a Pipeline named "workflow", e.g.
    /// "registry.example/workflows/node-disk-cleanup:1.4.0".
    #[schemars(length(min = 1, max = limits::IMAGE))]
    #[x_kube(validation = patterns::image().rule(), validation = patterns::image_length().rule())]
    pub container_image: String,
    /// Digest of the bundle: "sha256:" and 64 hexadecimal digits in lower case. If containerImage contains a different
    /// digest, the execution is Failed with ConfigurationError. Absent: containerImage alone determines the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DIGEST))]
    #[x_kube(validation = ("self.matches('^sha256:[a-f0-9]{64}$')",
        "spec.workflowRef.containerDigest: must be sha256: followed by 64 hexadecimal digits in lower case"))]
    pub container_digest: Option<String>,
}

/// How to run a workflow.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionConfig {
    /// Time limit of each run, as a Go duration from 1s to 24h, e.g. "90s", "30m" or "1h30m". After this time the run
    /// is cancelled, and the execution is Failed with DeadlineExceeded. Absent: the operator's default-timeout (30m
    /// unless configured).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('1s') && duration(self) <= duration('24h')",
        "spec.executionConfig.timeout: must be a Go duration from 1s to 24h, e.g. 30m or 1h30m"))]
    pub timeout: Option<String>,
    /// Service account of the workflow's pods, in the execution namespace. The workflow has the permissions of this
    /// account. Absent: the operator's service-account (kubernaut-workflow-runner unless configured).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    #[x_kube(validation = ("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "spec.executionConfig.serviceAccountName: must be a DNS subdomain (a-z, 0-9, - and .), e.g. kubernaut-workflow-runner"))]
    pub service_account_name: Option<String>,
}

/// The person who cancels an execution, and the reason.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancellation {
    /// Reason of the cancellation in words, e.g. "wrong cluster". At most 1024 characters.
    #[schemars(length(min = 1, max = limits::CANCELLATION_REASON))]
    pub reason: String,
    /// Your own user name, as "kubectl auth whoami" shows it. The API server refuses any other name.
    #[schemars(length(min = 1, max = limits::USER))]
    pub requested_by: String,
}

/// The person who clears a target, and the reason.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Clearance {
    /// Reason of the clearance in words, e.g. "disk replaced, data checked". At most 1024 characters.
    #[schemars(length(min = 1, max = limits::CLEARANCE_REASON))]
    pub reason: String,
    /// Your own user name, as "kubectl auth whoami" shows it. The API server refuses any other name.
    #[schemars(length(min = 1, max = limits::USER))]
    pub cleared_by: String,
}

/// Limits the number and size of the parameters. The rules on their keys are at the field.
fn parameters_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": limits::PARAMETERS,
        "additionalProperties": {"type": "string", "maxLength": limits::PARAMETER_VALUE},
    })
}

/// Leaves the field without a type, because its value may be a flag, a number or an object. The schema limits the
/// number and the fields of the object. The schema checks each value by the limits of its own kind. The admission
/// policy on retries refuses everything else.
fn retry_schema(_: &mut SchemaGenerator) -> Schema {
    let duration =
        |description: &str| json!({"description": description, "type": "string", "maxLength": limits::DURATION});
    let flag = |description: &str| json!({"description": description, "type": "boolean"});
    let condition = |description: &str| json!({"description": description, "type": "string", "minLength": 1, "maxLength": limits::CONDITION});
    json_schema!({
        "x-kubernetes-preserve-unknown-fields": true,
        "minimum": 1, "maximum": limits::ATTEMPTS, "multipleOf": 1,
        "properties": {
            "maxAttempts": {
                "description": "The largest number of attempts, from 1 to 20, including the first. Absent: 3.",
                "type": "integer", "format": "int32", "minimum": 1, "maximum": limits::ATTEMPTS,
            },
            "initialDelay": duration(
                "The wait before the second attempt, in whole seconds from 0s to 1h, e.g. \"5s\" or \"1m30s\". The wait \
                 begins when the end of the first attempt is recorded. Absent: 1s.",
            ),
            "backoffMultiplier": {
                "description": "The factor from each wait to the next, from 1 to 10, to three decimals, e.g. 1.5. Absent: 2.",
                "type": "number", "minimum": 1, "maximum": 10,
            },
            "maxDelay": duration(
                "The longest wait, in whole seconds from 1s to 1h, not below initialDelay, e.g. \"5m\". Absent: 60s, or \
                 initialDelay if that is longer.",
            ),
            "jitter": flag(
                "Whether each wait is lengthened by up to a half of it. The share differs between executions: many \
                 executions then do not begin at once. The wait is never above maxDelay. Absent: false.",
            ),
            "retryWhen": condition(
                "CEL condition, evaluated after a failed attempt: the attempt is repeated only if the condition is true, \
                 e.g. \"reason == 'ImagePullBackOff' || statusCode >= 500\". It may use attempt, maxAttempts, reason, \
                 error, success, exitCode, wasExecutionFailure, nodeId, executionId, result, statusCode and data. At \
                 most 512 characters. If the condition cannot be evaluated, there is no further attempt. Absent: reason \
                 != 'ConfigurationError'.",
            ),
            "stopWhen": condition(
                "CEL condition like retryWhen, evaluated before it: if stopWhen is true, there is no further attempt, \
                 e.g. \"exitCode == 3\". At most 512 characters. Absent: none.",
            ),
            "retryExecutionFailures": flag(
                "Whether an attempt is repeated even if something of the workflow ran or may have run. Set it only if \
                 every step may run twice. Absent: false.",
            ),
            "maxDuration": duration(
                "Time limit of all attempts and waits together, in whole seconds from 1s to 24h, e.g. \"2h\", counted from \
                 startTime. After this time no attempt begins, and a running attempt is cancelled. The waits alone must \
                 take less time. Absent: 24h.",
            ),
        },
    })
}
