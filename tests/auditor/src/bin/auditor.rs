//! The command line: reads the files, prints the report, and returns an exit code for the result.

// Doc comments here are the text of `--help`, in which backticks would be printed.
#![allow(clippy::doc_markdown)]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use wfe_auditor::{InputError, Options, Policy, Report, Requirement, audit, read_changes, read_requests};

/// Judges a recording of WorkflowExecutions and PipelineRuns by the invariants.
///
/// Exit code 0: no violation. 1: a violation, or a requirement that is not met. 2: an input that cannot be read, or an
/// incomplete recording, which proves nothing.
#[derive(Debug, Parser)]
#[command(name = "auditor", version)]
struct Cli {
    /// The recording of a watch, as JSON lines (kind, change, resource_version, at_ms, object), from before the start.
    /// The option can be given several times.
    #[arg(long, value_name = "FILE", required = true)]
    watch: Vec<PathBuf>,

    /// The API server's audit log, as JSON lines. Give the option several times for a log that was rotated.
    #[arg(long, value_name = "FILE")]
    audit: Vec<PathBuf>,

    /// The user name of an operator, as the audit log has it. The option can be given several times.
    #[arg(long, value_name = "USER")]
    operator: Vec<String>,

    /// Faults have stopped, and everything has had time to come to rest. Anything that is left undone is a violation.
    #[arg(long)]
    settled: bool,

    #[command(flatten)]
    policy: Policy,

    /// How far the view of an operator may have been behind when it made a child of a schedule (a Go duration).
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = wfe_core::duration::parse)]
    lag: std::time::Duration,

    /// The least that must have happened, such as runs=100,ResourceBusy=20.
    #[arg(long, value_name = "NAME=NUMBER", value_delimiter = ',')]
    require: Vec<Requirement>,

    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// An input or output that failed, and its file.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{path} cannot be opened")]
    Open { path: PathBuf, source: std::io::Error },
    #[error("{path} cannot be read")]
    Read { path: PathBuf, source: InputError },
    #[error("the report cannot be written")]
    Write(#[source] std::io::Error),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(trouble) => {
            let mut text = format!("auditor: {trouble}");
            let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&trouble);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            // If standard error is closed too, there is nowhere left to report to.
            drop(writeln!(std::io::stderr(), "{text}"));
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<u8, Trouble> {
    let changes = read_all(&cli.watch, read_changes)?;
    let requests = read_all(&cli.audit, read_requests)?;
    let options = Options {
        operators: cli.operator.iter().cloned().collect(),
        settled: cli.settled,
        policy: Some(cli.policy.clone()),
        lag: cli.lag,
    };
    let report = audit(&changes, &requests, &options);
    let unmet = report.counts.unmet(&cli.require);

    let mut out = std::io::stdout().lock();
    if cli.json {
        serde_json::to_writer_pretty(&mut out, &report).map_err(|error| Trouble::Write(error.into()))?;
        writeln!(out).map_err(Trouble::Write)?;
    } else {
        writeln!(out, "{:<24}{:>8}\n{:<24}{:>8}", "(changes)", changes.len(), "(requests)", requests.len())
            .and_then(|()| write!(out, "{report}"))
            .map_err(Trouble::Write)?;
    }
    for Requirement { name, at_least } in &unmet {
        let seen = report.counts.of(name);
        drop(writeln!(std::io::stderr(), "auditor: {name} is {seen}, and at least {at_least} is required"));
    }
    Ok(code(&report, unmet.is_empty()))
}

fn code(report: &Report, is_enough: bool) -> u8 {
    match (report.gaps.is_empty(), report.violations.is_empty() && is_enough) {
        (false, _) => 2,
        (true, false) => 1,
        (true, true) => 0,
    }
}

fn read_all<T>(
    paths: &[PathBuf],
    read: impl Fn(Box<dyn BufRead>) -> Result<Vec<T>, InputError>,
) -> Result<Vec<T>, Trouble> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(read(open(path)?).map_err(|source| Trouble::Read { path: path.clone(), source })?);
    }
    Ok(all)
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Trouble> {
    let file = File::open(path).map_err(|source| Trouble::Open { path: path.to_owned(), source })?;
    Ok(Box::new(BufReader::new(file)))
}
