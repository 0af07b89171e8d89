//! The attempts of one `WorkflowExecution` over time, from its statuses.

use serde_json::Value;
use wfe_api::Phase;

use super::{Written, phase, text};
use crate::report::Moment;

/// One entry of `status.attempts`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// The write that recorded the end of the attempt.
    pub(crate) ended: Option<Moment>,
    /// The last version of the entry.
    pub(crate) last: &'a Value,
}

impl<'a> Attempt<'a> {
    /// Reads attempts from an execution's statuses, in order. An entry is kept even if a later status lacks it.
    pub(super) fn read_all(written: &[Written<'a>]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for Written { at, status } in written {
            for (index, entry) in listed(status).iter().enumerate() {
                if index == all.len() {
                    all.push(Self { ended: None, last: entry });
                }
                let Some(attempt) = all.get_mut(index) else { break };
                attempt.last = entry;
                attempt.ended = attempt.ended.or_else(|| is_set(entry, "completionTime").then_some(*at));
            }
        }
        all
    }

    /// Returns the name of the attempt's run.
    pub(crate) fn run(&self) -> Option<&'a str> {
        text(self.last, "/pipelineRun")
    }
}

/// Lists the attempts in a status.
pub(crate) fn listed(status: &Value) -> &[Value] {
    status["attempts"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns whether the next attempt is still to begin: the last entry has neither a begin nor an end.
pub(crate) fn waits(status: &Value) -> bool {
    let last = listed(status).last();
    let is_waiting =
        |last: &Value| is_set(last, "notBefore") && !is_set(last, "startTime") && !is_set(last, "completionTime");
    phase(status) == Some(Phase::Running) && last.is_some_and(is_waiting)
}

fn is_set(entry: &Value, field: &str) -> bool {
    !entry[field].is_null()
}
