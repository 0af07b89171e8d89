//! The tool answers as the running operator would: with its settings, in its namespaces, and only if a replica leads.

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use wfe_testkit::World;
use wfe_testkit::awaits::{DEADLINE, ask_until};

use super::{Caller, has, in_system, lease, outputs};
use crate::history::past::{Past, past};
use crate::leader::quick;

const EXPLAIN: [&str; 2] = ["explain", "node/n"];

#[tokio::test]
async fn the_values_are_those_that_the_leader_has_in_force() -> Result<()> {
    let world = World::new("in-force").await?;
    past(&world, "done", "node/n", "w1", 1, TimeDelta::minutes(7), Past::Completed).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let w1 = [&EXPLAIN[..], &["--workflow", "w1"]].concat();
    let config_map = format!("ConfigMap {}/workflowexecution-config", world.system_namespace());
    let config = |keys| in_system(&world, "v1", "ConfigMap", "workflowexecution-config", "data", &keys);

    let said = jo.says(0, &w1).await?;
    let assumed = format!("no {config_map}, over default flags, as no leader has published its own");
    has(&said, &["would run now", &assumed, "operator     somebody leads"]);
    world.apply(&config(json!({"cooldown-period": "6m"}))).await?;
    has(&jo.says(0, &w1).await?, &["would run now", &format!("{config_map}, version")]);
    has(
        &jo.says(1, &[&w1[..], &["--cooldown-period=8m"]].concat()).await?,
        &["within 8m", "--cooldown-period of yours"],
    );
    world.apply(&config(json!({"cooldown-period": "6m", "paused": "true"}))).await?;
    has(&jo.says(1, &w1).await?, &["would wait, Paused", &format!("{config_map} says")]);

    // The operator takes the Lease that nobody holds.
    lease(&world, "", "2026-01-02T03:04:05.000000Z").await?;
    world.apply(&config(json!({"start-deadline": "2m"}))).await?;
    let replica = quick(world.operator().replica("replica-0")).arg("--cooldown-period", "10m").start().await?;
    let says = |what: &'static [&'static str]| {
        let ask = async || Ok(outputs(jo.command(&w1)?, &[0, 1]).await?.0);
        ask_until(DEADLINE, "explain knows what is in force", ask, |said| what.iter().all(|it| said.contains(it)))
    };
    let said = says(&["replica-0", "would be skipped, RecentlyRemediated", "within 10m"]).await?;
    has(&said, &[&format!("{config_map}, version"), ", over the leader's flags"]);
    // A refused version changes nothing, and the version before is known.
    world.apply(&config(json!({"cooldown-period": "-1m"}))).await?;
    says(&["within 10m", " is refused (cooldown-period: \"-1m\" must not be negative), over the leader's flags"])
        .await?;

    let file = jo.kubeconfig.with_file_name("policy.yaml");
    std::fs::write(&file, config(json!({"cooldown-period": "9m"})).to_string())?;
    let said = jo.says(1, &[&w1[..], &["--policy", &file.to_string_lossy()]].concat()).await?;
    has(&said, &["within 9m", "policy.yaml, over the leader's flags"]);
    replica.terminate().await?;
    world.close().await
}

#[tokio::test]
async fn nothing_runs_where_nobody_leads_or_looks() -> Result<()> {
    let world = World::new("nobody").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    has(&jo.says(0, &EXPLAIN).await?, &["would run now", "somebody leads"]);
    let long_ago = (Utc::now() - TimeDelta::hours(1)).to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    lease(&world, "gone", &long_ago).await?;
    let said = jo.says(1, &EXPLAIN).await?;
    has(&said, &["would wait, NoOperator: no operator leads: gone has not renewed the Lease"]);
    lease(&world, "", &long_ago).await?;
    has(&jo.says(1, &EXPLAIN).await?, &["would wait, NoOperator: no operator leads: nobody holds the Lease"]);

    // The current context of the kubeconfig names another namespace than the watched one.
    super::somebody_leads(&world).await?;
    let elsewhere = [&EXPLAIN[..], &["--namespace", "default"]].concat();
    let alone = format!("the operator watches the namespace {} alone", world.namespace());
    has(&jo.says(1, &elsewhere).await?, &["a new execution on node/n: would wait, NoOperator", &alone]);

    // An undecided execution is among the known executions too.
    world.wfe("asks").target("node/n").create().await?;
    let said = jo.says(0, &["explain", "asks"]).await?;
    assert!(!said.contains("no WorkflowExecution on it is known"), "{said}");
    world.close().await
}

#[tokio::test]
async fn whoever_names_no_workflow_is_answered_for_each_that_has_been_there() -> Result<()> {
    let world = World::new("workflows").await?;
    past(&world, "older", "node/n", "scale", 1, TimeDelta::hours(1), Past::Completed).await?;
    past(&world, "done", "node/n", "restart", 2, TimeDelta::minutes(1), Past::Completed).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let said = jo.says(1, &EXPLAIN).await?;
    has(
        &said,
        &[
            "a new execution on node/n: depends on the workflow",
            "  restart: would be skipped, RecentlyRemediated: cooldown: ",
            "  scale: would run now.",
            "  any other: would run now.",
        ],
    );
    let (json, _) = outputs(jo.command(&[&EXPLAIN[..], &["-o", "json"]].concat())?, &[1]).await?;
    let report: serde_json::Value = serde_json::from_str(&json)?;
    assert_eq!((&report["verdict"], &report["workflows"][0]["workflowId"]), (&json!("Depends"), &json!("restart")));
    jo.says(0, &[&EXPLAIN[..], &["--workflow", "scale"]].concat()).await?;
    world.close().await
}

#[tokio::test]
async fn a_target_in_a_paused_namespace_is_paused_for_whoever_asks_from_another() -> Result<()> {
    let world = World::new("paused-target").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let target = format!("{}/deployment/api", world.system_namespace());
    has(&jo.says(0, &["explain", &target]).await?, &["would run now"]);
    let patch = json!({"metadata": {"annotations": {"kubernaut.ai/paused": "upgrade; ask jo"}}});
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client());
    namespaces.patch(&world.system_namespace(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    has(&jo.says(1, &["explain", &target]).await?, &["would wait, Paused", "upgrade; ask jo"]);
    world.close().await
}
