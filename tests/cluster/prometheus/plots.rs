//! Plots the results of the dashboard's queries for docs/monitoring.md, one picture for each row. Grafana's plots look
//! better.

use anyhow::{Context as _, Result};
use serde_json::Value;
use wfe_testkit::{Prometheus, repository};
use wfe_tests::chart::{self, COLORS, Chart, Line};

use super::dashboard::{Panel, Row};
use crate::expect::text;

/// The time span of the plots.
pub(super) const SECONDS: u64 = 180;
const STEP: u64 = 4;

/// Writes a picture of each row of the dashboard.
pub(super) async fn write(prometheus: &Prometheus, rows: &[Row]) -> Result<()> {
    let dir = repository().join("docs/monitoring");
    std::fs::create_dir_all(&dir)?;
    for row in rows {
        let mut charts = Vec::new();
        for panel in &row.panels {
            let lines = lines(prometheus, panel).await?;
            let y = Box::new(|value| shown(value, &panel.unit));
            charts.push(Chart { title: &panel.title, lines, has_dots: false, x: |at| format!("{at:.0} s"), y });
        }
        let name = row.title.to_lowercase().replace([',', ' '], "-").replace("--", "-");
        std::fs::write(dir.join(format!("{name}.svg")), chart::draw(Some(&row.title), &charts)?)?;
    }
    Ok(())
}

async fn lines(prometheus: &Prometheus, panel: &Panel) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (query, legend) in &panel.queries {
        let end = chrono::Utc::now().timestamp();
        let seconds = i64::try_from(SECONDS)?;
        for series in prometheus.range(query, end, seconds, STEP).await? {
            let values = series["values"].as_array().context("a series without values")?;
            let point = |pair: &Value| {
                let value = text(&pair[1]).parse::<f64>().ok().filter(|value| value.is_finite())?;
                #[expect(clippy::cast_precision_loss, reason = "a time of this century")]
                let begin = (end - seconds) as f64;
                Some((pair[0].as_f64()? - begin, value))
            };
            let points = values.iter().filter_map(point).collect();
            lines.push(Line { label: named(legend, &series["metric"]), points, beside: Vec::new() });
        }
    }
    // There is not enough room for all lines. Those with the highest peaks are plotted.
    let peak = |line: &Line| line.points.iter().map(|point| point.1).fold(0.0, f64::max);
    lines.sort_by(|left, right| peak(right).total_cmp(&peak(left)));
    lines.truncate(COLORS.len());
    Ok(lines)
}

/// Inserts the labels of a series into its legend. The label that distinguishes a test's replicas is left out, because
/// a reader does not need it.
fn named(legend: &str, labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten().filter(|(name, _)| *name != "instance");
    let named =
        labels.fold(legend.to_owned(), |legend, (name, value)| legend.replace(&format!("{{{{{name}}}}}"), text(value)));
    named.replace("{{instance}}", "replica")
}

/// Formats a value briefly, with its unit.
fn shown(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => format!("{:.0} MB", value / 1e6),
        "percentunit" => format!("{:.0}%", value * 100.0),
        "s" if value < 0.001 => format!("{:.0} µs", value * 1e6),
        "s" if value < 1.0 => format!("{:.0} ms", value * 1e3),
        "s" => format!("{value:.0} s"),
        "ops" | "reqps" => format!("{value:.1}/s"),
        _ if value < 10.0 && value.fract() > 0.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}
