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
    let checks = until_no_error(args.wait, async || look(&connection, args).await).await?;
    let report = Report::of(checks);
    match args.output {
        Some(Format::Json) => output().json("Doctor", &report)?,
        None => write!(output(), "{}", told(&report.checks))?,
    }
    Ok(report.errors == 0)
}

/// Repeats the checks until none is an error. A try that ends after the time is the last one.
async fn until_no_error(wait: Option<Duration>, look: impl AsyncFn() -> Result<Vec<Check>>) -> Result<Vec<Check>> {
    let deadline = wait.map(|wait| Instant::now() + wait);
    let mut is_first = true;
    loop {
        let checks = look().await?;
        let errors = count(&checks, Verdict::Error);
        match deadline {
            Some(deadline) if errors > 0 && Instant::now() < deadline => {
                let left = deadline.saturating_duration_since(Instant::now());
                if std::mem::take(&mut is_first) {
                    note(&format!("errors: {errors}; checking again for {}", span(left)));
                }
                sleep(PAUSE.min(left)).await;
            }
            _ => return Ok(checks),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::check::Group;
    use super::*;

    /// Returns the seconds at which a doctor begins its checks, if each check takes a second, and finds an error before
    /// this second.
    async fn begun(wait: Option<u64>, well_from: u64) -> Vec<u64> {
        let (start, begun) = (Instant::now(), RefCell::new(Vec::new()));
        let look = async || {
            let second = start.elapsed().as_secs();
            begun.borrow_mut().push(second);
            sleep(Duration::from_secs(1)).await;
            let mut checks = Vec::new();
            let mut group = Group::new("cluster", &mut checks);
            if second < well_from {
                group.error("no Tekton", "install it");
            }
            Ok(checks)
        };
        until_no_error(wait.map(Duration::from_secs), look).await.unwrap();
        begun.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn checks_are_repeated_until_none_is_an_error_and_once_more_when_the_time_is_over() {
        assert_eq!(begun(None, 99).await, [0]);
        assert_eq!(begun(Some(10), 0).await, [0]);
        assert_eq!(begun(Some(10), 3).await, [0, 4]);
        assert_eq!(begun(Some(10), 99).await, [0, 4, 8, 10], "the last pause is shorter than the others");
        assert_eq!(begun(Some(1), 99).await, [0], "the first check takes all of the time");
    }
}
