//! A real Prometheus scrapes a real operator. Executions succeed, fail and are skipped, and one target is exhausted.
//! The test checks which alerts fire, and what the dashboard shows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, Prometheus, World};

use super::{JOB, dashboard, plots, rules_file, scrape};
use crate::clearing::clear;
use crate::expect::text;

/// How long the story lasts if it is plotted for the documentation.
const PLOTTED: Duration = Duration::from_secs(plots::SECONDS);
const DATA_WITHIN: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(200);

/// The bundles of the story.
struct Images {
    works: String,
    breaks: String,
    /// The workflow of this bundle has an image that cannot be pulled.
    missing: String,
}

#[tokio::test]
async fn a_series_of_failures_fires_the_alert_of_an_exhausted_target_and_the_dashboard_shows_it() -> Result<()> {
    let world = World::new("prometheus").await?;
    let images = Images {
        works: world.push_pipeline("works", &Pipeline::new().task("apply", Outcome::Ok)).await?,
        breaks: world.push_pipeline("breaks", &Pipeline::new().task("apply", Outcome::Exit(1))).await?,
        missing: world.push_pipeline("missing", &Pipeline::new().task("apply", Outcome::ImagePull)).await?,
    };
    // After a failure, the target backs off for one second. Five failures in a row therefore take some seconds.
    let short = |flag| (flag, "1s");
    let flags = ["--base-cooldown-period", "--max-cooldown-period"].map(short);
    // A limit has data even if it is never reached.
    let limited = world.operator().arg("--limits", "[{name: all, maxRunning: 100}]");
    let operator = flags.into_iter().fold(limited, |it, (flag, time)| it.arg(flag, time)).start().await?;
    let prometheus = scrape(&world, &operator).await?;
    prometheus.await_firing("that nothing fires while all is well", BTreeMap::is_empty).await?;

    let begun = Instant::now();
    round(&world, &images, 0).await?;
    exhaust(&world, &images.missing).await?;
    let firing = prometheus
        .await_firing("the alert of an exhausted target", |it| it.contains_key("WorkflowExecutionTargetExhausted"))
        .await?;
    let told = text(&firing["WorkflowExecutionTargetExhausted"]["annotations"]["description"]);
    assert!(told.contains("Nothing runs on node/exhausted until"), "the alert names the target: {told}");
    let firing = prometheus
        .await_firing("what waits for a review", |it| it.contains_key("WorkflowExecutionManualReviewWaiting"))
        .await?;
    // On a fast machine, the skips in the meantime are enough for the alert about a storm.
    let expected = ["TargetExhausted", "ManualReviewWaiting", "BackoffStorm"];
    let others: Vec<&String> =
        firing.keys().filter(|name| !expected.contains(&name.trim_start_matches("WorkflowExecution"))).collect();
    assert!(others.is_empty(), "nothing else is wrong, and yet there fire {others:?}: {firing:#?}");

    if std::env::var_os("WFE_WRITE_PLOTS").is_some() {
        for number in 1.. {
            if begun.elapsed() > PLOTTED {
                break;
            }
            round(&world, &images, number).await?;
        }
        plots::write(&prometheus, &dashboard::read(&world.system_namespace(), JOB)?).await?;
    }
    let without = await_data(&prometheus, queries(&world.system_namespace())?).await?;

    operator.terminate().await?;
    let is_missed = |firing: &BTreeMap<String, Value>| firing.keys().eq(["WorkflowExecutionOperatorDown"]);
    prometheus.await_firing("that the operator is missed, and nothing else", is_missed).await?;
    assert!(without.is_empty(), "Prometheus has had no data for what dashboard or rules read: {without:#?}");
    world.close().await
}

/// Creates executions that succeed, executions that fail half-way, executions that are skipped because of these, and
/// rivals.
async fn round(world: &World, images: &Images, number: u32) -> Result<()> {
    let create = async |name: &str, target: &str, workflow: &str, image: &str| {
        let (name, target) = (format!("{name}-{number}"), format!("node/{target}-{number}"));
        world.wfe(&name).target(&target).workflow(workflow).image(image).create().await
    };
    let ends = async |name: &str| world.await_terminal(&format!("{name}-{number}")).await;
    for name in ["rival-a", "rival-b", "rival-c"] {
        create(name, "contended", "restart", &images.works).await?;
    }
    create("works", "repaired", "restart", &images.works).await?;
    create("breaks", "broken", "restart", &images.breaks).await?;
    assert_eq!(ends("works").await?["status"]["phase"], "Completed");
    create("again", "repaired", "restart", &images.works).await?;
    assert_eq!(ends("breaks").await?["status"]["phase"], "Failed");
    create("after", "broken", "scale", &images.works).await?;
    for name in ["again", "after", "rival-a", "rival-b", "rival-c"] {
        ends(name).await?;
    }
    // A few rounds later, a person clears the failure.
    if let Some(earlier) = number.checked_sub(4).filter(|earlier| *earlier > 0) {
        clear(world, &format!("breaks-{earlier}"), "looked at it, all in order").await?;
    }
    Ok(())
}

/// Creates executions on one target until five have failed there because their image cannot be pulled.
async fn exhaust(world: &World, image: &str) -> Result<()> {
    let mut failures = 0;
    for ask in 0..500 {
        let name = format!("missing-{ask}");
        world.wfe(&name).target("node/exhausted").workflow(&name).image(image).create().await?;
        let status = world.await_terminal(&name).await?["status"].take();
        match text(&status["phase"]) {
            "Skipped" if failures == 5 => {
                assert_eq!(status["skipDetails"]["reason"], "ExhaustedRetries", "{status:#}");
                return Ok(());
            }
            "Skipped" => {}
            _ => {
                failures += 1;
                let details = &status["failureDetails"];
                let seen = (&details["reason"], &details["wasExecutionFailure"], &status["consecutiveFailures"]);
                assert_eq!(seen, (&json!("ImagePullBackOff"), &json!(false), &json!(failures)), "{status:#}");
            }
        }
    }
    bail!("only {failures} of five executions have failed, and the others were skipped");
}

/// Returns the queries of the dashboard, and the metrics in the rules.
fn queries(namespace: &str) -> Result<BTreeSet<String>> {
    let rows = dashboard::read(namespace, JOB)?;
    let panels = rows.into_iter().flat_map(|row| row.panels);
    let shown = panels.flat_map(|panel| panel.queries).map(|(query, _)| query);
    let rules = std::fs::read_to_string(rules_file())?;
    let words = rules.split(|it: char| !(it.is_ascii_alphanumeric() || "_:".contains(it)));
    let named = words.filter(|word| word.starts_with("workflowexecution_") || word.starts_with("workflowexecution:"));
    // The operator does not check the shipped policies here, because this cluster has none. The module `policies` tests
    // that metric. No workflow recurs here either: the module `gauges` tests that.
    let elsewhere = ["workflowexecution_policy_missing", "workflowexecution_recurring_successes"];
    let looked_at = named.filter(|word| !elsewhere.contains(word));
    Ok(shown.chain(looked_at.map(str::to_owned)).collect())
}

/// Waits until each query has had data. Returns the queries that had none within the time.
async fn await_data(prometheus: &Prometheus, queries: BTreeSet<String>) -> Result<Vec<String>> {
    let deadline = Instant::now() + DATA_WITHIN;
    let is_number = |it: &Value| text(&it["value"][1]).parse::<f64>().is_ok_and(f64::is_finite);
    let mut without: Vec<String> = queries.into_iter().collect();
    loop {
        for query in std::mem::take(&mut without) {
            if !prometheus.query(&query).await?.iter().any(is_number) {
                without.push(query);
            }
        }
        if without.is_empty() || Instant::now() > deadline {
            return Ok(without);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
