//! Two operators watch different namespaces, but share the execution namespace. Neither sees the other's executions. A
//! finished run does not show whether another attempt follows, so each operator reads live whether the run's owner
//! still has the target.

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Recording, World};

use super::{attempts, end, fails, undecided, with_retry};
use crate::audited::audited_with;
use crate::expect::text;
use crate::faults::{all, short};
use crate::lock::pause;

/// Returns two worlds with one execution namespace, and a recording of both.
async fn neighbours(name: &str) -> Result<(World, World, Recording)> {
    let here = World::new(name).await?;
    let there = here.neighbour().await?;
    let recording = here.record_all().await?.and(there.record_executions().await?);
    Ok((here, there, recording))
}

async fn close(here: World, there: World, recording: Recording) -> Result<()> {
    audited_with(&here, &there, recording).await?;
    there.close().await?;
    here.close().await
}

/// Creates an execution on a target of its own, and waits until the status records that its first attempt has failed.
async fn waits(world: &World, name: &str, bundle: &str, policy: &Value) -> Result<Value> {
    with_retry(world.wfe(name).target(&target_of(name)).image(bundle), policy).create().await?;
    fails(world, name, 1, 2).await
}

fn target_of(holder: &str) -> String {
    format!("node/{holder}")
}

/// Creates another execution on a holder's target, and checks that it is skipped because of the holder.
async fn is_skipped(world: &World, rival: &str, holder: &Value) -> Result<Value> {
    let target = text(&holder["spec"]["targetResource"]);
    world.wfe(rival).target(target).workflow(rival).create().await?;
    let skipped = world.await_terminal(rival).await?;
    let details = &skipped["status"]["skipDetails"];
    let conflict = &details["conflictingWorkflow"];
    ensure!(text(&details["reason"]) == "ResourceBusy", "{skipped:#}");
    for field in ["namespace", "name"] {
        ensure!(conflict[field] == holder["metadata"][field], "{skipped:#}");
    }
    Ok(skipped)
}

/// Checks that a new execution can run on the target of an ended execution.
async fn runs_next(world: &World, name: &str, holder: &str, bundle: &str) -> Result<()> {
    world.wfe(name).target(&target_of(holder)).workflow(name).image(bundle).create().await?;
    let done = world.await_terminal(name).await?;
    ensure!(text(&done["status"]["phase"]) == "Completed", "{done:#}");
    Ok(())
}

/// Returns how many times one world's operator has read an execution of the other world by name.
async fn reads(reader: &World, holder: &Value) -> Result<usize> {
    let (namespace, name) = (text(&holder["metadata"]["namespace"]), text(&holder["metadata"]["name"]));
    let requests = reader.audit().await?;
    let is_read = |entry: &&wfe_testkit::AuditEntry| {
        entry.user == reader.operator_user()
            && (entry.verb.as_str(), entry.resource.as_str(), entry.code) == ("get", "workflowexecutions", 200)
            && (entry.namespace.as_str(), entry.name.as_str()) == (namespace, name)
    };
    Ok(requests.iter().filter(is_read).count())
}

#[tokio::test]
async fn one_that_waits_unseen_holds_its_target_until_it_ends() -> Result<()> {
    let (here, there, recording) = neighbours("wait-unseen").await?;
    let (bundle, short) = (undecided(&here).await?, short(&here).await?);
    let _first = here.operator().start().await?;
    let _second = there.operator().start().await?;
    // A pause of the holder's namespace delays the second attempt for as long as the test needs.
    with_retry(here.wfe("holder").target(&target_of("holder")).image(&bundle), &json!(3)).create().await?;
    here.await_phase("holder", "Running").await?;
    pause(&here, json!("change freeze")).await?;
    let holder = fails(&here, "holder", 1, 2).await?;

    let rival = is_skipped(&there, "rival", &holder).await?;
    let told = text(&rival["status"]["skipDetails"]["message"]);
    for words in ["waits for attempt 2 of 3, which begins at ", text(&attempts(&holder)[1]["notBefore"])] {
        assert!(told.contains(words), "{words}: {rival:#}");
    }
    // The operator reads once to learn the holder's state, and once more before it writes the skip.
    let read = reads(&there, &holder).await?;
    assert!(read >= 2, "read {read} times");
    assert_eq!(here.runs().await?.len(), 1, "a rival that is skipped makes no run here");

    pause(&here, Value::Null).await?;
    end(&here, "holder", 2, Outcome::Ok).await?;
    let done = here.await_phase("holder", "Completed").await?;
    assert_eq!((attempts(&done).len(), &done["status"]["runSequence"]), (2, &json!(2)), "{done:#}");
    runs_next(&there, "next", "holder", &short).await?;
    runs_next(&here, "next-here", "holder", &short).await?;
    close(here, there, recording).await
}

#[tokio::test]
async fn a_rival_that_comes_while_the_next_attempt_begins_never_runs_beside_it() -> Result<()> {
    let holders = if all() { 30 } else { 6 };
    let (here, there, recording) = neighbours("wait-race").await?;
    let (bundle, short) = (undecided(&here).await?, short(&here).await?);
    let _first = here.operator().start().await?;
    let _second = there.operator().start().await?;
    try_join_all((0..holders).map(|n| race(&here, &there, n, &bundle, &short))).await?;
    close(here, there, recording).await
}

/// Lets two rivals arrive at random moments of a wait: before, while or after the next run is created.
async fn race(here: &World, there: &World, n: usize, bundle: &str, short: &str) -> Result<()> {
    let name = format!("holder-{n}");
    let (home, away) = if n.is_multiple_of(2) { (here, there) } else { (there, here) };
    let mut holder = waits(home, &name, bundle, &json!({"maxAttempts": 4, "maxDelay": "1s"})).await?;
    for number in [2, 3] {
        is_skipped(away, &format!("rival-{n}-{number}"), &holder).await?;
        holder = fails(home, &name, number, usize::try_from(number)? + 1).await?;
        // The run of the next attempt may already exist.
        is_skipped(home, &format!("home-{n}-{number}"), &holder).await?;
    }
    end(home, &name, 4, Outcome::Ok).await?;
    home.await_phase(&name, "Completed").await?;
    runs_next(away, &format!("next-{n}"), &name, short).await
}
