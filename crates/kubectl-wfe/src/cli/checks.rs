//! The flags of the commands that check: files, an installation and its settings.

use std::path::PathBuf;

use clap::Args;

use super::{Format, OperatorArgs};

pub(super) const CONFIG: &str = "\
Examples:
  kubectl wfe config
  kubectl wfe config --output json

Exit code: 0 the ConfigMap is accepted, or there is none; 1 the operator refuses it; 2 an error.";

pub(super) const LINT: &str = "\
Examples:
  kubectl wfe lint -f pipeline.yaml               what a workflow needs to run here
  kubectl wfe lint -f wfe.yaml -f nightly.yaml    what the API server and the operator would refuse
  kubectl wfe lint -f wfe.yaml --server           also admission policies, quotas and your own permissions

Marks: x an error, ! a warning. Exit code: 0 no error; 1 an error; 2 a file cannot be read, or the API server does not \
answer.";

/// The flags of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator.
    #[command(flatten, next_help_heading = "Which operator")]
    pub(crate) operator: OperatorArgs,
}

/// The flags of `lint`.
#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// The files (YAML or JSON, with one or several objects), or - for standard input.
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,

    /// Also ask the API server what it would answer to the creation of each WorkflowExecution and WorkflowSchedule
    /// without an error. Nothing is created.
    #[arg(long)]
    pub(crate) server: bool,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}
