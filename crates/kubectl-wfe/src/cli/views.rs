//! The flags of `status`, `list` and `history`.

use clap::{Args, ValueEnum};
use wfe_core::target::TargetName;

use super::{Format, ListFormat, ViewArgs};
use crate::subject::Subject;

pub(super) const STATUS: &str = "\
Examples:
  kubectl wfe status                        which targets need a person?
  kubectl wfe status node/worker-1          what blocks it, and what must I do?
  kubectl wfe status restart-x7k2p          what does this execution do now?
  kubectl wfe status --namespace payment    the overview of one namespace
  kubectl wfe status -o html > now.html     the overview as a page in one file, for a ticket

Exit code: 0 nothing needs a person; 1 something does; 2 an error. With TARGET or NAME: the exit code of explain.";

pub(super) const DASHBOARD: &str = "\
Example:
  kubectl wfe dashboard

Serves the page only on this machine, until Ctrl-C. The address of the page contains a secret: every user who knows \
the address sees what you may see. Exit code: 0; 2 an error.";

pub(super) const LIST: &str = "\
Examples:
  kubectl wfe list --all-namespaces --needs-person    the executions that block a target
  kubectl wfe list --running                          what runs in this namespace
  kubectl wfe list --waiting -o name | xargs -n 1 kubectl wfe cancel --yes --reason 'not needed'

Exit code: 0; with --needs-person 1 if an execution is listed; 2 an error.";

pub(super) const HISTORY: &str = "\
Example:
  kubectl wfe history node/worker-1

Exit code: 0; 2 an error.";

/// The flags of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// A target (namespace/kind/name or kind/name), or the name of a WorkflowExecution. Default: an overview of all.
    #[arg(value_name = "TARGET|NAME", value_parser = Subject::parse)]
    pub(crate) subject: Option<Subject>,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<PageFormat>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The formats of an answer that can be a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// One JSON object.
    Json,
    /// An HTML page, in one file that loads nothing else.
    Html,
}

/// The flags of `dashboard`.
#[derive(Debug, Args)]
pub(crate) struct DashboardArgs {
    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The flags of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List the executions of all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// The executions to list.
    #[command(flatten)]
    pub(crate) only: OnlyArgs,

    /// The output format. Default: a table for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// Which executions to list. Without a flag: all.
#[derive(Debug, Args)]
pub(crate) struct OnlyArgs {
    /// Only executions that block their target until a person clears it.
    #[arg(long, conflicts_with_all = ["running", "waiting"])]
    pub(crate) needs_person: bool,

    /// Only executions that run.
    #[arg(long, conflicts_with = "waiting")]
    pub(crate) running: bool,

    /// Only executions that are not decided yet.
    #[arg(long)]
    pub(crate) waiting: bool,
}

/// The flags of `history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The target (namespace/kind/name or kind/name).
    #[arg(value_name = "TARGET", value_parser = Subject::parse_target)]
    pub(crate) target: TargetName,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}
