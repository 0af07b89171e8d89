//! What is done about a `WorkflowSchedule` that keeps failing: what may be done, the record of it, and how a person
//! ends it (section 13).
//!
//! Knows the fields and their limits. When a triage begins, what it finds and what its verdict does is decided
//! elsewhere.

// Descriptions of fields are read in a terminal, as kubectl shows them.
#![allow(rustdoc::invalid_html_tags)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::limits;
use crate::workflow_execution::WorkflowRef;

pub use wfe_core::triage::{Analyst, State as TriageState, Verdict as TriageVerdict};

/// What is done when the schedule keeps failing.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::pipeline_has_a_workflow(),
    validation = rules::with_pipeline_only("workflowRef"),
    validation = rules::with_pipeline_only("serviceAccountName"),
    validation = rules::with_pipeline_only("timeout"),
)]
pub struct Triage {
    /// Who looks at the failures: Off (nobody), BuiltIn (a table in the operator) or Pipeline (workflowRef, a workflow
    /// of your own that is given the evidence and answers with a verdict). Absent: BuiltIn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Analyst")] // The schema of an optional enum loses the words above.
    pub analyst: Option<Analyst>,
    /// After how many failures in a row, from 1 to 10. Absent: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::TRIAGE_AFTER))]
    pub after: Option<i32>,
    /// The workflow that analyses, with analyst Pipeline, which needs it. It is run like any workflow, with the
    /// parameter EVIDENCE, and answers in the result "verdict" of its pipeline. Absent with every other analyst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_ref: Option<WorkflowRef>,
    /// Service account, in the execution namespace, that the analysing workflow runs under. May be set only with
    /// analyst Pipeline. Absent: the operator's service-account (kubernaut-workflow-runner unless configured).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    #[x_kube(validation = rules::service_account("spec.triage.serviceAccountName"))]
    pub service_account_name: Option<String>,
    /// How long the analysing workflow may wait and how long it may run, in whole seconds from 1m to 1h, e.g. "5m". May
    /// be set only with analyst Pipeline. Absent: 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.triage.timeout", "1m", "1h"))]
    pub timeout: Option<String>,
    /// What the verdict AdjustConfig may change without asking: at most 16 of "interval" (within minInterval and
    /// maxInterval), "timeout" (of the executions) and "parameters.<KEY>", where the template has the KEY. It changes
    /// status.adjust, never the spec. No verdict changes cron: "interval" is refused beside it, and has no effect in a
    /// schedule that was stored with both. Absent: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::TRIAGE_FIELDS), inner(length(max = limits::TRIAGE_FIELD)))]
    #[x_kube(validation = rules::adjustable(), validation = rules::adjustable_once())]
    pub allow_adjust: Vec<String>,
}

/// Who lets a schedule go on as its spec says, and why.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    /// Which triage it ends, as status.triage.of names it, e.g. "nightly-1767323045".
    #[schemars(length(min = 1, max = limits::NAME))]
    pub triage: String,
    /// Why it may go on, in words, e.g. "the pull secret is renewed". At most 1024 characters.
    #[schemars(length(min = 1, max = limits::RESUME_REASON))]
    pub reason: String,
    /// Your own user name, as "kubectl auth whoami" shows it; nobody can resume in the name of another.
    #[schemars(length(min = 1, max = limits::USER))]
    pub resumed_by: String,
}

/// The last triage of the schedule.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriageStatus {
    /// Name of the execution whose failure began it, also where creating that execution was refused: spec.resume names
    /// the triage by it.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub of: String,
    /// When it began.
    pub at: Time,
    /// Who looked at the failures: BuiltIn or Pipeline.
    pub analyst: Analyst,
    /// The WorkflowExecution that analyses, in the same namespace. Absent until it is created, and with the analyst
    /// BuiltIn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<TriageRun>,
    /// What the failure comes from, as in the execution's failureDetails, e.g. "ImagePullBackOff/registry/quay.io".
    /// Absent: it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FINGERPRINT))]
    pub fingerprint: Option<String>,
    /// The sha256 of the evidence that the analyst was given, in 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::EVIDENCE))]
    pub evidence: Option<String>,
    /// What the analyst recommends: DoNothing, FileFix (a person has to mend what fix says), PauseAndNotify (nothing
    /// more runs until a person has looked) or AdjustConfig (another interval, timeout or parameter). Absent while it
    /// analyses, and where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TriageVerdict")]
    pub verdict: Option<TriageVerdict>,
    /// Why, in the analyst's words, or why there is no verdict. At most 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TRIAGE_WHY))]
    pub why: Option<String>,
    /// What a person should do, in the analyst's words. At most 4000 characters. Absent: the analyst proposes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TRIAGE_FIX))]
    pub fix: Option<String>,
    /// The adjustments that the analyst asked for and may not make, each with the reason. Absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::TRIAGE_FIELDS), inner(length(max = limits::TRIAGE_REFUSED)))]
    pub refused: Vec<String>,
    /// How far it is: Analysing, then Noted (nothing to do), Filed (fix says what to mend), Failed (no verdict; why
    /// tells the reason), Paused (nothing runs until a person resumes or edits the schedule) or Adjusted (status.adjust
    /// is in force until then); Over when the plan has begun anew since.
    pub state: TriageState,
}

/// The execution that analyses.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriageRun {
    /// Name of the WorkflowExecution, in the same namespace.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Uid of the WorkflowExecution.
    #[schemars(length(min = 1, max = limits::UID))]
    pub uid: String,
}

/// What a triage has changed. It lies over the spec, which stays as its author wrote it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Adjustment {
    /// Replaces spec.interval, within minInterval and maxInterval. Absent: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("status.adjust.interval", "1s", "720h"))]
    pub interval: Option<String>,
    /// Replaces executionConfig.timeout of the template. Absent: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("status.adjust.timeout", "1s", "24h"))]
    pub timeout: Option<String>,
    /// Replaces the parameters of the template that have these keys. Absent: none.
    // The schema is put in from the spec of an execution (`crate::crd`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}
