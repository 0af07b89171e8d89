//! The writes to statuses: commit, end, skip, and what a status says beside them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_core::action::Ending;
use wfe_core::chain::RunNumber;
use wfe_core::ending::Skip;
use wfe_core::execution::Clearance;
use wfe_core::name::{ExecutionId, Version};
use wfe_core::standing::Blocked;
use wfe_core::target::TargetName;
use wfe_core::verdict::Fact;
use wfe_core::waiting::Waiting;
use wfe_view::index::{Kind, Written};

use super::telling::{Telling, Told};
use super::{
    Attempt, EXECUTION_STATUS, EXECUTIONS, Learned, PARALLEL_WRITES, PerformError, Performer, Result, Shown, Work,
    changed_or_call, deleted, expect_object, if_unchanged, split,
};
use crate::client::Verb;
use crate::status::{self, Commitment, Going, Subject};

impl Performer {
    /// Step (c).
    pub(super) async fn commit(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        commitment: Commitment<'_>,
        facts: &[Fact],
    ) -> Result<Vec<Learned>> {
        let mut learned = match self.confirm(work, facts).await? {
            ControlFlow::Continue(learned) => learned,
            ControlFlow::Break(learned) => return Ok(learned),
        };
        let subject = subject(work, execution)?;
        let namespace = self.cluster.execution_namespace();
        let run = commitment.run;
        let status = status::running(work.target.as_ref(), subject, commitment, namespace, work.now);
        let telling = Telling::new(work.target.as_ref(), execution, version, Told::Committed(run.clone()));
        learned.extend(self.write_and_tell(execution, version, subject, &status, telling).await?);
        Ok(learned)
    }

    pub(super) async fn give_up(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        number: RunNumber,
    ) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let status = status::given_up(work.target.as_ref(), subject, number, work.now);
        let learned = self.write_status(execution, version, subject, &status).await?;
        tracing::info!(wfe = %execution, target = %Shown(&work.target), number, "gave its pending run up");
        Ok(learned)
    }

    pub(super) async fn finish(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        ending: &Ending,
        facts: &[Fact],
        draining: bool,
    ) -> Result<Vec<Learned>> {
        let mut learned = match self.confirm(work, facts).await? {
            ControlFlow::Continue(learned) => learned,
            ControlFlow::Break(learned) => return Ok(learned),
        };
        let subject = subject(work, execution)?;
        let status = status::ended(work.target.as_ref(), subject, ending, draining);
        let told = Told::Ended {
            ending: Box::new(ending.clone()),
            was_running: subject.is_running,
            started_at: subject.started_at,
        };
        let telling = Telling::new(work.target.as_ref(), execution, version, told);
        learned.extend(self.write_and_tell(execution, version, subject, &status, telling).await?);
        Ok(learned)
    }

    /// Removes an execution that is still as it was seen.
    pub(super) async fn remove(&self, work: &Work, execution: &ExecutionId, version: &Version) -> Result<Vec<Learned>> {
        let telling = Telling::new(work.target.as_ref(), execution, version, Told::Removed);
        let params = if_unchanged(&execution.uid, version);
        let executions = self.cluster.executions_in(&execution.namespace);
        match self.cluster.call(Verb::Delete, EXECUTIONS, executions.delete(&execution.name, &params)).await {
            Ok(answer) => {
                self.tell(&telling);
                let ExecutionId { namespace, name, uid } = execution.clone();
                let object = Written { kind: Kind::Execution, namespace, name, uid };
                Ok(deleted(object, answer.left().map(|left| left.object).as_ref()))
            }
            Err(error) => {
                let error = changed_or_call(error, format!("WorkflowExecution {execution}"), "delete");
                Err(error.with_untold(telling))
            }
        }
    }

    /// Says how far the run is.
    pub(super) async fn show_progress(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        going: Going<'_>,
    ) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let status = status::going(work.target.as_ref(), subject, going, work.now);
        let learned = self.write_status(execution, version, subject, &status).await?;
        let (tasks, started) = (going.shown.tasks, going.shown.proof.as_ref().map(|proof| &*proof.words));
        tracing::debug!(wfe = %execution, target = %Shown(&work.target), ?tasks, started, "goes on");
        Ok(learned)
    }

    /// Says that the target has drained after the end.
    pub(super) async fn freed(&self, work: &Work, execution: &ExecutionId, version: &Version) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let status = status::freed(subject, self.conditions_of(execution, version).await?, work.now);
        let telling = Telling::new(work.target.as_ref(), execution, version, Told::Freed);
        self.write_and_tell(execution, version, subject, &status, telling).await
    }

    /// Says what a clearance has done.
    pub(super) async fn record_clearance(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        clearance: &Clearance,
        effective: bool,
    ) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let conditions = self.conditions_of(execution, version).await?;
        let status = status::cleared(work.target.as_ref(), subject, conditions, clearance, effective, work.now);
        let told = Told::Cleared(Box::new(clearance.clone()), effective);
        let telling = Telling::new(work.target.as_ref(), execution, version, told);
        self.write_and_tell(execution, version, subject, &status, telling).await
    }

    /// Says whether an execution that failed blocks its target.
    pub(super) async fn show_blocked(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        blocked: Blocked,
    ) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let (target, conditions) = (work.target.as_ref(), self.conditions_of(execution, version).await?);
        let status = status::blocked(target, subject, conditions, blocked, work.now);
        let learned = self.write_status(execution, version, subject, &status).await?;
        let target = target.map_or("the target", TargetName::as_str);
        tracing::info!(wfe = %execution, target, reason = blocked.reason(), "blocked: {}", blocked.message(target));
        Ok(learned)
    }

    pub(super) async fn show_waiting(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        waiting: &Waiting,
        tried: Option<Duration>,
    ) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let status = status::waiting(work.target.as_ref(), subject, waiting, tried, work.now);
        let learned = self.write_status(execution, version, subject, &status).await?;
        tracing::info!(
            wfe = %execution, target = %Shown(&work.target), phase = "Pending", reason = waiting.reason(),
            "waits: {}", waiting.message()
        );
        Ok(learned)
    }

    /// Skips a batch on one live read of the fact that all rest on. The read comes after every one of them existed.
    pub(super) async fn skip_all(
        self,
        work: Arc<Work>,
        skipped: Vec<(ExecutionId, Version)>,
        skip: Arc<Skip>,
        fact: &Fact,
    ) -> Vec<Attempt> {
        match self.confirm(&work, std::slice::from_ref(fact)).await {
            Ok(ControlFlow::Continue(_)) => {}
            Ok(ControlFlow::Break(learned)) => return vec![(learned, None)],
            Err(error) => return vec![(Vec::new(), Some(error))],
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

    pub(super) async fn skip(
        &self,
        work: &Work,
        execution: &ExecutionId,
        version: &Version,
        skip: &Arc<Skip>,
    ) -> Result<Vec<Learned>> {
        let subject = subject(work, execution)?;
        let status = status::skipped(work.target.as_ref(), subject, skip, work.now);
        let message = status.skip_details.as_ref().map(|details| details.message.clone()).unwrap_or_default();
        let told = Told::Skipped(Arc::clone(skip), message);
        let telling = Telling::new(work.target.as_ref(), execution, version, told);
        self.write_and_tell(execution, version, subject, &status, telling).await
    }

    /// Writes a status, and tells of it if it was written. Where nobody knows, what there is to tell goes with the
    /// error.
    async fn write_and_tell(
        &self,
        execution: &ExecutionId,
        version: &Version,
        subject: &Subject,
        status: &wfe_api::WorkflowExecutionStatus,
        telling: Telling,
    ) -> Result<Vec<Learned>> {
        match self.write_status(execution, version, subject, status).await {
            Ok(mut learned) => {
                self.tell(&telling);
                learned.push(Learned::Told(execution.uid.clone()));
                Ok(learned)
            }
            Err(error) => Err(error.with_untold(telling)),
        }
    }

    /// Writes a status. The uid and the version in the patch make it fail when the object is another, or newer.
    pub(super) async fn write_status(
        &self,
        execution: &ExecutionId,
        version: &Version,
        subject: &Subject,
        status: &wfe_api::WorkflowExecutionStatus,
    ) -> Result<Vec<Learned>> {
        let mut patch = json!({
            "metadata": {"uid": execution.uid.to_string(), "resourceVersion": version.as_str()},
            "status": status,
        });
        // A number that was given up has no place in the history.
        let ends = status.phase.is_some_and(wfe_api::Phase::is_terminal);
        if subject.gave_up && ends && status.run_sequence.is_none() {
            patch["status"]["runSequence"] = Value::Null;
        }
        let patch = Patch::Merge(patch);
        let params =
            PatchParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PatchParams::default() };
        let executions = self.cluster.executions_in(&execution.namespace);
        let request = executions.patch_status(&execution.name, &params, &patch);
        match self.cluster.call(Verb::Patch, EXECUTION_STATUS, request).await {
            Ok(written) => Ok(expect_object(Kind::Execution, &written.object)),
            Err(error) => Err(changed_or_call(error, format!("WorkflowExecution {execution}"), "write the status of")),
        }
    }
}

/// Returns what a write needs of its execution. One that is gone since the decision is no success: nothing was written.
fn subject<'a>(work: &'a Work, execution: &ExecutionId) -> Result<&'a Subject> {
    let gone = || PerformError::Changed { what: format!("WorkflowExecution {execution}") };
    work.subjects.get(&execution.uid).ok_or_else(gone)
}
