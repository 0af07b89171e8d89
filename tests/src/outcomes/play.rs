//! One play: its bundle, its obstacles, its script, and how it ends.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Pipeline, World, look};

use super::script::{Act, When};
use crate::quota::quota_of_none;

/// A way in which a run ends.
#[derive(Debug, Clone)]
pub struct Play {
    /// The name of the play and of its fixtures.
    pub name: &'static str,
    /// What happens in the play, in one sentence.
    pub about: &'static str,
    /// The pipeline in the bundle, and its name there; `None` if the bundle does not exist.
    bundle: Option<(Pipeline, &'static str)>,
    /// The time-out of the whole run.
    pub timeout: Option<&'static str>,
    /// The service account of the run's pods.
    pub service_account: Option<&'static str>,
    /// Time-outs for the recorder alone: a plain PipelineRun can have several, an execution only one for the whole run.
    pub plain_timeouts: Option<Value>,
    /// The kind of object that a quota forbids in the namespace of the runs, if any.
    quota: Option<Full>,
    /// Whether the namespace of the runs enforces the restricted Pod Security Standard.
    restricted: bool,
    script: Vec<(When, Act)>,
    /// How the play ends.
    pub end: End,
    /// Which Tekton the play requires.
    pub needs: Needs,
}

/// How a play ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run has finished.
    Done,
    /// The run has finished, but leaves an unfinished pod.
    Leaves,
    /// The run is deleted.
    Gone,
    /// The run never finishes.
    Stuck,
    /// The run cannot be created.
    Refused,
}

/// A kind of object that a quota forbids.
#[derive(Debug, Clone, Copy)]
pub(super) enum Full {
    Runs,
    Pods,
}

/// The Tekton that a play requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Tekton in its released form.
    Shipped,
    /// Tekton after [`repair`](super::repair()).
    Repaired,
}

impl Play {
    /// Returns a play whose bundle has this pipeline, and whose run finishes by itself.
    pub(super) fn of(name: &'static str, about: &'static str, pipeline: Pipeline) -> Self {
        Self {
            name,
            about,
            bundle: Some((pipeline, "workflow")),
            timeout: None,
            service_account: None,
            plain_timeouts: None,
            quota: None,
            restricted: false,
            script: Vec::new(),
            end: End::Done,
            needs: Needs::Shipped,
        }
    }

    pub(super) fn bundle_missing(mut self) -> Self {
        self.bundle = None;
        self
    }

    pub(super) fn pipeline_named(mut self, name: &'static str) -> Self {
        self.bundle = self.bundle.map(|(pipeline, _)| (pipeline, name));
        self
    }

    pub(super) fn timeout(mut self, timeout: &'static str) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(super) fn plain_timeouts(mut self, timeouts: Value) -> Self {
        self.plain_timeouts = Some(timeouts);
        self
    }

    pub(super) fn service_account(mut self, name: &'static str) -> Self {
        self.service_account = Some(name);
        self
    }

    pub(super) fn quota(mut self, on: Full) -> Self {
        self.quota = Some(on);
        self
    }

    pub(super) fn restricted(mut self) -> Self {
        self.restricted = true;
        self
    }

    pub(super) fn then(mut self, when: When, act: Act) -> Self {
        self.script.push((when, act));
        self
    }

    pub(super) fn ends(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    pub(super) fn repaired(mut self) -> Self {
        self.needs = Needs::Repaired;
        self
    }

    /// Adds a parameter to the play's pipeline.
    #[must_use]
    pub fn declares(mut self, parameter: &str) -> Self {
        self.bundle = self.bundle.map(|(pipeline, name)| (pipeline.param(parameter), name));
        self
    }

    /// Sets up the obstacles and pushes the bundle. Returns the bundle's image.
    pub async fn prepare(&self, world: &World) -> Result<String> {
        match self.quota {
            Some(Full::Runs) => quota_of_none(world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await?,
            Some(Full::Pods) => quota_of_none(world, "pods", &look::pods()).await?,
            None => (),
        }
        if self.restricted {
            let namespaces: Api<Namespace> = Api::all(world.client());
            let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
            let name = world.execution_namespace();
            namespaces.patch(&name, &PatchParams::default(), &Patch::Merge(labels)).await?;
        }
        match &self.bundle {
            Some((pipeline, name)) => Ok(world.push_objects(self.name, &[pipeline.render(name)]).await?.image),
            None => Ok(format!("{}/nobody/pushed-this:latest", world.control_plane().registry())),
        }
    }

    /// Performs the acts of the script, each at its moment. The run need not exist yet.
    pub async fn perform(&self, world: &World, run: &str) -> Result<()> {
        for (when, act) in &self.script {
            when.comes(world, run).await.with_context(|| format!("{}: {when:?} did not come", self.name))?;
            act.perform(world, run).await.with_context(|| format!("{}: {act:?} failed", self.name))?;
        }
        Ok(())
    }
}

/// Waits until nothing of a run changes without a person: its tasks are done, and its pods have ended or are gone.
pub async fn await_rest(world: &World) -> Result<()> {
    let succeeded = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Succeeded" && condition["status"] != "Unknown")
    };
    for resource in [look::pipeline_runs(), look::task_runs(), look::custom_runs()] {
        let what = format!("all {} are done", resource.plural);
        world.await_all(&resource, &what, |objects| objects.values().all(succeeded)).await?;
    }
    let ended = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let stays = |pod: &Value| ended(pod) && pod["metadata"]["deletionTimestamp"].is_null();
    world.await_all(&look::pods(), "all pods have ended", |pods| pods.values().all(stays)).await?;
    Ok(())
}
