//! Writes to runs: creates, releases, deletes and cancels them.

use std::sync::Arc;

use chrono::SecondsFormat;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::action::{Change, RunChange, Unneeded};
use wfe_core::name::{RunId, Version};
use wfe_core::run::{CancelReason, Order};
use wfe_tekton::{Redaction, observe_run, render_run};
use wfe_view::call::CallError;
use wfe_view::index::{Kind, Written};
use wfe_view::partial::PartialObject;

use super::announcement::{AnnouncedWrite, Announcement};
use super::objects::is;
use super::quoted::Quoted;
use super::{
    Common, Creation, Learned, PerformError, Performer, Result, call, changed_or_call, deleted, expect_object,
    if_unchanged, refusal, required_labels,
};
use crate::verb::Verb;

impl Performer {
    /// Confirms the facts of a change, and then changes the run.
    pub(super) async fn change(&self, common: &Common, change: &Change) -> Result<Vec<Learned>> {
        let Change { run, facts, to } = change;
        let mut learned = self.confirm(common, facts).await?;
        learned.extend(match to {
            RunChange::Released => self.release(common, run).await?,
            RunChange::Cancelled(why) => self.cancel(common, run, *why).await?,
            RunChange::AskedAgain(count) => self.ask_again(common, run, *count).await?,
            RunChange::Deleted { version, why } => self.delete(common, run, version, *why).await?,
        });
        Ok(learned)
    }

    /// Creates a run (step (a)). A create with an unknown outcome is repeated under the same name, because the view has
    /// not changed.
    pub(super) async fn create(&self, common: &Common, creation: &Creation) -> Result<Vec<Learned>> {
        let Creation { execution, number, request, had_run, at_most, .. } = creation;
        if let Some(version) = had_run {
            self.confirm_unchanged(execution, version).await?;
        }
        let name = request.target.chain().run(*number);
        let redaction = Redaction::new(Arc::clone(&request.parameters), Some(request.target.clone()));
        let mut rendered = match at_most {
            Some(most) => render_run(&request.with_timeout_at_most(*most, &common.defaults), *number, &common.defaults),
            None => render_run(request, *number, &common.defaults),
        };
        if let Some(context) = self.traces.context_of(&execution.uid, creation.attempt.unwrap_or(1)) {
            rendered["metadata"]["annotations"][wfe_tekton::SPAN_CONTEXT] = context.into();
        }
        let rendered: DynamicObject = serde_json::from_value(rendered).map_err(|error| {
            let source = CallError::Transport(Box::new(kube::Error::SerdeError(error)));
            call(format!("render PipelineRun {name}"), source)
        })?;
        let params =
            PostParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PostParams::default() };
        // A create does not depend on a version of the execution.
        let told = AnnouncedWrite::Created(name.as_str().into());
        let announcement = Announcement::new(Some(&request.target), execution, &Version::new(""), told);
        let runs = self.cluster.runs();
        let sent = PartialObject::from(rendered);
        match self.cluster.call(Verb::Create, wfe_tekton::PLURAL, runs.create(&params, &sent)).await {
            Ok(PartialObject { object: created, .. }) => {
                self.tell(&announcement);
                let mut learned = match required_labels::missing(&sent.object, &created) {
                    Some(mark) => self.refuse_unmarked(creation, &created, &mark).await,
                    None => expect_object(Kind::Run, &created),
                };
                learned.push(Learned::Told(execution.uid.clone()));
                Ok(learned)
            }
            Err(CallError::Refused(status)) if status.is_already_exists() => {
                self.name_taken(creation, &sent.object).await
            }
            Err(error) => {
                let Some(reason) = refusal::judge(&error) else {
                    let error = self.unquoted(error, Quoted::Known(&redaction)).await;
                    return Err(call(format!("create PipelineRun {name}"), error).with_unconfirmed(announcement));
                };
                let message = refusal::message("PipelineRun", &error);
                let told = redaction.apply(&message);
                tracing::debug!(wfe = %execution, target = %request.target, %reason, "create refused: {told}");
                Ok(vec![creation.refused(reason, &message)])
            }
        }
    }

    /// Finds out what has taken the name: our own run (after a crash or a lost answer), another operator's run, or
    /// another object.
    async fn name_taken(&self, creation: &Creation, rendered: &DynamicObject) -> Result<Vec<Learned>> {
        let name = rendered.metadata.name.as_deref().unwrap_or_default();
        match self.read_run(name).await? {
            // The watch delivers this run, whatever its owner, and the next decision takes it into account.
            Some(found) if observe_run(&found.metadata, &found.data, Order(0)).is_some() => {
                Ok(expect_object(Kind::Run, &found))
            }
            Some(_) => {
                tracing::warn!(
                    run = name,
                    "a PipelineRun of somebody else has this name; left alone, the next number is used"
                );
                Ok(vec![Learned::NumberTaken(creation.number)])
            }
            None => Err(PerformError::Changed { what: format!("PipelineRun {name}") }),
        }
    }

    /// Releases a run (step (d)). Any operator may do so at any later time, because the patch changes only a pending
    /// run. The time is recorded on the run, because the run's deadlines count from it.
    async fn release(&self, common: &Common, run: &RunId) -> Result<Vec<Learned>> {
        let released = match self.try_release(run, Some(common.now)).await {
            // A failed test in the patch and a refusing policy have the same code. Only a read of the run distinguishes
            // them.
            Err(error @ CallError::Refused(_)) if error.code() == 422 => match self.read_run(&run.name).await? {
                Some(found) if is(&found.metadata, &run.uid) && found.data["spec"]["status"] == wfe_tekton::PENDING => {
                    // Without annotations, the run has no map to which the time could be added.
                    let is_bare = found.metadata.annotations.is_none_or(|annotations| annotations.is_empty());
                    if is_bare { self.try_release(run, None).await } else { Err(error) }
                }
                _ => return Err(PerformError::Changed { what: format!("PipelineRun {run}") }),
            },
            answer => answer,
        };
        let released = match released {
            Ok(released) => released,
            Err(error) => {
                let error = self.unquoted(error, Quoted::Run(run)).await;
                return Err(changed_or_call(error, format!("PipelineRun {run}"), "release"));
            }
        };
        tracing::debug!(target = %common.shown(), %run, "released");
        Ok(expect_object(Kind::Run, &released))
    }

    async fn try_release(&self, run: &RunId, at: Option<Time>) -> std::result::Result<DynamicObject, CallError> {
        let mut operations = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": run.uid.to_string()}),
            json!({"op": "test", "path": "/spec/status", "value": wfe_tekton::PENDING}),
            json!({"op": "remove", "path": "/spec/status"}),
        ];
        if let Some(at) = at {
            let path = format!("/metadata/annotations/{}", wfe_api::labels::ANNOTATION_RELEASED_AT.replace('/', "~1"));
            let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
            operations.push(json!({"op": "add", "path": path, "value": at}));
        }
        let patch = serde_json::from_value(Value::Array(operations))
            .map(Patch::Json)
            .map_err(|error| CallError::Transport(Box::new(kube::Error::SerdeError(error))))?;
        self.send_patch(run, &patch).await
    }

    async fn send_patch(&self, run: &RunId, patch: &Patch<Value>) -> std::result::Result<DynamicObject, CallError> {
        let params =
            PatchParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PatchParams::default() };
        let runs = self.cluster.runs();
        let patched = self.cluster.call(Verb::Patch, wfe_tekton::PLURAL, runs.patch(&run.name, &params, patch)).await?;
        Ok(patched.object)
    }

    /// Deletes a pending or finished run that has not changed. A release would have changed its version.
    async fn delete(&self, common: &Common, run: &RunId, version: &Version, why: Unneeded) -> Result<Vec<Learned>> {
        let params = if_unchanged(&run.uid, version);
        let runs = self.cluster.runs();
        match self.cluster.call(Verb::Delete, wfe_tekton::PLURAL, runs.delete(&run.name, &params)).await {
            Ok(answer) => {
                let leaving = answer.left().map(|PartialObject { object, .. }| object);
                tracing::info!(target = %common.shown(), %run, ?why, is_held = leaving.is_some(), "deleted");
                let (namespace, name) = (self.cluster.execution_namespace().into(), (&*run.name).into());
                let object = Written { kind: Kind::Run, namespace, name, uid: run.uid.clone() };
                let mut learned = match &leaving {
                    Some(leaving) => expect_object(Kind::Run, leaving),
                    None => deleted(object, None),
                };
                if why == Unneeded::Unreleased {
                    learned.push(Learned::Unreleased(run.uid.clone()));
                }
                Ok(learned)
            }
            Err(error) => {
                let error = self.unquoted(error, Quoted::Run(run)).await;
                Err(changed_or_call(error, format!("PipelineRun {run}"), "delete"))
            }
        }
    }

    /// Asks Tekton to stop a run, and records the reason on the run, so that the stop is not mistaken for a person's
    /// cancellation. The uid in the patch is the precondition.
    async fn cancel(&self, common: &Common, run: &RunId, why: CancelReason) -> Result<Vec<Learned>> {
        let said = wfe_tekton::cancel_annotation(why);
        let learned = self
            .stop(
                run,
                &json!({
                    wfe_api::labels::ANNOTATION_CANCEL_REASON: said,
                    wfe_api::labels::ANNOTATION_CANCELLED_AT: common.now.to_rfc3339_opts(SecondsFormat::Millis, true),
                }),
                &json!({"status": wfe_tekton::CANCELLED}),
            )
            .await?;
        tracing::info!(target = %common.shown(), %run, reason = said, "cancelled");
        Ok(learned)
    }

    /// Asks Tekton again to stop a run. The count in the patch changes the run: without a change, Tekton would not be
    /// notified.
    async fn ask_again(&self, common: &Common, run: &RunId, count: u32) -> Result<Vec<Learned>> {
        let asked = json!({wfe_api::labels::ANNOTATION_CANCEL_ASKED: count.to_string()});
        let learned = self.stop(run, &asked, &json!({})).await?;
        tracing::info!(target = %common.shown(), %run, count, "asked again to cancel it");
        Ok(learned)
    }

    async fn stop(&self, run: &RunId, annotations: &Value, spec: &Value) -> Result<Vec<Learned>> {
        let metadata = json!({"uid": run.uid.to_string(), "annotations": annotations});
        let patch = Patch::Merge(json!({"metadata": metadata, "spec": spec}));
        let stopped = match self.send_patch(run, &patch).await {
            Ok(stopped) => stopped,
            // The run has another uid now.
            Err(error) if error.code() == 422 => {
                return Err(PerformError::Changed { what: format!("PipelineRun {run}") });
            }
            Err(error) => {
                let error = self.unquoted(error, Quoted::Run(run)).await;
                return Err(changed_or_call(error, format!("PipelineRun {run}"), "cancel"));
            }
        };
        Ok(expect_object(Kind::Run, &stopped))
    }
}
