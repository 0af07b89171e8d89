//! Texts by which a tenant tries to deceive readers. No subcommand may print them so that a terminal executes them, or
//! shows them as separate lines.

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{World, wfe};
use wfe_view::printable;

use super::{Caller, has, outputs, pause};
use crate::expect::condition;
use crate::history::past::{running, time, write};
use crate::schedules::{await_schedule, create};

/// The text clears the screen with seven-bit and eight-bit sequences, moves the cursor up, breaks the line, reverses
/// the text direction, and hides a character.
const HOSTILE: &str = "a\u{1b}[2Jb\u{9b}1Ac\r\nFORGED d\u{202e}e\u{2066}f\u{200b}g\u{7}\u{7f}";
/// The text as a person sees it.
const SHOWN: &str = r"a\u{1b}[2Jb\u{9b}1Ac\r\nFORGED d\u{202e}e\u{2066}f\u{200b}g\u{7}\u{7f}";
/// The text in JSON.
const IN_JSON: &str = r"\u001b[2Jb\u009b1Ac\r\nFORGED d\u202e";

/// Runs the tool, checks that its output does no harm, and returns it.
async fn says(caller: &Caller<'_>, words: &[&str]) -> Result<String> {
    let (stdout, stderr) = outputs(caller.command(words)?, &[0, 1, 2]).await?;
    let said = format!("{stdout}\n{stderr}");
    let forged = said.lines().any(|line| line.trim_start().starts_with("FORGED"));
    assert!(!forged && printable::lines(&said) == said, "{words:?} lets through:\n{said:?}");
    Ok(said)
}

#[tokio::test]
async fn no_text_of_a_tenant_is_obeyed_by_a_terminal() -> Result<()> {
    let world = World::new("hostile").await?;
    world.wfe("broken").target("node/broken").workflow(HOSTILE).create().await?;
    let ended = Utc::now() - TimeDelta::hours(1);
    let details = json!({
        "failedTaskIndex": 0, "failedTaskName": "", "reason": "Unknown", "message": HOSTILE, "failedAt": time(ended),
        "executionTimeBeforeFailure": "0s", "naturalLanguageSummary": HOSTILE, "wasExecutionFailure": true,
        "requiresManualReview": true,
    });
    let failed = json!({"phase": "Failed", "completionTime": time(ended), "runSequence": 1, "failureDetails": details});
    write(&world, "broken", &[running(&world, "broken", 1, ended), failed]).await?;
    let _operator = world.operator().start().await?;
    world.await_wfe("broken", "blocks", |wfe| condition(wfe, "Blocked").starts_with("True")).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain", "wfe-clear", "wfe-edit"]).await?;

    has(&says(&jo, &["explain", "node/broken"]).await?, &["would be skipped", SHOWN]);
    has(&says(&jo, &["explain", "broken"]).await?, &["is Failed", SHOWN]);
    has(&says(&jo, &["explain", "broken", "-o", "json"]).await?, &["\"Decided\"", IN_JSON]);
    let cleared = says(&jo, &["clear", "node/broken", "--yes", "--reason", HOSTILE]).await?;
    has(&cleared, &["node/broken is blocked by", SHOWN, "has lifted the block"]);
    has(&says(&jo, &["explain", "node/broken"]).await?, &["has cleared the latest", SHOWN]);

    create(&world, "hourly", "node/worker", "registry.invalid/w:1", &json!({"interval": "1h", "minInterval": "1s"}))
        .await?;
    await_schedule(&world, "hourly", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    let hint = json!({"nextRunAt": time(Utc::now() + TimeDelta::minutes(9)), "reason": HOSTILE,
        "expiresAt": time(Utc::now() + TimeDelta::minutes(10))});
    let change_it = |change: Value| {
        let schedules: Api<DynamicObject> = world.api(&wfe::schedules(), world.namespace());
        async move { schedules.patch("hourly", &PatchParams::default(), &Patch::Merge(change)).await }
    };
    change_it(json!({"spec": {"hint": hint}})).await?;
    pause(&world, HOSTILE).await?;
    has(&says(&jo, &["schedule", "explain", "hourly"]).await?, &["WorkflowSchedule", "hourly"]);
    says(&jo, &["schedule", "explain", "hourly", "-o", "json"]).await?;
    for words in [&["list"][..], &["list", "-o", "json"], &["suspend", "hourly"], &["resume", "hourly"]] {
        says(&jo, &[&["schedule"], words].concat()).await?;
    }
    says(&jo, &["schedule", "run", "hourly", "--reason", HOSTILE]).await?;
    has(&says(&jo, &["explain", "node/broken"]).await?, &["would wait", SHOWN]);

    let path = world.control_plane().dir().join("worlds").join(world.namespace()).join("hostile.json");
    let file = path.to_string_lossy().into_owned();
    let mut object = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
        "metadata": {"name": "new", "namespace": world.namespace()},
        "spec": {"targetResource": HOSTILE, "workflowRef": {
            "workflowId": HOSTILE, "version": HOSTILE, "containerImage": HOSTILE}},
    });
    for target in [HOSTILE, "node/broken"] {
        object["spec"]["targetResource"] = json!(target);
        std::fs::write(&path, object.to_string())?;
        says(&jo, &["explain", "--file", &file]).await?;
    }
    for words in [&["explain", HOSTILE][..], &["schedule", "explain", HOSTILE], &["schedule", "suspend", HOSTILE]] {
        says(&jo, words).await?;
    }
    world.close().await
}
