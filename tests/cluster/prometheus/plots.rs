//! Plots the results of the dashboard's queries for docs/monitoring.md, one picture for each row. Grafana's plots look
//! better.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::Value;
use wfe_testkit::{Prometheus, repository};

use super::dashboard::{Panel, Row};
use crate::expect::text;

/// The time span of the plots.
pub(super) const SECONDS: u64 = 180;
const STEP: u64 = 4;
const COLORS: [&str; 6] = ["#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b"];
/// The size of a plot's data area.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 185.0;

/// A line in a plot.
struct Line {
    label: String,
    /// Seconds since the left edge, and the value.
    points: Vec<(f64, f64)>,
}

/// Writes a picture of each row of the dashboard.
pub(super) async fn write(prometheus: &Prometheus, rows: &[Row]) -> Result<()> {
    let dir = repository().join("docs/monitoring");
    std::fs::create_dir_all(&dir)?;
    for row in rows {
        let mut plots = Vec::new();
        for panel in &row.panels {
            plots.push((panel, lines(prometheus, panel).await?));
        }
        let name = row.title.to_lowercase().replace(' ', "-");
        std::fs::write(dir.join(format!("{name}.svg")), picture(&row.title, &plots))?;
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
            lines.push(Line { label: named(legend, &series["metric"]), points });
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

fn picture(title: &str, plots: &[(&Panel, Vec<Line>)]) -> String {
    let columns = 3;
    let rows = plots.len().div_ceil(columns);
    #[expect(clippy::cast_precision_loss, reason = "a handful of panels")]
    let place = |at: usize| ((at % columns) as f64 * WIDTH, (at / columns) as f64 * HEIGHT + 30.0);
    let (width, height) = (3.0 * WIDTH, place(rows * columns).1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"10\" fill=\"#333\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n"
    );
    for (at, (panel, lines)) in plots.iter().enumerate() {
        let (x, y) = place(at);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">\n{}</g>", plot(panel, lines));
    }
    svg + "</svg>\n"
}

fn plot(panel: &Panel, lines: &[Line]) -> String {
    let (left, top, width, height) = (48.0, 20.0, WIDTH - 60.0, 110.0);
    let top_value = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    let scale = if top_value > 0.0 { top_value } else { 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "some minutes")]
    let seconds = SECONDS as f64;
    let mut svg = format!(
        "<text x=\"8\" y=\"12\" font-weight=\"bold\">{}</text>\n\
         <path d=\"M{left} {top}v{height}h{width}\" fill=\"none\" stroke=\"#999\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">0</text>\n",
        panel.title,
        left - 4.0,
        top + 8.0,
        shown(scale, &panel.unit),
        left - 4.0,
        top + height,
    );
    for (at, (line, color)) in lines.iter().zip(COLORS).enumerate() {
        let points = line.points.iter().map(|(time, value)| {
            format!("{:.0},{:.0}", left + time / seconds * width, top + height - value / scale * height)
        });
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
            points.collect::<Vec<_>>().join(" ")
        );
        #[expect(clippy::cast_precision_loss, reason = "six lines at the most")]
        let (x, y) = (8.0 + (at % 2) as f64 * WIDTH / 2.0, top + height + 14.0 + (at / 2) as f64 * 13.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"8\" height=\"3\" fill=\"{color}\"/><text x=\"{}\" y=\"{y}\">{}</text>",
            y - 5.0,
            x + 11.0,
            line.label
        );
    }
    svg
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
