//! The spec of a `WorkflowSchedule`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    rules,
    status::WorkflowScheduleStatus,
    triage::{Resume, Triage},
};
use crate::limits;
use crate::workflow_execution::{ExecutionConfig, MOMENT, WorkflowRef};

/// When to run which workflow on which target. Every field may change. An edit of interval, cron, timeZone or spread
/// begins the plan anew: slots count from the edit, and failureCount is 0. An edit of template.spec sets failureCount
/// to 0 and moves no slot; edits of its rationale and ttlSecondsAfterFinished change neither. No edit makes the
/// schedule run a slot that has passed.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kubernaut.ai",
    version = "v1alpha1",
    kind = "WorkflowSchedule",
    plural = "workflowschedules",
    shortname = "wfs",
    category = "kubernaut",
    namespaced,
    status = "WorkflowScheduleStatus",
    derive = "PartialEq",
    doc = "Runs one workflow on one target repeatedly. At each slot of its plan it creates a WorkflowExecution. While something holds the schedule, it creates none, and the condition Held gives the reason. After failures a schedule with an interval waits longer, until a run succeeds.",
    printcolumn(name = "Every", type_ = "string", json_path = ".spec.interval",
        description = "Time from slot to slot"),
    printcolumn(name = "Cron", type_ = "string", json_path = ".spec.cron",
        description = "The slots as a cron expression"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend",
        description = "Whether the schedule is suspended"),
    printcolumn(name = "Failures", type_ = "integer", json_path = ".status.failureCount",
        description = "Failures since the last success"),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastRun.slot",
        description = "Time since the slot of the last run"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextRunTime",
        description = "Time of the next run"),
    printcolumn(name = "Why", type_ = "string", json_path = ".status.nextRunReason",
        description = "How the time of the next run was chosen"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the next run can be planned"),
    printcolumn(name = "Held", type_ = "string", json_path = ".status.conditions[?(@.type==\"Held\")].reason",
        description = "The reason of the condition Held"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp",
        description = "Time since the object was created"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.timeZone", priority = 1,
        description = "The time zone of the cron expression"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.template.spec.targetResource", priority = 1,
        description = "The target of the workflow"),
    printcolumn(name = "Triage", type_ = "string", json_path = ".status.triage.state", priority = 1,
        description = "State of the last triage"),
    validation = rules::name_is_short()
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::one_plan(),
    validation = rules::zone_with_cron(),
    validation = rules::spread_below_interval(),
    validation = rules::min_not_above_interval(),
    validation = rules::max_not_below_interval(),
    validation = rules::clamps_of_cron(),
    validation = rules::adjustable_parameters_exist(),
    validation = rules::no_interval_with_cron(),
)]
pub struct WorkflowScheduleSpec {
    /// Time from slot to slot, in whole seconds from 1s to 720h, e.g. "5m" or "1h30m". After a failure the next run is
    /// planned from the end of the failed run. Each failure in a row, the first included, doubles the time, up to 32
    /// times the interval and not above maxInterval. Set exactly one of interval and cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.interval", "1s", "720h"))]
    pub interval: Option<String>,
    /// The slots as a cron expression of five fields: minute, hour, day of month, month, day of week, e.g. "0 2 * *
    /// MON-FRI". Fields consist of digits, "*", ",", "-" and "/". Months may be JAN to DEC, days of the week SUN to
    /// SAT. If both kinds of day are limited, a day that matches either has a slot. Failures do not move the slots.
    /// When clocks are set forward, a slot in the missing hour runs right after that hour. When clocks are set back, a
    /// slot in the repeated hour runs once. If the hour field begins with "*", real time counts instead: a missing
    /// minute has no slot, and a repeated minute has two. Set exactly one of interval and cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::CRON))]
    #[x_kube(validation = rules::cron())]
    pub cron: Option<String>,
    /// Time zone of cron, by its IANA name, e.g. "Europe/Berlin". It may be set only with cron. Absent: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TIME_ZONE))]
    #[x_kube(validation = rules::zone())]
    pub time_zone: Option<String>,
    /// Moves all slots of this schedule later by a part of this time, in whole seconds from 0s to 24h, e.g. "10m". The
    /// part is derived from the uid of the schedule and never changes. Schedules with the same plan therefore do not
    /// all run at the same time. The spread must be less than interval. Absent: 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.spread", "0s", "24h"))]
    pub spread: Option<String>,
    /// Shortest time from the last slot to a run that a hint asks for, in whole seconds from 1s to 720h, not above
    /// interval. Absent: a tenth of interval but at least 1m, or interval if that is shorter; with cron 1m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.minInterval", "1s", "720h"))]
    pub min_interval: Option<String>,
    /// Longest wait after failures, in whole seconds from 1s to 720h, not below interval. It also limits how long after
    /// the last slot a hint may put the next run. It never moves a slot of cron. Absent: 24h, or interval if that is
    /// longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.maxInterval", "1s", "720h"))]
    pub max_interval: Option<String>,
    /// How many seconds after its slot a run may still begin, from 10 to 2592000 (30 days). A slot whose run has not
    /// begun by then is missed, and status.lastMissed counts it. Absent: no limit; of several missed slots only the
    /// latest runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 2_592_000))]
    pub starting_deadline_seconds: Option<i32>,
    /// Whether new runs are suspended. A run that has begun continues; set spec.cancellation of its execution to stop
    /// it. Slots during the suspension are lost, and the plan begins anew afterwards. Setting this field requires
    /// permission to patch the schedule. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Template of the executions: for every slot the operator creates a WorkflowExecution from it, in the namespace of
    /// the schedule.
    pub template: ScheduleTemplate,
    /// How many finished executions of this schedule are kept. Executions that the target still needs, for example
    /// because they block it, are kept in addition. Absent: 3 that Completed and 3 others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Another time for the next run, set by a person or a program. It replaces the planned time within the limits of
    /// minInterval and maxInterval. A hint does not lift a hold. A hint that has expired or was used is ignored, and
    /// stays until its author removes it. Setting it requires permission to patch the schedule. Absent: only the plan
    /// counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// What to do when the schedule keeps failing. When the number of failures in a row reaches triage.after, an
    /// analyst is asked once for a verdict, which status.triage records. A verdict can pause the schedule and adjust
    /// the fields that allowAdjust lists. Every other verdict is advice to a person. Absent: the analyst BuiltIn is
    /// asked after 3 failures, and may adjust nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triage: Option<Triage>,
    /// Ends the pause or the adjustments of a triage. Set it while status.triage.state is Paused or Adjusted. The plan
    /// then begins anew. Setting it requires the permissions for an edit of the schedule, or permission to update
    /// workflowexecutions/clearance in this namespace and in that of the target. The value stays for the record;
    /// replace it to end a later triage. Absent: no triage was ended this way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// The execution that each slot makes.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleTemplate {
    /// Labels and annotations of the executions, besides those of the operator. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The spec of the executions, with the limits of a WorkflowExecution. Writing it requires permission to create
    /// workflowexecutions in this namespace. A target outside of this namespace also requires permission to create
    /// workflowexecutions/target in the target's namespace, or cluster-wide for a cluster-scoped target.
    pub spec: TemplateSpec,
}

/// Labels and annotations of executions.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// At most 16 labels, e.g. {"team": "payment"}. Keys below kubernaut.ai/ are reserved for the operator. Absent:
    /// none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels_schema")]
    #[x_kube(
        validation = rules::no_keys_of_ours("spec.template.metadata.labels"),
        validation = rules::keys("spec.template.metadata.labels"),
        validation = rules::values_of_labels("spec.template.metadata.labels"),
    )]
    pub labels: BTreeMap<String, String>,
    /// At most 16 annotations, with values of at most 2048 characters. Keys below kubernaut.ai/ are reserved for the
    /// operator. Absent: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "annotations_schema")]
    #[x_kube(
        validation = rules::no_keys_of_ours("spec.template.metadata.annotations"),
        validation = rules::keys("spec.template.metadata.annotations"),
    )]
    pub annotations: BTreeMap<String, String>,
}

/// The spec of the executions of a schedule.
///
/// It is a type of its own, because the spec of an execution never changes and this one may. `crate::crd` copies the
/// schemas of its fields from the spec of an execution: both then have the same limits. The descriptions are those of
/// this type.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Which workflow to run.
    pub workflow_ref: WorkflowRef,
    /// The object that the workflow acts on: "namespace/kind/name", e.g. "payment/deployment/payment-api", or for
    /// cluster-scoped objects "kind/name", e.g. "node/worker-node-1". At most one workflow at a time runs on a target;
    /// while another workflow runs there, the schedule waits.
    pub target_resource: String,
    /// Parameters of the pipeline, e.g. {"DISK_THRESHOLD": "85"}. There are at most 64. Keys are UPPER_SNAKE_CASE. Each
    /// value has at most 8192 characters; keys and values together have at most 65536. A value must not contain a
    /// variable of Tekton, such as $(context.pipelineRun.name). Do not put secrets here: everybody who may read this
    /// object can read them. The operator adds TARGET_RESOURCE. Absent: the pipeline's own defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// How to run the workflow. Absent: the operator's configuration applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_config: Option<ExecutionConfig>,
    /// Why this workflow is run, in words, at most 32768 characters. It is kept for the record. Absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// Seconds from the end of each execution to its removal. For example, 604800 is a week, and 0 removes it at once.
    /// An execution that the target still needs, for example because it blocks the target, is kept longer. An execution
    /// beyond the numbers in history is removed earlier. Absent: the operator's configuration applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Runs the workflow again after a failed attempt. The execution holds its target until the last attempt has ended.
    /// The value is true (all defaults), a whole number of attempts from 1 to 20, or an object with the fields below,
    /// as in a WorkflowExecution. Absent or false: one attempt.
    // Plain JSON: an invalid policy must not make the rest of the spec unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Value>,
}

/// How many finished executions a schedule keeps.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Number of executions to keep that Completed, from 0 to 100. Absent: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::HISTORY))]
    pub successful: Option<i32>,
    /// Number of all other finished executions to keep, from 0 to 100. An execution that blocks its target, or counts
    /// as one of its failures, is kept in any case. Absent: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::HISTORY))]
    pub failed: Option<i32>,
}

/// Another time for the next run.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::one_hint(), validation = rules::hint_outlives_its_run())]
pub struct Hint {
    /// Time of the next run, used once, e.g. "2026-01-02T03:04:05Z". Set exactly one of nextRunAt and interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = MOMENT))]
    #[x_kube(validation = rules::years("spec.hint.nextRunAt"))]
    pub next_run_at: Option<Time>,
    /// Time from slot to slot while the hint holds, in whole seconds from 1s to 720h, e.g. "30s". It also applies after
    /// failures. Set exactly one of nextRunAt and interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.hint.interval", "1s", "720h"))]
    pub interval: Option<String>,
    /// Until when the hint holds, e.g. "2026-01-02T03:14:05Z". It must be after nextRunAt.
    #[schemars(extend("pattern" = MOMENT))]
    #[x_kube(validation = rules::years("spec.hint.expiresAt"))]
    pub expires_at: Time,
    /// Reason of the hint in words, e.g. "traffic is low until noon". At most 1024 characters. Absent: none given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::HINT_REASON))]
    pub reason: Option<String>,
}

/// Limits the labels. The rules on them are at the field.
fn labels_schema(_: &mut SchemaGenerator) -> Schema {
    texts_schema(limits::LABEL_VALUE)
}

/// Limits the annotations. The rules on them are at the field.
fn annotations_schema(_: &mut SchemaGenerator) -> Schema {
    texts_schema(limits::ANNOTATION_VALUE)
}

fn texts_schema(longest: u32) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": limits::TEMPLATE_METADATA,
        "additionalProperties": {"type": "string", "maxLength": longest},
    })
}
