//! The children of a schedule, and what happens to them when the schedule is edited, deleted or recreated.

use anyhow::Result;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World};

use super::{
    await_at_work, await_children, await_outcome, await_schedule, create, edit, end_child, hurry, moment, schedules,
};
use crate::audited::audited;
use crate::expect::{condition, text};
use crate::history::short;

#[tokio::test]
async fn a_child_is_what_the_template_says_and_names_its_schedule_and_slot() -> Result<()> {
    let world = World::new("child").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let operator = world.operator().start().await?;
    let spec = json!({"interval": "1h", "startingDeadlineSeconds": 600});
    let schedule = create(&world, "nightly", "Node/worker", &bundle, &spec).await?;
    let template = json!({
        "metadata": {"labels": {"team": "payments"}, "annotations": {"why": "disk"}},
        "spec": {
            "targetResource": "Node/worker",
            "workflowRef": schedule["spec"]["template"]["spec"]["workflowRef"],
            "parameters": {"DEPTH": "3"},
            "ttlSecondsAfterFinished": 3600,
        },
    });
    edit(&world, "nightly", json!({ "template": template })).await?;
    hurry(&world, "nightly").await?;
    let done = await_outcome(&world, "nightly", "Completed").await?;
    let slot = moment(&done["status"]["lastRun"]["slot"])?;
    let children = await_children(&world, "nightly", 1).await?;
    let child = &children[0];
    assert_eq!(text(&child["metadata"]["name"]), format!("nightly-{}", slot.timestamp()));
    assert_eq!(child["metadata"]["ownerReferences"], Value::Null, "{child:#}");
    let labels = &child["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["kubernaut.ai/schedule"]), (&json!("payments"), &json!("nightly")));
    let annotations = &child["metadata"]["annotations"];
    assert_eq!(annotations["why"], "disk");
    assert_eq!(moment(&annotations["kubernaut.ai/scheduled-for"])?, slot);
    let spec = &child["spec"];
    assert_eq!(moment(&spec["startBefore"])?, slot + chrono::TimeDelta::minutes(10));
    assert_eq!((&spec["parameters"], &spec["ttlSecondsAfterFinished"]), (&json!({"DEPTH": "3"}), &json!(3600)));
    let by = &spec["remediationRequestRef"];
    assert_eq!((text(&by["kind"]), text(&by["name"])), ("WorkflowSchedule", "nightly"));
    assert_eq!(by["uid"], done["metadata"]["uid"]);
    assert_eq!(condition(&done, "Ready"), "True Planned", "{done:#}");
    // If nothing goes wrong, the operator reads the schedule once and creates one execution.
    let requests = world.audit().await?;
    let user = world.operator_user();
    let mine = requests.iter().filter(|it| it.user == user);
    let count = |verb: &str, resource: &str| {
        mine.clone().filter(|it| it.verb == verb && it.resource == resource && it.subresource.is_empty()).count()
    };
    assert_eq!((count("get", "workflowschedules"), count("create", "workflowexecutions")), (1, 1));
    operator.terminate().await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_schedule_that_is_deleted_leaves_its_child_at_work_and_one_made_again_is_another() -> Result<()> {
    let world = World::new("deleted-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold).lasting("100ms")).await?;
    let _operator = world.operator().start().await?;
    let spec = json!({"interval": "1h", "minInterval": "1s"});
    create(&world, "again", "node/worker", &bundle, &spec).await?;
    hurry(&world, "again").await?;
    let child = await_at_work(&world, "again").await?;
    schedules(&world).delete("again", &DeleteParams::default()).await?;
    create(&world, "again", "node/worker", &bundle, &spec).await?;
    let planned = await_schedule(&world, "again", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    assert_eq!(planned["status"]["lastRun"], Value::Null, "{planned:#}");
    end_child(&world, &child, "ok").await?;
    world.await_phase(&child, "Completed").await?;
    let other = await_schedule(&world, "again", "is there", |_| true).await?;
    assert_eq!(other["status"]["lastRun"], Value::Null, "{other:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_child_that_is_deleted_counts_for_nothing() -> Result<()> {
    let world = World::new("deleted-child").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold).lasting("100ms")).await?;
    let _operator = world.operator().start().await?;
    create(&world, "loses", "node/worker", &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    hurry(&world, "loses").await?;
    let child = await_at_work(&world, "loses").await?;
    world.delete_wfe(&child).await?;
    let deleted = await_outcome(&world, "loses", "Deleted").await?;
    assert_eq!(deleted["status"]["failureCount"], 0, "{deleted:#}");
    world.close().await
}

/// A release tool changes labels of the template all the time. The slots stay the same, and none is lost.
#[tokio::test]
async fn labels_that_are_edited_all_the_time_move_no_slot() -> Result<()> {
    let world = World::new("stamped").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    create(&world, "stamped", "node/worker", &bundle, &json!({"interval": "3s"})).await?;
    let begun = await_schedule(&world, "stamped", "is planned", |it| it["status"]["plannedFrom"].is_string()).await?;
    let (revision, from) = (begun["status"]["revision"].clone(), moment(&begun["status"]["plannedFrom"])?);
    for stamp in 1..=3_usize {
        edit(&world, "stamped", json!({"template": {"metadata": {"labels": {"release": stamp.to_string()}}}})).await?;
        await_schedule(&world, "stamped", "has run again", |it| {
            let slot = moment(&it["status"]["lastRun"]["slot"]);
            slot.is_ok_and(|slot| (slot - from).num_seconds() >= 3 * i64::try_from(stamp).unwrap_or(i64::MAX))
        })
        .await?;
    }
    let found = await_outcome(&world, "stamped", "Completed").await?;
    let slot = moment(&found["status"]["lastRun"]["slot"])?;
    assert_eq!((slot - from).num_seconds() % 3, 0, "{found:#}");
    assert_eq!((&found["status"]["revision"], moment(&found["status"]["plannedFrom"])?), (&revision, from));
    // A change of the workflow restarts the count of failures, but does not move a slot either.
    edit(&world, "stamped", json!({"template": {"spec": {"workflowRef": {"version": "2"}}}})).await?;
    let edited =
        await_schedule(&world, "stamped", "is planned anew", |it| it["status"]["revision"] != revision).await?;
    // If the next slot came at once, its run has replaced the phase.
    let (phase, slot) = (&edited["status"]["phase"], &edited["status"]["lastRun"]["slot"]);
    let counted_from = moment(if phase.is_null() { slot } else { phase })?;
    assert_eq!((counted_from - from).num_seconds() % 3, 0, "{edited:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_spec_that_cannot_be_used_is_told_and_harms_nobody_else() -> Result<()> {
    let world = World::new("unusable-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let operator = world.operator().start().await?;
    create(&world, "never", "node/worker", &bundle, &json!({"cron": "0 0 31 2 *"})).await?;
    let unusable =
        await_schedule(&world, "never", "says so", |it| condition(it, "Ready") == "False InvalidSpec").await?;
    let message = unusable["status"]["conditions"].as_array().into_iter().flatten();
    let message: String = message.map(|it| text(&it["message"])).collect();
    assert!(message.contains("spec.cron"), "{unusable:#}");
    world.await_event("never", "InvalidSpec").await?;
    let shown = operator.metrics().await?.value("workflowschedule_unusable", &[("reason", "InvalidSpec")]);
    assert!(shown > 0.0, "{shown}");
    create(&world, "works", "node/worker", &bundle, &json!({"interval": "1h"})).await?;
    hurry(&world, "works").await?;
    await_outcome(&world, "works", "Completed").await?;
    edit(&world, "never", json!({"cron": "0 0 28 2 *"})).await?;
    await_schedule(&world, "never", "is planned", |it| {
        condition(it, "Ready").starts_with("True") && it["status"]["nextRunTime"].is_string()
    })
    .await?;
    audited(&world, recording).await?;
    world.close().await
}
