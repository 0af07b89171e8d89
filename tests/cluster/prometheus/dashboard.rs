//! The dashboard as data: its rows, its panels, and the panels' queries.

use anyhow::{Context as _, Result};
use serde_json::Value;
use wfe_testkit::repository;

use crate::expect::text;

/// A row of the dashboard.
pub(super) struct Row {
    pub(super) title: String,
    pub(super) panels: Vec<Panel>,
}

/// A panel of the dashboard.
pub(super) struct Panel {
    pub(super) title: String,
    /// Grafana's name of the unit.
    pub(super) unit: String,
    /// The queries, each with the text of its legend.
    pub(super) queries: Vec<(String, String)>,
}

/// Reads the shipped dashboard. The variables in the queries are replaced by the values that Grafana would insert.
pub(super) fn read(namespace: &str, job: &str) -> Result<Vec<Row>> {
    let file = repository().join("deploy/chart/files/dashboard.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let mut rows: Vec<Row> = Vec::new();
    for panel in dashboard["panels"].as_array().context("a dashboard without panels")? {
        let title = text(&panel["title"]).to_owned();
        if panel["type"] == "row" {
            rows.push(Row { title, panels: Vec::new() });
            continue;
        }
        let targets = panel["targets"].as_array().with_context(|| format!("{title}: no queries"))?;
        let query = |target: &Value| {
            let query = text(&target["expr"])
                .replace("$namespace", namespace)
                .replace("$job", job)
                .replace("$__rate_interval", "1m")
                .replace("$__range", "5m");
            (query, text(&target["legendFormat"]).to_owned())
        };
        let queries = targets.iter().map(query).collect();
        let unit = text(&panel["fieldConfig"]["defaults"]["unit"]).to_owned();
        rows.last_mut().context("a panel before the first row")?.panels.push(Panel { title, unit, queries });
    }
    Ok(rows)
}
