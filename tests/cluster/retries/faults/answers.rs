//! Every write of three attempts goes wrong once, in many ways, and the operator lives on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::Value;
use wfe_testkit::proxy::Answer;
use wfe_testkit::{Fault, Proxy, Refusal, World, is_terminal};

use super::{EVENTS, STEPS, check_all, exits, hopeless, sign, writes};
use crate::faults::all;
use crate::faults::answers::{Plan, meet};

/// Longer than the operator waits for an answer.
const TOO_LATE: Duration = Duration::from_secs(16);
const SOON: Duration = Duration::from_millis(300);
/// The step that only an execution with a policy has, and those of the attempt after it.
const FEW: [&str; 4] = ["retry 1", "create 2", "commit 2", "release 2"];

fn owned(steps: &[&str]) -> Vec<String> {
    steps.iter().map(|step| (*step).to_owned()).collect()
}

#[tokio::test]
async fn a_lost_answer_of_any_write_of_three_attempts_changes_nothing_in_the_end() -> Result<()> {
    let mut plan = Plan::default();
    plan.each("lost", &Fault::LoseAnswer, &if all() { writes() } else { owned(&FEW) });
    plan.every("all-lost", &Fault::LoseAnswer, &owned(&STEPS));
    carry_out("retry-lost", plan).await
}

#[tokio::test]
async fn whatever_happens_to_a_write_of_three_attempts_changes_nothing_in_the_end() -> Result<()> {
    let (steps, writes) = (owned(&STEPS), writes());
    let mut plan = Plan::default();
    plan.every("closed", &Fault::Close, &writes);
    plan.every("doubled-first", &Fault::Duplicate { pause: SOON, answer: Answer::First }, &writes);
    plan.every("doubled-second", &Fault::Duplicate { pause: SOON, answer: Answer::Second }, &steps);
    plan.every("conflict", &Fault::Refuse(Refusal::conflict()), &steps);
    plan.every("throttled", &Fault::Refuse(Refusal::throttled(1)), &writes);
    plan.every("unavailable", &Fault::Refuse(Refusal::unavailable()), &writes);
    if all() {
        plan.each("late", &Fault::late(TOO_LATE), &steps);
        plan.each("dropped", &Fault::Drop, &steps);
        plan.each("unanswered", &Fault::NeverAnswer, &steps);
        plan.every("throttled-plainly", &Fault::Refuse(Refusal::throttled_plainly(1)), &writes);
        plan.every("internal", &Fault::Refuse(Refusal::internal()), &writes);
    }
    carry_out("retry-troubled", plan).await
}

/// Runs the planned executions, all at once, and checks that each ends as without its troubles, and that each event
/// comes.
async fn carry_out(name: &str, plan: Plan) -> Result<()> {
    let world = World::new(name).await?;
    let recording = world.record().await?;
    let bundle = exits(&world).await?;
    let plan = plan.0;
    let proxy = Proxy::start(world.control_plane()).await?;
    let to_come = Arc::new(Mutex::new(plan.clone()));
    proxy.on(meet(sign, Arc::clone(&to_come)));
    let operator = world.operator().through(&proxy).start().await?;
    let begun = Instant::now();
    let builders: Vec<_> = plan.keys().map(|wfe| hopeless(&world, wfe, &bundle)).collect();
    try_join_all(builders.iter().map(wfe_testkit::WfeBuilder::create)).await?;
    let ended = world
        .await_wfes_within(Duration::from_mins(3), "all terminal", |all| {
            plan.keys().all(|wfe| all.get(wfe).is_some_and(is_terminal))
        })
        .await?;
    println!("{} executions took {:?}", plan.len(), begun.elapsed());
    for (wfe, troubles) in &plan {
        for (event, step) in EVENTS {
            // Where somebody else was faster, and that was itself, it may stay silent, as after a crash.
            if !matches!(troubles.get(step), Some(Fault::Duplicate { answer: Answer::Second, .. })) {
                await_event(&world, &ended[wfe], event).await?;
            }
        }
    }
    operator.terminate().await?;
    let to_come = to_come.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(to_come.values().all(HashMap::is_empty), "faults that nothing met: {to_come:?}");
    let ended: Vec<&Value> = plan.keys().map(|wfe| &ended[wfe]).collect();
    check_all(&world, recording, ended.into_iter()).await?;
    world.close().await
}

/// Waits until the event with this end of its name is there.
async fn await_event(world: &World, wfe: &Value, event: &str) -> Result<()> {
    let text = |field: &str| wfe["metadata"][field].as_str().unwrap_or_default();
    let name = format!("{}.{}.{event}", text("name"), text("uid"));
    world.await_event_named(&name).await.map(drop)
}
