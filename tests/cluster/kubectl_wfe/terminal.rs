//! A person at a terminal. Something changes while the tool waits for the person's answer.

use anyhow::Result;
use chrono::TimeDelta;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, Terminal, World, wfe};

use super::{Caller, ROLES, guard_clearances, has, recorded};
use crate::expect::condition;
use crate::history::past::{Past, past};

const QUESTION: &str = "Clear it? [y/N] ";

/// Starts to clear a target, and waits for the question.
async fn asked(caller: &Caller<'_>, target: &str) -> Result<Terminal> {
    let terminal = Terminal::start(caller.command(&["clear", target, "--reason", "looked at it"])?)?;
    terminal.await_text(QUESTION).await?;
    Ok(terminal)
}

/// Answers the question, and returns the final screen. The tool must end with this exit code.
async fn answered(mut terminal: Terminal, answer: &str, code: i32) -> Result<String> {
    terminal.type_line(answer)?;
    let (status, screen) = terminal.ended().await?;
    assert_eq!(status.code(), Some(code), "{screen}");
    Ok(screen)
}

#[tokio::test]
async fn whoever_is_asked_meanwhile_clears_nothing_that_was_not_shown() -> Result<()> {
    let world = World::new("asked").await?;
    for name in ["kept", "changed", "deleted", "replaced", "healed"] {
        past(&world, name, &format!("node/{name}"), "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    }
    guard_clearances(&world, "kept").await?;
    let jo = Caller::new(&world, "jo", &ROLES).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await?;
    let _operator = world.operator().start().await?;
    for name in ["kept", "changed", "deleted", "replaced", "healed"] {
        world.await_wfe(name, "blocks", |wfe| condition(wfe, "Blocked").starts_with("True")).await?;
    }
    let nothing_written = async |name: &str| -> Result<()> {
        assert_eq!(world.get_wfe(name).await?["spec"]["clearance"], Value::Null, "{name}");
        Ok(())
    };

    let screen = answered(asked(&jo, "node/kept").await?, "n", 1).await?;
    has(&screen, &["node/kept is blocked by", "why          in the past", "would run now", "Nothing was written."]);
    nothing_written("kept").await?;
    let refused = jo.says(2, &["clear", "node/kept", "--reason", "looked at it"]).await?;
    has(&refused, &["nothing was written: there is no terminal to ask on; run it on one, or add --yes"]);
    nothing_written("kept").await?;

    let terminal = asked(&jo, "node/changed").await?;
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen-by": "ann"}}}));
    world.api(&wfe::resource(), world.namespace()).patch("changed", &PatchParams::default(), &label).await?;
    let screen = answered(terminal, "y", 2).await?;
    has(
        &screen,
        &["it has changed since it was shown, and nothing was written; see what blocks now (kubectl wfe explain"],
    );
    nothing_written("changed").await?;
    let screen = answered(asked(&jo, "node/changed").await?, "yes", 0).await?;
    has(&screen, &["Cleared", "The clearance has lifted the block."]);

    let terminal = asked(&jo, "node/deleted").await?;
    world.delete_wfe("deleted").await?;
    has(&answered(terminal, "y", 2).await?, &["it has been deleted since it was shown", "nothing was written"]);

    let terminal = asked(&jo, "node/replaced").await?;
    world.delete_wfe("replaced").await?;
    world.wfe("replaced").target("node/replaced").workflow("w1").create().await?;
    has(&answered(terminal, "y", 2).await?, &["since it was shown", "nothing was written"]);
    nothing_written("replaced").await?;

    // The recovery by another execution ends the block, and the operator records this in the status.
    let terminal = asked(&jo, "node/healed").await?;
    let recovery = world.wfe("recovery").target("node/healed").workflow("w2").image(&works);
    recovery.patch(|wfe| wfe["spec"]["recoveryOf"] = json!("healed")).create().await?;
    world.await_phase("recovery", "Completed").await?;
    world.await_wfe("healed", "blocks no more", |wfe| condition(wfe, "Blocked") == "False Recovered").await?;
    has(&answered(terminal, "y", 2).await?, &["it has changed since it was shown", "nothing was written"]);
    nothing_written("healed").await?;
    // The clearance has no effect, and the tool says so.
    let clearance = Patch::Merge(json!({"spec": {"clearance": {"reason": "looked", "clearedBy": "admin"}}}));
    world.api(&wfe::resource(), world.namespace()).patch("healed", &PatchParams::default(), &clearance).await?;
    let is_recorded = |wfe: &Value| recorded(wfe) == (&Value::Null, "True NothingBlocked".to_owned());
    world.await_wfe("healed", "says that its clearance did nothing", is_recorded).await?;
    let in_vain = "has had no effect (ClearanceIneffective): nothing was blocked by this execution";
    has(&jo.says(1, &["explain", "healed"]).await?, &[&format!("clearing it  {in_vain}")]);
    // Without its recovery, the failure blocks again. Its only clearance is already set.
    world.delete_wfe("recovery").await?;
    let again = jo.says(2, &["clear", "node/healed", "--yes", "--reason", "looked at it"]).await?;
    has(&again, &["which cannot be set a second time", "else run another workflow with recoveryOf: healed"]);
    world.close().await
}
