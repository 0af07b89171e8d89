//! What a failure has in common with others, as a report shows it.

use serde::Serialize;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::ExecutionId;
use wfe_core::target::Target;

/// What a failure has in common with others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Common {
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Whether others failed in the same way, so that this failure does not count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shared_outage: bool,
}

impl Common {
    /// Reads the fields from an execution. Empty if the execution has not failed, or its status lacks them.
    pub(super) fn of(execution: &Execution) -> Self {
        let ExecutionState::Failed(failed) = &execution.state else { return Self::default() };
        let fingerprint = failed.fingerprint.as_ref().map(ToString::to_string);
        Self { fingerprint, shared_outage: failed.shared_outage }
    }

    /// Reads what all failed executions of a target have in common with others.
    pub(super) fn of_all(target: &Target) -> Vec<(ExecutionId, Self)> {
        let all = target.executions.values().map(|execution| (execution.id.clone(), Self::of(execution)));
        all.filter(|(_, common)| *common != Self::default()).collect()
    }

    /// Describes it for people.
    pub(super) fn told(&self) -> Option<(&'static str, String)> {
        let shared = if self.shared_outage { "; others failed likewise, so it does not count" } else { "" };
        Some(("fingerprint", format!("{}{shared}", self.fingerprint.as_deref()?)))
    }
}
