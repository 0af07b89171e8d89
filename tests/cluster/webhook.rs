//! Tekton's webhook is enabled. It must not change the operator's requests, and the operator must understand its
//! refusals.

use anyhow::Result;
use serde_json::json;
use wfe_testkit::{ControlPlane, Options, Outcome, Pipeline, World};

use crate::expect::{as_sent, first_run, text};

#[tokio::test]
async fn tektons_webhook_changes_nothing_in_a_pipelinerun_of_ours() -> Result<()> {
    let control_plane = ControlPlane::start(Options { webhook: true, ..Options::default() }).await?;
    let world = World::on(&control_plane, "webhook").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    let created = world.wfe("seen-by-tekton").image(&bundle).timeout("10m").create().await?;
    let wfe = world.await_phase("seen-by-tekton", "Completed").await?;
    assert_eq!(wfe["metadata"]["uid"].as_str(), created.metadata.uid.as_deref());

    let audit = world.audit().await?;
    let create = audit.iter().find(|entry| entry.verb == "create" && entry.resource == "pipelineruns");
    let create = create.expect("a PipelineRun was created");
    let params = json!([{"name": "TARGET_RESOURCE", "value": "payment/deployment/payment-api"}]);
    let expected = first_run(&wfe, &world.execution_namespace(), &bundle, &params);
    assert_eq!(as_sent(&create.request), expected);
    assert_eq!(as_sent(&create.response), expected, "as the webhook returned it");
    world.close().await
}

#[tokio::test]
async fn tektons_webhook_lets_parameters_through_that_the_pipeline_does_not_declare() -> Result<()> {
    let control_plane = ControlPlane::start(Options { webhook: true, ..Options::default() }).await?;
    let world = World::on(&control_plane, "undeclared").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("undeclared").image(&bundle).parameter("NOBODY_ASKS", "x").parameter("NOR_FOR_THIS", "").create().await?;
    world.await_phase("undeclared", "Completed").await?;
    let runs = world.runs().await?;
    let names: Vec<&str> =
        runs[0]["spec"]["params"].as_array().into_iter().flatten().map(|it| text(&it["name"])).collect();
    assert_eq!(names, ["NOBODY_ASKS", "NOR_FOR_THIS", "TARGET_RESOURCE"], "{runs:#?}");
    let event = world.await_event("undeclared", "ParametersUndeclared").await?;
    assert_eq!(event["type"], "Warning");
    assert!(text(&event["note"]).ends_with("The pipeline does not declare: NOBODY_ASKS, NOR_FOR_THIS"), "{event:#}");
    let wfe = world.get_wfe("undeclared").await?;
    let conditions = wfe["status"]["conditions"].to_string();
    assert!(conditions.contains("the pipeline declares no parameter NOBODY_ASKS (and 1 other)"), "{conditions}");
    world.close().await
}
