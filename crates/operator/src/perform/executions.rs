//! Writes to executions: changes their statuses, and removes them.

use std::sync::Arc;

use futures::{StreamExt, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_core::action::{Says, Write};
use wfe_core::ending::Skip;
use wfe_core::name::{ExecutionId, Version};
use wfe_core::verdict::Fact;
use wfe_tekton::Redaction;
use wfe_view::index::{Kind, Written};

use super::announcement::{AnnouncedWrite, Announcement};
use super::quoted::Quoted;
use super::{
    Attempt, Common, EXECUTION_STATUS, EXECUTIONS, Learned, PARALLEL_WRITES, Performer, Result, changed_or_call,
    deleted, if_unchanged, split,
};
use crate::status::{self, Subject};
use crate::traces::Ended;
use crate::verb::Verb;

impl Performer {
    /// Confirms the facts of a write, and then writes the status.
    pub(super) async fn write(&self, common: &Common, write: Write, subject: Subject) -> Result<Vec<Learned>> {
        let Write { execution, version, facts, says } = write;
        let mut learned = self.confirm(common, &facts).await?;
        let was = if says.keeps_conditions() { Some(self.status_of(&execution, &version).await?) } else { None };
        let kept = was.as_ref().map(|was| was.conditions.clone()).unwrap_or_default();
        let target = common.target.as_ref();
        let namespace = self.cluster.execution_namespace();
        // The write announces that the target is free only if the execution held it until now.
        let is_news = says != Says::Freed || status::is_locked(&kept);
        let status = status::render(target, &subject, &says, kept, namespace, common.now);
        let status = match &was {
            Some(was) => status::renewed(was, status),
            None => status,
        };
        let (patch, redaction) = (patch(&execution, &version, &subject, &status), subject.redaction.clone());
        let ended = match says {
            Says::Ended { .. } => Some(Ended::Execution),
            Says::Freed => Some(Ended::Drain),
            _ => None,
        };
        let written = if is_news {
            let told = AnnouncedWrite::Said(Box::new(says), Box::new(subject));
            let announcement = Announcement::new(target, &execution, &version, told);
            self.write_and_tell((&execution, &version), patch, redaction.as_deref(), ended, announcement).await
        } else {
            self.write_status((&execution, &version), patch, redaction.as_deref(), ended).await
        };
        learned.extend(written?);
        Ok(learned)
    }

    /// Removes an execution if it has not changed.
    pub(super) async fn remove(
        &self,
        common: &Common,
        execution: &ExecutionId,
        version: &Version,
    ) -> Result<Vec<Learned>> {
        let announcement = Announcement::new(common.target.as_ref(), execution, version, AnnouncedWrite::Removed);
        let params = if_unchanged(&execution.uid, version);
        let executions = self.cluster.executions_in(&execution.namespace);
        match self.cluster.call(Verb::Delete, EXECUTIONS, executions.delete(&execution.name, &params)).await {
            Ok(answer) => {
                self.tell(&announcement);
                let ExecutionId { namespace, name, uid } = execution.clone();
                let object = Written { kind: Kind::Execution, namespace, name, uid };
                Ok(deleted(object, answer.left().map(|left| left.object).as_ref()))
            }
            Err(error) => {
                let error = self.unquoted(error, Quoted::Execution(execution)).await;
                let error = changed_or_call(error, format!("WorkflowExecution {execution}"), "delete");
                Err(error.with_unconfirmed(announcement))
            }
        }
    }

    /// Skips a batch of executions after one live read of their common fact. All of these executions were created
    /// before this read.
    pub(super) async fn skip_all(
        self,
        common: Arc<Common>,
        skipped: Vec<(ExecutionId, Version, Subject)>,
        skip: Arc<Skip>,
        fact: &Fact,
    ) -> Vec<Attempt> {
        if let Err(error) = self.confirm(&common, std::slice::from_ref(fact)).await {
            return vec![(Vec::new(), Some(error))];
        }
        stream::iter(skipped)
            .map(|(execution, version, subject)| {
                let (this, common, skip) = (self.clone(), Arc::clone(&common), Arc::clone(&skip));
                async move { split(this.skip(&common, &execution, &version, &subject, &skip).await) }
            })
            .buffer_unordered(PARALLEL_WRITES)
            .collect()
            .await
    }

    async fn skip(
        &self,
        common: &Common,
        execution: &ExecutionId,
        version: &Version,
        subject: &Subject,
        skip: &Arc<Skip>,
    ) -> Result<Vec<Learned>> {
        let target = common.target.as_ref();
        let status = status::skipped(target, subject, skip, common.now);
        let message = status.skip_details.as_ref().map(|details| details.message.clone()).unwrap_or_default();
        let announcement =
            Announcement::new(target, execution, version, AnnouncedWrite::Skipped(Arc::clone(skip), message));
        let (patch, redaction) = (patch(execution, version, subject, &status), subject.redaction.as_deref());
        self.write_and_tell((execution, version), patch, redaction, None, announcement).await
    }

    /// Writes a status and announces the write. If the outcome of the write is unknown, the error carries the pending
    /// announcement.
    async fn write_and_tell(
        &self,
        (execution, version): (&ExecutionId, &Version),
        patch: Value,
        redaction: Option<&Redaction>,
        ended: Option<Ended>,
        announcement: Announcement,
    ) -> Result<Vec<Learned>> {
        let is_announced = announcement.is_announced();
        match self.write_status((execution, version), patch, redaction, ended).await {
            Ok(mut learned) => {
                self.tell(&announcement);
                if is_announced {
                    learned.push(Learned::Told(execution.uid.clone()));
                }
                Ok(learned)
            }
            Err(error) if is_announced => Err(error.with_unconfirmed(announcement)),
            Err(error) => Err(error),
        }
    }

    /// Writes a status. With the uid and the version in the patch, the write fails if the object was replaced or
    /// changed.
    async fn write_status(
        &self,
        (execution, version): (&ExecutionId, &Version),
        patch: Value,
        redaction: Option<&Redaction>,
        ended: Option<Ended>,
    ) -> Result<Vec<Learned>> {
        let (sent, patch) = (patch["status"].clone(), Patch::Merge(patch));
        let params =
            PatchParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PatchParams::default() };
        let executions = self.cluster.executions_in(&execution.namespace);
        let request = executions.patch_status(&execution.name, &params, &patch);
        match self.cluster.call(Verb::Patch, EXECUTION_STATUS, request).await {
            Ok(written) => {
                if let Some(ended) = ended {
                    self.traces.send(ended, &written.object);
                }
                let what = format!("WorkflowExecution {execution}");
                self.take_stored(Kind::Execution, &what, version, &sent, &written.object).await
            }
            Err(error) => {
                let quoted = redaction.map_or(Quoted::Execution(execution), Quoted::Known);
                let error = self.unquoted(error, quoted).await;
                Err(changed_or_call(error, format!("WorkflowExecution {execution}"), "write the status of"))
            }
        }
    }
}

/// Makes the merge patch of a status. A field that is missing in the status stays unchanged; null removes a field.
fn patch(
    execution: &ExecutionId,
    version: &Version,
    subject: &Subject,
    status: &wfe_api::WorkflowExecutionStatus,
) -> Value {
    let mut patch = json!({
        "metadata": {"uid": execution.uid.to_string(), "resourceVersion": version.as_str()},
        "status": status,
    });
    // The number of a run that the execution gave up is not part of the history.
    let ends = status.phase.is_some_and(wfe_api::Phase::is_terminal);
    if subject.gave_up && ends && status.run_sequence.is_none() {
        patch["status"]["runSequence"] = Value::Null;
    }
    // Tekton's report about the run of an earlier attempt does not apply to the next attempt.
    let begins = status.pipeline_run_ref.is_some() && subject.found_run.is_none();
    if subject.is_running && begins && status.pipeline_run_status.is_none() {
        patch["status"]["pipelineRunStatus"] = Value::Null;
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_api::{Phase, PipelineRunRef, WorkflowExecutionStatus};
    use wfe_core::name::Uid;

    fn patch_of(subject: &Subject, status: &WorkflowExecutionStatus) -> Value {
        let execution = ExecutionId { namespace: "ops".into(), name: "a".into(), uid: Uid::new("u") };
        patch(&execution, &Version::new("7"), subject, status)
    }

    fn committed() -> WorkflowExecutionStatus {
        let run = PipelineRunRef { name: "r".to_owned(), uid: "u".to_owned(), namespace: "runs".to_owned() };
        let phase = Some(Phase::Running);
        WorkflowExecutionStatus { phase, pipeline_run_ref: Some(run), ..WorkflowExecutionStatus::default() }
    }

    #[test]
    fn what_tekton_said_of_an_earlier_run_goes_with_the_commit_to_the_next_one() {
        let running = Subject { is_running: true, ..Subject::default() };
        let patch = patch_of(&running, &committed());
        assert_eq!(patch["status"].get("pipelineRunStatus"), Some(&Value::Null));
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        for (subject, status) in [(Subject::default(), committed()), (running, WorkflowExecutionStatus::default())] {
            assert_eq!(patch_of(&subject, &status)["status"].get("pipelineRunStatus"), None, "{status:?}");
        }
    }

    #[test]
    fn a_number_that_was_given_up_goes_with_an_end_that_has_none() {
        let gave_up = Subject { gave_up: true, ..Subject::default() };
        let ended = WorkflowExecutionStatus { phase: Some(Phase::Skipped), ..WorkflowExecutionStatus::default() };
        assert_eq!(patch_of(&gave_up, &ended)["status"].get("runSequence"), Some(&Value::Null));
        assert_eq!(patch_of(&Subject::default(), &ended)["status"].get("runSequence"), None);
        let numbered = WorkflowExecutionStatus { run_sequence: Some(3), ..ended };
        assert_eq!(patch_of(&gave_up, &numbered)["status"]["runSequence"], 3);
    }
}
