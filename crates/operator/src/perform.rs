//! The only writer: carries out what a decision asks for, each write with its precondition.
//!
//! It never chooses differently. Where a precondition fails, the target is looked at again.

mod refusal;

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use wfe_core::action::{Action, Ending, Fact, Unneeded, Waiting};
use wfe_core::ending::{Refusal, Skip};
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::residue::ResidueId;
use wfe_core::run::{CancelReason, Order};
use wfe_core::target::{RunNumber, TargetName};
use wfe_core::{Time, duration};
use wfe_tekton::{Defaults, RunRequest, observe_descendant, observe_run, render_run};

use crate::client::{CallError, Cluster, Verb};
use crate::events::{Announcement, Events};
use crate::index::{Expected, Key, Kind};
use crate::metrics::{Metrics, OutcomeLabel};
use crate::status::{self, Subject};

const EXECUTIONS: &str = "workflowexecutions";
const EXECUTION_STATUS: &str = "workflowexecutions/status";
/// How many writes of one decision are under way at once: a storm's skips go out side by side, and one target leaves
/// the API server room for the others.
const PARALLEL_WRITES: usize = 16;

/// One decision's actions, with what is needed to carry them out.
#[derive(Debug)]
pub struct Work {
    /// The target.
    pub key: Key,
    /// Its name, where it can be read.
    pub target: Option<TargetName>,
    /// What to do.
    pub actions: Vec<Action>,
    /// The executions that the actions name.
    pub subjects: HashMap<Uid, Subject>,
    /// What the executions ask to run, where the actions create runs.
    pub requests: HashMap<Uid, Arc<RunRequest>>,
    /// The time of the decision.
    pub now: Time,
}

/// What carrying out the actions has brought.
#[derive(Debug, Default)]
pub struct Report {
    /// What is known now that the watches do not say, or do not say yet.
    pub learned: Vec<Learned>,
    /// What could not be done; the target is to be looked at again after a while.
    pub errors: Vec<PerformError>,
}

/// Something that a write or a live read has brought to light.
#[derive(Debug)]
pub enum Learned {
    /// A write of ours, which the watch must deliver before the next decision.
    Expect(Expected),
    /// A create that was refused for good.
    Refused(Uid, Refusal),
    /// A number that an object outside our watch has taken.
    NumberTaken(RunNumber),
    /// An owner that is gone.
    OwnerGone(ExecutionId),
    /// It has been said that the target does not drain.
    DrainWarned,
}

/// Why an action was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PerformError {
    /// The precondition of a write no longer holds: somebody else was faster, and the watch will say who.
    #[error("{what} has changed since the decision")]
    Changed {
        /// Which object.
        what: String,
    },
    /// A live read does not confirm the fact that a write rests on.
    #[error("{what}, so the view is behind")]
    Refuted {
        /// What the read found.
        what: String,
    },
    /// The request failed.
    #[error("cannot {what}: {source}")]
    Call {
        /// What was tried.
        what: String,
        /// How it failed.
        #[source]
        source: CallError,
    },
}

impl PerformError {
    /// Returns the closed label for metrics.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Refuted { .. } => "refuted",
            Self::Call { source, .. } => match source {
                CallError::TimedOut => "timeout",
                CallError::Transport(_) => "transport",
                CallError::Refused(status) => match status.code {
                    403 => "forbidden",
                    409 => "conflict",
                    422 => "invalid",
                    429 => "throttled",
                    500.. => "server",
                    _ => "refused",
                },
            },
        }
    }
}

/// What one write has brought, and why it failed, where it did.
type Attempt = (Vec<Learned>, Option<PerformError>);

type Result<T> = std::result::Result<T, PerformError>;

/// Carries out actions. Cheap to clone.
#[derive(Clone)]
pub struct Performer {
    cluster: Cluster,
    defaults: Arc<Defaults>,
    metrics: Metrics,
    events: Events,
}

impl Performer {
    /// Makes a performer.
    #[must_use]
    pub fn new(cluster: Cluster, defaults: Defaults, metrics: Metrics, events: Events) -> Self {
        Self { cluster, defaults: Arc::new(defaults), metrics, events }
    }

    /// Carries out one decision. The actions are independent of each other, and so is their failure.
    pub async fn perform(self, mut work: Work) -> (Key, Report) {
        let actions = std::mem::take(&mut work.actions);
        let key = work.key.clone();
        let work = Arc::new(work);
        let results: Vec<Attempt> = stream::iter(actions)
            .map(|action| self.clone().perform_one(Arc::clone(&work), action))
            .buffer_unordered(PARALLEL_WRITES)
            .flat_map(stream::iter)
            .collect()
            .await;
        let mut report = Report::default();
        for (learned, error) in results {
            report.learned.extend(learned);
            report.errors.extend(error);
        }
        (key, report)
    }

    async fn perform_one(self, work: Arc<Work>, action: Action) -> Vec<Attempt> {
        let result = match action {
            Action::Create { execution, number } => self.create(&work, &execution, number).await,
            Action::Commit { execution, version, run, number, gone, .. } => {
                self.commit(&work, &execution, &version, &run, number, &gone).await
            }
            Action::Release { run } => self.release(&run).await,
            Action::Finish { execution, version, ending, lost, draining } => {
                self.finish(&work, &execution, &version, &ending, lost.as_ref(), draining).await
            }
            Action::Freed { execution, version } => self.freed(&work, &execution, &version).await,
            Action::ShowWaiting { execution, version, waiting } => {
                self.show_waiting(&work, &execution, &version, &waiting).await
            }
            Action::DrainSlow { holder, residue, since } => {
                self.metrics.drain_slow();
                let (kind, name) = (residue.kind.as_str(), &residue.name);
                tracing::warn!(wfe = %holder, target = %Shown(&work.target), kind, name, %since, "the target does not drain");
                self.events.announce(Announcement::drain_slow(&holder, &residue, since));
                Ok(vec![Learned::DrainWarned])
            }
            Action::Skip { skipped, skip, fact } => {
                return self.skip_all(work, skipped, Arc::new(skip), &fact).await;
            }
            Action::Delete { run, version, why, gone } => self.delete(&run, &version, why, gone.as_ref()).await,
            Action::Cancel { run, why, gone } => self.cancel(&run, why, gone.as_ref()).await,
        };
        vec![split(result)]
    }

    /// Step (a). A create whose outcome is unknown is tried again under the same name, as the view has not moved.
    async fn create(&self, work: &Work, execution: &ExecutionId, number: RunNumber) -> Result<Vec<Learned>> {
        let Some(request) = work.requests.get(&execution.uid) else {
            return Err(PerformError::Changed { what: format!("WorkflowExecution {execution}") });
        };
        let name = request.target.chain().run(number);
        let rendered: DynamicObject =
            serde_json::from_value(render_run(request, number, &self.defaults)).map_err(|error| {
                PerformError::Call {
                    what: format!("render PipelineRun {name}"),
                    source: CallError::Transport(Box::new(kube::Error::SerdeError(error))),
                }
            })?;
        let params =
            PostParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PostParams::default() };
        let runs = self.cluster.runs();
        match self.cluster.call(Verb::Create, wfe_tekton::PLURAL, runs.create(&params, &rendered)).await {
            Ok(created) => {
                self.metrics.run_created();
                tracing::debug!(wfe = %execution, target = %request.target, run = name, "created, pending");
                Ok(expect_object(Kind::Run, &created))
            }
            Err(CallError::Refused(status)) if status.is_already_exists() => self.name_taken(&name, number).await,
            Err(error) => match refusal::judge(&error) {
                Some(reason) => {
                    let message = refusal::message(&error, &request.parameters);
                    tracing::debug!(wfe = %execution, target = %request.target, %reason, "create refused: {message}");
                    let refusal = Refusal { reason, message: message.into(), number };
                    Ok(vec![Learned::Refused(execution.uid.clone(), refusal)])
                }
                None => Err(call(format!("create PipelineRun {name}"), error)),
            },
        }
    }

    /// The name is there already: ours (a crash, or an answer that was lost), another operator's, or a stranger's.
    async fn name_taken(&self, name: &str, number: RunNumber) -> Result<Vec<Learned>> {
        match self.read_run(name).await? {
            // Whoever owns it: the watch delivers it, and the next decision sees it.
            Some(found) if has_our_label(&found) => Ok(expect_object(Kind::Run, &found)),
            Some(_) => {
                tracing::warn!(
                    run = name,
                    "a PipelineRun of somebody else has this name; left alone, the next number is used"
                );
                Ok(vec![Learned::NumberTaken(number)])
            }
            None => Err(PerformError::Changed { what: format!("PipelineRun {name}") }),
        }
    }

    /// Step (c).
    async fn commit(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        run: &RunId,
        number: RunNumber,
        owners: &[ExecutionId],
    ) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        for owner in owners {
            learned.push(self.confirm_owner_gone(owner).await?);
        }
        let Some(subject) = work.subjects.get(&execution.uid) else { return Ok(learned) };
        let namespace = &self.defaults.execution_namespace;
        let status = status::running(work.target.as_ref(), subject, run, number, namespace, work.now);
        learned.extend(self.write_status(execution, version, &status).await?);
        tracing::info!(wfe = %execution, target = %Shown(&work.target), run = %run, phase = "Running", "committed");
        self.events.announce(Announcement::pipeline_run_created(execution, run));
        Ok(learned)
    }

    /// Step (d): anyone may do it, at any later time; the patch changes nothing unless the run is pending still.
    async fn release(&self, run: &RunId) -> Result<Vec<Learned>> {
        let operations = json!([
            {"op": "test", "path": "/metadata/uid", "value": run.uid.as_str()},
            {"op": "test", "path": "/spec/status", "value": wfe_tekton::PENDING},
            {"op": "remove", "path": "/spec/status"},
        ]);
        let patch = serde_json::from_value(operations).map(Patch::Json).map_err(|error| PerformError::Call {
            what: format!("release PipelineRun {run}"),
            source: CallError::Transport(Box::new(kube::Error::SerdeError(error))),
        })?;
        let released = self.patch_run(run, &patch, "release").await?;
        tracing::debug!(run = %run, "released");
        Ok(released)
    }

    async fn finish(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        ending: &Ending,
        lost: Option<&RunId>,
        draining: bool,
    ) -> Result<Vec<Learned>> {
        if let Some(run) = lost
            && let Some(found) = self.read_run(&run.name).await?
            && found.metadata.uid.as_deref() == Some(run.uid.as_str())
        {
            return Err(PerformError::Refuted { what: format!("PipelineRun {run} is there after all") });
        }
        let Some(subject) = work.subjects.get(&execution.uid) else { return Ok(Vec::new()) };
        let status = status::ended(work.target.as_ref(), subject, ending, draining);
        let learned = self.write_status(execution, version, &status).await?;
        let target = Shown(&work.target);
        match ending {
            Ending::Completed(success) => {
                self.metrics.ended(OutcomeLabel::Completed, Some(success.ran_for));
                let took = duration::format(success.ran_for);
                tracing::info!(wfe = %execution, %target, phase = "Completed", took, "ended");
                self.events.announce(Announcement::completed(execution, success));
            }
            Ending::Failed(failure) => {
                let ran_for = subject.is_running.then_some(failure.ran_for);
                self.metrics.ended(OutcomeLabel::Failed, ran_for);
                tracing::info!(
                    wfe = %execution, %target, phase = "Failed", reason = %failure.reason,
                    execution_failure = failure.was_execution_failure, "ended: {}", failure.message
                );
                self.events.announce(Announcement::failed(execution, failure));
            }
        }
        if subject.is_running && !draining {
            self.events.announce(Announcement::lock_released(execution, work.target.as_ref()));
        }
        Ok(learned)
    }

    /// Says that the target has drained after the end.
    async fn freed(&self, work: &Work, execution: &ExecutionId, version: &Version) -> Result<Vec<Learned>> {
        let Some(subject) = work.subjects.get(&execution.uid) else { return Ok(Vec::new()) };
        let learned = self.write_status(execution, version, &status::freed(subject, work.now)).await?;
        tracing::info!(wfe = %execution, target = %Shown(&work.target), "drained, the target is free");
        self.events.announce(Announcement::lock_released(execution, work.target.as_ref()));
        Ok(learned)
    }

    async fn show_waiting(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        waiting: &Waiting,
    ) -> Result<Vec<Learned>> {
        let Some(subject) = work.subjects.get(&execution.uid) else { return Ok(Vec::new()) };
        let status = status::waiting(work.target.as_ref(), subject, waiting, work.now);
        let learned = self.write_status(execution, version, &status).await?;
        tracing::info!(
            wfe = %execution, target = %Shown(&work.target), phase = "Pending", reason = waiting.reason(),
            "waits: {}", waiting.message()
        );
        Ok(learned)
    }

    /// Skips a batch on one live read of the fact that all rest on. The read comes after every one of them existed.
    async fn skip_all(
        self,
        work: Arc<Work>,
        skipped: Vec<(ExecutionId, Version)>,
        skip: Arc<Skip>,
        fact: &Fact,
    ) -> Vec<Attempt> {
        let confirmed = match fact {
            Fact::Unfinished(run) => self.confirm_unfinished(run).await,
            Fact::Draining(residue) => self.confirm_draining(residue).await,
        };
        if let Err(error) = confirmed {
            return vec![(Vec::new(), Some(error))];
        }
        stream::iter(skipped)
            .map(|(execution, version)| {
                let (this, work, skip) = (self.clone(), Arc::clone(&work), Arc::clone(&skip));
                async move { split(this.skip(&work, &execution, &version, &skip).await) }
            })
            .buffer_unordered(PARALLEL_WRITES)
            .collect()
            .await
    }

    async fn skip(&self, work: &Work, execution: &ExecutionId, version: &Version, skip: &Skip) -> Result<Vec<Learned>> {
        let Some(subject) = work.subjects.get(&execution.uid) else {
            return Ok(Vec::new());
        };
        let status = status::skipped(work.target.as_ref(), execution, subject, skip, work.now);
        let learned = self.write_status(execution, version, &status).await?;
        self.metrics.skipped(skip.reason());
        let message = status.skip_details.map(|details| details.message).unwrap_or_default();
        tracing::info!(
            wfe = %execution, target = %Shown(&work.target), phase = "Skipped", reason = skip.reason(),
            "skipped: {message}"
        );
        self.events.announce(Announcement::skipped(execution, skip, &message));
        Ok(learned)
    }

    /// Deletes a run that is still as it was seen, pending or finished: the version says so, as releasing moves it.
    async fn delete(
        &self,
        run: &RunId,
        version: &Version,
        why: Unneeded,
        owner: Option<&ExecutionId>,
    ) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        if let Some(owner) = owner {
            learned.push(self.confirm_owner_gone(owner).await?);
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(run.uid.as_str().to_owned()),
                resource_version: Some(version.as_str().to_owned()),
            }),
            ..DeleteParams::background()
        };
        let runs = self.cluster.runs();
        match self.cluster.call(Verb::Delete, wfe_tekton::PLURAL, runs.delete(&run.name, &params)).await {
            Ok(_) => {
                tracing::info!(run = %run, ?why, "deleted");
                learned.push(Learned::Expect(Expected::Absence { uid: run.uid.clone() }));
                Ok(learned)
            }
            Err(error) => Err(changed_or_call(error, format!("PipelineRun {run}"), "delete")),
        }
    }

    /// Asks Tekton to stop a run, and says why on the run, so that it is not taken for a person's cancel. The uid in the
    /// patch is its precondition.
    async fn cancel(&self, run: &RunId, why: CancelReason, owner: Option<&ExecutionId>) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        if let Some(owner) = owner {
            learned.push(self.confirm_owner_gone(owner).await?);
        }
        let said = wfe_tekton::cancel_annotation(why);
        let patch = Patch::Merge(json!({
            "metadata": {
                "uid": run.uid.as_str(),
                "annotations": {wfe_api::labels::ANNOTATION_CANCEL_REASON: said},
            },
            "spec": {"status": wfe_tekton::CANCELLED},
        }));
        learned.extend(self.patch_run(run, &patch, "cancel").await?);
        tracing::info!(run = %run, reason = said, "cancelled");
        Ok(learned)
    }

    async fn patch_run(&self, run: &RunId, patch: &Patch<Value>, verb: &'static str) -> Result<Vec<Learned>> {
        let params =
            PatchParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PatchParams::default() };
        let runs = self.cluster.runs();
        let request = runs.patch(&run.name, &params, patch);
        match self.cluster.call(Verb::Patch, wfe_tekton::PLURAL, request).await {
            Ok(patched) => Ok(expect_object(Kind::Run, &patched)),
            // A failed test of a JSON patch is answered with 422.
            Err(CallError::Refused(status)) if status.code == 422 => {
                Err(PerformError::Changed { what: format!("PipelineRun {run}") })
            }
            Err(error) => Err(changed_or_call(error, format!("PipelineRun {run}"), verb)),
        }
    }

    /// Writes a status. The uid and the version in the patch make it fail when the object is another, or newer.
    async fn write_status(
        &self,
        execution: &ExecutionId,
        version: &Version,
        status: &wfe_api::WorkflowExecutionStatus,
    ) -> Result<Vec<Learned>> {
        let patch = Patch::Merge(json!({
            "metadata": {"uid": execution.uid.as_str(), "resourceVersion": version.as_str()},
            "status": status,
        }));
        let params =
            PatchParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PatchParams::default() };
        let executions = self.cluster.executions_in(&execution.namespace);
        let request = executions.patch_status(&execution.name, &params, &patch);
        match self.cluster.call(Verb::Patch, EXECUTION_STATUS, request).await {
            Ok(written) => Ok(expect_object(Kind::Execution, &written)),
            Err(error) => Err(changed_or_call(error, format!("WorkflowExecution {execution}"), "write the status of")),
        }
    }

    async fn confirm_unfinished(&self, run: &RunId) -> Result<()> {
        let found = self.read_run(&run.name).await?;
        let observed = found.as_ref().and_then(|found| observe_run(&found.metadata, &found.data, Order(0)));
        match observed {
            Some((_, found)) if found.id.uid == run.uid && found.is_unfinished() => Ok(()),
            _ => Err(PerformError::Refuted { what: format!("PipelineRun {run} is not unfinished any more") }),
        }
    }

    async fn confirm_draining(&self, residue: &ResidueId) -> Result<()> {
        let objects = self.cluster.descendants(residue.kind);
        let found = self
            .cluster
            .call(Verb::Get, "descendants", objects.get_opt(&residue.name))
            .await
            .map_err(|error| call(format!("read {} {}", residue.kind.as_str(), residue.name), error))?;
        let observed = found.and_then(|found| observe_descendant(residue.kind, &found.metadata, &found.data));
        match observed {
            Some(found) if found.residue.id.uid == residue.uid && found.unfinished => Ok(()),
            _ => Err(PerformError::Refuted {
                what: format!("{} {} is not unfinished any more", residue.kind.as_str(), residue.name),
            }),
        }
    }

    async fn confirm_owner_gone(&self, owner: &ExecutionId) -> Result<Learned> {
        let executions = self.cluster.executions_in(&owner.namespace);
        let found = self
            .cluster
            .call(Verb::Get, EXECUTIONS, executions.get_opt(&owner.name))
            .await
            .map_err(|error| call(format!("read WorkflowExecution {owner}"), error))?;
        if found.is_some_and(|found| found.metadata.uid.as_deref() == Some(owner.uid.as_str())) {
            return Err(PerformError::Refuted { what: format!("WorkflowExecution {owner} is there after all") });
        }
        Ok(Learned::OwnerGone(owner.clone()))
    }

    async fn read_run(&self, name: &str) -> Result<Option<DynamicObject>> {
        let runs = self.cluster.runs();
        self.cluster
            .call(Verb::Get, wfe_tekton::PLURAL, runs.get_opt(name))
            .await
            .map_err(|error| call(format!("read PipelineRun {name}"), error))
    }
}

/// Shows a target in logs, also one that cannot be read.
struct Shown<'a>(&'a Option<TargetName>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_ref().map_or("(unreadable)", TargetName::as_str))
    }
}

fn split(result: Result<Vec<Learned>>) -> Attempt {
    match result {
        Ok(learned) => (learned, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}

fn call(what: String, source: CallError) -> PerformError {
    PerformError::Call { what, source }
}

/// 404 and 409 say that the object is not what the decision saw; anything else is a failed request.
fn changed_or_call(error: CallError, what: String, verb: &str) -> PerformError {
    match error.code() {
        404 | 409 => PerformError::Changed { what },
        _ => call(format!("{verb} {what}"), error),
    }
}

fn expect_object(kind: Kind, object: &DynamicObject) -> Vec<Learned> {
    let meta = &object.metadata;
    let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) else { return Vec::new() };
    vec![Learned::Expect(Expected::Version { kind, uid: Uid::new(uid), version: Version::new(version) })]
}

fn has_our_label(run: &DynamicObject) -> bool {
    run.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(wfe_api::labels::LABEL_WORKFLOW_EXECUTION))
}
