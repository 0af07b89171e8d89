//! The triage of a `WorkflowSchedule` that keeps failing: what a triage may do, its record, and how a person ends it
//! (section 13).
//!
//! This module has the fields and their limits. The core decides when a triage begins, what it finds and what its
//! verdict does.

// `kubectl` shows descriptions in a terminal; they are not HTML.
#![allow(rustdoc::invalid_html_tags)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::limits;
use crate::workflow_execution::WorkflowRef;

pub use wfe_core::triage::{Analyst, State as TriageState, Verdict as TriageVerdict};

/// What to do when the schedule keeps failing.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::pipeline_has_a_workflow(),
    validation = rules::with_pipeline_only("workflowRef"),
    validation = rules::with_pipeline_only("serviceAccountName"),
    validation = rules::with_pipeline_only("timeout"),
)]
pub struct Triage {
    /// The analyst of the failures. Off: failures are not analysed. BuiltIn: a table in the operator. Pipeline: a
    /// workflow of your own (workflowRef), which gets the evidence and returns a verdict. Absent: BuiltIn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Analyst")] // The schema of an optional enum loses the words above.
    pub analyst: Option<Analyst>,
    /// Number of failures in a row before a triage, from 1 to 10. Absent: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::TRIAGE_AFTER))]
    pub after: Option<i32>,
    /// The workflow that analyses the failures. It is required with the analyst Pipeline. It runs like any workflow,
    /// gets the parameter EVIDENCE, and returns its verdict in the result "verdict" of its pipeline. It must be absent
    /// with every other analyst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_ref: Option<WorkflowRef>,
    /// Service account of the analysing workflow, in the execution namespace. It may be set only with the analyst
    /// Pipeline. Absent: the operator's service-account (kubernaut-workflow-runner unless configured).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    #[x_kube(validation = rules::service_account("spec.triage.serviceAccountName"))]
    pub service_account_name: Option<String>,
    /// Time limit of the analysing workflow, in whole seconds from 1m to 1h, e.g. "5m". It limits both the wait for the
    /// start and the run. It may be set only with the analyst Pipeline. Absent: 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = rules::duration("spec.triage.timeout", "1m", "1h"))]
    pub timeout: Option<String>,
    /// Fields that the verdict AdjustConfig may change without a person, at most 16. They are "interval" (within
    /// minInterval and maxInterval), "timeout" (of the executions) and "parameters.<KEY>" for a KEY of the template. A
    /// change is written to status.adjust, never to the spec. No verdict changes cron: "interval" is refused with cron,
    /// and has no effect in a schedule that was stored with both. Absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::TRIAGE_FIELDS), inner(length(max = limits::TRIAGE_FIELD)))]
    #[x_kube(validation = rules::adjustable(), validation = rules::adjustable_once())]
    pub allow_adjust: Vec<String>,
}

/// The person who ends a triage, and the reason.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    /// The triage to end, by the name in status.triage.of, e.g. "nightly-1767323045".
    #[schemars(length(min = 1, max = limits::NAME))]
    pub triage: String,
    /// Reason for the end of the triage in words, e.g. "the pull secret is renewed". At most 1024 characters.
    #[schemars(length(min = 1, max = limits::RESUME_REASON))]
    pub reason: String,
    /// Your own user name, as "kubectl auth whoami" shows it. The API server refuses any other name.
    #[schemars(length(min = 1, max = limits::USER))]
    pub resumed_by: String,
}

/// The last triage of the schedule.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriageStatus {
    /// Name of the execution whose failure started the triage, even if the API server refused to create that execution.
    /// spec.resume.triage contains this name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub of: String,
    /// When the triage began.
    pub at: Time,
    /// The analyst of the failures: BuiltIn or Pipeline.
    pub analyst: Analyst,
    /// The WorkflowExecution that analyses the failures, in the same namespace. Absent: it is not created yet, or the
    /// analyst is BuiltIn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<TriageRun>,
    /// Cause of the failure, as in the failureDetails of the execution, e.g. "ImagePullBackOff/registry/quay.io".
    /// Absent: the failure had no fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FINGERPRINT))]
    pub fingerprint: Option<String>,
    /// The sha256 digest of the evidence that the analyst got, in 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::EVIDENCE))]
    pub evidence: Option<String>,
    /// Verdict of the analyst. DoNothing: nothing to do. FileFix: a person should do what fix says. PauseAndNotify:
    /// nothing runs until a person resumes or edits the schedule. AdjustConfig: the interval, the timeout or a
    /// parameter should change. Absent: the analysis has not ended, or it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TriageVerdict")]
    pub verdict: Option<TriageVerdict>,
    /// Reason of the verdict in the analyst's words, or why there is no verdict. At most 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TRIAGE_WHY))]
    pub why: Option<String>,
    /// What a person should do, in the analyst's words. At most 4000 characters. Absent: the analyst proposes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TRIAGE_FIX))]
    pub fix: Option<String>,
    /// Adjustments that the analyst asked for and that are not allowed, each with the reason. Absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::TRIAGE_FIELDS), inner(length(max = limits::TRIAGE_REFUSED)))]
    pub refused: Vec<String>,
    /// State of the triage. Analysing: no verdict yet. Noted: nothing to do. Filed: fix says what to do. Failed: no
    /// verdict; why gives the reason. Paused: nothing runs until a person resumes or edits the schedule. Adjusted:
    /// status.adjust applies until a person resumes or edits the schedule. Over: the plan has begun anew after the
    /// triage.
    pub state: TriageState,
}

/// The execution that analyses the failures.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriageRun {
    /// Name of the WorkflowExecution that analyses the failures, in the same namespace.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Uid of the WorkflowExecution that analyses the failures.
    #[schemars(length(min = 1, max = limits::UID))]
    pub uid: String,
}

/// Values that a triage has changed. They override the spec, which stays as its author wrote it.
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
    /// Replaces parameters of the template that have the same keys. Absent: none.
    // `crate::crd` copies the schema from the spec of an execution.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}
