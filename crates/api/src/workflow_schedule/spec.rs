//! What a `WorkflowSchedule` plans.

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

/// When to run which workflow on which target. All of it may change. An edit of interval, cron, timeZone or spread
/// begins the plan anew; one of what the template runs begins failureCount anew, and moves no slot. No edit runs a slot
/// that has passed.
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
    doc = "Runs one workflow on one target again and again: at each slot of its plan it makes a WorkflowExecution, unless something holds it, and says why. After failures it waits longer, until one succeeds.",
    printcolumn(name = "Every", type_ = "string", json_path = ".spec.interval",
        description = "How long it is from slot to slot"),
    printcolumn(name = "Cron", type_ = "string", json_path = ".spec.cron",
        description = "The cron expression of its slots"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend",
        description = "Whether somebody has suspended it"),
    printcolumn(name = "Failures", type_ = "integer", json_path = ".status.failureCount",
        description = "Failures since the last success"),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastRun.slot",
        description = "Time since the slot of the last run"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextRunTime",
        description = "When it runs next"),
    printcolumn(name = "Why", type_ = "string", json_path = ".status.nextRunReason",
        description = "What the next time follows from"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether its next run can be planned"),
    printcolumn(name = "Held", type_ = "string", json_path = ".status.conditions[?(@.type==\"Held\")].reason",
        description = "What keeps it from running"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp",
        description = "Time since the object was created"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.timeZone", priority = 1,
        description = "The time zone of the cron expression"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.template.spec.targetResource", priority = 1,
        description = "What the workflow acts on"),
    printcolumn(name = "Triage", type_ = "string", json_path = ".status.triage.state", priority = 1,
        description = "How far the last triage is"),
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
    /// How long it is from slot to slot, in whole seconds from 1s to 720h, e.g. "5m" or "1h30m". After a failure it
    /// counts from the end of the run, and doubles with each further failure up to 32 times, but not above
    /// maxInterval. Exactly one of interval and cron is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.interval", "1s", "720h"))]
    pub interval: Option<String>,
    /// The slots as a cron expression of five fields: minute, hour, day of month, month, day of week, e.g.
    /// "0 2 * * MON-FRI". Digits, "*", ",", "-" and "/"; months also JAN to DEC, days of the week SUN to SAT. Where
    /// both kinds of day are limited, either matches. Failures do not move the slots. When clocks are set forward, a
    /// slot in the missing hour runs right after it; when they are set back, a slot in the repeated hour runs once; but
    /// where the hour begins with "*", real time counts. Exactly one of interval and cron is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::CRON))]
    #[x_kube(validation = rules::cron())]
    pub cron: Option<String>,
    /// Time zone of cron, by its IANA name, e.g. "Europe/Berlin". May be set only with cron. Absent: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TIME_ZONE))]
    #[x_kube(validation = rules::zone())]
    pub time_zone: Option<String>,
    /// Moves all slots later by one share of this, in whole seconds from 0s to 24h, e.g. "10m": the same share for
    /// ever, drawn from the schedule's uid, so that many schedules of the same plan do not begin at once. Less than
    /// interval. Absent: 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.spread", "0s", "24h"))]
    pub spread: Option<String>,
    /// How close to the last slot a hint may bring the next run, in whole seconds from 1s to 720h, not above interval.
    /// Absent: a tenth of interval, but at least 1m, or interval where that is shorter; with cron 1m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.minInterval", "1s", "720h"))]
    pub min_interval: Option<String>,
    /// The longest wait after failures, and how far from the last slot a hint may put the next run, in whole seconds
    /// from 1s to 720h, not below interval. It never moves a slot of cron. Absent: 24h, or interval where that is
    /// longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.maxInterval", "1s", "720h"))]
    pub max_interval: Option<String>,
    /// How many seconds after its slot a run may still begin, from 10 to 2592000 (30 days). A slot that is later than
    /// this is missed: status.lastMissed counts it. Absent: a missed slot runs whenever it can; of several, the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 2_592_000))]
    pub starting_deadline_seconds: Option<i32>,
    /// Whether nothing new runs. What runs already goes on; stop it by its own spec.cancellation. Slots of this time
    /// are lost, and afterwards the plan begins anew. Whoever may patch the schedule may set it. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// What is run: every slot makes a WorkflowExecution of this, in the same namespace.
    pub template: ScheduleTemplate,
    /// How many finished executions of this schedule are kept beside those that something else still needs. Absent:
    /// three of each kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Another time for the next run, from a person or a program that knows better: it replaces the planned time, but
    /// stays between minInterval and maxInterval. It lifts nothing that holds the schedule. An expired or used one is
    /// ignored, and stays until its author removes it. Whoever may patch the schedule may set it. Absent: the plan
    /// alone counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// What is done when it keeps failing: after some failures in a row, an analyst is asked once for a verdict, which
    /// status.triage records. It can pause the schedule, and adjust what allowAdjust lists; all else is advice to a
    /// person. Absent: the analyst BuiltIn after 3 failures, which may adjust nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triage: Option<Triage>,
    /// Ends what a triage has done, its pause or its adjustments: set it while status.triage.state is Paused or
    /// Adjusted. The plan then begins anew. It takes the rights of an edit, or the right to clear. It stays for the
    /// record, and is replaced for a later triage. Absent: nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// The execution that is made at each slot.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleTemplate {
    /// Labels and annotations of the executions, besides those of the operator. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the executions run, with the limits of a WorkflowExecution. Whoever writes it needs the right to create
    /// workflowexecutions in this namespace and, for a target outside of it, the right to create
    /// workflowexecutions/target in the target's namespace, or cluster-wide where the target has none.
    pub spec: TemplateSpec,
}

/// Labels and annotations of executions.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// At most 16 labels, e.g. {"team": "payment"}. Keys below kubernaut.ai/ are the operator's own. Absent: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels_schema")]
    #[x_kube(
        validation = rules::no_keys_of_ours("spec.template.metadata.labels"),
        validation = rules::keys("spec.template.metadata.labels"),
        validation = rules::values_of_labels("spec.template.metadata.labels"),
    )]
    pub labels: BTreeMap<String, String>,
    /// At most 16 annotations, with values of at most 2048 characters. Keys below kubernaut.ai/ are the operator's own.
    /// Absent: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "annotations_schema")]
    #[x_kube(
        validation = rules::no_keys_of_ours("spec.template.metadata.annotations"),
        validation = rules::keys("spec.template.metadata.annotations"),
    )]
    pub annotations: BTreeMap<String, String>,
}

/// What the executions of a schedule run.
///
/// A type of its own, because the spec of an execution never changes and this one may. The schemas of its fields are
/// put in from there (`crate::crd`), so that both have the same limits; descriptions are these.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Which workflow to run.
    pub workflow_ref: WorkflowRef,
    /// The object that the workflow acts on: "namespace/kind/name", e.g. "payment/deployment/payment-api", or for
    /// cluster-scoped objects "kind/name", e.g. "node/worker-node-1". At most one workflow at a time runs on a target:
    /// while another one does, the schedule waits.
    pub target_resource: String,
    /// Parameters of the pipeline, e.g. {"DISK_THRESHOLD": "85"}: at most 64; keys in UPPER_SNAKE_CASE; values at most
    /// 8192 characters; keys and values together at most 65536 characters. A value must not refer to a variable of
    /// Tekton, such as $(context.pipelineRun.name). Everybody who may read this object reads them, so they must not
    /// hold secrets. TARGET_RESOURCE is always passed as well. Absent: the pipeline's own defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// How to run it. Absent: as the operator is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_config: Option<ExecutionConfig>,
    /// Why this workflow is run, in words, at most 32768 characters. Kept for the record. Absent: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// How many seconds after its end each execution is removed, e.g. 604800 for a week; 0: at once. It stays for
    /// longer while something rests on it, and goes sooner where history keeps fewer. Absent: as the operator is
    /// configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Runs the workflow again after an attempt that failed, inside one execution, which keeps its target until it
    /// ends: true (all defaults), a whole number of attempts from 1 to 20, or an object with the fields below, as in a
    /// WorkflowExecution. Absent or false: one attempt.
    // Plain JSON: a value that is no policy must not make the rest of the spec unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Value>,
}

/// How many finished executions a schedule keeps.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// How many of those that Completed, from 0 to 100. Absent: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::HISTORY))]
    pub successful: Option<i32>,
    /// How many of all others, from 0 to 100. One that blocks its target, or counts as one of its failures, is kept in
    /// any case. Absent: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::HISTORY))]
    pub failed: Option<i32>,
}

/// Another time for the next run.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::one_hint(), validation = rules::hint_outlives_its_run())]
pub struct Hint {
    /// When to run next, once, e.g. "2026-01-02T03:04:05Z". Exactly one of nextRunAt and interval is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = MOMENT))]
    #[x_kube(validation = rules::years("spec.hint.nextRunAt"))]
    pub next_run_at: Option<Time>,
    /// How long it is from slot to slot while the hint holds, in whole seconds from 1s to 720h, e.g. "30s": also after
    /// failures. Exactly one of nextRunAt and interval is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.hint.interval", "1s", "720h"))]
    pub interval: Option<String>,
    /// Until when the hint holds, e.g. "2026-01-02T03:14:05Z": after nextRunAt.
    #[schemars(extend("pattern" = MOMENT))]
    #[x_kube(validation = rules::years("spec.hint.expiresAt"))]
    pub expires_at: Time,
    /// Why, in words, e.g. "traffic is low until noon". At most 1024 characters. Absent: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::HINT_REASON))]
    pub reason: Option<String>,
}

/// Limits the labels; the rules on them stand at the field.
fn labels_schema(_: &mut SchemaGenerator) -> Schema {
    texts_schema(limits::LABEL_VALUE)
}

/// Limits the annotations; the rules on them stand at the field.
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
