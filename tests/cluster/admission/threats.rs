//! The threat model in `docs/threat-model.md`, and the messages of the policies.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use wfe_testkit::{manifests, repository};

use super::objects::report;

const PAGE: &str = "docs/threat-model.md";

/// Parts of messages that name who can help, or what users can do themselves.
const WHOM: [&str; 7] = [
    "which an administrator ",
    "ask whoever runs the cluster",
    "nobody can give it more",
    "no role but the operator",
    "must be your own user name",
    "pin the bundle",
    "which config/rbac gives",
];

/// A message about a missing permission contains the permission or list, and who can grant it.
#[test]
fn each_refusal_of_a_policy_says_who_can_help() -> Result<()> {
    let mut failures = Vec::new();
    let mut seen = 0;
    for policy in manifests::read(&repository().join("config/admission"))? {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, spec) = (text(&policy["metadata"]["name"]), &policy["spec"]);
        let variables = spec["variables"].as_array().into_iter().flatten();
        let variables: Vec<_> =
            variables.map(|it| (format!("variables.{}", text(&it["name"])), text(&it["expression"]))).collect();
        for validation in spec["validations"].as_array().into_iter().flatten() {
            if validation["reason"] != "Forbidden" {
                continue;
            }
            seen += 1;
            let mut message = text(&validation["messageExpression"]);
            for (variable, expression) in &variables {
                message = message.replace(variable, expression);
            }
            if !WHOM.iter().any(|whom| message.contains(whom)) {
                failures.push(format!("{name}: {message}"));
            }
        }
    }
    ensure!(seen > 10, "{seen} refusals");
    report(&failures)
}

/// Each row of the page links to the test of the attack. The text of the link is the name of the test function.
#[test]
fn each_threat_names_a_test_that_is_there() -> Result<()> {
    let page = fs::read_to_string(repository().join(PAGE))?;
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    ensure!(rows.len() > 20, "{} rows", rows.len());
    let mut failures = Vec::new();
    for row in rows {
        let tests = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> = tests.split("[`").skip(1).collect();
        if named.is_empty() {
            failures.push(format!("no test: {row}"));
        }
        for link in named {
            let parts = link.split_once("`](../").and_then(|(name, rest)| Some((name, rest.split_once(')')?.0)));
            let (name, file) = parts.with_context(|| format!("no link: {link}"))?;
            if !is_test(&fs::read_to_string(repository().join(file)).with_context(|| file.to_owned())?, name) {
                failures.push(format!("{file} has no test {name}"));
            }
        }
    }
    report(&failures)
}

fn is_test(source: &str, name: &str) -> bool {
    let Some((before, _)) = source.split_once(&format!("fn {name}(")) else { return false };
    before
        .lines()
        .rev()
        .take(4)
        .any(|line| matches!(line.trim(), "#[test]" | "#[tokio::test]" | "#[tokio::test(start_paused = true)]"))
}
