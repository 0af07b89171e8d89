//! The live look at a run that has failed: the run, and all that Tekton made for it.

use kube::api::{DynamicObject, ListParams};
use wfe_core::name::RunId;
use wfe_core::residue::ResidueKind;
use wfe_tekton::{Evidence, Object, RUN_UID_LABEL, Remains};

use super::facts::is;
use super::{Learned, Performer, Result, call};

impl Performer {
    /// Looks at a run. Pods are read last, as tasks make them.
    pub(super) async fn examine(&self, run: &RunId, evidence: &Evidence) -> Result<Vec<Learned>> {
        let found = self.read_run(&run.name).await?;
        let found = found.filter(|found| is(&found.metadata, &run.uid));
        let task_runs = self.made_for(run, ResidueKind::TaskRun).await?;
        let mut others = self.made_for(run, ResidueKind::CustomRun).await?;
        others.extend(self.made_for(run, ResidueKind::PipelineRun).await?);
        let pods = self.made_for(run, ResidueKind::Pod).await?;
        let findings = wfe_tekton::examine(
            evidence,
            Remains {
                run: found.as_ref().map(view),
                task_runs: &views(&task_runs),
                others: &views(&others),
                pods: &views(&pods),
            },
        );
        let (started, reason) = (findings.started.reason(), findings.cause.reason);
        tracing::debug!(%run, started, %reason, "looked at a run that failed: {}", findings.cause.message);
        Ok(vec![Learned::Looked(run.uid.clone(), Box::new(findings))])
    }

    /// Lists what Tekton made of one kind for a run.
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
