//! Follows `WorkflowExecutions`, and prints each change of phase when the watch delivers it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::DynamicObject;
use kube::runtime::watcher;
use serde_json::Value;
use tokio::time::Instant;

use super::screen::{Screen, Tone};
use super::stage::{EXECUTION_NAMESPACE, Stage};

const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// The last status that the watch delivered of each execution, by name.
pub(super) type Statuses = BTreeMap<String, Value>;

/// A watch of the demo's executions.
pub(super) struct Follower<'a> {
    screen: &'a Screen,
    changes: BoxStream<'static, watcher::Result<watcher::Event<DynamicObject>>>,
    pub(super) statuses: Statuses,
}

impl<'a> Follower<'a> {
    /// Starts the watch. Every change after this call returns is delivered.
    pub(super) async fn begin(screen: &'a Screen, stage: &Stage) -> Result<Self> {
        let changes = watcher(stage.executions(), watcher::Config::default()).boxed();
        let mut follower = Self { screen, changes, statuses: Statuses::new() };
        let begun = async { while !matches!(follower.changes.try_next().await, Ok(Some(watcher::Event::InitDone))) {} };
        tokio::time::timeout(BEGINS_WITHIN, begun)
            .await
            .with_context(|| format!("the WorkflowExecutions cannot be watched after {BEGINS_WITHIN:?}"))?;
        Ok(follower)
    }

    /// Prints changes until `enough` returns true. After the deadline it returns an error that names the awaited state.
    pub(super) async fn until(
        &mut self,
        what: &str,
        deadline: Duration,
        enough: impl Fn(&Statuses) -> bool,
    ) -> Result<()> {
        let end = Instant::now() + deadline;
        while !enough(&self.statuses) {
            match tokio::time::timeout_at(end, self.changes.try_next()).await {
                Err(_) => bail!("awaited for {deadline:?}, in vain: {what}; seen instead: {}", self.phases()),
                // The watch retries on its own, and the deadline limits the retries.
                Ok(Err(_) | Ok(None)) => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(Ok(Some(watcher::Event::Apply(object) | watcher::Event::InitApply(object)))) => {
                    self.take_in(object)?;
                }
                Ok(Ok(Some(_))) => {}
            }
        }
        Ok(())
    }

    fn take_in(&mut self, mut object: DynamicObject) -> Result<()> {
        let name = object.metadata.name.unwrap_or_default();
        let status = object.data["status"].take();
        let known = self.statuses.get(&name);
        if known.is_none_or(|known| phase(known) != phase(&status)) {
            self.show(&name, &status)?;
        }
        self.statuses.insert(name, status);
        Ok(())
    }

    fn show(&self, name: &str, status: &Value) -> Result<()> {
        let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (tone, details) = match phase(status) {
            "" => return Ok(()), // the demo itself has printed that the execution was created
            "Running" => (Tone::Busy, format!("PipelineRun {EXECUTION_NAMESPACE}/{}", text("/pipelineRunRef/name"))),
            "Completed" => (Tone::Good, format!("after {}: {}", text("/duration"), text("/pipelineRunStatus/message"))),
            "Skipped" => {
                let behind = text("/skipDetails/conflictingWorkflow/name");
                (Tone::Held, format!("{}, behind {behind}", text("/skipDetails/reason")))
            }
            _ => (Tone::Bad, format!("{}: {}", text("/failureDetails/reason"), text("/failureDetails/message"))),
        };
        Ok(self.screen.line(name, phase(status), tone, &details)?)
    }

    fn phases(&self) -> String {
        let phases = self.statuses.iter().map(|(name, status)| match phase(status) {
            "" => format!("{name} undecided"),
            phase => format!("{name} {phase}"),
        });
        let phases: Vec<String> = phases.collect();
        if phases.is_empty() { "nothing".to_owned() } else { phases.join(", ") }
    }
}

/// Returns the phase; empty for an execution without one.
pub(super) fn phase(status: &Value) -> &str {
    status["phase"].as_str().unwrap_or_default()
}
