//! The live reads of what no watch delivers: writes that stay unseen, and runs that lost our label.

use futures::{StreamExt, stream};
use kube::api::DynamicObject;
use wfe_core::name::{ExecutionId, RunId, ScheduleId};
use wfe_core::run::Order;
use wfe_tekton::observe_run;
use wfe_view::index::{Expected, Key, Kind, Live};

use super::facts::is;
use super::runs::has_our_label;
use super::{Learned, PARALLEL_WRITES, PerformError, Performer, Report, Result};
use crate::events::Announcement;

impl Performer {
    /// Reads the objects whose writes have been awaited for long.
    pub async fn read_awaited(self, key: Key, awaited: Vec<Expected>) -> (Key, Report) {
        let reads = stream::iter(awaited).map(|expected| self.read_one(expected));
        let mut report = Report::default();
        for read in reads.buffer_unordered(PARALLEL_WRITES).collect::<Vec<_>>().await {
            match read {
                Ok(learned) => report.learned.extend(learned),
                Err(error) => report.errors.push(error),
            }
        }
        (key, report)
    }

    /// A run without our label is taken in as it was read: where it is pending still, nobody else would ever see to it.
    async fn read_one(&self, expected: Expected) -> Result<Vec<Learned>> {
        let object = expected.object();
        let found = match object.kind {
            Kind::Execution => {
                let (namespace, name, uid) = (object.namespace.clone(), object.name.clone(), object.uid.clone());
                self.read_execution(&ExecutionId { namespace, name, uid }).await?
            }
            Kind::Schedule => {
                let (namespace, name, uid) = (object.namespace.clone(), object.name.clone(), object.uid.clone());
                self.read_schedule(&ScheduleId { namespace, name, uid }).await?
            }
            _ => self.read_run(&object.name).await?,
        };
        let mut learned = Vec::new();
        let live = match found.filter(|found| is(&found.metadata, &object.uid)) {
            None => Live::Gone,
            Some(run) if object.kind == Kind::Run && !has_our_label(&run) => {
                let id = RunId { name: (&*object.name).into(), uid: object.uid.clone() };
                learned.extend(unwatched(&id, &run).unwrap_or_default()); // one with a controller is none of ours
                Live::Unlabelled
            }
            Some(_) => Live::There,
        };
        tracing::warn!(%object, ?live, "no watch has delivered what was written; read live");
        learned.insert(0, Learned::Read(expected, live));
        Ok(learned)
    }

    /// Reads a run that its watch does not deliver any more.
    pub(super) async fn follow(&self, run: &RunId) -> Result<Vec<Learned>> {
        match self.read_run(&run.name).await?.filter(|found| is(&found.metadata, &run.uid)) {
            Some(found) => unwatched(run, &found),
            None => Ok(vec![Learned::RunGone(run.uid.clone())]),
        }
    }

    /// A run that the watch does not show is there after all. With our label, the watch will show it; without, it is
    /// followed by reading it, and somebody is told to find out who takes labels off.
    pub(super) fn found_after_all(
        &self,
        execution: &ExecutionId,
        run: &RunId,
        found: &DynamicObject,
    ) -> Result<Vec<Learned>> {
        if has_our_label(found) {
            return Err(PerformError::Refuted { what: format!("PipelineRun {run} is there after all") });
        }
        let learned = unwatched(run, found)?;
        tracing::warn!(
            wfe = %execution, %run, label = wfe_api::labels::LABEL_WORKFLOW_EXECUTION,
            "somebody took our label off this PipelineRun, so no watch shows it; it is read every ten seconds until it ends"
        );
        self.events.announce(Announcement::label_removed(execution, run));
        Ok(learned)
    }
}

/// Makes of a live read of a run what its watch would have delivered.
pub(super) fn unwatched(run: &RunId, found: &DynamicObject) -> Result<Vec<Learned>> {
    let observed = observe_run(&found.metadata, &found.data, Order(0));
    let (chain, live) = observed
        .ok_or_else(|| PerformError::Refuted { what: format!("PipelineRun {run} belongs to a controller now") })?;
    Ok(vec![Learned::Unwatched(chain, Box::new(live))])
}
