//! One WorkflowSchedule over time: every status that was written.

use serde_json::Value;

use super::execution::Written;
use super::life::Life;
use super::text;
use crate::report::ObjectRef;

/// One WorkflowSchedule.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    pub(crate) object: ObjectRef,
    /// The statuses, each different from the one before it. The first is that of the creation, mostly null.
    pub(crate) written: Vec<Written<'a>>,
}

impl<'a> Schedule<'a> {
    pub(super) fn read(life: &Life<'a>) -> Self {
        let mut written: Vec<Written<'a>> = Vec::new();
        for (at, object) in &life.states {
            let status = object.get("status").unwrap_or(&Value::Null);
            if written.last().is_none_or(|last| last.status != status) {
                written.push(Written { at: *at, status });
            }
        }
        Self { object: life.object(), written }
    }

    /// Names the target as it was last written; for the reader.
    pub(crate) fn shown(&self) -> String {
        format!("schedule {}/{}", self.object.namespace, self.object.name)
    }
}

/// Returns the slot of the last run that a status names, and its outcome.
pub(crate) fn last_run(status: &Value) -> Option<(&str, Option<&str>)> {
    let run = &status["lastRun"];
    Some((text(run, "/slot")?, text(run, "/outcome")))
}
