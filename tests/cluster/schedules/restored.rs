//! Schedules that are restored from a backup, and a slot whose child lost a race for its target (section 12.2).

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::proxy::Request;
use wfe_testkit::{Outcome, Pipeline, Proxy, When, World};

use super::triage::{analysed, analyst, await_triage};
use super::{await_at_work, await_children, await_held, await_outcome, await_schedule, create, end_child, hurry};
use super::{moment, schedules, write_status};
use crate::audited::audited;
use crate::expect::{condition, text};
use crate::history::short;

/// A rival gets the target while the creation of a child is in flight. The slot runs again when the rival has ended.
#[tokio::test]
async fn a_child_that_loses_a_race_for_its_target_runs_once_more() -> Result<()> {
    let world = World::new("raced").await?;
    let recording = world.record_all().await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold).lasting("100ms")).await?;
    let bundle = short(&world).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let _operator = world.operator().through(&proxy).start().await?;
    create(&world, "nightly", "node/worker", &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    let makes = |request: &Request| request.what() == "create workflowexecutions";
    let mut gate = proxy.hold(When::Before, makes);
    hurry(&world, "nightly").await?;
    gate.reached().await?;
    let rival = world.wfe("rival").target("node/worker").image(&held).create().await?;
    // If two executions were created in different seconds, the earlier one is first.
    let created = moment(&serde_json::to_value(&rival)?["metadata"]["creationTimestamp"])?;
    let is_later = |now: &DateTime<Utc>| *now >= created + TimeDelta::seconds(1);
    ask_until(DEADLINE, "the next second has begun", async || Ok(Utc::now()), is_later).await?;
    gate.open();
    let skipped = await_outcome(&world, "nightly", "Skipped").await?;
    let message = &skipped["status"]["lastRun"]["message"];
    assert!(message.as_str().is_some_and(|it| it.contains("rival")), "{skipped:#}");
    await_held(&world, "nightly", "ResourceBusy").await?;
    end_child(&world, "rival", "ok").await?;
    let again = await_outcome(&world, "nightly", "Completed").await?;
    assert_eq!(again["status"]["lastRun"]["again"], true, "{again:#}");
    assert_eq!((&again["status"]["failureCount"], condition(&again, "Held").as_str()), (&json!(0), "False Released"));
    await_children(&world, "nightly", 2).await?;
    audited(&world, recording).await?;
    world.close().await
}

/// Three schedules are restored from a backup as new objects: a triage has paused the first, the second was resumed,
/// and the third has values that a triage has adjusted. The operator continues from there.
#[tokio::test]
async fn what_a_triage_has_done_outlasts_a_backup() -> Result<()> {
    let world = World::new("schedules-restored").await?;
    let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let pause = r#"{"verdict": "PauseAndNotify", "why": "it does harm"}"#;
    let adjust = r#"{"verdict": "AdjustConfig", "why": "too often", "adjust": {"interval": "2h"}}"#;
    let pauses = analyst(&world, "pauses", Some(pause), Outcome::Ok).await?;
    let adjusts = analyst(&world, "adjusts", Some(adjust), Outcome::Ok).await?;
    let operator = world.operator().start().await?;
    let all = [("paused", &pauses, "Paused"), ("resumed", &pauses, "Paused"), ("adjusted", &adjusts, "Adjusted")];
    for (name, analyst, state) in all {
        analysed(&world, name, &broken, analyst, &json!({"allowAdjust": ["interval"]})).await?;
        hurry(&world, name).await?;
        await_triage(&world, name, state).await?;
    }
    let triage = await_triage(&world, "resumed", "Paused").await?["status"]["triage"]["of"].clone();
    let resume = json!({"triage": triage, "reason": "repaired", "resumedBy": "jo@example.com"});
    super::edit(&world, "resumed", json!({"resume": resume})).await?;
    await_triage(&world, "resumed", "Over").await?;
    operator.terminate().await?;

    let api = schedules(&world);
    let mut uids = Vec::new();
    for (name, ..) in all {
        let backup = serde_json::to_value(api.get(name).await?)?;
        uids.push(backup["metadata"]["uid"].clone());
        api.delete(name, &DeleteParams::default()).await?;
        let object = json!({
            "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
            "metadata": {"name": name, "namespace": world.namespace()}, "spec": backup["spec"],
        });
        let made = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        assert_ne!(made.metadata.uid, backup["metadata"]["uid"].as_str().map(str::to_owned));
        write_status(&world, name, backup["status"].clone()).await?;
    }

    let _operator = world.operator().start().await?;
    let planned_anew =
        |uid: Value| move |it: &Value| it["metadata"]["uid"] != uid && it["status"]["observedGeneration"] == 1;
    let mut restored = Vec::new();
    for ((name, ..), uid) in all.into_iter().zip(uids) {
        restored.push(await_schedule(&world, name, "is planned anew", planned_anew(uid)).await?);
    }
    let held: Vec<String> = restored.iter().map(|it| condition(it, "Held")).collect();
    assert_eq!(held[0], "True TriagePaused", "{:#}", restored[0]);
    assert_ne!(held[1], "True TriagePaused", "{:#}", restored[1]);
    assert_eq!(restored[1]["status"]["triage"]["state"], "Over", "{:#}", restored[1]);
    assert_eq!(restored[2]["status"]["adjust"]["interval"], "2h0m0s", "{:#}", restored[2]);
    // The resumed schedule runs again, but the paused one does not.
    crate::clearing::clear(&world, text(&triage), "looked").await?;
    hurry(&world, "resumed").await?;
    await_at_work(&world, "resumed").await?;
    assert_eq!(condition(&await_schedule(&world, "paused", "is there", |_| true).await?, "Held"), "True TriagePaused");
    world.close().await
}
