//! Creates executions for a schedule: its children, and the analysts of their failures.

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use wfe_api::labels::MANAGED_BY;
use wfe_api::workflow_schedule::KIND;
use wfe_core::name::{ScheduleId, Version};
use wfe_tekton::Redaction;
use wfe_view::call::CallError;
use wfe_view::partial::PartialObject;

use super::objects::is;
use super::quoted::Quoted;
use super::{EXECUTIONS, PerformError, Performer, Result, call, refusal};
use crate::verb::Verb;

/// The outcome of creating an execution.
pub(super) enum Made {
    /// The execution was created.
    Now(DynamicObject),
    /// The execution existed already. It was created before a crash, before an answer was lost, or by another operator.
    Before(DynamicObject),
    /// The execution will never exist: the create was permanently refused, or another object has the name. The message
    /// quotes no value of a parameter.
    Refused(String),
}

impl Performer {
    /// Reads a schedule, if it is still in the state that the decision saw.
    ///
    /// # Errors
    /// `Changed` if the schedule was replaced or changed, or is being deleted.
    pub(super) async fn read_decided(
        &self,
        schedule: &ScheduleId,
        generation: i64,
        no_older: Option<&Version>,
    ) -> Result<DynamicObject> {
        let is_as_decided = |found: &DynamicObject| {
            let meta = &found.metadata;
            is(meta, &schedule.uid) && meta.generation == Some(generation) && meta.deletion_timestamp.is_none()
        };
        self.read_schedule(schedule, no_older).await?.filter(is_as_decided).ok_or_else(|| changed(schedule))
    }

    /// Creates an execution for a schedule; `found` is the schedule as it is now. A create with an unknown outcome is
    /// repeated under the same name.
    pub(super) async fn make(
        &self,
        schedule: &ScheduleId,
        found: &DynamicObject,
        name: &str,
        rendered: Value,
    ) -> Result<Made> {
        let shown = format!("WorkflowExecution {}/{name}", schedule.namespace);
        let redaction = Redaction::of_schedule(&found.data);
        let rendered: DynamicObject = serde_json::from_value(rendered).map_err(|error| {
            call(format!("render {shown}"), CallError::Transport(Box::new(kube::Error::SerdeError(error))))
        })?;
        let params = PostParams { field_manager: Some(MANAGED_BY.to_owned()), ..PostParams::default() };
        let executions = self.cluster.executions_in(&schedule.namespace);
        let sent = PartialObject::from(rendered);
        match self.cluster.call(Verb::Create, EXECUTIONS, executions.create(&params, &sent)).await {
            Ok(PartialObject { object: created, .. }) => Ok(Made::Now(created)),
            Err(CallError::Refused(status)) if status.is_already_exists() => {
                match self.read_child(schedule, name).await? {
                    Some(found) if is_child_of(&found, schedule) => Ok(Made::Before(found)),
                    Some(_) => Ok(Made::Refused(format!(
                        "another WorkflowExecution has the name {name}; delete it, or create the schedule again under \
                         another name"
                    ))),
                    None => Err(PerformError::Changed { what: shown }),
                }
            }
            Err(error) if is_going_away(&error) => {
                Err(PerformError::Changed { what: format!("the namespace {}", schedule.namespace) })
            }
            Err(error) if refusal::judge(&error).is_some() => {
                // The redacted text is used for the status, the event, the log and the evidence, because many users can
                // read a schedule's status.
                let message = redaction.apply(&refusal::message("WorkflowExecution", &error));
                tracing::warn!(%schedule, wfe = name, "execution of a schedule refused: {message}");
                Ok(Made::Refused(message))
            }
            Err(error) => {
                let error = self.unquoted(error, Quoted::Known(&redaction)).await;
                Err(call(format!("create {shown}"), error))
            }
        }
    }

    pub(super) async fn read_child(&self, schedule: &ScheduleId, name: &str) -> Result<Option<DynamicObject>> {
        let executions = self.cluster.executions_in(&schedule.namespace);
        let found = self.cluster.call(Verb::Get, EXECUTIONS, executions.get_opt(name)).await;
        found
            .map(|found| found.map(|PartialObject { object, .. }| object))
            .map_err(|error| call(format!("read WorkflowExecution {}/{name}", schedule.namespace), error))
    }
}

pub(super) fn changed(schedule: &ScheduleId) -> PerformError {
    PerformError::Changed { what: format!("WorkflowSchedule {schedule}") }
}

/// Returns the reference to the schedule for the spec of its execution.
pub(super) fn made_for(schedule: &ScheduleId) -> Value {
    json!({
        "apiVersion": format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION),
        "kind": KIND,
        "name": &*schedule.name,
        "uid": schedule.uid.to_string(),
    })
}

/// Returns whether an execution was created for this schedule.
pub(super) fn is_child_of(execution: &DynamicObject, schedule: &ScheduleId) -> bool {
    let by = &execution.data["spec"]["remediationRequestRef"];
    by["kind"] == KIND && by["uid"].as_str().is_some_and(|uid| schedule.uid == *uid)
}

/// Returns whether a create was refused because its namespace is gone or being deleted. The API server did not judge
/// the execution then, and the schedule disappears with the namespace.
fn is_going_away(error: &CallError) -> bool {
    let CallError::Refused(status) = error else { return false };
    let details = status.details.as_ref();
    let is_terminating =
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    let is_gone = status.code == 404 && details.is_some_and(|details| details.kind == "namespaces");
    is_terminating || is_gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_on_its_way_out_is_no_refusal() {
        let refused = |details: Value| {
            let status = serde_json::from_value(json!({"code": 403, "message": "m", "details": details})).unwrap();
            CallError::Refused(Box::new(status))
        };
        let causes = json!({"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "f"}]});
        assert!(is_going_away(&refused(causes)));
        assert!(!is_going_away(&refused(json!({}))));
    }
}
