//! The shipped metrics, rules, dashboard and runbooks, tested with a real Prometheus and its tools.

mod dashboard;
mod gauges;
mod plots;
mod runbooks;
mod story;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use wfe_testkit::prometheus::{Scraped, promtool};
use wfe_testkit::{Operator, Prometheus, World, manifests, repository};

use crate::expect::text;

/// Runs a program that must succeed with this standard input, and returns its output.
async fn succeeds(mut command: Command, input: &[u8]) -> Result<String> {
    let shown = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(input).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{}: {shown}\n{said}", output.status);
    Ok(said)
}

fn rules_file() -> PathBuf {
    repository().join("deploy/chart/files/rules.yaml")
}

/// The label `job` of the operators in these tests.
const JOB: &str = "wfe-operator";

/// Starts a Prometheus that scrapes an operator.
async fn scrape(world: &World, operator: &Operator) -> Result<Prometheus> {
    let address = operator.address("metrics").await.context("the operator does not say where its metrics are")?;
    let scraped = Scraped { address, job: JOB.to_owned(), namespace: world.system_namespace(), secured: None };
    Prometheus::start(world, &[scraped], &impatient_rules()?).await
}

/// Returns the shipped rules without the delays of the alerts, so that these fire at once.
fn impatient_rules() -> Result<String> {
    let shipped = std::fs::read_to_string(rules_file())?;
    let lines = shipped.lines().map(|line| match line.trim_start().strip_prefix("for: ") {
        Some(time) => line.replace(time, "0s"),
        None => line.to_owned(),
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns all shipped rules.
fn rules() -> Result<Vec<Value>> {
    let groups = manifests::read(&rules_file())?.remove(0)["groups"].take();
    let groups = groups.as_array().cloned().context("rules.yaml has no groups")?;
    Ok(groups.into_iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect())
}

#[tokio::test]
async fn the_shipped_rules_are_valid_and_stand_their_own_tests() -> Result<()> {
    let mut command = promtool()?;
    command.args(["check", "rules"]).arg(rules_file());
    succeeds(command, b"").await?;
    let mut tests: Vec<PathBuf> =
        fs::read_dir(repository().join("tests/rules"))?.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    tests.sort();
    let mut command = promtool()?;
    command.args(["test", "rules"]).args(&tests);
    succeeds(command, b"").await?;
    Ok(())
}

#[tokio::test]
async fn each_alert_is_tested_for_when_it_fires_and_for_when_it_must_not() -> Result<()> {
    let rules = rules()?;
    let alerts: Vec<&str> = rules.iter().filter_map(|rule| rule["alert"].as_str()).collect();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for alert in alerts {
        let file = repository().join(format!("tests/rules/{alert}.yaml"));
        let tests = manifests::read(&file)?.remove(0)["tests"].take();
        let cases = tests.as_array().into_iter().flatten().filter_map(|test| test["alert_rule_test"].as_array());
        let expected: Vec<usize> = cases
            .flatten()
            .filter(|case| case["alertname"] == alert)
            .map(|case| case["exp_alerts"].as_array().map_or(0, Vec::len))
            .collect();
        assert!(expected.iter().any(|count| *count > 0), "{alert}: no test expects it to fire");
        assert!(expected.contains(&0), "{alert}: no test expects it not to fire");
    }
    for rule in rules.iter().filter(|rule| rule["alert"].is_string()) {
        assert!(["critical", "warning"].contains(&text(&rule["labels"]["severity"])), "{rule:#}");
        for annotation in ["summary", "description", "runbook_url"] {
            assert!(!text(&rule["annotations"][annotation]).is_empty(), "{annotation} is missing: {rule:#}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_metrics_of_a_running_operator_are_as_promtool_wants_them() -> Result<()> {
    let world = World::new("lint").await?;
    let operator = world.operator().start().await?;
    let (status, scrape) = operator.get("metrics", "/metrics").await?;
    assert_eq!(status, 200);
    let mut command = promtool()?;
    command.args(["check", "metrics"]);
    succeeds(command, scrape.as_bytes()).await?;
    world.close().await
}
