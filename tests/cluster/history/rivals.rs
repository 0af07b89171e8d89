//! Failures before anything ran that two operators write at the same moment.

use anyhow::Result;
use chrono::{SubsecRound as _, Utc};
use wfe_testkit::proxy::Request;
use wfe_testkit::{Fault, Gate, Proxy, Refusal, When};

use super::player::{End, end_run, stage};
use super::{WAITS, assert_charged, unusable};
use crate::expect::text;

/// Says whether a request ends this execution.
fn ends(request: &Request, name: &str) -> bool {
    request.is("patch workflowexecutions/status")
        && request.name == name
        && text(&request.body["status"]["phase"]) == "Failed"
}

/// Has an operator end one execution, when told to, and keeps it from ending another.
fn ends_only(proxy: &Proxy, mine: &'static str, others: &'static str) -> Gate {
    proxy.on(move |request| if ends(request, others) { Fault::Refuse(Refusal::conflict()) } else { Fault::Pass });
    proxy.hold(When::Before, move |request| ends(request, mine))
}

#[tokio::test]
async fn failures_that_two_operators_write_at_the_same_moment_are_each_counted_once() -> Result<()> {
    let world = stage("counted-once").await?;
    let (one, two) = (Proxy::start(world.control_plane()).await?, Proxy::start(world.control_plane()).await?);
    let first = world.operator().through(&one).start().await?;
    let second = world.operator().through(&two).start().await?;
    // One ends without a task, which its holder writes; the other has a spec that nobody can use, which takes no lock.
    let mut ran = ends_only(&one, "unresolved", "unusable");
    let mut never = ends_only(&two, "unusable", "unresolved");
    world.wfe("unresolved").create().await?;
    end_run(&world, "unresolved", End::NothingRan, Utc::now().trunc_subsecs(0)).await?;
    ran.reached().await?;
    unusable(world.wfe("unusable")).create().await?;
    never.reached().await?;
    ran.open();
    never.open();
    for name in ["unresolved", "unusable"] {
        let failed = world.await_phase(name, "Failed").await?;
        assert_eq!(failed["status"]["failureDetails"]["wasExecutionFailure"], false, "{failed:#}");
    }
    one.heal();
    two.heal();
    unusable(world.wfe("third")).create().await?;
    assert_charged(&world.await_phase("third", "Failed").await?, 3, WAITS[2])?;
    first.terminate().await?;
    second.terminate().await?;
    world.close().await
}
