//! The command line. Flags that kubectl or the operator also has have the same names, environment variables and
//! defaults.

// Doc comments here are the text of `--help`, where backticks would be noise.
#![allow(clippy::doc_markdown)]

mod checks;
mod completion;
mod execution;
mod pause;
mod play;
mod run;
mod schedules;
mod view;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use checks::{ConfigArgs, DoctorArgs, LintArgs, ReportArgs};
pub(crate) use completion::{CompletionArgs, Shell};
pub(crate) use execution::{CancelArgs, LogsArgs, TraceArgs, WaitArgs};
pub(crate) use pause::{PauseArgs, ResumeArgs};
pub(crate) use play::{Condition, SimulateArgs};
pub(crate) use run::RunArgs;
pub(crate) use schedules::{ScheduleCommand, ScheduleExplainArgs, ScheduleListArgs, ScheduleNextArgs};
pub(crate) use view::{OperatorArgs, Overrides, ViewArgs};

use crate::subject::Subject;

mod views;

pub(crate) use views::{DashboardArgs, HistoryArgs, ListArgs, PageFormat, StatusArgs};

const EXPLAIN: &str = "\
Examples:
  kubectl wfe explain payment/deployment/payment-api         would a new execution on this target run?
  kubectl wfe explain node/worker-1 --workflow restart-node  would this workflow run there?
  kubectl wfe explain restart-x7k2p                          what did this WorkflowExecution do, and why?
  kubectl wfe explain -f wfe.yaml -o json                    would it run, if you created it now? As JSON

Exit code: 0 the execution would run now, runs, or is Completed; 1 it would not run now, or is Failed or Skipped; 2 an \
error.";

const CIRCUITS: &str = "\
Examples:
  kubectl wfe circuits
  kubectl wfe circuits --output json

Exit code: 0 no circuit is open; 1 a circuit is open; 2 an error.";

const CLEAR: &str = "\
Example:
  kubectl wfe clear payment/deployment/payment-api --reason 'looked at it, all in order'

Shows the block, and asks for confirmation. Exit code: 0 the block is cleared, or there was none; 1 you answered no; 2 \
an error.";

/// Shows which targets need a person, explains why a workflow does or does not run on a target, and clears targets.
#[derive(Debug, Parser)]
#[command(name = "kubectl-wfe", bin_name = "kubectl wfe", version, propagate_version = true)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The cluster and the user.
    #[command(flatten, next_help_heading = "Flags of every kubectl command")]
    pub(crate) cluster: ClusterArgs,
}

/// The commands of the plugin.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show which targets need a person, what runs and what waits; or the state of one target or WorkflowExecution.
    /// Suggests the next command. Writes nothing.
    #[command(after_help = views::STATUS)]
    Status(Box<StatusArgs>),
    /// Show the overview as a page in your browser: what happened on each target over time. Writes nothing.
    #[command(after_help = views::DASHBOARD)]
    Dashboard(Box<DashboardArgs>),
    /// List executions, one per line: what each does or waits for, or why it ended. Writes nothing.
    #[command(after_help = views::LIST)]
    List(Box<ListArgs>),
    /// Show what happened on a target: executions, and what people did. Writes nothing.
    #[command(after_help = views::HISTORY)]
    History(Box<HistoryArgs>),
    /// Explain whether a WorkflowExecution would run now, which rule decides, and when that changes. Writes nothing.
    #[command(after_help = EXPLAIN)]
    Explain(Box<ExplainArgs>),
    /// Run a workflow on a target: show what would happen, create a WorkflowExecution and, with --wait, wait for its
    /// end.
    // Here --version is the version of the workflow, so the flag for the version of the plugin is disabled.
    #[command(after_help = run::RUN, disable_version_flag = true)]
    Run(Box<RunArgs>),
    /// Clear a target: lift the block that a failure left on it, in your own name.
    #[command(after_help = CLEAR)]
    Clear(Box<ClearArgs>),
    /// Show the failures that many targets share. Schedules with such a failure wait. Writes nothing.
    #[command(after_help = CIRCUITS)]
    Circuits(Box<CircuitsArgs>),
    /// Show the logs of an execution, by default only those of its failed step. Writes nothing.
    #[command(after_help = execution::LOGS)]
    Logs(Box<LogsArgs>),
    /// Cancel an execution in your own name: stop it, and keep its record.
    #[command(after_help = execution::CANCEL)]
    Cancel(CancelArgs),
    /// Wait until an execution has ended. The exit code is its outcome. Writes nothing.
    #[command(after_help = execution::WAIT)]
    Wait(WaitArgs),
    /// Show each change of an execution until it has ended. The exit code is its outcome. Writes nothing.
    #[command(after_help = execution::WATCH)]
    Watch(WaitArgs),
    /// Trace a pod or run back to its WorkflowExecution, and to the creator of the WorkflowExecution. Writes nothing.
    #[command(after_help = execution::TRACE)]
    Trace(TraceArgs),
    /// Show the settings in force, and where each value comes from. Writes nothing.
    #[command(after_help = checks::CONFIG)]
    Config(ConfigArgs),
    /// Check whether everything that the operator needs is installed and in order. Writes nothing.
    #[command(after_help = checks::DOCTOR)]
    Doctor(DoctorArgs),
    /// Write a report for the maintainers, without values of parameters. Writes nothing to the cluster.
    #[command(after_help = checks::REPORT)]
    Report(ReportArgs),
    /// Check files before you apply them: Pipelines, Tasks, WorkflowExecutions, WorkflowSchedules. Needs no cluster.
    #[command(after_help = checks::LINT)]
    Lint(LintArgs),
    /// Simulate the operator in virtual time: in a scenario from a file, without a cluster; or on a target of the
    /// cluster, from its present state. Writes nothing.
    #[command(after_help = play::SIMULATE)]
    Simulate(Box<SimulateArgs>),
    /// Pause a namespace: no execution starts in it, and none on a target in it. Running executions continue.
    #[command(after_help = pause::PAUSE)]
    Pause(PauseArgs),
    /// End the pause of a namespace.
    #[command(after_help = pause::RESUME)]
    Resume(ResumeArgs),
    /// Show WorkflowSchedules, explain when they run next and why, and control them.
    Schedule {
        /// The command to run.
        #[command(subcommand)]
        command: ScheduleCommand,
    },
    /// Write the script that completes commands, flags and names.
    #[command(after_help = completion::COMPLETION)]
    Completion(CompletionArgs),
}

/// The flags of `circuits`.
#[derive(Debug, Args)]
pub(crate) struct CircuitsArgs {
    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The flags that are kubectl's own.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file. Default: the files of KUBECONFIG, or ~/.kube/config.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig. Default: the current one.
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) context: Option<String>,

    /// The namespace of the WorkflowExecution. Default: the namespace of the context.
    #[arg(short, long, value_name = "NAMESPACE", global = true)]
    pub(crate) namespace: Option<String>,

    /// The user to act as. You need permission to impersonate.
    #[arg(long = "as", value_name = "USER", global = true)]
    pub(crate) as_user: Option<String>,

    /// A group of the user to act as, with --as. Repeat the flag for several groups.
    #[arg(long = "as-group", value_name = "GROUP", global = true, requires = "as_user")]
    pub(crate) as_groups: Vec<String>,
}

/// The flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A target (namespace/kind/name or kind/name), or the name of a WorkflowExecution.
    #[arg(value_name = "TARGET|NAME", required_unless_present = "file", conflicts_with = "file", value_parser = Subject::parse)]
    pub(crate) subject: Option<Subject>,

    /// A file with a WorkflowExecution (YAML or JSON), or - for standard input. The execution does not have to exist.
    #[arg(short, long, value_name = "FILE", conflicts_with = "workflow")]
    pub(crate) file: Option<PathBuf>,

    /// The workflow that would run on the target. Default: each workflow that ran there, and any other.
    #[arg(long, value_name = "WORKFLOW_ID")]
    pub(crate) workflow: Option<String>,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// The output formats of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// A table with more columns.
    Wide,
    /// One line for each object, with its kind and its name, as input for other commands.
    Name,
    /// One JSON object.
    Json,
    /// The same object in YAML.
    Yaml,
}

/// The output formats for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object.
    Json,
}

/// The flags of `clear`.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// The target (namespace/kind/name or kind/name).
    #[arg(value_name = "TARGET", value_parser = Subject::parse_target)]
    pub(crate) target: wfe_core::target::TargetName,

    /// The reason why the target is in order again. It is stored with your name.
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub(crate) reason: String,

    /// The workflow that would run on the target after the clearance. Default: each workflow that ran there, and any
    /// other.
    #[arg(long, value_name = "WORKFLOW_ID")]
    pub(crate) workflow: Option<String>,

    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "The operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// Checks a reason like the API server, before anything is shown and asked.
fn parse_reason(text: &str) -> Result<String, String> {
    parse_why(text, wfe_api::limits::CLEARANCE_REASON, "the target is in order again")
}

fn parse_why(text: &str, limit: u32, what: &str) -> Result<String, String> {
    match u32::try_from(text.chars().count()) {
        _ if text.trim().is_empty() => Err(format!("say why {what}")),
        Ok(length) if length <= limit => Ok(text.to_owned()),
        _ => Err(format!("must not be longer than {limit} characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parses(words: &[&str]) -> bool {
        Cli::try_parse_from(["kubectl-wfe"].iter().chain(words)).is_ok()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_schedule_is_named_or_is_in_a_file() {
        let parses = |words: &[&str]| parses(&[&["schedule"], words].concat());
        assert!(
            parses(&["explain", "nightly"]) && parses(&["explain", "-f", "nightly.yaml"]) && parses(&["list", "-A"])
        );
        assert!(!parses(&["explain"]) && !parses(&["explain", "nightly", "-f", "nightly.yaml"]));
        for command in ["run", "suspend", "resume"] {
            assert!(parses(&[command, "nightly"]) && !parses(&[command]), "{command}");
        }
        for command in ["run", "resume"] {
            assert!(parses(&[command, "nightly", "--reason", "why not"]), "{command}");
            assert!(!parses(&[command, "nightly", "--reason", " "]), "{command}");
        }
    }

    #[test]
    fn lint_takes_one_or_more_files() {
        assert!(
            parses(&["lint", "-f", "a.yaml", "-f", "-"]) && parses(&["lint", "-f", "a.yaml", "b.yaml", "--server"])
        );
        assert!(!parses(&["lint"]) && !parses(&["lint", "a.yaml"]));
    }

    #[test]
    fn explain_takes_one_subject() {
        assert!(parses(&["explain", "node/worker-1"]) && parses(&["explain", "-f", "wfe.yaml"]));
        assert!(!parses(&["explain"]) && !parses(&["explain", "node/worker-1", "-f", "wfe.yaml"]));
    }

    #[test]
    fn the_flags_of_kubectl_may_stand_before_and_behind_the_command() {
        let flags = ["--context", "c", "--kubeconfig", "k", "-n", "ns", "--as", "jo", "--as-group", "g"];
        assert!(parses(&[&["explain", "node/n"], &flags[..]].concat()));
        assert!(parses(&[&flags[..], &["explain", "node/n"]].concat()));
    }

    #[test]
    fn only_the_values_that_somebody_gives_override_those_in_force() {
        let overrides = |flags: &[&str]| {
            let words = ["kubectl-wfe", "explain", "node/n"].iter().chain(flags);
            let Command::Explain(args) = Cli::try_parse_from(words)?.command else { panic!("another command") };
            Ok::<_, clap::Error>(args.view.overrides.0)
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(overrides(&[]).unwrap(), []);
        assert_eq!(
            overrides(&["--paused", "true", "--cooldown-period=10m"]).unwrap(),
            [pair("cooldown-period", "10m"), pair("paused", "true")]
        );
        assert!(overrides(&["--cooldown-period=soon"]).is_err());
    }

    #[test]
    fn a_clearance_has_a_reason_that_the_api_server_takes() {
        let clears = |reason: &str| parses(&["clear", "node/n", "--reason", reason]);
        assert!(clears("disk replaced") && clears(&"ä".repeat(1024)));
        assert!(!clears("") && !clears(" ") && !clears(&"x".repeat(1025)) && !parses(&["clear", "node/n"]));
    }

    #[test]
    fn the_commands_about_one_execution_take_its_name() {
        for command in ["logs", "wait", "watch"] {
            for name in ["a", "wfe/a", "workflowexecution.kubernaut.ai/a"] {
                assert!(parses(&[command, name]), "{command} {name}");
            }
            assert!(!parses(&[command]) && !parses(&[command, "node/n"]) && !parses(&[command, "a", "b"]), "{command}");
        }
        assert!(parses(&["wait", "a", "--timeout", "1h30m"]) && !parses(&["wait", "a", "--timeout", "soon"]));
        assert!(
            parses(&["logs", "a", "-a", "--attempt", "2", "--tail", "5"]) && !parses(&["logs", "a", "--tail", "0"])
        );
        assert!(parses(&["logs", "a", "-f"]) && !parses(&["logs", "a", "-f", "-o", "json"]));
        assert!(parses(&["cancel", "a", "--reason", "why not"]) && !parses(&["cancel", "a"]));
        assert!(!parses(&["cancel", "a", "--reason", " "]));
        assert!(parses(&["trace", "pod/a"]) && !parses(&["trace", "a"]) && !parses(&["trace", "node/a"]));
    }
}
