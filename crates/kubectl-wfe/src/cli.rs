//! The command line. What the operator takes too is named as there, with the same environment variables and defaults.

// Doc comments here are the text of `--help`, where backticks would be noise.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use wfe_operator::cli::PolicyArgs;

/// Says why a target does or does not run a workflow, and clears it.
#[derive(Debug, Parser)]
#[command(name = "kubectl-wfe", bin_name = "kubectl wfe", version, propagate_version = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What it can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether a WorkflowExecution would run now, which rule decides, and when that changes. Writes nothing.
    Explain(Box<ExplainArgs>),
    /// Lift the block that a failure has left on a target, in your own name.
    Clear(Box<ClearArgs>),
}

/// The flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A target (namespace/kind/name or kind/name), or the name of a WorkflowExecution.
    #[arg(value_name = "TARGET|NAME", required_unless_present = "file", conflicts_with = "file")]
    pub(crate) subject: Option<String>,

    /// A file with a WorkflowExecution (YAML or JSON) that does not have to exist.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// How to look.
    #[command(flatten)]
    pub(crate) view: ViewArgs,
}

/// The flags of `clear`.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// The target (namespace/kind/name or kind/name).
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,

    /// Why the target is in order again. It is kept with your name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,

    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,

    /// How to look.
    #[command(flatten)]
    pub(crate) view: ViewArgs,
}

/// Where to look, and with which policy. They must be those of the operator, or the answer is another one.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The namespace of the WorkflowExecution. Default: that of the kubeconfig's context.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// The workflow that would run on the target. Default: one that has never run there.
    #[arg(long, value_name = "WORKFLOW_ID", default_value = "a-workflow-that-never-ran-here")]
    pub(crate) workflow: String,

    /// The one namespace whose WorkflowExecutions the operator watches. Default: all namespaces.
    #[arg(long, env = "WFE_WATCH_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) watch_namespace: Option<String>,

    /// The namespace in which the operator makes all PipelineRuns.
    #[arg(long, env = "WFE_EXECUTION_NAMESPACE", value_name = "NAMESPACE", default_value = "kubernaut-workflows")]
    pub(crate) execution_namespace: String,

    /// The operator's policy.
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn explain_takes_one_subject() {
        let parses = |words: &[&str]| Cli::try_parse_from(["kubectl-wfe", "explain"].iter().chain(words)).is_ok();
        assert!(parses(&["node/worker-1"]) && parses(&["-f", "wfe.yaml"]));
        assert!(!parses(&[]) && !parses(&["node/worker-1", "-f", "wfe.yaml"]));
    }
}
