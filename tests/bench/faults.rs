//! The same work while the API server throttles, is slow, or is restarted. No execution may be lost. The results are
//! marked as disturbed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use wfe_testkit::proxy::Refusal;
use wfe_testkit::{Fault, Proxy, World};

use crate::Bench;
use crate::api;
use crate::counters::{Counters, Probe};
use crate::numbers::{float, per_second};
use crate::observer::{Observer, Seen};
use crate::player::{self, Mode, Player};
use crate::subject::{Operator, cpu_seconds};

/// The number of executions for each disturbance.
const COUNT: usize = 300;
/// One of this many requests is refused.
const EVERY: u64 = 5;
const SLOW: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, PartialEq)]
enum Disturbance {
    Throttles,
    IsSlow,
    Restarts,
}

/// Measures the operator under each of the three disturbances.
pub(crate) async fn faults(bench: &mut Bench) -> Result<()> {
    let world = bench.worlds.operator.clone();
    for (name, disturbance) in
        [("throttled", Disturbance::Throttles), ("slow", Disturbance::IsSlow), ("restarted", Disturbance::Restarts)]
    {
        disturbed(bench, &world, name, disturbance).await?;
    }
    Ok(())
}

async fn disturbed(bench: &mut Bench, world: &World, name: &str, disturbance: Disturbance) -> Result<()> {
    let proxy = Proxy::start(world.control_plane()).await?;
    proxy.on(move |request| match disturbance {
        Disturbance::Throttles if request.write.is_some_and(|number| number.is_multiple_of(EVERY)) => {
            Fault::Refuse(Refusal::throttled(1))
        }
        Disturbance::IsSlow => Fault::Delay { before: Duration::ZERO, after: SLOW },
        _ => Fault::Pass,
    });
    let before = Counters::read(&bench.client).await?;
    let executions = (0..COUNT).map(|index| (format!("{name}-{index:04}"), format!("node/{name}-{index:04}")));
    player::create_all(world, executions).await?;
    let observer = Observer::start(world).await?;
    let route = world.control_plane().dir().join("bench").join("route");
    world.write_operator_kubeconfig(Some(&proxy.url()), &route).await?;
    let probe = Probe::start(api::client(&route).await?);
    let begun = Instant::now();
    let operator = Operator::start(world, &bench.subjects.program, Some(&proxy)).await?;
    if disturbance == Disturbance::Restarts {
        observer.until("a third runs", |seen| (seen.running.len() > COUNT / 3).then_some(())).await?;
        world.control_plane().component("kube-apiserver").restart().await?;
    }
    observer.until("all run", |seen: &Seen| (seen.running.len() == COUNT).then_some(())).await?;
    let took = begun.elapsed();
    let player = Player::start(world.client(), &world.execution_namespace(), Mode::Plain);
    observer.until("all have ended", |seen| (seen.ended.len() == COUNT).then_some(())).await?;
    let mut marks = before.since(&bench.client).await?.disturbed;
    marks.extend(operator.troubles().await?);
    marks.extend(probe.slow());
    let (cpu, requests) = (cpu_seconds(operator.pid())?, proxy.requests().len());
    let busiest = proxy.busiest_second(begun);
    // No execution was lost, and none ran twice: each has completed with exactly one run.
    for wfe in world.wfes().await? {
        ensure!(wfe["status"]["phase"] == "Completed", "{name}: {wfe:#}");
    }
    let runs = world.runs().await?.len();
    ensure!(runs == COUNT, "{name}: {COUNT} executions, {runs} runs");
    ensure!(!marks.is_empty(), "{name}: the benchmark did not see that it was disturbed");
    drop((player, observer));
    operator.stop().await?;
    player::clear(world).await?;
    let results = &mut bench.results;
    results.add(&format!("disturbed/{name}/running_per_second"), "1/s", per_second(COUNT, took));
    results.add(&format!("disturbed/{name}/cpu_ms"), "ms per execution", cpu * 1e3 / float(COUNT));
    results.add(&format!("disturbed/{name}/requests"), "per execution", float(requests) / float(COUNT));
    results.add(&format!("disturbed/{name}/busiest_second"), "requests", float(busiest));
    bench.disturbed(&format!("disturbed/{name}"), &format!("on purpose: {marks:?}"));
    Ok(())
}
