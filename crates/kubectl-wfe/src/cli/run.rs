//! The flags of `run`.

// Doc comments here are the text of `--help`, where backticks would be noise.
#![allow(clippy::doc_markdown)]

use std::time::Duration;

use clap::Args;
use wfe_core::duration;
use wfe_core::target::TargetName;

use super::{Format, OperatorArgs};
use crate::subject::{Subject, parse_execution};

pub(super) const RUN: &str = "\
Examples:
  kubectl wfe run disk-cleanup --on node/worker-1 --image REGISTRY/disk-cleanup:1.0
  kubectl wfe run disk-cleanup --on node/worker-1 --image REGISTRY/disk-cleanup:1.0 --set DISK_THRESHOLD=85 --wait
  kubectl wfe run --like disk-01                                       once more, with the same spec
  kubectl wfe run --like disk-01 --on node/worker-2                    the same on another target
  kubectl wfe run replace-pod --recover restart-x7k2p --image REGISTRY/replace-pod:1.0

Creates no execution that would be skipped or fail at once. Exit code: 0 the execution is created; 1 it would not run, \
and nothing was created; 2 an error. With --wait: 0 Completed; 1 and 2 as above; 3 Failed, and nothing ran; 4 Failed \
half way; 5 Skipped; 6 the timeout has passed.";

/// The flags of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The workflow, by its key in your catalogue.
    #[arg(value_name = "WORKFLOW", required_unless_present = "like")]
    pub(crate) workflow: Option<String>,

    /// The target (namespace/kind/name or kind/name).
    #[arg(
        long,
        value_name = "TARGET",
        value_parser = Subject::parse_target,
        required_unless_present_any = ["like", "recover"],
        conflicts_with = "recover"
    )]
    pub(crate) on: Option<TargetName>,

    /// The Tekton bundle that contains the workflow.
    #[arg(long, value_name = "BUNDLE", required_unless_present = "like")]
    pub(crate) image: Option<String>,

    /// The version of the workflow, for the record. Default: the tag of the bundle.
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,

    /// A parameter of the pipeline. Repeat the flag for several parameters. The value is never shown.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) parameters: Vec<String>,

    /// The maximum number of attempts, with the first. A further attempt starts only if nothing of the workflow ran.
    #[arg(long, value_name = "ATTEMPTS", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) retry: Option<u32>,

    /// The name of the new WorkflowExecution. Default: a generated name that begins with the name of the workflow.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The WorkflowExecution from which target, workflow, parameters and limits are copied. Other flags override them.
    #[arg(long, value_name = "NAME", value_parser = parse_execution)]
    pub(crate) like: Option<String>,

    /// The WorkflowExecution that failed half way, and that the new one recovers with another workflow.
    #[arg(long, value_name = "NAME", value_parser = parse_execution)]
    pub(crate) recover: Option<String>,

    /// Show each change until the execution has ended. The exit code is its outcome.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,

    /// How long to wait, such as 90s, 30m or 2h.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration::parse, requires = "wait")]
    pub(crate) timeout: Duration,

    /// Check the execution against the rules and by a dry run of the API server, and create nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator.
    #[command(flatten, next_help_heading = "The operator")]
    pub(crate) operator: OperatorArgs,
}
