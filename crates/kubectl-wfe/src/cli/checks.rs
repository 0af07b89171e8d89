//! The flags of the commands that check: files, an installation and its settings.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Format, OperatorArgs};

pub(super) const CONFIG: &str = "\
Examples:
  kubectl wfe config
  kubectl wfe config --output json

Exit code: 0 the ConfigMap is accepted, or there is none; 1 the operator refuses it; 2 an error.";

pub(super) const DOCTOR: &str = "\
Examples:
  kubectl wfe doctor --pre          before you install the operator
  kubectl wfe doctor                is everything in order?
  kubectl wfe doctor --wait 5m      after you have installed it, in a script

Marks: ok; x an error; ! a warning; - not seen, because you lack the permission. Exit code: 0 no error; 1 an error; 2 the \
API server does not answer.";

pub(super) const LINT: &str = "\
Examples:
  kubectl wfe lint -f pipeline.yaml               what a workflow needs to run here
  kubectl wfe lint -f wfe.yaml -f nightly.yaml    what the API server and the operator would refuse
  kubectl wfe lint -f wfe.yaml --server           also admission policies, quotas and your own permissions

Marks: x an error, ! a warning. Exit code: 0 no error; 1 an error; 2 a file cannot be read, or the API server does not \
answer.";

pub(super) const REPORT: &str = "\
Example:
  kubectl wfe report > report.yaml

Read the report before you send it: it contains names of objects and users, reasons and messages. Exit code: 0; 2 an \
error.";

/// The flags of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The operator.
    #[command(flatten, next_help_heading = "The operator")]
    pub(crate) operator: OperatorArgs,
}

/// The flags of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator.
    #[command(flatten, next_help_heading = "The operator")]
    pub(crate) operator: OperatorArgs,
}

/// The flags of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check only the requirements for installing the operator.
    #[arg(long)]
    pub(crate) pre: bool,

    /// Repeat the checks until there is no error, for at most this time (a Go duration, up to 1h).
    #[arg(long, value_name = "DURATION", value_parser = parse_wait)]
    pub(crate) wait: Option<Duration>,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator.
    #[command(flatten, next_help_heading = "The operator")]
    pub(crate) operator: OperatorArgs,
}

/// The flags of `lint`.
#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// The files (YAML or JSON, with one or several objects), or - for standard input.
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,

    /// Also send each WorkflowExecution and WorkflowSchedule without an error to the API server, as a dry run. Nothing
    /// is created.
    #[arg(long)]
    pub(crate) server: bool,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// The longest wait of `doctor`: an installation that takes longer needs a person.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

fn parse_wait(text: &str) -> Result<Duration, String> {
    let wait = wfe_core::duration::parse(text).map_err(|error| format!("it {error}"))?;
    if wait <= LONGEST_WAIT { Ok(wait) } else { Err("it must be at most 1h".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_an_end() {
        assert_eq!(parse_wait("5m"), Ok(Duration::from_mins(5)));
        assert!(parse_wait("61m").is_err() && parse_wait("soon").is_err_and(|why| why.starts_with("it is not")));
    }
}
