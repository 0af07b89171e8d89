//! Examines a failed run, or a run that is deleted before it ended: reads the run and all its descendants live.

use kube::api::{DynamicObject, ListParams};
use wfe_core::name::RunId;
use wfe_core::residue::ResidueKind;
use wfe_tekton::{Evidence, Object, RUN_UID_LABEL, Remains, observe_descendant};

use super::objects::is;
use super::{Learned, Performer, Result, call};

impl Performer {
    /// Examines a run. Pods are read last, because tasks create them.
    pub(super) async fn examine(&self, run: &RunId, evidence: &Evidence) -> Result<Vec<Learned>> {
        let found = self.read_run(&run.name).await?;
        let found = found.filter(|found| is(&found.metadata, &run.uid));
        let task_runs = self.made_for(run, ResidueKind::TaskRun).await?;
        let custom_runs = self.made_for(run, ResidueKind::CustomRun).await?;
        let child_runs = self.made_for(run, ResidueKind::PipelineRun).await?;
        let pods = self.made_for(run, ResidueKind::Pod).await?;
        let findings = wfe_tekton::examine(
            evidence,
            Remains {
                run: found.as_ref().map(view),
                task_runs: &views(&task_runs),
                others: &[views(&custom_runs), views(&child_runs)].concat(),
                pods: &views(&pods),
            },
        );
        let (started, reason) = (findings.started.reason(), findings.cause.reason);
        tracing::debug!(%run, started, %reason, "looked at a run that failed: {}", findings.cause.message);
        let of_kind = |kind: ResidueKind, made: &[DynamicObject]| {
            let seen = made.iter().filter_map(|object| observe_descendant(kind, &object.metadata, &object.data));
            seen.filter(|seen| seen.unfinished).count()
        };
        let is_bare = of_kind(ResidueKind::TaskRun, &task_runs) + of_kind(ResidueKind::CustomRun, &custom_runs) == 0
            && of_kind(ResidueKind::PipelineRun, &child_runs) + of_kind(ResidueKind::Pod, &pods) == 0;
        Ok(vec![Learned::Looked(run.uid.clone(), Box::new(findings), is_bare)])
    }

    /// Lists the descendants of a run that are of one kind.
    pub(super) async fn made_for(&self, run: &RunId, kind: ResidueKind) -> Result<Vec<DynamicObject>> {
        let selection = ListParams::default().labels(&format!("{RUN_UID_LABEL}={}", run.uid));
        let listed = self.cluster.list("descendants", &self.cluster.descendants(kind), selection).await;
        listed.map_err(|error| call(format!("list what was made of {run} ({})", kind.as_str()), error))
    }
}

pub(super) fn view(object: &DynamicObject) -> Object<'_> {
    Object { meta: &object.metadata, data: &object.data }
}

fn views(objects: &[DynamicObject]) -> Vec<Object<'_>> {
    objects.iter().map(view).collect()
}
