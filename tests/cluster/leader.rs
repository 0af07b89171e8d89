//! Two replicas, one of which leads. The leader is killed, paused, terminated, and cut off.
//!
//! The audit log shows whether a replica wrote while it did not lead. The User-Agent identifies the replica.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, FixedOffset};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};
use serde_json::Value;
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::proxy::Request;
use wfe_testkit::{AuditEntry, Metrics, Operator, OperatorBuilder, Proxy, When, World};

use crate::faults::judge::{History, assert_completed};
use crate::faults::{all, await_free, await_task, finish, held, short};
use crate::unattended::await_readyz;

/// The time from the kill of a leader until its workflow has ended.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(15);
/// The time from the end of a terminated leader until another replica leads: the default retry period, with a reserve
/// for a busy machine.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(4);
/// The renew deadline of a [`quick`] replica.
const QUICK_DEADLINE: Duration = Duration::from_secs(2);

/// Gives a replica half of the default lease times, for tests that do not measure these times.
pub(crate) fn quick(replica: OperatorBuilder<'_>) -> OperatorBuilder<'_> {
    replica.arg("--lease-duration", "4s").arg("--renew-deadline", "2s").arg("--retry-period", "1s")
}

/// Waits until the answer of `/readyz` satisfies `is`.
pub(crate) async fn await_standing(operator: &Operator, is: impl Fn(u16, &str) -> bool) -> Result<()> {
    await_readyz(operator, "another answer", is).await.map(drop)
}

pub(crate) async fn await_leading(operator: &Operator) -> Result<()> {
    await_standing(operator, |status, said| status == 200 && said == "ok; leading\n").await
}

/// Waits until a replica is ready and follows this leader.
async fn await_following(operator: &Operator, leader: &str) -> Result<()> {
    let following = format!("ok; following {leader}_");
    await_standing(operator, |status, said| status == 200 && said.starts_with(&following)).await
}

#[tokio::test]
async fn a_leader_that_is_killed_is_replaced_and_what_it_ran_ends_in_time() -> Result<()> {
    let rounds = if all() { 20 } else { 2 };
    let world = World::new("killed-leader").await?;
    let bundle = held(&world).await?;
    let recording = world.record().await?;
    let mut leader = world.operator().replica("replica-0").start().await?;
    await_leading(&leader).await?;
    let mut ended = Vec::new();
    for round in 0..rounds {
        let next = world.operator().replica(&format!("replica-{}", round + 1)).start().await?;
        await_following(&next, &format!("replica-{round}")).await?;
        let wfe = format!("running-{round}");
        world.wfe(&wfe).target(&format!("node/{wfe}")).image(&bundle).create().await?;
        await_task(&world, &wfe).await?;
        let killed = Instant::now();
        leader.kill().await?;
        finish(&world, &wfe).await?;
        let is_done = |wfe: &Value| wfe["status"]["phase"] == "Completed";
        ended.push(world.await_wfe_within(TAKEN_OVER_WITHIN, &wfe, "has completed", is_done).await?);
        println!("round {round}: ended {:?} after the kill", killed.elapsed());
        ensure!(killed.elapsed() < TAKEN_OVER_WITHIN, "it took {:?}", killed.elapsed());
        await_leading(&next).await?;
        leader = next;
    }
    leader.terminate().await?;
    let history = History::judged(&world, recording).await?;
    for wfe in &ended {
        assert_eq!(history.created_for(wfe), 1);
    }
    world.close().await
}

#[tokio::test]
async fn a_leader_that_was_stopped_changes_nothing_when_it_goes_on() -> Result<()> {
    let world = World::new("stopped-leader").await?;
    let bundle = held(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let first = quick(world.operator().replica("first")).through(&proxy).start().await?;
    await_leading(&first).await?;
    let second = quick(world.operator().replica("second")).start().await?;
    await_following(&second, "first").await?;
    world.wfe("holder").image(&bundle).create().await?;
    await_task(&world, "holder").await?;

    // The leader is paused after it has read what it needs for a skip. Its next step would be to write the skip.
    let mut gate = proxy.hold(When::After, |request| request.is("get pipelineruns"));
    world.wfe("rival").workflow("other").image(&bundle).create().await?;
    let read = gate.reached().await?;
    first.pause()?;
    await_leading(&second).await?;
    world.await_phase("rival", "Skipped").await?;
    gate.open();
    await_answered(&proxy, &read).await?;
    first.resume()?;
    await_following(&first, "second").await?;
    let refused = [("cause", "lease")];
    let is_refused = |metrics: &Metrics| metrics.value("workflowexecution_reconcile_errors_total", &refused) >= 1.0;
    first.await_metrics("a write that it did not make any more", is_refused).await?;

    finish(&world, "holder").await?;
    await_free(&world, "holder").await?;
    first.terminate().await?;
    second.terminate().await?;
    History::judged(&world, recording).await?;
    Terms::of(&world, "first", "second").await?.check()?;
    world.close().await
}

/// Waits until the proxy has delivered the answer to a request.
async fn await_answered(proxy: &Proxy, request: &Request) -> Result<()> {
    let begun = Instant::now();
    while !proxy.requests().iter().any(|passed| passed.request.number == request.number && passed.answered.is_some()) {
        ensure!(begun.elapsed() < DEADLINE, "{request} is not answered");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_leader_that_is_asked_to_stop_hands_over_at_once() -> Result<()> {
    let world = World::new("handed-over").await?;
    let bundle = held(&world).await?;
    let recording = world.record().await?;
    let first = world.operator().replica("first").start().await?;
    await_leading(&first).await?;
    let second = world.operator().replica("second").start().await?;
    await_following(&second, "first").await?;
    world.wfe("running").image(&bundle).create().await?;
    await_task(&world, "running").await?;
    assert!(first.terminate().await?.success());
    let ended = Instant::now();
    await_leading(&second).await?;
    println!("it leads {:?} after the other has ended", ended.elapsed());
    ensure!(ended.elapsed() < HANDED_OVER_WITHIN, "it took {:?}", ended.elapsed());
    finish(&world, "running").await?;
    let running = await_free(&world, "running").await?;
    second.terminate().await?;
    let history = History::judged(&world, recording).await?;
    assert_eq!(history.created_for(&running), 1);
    Terms::of(&world, "first", "second").await?.check()?;
    world.close().await
}

#[tokio::test]
async fn a_follower_sees_everything_and_writes_nothing() -> Result<()> {
    let world = World::new("follower").await?;
    let (short, held) = (short(&world).await?, held(&world).await?);
    let first = world.operator().replica("first").start().await?;
    await_leading(&first).await?;
    let second = world.operator().replica("second").start().await?;
    await_following(&second, "first").await?;
    world.wfe("holder").target("node/held").image(&held).create().await?;
    await_task(&world, "holder").await?;
    world.wfe("rival").target("node/held").workflow("other").image(&held).create().await?;
    world.wfe("quick").target("node/quick").image(&short).create().await?;
    world.await_phase("rival", "Skipped").await?;
    world.await_phase("quick", "Completed").await?;
    world.await_event("quick", "WorkflowCompleted").await?;
    finish(&world, "holder").await?;
    await_free(&world, "holder").await?;

    let has_seen = |metrics: &Metrics| metrics.value("workflowexecution_targets", &[]) >= 2.0;
    second.await_metrics("two targets", has_seen).await?;
    let (led, followed) = (first.metrics().await?, second.metrics().await?);
    let value = |name: &str| (led.value(name, &[]), followed.value(name, &[]));
    assert_eq!(value("workflowexecution_leader"), (1.0, 0.0));
    assert_eq!(value("workflowexecution_caches_synced"), (1.0, 1.0));
    let (decided, none) = value("workflowexecution_decision_duration_seconds_count");
    assert!(decided > 0.0 && none == 0.0, "{decided} and {none}");
    first.terminate().await?;
    second.kill().await?;
    let writes: Vec<AuditEntry> = writes(&world).await?;
    let took = accepted_lease(&writes, "second").next().map(received);
    let too_early = |entry: &&AuditEntry| is_by(entry, "second") && took.is_none_or(|took| received(entry) < took);
    let found: Vec<&AuditEntry> = writes.iter().filter(too_early).collect();
    // Before it leads, the second replica may only have tried to take the Lease.
    let found: Vec<_> = found.into_iter().filter(|entry| entry.resource != "leases").collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(writes.iter().any(|entry| is_by(entry, "first") && entry.subresource == "status"));
    world.close().await
}

#[tokio::test]
async fn a_leader_that_is_partitioned_stops_writing_before_another_begins() -> Result<()> {
    cut_off("cut-leader", |proxy| proxy.partition(true)).await
}

/// Creates executions all the time. Cuts the leader off meanwhile, lets the other replica take over, and restores the
/// connection.
async fn cut_off(name: &str, cut: impl FnOnce(&Proxy)) -> Result<()> {
    let world = World::new(name).await?;
    let bundle = short(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let first = quick(world.operator().replica("first")).through(&proxy).start().await?;
    await_leading(&first).await?;
    let second = quick(world.operator().replica("second")).start().await?;
    await_following(&second, "first").await?;

    let mut created = Vec::new();
    let mut create = async || -> Result<()> {
        let wfe = format!("wfe-{}", created.len());
        world.wfe(&wfe).target(&format!("node/{wfe}")).image(&bundle).create().await?;
        created.push(wfe);
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    };
    for _ in 0..3 {
        create().await?;
    }
    // No request is in flight at the cut, because such a request would arrive late, as in any network.
    for n in 0..3 {
        world.await_event(&format!("wfe-{n}"), "WorkflowCompleted").await?;
    }
    cut(&proxy);
    let begun = Instant::now();
    while second.get("health", "/readyz").await?.1 != "ok; leading\n" {
        ensure!(begun.elapsed() < DEADLINE, "nobody takes over");
        create().await?;
    }
    println!("{name}: the other leads {:?} after the cut, {} executions", begun.elapsed(), created.len());
    let mut ended = Vec::new();
    for wfe in &created {
        ended.push(world.await_terminal(wfe).await?);
    }
    assert_completed(&ended);
    proxy.heal();
    await_following(&first, "second").await?;
    // The former leader must be able to lead again.
    second.terminate().await?;
    await_leading(&first).await?;
    world.wfe("after").target("node/after").image(&bundle).create().await?;
    world.await_phase("after", "Completed").await?;
    first.terminate().await?;
    let history = History::judged(&world, recording).await?;
    for wfe in &ended {
        assert_eq!(history.created_for(wfe), 1);
    }
    let terms = Terms::of(&world, "first", "second").await?;
    terms.check()?;
    let silence = terms.silence()?;
    println!("{name}: {silence:?} between the last write of the one and the lease of the other");
    // The second replica waits until the Lease was unchanged for four seconds. The first replica still writes during
    // the first two.
    let least = chrono::TimeDelta::from_std(QUICK_DEADLINE)? - chrono::TimeDelta::milliseconds(500);
    ensure!(silence > least, "only {silence:?} between their writes");
    world.close().await
}

#[tokio::test]
async fn a_lease_that_is_deleted_is_made_again() -> Result<()> {
    let world = World::new("deleted-lease").await?;
    let bundle = short(&world).await?;
    let recording = world.record().await?;
    let operator = quick(world.operator().replica("only")).start().await?;
    await_leading(&operator).await?;
    let leases: Api<Lease> = Api::namespaced(world.client(), &world.system_namespace());
    let first = leases.get("wfe-operator").await?.metadata.uid;
    leases.delete("wfe-operator", &DeleteParams::default()).await?;
    let begun = Instant::now();
    let is_new = |lease: &Lease| {
        lease.metadata.uid != first && lease.spec.as_ref().is_some_and(|it| it.holder_identity.is_some())
    };
    let ask = async || anyhow::Ok(leases.get_opt("wfe-operator").await?);
    ask_until(DEADLINE, "it is made again", ask, |lease| lease.as_ref().is_some_and(is_new)).await?;
    println!("made again {:?} after it was deleted", begun.elapsed());
    await_leading(&operator).await?;
    world.wfe("after").image(&bundle).create().await?;
    world.await_phase("after", "Completed").await?;
    await_free(&world, "after").await?;
    operator.terminate().await?;
    let released = leases.get("wfe-operator").await?.spec.unwrap_or_default();
    assert_eq!(released.holder_identity, None, "{released:?}");
    History::judged(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn without_an_election_no_lease_is_touched() -> Result<()> {
    let world = World::new("no-election").await?;
    let bundle = short(&world).await?;
    let operator = world.operator().arg("--leader-elect", "false").start().await?;
    await_leading(&operator).await?;
    assert!((operator.metrics().await?.value("workflowexecution_leader", &[]) - 1.0).abs() < f64::EPSILON);
    world.wfe("quick").image(&bundle).create().await?;
    world.await_phase("quick", "Completed").await?;
    operator.terminate().await?;
    let of_operator = world.operator_user();
    let audit = world.audit().await?;
    let touched: Vec<_> =
        audit.iter().filter(|entry| entry.user == of_operator && entry.group == "coordination.k8s.io").collect();
    assert!(touched.is_empty(), "{touched:#?}");
    world.close().await
}

/// The writes of two replicas. The second replica takes over from the first.
struct Terms {
    /// The accepted writes of the first replica, except those to the Lease, and when the API server received each of
    /// them.
    first: Vec<(DateTime<FixedOffset>, AuditEntry)>,
    /// When the API server received the second replica's first write to the Lease, and the first replica's next write
    /// to the Lease, if any.
    second: (DateTime<FixedOffset>, Option<DateTime<FixedOffset>>),
}

impl Terms {
    async fn of(world: &World, first: &str, second: &str) -> Result<Self> {
        let writes = writes(world).await?;
        let took = accepted_lease(&writes, second).next().map(received);
        let took = took.with_context(|| format!("{second} never took the lease: {writes:#?}"))?;
        let again = accepted_lease(&writes, first).map(received).find(|at| *at > took);
        let is_work = |entry: &&AuditEntry| is_by(entry, first) && entry.resource != "leases" && entry.code < 300;
        let first = writes.iter().filter(is_work).map(|entry| (received(entry), entry.clone())).collect();
        Ok(Self { first, second: (took, again) })
    }

    /// Fails if the first replica wrote while the second replica led.
    fn check(&self) -> Result<()> {
        let (took, again) = self.second;
        ensure!(!self.first.is_empty(), "the first has written nothing at all");
        let late = |at: &DateTime<FixedOffset>| *at > took && again.is_none_or(|again| *at < again);
        let late: Vec<_> = self.first.iter().filter(|(at, _)| late(at)).collect();
        ensure!(late.is_empty(), "written when the other led, since {took}: {late:#?}");
        Ok(())
    }

    /// Returns the time between the first replica's last write and the takeover by the second replica.
    fn silence(&self) -> Result<chrono::TimeDelta> {
        let (took, _) = self.second;
        let last = self.first.iter().map(|(at, _)| *at).filter(|at| *at <= took).max();
        Ok(took - last.context("the first has written nothing before")?)
    }
}

/// Returns the writes of a world's operators in the order in which the API server received them.
async fn writes(world: &World) -> Result<Vec<AuditEntry>> {
    let user = world.operator_user();
    let mut writes = world.audit().await?;
    writes.retain(|entry| entry.user == user && entry.is_write());
    writes.sort_by_key(received);
    Ok(writes)
}

fn accepted_lease<'a>(writes: &'a [AuditEntry], replica: &'a str) -> impl Iterator<Item = &'a AuditEntry> {
    let is_lease = |entry: &&AuditEntry| entry.resource == "leases" && (200..300).contains(&entry.code);
    writes.iter().filter(is_lease).filter(move |entry| is_by(entry, replica))
}

/// Returns whether a replica sent a request. The User-Agent is `wfe-operator/VERSION NAME_RANDOM`.
fn is_by(entry: &AuditEntry, replica: &str) -> bool {
    let identity = entry.user_agent.strip_prefix("wfe-operator/").and_then(|agent| agent.split_once(' '));
    identity.is_some_and(|(_, identity)| identity.rsplit_once('_').is_some_and(|(name, _)| name == replica))
}

#[track_caller]
fn received(entry: &AuditEntry) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339(&entry.received_at).unwrap()
}
