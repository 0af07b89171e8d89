//! `simulate --from-cluster`: its prediction, compared with what an operator then does.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use wfe_testkit::World;

use super::{Caller, ROLES, guard_clearances, has};
use crate::expect::text;
use crate::history::past::{Past, past};
use crate::history::short;
use crate::schedules::{await_children, await_held, await_outcome, await_schedule, create, hurry};

const TARGET: &str = "node/worker";
/// The command that all these tests use. Further flags may follow.
const ASKS: [&str; 5] = ["simulate", "--from-cluster", TARGET, "--until", "50m"];

/// A schedule is due on a blocked target. The schedule is held until the clearance, and then runs at once.
#[tokio::test]
async fn a_clearance_is_supposed_before_it_is_set() -> Result<()> {
    let world = World::new("plugin-what-if").await?;
    let bundle = short(&world).await?;
    past(&world, "broke", TARGET, "restart", 2, TimeDelta::minutes(10), Past::Ran).await?;
    past(&world, "earlier", TARGET, "nightly", 1, TimeDelta::minutes(20), Past::Completed).await?;
    let _operator = world.operator().start().await?;
    guard_clearances(&world, "broke").await?;
    create(&world, "nightly", TARGET, &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    hurry(&world, "nightly").await?;
    await_held(&world, "nightly", "PreviousExecutionFailed").await?;
    let jo = Caller::new(&world, "jo", &ROLES).await?;

    let stays = jo.says(1, &ASKS).await?;
    has(
        &stays,
        &[
            "node/worker, the next 50m, if no person does anything:",
            "nightly  as its one run here did: Completed after 1s (supposed)",
            &format!("held     {}/nightly: PreviousExecutionFailed", world.namespace()),
            &format!("by {}/broke: kubectl wfe clear node/worker --reason '...'", world.namespace()),
            "runs 0 | failed 0 | skipped 0 | needs a person: 1 target",
        ],
    );
    let supposed = jo.says(0, &[&ASKS[..], &["--if", "cleared", "-o", "json"]].concat()).await?;
    let supposed: Value = serde_json::from_str(&supposed)?;
    let events = supposed["events"].as_array().cloned().unwrap_or_default();
    let runs = events.iter().find(|event| event["what"] == "runs").unwrap_or(&Value::Null);
    assert_eq!((&supposed["if"], &runs["afterSeconds"]), (&json!("cleared"), &json!(0)), "{supposed:#}");
    // Nothing was written, and nothing is cleared.
    await_children(&world, "nightly", 0).await?;
    assert_eq!(world.get_wfe("broke").await?["spec"]["clearance"], Value::Null);

    let cleared_at: DateTime<Utc> = Utc::now();
    jo.says(0, &["clear", TARGET, "--yes", "--reason", "disk replaced"]).await?;
    let done = await_outcome(&world, "nightly", "Completed").await?;
    let children = await_children(&world, "nightly", 1).await?;
    let child = &children[0];
    let name = format!("{}/{}", world.namespace(), text(&child["metadata"]["name"]));
    assert_eq!(runs["execution"], json!(name), "{supposed:#}\n{done:#}");
    let began: DateTime<Utc> = text(&child["status"]["startTime"]).parse()?;
    assert!(began - cleared_at < TimeDelta::seconds(30), "{began} is not at once after {cleared_at}");
    world.close().await
}

/// Nothing has run yet, so the tool supposes how the runs end: they succeed, or fail if `--if` says so. An unknown
/// workflow or target is refused.
#[tokio::test]
async fn a_failure_is_supposed_of_the_next_run() -> Result<()> {
    let world = World::new("plugin-what-if-fails").await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    create(&world, "nightly", TARGET, &bundle, &json!({"interval": "10m", "minInterval": "1s"})).await?;
    let planned = await_schedule(&world, "nightly", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    let jo = Caller::new(&world, "jo", &ROLES).await?;
    let next = text(&planned["status"]["nextRunTime"]).to_owned();

    let fine = jo.says(0, &ASKS).await?;
    has(
        &fine,
        &["nightly  it has not ended here yet: Completed after 1m (supposed)", &next, "needs a person: nothing"],
    );
    let broken = jo.says(1, &[&ASKS[..], &["--if", "workflow nightly fails"]].concat()).await?;
    has(
        &broken,
        &[
            "if each run of nightly fails:",
            "as --if says: failed half way, Unknown after 1m (supposed)",
            &next,
            "Unknown (exit 1) half way: BLOCKED, needs a person (supposed)",
            "nightly: PreviousExecutionFailed",
            "kubectl wfe clear node/worker --reason '...'",
        ],
    );
    let unknown = jo.says(2, &[&ASKS[..], &["--if", "workflow nightli fails"]].concat()).await?;
    has(&unknown, &["\"nightli\" is unknown among", "did you mean \"nightly\"?"]);
    let nowhere = jo.says(2, &["simulate", "--from-cluster", "node/none"]).await?;
    has(&nowhere, &["nothing on node/none is known", "check the spelling"]);
    world.close().await
}
