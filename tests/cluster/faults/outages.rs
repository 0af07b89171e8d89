//! For a while, the API server is stopped or cut off, or refuses everything. Nothing is lost or done twice, and the
//! operator does not retry in a busy loop.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use wfe_core::backoff::Backoff;
use wfe_testkit::proxy::{Passed, Request, Verb};
use wfe_testkit::{ControlPlane, Fault, Options, Proxy, Refusal, WfeBuilder, When, World, is_terminal};

use super::judge::{History, assert_completed};
use super::{CREATE, all, await_task, finish, held, short};
use crate::expect::condition;
use crate::unattended::await_readyz;

/// The operator must send a failing write fewer times than this during its outage.
const MOST_PER_SECOND: usize = 20;
/// A backoff that never waits longer than the backoffs of the operator's targets and watches.
const SHORTEST_BACKOFF: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(10), 7);
/// How many requests of one kind a try may send, if the request is neither a list nor a watch. A try reads each of two
/// CRDs twice, and writes for each of a few executions.
const MOST_PER_TRY: usize = 4;
/// How many lists, and how many watches, of one resource are allowed in addition to one for each try. The client sends
/// a request again if its connection was closed.
const REPEATED: usize = 2;
/// How long the operator may take to become ready again. It waits up to ten seconds between two tries. A watch that
/// delivers nothing counts as failing for twenty seconds.
const READY_WITHIN: Duration = Duration::from_secs(45);
/// How long all executions may take to end. Tekton and the other controllers recover slowly after a long outage.
const ENDED_WITHIN: Duration = Duration::from_mins(3);

/// Returns the duration of an outage.
fn outage() -> Duration {
    if all() { Duration::from_mins(1) } else { Duration::from_secs(4) }
}

/// The kind of an outage.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The operator's requests fail.
    Failing,
    /// The operator's requests get no answer. The operator may still be ready, because it does not notice silence so
    /// soon.
    Silent,
    /// The API server is stopped, so the test cannot use it either.
    Away,
}

#[tokio::test]
async fn throttling_is_survived() -> Result<()> {
    under_plan("throttled", |_| Fault::Refuse(Refusal::throttled(1))).await
}

#[tokio::test]
async fn throttling_by_priority_and_fairness_is_survived() -> Result<()> {
    under_plan("plainly", |_| Fault::Refuse(Refusal::throttled_plainly(1))).await
}

#[tokio::test]
async fn errors_500_are_survived() -> Result<()> {
    under_plan("internal", |_| Fault::Refuse(Refusal::internal())).await
}

#[tokio::test]
async fn errors_503_are_survived() -> Result<()> {
    under_plan("unavailable", |_| Fault::Refuse(Refusal::unavailable())).await
}

#[tokio::test]
async fn closed_connections_are_survived() -> Result<()> {
    under_plan("closed", |_| Fault::Close).await
}

#[tokio::test]
async fn watches_that_are_refused_as_expired_are_survived() -> Result<()> {
    under_plan("expired", only_watches(Fault::Refuse(Refusal::expired()))).await
}

#[tokio::test]
async fn watches_that_end_as_expired_are_survived() -> Result<()> {
    under_plan("expiring", only_watches(Fault::Expire)).await
}

fn only_watches(fault: Fault) -> impl FnMut(&Request) -> Fault + Send + 'static {
    move |request| if request.verb == Verb::Watch { fault.clone() } else { Fault::Pass }
}

#[tokio::test]
async fn a_partition_is_survived() -> Result<()> {
    let world = World::new("partition").await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    // The outage begins after the operator has sent a create, and before the create arrives.
    let begin = async |new: &WfeBuilder| {
        let mut gate = proxy.hold(When::Before, |request| request.is(CREATE));
        new.create().await?;
        gate.reached().await?;
        proxy.partition(true);
        gate.open();
        Ok(())
    };
    survive(world, &proxy, Kind::Silent, begin, async || Ok(())).await
}

#[tokio::test]
async fn an_api_server_that_restarts_is_survived() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let api_server = control_plane.component("kube-apiserver");
    let world = World::on(&control_plane, "restarted").await?;
    let proxy = Proxy::start(&control_plane).await?;
    let begin = async |new: &WfeBuilder| {
        new.create().await?;
        api_server.kill().await
    };
    survive(world, &proxy, Kind::Away, begin, async || api_server.start().await).await
}

#[tokio::test]
async fn a_watch_that_falls_silent_stops_decisions_and_readiness_until_it_is_heard_again() -> Result<()> {
    let world = World::new("silent").await?;
    let bundle = short(&world).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let operator = world.operator().through(&proxy).arg("--max-staleness", "5s").start().await?;
    world.wfe("before").target("node/before").image(&bundle).create().await?;
    world.await_phase("before", "Completed").await?;

    let is_of_pods = |request: &Request| matches!(request.verb, Verb::List | Verb::Watch) && request.resource == "pods";
    proxy.on(move |request| if is_of_pods(request) { Fault::Drop } else { Fault::Pass });
    proxy.cut_all();
    // This is three times the allowed silence. The watch was restarted meanwhile, but it is still silent.
    let seconds = |said: &str| {
        let (_, silent) = said.split_once("the watch of pods has been silent for ")?;
        silent.split(' ').next()?.parse::<u64>().ok()
    };
    let is_stale = |status: u16, said: &str| status == 503 && seconds(said).is_some_and(|seconds| seconds >= 15);
    await_readyz(&operator, "a silent watch", is_stale).await?;
    let silence = operator.metrics().await?.value("workflowexecution_watch_silence_seconds", &[("resource", "pods")]);
    assert!(silence >= 15.0, "{silence}");
    world.wfe("blind").target("node/blind").image(&bundle).create().await?;
    let waits = |wfe: &Value| condition(wfe, "Waiting") == "True CacheNotSynced";
    let blind = world.await_wfe("blind", "waits for a view", waits).await?;
    assert_eq!(condition(&blind, "Succeeded"), "Unknown CacheNotSynced");
    assert_eq!(world.runs().await?.len(), 1, "nothing is created for it");

    proxy.heal();
    proxy.cut_all();
    world.await_phase("blind", "Completed").await?;
    await_readyz(&operator, "readiness", |status, _| status == 200).await?;
    operator.terminate().await?;
    world.close().await
}

#[tokio::test]
async fn a_write_that_fails_for_a_while_is_not_spun_on() -> Result<()> {
    for (name, fault) in [("create-fails", Fault::Refuse(Refusal::unavailable())), ("create-closed", Fault::Close)] {
        let create = ending_well_after_failing(name, fault).await?;
        ensure!(create.len() < MOST_PER_SECOND, "it tried {} times", create.len());
    }
    Ok(())
}

/// An API server that has just started does not know the roles yet. It refuses requests that it allows a moment later.
#[tokio::test]
async fn a_right_that_an_api_server_does_not_know_yet_is_waited_for() -> Result<()> {
    let message = "pipelineruns.tekton.dev is forbidden: User \"system:serviceaccount:kubernaut-system:wfe-operator\" \
                   cannot create resource \"pipelineruns\" in API group \"tekton.dev\" in the namespace \
                   \"kubernaut-workflows\": RBAC: role.rbac.authorization.k8s.io \"wfe-operator\" not found";
    let details = serde_json::json!({"group": "tekton.dev", "kind": "pipelineruns"});
    let refusal = Refusal { details: Some(details), ..Refusal::new(403, "Forbidden", message) };
    ending_well_after_failing("unknown-role", Fault::Refuse(refusal)).await?;
    Ok(())
}

/// Lets the creation of a run fail for a while, and then waits until the execution has completed. Returns the creates
/// that failed.
async fn ending_well_after_failing(name: &str, fault: Fault) -> Result<Vec<Passed>> {
    let world = World::new(name).await?;
    let short = short(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let operator = world.operator().through(&proxy).start().await?;
    proxy.on(move |request| if request.is(CREATE) { fault.clone() } else { Fault::Pass });
    let mut gate = proxy.hold(When::Before, |request| request.is(CREATE));
    world.wfe("patient").image(&short).create().await?;
    gate.reached().await?;
    gate.abort();
    tokio::time::sleep(outage().min(Duration::from_secs(4))).await;
    let creates = proxy.requests().into_iter().filter(|passed| passed.request.is(CREATE)).collect();
    proxy.heal();
    assert_completed([&world.await_terminal("patient").await?]);
    operator.terminate().await?;
    History::judged(&world, recording).await?;
    world.close().await?;
    Ok(creates)
}

async fn under_plan(name: &str, plan: impl FnMut(&Request) -> Fault + Send + 'static) -> Result<()> {
    let world = World::new(name).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let mut plan = Some(plan);
    let begin = async |new: &WfeBuilder| {
        proxy.on(plan.take().context("an outage begins once")?);
        proxy.cut_all();
        new.create().await?;
        Ok(())
    };
    survive(world, &proxy, Kind::Failing, begin, async || Ok(())).await
}

/// Plays an outage from `begin` to `end` with three executions. The first starts before the outage, and its run ends
/// during it or soon afterwards. `begin` creates the second one, and the third is created after the outage.
async fn survive(
    world: World,
    proxy: &Proxy,
    kind: Kind,
    begin: impl AsyncFnOnce(&WfeBuilder) -> Result<()>,
    end: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let held = held(&world).await?;
    let short = short(&world).await?;
    let recording = world.record().await?;
    let mut operator = world.operator().through(proxy).start().await?;
    world.wfe("running").target("node/running").image(&held).create().await?;
    await_task(&world, "running").await?;
    let new = world.wfe("new").target("node/new").image(&short);

    let since = Instant::now();
    begin(&new).await?;
    if kind != Kind::Away {
        finish(&world, "running").await?;
    }
    tokio::time::sleep(outage().saturating_sub(since.elapsed())).await;
    let requests = Requests::since(proxy, since);
    println!("{}: {requests}", world.namespace());
    if kind != Kind::Silent {
        // A list succeeds if only watches fail. The operator is ready then, until the watch after it fails.
        await_readyz(&operator, "that nothing can be watched", |status, _| status == 503).await?;
    }
    end().await?;
    proxy.heal();
    let healed = Instant::now();
    requests.check()?;

    let is_ready = async {
        let ready = tokio::time::timeout(READY_WITHIN, operator.await_ready()).await;
        println!("{}: ready {:?} after it was healed", world.namespace(), healed.elapsed());
        ready.context("it is not ready again")?
    };
    let end = async {
        if kind == Kind::Away {
            finish(&world, "running").await?;
        }
        world.wfe("later").target("node/later").image(&short).create().await?;
        let mut ended = Vec::new();
        for wfe in ["running", "new", "later"] {
            ended.push(world.await_wfe_within(ENDED_WITHIN, wfe, "is terminal", is_terminal).await?);
        }
        println!("{}: all ended {:?} after it was healed", world.namespace(), healed.elapsed());
        anyhow::Ok(ended)
    };
    let (ready, ended) = tokio::join!(is_ready, end);
    ready?;
    let ended = ended?;
    assert_completed(&ended);
    operator.terminate().await?;
    let history = History::judged(&world, recording).await?;
    for wfe in &ended {
        assert_eq!(history.created_for(wfe), 1);
    }
    world.close().await
}

/// The requests of an outage, counted by kind. Their number is compared with the tries that the waits of a backoff
/// allow. The number in one second proves nothing: on a busy machine a late try and the next one may come close
/// together.
struct Requests {
    kinds: BTreeMap<(Verb, String), usize>,
    lasted: Duration,
}

impl Requests {
    fn since(proxy: &Proxy, begun: Instant) -> Self {
        let mut kinds: BTreeMap<(Verb, String), usize> = BTreeMap::new();
        for Passed { request, .. } in proxy.requests().iter().filter(|passed| passed.at >= begun) {
            *kinds.entry((request.verb, request.what())).or_default() += 1;
        }
        Self { kinds, lasted: begun.elapsed() }
    }

    fn check(&self) -> Result<()> {
        let tries = most_tries(self.lasted);
        for ((verb, what), &count) in &self.kinds {
            let most = match verb {
                Verb::List | Verb::Watch => tries + REPEATED,
                _ => tries * MOST_PER_TRY,
            };
            ensure!(count <= most, "it retries without waiting: {what} {count} times, {most} allowed; {self}");
        }
        Ok(())
    }
}

/// Returns how many tries are possible in an outage with the waits of the shortest backoff between them.
fn most_tries(outage: Duration) -> usize {
    let mut waited = Duration::ZERO;
    let mut tries = 0;
    while waited <= outage {
        tries += 1;
        waited += SHORTEST_BACKOFF.after(tries);
    }
    tries as usize
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests in {:?}:", self.kinds.values().sum::<usize>(), self.lasted)?;
        self.kinds.iter().try_for_each(|((_, what), count)| write!(f, " {count} {what};"))
    }
}
