//! Plays a scenario with several values of one key, and compares the totals.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde::Serialize;
use wfe_core::duration;

use super::play::Play;
use super::scenario::Scenario;
use super::totals::Totals;

/// The comparison, a column for each value.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Comparison {
    key: String,
    columns: Vec<Column>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Column {
    value: String,
    totals: Totals,
}

/// A row: its name, and its value in a column.
type Row = (&'static str, fn(&Totals) -> String);

const ROWS: &[Row] = &[
    ("runs", |it| it.runs.to_string()),
    ("failed", |it| it.failed.to_string()),
    ("skipped, busy", |it| it.skipped.busy.to_string()),
    ("skipped, cooldown", |it| it.skipped.cooldown.to_string()),
    ("skipped, backoff", |it| it.skipped.backoff.to_string()),
    ("skipped, exhausted", |it| it.skipped.exhausted.to_string()),
    ("skipped, blocked", |it| it.skipped.blocked.to_string()),
    ("schedules held", |it| it.held.to_string()),
    ("needs a person", Totals::people),
    ("blocked for", |it| duration::format(Duration::from_secs(it.blocked_seconds))),
    ("recovered after", |it| match (it.failing_targets, it.last_recovery_seconds) {
        (0, Some(at)) => duration::format(Duration::from_secs(at)),
        _ => "-".to_owned(),
    }),
];

impl Comparison {
    /// Plays the scenario once for each value.
    pub(super) fn of(
        scenario: &Scenario,
        key: &str,
        values: &[String],
        until: Duration,
        stops_when_quiet: bool,
    ) -> Result<Self> {
        let column = |value: &String| {
            let policy = scenario.policy(Some((key, value))).map_err(|fault| anyhow!("--compare: {}", fault.what))?;
            let totals = Play::new(scenario, &policy).play(until, stops_when_quiet)?.totals;
            Ok(Column { value: value.clone(), totals })
        };
        let columns = values.iter().map(column).collect::<Result<_>>()?;
        Ok(Self { key: key.to_owned(), columns })
    }

    /// Returns whether nothing needs a person at the end, whichever value is set.
    pub(super) fn is_fine(&self) -> bool {
        !self.columns.iter().any(|column| column.totals.needs_a_person())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = |column: &Column| column.value.clone();
        let rows = ROWS.iter().map(|(name, of)| (*name, self.columns.iter().map(|it| of(&it.totals)).collect()));
        // A count that is 0 everywhere says nothing.
        let rows = rows.filter(|(_, cells): &(_, Vec<String>)| cells.iter().any(|cell| cell != "0"));
        let head = (self.key.as_str(), self.columns.iter().map(head).collect::<Vec<_>>());
        let rows: Vec<(&str, Vec<String>)> = std::iter::once(head).chain(rows).collect();
        let names = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let width = |at: usize| rows.iter().filter_map(|(_, cells)| Some(cells.get(at)?.len())).max().unwrap_or(0);
        for (name, cells) in &rows {
            write!(f, "{name:<names$}")?;
            for (at, cell) in cells.iter().enumerate() {
                write!(f, "  {cell:>width$}", width = width(at))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
