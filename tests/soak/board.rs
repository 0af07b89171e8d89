//! The current WorkflowExecutions of the world, which a watch keeps up to date.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use wfe_testkit::{World, wfe};

/// A view that follows the API server.
pub(crate) struct Board {
    api: Api<DynamicObject>,
    store: Store<DynamicObject>,
    writer: std::cell::Cell<Option<reflector::store::Writer<DynamicObject>>>,
}

impl Board {
    pub(crate) fn new(world: &World) -> Self {
        let writer = reflector::store::Writer::new(wfe::resource());
        let api = world.api(&wfe::resource(), world.namespace());
        Self { api, store: writer.as_reader(), writer: std::cell::Cell::new(Some(writer)) }
    }

    /// Follows the watch. Returns only with an error.
    pub(crate) async fn follow(&self) -> Result<()> {
        let Some(writer) = self.writer.take() else { bail!("the board is followed already") };
        let events = watcher(self.api.clone(), watcher::Config::default()).default_backoff();
        let mut events = events.reflect(writer).boxed();
        while events.next().await.is_some() {}
        bail!("the watch of the board has ended")
    }

    /// Returns the executions whose name begins with this prefix.
    pub(crate) fn named(&self, prefix: &str) -> Vec<Arc<DynamicObject>> {
        let mut found = self.store.state();
        found.retain(|wfe| wfe.metadata.name.as_deref().is_some_and(|name| name.starts_with(prefix)));
        found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        found
    }

    /// Returns the number of executions in each phase.
    pub(crate) fn summary(&self) -> String {
        let mut phases: BTreeMap<String, usize> = BTreeMap::new();
        for wfe in self.store.state() {
            *phases.entry(phase(&wfe).to_owned()).or_default() += 1;
        }
        let phases: Vec<String> = phases.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
        format!("now: {}", phases.join(", "))
    }
}

/// Returns the phase of an execution, or `undecided` if there is none.
pub(crate) fn phase(wfe: &DynamicObject) -> &str {
    wfe.data.pointer("/status/phase").and_then(Value::as_str).unwrap_or("undecided")
}

/// Returns whether an execution has ended.
pub(crate) fn is_terminal(wfe: &DynamicObject) -> bool {
    matches!(phase(wfe), "Completed" | "Failed" | "Skipped")
}

/// Returns the name of an execution.
pub(crate) fn name(wfe: &DynamicObject) -> &str {
    wfe.metadata.name.as_deref().unwrap_or_default()
}
