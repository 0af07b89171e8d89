//! The table of requests. Each row has one or more requests, and the code and the reason with which both servers must
//! answer the last one.

mod calls;
mod rows;
mod schedules;

use super::{Call, Plan};

/// A row of the table. No two rows use the same object.
#[derive(Clone, Debug)]
pub struct Row {
    /// The fact that the row shows, as a sentence.
    pub title: &'static str,
    /// The code of the answer to the row's last request.
    pub code: u16,
    /// The reason in the answer to the last request; empty for a success.
    pub reason: &'static str,
    /// The requests of the row.
    pub calls: Vec<Call>,
}

/// A row as it is written in the source. Its last element returns the requests for an object with a given name.
type Written = (u16, &'static str, &'static str, fn(&str) -> Vec<Call>);

/// Returns all rows.
#[must_use]
pub fn rows() -> Vec<Row> {
    let written = rows::ROWS.iter().chain(schedules::ROWS).enumerate();
    let rows = written.map(|(number, (code, reason, title, calls))| {
        let calls = calls(&format!("row-{number}"));
        Row { title, code: *code, reason, calls }
    });
    rows.collect()
}

/// Returns a plan with the requests of all rows.
#[must_use]
pub fn tabled() -> Plan {
    let calls = rows().into_iter().flat_map(|row| row.calls).collect();
    Plan { title: "the table".to_owned(), namespace: "conformance-table".to_owned(), calls }
}

/// Returns the rows whose last answer is wrong. `said` is the result of [`super::play()`] for [`tabled`].
#[must_use]
pub fn wrong_rows(said: &[super::Line]) -> Vec<String> {
    let mut played = 0;
    let mut wrong = Vec::new();
    for row in rows() {
        played += row.calls.len();
        let Some(line) = said.get(played - 1) else { break };
        let (code, reason) = (&line.said["code"], line.said["reason"].as_str().unwrap_or_default());
        if *code != row.code || reason != row.reason {
            wrong.push(format!("{}: {} {}, not {code} {reason}\n    {}", row.title, row.code, row.reason, line.title));
        }
    }
    wrong
}
