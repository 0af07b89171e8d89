//! The operator loses the answer to each write in a WorkflowExecution's life once, and keeps running. The simulation
//! covers the other faults of a write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use futures::future::try_join_all;
use wfe_testkit::proxy::Request;
use wfe_testkit::{Fault, Metrics, Proxy, Recording, World, is_terminal};

use super::judge::{History, assert_completed};
use super::{CREATE, OWNER, lasting, sign, writes_of_a_life};
use crate::expect::text;

/// The faults of one WorkflowExecution, by the sign of the write that meets the fault.
type Troubles = HashMap<String, Fault>;

/// The remaining faults, by the name of the WorkflowExecution.
#[derive(Default)]
struct Plan(HashMap<String, Troubles>);

impl Plan {
    /// Plans a separate WorkflowExecution for each write. Only this write meets the fault.
    fn each(&mut self, label: &str, fault: &Fault, writes: &[String]) {
        for (n, write) in writes.iter().enumerate() {
            self.0.insert(format!("{label}-{n}"), HashMap::from([(write.clone(), fault.clone())]));
        }
    }

    /// Plans one WorkflowExecution in which all these writes meet the fault.
    fn every(&mut self, label: &str, fault: &Fault, writes: &[String]) {
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

/// Returns the writes without the events, which may be missing if the result of a status write is unknown.
fn steps(writes: &[String]) -> Vec<String> {
    writes.iter().filter(|write| !write.contains(" events ")).cloned().collect()
}

/// Runs the planned WorkflowExecutions at the same time, and checks that each ends as it would without faults.
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
    for wfe in plan.keys() {
        for reason in ["PipelineRunCreated", "WorkflowCompleted"] {
            world.await_event(wfe, reason).await?;
        }
    }
    // Each write is counted exactly once, because the watch shows even a write whose answer was lost.
    let all = f64::from(u32::try_from(plan.len())?);
    let counted = |metrics: &Metrics| {
        let created = metrics.value("workflowexecution_pipelinerun_creation_total", &[]);
        let completed = metrics.value("workflowexecution_total", &[("outcome", "Completed")]);
        (created, completed) == (all, all)
    };
    operator.await_metrics(&format!("{all} created and completed"), counted).await?;
    operator.terminate().await?;
    let to_come = to_come.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(to_come.values().all(HashMap::is_empty), "faults that nothing met: {to_come:?}");
    let history = History::judged(&world, recording).await?;
    for wfe in plan.keys() {
        assert_eq!(history.created_for(&ended[wfe]), 1, "{wfe}");
    }
    world.close().await
}

/// Returns a plan for the proxy. Each fault in `to_come` happens once, to the write with its sign.
fn meet(
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
