//! The players, one for each target. A player creates bursts of executions, and acts on them as people and programs do.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, WfeBuilder, World, wfe};

use crate::board::{self, Board};

const TARGETS: usize = 20;
/// The size of a burst on one target. With twenty targets, two hundred executions are in progress at once.
const BURST: usize = 10;
/// How often a player examines its executions.
const TICK: Duration = Duration::from_millis(200);
/// How long all executions may take to come to rest after the faults have stopped: several deadlines in sequence.
const SETTLES_WITHIN: Duration = Duration::from_mins(4);

/// All players.
pub(crate) struct Load<'a> {
    world: &'a World,
    board: &'a Board,
    bundles: Bundles,
}

/// The bundles of the workflows, which differ in how they end.
pub(crate) struct Bundles {
    pub(crate) short: String,
    pub(crate) failing: String,
    held: String,
    lingering: String,
}

/// The kind of an execution in a burst.
#[derive(Clone, Copy)]
enum Kind {
    Short,
    Failing,
    /// The run continues until its player ends it.
    Held,
    /// Like [`Kind::Held`], and a deleted pod stays until the player releases it.
    Lingering,
    /// The digest in the image differs from the digest field.
    Unusable,
    /// The bundle does not exist.
    Missing,
}

impl<'a> Load<'a> {
    pub(crate) async fn new(world: &'a World, board: &'a Board) -> Result<Self> {
        let held = Pipeline::new().task("apply", Outcome::Hold).lasting("100ms");
        let bundles = Bundles {
            short: world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await?,
            failing: world.push_pipeline("failing", &Pipeline::new().task("apply", Outcome::Exit(1))).await?,
            held: world.push_pipeline("held", &held).await?,
            lingering: world.push_pipeline("lingering", &held.terminating_slowly()).await?,
        };
        Ok(Self { world, board, bundles })
    }

    pub(crate) fn bundles(&self) -> &Bundles {
        &self.bundles
    }

    /// Plays on all targets until `stop` is set. Held pods of the last bursts stay held.
    pub(crate) async fn play(&self, rng: &mut fastrand::Rng, stop: &Cell<bool>) -> Result<()> {
        try_join_all((0..TARGETS).map(|target| Player { load: self, target, rng: rng.fork() }.play(stop))).await?;
        Ok(())
    }

    /// Ends held pods until everything is at rest.
    pub(crate) async fn settle(&self) -> Result<()> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            self.end_pods("", "ok").await;
            let mut left: Vec<String> = self
                .board
                .named("")
                .iter()
                .filter(|wfe| !board::is_terminal(wfe) || holds(wfe))
                .map(|wfe| format!("WorkflowExecution {} {}", board::name(wfe), board::phase(wfe)))
                .collect();
            left.extend(
                self.world.runs().await?.iter().filter(|run| !is_done(run)).map(|run| title("PipelineRun", run)),
            );
            left.extend(self.world.pods().await?.iter().filter(|pod| is_at_work(pod)).map(|pod| title("pod", pod)));
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "not at rest after {SETTLES_WITHIN:?}: {left:#?}");
            tokio::time::sleep(TICK).await;
        }
    }

    /// Ends held pods, and releases deleted pods. Errors are ignored, such as that no pod exists: the next call
    /// retries.
    async fn end_pods(&self, pods: &str, outcome: &str) {
        drop(self.world.set_outcome(pods, outcome).await);
        drop(self.world.let_pods_go(pods).await);
    }
}

struct Player<'a> {
    load: &'a Load<'a>,
    target: usize,
    rng: fastrand::Rng,
}

impl Player<'_> {
    async fn play(mut self, stop: &Cell<bool>) -> Result<()> {
        for round in 0.. {
            if stop.get() {
                break;
            }
            let burst = format!("t{:02}-r{round:03}-", self.target);
            self.create(&burst).await?;
            while !stop.get() && !self.is_over(&burst) {
                tokio::time::sleep(TICK).await;
                self.meddle(&burst).await?;
            }
            match self.rng.u8(..10) {
                0..4 => self.forget().await?,
                4..7 => self.clear().await?,
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(self.rng.u64(..2_000))).await;
        }
        Ok(())
    }

    /// Creates a burst, and deletes some of its executions soon afterwards.
    async fn create(&mut self, burst: &str) -> Result<()> {
        let wfes: Vec<(String, WfeBuilder, Option<u64>)> = (0..BURST)
            .map(|n| {
                let name = format!("{burst}{n}");
                let fleeting = (self.rng.u8(..10) < 2).then(|| self.rng.u64(..400));
                (name.clone(), self.builder(&name), fleeting)
            })
            .collect();
        let api = self.load.world.api(&wfe::resource(), self.load.world.namespace());
        try_join_all(wfes.iter().map(async |(name, wfe, fleeting)| {
            wfe.create().await?;
            if let Some(millis) = fleeting {
                tokio::time::sleep(Duration::from_millis(*millis)).await;
                drop(api.delete(name, &DeleteParams::default()).await);
            }
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    }

    fn builder(&mut self, name: &str) -> WfeBuilder {
        let kinds = [Kind::Short, Kind::Short, Kind::Short, Kind::Failing, Kind::Held, Kind::Held, Kind::Lingering];
        let kind = match self.rng.u8(..20) {
            0 => Kind::Unusable,
            1 => Kind::Missing,
            _ => self.rng.choice(kinds).unwrap_or(Kind::Short),
        };
        let target = format!("node/soak-{:02}", self.target);
        // Half of the executions have a workflow of their own. Otherwise a failure would block all others.
        let workflow = if self.rng.bool() { name } else { "again" };
        let wfe = self.load.world.wfe(name).target(&target).workflow(workflow);
        let wfe = match self.newest_failure().filter(|_| self.rng.bool()) {
            Some(failed) => wfe.patch(|wfe| wfe["spec"]["recoveryOf"] = json!(board::name(&failed))),
            None => wfe,
        };
        let wfe = match self.retry() {
            Some(retry) => wfe.patch(|wfe| wfe["spec"]["retry"] = retry),
            None => wfe,
        };
        let bundles = &self.load.bundles;
        match kind {
            Kind::Short => wfe.image(&bundles.short),
            Kind::Failing => wfe.image(&bundles.failing),
            Kind::Held => wfe.image(&bundles.held),
            Kind::Lingering => wfe.image(&bundles.lingering),
            Kind::Unusable => {
                let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
                let (image, _) = bundles.short.split_once('@').unwrap_or((&bundles.short, ""));
                wfe.image(&format!("{image}@{}", digest("1"))).digest(&digest("2"))
            }
            Kind::Missing => wfe.image(&format!("{}/none:1", self.load.world.control_plane().registry())),
        }
    }

    /// Chooses a retry policy for about every second execution. The waits are short, which gives many attempts.
    fn retry(&mut self) -> Option<Value> {
        let policies = [
            json!(true),
            json!({"maxAttempts": 4, "retryWhen": "true", "retryExecutionFailures": true}),
            json!({"initialDelay": "3s", "jitter": true, "retryWhen": "reason != 'Forbidden'", "retryExecutionFailures": true}),
            json!({"maxAttempts": 5, "maxDuration": "20s", "stopWhen": "attempt > 2", "retryExecutionFailures": true}),
        ];
        self.rng.bool().then(|| self.rng.choice(policies)).flatten()
    }

    fn is_over(&self, burst: &str) -> bool {
        self.load.board.named(burst).iter().all(|wfe| board::is_terminal(wfe))
    }

    /// Chooses an undecided or running execution of the burst, and does something to it or nothing.
    async fn meddle(&mut self, burst: &str) -> Result<()> {
        let open: Vec<_> = self.load.board.named(burst).into_iter().filter(|wfe| !board::is_terminal(wfe)).collect();
        let Some(wfe) = self.rng.choice(open) else {
            // An earlier execution may have left pods.
            self.let_go().await;
            return Ok(());
        };
        let name = board::name(&wfe);
        match (board::phase(&wfe), self.rng.u8(..40)) {
            (_, 0) => self.delete(name).await?,
            (_, 1) => self.cancel(name).await?,
            ("Running", 2..12) => {
                let outcome = self.rng.choice(["ok", "ok", "exit-1", "oom"]).unwrap_or("ok");
                self.load.end_pods(&format!("{OWNER}={name}"), outcome).await;
            }
            (_, 12..20) => self.let_go().await,
            _ => {}
        }
        Ok(())
    }

    async fn let_go(&self) {
        let pods = format!("kubernaut.ai/target-resource=node__soak-{:02}", self.target);
        drop(self.load.world.let_pods_go(&pods).await);
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let api = self.load.world.api(&wfe::resource(), self.load.world.namespace());
        allow_gone(api.delete(name, &DeleteParams::default()).await).context("an execution cannot be deleted")
    }

    async fn cancel(&self, name: &str) -> Result<()> {
        let api = self.load.world.api(&wfe::resource(), self.load.world.namespace());
        let cancellation = json!({"reason": "soak", "requestedBy": "admin"});
        let patch = Patch::Merge(json!({"spec": {"cancellation": cancellation}}));
        let patched = api.patch(name, &PatchParams::default(), &patch).await;
        match patched {
            // The execution already has a cancellation, or has ended meanwhile.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => Ok(()),
            other => allow_gone(other).context("an execution cannot be cancelled"),
        }
    }

    /// Clears the target, as a person would after an inspection. Does nothing if no execution has failed.
    async fn clear(&self) -> Result<()> {
        let Some(failed) = self.newest_failure() else { return Ok(()) };
        let api = self.load.world.api(&wfe::resource(), self.load.world.namespace());
        let patch = Patch::Merge(json!({"spec": {"clearance": {"reason": "soak", "clearedBy": "admin"}}}));
        let patched = api.patch(board::name(&failed), &PatchParams::default(), &patch).await;
        match patched {
            // The execution is already cleared.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => Ok(()),
            other => allow_gone(other).context("an execution cannot be cleared"),
        }
    }

    fn newest_failure(&self) -> Option<Arc<DynamicObject>> {
        let all = self.load.board.named(&format!("t{:02}-", self.target));
        let failed = all.into_iter().filter(|wfe| board::phase(wfe) == "Failed");
        failed.max_by_key(|wfe| wfe.data.pointer("/status/completionTime").and_then(Value::as_str).map(str::to_owned))
    }

    /// Deletes the ended executions of this target, as a time to live would.
    async fn forget(&self) -> Result<()> {
        let ended = self.load.board.named(&format!("t{:02}-", self.target));
        for wfe in ended.iter().filter(|wfe| board::is_terminal(wfe)) {
            self.delete(board::name(wfe)).await?;
        }
        Ok(())
    }
}

const OWNER: &str = "kubernaut.ai/workflow-execution";

fn allow_gone<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

/// Returns whether the execution's status still reports that it locks its target.
fn holds(wfe: &DynamicObject) -> bool {
    let conditions = wfe.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == "TargetLocked" && one["status"] == "True")
}

fn is_done(run: &Value) -> bool {
    let conditions = run["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Succeeded" && one["status"] != "Unknown")
}

fn is_at_work(pod: &Value) -> bool {
    !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn title(kind: &str, object: &Value) -> String {
    format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or_default())
}
