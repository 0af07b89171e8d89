//! What a `WorkflowExecution` asks for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{patterns, rules, status::WorkflowExecutionStatus};
use crate::limits;

/// A time down to nanoseconds. The API server takes more digits than programs read; the rest it checks by the format.
pub(crate) const MOMENT: &str = "^[^.,]+([.,][0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$";

/// The fields that never change, but for `retry`, which has a rule of its own.
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

/// What to run, and on which target. Immutable once created, but for cancellation and clearance, which are added later:
/// create another WorkflowExecution instead.
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
    doc = "Runs one workflow (a Tekton pipeline) on one target, or says why it does not: at most one workflow at a time acts on a target. The operator decides, runs it as a PipelineRun in the execution namespace, and records in status what became of it.",
    selectable = ".spec.targetResource",
    selectable = ".spec.remediationRequestRef.name",
    selectable = ".status.target",
    selectable = ".status.phase",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase",
        description = "Where the execution stands"),
    printcolumn(name = "Workflow", type_ = "string", json_path = ".spec.workflowRef.workflowId",
        description = "What to run"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetResource",
        description = "What to run it on"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason",
        description = "Why it was skipped, why it failed, or what it waits for"),
    printcolumn(name = "Duration", type_ = "string", json_path = ".status.duration",
        description = "How long it ran"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp",
        description = "Time since the object was created"),
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
    /// The object that asked for this execution, e.g. a RemediationRequest. Kept for the record; nothing is decided by
    /// it, except that the kind WorkflowSchedule, which only the operator may set, makes this execution the run of that
    /// schedule. Absent: nobody in particular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation_request_ref: Option<RemediationRequestRef>,
    /// Which workflow to run.
    pub workflow_ref: WorkflowRef,
    /// The object that the workflow acts on: "namespace/kind/name", e.g. "payment/deployment/payment-api", or for
    /// cluster-scoped objects "kind/name", e.g. "node/worker-node-1". At most one workflow at a time runs on a target.
    /// Case, plural, short names of built-in kinds and the API group make no difference:
    /// "payment/Deployments.apps/payment-api" is the same target. A built-in kind takes a namespace exactly where its
    /// objects have one. status.target shows the canonical form.
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
    /// Parameters of the pipeline, e.g. {"DISK_THRESHOLD": "85"}: at most 64; keys in UPPER_SNAKE_CASE; values at most
    /// 8192 characters; keys and values together at most 65536 characters. A value must not refer to a variable of
    /// Tekton, such as $(context.pipelineRun.name). Everybody who may read this object reads them, so they must not
    /// hold secrets. TARGET_RESOURCE is always passed as well, with the target in canonical form, and may not be among
    /// them. Absent: the pipeline's own defaults.
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
    /// How sure whoever chose the workflow was, from 0 to 1, e.g. 0.92. Kept for the record, nothing is decided by it.
    /// Absent: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// Why this workflow was chosen, in words, at most 32768 characters. Kept for the record, nothing is decided by it.
    /// Absent: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::RATIONALE))]
    pub rationale: Option<String>,
    /// How to run it. Absent: as the operator is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_config: Option<ExecutionConfig>,
    /// The last moment at which it may begin, e.g. "2026-01-02T03:04:05Z". Decided later than this, it does not run:
    /// Failed, DeadlineExceeded, and it does not count as a failure of its target. Set it where a backup or a GitOps
    /// tool could make this object again long after it was asked for. Absent: whenever it is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = MOMENT))]
    #[x_kube(validation = ("self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('9999-01-01T00:00:00Z')",
        "spec.startBefore: must lie in the years 1970 to 9998, e.g. 2026-01-02T03:04:05Z"))]
    pub start_before: Option<Time>,
    /// Name of a WorkflowExecution in the same namespace that failed half way, e.g. "payment-restart": this one is to
    /// make up for it, with another workflow from another bundle (by digest, or by repository where one is not pinned).
    /// Absent: it makes up for none, and is Skipped (PreviousExecutionFailed) on a target that one has left half way,
    /// until somebody clears that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    #[x_kube(validation = ("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "spec.recoveryOf: must be the name of a WorkflowExecution in the same namespace (a-z, 0-9, - and .), e.g. payment-restart"))]
    pub recovery_of: Option<String>,
    /// How many seconds after its end this object is removed, as on a Job, e.g. 604800 for a week; 0: at once. It stays
    /// for longer while something rests on it: while it blocks its target, counts as one of its failures, or makes
    /// others wait, while it is the newest of its target or the newest that ran, and while something older stays that
    /// it has mended. Absent: as the operator is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Runs the workflow again after an attempt that failed, inside this execution, which keeps its target until it
    /// ends: true (all defaults), a whole number of attempts from 1 to 20, or an object with the fields below, each
    /// with a default of its own, e.g. {maxAttempts: 5, initialDelay: 10s}. Only an attempt of which nothing ran is
    /// repeated, unless retryExecutionFailures is true. executionConfig.timeout limits each attempt, maxDuration all of
    /// them together. status.attempts and the condition Retrying tell how it goes. Absent or false: one attempt.
    // Plain JSON: a value that is no policy must not make the rest of the spec unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "retry_schema")]
    pub retry: Option<Value>,
    /// Stops the execution without deleting its record: set it later, once, while the phase is not final. The
    /// PipelineRun is cancelled, and the execution ends as Failed with who and why in the message. Whoever sets it
    /// needs the right to update workflowexecutions/cancellation. Refused when the object is created. Absent: nobody
    /// stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<Cancellation>,
    /// Lets the target go on after this execution has failed: set it later, once, while the phase is Failed, when you
    /// have seen to it that the target is in order. This execution and all before it on the target then neither block
    /// it (PreviousExecutionFailed), nor exhaust it (ExhaustedRetries), nor make the next one wait (backoff); a
    /// cooldown after a success stays. Where nothing is blocked or exhausted (any more), it changes nothing, and the
    /// condition ClearanceIneffective says so. Whoever sets it needs the right to update workflowexecutions/clearance.
    /// Refused when the object is created. Absent: nobody has cleared it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clearance: Option<Clearance>,
}

/// The object that asked for an execution.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationRequestRef {
    /// API version of the object, e.g. "kubernaut.ai/v1alpha1".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::API_VERSION))]
    pub api_version: Option<String>,
    /// Kind of the object, e.g. "RemediationRequest".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::KIND))]
    pub kind: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Namespace of the object. Absent: the one of this WorkflowExecution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAMESPACE))]
    pub namespace: Option<String>,
    /// Uid of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::UID))]
    pub uid: Option<String>,
}

/// Which workflow to run, and where it is stored.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRef {
    /// What to run: the key of the workflow in your catalogue, e.g. "node-disk-cleanup". Cooldown after a success
    /// counts per target and workflowId.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub workflow_id: String,
    /// Version of the workflow, e.g. "1.4.0". Kept for the record: what runs is containerImage.
    #[schemars(length(min = 1, max = limits::WORKFLOW_VERSION))]
    pub version: String,
    /// Tekton bundle (an OCI image) that holds a Pipeline named "workflow", e.g.
    /// "registry.example/workflows/node-disk-cleanup:1.4.0".
    #[schemars(length(min = 1, max = limits::IMAGE))]
    #[x_kube(validation = patterns::image().rule(), validation = patterns::image_length().rule())]
    pub container_image: String,
    /// Digest that pins the bundle: "sha256:" and 64 hexadecimal digits in lower case. A different digest inside
    /// containerImage ends the execution as Failed, ConfigurationError. Absent: whatever containerImage points to.
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
    /// How long the run may take, as a Go duration from 1s to 24h, e.g. "90s", "30m" or "1h30m". Then it is cancelled
    /// and the execution is Failed, DeadlineExceeded. Absent: the operator's default-timeout (30m unless configured).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('1s') && duration(self) <= duration('24h')",
        "spec.executionConfig.timeout: must be a Go duration from 1s to 24h, e.g. 30m or 1h30m"))]
    pub timeout: Option<String>,
    /// Service account, in the execution namespace, that the workflow's pods run under: its rights are what the
    /// workflow may do. Absent: the operator's service-account (kubernaut-workflow-runner unless configured).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    #[x_kube(validation = ("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "spec.executionConfig.serviceAccountName: must be a DNS subdomain (a-z, 0-9, - and .), e.g. kubernaut-workflow-runner"))]
    pub service_account_name: Option<String>,
}

/// Who stops an execution, and why.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancellation {
    /// Why, in words, e.g. "wrong cluster". At most 1024 characters.
    #[schemars(length(min = 1, max = limits::CANCELLATION_REASON))]
    pub reason: String,
    /// Your own user name, as "kubectl auth whoami" shows it; nobody can cancel in the name of another.
    #[schemars(length(min = 1, max = limits::USER))]
    pub requested_by: String,
}

/// Who clears a target, and why.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Clearance {
    /// Why it may go on, in words, e.g. "disk replaced, data checked". At most 1024 characters.
    #[schemars(length(min = 1, max = limits::CLEARANCE_REASON))]
    pub reason: String,
    /// Your own user name, as "kubectl auth whoami" shows it; nobody can clear in the name of another.
    #[schemars(length(min = 1, max = limits::USER))]
    pub cleared_by: String,
}

/// Limits number and size of the parameters; the rules on keys stand at the field.
fn parameters_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": limits::PARAMETERS,
        "additionalProperties": {"type": "string", "maxLength": limits::PARAMETER_VALUE},
    })
}

/// Leaves the field without a type: only so it takes a flag, a number and an object. The schema binds the number and
/// the fields of the object, each value by the limits of its own kind; the admission policy on retries refuses the
/// rest.
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
                "description": "How many attempts there are at the most, from 1 to 20, the first included. Absent: 3.",
                "type": "integer", "format": "int32", "minimum": 1, "maximum": limits::ATTEMPTS,
            },
            "initialDelay": duration(
                "How long the wait before the second attempt is, in whole seconds from 0s to 1h, e.g. \"5s\" or \
                 \"1m30s\". It counts from when the end of the attempt before is recorded. Absent: 1s.",
            ),
            "backoffMultiplier": {
                "description": "What each further wait is longer by, from 1 to 10, to three decimals, e.g. 1.5. Absent: 2.",
                "type": "number", "minimum": 1, "maximum": 10,
            },
            "maxDelay": duration(
                "The longest wait, in whole seconds from 1s to 1h, not below initialDelay, e.g. \"5m\". Absent: 60s, or \
                 initialDelay where that is longer.",
            ),
            "jitter": flag(
                "Whether each wait is longer by a share of up to a half, drawn for this execution, so that many do not \
                 begin at once. Never above maxDelay. Absent: false.",
            ),
            "retryWhen": condition(
                "CEL condition, asked after an attempt that failed: it is repeated only where this is true, e.g. \
                 \"reason == 'ImagePullBackOff' || statusCode >= 500\". It may use attempt, maxAttempts, reason, error, \
                 success, exitCode, wasExecutionFailure, nodeId, executionId, result, statusCode and data. At most 512 \
                 characters. Where it cannot be answered, there is no other attempt. Absent: reason != \
                 'ConfigurationError'.",
            ),
            "stopWhen": condition(
                "CEL condition like retryWhen, asked before it: where it is true, there is no other attempt, e.g. \
                 \"exitCode == 3\". At most 512 characters. Absent: none.",
            ),
            "retryExecutionFailures": flag(
                "Whether an attempt is repeated though something of the workflow ran, or nobody can tell: set it only \
                 where every step may run twice. Absent: false.",
            ),
            "maxDuration": duration(
                "How long all attempts and waits may take together, in whole seconds from 1s to 24h, e.g. \"2h\", \
                 counted from startTime. No attempt begins later, and one that runs then is cancelled. The waits alone \
                 must fit. Absent: 24h.",
            ),
        },
    })
}
