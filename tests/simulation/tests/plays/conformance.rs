//! Plans on the fake server alone. It gives the answers in the table, and always the same answers to the same plan.
//!
//! `tests/cluster/conformance.rs` also plays the plans on the real API server.

#![allow(clippy::unwrap_used)] // a test reports an error by panicking

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta};
use http::Request;
use kube::client::Body;
use wfe_simulation::conformance::{Plan, difference, generated, play, prepare, rows, tabled, wrong_rows};
use wfe_simulation::service::FakeApi;

/// Returns a server whose clock advances by one second with each request.
fn fake() -> FakeApi {
    let ticks = AtomicI64::new(0);
    FakeApi::new(1, move || DateTime::UNIX_EPOCH + TimeDelta::seconds(ticks.fetch_add(1, Ordering::Relaxed)))
}

async fn played(plan: &Plan) -> Vec<wfe_simulation::conformance::Line> {
    let client = fake().client();
    prepare(&client, plan).await.unwrap();
    play(&client, plan).await.unwrap()
}

#[tokio::test]
async fn each_row_of_the_table_is_answered_as_it_says() {
    assert!(rows().len() >= 80, "{}", rows().len());
    let wrong = wrong_rows(&played(&tabled()).await);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_same_plan_brings_the_same_answers() {
    for seed in 0..2 {
        let plan = generated(seed, 500);
        let (first, second) = (played(&plan).await, played(&plan).await);
        assert!(first == second, "{:?}", difference(&plan, &first, &second));
        // A plan would prove little if the server refused all of its requests, or none.
        for code in [200, 201, 404, 409, 422] {
            let count = first.iter().filter(|line| line.said["code"] == code).count();
            assert!(count >= 10, "seed {seed}: {count} answers with {code}");
        }
    }
}

#[tokio::test]
async fn what_no_shipped_code_does_is_not_simulated() {
    let request = |method: &str, media: &str| {
        let uri = "/api/v1/namespaces/a/configmaps/b";
        Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", media)
            .body(Body::from(b"{}".to_vec()))
            .unwrap()
    };
    let client = fake().client();
    let applied = client.send(request("PATCH", "application/apply-patch+yaml")).await.unwrap();
    assert_eq!(applied.status(), 415);
    let posted = client.send(request("POST", "application/json")).await.unwrap();
    assert_eq!(posted.status(), 405);
}
