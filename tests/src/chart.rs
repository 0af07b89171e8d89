//! Line charts as SVG, drawn by plotters: the curves of the benchmark, and the panels of the dashboard.

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::*;

/// The colours of the lines of a chart. A chart has no more lines.
pub const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
];
/// The size of a chart, in pixels.
const SIZE: (u32, u32) = (440, 230);
/// How many charts are side by side.
const COLUMNS: usize = 3;
const FONT: &str = "sans-serif";

/// A line of a chart.
pub struct Line {
    /// The name in the legend.
    pub label: String,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Points beside the line, which are drawn hollow.
    pub beside: Vec<(f64, f64)>,
}

/// A chart. Both axes begin at zero.
pub struct Chart<'a> {
    /// The title.
    pub title: &'a str,
    /// The lines.
    pub lines: Vec<Line>,
    /// Whether each point has a dot.
    pub has_dots: bool,
    /// Writes a value of the horizontal axis.
    pub x: fn(f64) -> String,
    /// Writes a value of the vertical axis.
    pub y: Box<dyn Fn(f64) -> String + 'a>,
}

/// Draws charts side by side, below a heading if there is one.
///
/// # Errors
/// If plotters cannot draw them.
pub fn draw(heading: Option<&str>, charts: &[Chart<'_>]) -> Result<String> {
    let columns = charts.len().clamp(1, COLUMNS);
    let rows = charts.len().div_ceil(columns).max(1);
    let mut svg = String::new();
    {
        let size = (SIZE.0 * u32::try_from(columns)?, SIZE.1 * u32::try_from(rows)?);
        let mut root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        if let Some(heading) = heading {
            root = root.titled(heading, (FONT, 18))?;
        }
        for (area, chart) in root.split_evenly((rows, columns)).iter().zip(charts) {
            chart.draw(area)?;
        }
        root.present()?;
    }
    Ok(svg)
}

impl Chart<'_> {
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<()> {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().chain(&line.beside));
        let greatest = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
        let (right, top) = (greatest(|point| point.0), greatest(|point| point.1) * 1.1);
        let end = |greatest: f64| if greatest > 0.0 { greatest } else { 1.0 };
        let mut builder = ChartBuilder::on(area);
        builder.caption(self.title, (FONT, 13)).margin(8).margin_right(24).x_label_area_size(20).y_label_area_size(56);
        let mut chart = builder.build_cartesian_2d(0.0..end(right), 0.0..end(top))?;
        let (x, y) = (|at: &f64| (self.x)(*at), |value: &f64| (self.y)(*value));
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().bold_line_style(RGBColor(230, 230, 230)).light_line_style(TRANSPARENT);
        mesh.x_labels(5).y_labels(4).x_label_formatter(&x).y_label_formatter(&y).label_style((FONT, 11)).draw()?;
        for (line, color) in self.lines.iter().zip(COLORS) {
            let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?;
            let key = move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2));
            drawn.label(&line.label).legend(key);
            let dots = line.points.iter().filter(|_| self.has_dots).map(|at| Circle::new(*at, 3, color.filled()));
            chart.draw_series(dots)?;
            chart.draw_series(line.beside.iter().map(|at| Circle::new(*at, 3, color.stroke_width(1))))?;
        }
        let mut legend = chart.configure_series_labels();
        legend
            .position(SeriesLabelPosition::UpperLeft)
            .label_font((FONT, 11))
            .background_style(WHITE.mix(0.7))
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_holds_all_points_of_its_lines_and_an_empty_one_can_be_drawn() {
        let line = Line {
            label: "operator".to_owned(),
            points: vec![(0.0, 10.0), (1000.0, 11.0), (50_000.0, 90.0)],
            beside: vec![(1000.0, 12.0)],
        };
        let chart = |lines| Chart {
            title: "Memory",
            lines,
            has_dots: true,
            x: |at| format!("{at:.0} executions"),
            y: Box::new(|value| format!("{value:.0} MB")),
        };
        let svg = draw(Some("All"), &[chart(vec![line]), chart(vec![])]).unwrap();
        assert_eq!(svg.matches("<circle").count(), 4, "{svg}");
        for text in ["All", "Memory", "operator", "0 MB", "40000 executions"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
    }
}
