//! The live reads that a write rests on.

use kube::api::DynamicObject;
use wfe_core::name::{ExecutionId, RunId};
use wfe_core::residue::ResidueId;
use wfe_core::run::Order;
use wfe_tekton::{observe_descendant, observe_run};

use super::{EXECUTIONS, Learned, PerformError, Performer, Result, call};
use crate::client::Verb;

impl Performer {
    pub(super) async fn confirm_unfinished(&self, run: &RunId) -> Result<()> {
        let found = self.read_run(&run.name).await?;
        let observed = found.as_ref().and_then(|found| observe_run(&found.metadata, &found.data, Order(0)));
        match observed {
            Some((_, found)) if found.id.uid == run.uid && found.is_unfinished() => Ok(()),
            _ => Err(PerformError::Refuted { what: format!("PipelineRun {run} is not unfinished any more") }),
        }
    }

    pub(super) async fn confirm_draining(&self, residue: &ResidueId) -> Result<()> {
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

    /// The execution is there, terminal, and not cleared.
    pub(super) async fn confirm_stands(&self, execution: &ExecutionId) -> Result<()> {
        let found = self.read_execution(execution).await?;
        let stands = found.is_some_and(|found| {
            found.metadata.uid.as_deref() == Some(execution.uid.as_str())
                && matches!(found.data["status"]["phase"].as_str(), Some("Completed" | "Failed"))
                && found.data["spec"]["clearance"].is_null()
        });
        if stands {
            Ok(())
        } else {
            Err(PerformError::Refuted {
                what: format!("WorkflowExecution {execution} does not stand in the way any more"),
            })
        }
    }

    pub(super) async fn confirm_uncommitted(&self, owner: &ExecutionId, run: &RunId) -> Result<()> {
        let found = self.read_execution(owner).await?;
        let committed = found.and_then(|found| {
            let status = found.data.get("status")?;
            (status["phase"] == "Running")
                .then(|| status.pointer("/pipelineRunRef/uid")?.as_str().map(str::to_owned))?
        });
        if committed.as_deref() == Some(run.uid.as_str()) {
            return Err(PerformError::Refuted { what: format!("WorkflowExecution {owner} has committed to {run}") });
        }
        Ok(())
    }

    pub(super) async fn confirm_owner_gone(&self, owner: &ExecutionId) -> Result<Learned> {
        let found = self.read_execution(owner).await?;
        if found.is_some_and(|found| found.metadata.uid.as_deref() == Some(owner.uid.as_str())) {
            return Err(PerformError::Refuted { what: format!("WorkflowExecution {owner} is there after all") });
        }
        Ok(Learned::OwnerGone(owner.clone()))
    }

    async fn read_execution(&self, execution: &ExecutionId) -> Result<Option<DynamicObject>> {
        let executions = self.cluster.executions_in(&execution.namespace);
        self.cluster
            .call(Verb::Get, EXECUTIONS, executions.get_opt(&execution.name))
            .await
            .map_err(|error| call(format!("read WorkflowExecution {execution}"), error))
    }

    pub(super) async fn read_run(&self, name: &str) -> Result<Option<DynamicObject>> {
        let runs = self.cluster.runs();
        self.cluster
            .call(Verb::Get, wfe_tekton::PLURAL, runs.get_opt(name))
            .await
            .map_err(|error| call(format!("read PipelineRun {name}"), error))
    }
}
