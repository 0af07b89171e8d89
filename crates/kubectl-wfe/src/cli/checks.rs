//! The flags of the commands that check.

use std::path::PathBuf;

use clap::Args;

use super::Format;

pub(super) const LINT: &str = "\
Examples:
  kubectl wfe lint -f pipeline.yaml               what a workflow needs to run here
  kubectl wfe lint -f wfe.yaml -f nightly.yaml    what the API server and the operator would refuse
  kubectl wfe lint -f wfe.yaml --server           also admission policies, quotas and your own permissions

Marks: x an error, ! a warning. Exit code: 0 no error; 1 an error; 2 a file cannot be read, or the API server does not \
answer.";

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
