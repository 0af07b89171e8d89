//! The fake API server of `tests/simulation` answers as the real one does: both get the requests of the same plans.
//!
//! The controllers are stopped, so that only the plan changes objects. `WFE_TEST_ALL=1` plays a hundred thousand
//! requests. `WFE_CONFORMANCE_SEED=N` plays only one plan.

use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta};
use futures::{StreamExt as _, stream};
use kube::Client;
use serde_json::json;
use wfe_simulation::conformance::{Line, Plan, difference, generated, play, prepare, tabled, wrong_rows};
use wfe_simulation::service::FakeApi;
use wfe_testkit::{ControlPlane, Options, manifests};

/// The number of requests in a random plan.
const REQUESTS: usize = 500;
/// How many differing plans are found before the test stops.
const REPORTED: usize = 8;
/// How many plans are played at the same time. Each has a namespace and a fake server of its own.
const AT_ONCE: usize = 6;

/// Starts an API server with the kinds of this repository and of Tekton, and without any controllers.
async fn quiet() -> Result<ControlPlane> {
    let control_plane = ControlPlane::start(Options { pods: false, ..Options::default() }).await?;
    for component in ["tekton-controller", "tekton-resolvers", "kube-controller-manager"] {
        control_plane.component(component).stop().await?;
    }
    Ok(control_plane)
}

/// Plays a plan on the real server.
async fn real(client: &Client, plan: &Plan) -> Result<Vec<Line>> {
    prepare(client, plan).await?;
    // The API server refuses pods without this service account, and the controller that creates it is stopped.
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": plan.namespace},
        "automountServiceAccountToken": false,
    });
    manifests::apply(client, &account).await?;
    play(client, plan).await
}

/// Plays a plan on a fake server of its own, whose clock advances with each request.
async fn fake(plan: &Plan) -> Result<Vec<Line>> {
    let ticks = AtomicI64::new(0);
    let now = move || DateTime::UNIX_EPOCH + TimeDelta::seconds(ticks.fetch_add(1, Ordering::Relaxed));
    let client = FakeApi::new(1, now).client();
    prepare(&client, plan).await?;
    play(&client, plan).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fake_answers_as_the_real_one_does() -> Result<()> {
    let control_plane = quiet().await?;
    let client = control_plane.client().await?;
    let one = std::env::var("WFE_CONFORMANCE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None if crate::faults::all() => 0..200,
        None => 0..4,
    };
    let plans = std::iter::once(tabled()).chain(seeds.map(|seed| generated(seed, REQUESTS)));
    let both = plans.map(|plan| {
        let client = client.clone();
        tokio::spawn(async move {
            let (real, fake) = (real(&client, &plan).await?, fake(&plan).await?);
            anyhow::Ok((plan, real, fake))
        })
    });
    let mut played = stream::iter(both).buffered(AT_ONCE);
    let (mut requests, mut differing) = (0, 0);
    while let Some(both) = played.next().await {
        let (plan, real, fake) = both.context("a plan panicked")??;
        if requests == 0 {
            let wrong = wrong_rows(&real);
            ensure!(wrong.is_empty(), "the table says what the real server does not:\n{}", wrong.join("\n"));
        }
        requests += plan.calls.len();
        if let Some(difference) = difference(&plan, &real, &fake) {
            eprintln!("{difference}");
            differing += 1;
        }
        if differing == REPORTED {
            break;
        }
    }
    ensure!(differing == 0, "{differing} plans were answered differently, of {requests} requests; they stand above");
    println!("{requests} requests were answered alike");
    Ok(())
}
