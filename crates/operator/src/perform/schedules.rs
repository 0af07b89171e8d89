//! Writes for schedules: creates their children, and changes their statuses (sections 12.5 and 12.7).

use chrono::TimeDelta;
use kube::api::{Api, DynamicObject, GetParams, Patch, PatchParams};
use serde_json::{Map, Value, json};
use wfe_api::labels::{ANNOTATION_SCHEDULED_FOR, LABEL_SCHEDULE, MANAGED_BY};
use wfe_api::limits;
use wfe_core::Time;
use wfe_core::action::Record;
use wfe_core::name::{ScheduleId, Version};
use wfe_core::schedule::{Held, Outcome, PlannedBy, Ready, RefusedChild, ScheduleStatus, child_name};
use wfe_tekton::rfc3339;
use wfe_view::index::Kind;

use super::announcement::{Announcement, OfSchedule};
use super::children::{Made, is_child_of, made_for};
use super::quoted::Quoted;
use super::{Learned, PerformError, Performer, Result, call, changed_or_call, expect_object};
use crate::events::NewEvent;
use crate::status;
use crate::verb::Verb;

const SCHEDULES: &str = "workflowschedules";
const SCHEDULE_STATUS: &str = "workflowschedules/status";

/// A child that is to be created.
#[derive(Debug)]
pub struct ChildCreation {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The generation of the schedule that the decision saw.
    pub generation: i64,
    /// The version of the schedule that the decision saw.
    pub version: Version,
    /// The slot of the child.
    pub slot: Time,
    /// The time before which the child must begin.
    pub start_before: Time,
    /// The slot of an earlier create, if its answer may have been lost.
    pub not_made: Option<Time>,
}

impl ChildCreation {
    fn refused(&self, message: &str) -> Vec<Learned> {
        let message = limits::cut(message, limits::RUN_MESSAGE).into();
        vec![Learned::ChildRefused(self.schedule.uid.clone(), RefusedChild { slot: self.slot, message })]
    }
}

impl Performer {
    /// Creates a child from the present template, unless the schedule has changed since the decision. A create with an
    /// unknown outcome is repeated under the same name.
    pub(super) async fn create_child(&self, creation: &ChildCreation, now: Time) -> Result<Vec<Learned>> {
        let ChildCreation { schedule, generation, version, slot, start_before, not_made } = creation;
        if let Some(earlier) = not_made {
            let name = child_name(&schedule.name, *earlier);
            if let Some(found) = self.read_child(schedule, &name).await?.filter(|found| is_child_of(found, schedule)) {
                return Ok(expect_object(Kind::Execution, &found));
            }
        }
        // This reads the API server's cache, which is never behind a watch. Many schedules are due in the same minute,
        // and a read past the cache costs half as much as the create.
        let found = self.read_decided(schedule, *generation, Some(version)).await?;
        let name = child_name(&schedule.name, *slot);
        let template = (&found.data["spec"]["template"], &found.data["status"]["adjust"]);
        let child = render(schedule, &name, template, *slot, *start_before);
        match self.make(schedule, &found, &name, child).await? {
            Made::Now(created) => {
                let late = (now - *slot).max(TimeDelta::zero());
                self.metrics.schedules().child_created(late.to_std().unwrap_or_default());
                tracing::info!(%schedule, wfe = name, "child created");
                Ok(expect_object(Kind::Execution, &created))
            }
            Made::Before(found) => Ok(expect_object(Kind::Execution, &found)),
            Made::Refused(message) => Ok(creation.refused(&message)),
        }
    }

    /// Writes the wanted status of a schedule. `shown` is the status that the decision saw.
    pub(super) async fn record(&self, record: &Record, shown: &ScheduleStatus, now: Time) -> Result<Vec<Learned>> {
        let Record { schedule, version, gone, status, .. } = record;
        if let Some(name) = gone
            && self.read_child(schedule, name).await?.is_some_and(|found| is_child_of(&found, schedule))
        {
            let what = format!("WorkflowExecution {}/{name} is there after all", schedule.namespace);
            return Err(PerformError::Refuted { what });
        }
        let mut sent = json!(status::schedule(schedule, shown, status, now));
        let params = PatchParams { field_manager: Some(MANAGED_BY.to_owned()), ..PatchParams::default() };
        let schedules = self.schedules(schedule);
        let announcement = OfSchedule::new(record.clone(), shown.clone());
        let write = async |sent: &Value| {
            let patch = Patch::Merge(json!({
                "metadata": {"uid": schedule.uid.to_string(), "resourceVersion": version.as_str()},
                "status": sent,
            }));
            let request = schedules.patch_status(&schedule.name, &params, &patch);
            self.cluster.call(Verb::Patch, SCHEDULE_STATUS, request).await
        };
        let mut written = write(&sent).await;
        let is_new_word = status.next.is_some_and(|next| next.why == PlannedBy::Again);
        if is_new_word && written.as_ref().is_err_and(|error| error.code() == 422) {
            // An older CRD does not know this value, and would refuse it every time.
            sent["nextRunReason"] = json!(PlannedBy::CatchUp.as_str());
            written = write(&sent).await;
        }
        match written {
            Ok(written) => {
                self.tell_of_schedule(&announcement);
                let what = format!("WorkflowSchedule {schedule}");
                let mut learned = self.take_stored(Kind::Schedule, &what, version, &sent, &written).await?;
                learned.push(Learned::Told(schedule.uid.clone()));
                Ok(learned)
            }
            Err(error) => {
                let error = self.unquoted(error, Quoted::Schedule(schedule)).await;
                let error = changed_or_call(error, format!("WorkflowSchedule {schedule}"), "write the status of");
                Err(error.with_unconfirmed(Announcement::Schedule(announcement)))
            }
        }
    }

    /// Reads a schedule from the store; or, with `no_older`, from the API server's cache in at least this version.
    pub(super) async fn read_schedule(
        &self,
        schedule: &ScheduleId,
        no_older: Option<&Version>,
    ) -> Result<Option<DynamicObject>> {
        let schedules = self.schedules(schedule);
        let params = no_older.map_or_else(GetParams::default, |version| GetParams::at(version.as_str()));
        let read = async {
            match schedules.get_with(&schedule.name, &params).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
                found => found.map(Some),
            }
        };
        self.cluster
            .call(Verb::Get, SCHEDULES, read)
            .await
            .map_err(|error| call(format!("read WorkflowSchedule {schedule}"), error))
    }

    /// Announces a status of a schedule that was written.
    pub(super) fn tell_of_schedule(&self, of: &OfSchedule) {
        let OfSchedule { record: Record { schedule, version, status: wanted, suppressed, .. }, shown } = of;
        let metrics = self.metrics.schedules();
        if let Some(run) = wanted.last_run.as_ref().filter(|run| shown.last_run.as_ref() != Some(run))
            && let Some(outcome) = run.outcome
        {
            let name = child_name(&schedule.name, run.slot);
            let (failures, outcome_shown) = (wanted.failure_count, outcome.as_str());
            metrics.ran(outcome);
            tracing::info!(%schedule, wfe = name, outcome = outcome_shown, failures, "run recorded");
            if outcome == Outcome::Refused {
                let message = run.message.as_deref().unwrap_or_default();
                self.events.announce(NewEvent::child_refused(schedule, run.slot, message));
            }
        }
        if let Some(why) = suppressed {
            metrics.triage_suppressed(*why);
            tracing::info!(%schedule, reason = why.as_str(), "keeps failing, and no triage begins");
        }
        if let Some(missed) = wanted.last_missed.filter(|missed| shown.last_missed != Some(*missed)) {
            let used = shown.last_run.as_ref().map(|run| run.slot).max(shown.planned_from);
            metrics.missed(missed.beyond(shown.last_missed, used));
            tracing::warn!(%schedule, count = missed.count, slot = %missed.slot, "slots missed");
            self.events.announce(NewEvent::slots_missed(schedule, missed));
        }
        if let Ready::InvalidSpec(why) = &wanted.ready
            && wanted.ready != shown.ready
        {
            tracing::warn!(%schedule, "its spec cannot be used: {why}");
            self.events.announce(NewEvent::invalid_spec(schedule, version.as_str(), why));
        }
        self.tell_of_triage(schedule, shown, wanted);
        match (shown.held.by(), &wanted.held) {
            (was, Held::By { reason, message }) if was != Some(*reason) => {
                tracing::info!(%schedule, reason = reason.as_str(), "held: {message}");
                self.events.announce(NewEvent::held(schedule, version.as_str(), *reason, message));
            }
            (Some(was), Held::Never | Held::Released) => {
                tracing::info!(%schedule, reason = was.as_str(), "not held any more");
                self.events.announce(NewEvent::released(schedule, version.as_str(), was));
            }
            _ => {}
        }
    }

    fn schedules(&self, schedule: &ScheduleId) -> Api<DynamicObject> {
        self.cluster.schedules_in(&schedule.namespace)
    }
}

/// Makes the child of a slot. The child has no owner reference, so the deletion of its schedule neither cancels a run
/// nor lifts a block.
fn render(
    schedule: &ScheduleId,
    name: &str,
    (template, adjusted): (&Value, &Value),
    slot: Time,
    start_before: Time,
) -> Value {
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut labels: Map<String, Value> = object(&template["metadata"]["labels"]);
    labels.insert(LABEL_SCHEDULE.to_owned(), json!(&*schedule.name));
    let mut annotations: Map<String, Value> = object(&template["metadata"]["annotations"]);
    annotations.insert(ANNOTATION_SCHEDULED_FOR.to_owned(), json!(rfc3339(slot)));
    let mut spec = object(&template["spec"]);
    adjust(&mut spec, adjusted);
    spec.insert("remediationRequestRef".to_owned(), made_for(schedule));
    spec.insert("startBefore".to_owned(), json!(rfc3339(start_before)));
    json!({
        "apiVersion": format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION),
        "kind": "WorkflowExecution",
        "metadata": {
            "name": name,
            "namespace": &*schedule.namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    })
}

/// Replaces values of the spec with those of a triage. Only parameters of the template are replaced: a status never
/// adds a parameter.
fn adjust(spec: &mut Map<String, Value>, adjusted: &Value) {
    if let Some(timeout) = adjusted["timeout"].as_str() {
        let config = spec.entry("executionConfig").or_insert_with(|| json!({}));
        config["timeout"] = json!(timeout);
    }
    let Some(parameters) = spec.get_mut("parameters").and_then(Value::as_object_mut) else { return };
    for (key, value) in adjusted["parameters"].as_object().into_iter().flatten() {
        if let Some(known) = parameters.get_mut(key) {
            *known = value.clone();
        }
    }
}

#[cfg(test)]
mod tests;
