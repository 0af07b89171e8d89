//! Many executions on one target at the same time. One runs. The others are skipped, and their statuses name the one
//! that runs.

use anyhow::Result;
use futures::future::try_join_all;
use wfe_testkit::{Outcome, Pipeline, World, is_terminal};

use crate::audited::audited;
use crate::expect::{fields, text};

#[tokio::test]
async fn of_fifty_at_once_one_runs_and_the_others_name_it() -> Result<()> {
    let world = World::new("storm").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("clean", Outcome::Hold)).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    let storm: Vec<_> = (0..50)
        .map(|n| world.wfe(&format!("alert-{n:02}")).target("node/worker-node-1").workflow("disk").image(&bundle))
        .collect();
    try_join_all(storm.iter().map(wfe_testkit::WfeBuilder::create)).await?;
    let decided = world
        .await_wfes("fifty, one Running and all others terminal", |wfes| {
            wfes.len() == 50 && wfes.values().filter(|wfe| is_terminal(wfe)).count() == 49
        })
        .await?;
    let holder = decided.values().find(|wfe| wfe["status"]["phase"] == "Running").expect("one is Running");

    for skipped in decided.values().filter(|wfe| wfe["metadata"]["name"] != holder["metadata"]["name"]) {
        let status = &skipped["status"];
        assert_eq!(status["phase"], "Skipped", "{skipped:#}");
        let details = &status["skipDetails"];
        assert_eq!(details["reason"], "ResourceBusy");
        let conflict = &details["conflictingWorkflow"];
        assert_eq!(conflict["name"], holder["metadata"]["name"]);
        assert_eq!(conflict["workflowId"], "disk");
        assert_eq!(conflict["startedAt"], holder["status"]["startTime"]);
        assert_eq!(conflict["targetResource"], "node/worker-node-1");
        assert!(text(&details["message"]).contains(text(&holder["metadata"]["name"])), "{details:#}");
        assert_eq!(status["completionTime"], details["skippedAt"]);
        let expected = [
            "completionTime",
            "conditions",
            "nextStep",
            "observedGeneration",
            "phase",
            "skipDetails",
            "summary",
            "target",
        ];
        assert!(fields(skipped).iter().eq(expected.iter()), "{skipped:#}");
    }
    world.await_running_step().await?;
    world.set_outcome("", "ok").await?;
    world.await_phase(text(&holder["metadata"]["name"]), "Completed").await?;
    assert_eq!(world.runs().await?.len(), 1, "one PipelineRun");

    let metrics = operator.metrics().await?;
    let skips = metrics.value("workflowexecution_skip_total", &[("reason", "ResourceBusy")]);
    assert!((skips - 49.0).abs() < f64::EPSILON, "{skips}");
    let audit = world.audit().await?;
    let reads = audit.iter().filter(|entry| entry.verb == "get" && entry.user == world.operator_user()).count();
    assert!(reads <= 10, "one live read of the holder per batch, not per execution: {reads}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn every_spelling_of_one_target_is_one_lock() -> Result<()> {
    let world = World::new("spelling").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("holder").target("payment/Deployment/api").image(&bundle).create().await?;
    world.await_phase("holder", "Running").await?;
    let spellings = [
        "payment/deployment/api",
        "payment/Deployment/api",
        "payment/DEPLOYMENT/api",
        "payment/deployments/api",
        "payment/deploy/api",
        "payment/deployment.apps/api",
        "payment/deployments.apps/api",
        "payment/Deployment.v1.apps/api",
    ];
    for (n, spelling) in spellings.iter().enumerate() {
        world.wfe(&format!("rival-{n}")).target(spelling).image(&bundle).create().await?;
    }
    let other = "payment/statefulset/api";
    world.wfe("other").target(other).image(&bundle).create().await?;
    for (n, spelling) in spellings.iter().enumerate() {
        let rival = world.await_terminal(&format!("rival-{n}")).await?;
        assert_eq!(rival["status"]["skipDetails"]["reason"], "ResourceBusy", "{spelling}");
        assert_eq!(rival["status"]["target"], "payment/deployment/api", "{spelling}");
    }
    assert_eq!(world.await_phase("other", "Running").await?["status"]["target"], other);
    world.close().await
}
