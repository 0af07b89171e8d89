//! `kubectl wfe doctor`: whether everything that the operator needs is there and in order, in groups of checks.
//!
//! It reads with the rights of the caller. An object that the caller may not read is shown as not seen, and is no
//! error.

mod access;
mod check;
mod cluster;
mod installed;
mod look;
#[cfg(test)]
mod testing;

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use self::check::{Check, Verdict, count, told};
use self::look::{Cluster, Installed, may_not_create};
use crate::cli::{ClusterArgs, DoctorArgs, Format, OperatorArgs};
use crate::connection::Connection;
use crate::moment::span;
use crate::output::{note, output};

/// How long to wait before the next try: a try makes some forty requests.
const PAUSE: Duration = Duration::from_secs(3);

/// The answer. `-o json` shows all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    errors: usize,
    warnings: usize,
    not_seen: usize,
    checks: Vec<Check>,
}

/// Runs the command. Yes: there is no error.
pub(crate) async fn run(cluster: &ClusterArgs, args: &DoctorArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let deadline = args.wait.map(|wait| Instant::now() + wait);
    let mut is_first = true;
    let checks = loop {
        let checks = look(&connection, args).await?;
        let errors = count(&checks, Verdict::Error);
        match deadline {
            Some(deadline) if errors > 0 && Instant::now() < deadline => {
                let left = deadline.saturating_duration_since(Instant::now());
                if std::mem::take(&mut is_first) {
                    note(&format!("errors: {errors}; checking again for {}", span(left)));
                }
                sleep(PAUSE.min(left)).await;
            }
            _ => break checks,
        }
    };
    let report = Report::of(checks);
    match args.output {
        Some(Format::Json) => output().json("Doctor", &report)?,
        None => write!(output(), "{}", told(&report.checks))?,
    }
    Ok(report.errors == 0)
}

/// Checks an installation once, and returns the answer for programs.
pub(crate) async fn answer(connection: &Connection, operator: &OperatorArgs) -> Result<serde_json::Value> {
    let args = DoctorArgs { pre: false, wait: None, output: None, operator: operator.clone() };
    Ok(serde_json::to_value(Report::of(look(connection, &args).await?))?)
}

impl Report {
    fn of(checks: Vec<Check>) -> Self {
        Self {
            errors: count(&checks, Verdict::Error),
            warnings: count(&checks, Verdict::Warning),
            not_seen: count(&checks, Verdict::NotSeen),
            checks,
        }
    }
}

/// Makes all checks once.
async fn look(connection: &Connection, args: &DoctorArgs) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let seen = Cluster::read(&connection.client).await?;
    cluster::cluster(&seen, &mut checks);
    cluster::crds(&seen, args.pre, &mut checks);
    if args.pre {
        cluster::rights(&may_not_create(&connection.client).await?, &mut checks);
        return Ok(checks);
    }
    let seen = Installed::read(connection, &args.operator).await?;
    installed::operator(&seen, &mut checks);
    installed::policies(&seen, &mut checks);
    installed::config(&seen, &mut checks);
    access::workflows(&seen, &mut checks);
    access::people(&seen, &mut checks);
    access::alerts(&seen, &mut checks);
    Ok(checks)
}
