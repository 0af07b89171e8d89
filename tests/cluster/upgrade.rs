//! An upgrade from the operator, CRD and roles of an earlier commit (`tests/upgrade/build`) to the current ones, and
//! back, with executions in every phase. Nothing runs twice, and blocks stay in force. Only with `WFE_TEST_ALL=1`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::Objects;
use wfe_testkit::{ControlPlane, Operator, Options, Outcome, Pipeline, World, is_terminal, previous, repository, wfe};

use crate::chart::{Helm, NAMESPACE, RELEASE};
use crate::clearing::await_free;
use crate::configuration::pause::{annotate, is_paused};
use crate::expect::text;
use crate::faults::all;
use crate::history::past::{Past, past};
use crate::history::{assert_skipped, short, unusable};

#[tokio::test]
async fn an_upgrade_and_the_way_back_leave_every_execution_where_it_is() -> Result<()> {
    if !all() {
        return Ok(());
    }
    let previous = previous()?;
    let control_plane = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
    let crds = previous.join("crds");
    control_plane.kubectl(&["apply", "--server-side", "--filename", &crds.to_string_lossy()]).await?;
    let established = ["wait", "crd/workflowexecutions.kubernaut.ai", "--for=condition=Established"];
    control_plane.kubectl(&established).await?;
    let world = World::on(&control_plane, "upgrade").await?;
    world.ship(&previous).await?;
    let recording = world.record_all().await?;
    let stage = Stage { works: short(&world).await?, held: held(&world).await?, world };

    stage.some_have_failed_before().await?;
    let operator = stage.operator_of(&previous).await?;
    let ended = stage.executions_reach_every_phase().await?;
    ensure!(operator.terminate().await?.success(), "the operator of then did not end well");
    stage.something_happens_while_nobody_is_there().await?;
    stage.install().await?;
    let operator = stage.world.operator().start().await?;
    stage.what_was_under_way_goes_on().await?;
    stage.what_stood_in_the_way_still_does("now", 3).await?;
    stage.nothing_that_had_ended_has_changed(&ended).await?;

    // During the downgrade both operators run for a while, as in a rolling update. The CRD and the roles stay.
    stage.run("held-2", "node/back", &stage.held).await?;
    stage.await_running("held-2").await?;
    let operator_of_then = stage.operator_of(&previous).await?;
    stage.completes("beside", "node/beside").await?;
    ensure!(operator.terminate().await?.success(), "the operator of now did not end well");
    stage.let_end("held-2").await?;
    stage.world.await_phase("held-2", "Completed").await?;
    stage.what_stood_in_the_way_still_does("back", 4).await?;
    stage.completes("alone", "node/alone").await?;
    stage.nothing_that_had_ended_has_changed(&ended).await?;
    stage.clear("broken").await?;
    stage.completes("cleared", "node/broken").await?;
    drop(operator_of_then);
    let (_, report) = wfe_tests::audit(&stage.world, recording).await?;
    // The earlier operator gives `nextAllowedExecution` to a failure that exhausts its target, although no time ends
    // that block.
    let of_then: Vec<_> = report.violations.iter().map(|it| (it.rule, it.objects[0].name.as_ref())).collect();
    assert_eq!(of_then, [("next-allowed", "exhausted-5"), ("next-allowed", "charged-5")], "{:#?}", report.violations);
    assert!(report.gaps.is_empty(), "{:#?}", report.gaps);
    stage.world.close().await
}

async fn held(world: &World) -> Result<String> {
    world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await
}

struct Stage {
    world: World,
    /// A bundle whose workflow succeeds after a moment.
    works: String,
    /// A bundle whose workflow ends when the test ends it.
    held: String,
}

impl Stage {
    /// Starts the earlier operator, which has no leader election.
    async fn operator_of(&self, previous: &Path) -> Result<Operator> {
        let operator = self.world.operator().program(&previous.join("wfe-operator"));
        operator.without("--namespace").without("--leader-elect").start().await
    }

    /// Creates an execution whose workflow has the execution's name, so that other executions cause no cooldown for it.
    async fn run(&self, name: &str, target: &str, bundle: &str) -> Result<()> {
        self.world.wfe(name).target(target).workflow(name).image(bundle).create().await?;
        Ok(())
    }

    async fn completes(&self, name: &str, target: &str) -> Result<()> {
        self.run(name, target, &self.works).await?;
        self.world.await_phase(name, "Completed").await?;
        await_free(&self.world, name).await
    }

    /// Checks that an execution fails before anything ran, as the n-th in a row.
    async fn is_charged(&self, name: &str, target: &str, nth: u32) -> Result<()> {
        unusable(self.world.wfe(name).target(target)).create().await?;
        let failed = self.world.await_phase(name, "Failed").await?;
        assert_eq!(failed["status"]["consecutiveFailures"], nth, "{failed:#}");
        Ok(())
    }

    async fn await_running(&self, name: &str) -> Result<()> {
        let is_its = |pod: &Value| pod["metadata"]["labels"]["kubernaut.ai/workflow-execution"] == name;
        self.world.await_pod("runs", |pod| is_its(pod) && pod["status"]["phase"] == "Running").await?;
        self.world.await_phase(name, "Running").await?;
        Ok(())
    }

    async fn let_end(&self, name: &str) -> Result<()> {
        self.world.set_outcome(&format!("kubernaut.ai/workflow-execution={name}"), "ok").await?;
        Ok(())
    }

    /// Clears an execution in the administrator's own name, which the chart's admission policies require.
    async fn clear(&self, name: &str) -> Result<()> {
        let clearance = json!({"spec": {"clearance": {"reason": "looked at", "clearedBy": "admin"}}});
        let api = self.world.api(&wfe::resource(), self.world.namespace());
        api.patch(name, &PatchParams::default(), &Patch::Merge(clearance)).await?;
        Ok(())
    }

    /// Creates failures that ended some minutes apart, because the order of two failures in the same second is unknown.
    async fn some_have_failed_before(&self) -> Result<()> {
        for (name, times) in [("exhausted", 4), ("charged", 2)] {
            for nth in 1..=times {
                let (target, name) = (format!("node/{name}"), format!("{name}-{nth}"));
                let ago = TimeDelta::minutes(10 - i64::from(nth));
                let how = Past::NothingRan(nth, TimeDelta::minutes(1));
                past(&self.world, &name, &target, &name, nth.into(), ago, how).await?;
            }
        }
        Ok(())
    }

    /// Brings executions into every phase, and returns those that have ended.
    async fn executions_reach_every_phase(&self) -> Result<Objects> {
        let world = &self.world;
        self.completes("completed", "node/done").await?;
        let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
        self.run("broken", "node/broken", &broken).await?;
        await_free(world, "broken").await?;
        self.is_charged("exhausted-5", "node/exhausted", 5).await?;
        self.is_charged("charged-3", "node/charged", 3).await?;
        for (name, target) in [("running", "node/busy"), ("ends-unseen", "node/unseen")] {
            self.run(name, target, &self.held).await?;
            self.await_running(name).await?;
        }
        self.run("rival", "node/busy", &self.works).await?;
        world.await_phase("rival", "Skipped").await?;
        annotate(world, json!("upgrade")).await?;
        self.run("waiting", "node/waiting", &self.works).await?;
        world.await_wfe("waiting", "waits", is_paused).await?;

        let all = world.await_wfes("all", |_| true).await?;
        let phases: BTreeSet<&str> = all.values().map(|wfe| text(&wfe["status"]["phase"])).collect();
        assert!(phases.iter().eq(["Completed", "Failed", "Pending", "Running", "Skipped"].iter()), "{phases:?}");
        Ok(all.into_iter().filter(|(_, wfe)| is_terminal(wfe)).collect())
    }

    async fn something_happens_while_nobody_is_there(&self) -> Result<()> {
        self.run("undecided", "node/undecided", &self.works).await?;
        self.let_end("ends-unseen").await?;
        let is_done = |run: &Value| run["status"]["conditions"][0]["status"] == "True";
        self.world.await_run("is done", is_done).await?;
        Ok(())
    }

    /// Installs the current chart over the existing CRD, and gives the operator its current permissions.
    async fn install(&self) -> Result<()> {
        let control_plane = self.world.control_plane();
        let helm = Helm::on(control_plane, "upgrade")?;
        let package = helm.package()?;
        let over_what_is_there = ["--take-ownership", "--force-conflicts", "--wait", "--timeout", "2m"];
        let install = ["install", RELEASE, &package, "--namespace", NAMESPACE, "--create-namespace"];
        helm.run(&[&install[..], &over_what_is_there].concat())?;
        let spec = "spec.versions[0].schema.openAPIV3Schema.properties.spec";
        let ttl = format!("jsonpath={{.{spec}.properties.ttlSecondsAfterFinished.type}}");
        let get = ["get", "crd", "workflowexecutions.kubernaut.ai", "--output", &ttl];
        assert_eq!(control_plane.kubectl(&get).await?, "integer", "the CRD after the upgrade");
        self.world.ship(&repository()).await
    }

    async fn what_was_under_way_goes_on(&self) -> Result<()> {
        let world = &self.world;
        world.await_phase("ends-unseen", "Completed").await?;
        world.await_wfe("undecided", "waits", is_paused).await?;
        assert!(is_paused(&world.get_wfe("waiting").await?));
        annotate(world, Value::Null).await?;
        self.let_end("running").await?;
        for name in ["running", "waiting", "undecided"] {
            world.await_phase(name, "Completed").await?;
            await_free(world, name).await?;
        }
        Ok(())
    }

    /// Checks that blocks are still in force. `charged` is the number of failures in a row on `node/charged`.
    async fn what_stood_in_the_way_still_does(&self, when: &str, charged: u32) -> Result<()> {
        let last = format!("charged-{charged}");
        for (target, reason, on) in [
            ("node/broken", "PreviousExecutionFailed", "broken"),
            ("node/exhausted", "ExhaustedRetries", "exhausted-5"),
            ("node/charged", "RecentlyRemediated", &last),
        ] {
            let name = format!("{on}-{when}");
            self.run(&name, target, &self.works).await?;
            assert_skipped(&self.world, &name, reason, on).await?;
        }
        let name = format!("cools-{when}");
        let same = self.world.wfe(&name).target("node/done").workflow("completed").image(&self.works);
        same.create().await?;
        assert_skipped(&self.world, &name, "RecentlyRemediated", "completed").await?;
        self.is_charged(&format!("charged-{}", charged + 1), "node/charged", charged + 1).await
    }

    async fn nothing_that_had_ended_has_changed(&self, ended: &Objects) -> Result<()> {
        for (name, before) in ended {
            let now = self.world.get_wfe(name).await?;
            assert_eq!(
                now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
                "{before:#}\n{now:#}"
            );
        }
        Ok(())
    }
}
