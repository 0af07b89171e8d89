//! Observes from outside when executions get their runs and change their phases. It works in the same way for the
//! operator and the floor client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use wfe_testkit::World;

use crate::api::{self, Change, Collection, Object, changes};
use crate::player::PATIENCE;

/// What the observer has seen so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// When the run of each execution was created.
    pub(crate) created: HashMap<String, Instant>,
    /// When each execution began to run.
    pub(crate) running: HashMap<String, Instant>,
    /// When the run of each execution was released to Tekton.
    pub(crate) released: HashMap<String, Instant>,
    /// When each execution began to wait.
    pub(crate) waiting: HashMap<String, Instant>,
    /// When each execution was skipped.
    pub(crate) skipped: HashMap<String, Instant>,
    /// When each execution ended, with any outcome.
    pub(crate) ended: HashMap<String, Instant>,
    broken: Option<String>,
}

impl Seen {
    /// Returns when the first run was created.
    pub(crate) fn first_run(&self) -> Option<Instant> {
        self.created.values().min().copied()
    }

    fn take_in(&mut self, is_run: bool, object: Object) {
        let now = Instant::now();
        let name = object.metadata.name;
        if is_run {
            let owner = object.metadata.labels.owner;
            if object.spec.status.is_empty() {
                self.released.entry(owner.clone()).or_insert(now);
            }
            self.created.entry(owner).or_insert(now);
            return;
        }
        let times = match object.status.phase.as_str() {
            "Pending" => &mut self.waiting,
            "Running" => &mut self.running,
            "Skipped" => &mut self.skipped,
            "Completed" | "Failed" => &mut self.ended,
            _ => return,
        };
        times.entry(name).or_insert(now);
    }
}

/// Two watches in a world, which end when the observer is dropped.
#[derive(Debug)]
pub(crate) struct Observer {
    seen: Arc<(Mutex<Seen>, Notify)>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Observer {
    /// Starts to watch. Objects that exist already are not observed.
    pub(crate) async fn start(world: &World) -> Result<Self> {
        let seen: Arc<(Mutex<Seen>, Notify)> = Arc::default();
        let mut tasks = Vec::new();
        let of_world = [(api::executions(world.namespace()), false), (api::runs(&world.execution_namespace()), true)];
        for (collection, is_run) in of_world {
            let client = world.client();
            let version = collection.list_bare(&client).await?;
            let seen = Arc::clone(&seen);
            tasks.push(tokio::spawn(async move {
                let result = follow(&client, &collection, version, is_run, &seen).await;
                let why = result.err().map_or_else(|| "the watch ended".to_owned(), |error| format!("{error:#}"));
                lock(&seen.0).broken = Some(why);
                seen.1.notify_waiters();
            }));
        }
        Ok(Self { seen, tasks })
    }

    /// Waits until `found` returns a value, and returns the value.
    pub(crate) async fn until<T>(&self, what: &str, found: impl Fn(&Seen) -> Option<T>) -> Result<T> {
        let search = async {
            loop {
                let news = self.seen.1.notified();
                let mut news = std::pin::pin!(news);
                news.as_mut().enable();
                {
                    let seen = lock(&self.seen.0);
                    if let Some(found) = found(&seen) {
                        return Ok(found);
                    }
                    if let Some(why) = &seen.broken {
                        bail!("awaited {what}, and then {why}");
                    }
                }
                news.await;
            }
        };
        tokio::time::timeout(PATIENCE, search).await.with_context(|| {
            let seen = lock(&self.seen.0);
            let Seen { created, waiting, running, skipped, ended, .. } = &*seen;
            let counts = [created, waiting, running, skipped, ended].map(HashMap::len);
            format!("awaited {what} for {PATIENCE:?}; created, waiting, running, skipped, ended: {counts:?}")
        })?
    }
}

/// Follows one collection. If an API server stops and closes the watch, the watch is opened again from the same
/// version. If the API server no longer has this version, the watch begins with a list.
async fn follow(
    client: &kube::Client,
    collection: &Collection,
    mut version: String,
    is_run: bool,
    seen: &(Mutex<Seen>, Notify),
) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE * 4 {
        let Ok(stream) = collection.watch(client, &version).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut there = Vec::new();
            if let Ok(listed) = collection.list(client, |page: Vec<Object>| there.extend(page)).await {
                version = listed;
                let mut seen = lock(&seen.0);
                for object in there {
                    seen.take_in(is_run, object);
                }
            }
            seen.1.notify_waiters();
            continue;
        };
        let mut changes = std::pin::pin!(changes(stream));
        while let Some(change) = changes.next().await {
            // The connection broke within a line.
            let Ok(Change { kind, object }) = change else { break };
            if kind == "ERROR" {
                "expired".clone_into(&mut version);
                break;
            }
            version.clone_from(&object.metadata.resource_version);
            if kind != "DELETED" {
                lock(&seen.0).take_in(is_run, object);
                seen.1.notify_waiters();
            }
        }
    }
    bail!("nobody waited any more");
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
