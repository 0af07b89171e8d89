//! Every write of a WorkflowExecution's life goes wrong once, in every way, and the operator lives on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use wfe_testkit::proxy::{Answer, Request};
use wfe_testkit::{Fault, Metrics, Proxy, Recording, Refusal, World, is_terminal};

use super::judge::{History, assert_completed};
use super::{CREATE, OWNER, lasting, sign, writes_of_a_life};
use crate::expect::text;

/// Longer than the operator waits for an answer.
const TOO_LATE: Duration = Duration::from_secs(16);
const SOON: Duration = Duration::from_millis(300);

/// What goes wrong in the life of one WorkflowExecution: each of these writes meets its fault, the first time.
pub(crate) type Troubles = HashMap<String, Fault>;

/// The troubles of all WorkflowExecutions, by name, as far as they are still to come.
#[derive(Default)]
pub(crate) struct Plan(pub(crate) HashMap<String, Troubles>);

impl Plan {
    /// For each write one WorkflowExecution, which meets the fault there and nowhere else.
    pub(crate) fn each(&mut self, label: &str, fault: &Fault, writes: &[String]) {
        for (n, write) in writes.iter().enumerate() {
            self.0.insert(format!("{label}-{n}"), HashMap::from([(write.clone(), fault.clone())]));
        }
    }

    /// One WorkflowExecution, which meets the fault at all these writes.
    pub(crate) fn every(&mut self, label: &str, fault: &Fault, writes: &[String]) {
        let troubles = writes.iter().map(|write| (write.clone(), fault.clone()));
        self.0.insert(label.to_owned(), troubles.collect());
    }
}

#[tokio::test]
async fn a_lost_answer_of_any_write_changes_nothing_in_the_end() -> Result<()> {
    let world = World::new("lost").await?;
    let recording = world.record().await?;
    let writes = writes_of_a_life(&world).await?;
    let mut plan = Plan::default();
    plan.each("lost", &Fault::LoseAnswer, &writes);
    plan.every("all-lost", &Fault::LoseAnswer, &steps(&writes));
    carry_out(world, recording, plan).await
}

#[tokio::test]
async fn whatever_happens_to_a_write_changes_nothing_in_the_end() -> Result<()> {
    let world = World::new("troubled").await?;
    let recording = world.record().await?;
    let writes = writes_of_a_life(&world).await?;
    let steps = steps(&writes);
    let mut plan = Plan::default();
    // These take as long as the operator waits for an answer, so they come side by side.
    plan.each("late", &Fault::late(TOO_LATE), &steps);
    plan.each("dropped", &Fault::Drop, &steps);
    plan.each("unanswered", &Fault::NeverAnswer, &steps);
    plan.every("closed", &Fault::Close, &writes);
    plan.every("doubled-first", &Fault::Duplicate { pause: SOON, answer: Answer::First }, &writes);
    plan.every("doubled-second", &Fault::Duplicate { pause: SOON, answer: Answer::Second }, &steps);
    // Of an event, a conflict says that it is there.
    plan.every("conflict", &Fault::Refuse(Refusal::conflict()), &steps);
    plan.every("throttled", &Fault::Refuse(Refusal::throttled(1)), &writes);
    plan.every("throttled-plainly", &Fault::Refuse(Refusal::throttled_plainly(1)), &writes);
    plan.every("internal", &Fault::Refuse(Refusal::internal()), &writes);
    plan.every("unavailable", &Fault::Refuse(Refusal::unavailable()), &writes);
    carry_out(world, recording, plan).await
}

/// Leaves the events out: where a status write is in doubt they may never come.
fn steps(writes: &[String]) -> Vec<String> {
    writes.iter().filter(|write| !write.contains(" events ")).cloned().collect()
}

/// Runs the planned WorkflowExecutions, all at once, and checks that each ends as without its troubles.
async fn carry_out(world: World, recording: Recording, plan: Plan) -> Result<()> {
    let bundle = lasting(&world).await?;
    let plan = plan.0;
    let proxy = Proxy::start(world.control_plane()).await?;
    let to_come = Arc::new(Mutex::new(plan.clone()));
    proxy.on(meet(sign, Arc::clone(&to_come)));
    let operator = world.operator().through(&proxy).start().await?;

    let begun = Instant::now();
    let create = |wfe: &String| {
        let builder = world.wfe(wfe).target(&format!("node/{wfe}")).image(&bundle);
        async move { builder.create().await }
    };
    try_join_all(plan.keys().map(create)).await?;
    let ended =
        world.await_wfes("all terminal", |all| plan.keys().all(|wfe| all.get(wfe).is_some_and(is_terminal))).await?;
    println!("{} executions took {:?}", plan.len(), begun.elapsed());
    assert_completed(plan.keys().map(|wfe| &ended[wfe]));
    for (wfe, troubles) in &plan {
        for (write, reason) in EVENTS {
            if !troubles.get(write).is_some_and(is_answered_for_another) {
                world.await_event(wfe, reason).await?;
            }
        }
    }
    // Each is counted, and once.
    let told_of = |write: &str| {
        let count = plan.values().filter(|troubles| !troubles.get(write).is_some_and(is_answered_for_another)).count();
        u32::try_from(count).map(f64::from)
    };
    let (created, completed) = (told_of(super::CREATE)?, told_of(super::COMPLETE)?);
    let counted = |metrics: &Metrics| {
        let created_now = metrics.value("workflowexecution_pipelinerun_creation_total", &[]);
        let completed_now = metrics.value("workflowexecution_total", &[("outcome", "Completed")]);
        (created_now, completed_now) == (created, completed)
    };
    operator.await_metrics(&format!("{created} created and {completed} completed"), counted).await?;
    operator.terminate().await?;
    let to_come = to_come.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(to_come.values().all(HashMap::is_empty), "faults that nothing met: {to_come:?}");
    let history = History::judged(&world, recording).await?;
    for wfe in plan.keys() {
        assert_eq!(history.created_for(&ended[wfe]), 1, "{wfe}");
    }
    world.close().await
}

/// The events, each with the write that it tells of.
const EVENTS: [(&str, &str); 2] = [(super::COMMIT, "PipelineRunCreated"), (super::COMPLETE, "WorkflowCompleted")];

/// Says whether the operator is answered that somebody else was faster, and that was itself: nothing in the answer says
/// so, and it may then stay silent, as after a crash. An answer that is lost is no excuse: the watch shows the write.
fn is_answered_for_another(fault: &Fault) -> bool {
    matches!(fault, Fault::Duplicate { answer: Answer::Second, .. })
}

/// Makes the proxy's plan: what is to come for an execution happens to the write with that sign, once.
pub(crate) fn meet(
    sign: fn(&Request) -> String,
    to_come: Arc<Mutex<HashMap<String, Troubles>>>,
) -> impl FnMut(&Request) -> Fault + Send + 'static {
    let mut owners: HashMap<String, String> = HashMap::new();
    move |request| {
        let write = sign(request);
        let wfe = match request.resource.as_str() {
            "pipelineruns" if request.is(CREATE) => {
                let wfe = text(&request.body["metadata"]["labels"][OWNER]).to_owned();
                owners.insert(request.name.clone(), wfe.clone());
                wfe
            }
            "pipelineruns" => owners.get(&request.name).cloned().unwrap_or_default(),
            "events" => request.name.split('.').next().unwrap_or_default().to_owned(),
            _ => request.name.clone(),
        };
        let mut to_come = to_come.lock().unwrap_or_else(PoisonError::into_inner);
        to_come.get_mut(&wfe).and_then(|troubles| troubles.remove(&write)).unwrap_or_default()
    }
}
