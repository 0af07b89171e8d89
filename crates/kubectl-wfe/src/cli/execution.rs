//! The flags of the commands about one `WorkflowExecution`.

// Doc comments here are the text of `--help`, where backticks would be noise.
#![allow(clippy::doc_markdown)]

use std::time::Duration;

use clap::Args;
use wfe_core::duration;

use super::{Format, ViewArgs, parse_why};
use crate::subject::{Traced, parse_execution};

pub(super) const LOGS: &str = "\
Examples:
  kubectl wfe logs restart-x7k2p                the failed step, or all steps if no step failed
  kubectl wfe logs restart-x7k2p -a             all steps
  kubectl wfe logs restart-x7k2p -f             all steps, while it runs
  kubectl wfe logs restart-x7k2p --attempt 1    the first attempt of an execution with spec.retry

Exit code: 0 a log was shown; 1 there is no log, and the status is shown instead; 2 an error.";

pub(super) const CANCEL: &str = "\
Example:
  kubectl wfe cancel restart-x7k2p --reason 'wrong cluster'

Shows the effect on the target, and asks for confirmation. Exit code: 0 the execution is cancelled, or had ended \
already; 1 you answered no; 2 an error.";

pub(super) const WAIT: &str = "\
Examples:
  kubectl wfe wait restart-x7k2p
  kubectl wfe wait restart-x7k2p --timeout 2h --output json

Exit code: 0 Completed; 2 an error; 3 Failed, and nothing ran; 4 Failed half way; 5 Skipped; 6 the timeout has passed.";

pub(super) const WATCH: &str = "\
Example:
  kubectl wfe watch restart-x7k2p

Exit code: 0 Completed; 2 an error; 3 Failed, and nothing ran; 4 Failed half way; 5 Skipped; 6 the timeout has passed.";

pub(super) const TRACE: &str = "\
Examples:
  kubectl wfe trace pod/wfe-ac45b7d6911e97a5-2-restart-pod
  kubectl wfe trace wfe/restart-x7k2p -n payment

Searches for pods and runs in the execution namespace, or in the namespace of -n.
Exit code: 0 the object belongs to a WorkflowExecution; 1 it belongs to none; 2 an error.";

/// The flags of `logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The name of the WorkflowExecution.
    #[arg(value_name = "NAME", value_parser = parse_execution)]
    pub(crate) name: String,

    /// Show all steps. Default: only the failed step, if a step failed.
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Show all steps, and new lines until the execution ends.
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) follow: bool,

    /// The number of the attempt. Default: the latest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempt: Option<u32>,

    /// The number of lines to show of each step, counted from its end.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) tail: u32,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator and its settings: until when logs are kept.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The flags of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The name of the WorkflowExecution.
    #[arg(value_name = "NAME", value_parser = parse_execution)]
    pub(crate) name: String,

    /// The reason for the cancellation. It is stored with your name.
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub(crate) reason: String,

    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The flags of `wait` and `watch`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The name of the WorkflowExecution.
    #[arg(value_name = "NAME", value_parser = parse_execution)]
    pub(crate) name: String,

    /// How long to wait, such as 90s, 30m or 2h. The default is also the operator's default time limit of a run.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration::parse)]
    pub(crate) timeout: Duration,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// The flags of `trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// What to trace: pod/NAME, taskrun/NAME, pipelinerun/NAME or wfe/NAME.
    #[arg(value_name = "KIND/NAME", value_parser = Traced::parse)]
    pub(crate) object: Traced,

    /// The namespace in which the operator creates all PipelineRuns.
    #[arg(long, env = "WFE_EXECUTION_NAMESPACE", value_name = "NAMESPACE", default_value = "kubernaut-workflows")]
    pub(crate) execution_namespace: String,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// Checks the reason of a cancellation like the API server, before anything is shown and asked.
fn parse_reason(text: &str) -> Result<String, String> {
    parse_why(text, wfe_api::limits::CANCELLATION_REASON, "it is to stop")
}
