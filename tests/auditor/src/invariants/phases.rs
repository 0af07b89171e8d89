//! Invariant 3: phases only move forward, a terminal phase is final, and a status has the fields of its phase.

use serde_json::Value;
use wfe_api::{FailureReason, Phase, SkipReason};

use super::Finding;
use crate::Evidence;
use crate::history::{Execution, Written, phase, text};
use crate::report::{Counts, Violation};

/// The fields that may change in a terminal status.
const FREE: [&str; 4] = ["conditions", "clearance", "nextStep", "observedGeneration"];

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    let mut found = Vec::new();
    for execution in evidence.history.executions.values() {
        let mut before = &Value::Null;
        for written in &execution.written {
            // Writes by other users are not judged: admission refuses a wrong write, or its author is responsible.
            if !evidence.authors.is_strangers(written.at) {
                let finding = judge_step(before, written).or_else(|| judge_shape(before, execution, written));
                found.extend(finding.map(|(rule, what)| {
                    Finding::new(3, rule, format!("{}: {what}", execution.object)).about(execution, written.at)
                }));
            }
            before = written.status;
        }
    }
    found
}

/// Judges the changes that a write made.
fn judge_step(before: &Value, written: &Written<'_>) -> Option<(&'static str, String)> {
    let after = written.status;
    let word = |status: &Value| text(status, "/phase").unwrap_or("none").to_owned();
    let unknown = after["phase"].is_string() && written.phase().is_none();
    if unknown || !may_become(phase(before), written.phase()) {
        return Some(("phase", format!("phase went from {} to {}", word(before), word(after))));
    }
    if phase(before).is_some_and(Phase::is_terminal) {
        let changed = changed_fields(before, after);
        let what = || format!("status.{} changed after phase {}", changed.join(", status."), word(before));
        return (!changed.is_empty()).then(|| ("final", what()));
    }
    let fixed = ["startTime", "completionTime"]
        .into_iter()
        .find(|field| !before[field].is_null() && before[field] != after[field]);
    if let Some(field) = fixed {
        return Some(("fixed", format!("status.{field} went from {} to {}", before[field], after[field])));
    }
    (before["pipelineRunRef"].is_object() && after["pipelineRunRef"].is_null())
        .then(|| ("fixed", "status.pipelineRunRef was removed".to_owned()))
}

fn may_become(before: Option<Phase>, after: Option<Phase>) -> bool {
    use Phase::{Completed, Failed, Pending, Running, Skipped};
    before == after
        || matches!(
            (before, after),
            (None, Some(Pending | Running | Failed | Skipped))
                | (Some(Pending), Some(Running | Failed | Skipped))
                | (Some(Running), Some(Completed | Failed))
        )
}

fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let fields = |status: &Value| status.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let mut all: Vec<String> = fields(before);
    all.extend(fields(after));
    all.sort();
    all.dedup();
    all.retain(|field| !FREE.contains(&field.as_str()) && before[field] != after[field]);
    all
}

/// Judges the fields of a status with a new phase.
fn judge_shape(before: &Value, execution: &Execution<'_>, written: &Written<'_>) -> Option<(&'static str, String)> {
    let (now, status) = (written.phase()?, written.status);
    if phase(before) == Some(now) {
        return None;
    }
    let has = |field: &str| !status[field].is_null();
    let failure = &status["failureDetails"];
    let reason_is_one_of = |details: &str, words: &[&str]| {
        status[details]["reason"].as_str().is_some_and(|reason| words.contains(&reason))
    };
    let skips: Vec<&str> = SkipReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let failures: Vec<&str> = FailureReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let target = execution.target.as_ref().map(ToString::to_string);
    let wrong = [
        (has("failureDetails") != (now == Phase::Failed), "failureDetails belong exactly to Failed"),
        (has("skipDetails") != (now == Phase::Skipped), "skipDetails belong exactly to Skipped"),
        (has("completionTime") != now.is_terminal(), "completionTime belongs exactly to the terminal phases"),
        (now == Phase::Running && !has("startTime"), "Running needs a startTime"),
        (matches!(now, Phase::Running | Phase::Completed) && !has("pipelineRunRef"), "it needs a pipelineRunRef"),
        (
            now == Phase::Skipped && (has("startTime") || has("duration") || has("pipelineRunRef")),
            "a Skipped one has no startTime, duration or pipelineRunRef",
        ),
        (
            now == Phase::Skipped && status["completionTime"] != status["skipDetails"]["skippedAt"],
            "the completionTime of a Skipped one is its skippedAt",
        ),
        (now == Phase::Skipped && !reason_is_one_of("skipDetails", &skips), "the skip reason is none of the four"),
        (
            now == Phase::Failed && !reason_is_one_of("failureDetails", &failures),
            "the failure reason is none of the seven",
        ),
        (
            failure["requiresManualReview"] != failure["wasExecutionFailure"],
            "requiresManualReview must equal wasExecutionFailure",
        ),
        (target.as_deref() != status["target"].as_str(), "status.target is not the target of the spec"),
    ];
    let wrong: Vec<&str> = wrong.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
    (!wrong.is_empty()).then(|| ("shape", format!("of a status with phase {now}: {}", wrong.join("; "))))
}
