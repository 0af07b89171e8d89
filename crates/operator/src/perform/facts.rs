//! Confirms the facts that a write depends on, by live reads.

use kube::api::{DynamicObject, ListParams};
use wfe_api::WorkflowExecutionStatus;
use wfe_core::chain::RunNumber;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::{ExecutionId, RunId, Version};
use wfe_core::residue::{ResidueId, ResidueKind};
use wfe_core::run::Order;
use wfe_core::target::TargetName;
use wfe_core::verdict::Fact;
use wfe_tekton::{Descendant, label_value, observe_descendant, observe_run};
use wfe_view::observe::{conditions, observe_execution};
use wfe_view::partial::PartialObject;

use super::objects::{is, is_owned_by};
use super::{Common, EXECUTIONS, Learned, PerformError, Performer, Result, call};
use crate::verb::Verb;

impl Performer {
    /// Confirms facts by live reads, in order, and returns the results. Stops with an error at the first fact that is
    /// not confirmed.
    pub(super) async fn confirm(&self, common: &Common, facts: &[Fact]) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        for fact in facts {
            match fact {
                Fact::Unfinished(run) => self.confirm_unfinished(run).await?,
                Fact::Draining(residue) => self.confirm_draining(residue).await?,
                Fact::Stands(execution) => self.confirm_stands(execution).await?,
                Fact::Holds(execution) => {
                    self.confirm_holds(execution, common.strangers.contains(&execution.uid)).await?;
                }
                Fact::OwnerGone(owner) => learned.push(self.confirm_owner_gone(owner).await?),
                Fact::RunGone(_, run) => {
                    if self.read_run(&run.name).await?.is_some_and(|found| is(&found.metadata, &run.uid)) {
                        return Err(found_after_all(&run.name));
                    }
                }
                Fact::NoRunOf(execution) => {
                    if let Some(target) = &common.target {
                        self.confirm_no_run_of(execution, target).await?;
                    }
                }
                Fact::NothingMade(execution, number) => {
                    if let Some(target) = &common.target {
                        self.confirm_nothing_made(execution, target, *number).await?;
                    }
                }
                Fact::NothingLeft(run) => self.confirm_nothing_left(run).await?,
                Fact::Drained(execution) => {
                    if let Some(target) = &common.target {
                        self.confirm_drained(Some(execution), target).await?;
                    }
                }
                Fact::DrainedOfAll(_) => {
                    if let Some(target) = &common.target {
                        self.confirm_drained(None, target).await?;
                    }
                }
            }
        }
        Ok(learned)
    }

    /// Confirms that an execution did not create a run with this number by a request whose answer was lost.
    async fn confirm_nothing_made(
        &self,
        execution: &ExecutionId,
        target: &TargetName,
        number: RunNumber,
    ) -> Result<()> {
        let name = target.chain().run(number);
        let found = match self.read_run(&name).await {
            // If Tekton's kinds are not installed, no run can exist.
            Err(PerformError::Call { source, .. }) if source.is_kind_missing() => None,
            answer => answer?,
        };
        if found.is_some_and(|found| is_owned_by(&found, execution)) { Err(found_after_all(&name)) } else { Ok(()) }
    }

    /// Confirms that no run with the label of a target has the uid of this execution.
    async fn confirm_no_run_of(&self, execution: &ExecutionId, target: &TargetName) -> Result<()> {
        let runs = self.cluster.runs();
        let selector = format!("{}={}", wfe_api::labels::LABEL_TARGET, label_value(target.as_str()));
        let listed = self.cluster.list(wfe_tekton::PLURAL, &runs, ListParams::default().labels(&selector)).await;
        let listed = listed.map_err(|error| call(format!("list the PipelineRuns of {execution}"), error))?;
        match listed.iter().find(|found| is_owned_by(found, execution)) {
            Some(found) => Err(found_after_all(found.metadata.name.as_deref().unwrap_or_default())),
            None => Ok(()),
        }
    }

    async fn confirm_unfinished(&self, run: &RunId) -> Result<()> {
        let found = self.read_run(&run.name).await?.filter(|found| is(&found.metadata, &run.uid));
        match found.and_then(|found| observe_run(&found.metadata, &found.data, Order(0))) {
            Some((_, observed)) if observed.is_unfinished() => Ok(()),
            _ => Err(PerformError::Refuted { what: format!("PipelineRun {run} is not unfinished any more") }),
        }
    }

    pub(super) async fn confirm_draining(&self, residue: &ResidueId) -> Result<()> {
        let objects = self.cluster.descendants(residue.kind);
        let found = self
            .cluster
            .call(Verb::Get, "descendants", objects.get_opt(&residue.name))
            .await
            .map_err(|error| call(format!("read {} {}", residue.kind.as_str(), residue.name), error))?
            .map(|PartialObject { object, .. }| object);
        let observed = found.and_then(|found| observe_descendant(residue.kind, &found.metadata, &found.data));
        match observed {
            Some(found) if found.residue.id.uid == residue.uid && found.unfinished => Ok(()),
            _ => Err(PerformError::Refuted {
                what: format!("{} {} is not unfinished any more", residue.kind.as_str(), residue.name),
            }),
        }
    }

    /// Confirms that an execution exists, has ended, and was not cleared. Only a failure can be cleared, and a
    /// clearance without effect does not count.
    pub(super) async fn confirm_stands(&self, execution: &ExecutionId) -> Result<()> {
        let found = self.observe_live(execution).await?;
        let stands = found.is_some_and(|found| match found.state {
            ExecutionState::Completed { .. } => true,
            ExecutionState::Failed(_) => {
                // A clearance that no policy guards does not count either.
                found.clearance.is_none_or(|it| it.is_in_vain())
            }
            _ => false,
        });
        if stands {
            Ok(())
        } else {
            Err(PerformError::Refuted {
                what: format!("WorkflowExecution {execution} does not stand in the way any more"),
            })
        }
    }

    /// Confirms that an execution is Running, so it holds its target between two attempts. If no watch delivers the
    /// execution, its status must also show that it waits; otherwise its finished run may be the last one.
    async fn confirm_holds(&self, execution: &ExecutionId, is_stranger: bool) -> Result<()> {
        let found = self.observe_live(execution).await?;
        let holds = found.is_some_and(|found| {
            let is_running = matches!(found.state, ExecutionState::Running { .. });
            is_running && (!is_stranger || found.next_attempt().is_some())
        });
        if holds {
            Ok(())
        } else {
            Err(PerformError::Refuted {
                what: format!("WorkflowExecution {execution} does not hold the target between attempts any more"),
            })
        }
    }

    /// Reads an execution live; `None` if it is gone or another execution has its name.
    pub(super) async fn observe_live(&self, execution: &ExecutionId) -> Result<Option<Execution>> {
        let found = self.read_execution(execution).await?;
        let found = found.and_then(|found| observe_execution(&found, self.cluster.execution_namespace()));
        Ok(found.map(|found| found.execution).filter(|found| found.id.uid == execution.uid))
    }

    /// Confirms that the view of an execution is current before another run is created for it. If the view were behind,
    /// another operator could delete each new run as soon as it is created.
    pub(super) async fn confirm_unchanged(&self, execution: &ExecutionId, version: &Version) -> Result<()> {
        let found = self.read_execution(execution).await?;
        if found.is_some_and(|found| found.metadata.resource_version.as_deref() == Some(version.as_str())) {
            return Ok(());
        }
        Err(PerformError::Refuted { what: format!("WorkflowExecution {execution} has changed") })
    }

    /// Reads the status of an execution in the version that the decision saw. After the end, a write changes one
    /// condition and must keep the others. This is rare, so they are read when needed, and not stored for all
    /// executions.
    pub(super) async fn status_of(
        &self,
        execution: &ExecutionId,
        version: &Version,
    ) -> Result<WorkflowExecutionStatus> {
        let found = self.read_execution(execution).await?;
        let found = found.filter(|found| found.metadata.resource_version.as_deref() == Some(version.as_str()));
        let changed = || PerformError::Changed { what: format!("WorkflowExecution {execution}") };
        let status = |found: DynamicObject| {
            let read = serde_json::from_value::<WorkflowExecutionStatus>(found.data["status"].clone());
            // Another program may have written fields that cannot be parsed, so the conditions are read one by one.
            WorkflowExecutionStatus { conditions: conditions(&found.data), ..read.unwrap_or_default() }
        };
        found.map(status).ok_or_else(changed)
    }

    /// Confirms that no descendant of any run is left on a target, except those of the execution `except`. The
    /// examination proves that the view of runs is complete, but the watches of tasks and pods may be behind. Pods are
    /// read last, because tasks create them.
    pub(super) async fn confirm_drained(&self, except: Option<&ExecutionId>, target: &TargetName) -> Result<()> {
        for kind in [ResidueKind::TaskRun, ResidueKind::CustomRun, ResidueKind::PipelineRun, ResidueKind::Pod] {
            let left = self.list_left(kind, target).await?;
            let is_excepted = |left: &Descendant| except.is_some_and(|execution| left.residue.owner.is(execution));
            if let Some(left) = left.into_iter().find(|left| !is_excepted(left)) {
                let (kind, name) = (left.residue.id.kind.as_str(), left.residue.id.name);
                return Err(PerformError::Refuted { what: format!("{kind} {name} is left of an earlier run") });
            }
        }
        Ok(())
    }

    /// Confirms that no descendant of a finished run is left. The watches of tasks and pods may be behind, and tasks
    /// may outlive their run for an unknown time. Pods are read last, because tasks create them.
    pub(super) async fn confirm_nothing_left(&self, run: &RunId) -> Result<()> {
        for kind in [ResidueKind::TaskRun, ResidueKind::CustomRun, ResidueKind::PipelineRun, ResidueKind::Pod] {
            let made = self.made_for(run, kind).await?;
            let mut descendants =
                made.iter().filter_map(|found| observe_descendant(kind, &found.metadata, &found.data));
            if let Some(left) = descendants.find(|found| found.unfinished) {
                let name = left.residue.id.name;
                return Err(PerformError::Refuted {
                    what: format!("{} {name} is left of PipelineRun {run}", kind.as_str()),
                });
            }
        }
        Ok(())
    }

    /// Lists the unfinished descendants of one kind on a target.
    async fn list_left(&self, kind: ResidueKind, target: &TargetName) -> Result<Vec<Descendant>> {
        let objects = self.cluster.descendants(kind);
        let selector = format!("{}={}", wfe_api::labels::LABEL_TARGET, label_value(target.as_str()));
        let listed = self.cluster.list("descendants", &objects, ListParams::default().labels(&selector)).await;
        let listed = listed
            .map_err(|error| call(format!("list what is left of runs on {target} ({})", kind.as_str()), error))?;
        let descendants = listed
            .iter()
            // The chain's own runs have the label, too, but they are judged elsewhere.
            .filter(|found| observe_run(&found.metadata, &found.data, Order(0)).is_none())
            .filter_map(|found| observe_descendant(kind, &found.metadata, &found.data));
        // Another target may have the same label value.
        Ok(descendants.filter(|found| found.unfinished && found.chain == target.chain()).collect())
    }

    pub(super) async fn confirm_owner_gone(&self, owner: &ExecutionId) -> Result<Learned> {
        let found = self.read_execution(owner).await?;
        if found.is_some_and(|found| is(&found.metadata, &owner.uid)) {
            return Err(PerformError::Refuted { what: format!("WorkflowExecution {owner} is there after all") });
        }
        Ok(Learned::OwnerGone(owner.clone()))
    }

    pub(super) async fn read_execution(&self, execution: &ExecutionId) -> Result<Option<DynamicObject>> {
        let executions = self.cluster.executions_in(&execution.namespace);
        self.cluster
            .call(Verb::Get, EXECUTIONS, executions.get_opt(&execution.name))
            .await
            .map(|found| found.map(|PartialObject { object, .. }| object))
            .map_err(|error| call(format!("read WorkflowExecution {execution}"), error))
    }

    pub(super) async fn read_run(&self, name: &str) -> Result<Option<DynamicObject>> {
        let runs = self.cluster.runs();
        self.cluster
            .call(Verb::Get, wfe_tekton::PLURAL, runs.get_opt(name))
            .await
            .map(|found| found.map(|PartialObject { object, .. }| object))
            .map_err(|error| call(format!("read PipelineRun {name}"), error))
    }
}

/// Reports a run that exists although the watch does not show it yet.
fn found_after_all(run: &str) -> PerformError {
    PerformError::Refuted { what: format!("PipelineRun {run} is there after all") }
}

#[cfg(test)]
mod tests;
