//! A recorder of every change to a world's executions, schedules, PipelineRuns, and the tasks and pods of runs, in the
//! order of the API server.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::ApiResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::awaits::plain;
use crate::world::World;
use crate::{look, wfe};

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Change {
    /// The object existed before the recording began.
    Existing,
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted. [`Observed::object`] is its last state.
    Deleted,
}

/// One change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Observed {
    /// Such as `PipelineRun`.
    pub kind: String,
    /// What happened.
    pub change: Change,
    /// Gives the order of changes, within a kind and across the kinds.
    pub resource_version: u64,
    /// When the change arrived at the recorder, in milliseconds since the recording began.
    pub at_ms: u64,
    /// The object after the change.
    pub object: Value,
}

/// A recording in progress.
#[derive(Debug)]
#[must_use = "nothing is known until `stop`"]
pub struct Recording {
    tapes: Vec<Tape>,
}

#[derive(Debug)]
struct Tape {
    api: Api<DynamicObject>,
    seen: Arc<Mutex<Vec<Observed>>>,
    task: JoinHandle<Result<()>>,
}

/// How long the last changes may take to arrive after the recording is stopped.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// The duration of a watch, which is below the API server's own limit.
const WATCH_SECONDS: u32 = 280;

impl World {
    /// Starts to record `WorkflowExecutions`, `WorkflowSchedules` and `PipelineRuns`. Every change after this call
    /// returns is recorded.
    pub async fn record(&self) -> Result<Recording> {
        self.record_kinds([look::pipeline_runs()]).await
    }

    /// Starts to record what [`World::record`] records, and also TaskRuns, `CustomRuns` and pods.
    pub async fn record_all(&self) -> Result<Recording> {
        self.record_kinds([look::pipeline_runs(), look::task_runs(), look::custom_runs(), look::pods()]).await
    }

    /// Starts to record only `WorkflowExecutions`. [`Recording::and`] then adds another world that has the same
    /// execution namespace.
    pub async fn record_executions(&self) -> Result<Recording> {
        let executions = self.api(&wfe::resource(), self.namespace());
        Ok(Recording { tapes: vec![Tape::start(executions, wfe::resource(), Instant::now()).await?] })
    }

    async fn record_kinds(&self, of_runs: impl IntoIterator<Item = ApiResource>) -> Result<Recording> {
        let begun = Instant::now();
        let (watched, execution) = (self.namespace().to_owned(), self.execution_namespace());
        let mut tapes = vec![Tape::start(self.api(&wfe::resource(), &watched), wfe::resource(), begun).await?];
        // The control plane may have the kinds of an older release, without schedules.
        let schedules = self.api(&wfe::schedules(), &watched);
        match schedules.list(&ListParams::default().limit(1)).await {
            Ok(_) => tapes.push(Tape::start(schedules, wfe::schedules(), begun).await?),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error).context("no list of workflowschedules"),
        }
        for resource in of_runs {
            tapes.push(Tape::start(self.api(&resource, &execution), resource, begun).await?);
        }
        Ok(Recording { tapes })
    }
}

impl Recording {
    /// Adds the changes of another recording to this one.
    pub fn and(mut self, other: Self) -> Self {
        self.tapes.extend(other.tapes);
        self
    }

    /// Returns the changes that have been recorded so far, ordered by resourceVersion. The latest changes may still be
    /// missing.
    #[must_use]
    pub fn so_far(&self) -> Vec<Observed> {
        let seen = |tape: &Tape| tape.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all: Vec<Observed> = self.tapes.iter().flat_map(seen).collect();
        all.sort_by_key(|one| one.resource_version);
        all
    }

    /// Waits until all changes up to now have arrived, ends the recording, and returns the changes in the order of
    /// their resourceVersions.
    pub async fn stop(self) -> Result<Vec<Observed>> {
        let mut all = Vec::new();
        for tape in self.tapes {
            all.extend(tape.stop().await?);
        }
        all.sort_by_key(|one| one.resource_version);
        Ok(all)
    }
}

/// Writes a recording as JSON lines.
pub fn write(recording: &[Observed], mut to: impl Write) -> Result<()> {
    for one in recording {
        writeln!(to, "{}", serde_json::to_string(one)?)?;
    }
    Ok(())
}

impl Tape {
    async fn start(api: Api<DynamicObject>, resource: ApiResource, begun: Instant) -> Result<Self> {
        let first =
            api.list(&ListParams::default()).await.with_context(|| format!("no list of {}", resource.plural))?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let recorder = Recorder { kind: resource.kind, begun, seen: Arc::clone(&seen) };
        for object in &first.items {
            recorder.note(Change::Existing, object)?;
        }
        let version = first.metadata.resource_version.context("a list without a resourceVersion")?;
        let task = tokio::spawn(recorder.follow(api.clone(), version));
        Ok(Self { api, seen, task })
    }

    async fn stop(self) -> Result<Vec<Observed>> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        while !self.has_all().await? {
            if self.task.is_finished() {
                self.task.await.context("the recorder panicked")??;
                bail!("the recorder ended");
            }
            if Instant::now() > deadline {
                bail!("the recording lags behind what the API server has after {SETTLES_WITHIN:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.task.abort();
        Ok(std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns whether the last recorded state of each object is its current state in the API server.
    async fn has_all(&self) -> Result<bool> {
        let now = self.api.list(&ListParams::default()).await?;
        let now: HashMap<String, String> = now
            .items
            .into_iter()
            .filter_map(|object| Some((object.metadata.uid?, object.metadata.resource_version?)))
            .collect();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last: HashMap<&str, &str> = HashMap::new();
        for one in seen.iter() {
            let metadata = &one.object["metadata"];
            let uid = metadata["uid"].as_str().unwrap_or_default();
            if one.change == Change::Deleted {
                last.remove(uid);
            } else {
                last.insert(uid, metadata["resourceVersion"].as_str().unwrap_or_default());
            }
        }
        Ok(last.len() == now.len()
            && now.iter().all(|(uid, version)| last.get(uid.as_str()).is_some_and(|seen| seen == version)))
    }
}

struct Recorder {
    kind: String,
    begun: Instant,
    seen: Arc<Mutex<Vec<Observed>>>,
}

impl Recorder {
    /// Watches from `version` on. Returns an error if a change may have been missed.
    async fn follow(self, api: Api<DynamicObject>, mut version: String) -> Result<()> {
        loop {
            let params = WatchParams::default().timeout(WATCH_SECONDS);
            let Ok(stream) = api.watch(&params, &version).await else {
                // The API server may be down. The watch begins at the same version again.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            futures::pin_mut!(stream);
            while let Some(Ok(event)) = stream.next().await {
                let (change, object) = match event {
                    WatchEvent::Added(object) => (Change::Added, object),
                    WatchEvent::Modified(object) => (Change::Modified, object),
                    WatchEvent::Deleted(object) => (Change::Deleted, object),
                    WatchEvent::Bookmark(bookmark) => {
                        version = bookmark.metadata.resource_version;
                        continue;
                    }
                    WatchEvent::Error(status) if status.code == 410 => {
                        version = self.catch_up(&api).await?;
                        continue;
                    }
                    WatchEvent::Error(status) => bail!("the recording has a gap: {} {}", status.code, status.message),
                };
                self.note(change, &object)?;
                version = object.metadata.resource_version.unwrap_or(version);
            }
        }
    }

    /// Lists the objects after a watch whose version has expired, such as after a restart of the API server. Records
    /// how the listed objects differ from their last recorded states, and returns the version to continue from.
    async fn catch_up(&self, api: &Api<DynamicObject>) -> Result<String> {
        let now = api.list(&ListParams::default()).await.context("no list after a watch that expired")?;
        let mut gone = self.last_states();
        for object in &now.items {
            let last = gone.remove(object.metadata.uid.as_deref().unwrap_or_default());
            let known = last.as_ref().and_then(|last| last.metadata.resource_version.as_ref());
            if known != object.metadata.resource_version.as_ref() {
                self.note(if last.is_some() { Change::Modified } else { Change::Added }, object)?;
            }
        }
        for mut object in gone.into_values() {
            object.metadata.resource_version.clone_from(&now.metadata.resource_version);
            self.note(Change::Deleted, &object)?;
        }
        now.metadata.resource_version.context("a list without a resourceVersion")
    }

    /// Returns the last recorded state of each object that is not deleted, by uid.
    fn last_states(&self) -> HashMap<String, DynamicObject> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = HashMap::new();
        for one in seen.iter() {
            let uid = one.object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            match serde_json::from_value(one.object.clone()) {
                Ok(object) if one.change != Change::Deleted => last.insert(uid, object),
                _ => last.remove(&uid),
            };
        }
        last
    }

    fn note(&self, change: Change, object: &DynamicObject) -> Result<()> {
        let version = object.metadata.resource_version.as_deref().context("an object without a resourceVersion")?;
        let observed = Observed {
            kind: self.kind.clone(),
            change,
            resource_version: version.parse().context("a resourceVersion that is no number")?,
            at_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            object: plain(object)?,
        };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(observed);
        Ok(())
    }
}
