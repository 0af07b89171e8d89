//! The schedules of a soak. Each has a player, which acts on the schedule as people and programs do.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use futures::future::try_join_all;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{World, wfe};

use crate::board::{self, Board};
use crate::load::Bundles;

/// How often the soak checks whether all schedules have come to rest.
const TICK: Duration = Duration::from_millis(200);
/// How long the schedules may take to come to rest. An operator that has just become leader plans all of them anew.
const SETTLES_WITHIN: Duration = Duration::from_mins(2);

/// The name, workflow, target and interval of each schedule. Workflows complete, fail before anything runs, or fail
/// afterwards. One schedule has a target of the bursts.
const PLANS: [(&str, Workflow, &str, &str); 6] = [
    ("s0", Workflow::Short, "node/schedule-0", "3s"),
    ("s1", Workflow::Short, "node/schedule-0", "4s"),
    ("s2", Workflow::Missing, "node/schedule-1", "2s"),
    ("s3", Workflow::Failing, "node/schedule-2", "1s"),
    ("s4", Workflow::Failing, "node/schedule-3", "2s"),
    ("s5", Workflow::Short, "node/soak-00", "2s"),
];

#[derive(Clone, Copy)]
enum Workflow {
    Short,
    Failing,
    /// The bundle does not exist. The execution fails once the operator has waited for the start as long as it may.
    Missing,
}

/// All schedules.
pub(crate) struct Schedules<'a> {
    world: &'a World,
    board: &'a Board,
    bundles: &'a Bundles,
}

impl<'a> Schedules<'a> {
    pub(crate) fn new(world: &'a World, board: &'a Board, bundles: &'a Bundles) -> Self {
        Self { world, board, bundles }
    }

    /// Plays on all schedules until `stop` is set.
    pub(crate) async fn play(&self, rng: &mut fastrand::Rng, stop: &Cell<bool>) -> Result<()> {
        let players = PLANS.map(|plan| Player { all: self, plan, rng: rng.fork() }.play(stop));
        try_join_all(players).await?;
        Ok(())
    }

    /// Suspends all schedules. Soon afterwards they create no more children.
    pub(crate) async fn suspend(&self) -> Result<()> {
        let api = self.api();
        for (name, ..) in PLANS {
            let patch = Patch::Merge(json!({"spec": {"suspend": true}}));
            api.patch(name, &PatchParams::default(), &patch).await.context("a schedule cannot be suspended")?;
        }
        Ok(())
    }

    /// Waits until every schedule is suspended, and the outcome of its last child is known.
    pub(crate) async fn settle(&self) -> Result<()> {
        let api = self.api();
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            let listed = api.list(&ListParams::default()).await?;
            let busy: Vec<String> = listed
                .iter()
                .filter(|it| !is_suspended(it))
                .map(|it| format!("{} {}", it.metadata.name.as_deref().unwrap_or_default(), it.data["status"]))
                .collect();
            if busy.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "schedules not at rest after {SETTLES_WITHIN:?}: {busy:#?}");
            tokio::time::sleep(TICK).await;
        }
    }

    fn api(&self) -> Api<DynamicObject> {
        self.world.api(&wfe::schedules(), self.world.namespace())
    }

    async fn create(&self, (name, workflow, target, interval): (&str, Workflow, &str, &str)) -> Result<()> {
        let missing = format!("{}/none:1", self.world.control_plane().registry());
        let image = match workflow {
            Workflow::Short => &self.bundles.short,
            Workflow::Failing => &self.bundles.failing,
            Workflow::Missing => &missing,
        };
        let schedule = json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowSchedule",
            "metadata": {"name": name, "namespace": self.world.namespace()},
            "spec": {
                "interval": interval,
                // With a short interval, many failures fit into a minute.
                "maxInterval": "6s",
                "history": {"successful": 1, "failed": 1},
                // Each edit begins a new plan, so few schedules fail several times in a row. Only one schedule has
                // triage after one failure: a triage pauses its schedule, and the others shall continue to fail.
                "triage": {"after": if name == "s3" { 1 } else { 3 }},
                "template": {"spec": {
                    "targetResource": target,
                    "workflowRef": {"workflowId": name, "version": "1.0.0", "containerImage": image},
                }},
            },
        });
        let object: DynamicObject = serde_json::from_value(schedule)?;
        self.api().create(&PostParams::default(), &object).await.context("a schedule cannot be created")?;
        Ok(())
    }
}

struct Player<'a> {
    all: &'a Schedules<'a>,
    plan: (&'static str, Workflow, &'static str, &'static str),
    rng: fastrand::Rng,
}

impl Player<'_> {
    async fn play(mut self, stop: &Cell<bool>) -> Result<()> {
        self.all.create(self.plan).await?;
        while !stop.get() {
            self.pause(300..2_000).await;
            // Each disturbance is rare, because most of them keep a child from failing, and a child may wait ten
            // seconds and more for its place.
            match self.rng.u8(..60) {
                0 => {
                    self.edit(json!({"suspend": true})).await?;
                    self.pause(200..3_000).await;
                    self.edit(json!({"suspend": null})).await?;
                }
                1 | 2 => self.hint().await?,
                3 => {
                    let interval = self.rng.choice(["1s", "2s", "5s"]);
                    self.edit(json!({"interval": interval})).await?;
                }
                4 => self.make_again().await?,
                5 => self.wipe().await?,
                6 => self.with_newest_child(Act::Delete).await?,
                7 => self.with_newest_child(Act::Cancel).await?,
                8..26 => self.with_newest_child(Act::Clear).await?,
                _ => {}
            }
        }
        Ok(())
    }

    async fn pause(&mut self, millis: std::ops::Range<u64>) {
        tokio::time::sleep(Duration::from_millis(self.rng.u64(millis))).await;
    }

    async fn edit(&self, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let patched = self.all.api().patch(self.plan.0, &PatchParams::default(), &patch).await;
        patched.map(drop).context("a schedule cannot be changed")
    }

    /// Sets a hint to run in a second or two.
    async fn hint(&self) -> Result<()> {
        let after = |seconds| (Utc::now() + TimeDelta::seconds(seconds)).to_rfc3339_opts(SecondsFormat::Secs, true);
        self.edit(json!({"hint": {"nextRunAt": after(2), "expiresAt": after(30), "reason": "soak"}})).await
    }

    /// Deletes the schedule, and creates another schedule of the same name.
    async fn make_again(&mut self) -> Result<()> {
        self.all.api().delete(self.plan.0, &DeleteParams::default()).await.context("a schedule cannot be deleted")?;
        self.pause(0..1_000).await;
        self.all.create(self.plan).await
    }

    /// Empties the schedule's status, as a restore without statuses does.
    async fn wipe(&self) -> Result<()> {
        let patch = Patch::Merge(json!({"status": null}));
        let patched = self.all.api().patch_status(self.plan.0, &PatchParams::default(), &patch).await;
        patched.map(drop).context("the status of a schedule cannot be wiped")
    }

    /// Does something to the schedule's newest child, if there is one.
    async fn with_newest_child(&self, act: Act) -> Result<()> {
        let children = self.all.board.named(&format!("{}-", self.plan.0));
        let Some(child) = children.last().map(Arc::clone) else { return Ok(()) };
        let api = self.all.world.api(&wfe::resource(), self.all.world.namespace());
        let name = board::name(&child);
        let spec = match act {
            Act::Delete => return allow(api.delete(name, &DeleteParams::default()).await).context("no deletion"),
            Act::Cancel => json!({"cancellation": {"reason": "soak", "requestedBy": "admin"}}),
            Act::Clear if board::phase(&child) != "Failed" => return Ok(()),
            Act::Clear => json!({"clearance": {"reason": "soak", "clearedBy": "admin"}}),
        };
        let patch = Patch::Merge(json!({"spec": spec}));
        allow(api.patch(name, &PatchParams::default(), &patch).await).context("a child cannot be changed")
    }
}

enum Act {
    Delete,
    Cancel,
    Clear,
}

/// Ignores the error if the object is already gone, or already has the change.
fn allow<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 422) => Ok(()),
        other => other.map(drop),
    }
}

/// Returns whether the schedule's status reports that the current generation is suspended and that no child is at work.
fn is_suspended(schedule: &DynamicObject) -> bool {
    let status = &schedule.data["status"];
    let is_seen = status["observedGeneration"].as_i64() == schedule.metadata.generation;
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut held = conditions.filter(|it| it["type"] == "Held" && it["status"] == "True");
    let is_over = status["lastRun"].is_null() || status["lastRun"]["outcome"].is_string();
    is_seen && is_over && held.any(|it| it["reason"] == "Suspended")
}
