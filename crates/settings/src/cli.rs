//! The command line. Every flag has an environment variable and says its default.

// Doc comments here are the text of `--help`, where backticks would be noise.
#![allow(clippy::doc_markdown)]

mod lease;
mod limits;
mod metrics;
mod policy;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use wfe_core::policy::{Policy, PolicyError};

use crate::log::{LogFormat, parse_level};

pub use lease::LeaseArgs;
pub use metrics::MetricsArgs;
pub use policy::{PolicyArgs, ScopeArg};

/// Runs WorkflowExecutions as Tekton PipelineRuns, at most one at a time on each target, and explains every decision.
#[derive(Debug, Parser)]
#[command(name = "wfe-operator", version, propagate_version = true)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the binary.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator for the cluster of KUBECONFIG, or for the cluster of its own pod.
    Run(Box<RunArgs>),
    /// Print the settings in force, and the source of each value: the default, an environment variable, a flag or the
    /// ConfigMap. A later source in this list wins. Report every invalid value, and fail if there is one. Accepts the
    /// flags of run.
    Config(Box<ConfigArgs>),
    /// Print the CustomResourceDefinitions as YAML, for `kubectl apply -f -`.
    Crd,
}

/// The flags of `config`.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    /// A file with the ConfigMap (YAML), or - for standard input. The ConfigMap in the cluster is then not read.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// The flags of the operator.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The one namespace whose WorkflowExecutions the operator watches. Default: all namespaces.
    #[arg(long, env = "WFE_WATCH_NAMESPACE", value_name = "NAMESPACE")]
    pub watch_namespace: Option<String>,

    /// The namespace of the operator's own objects.
    #[arg(long, env = "WFE_NAMESPACE", value_name = "NAMESPACE", default_value = "kubernaut-system", value_parser = parse_namespace)]
    pub namespace: String,

    /// The ConfigMap in the operator's namespace. A key is the name of a flag without its leading dashes, and overrides
    /// the flag. The ConfigMap may be absent. A change applies without a restart, except to execution-namespace.
    #[arg(long, env = "WFE_CONFIG_MAP", value_name = "NAME", default_value = "workflowexecution-config", value_parser = parse_name)]
    pub config_map: String,

    /// The namespace in which the operator creates all PipelineRuns. Operators that share this namespace exclude each
    /// other on a target; operators with different execution namespaces do not.
    #[arg(long, env = "WFE_EXECUTION_NAMESPACE", value_name = "NAMESPACE", default_value = "kubernaut-workflows", value_parser = parse_namespace)]
    pub execution_namespace: String,

    /// The service account of a workflow's pods, in the execution namespace, if the WorkflowExecution names none.
    #[arg(long, env = "WFE_SERVICE_ACCOUNT", value_name = "NAME", default_value = "kubernaut-workflow-runner", value_parser = parse_name)]
    pub service_account: String,

    /// The time limit of a run, if the WorkflowExecution sets none (a Go duration, 1s to 24h).
    #[arg(long, env = "WFE_DEFAULT_TIMEOUT", value_name = "DURATION", default_value = "30m", value_parser = parse_timeout)]
    pub default_timeout: Duration,

    /// The time limit for creating a PipelineRun, and again for its start, before the execution fails (a Go duration).
    #[arg(long, env = "WFE_START_DEADLINE", value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub start_deadline: Duration,

    /// How long a target may drain before a Warning event reports it. A target drains while tasks and pods of an ended
    /// run are still stopping.
    #[arg(long, env = "WFE_DRAIN_DEADLINE", value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub drain_deadline: Duration,

    /// How long a finished PipelineRun is kept, with its logs.
    #[arg(long, env = "WFE_PIPELINERUN_RETENTION", value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
    pub pipelinerun_retention: Duration,

    /// How long a finished WorkflowExecution is kept, if its spec sets no time (a Go duration). It is kept longer while
    /// decisions on its target depend on it, or while it is the newest there. 0: such an execution is never removed.
    #[arg(long, env = "WFE_TTL_AFTER_FINISHED", value_name = "DURATION", default_value = "0", value_parser = policy::parse_duration_or_zero)]
    pub ttl_after_finished: Duration,

    /// When the history of a target keeps an execution from running.
    #[command(flatten)]
    pub policy: PolicyArgs,

    /// How long a watch may be silent. After that the operator decides nothing that depends on the watch, and starts
    /// the watch again.
    #[arg(long, env = "WFE_MAX_STALENESS", value_name = "DURATION", default_value = "3m", value_parser = parse_duration)]
    pub max_staleness: Duration,

    /// How often the operator checks that the shipped admission policies are in the cluster and unchanged. 0: never.
    #[arg(long, env = "WFE_POLICY_CHECK_INTERVAL", value_name = "DURATION", default_value = "1m", value_parser = policy::parse_duration_or_zero)]
    pub policy_check_interval: Duration,

    /// Leader election among several replicas.
    #[command(flatten)]
    pub lease: LeaseArgs,

    /// Where metrics are served, and to whom.
    #[command(flatten)]
    pub metrics: MetricsArgs,

    /// The address of the probes: /healthz (alive) and /readyz (caches synced, watches working). /configz shows the
    /// settings in force.
    #[arg(long, env = "WFE_HEALTH_ADDRESS", value_name = "IP:PORT", default_value = "0.0.0.0:8081")]
    pub health_address: SocketAddr,

    /// The format of log lines.
    #[arg(long, env = "WFE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// The log level: error, warn, info, debug or trace, or a filter such as warn,wfe_operator=debug.
    #[arg(long, env = "WFE_LOG_LEVEL", value_name = "LEVEL", default_value = "info", value_parser = parse_level)]
    pub log_level: String,
}

impl RunArgs {
    /// Combines the flags into the policy of decisions.
    ///
    /// # Errors
    /// Which flag contradicts another one.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        let policy = self.unchecked_policy();
        policy.validate()?;
        Ok(policy)
    }

    /// Like [`RunArgs::policy`], without checks: the caller reports all faults.
    pub(crate) fn unchecked_policy(&self) -> Policy {
        self.policy.apply_to(&Policy {
            default_timeout: self.default_timeout,
            start_deadline: self.start_deadline,
            drain_deadline: self.drain_deadline,
            retention: self.pipelinerun_retention,
            ttl: Some(self.ttl_after_finished).filter(|ttl| !ttl.is_zero()),
            ..Policy::default()
        })
    }
}

/// The shortest duration other than 0 that a flag accepts, because statuses hold whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);

fn parse_namespace(text: &str) -> Result<String, String> {
    if wfe_api::is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("is not the name of a namespace (1 to 63 of a-z, 0-9 and -)".to_owned())
    }
}

/// The length limit for the names of most kinds of objects.
const LONGEST_NAME: usize = 253;

fn parse_name(text: &str) -> Result<String, String> {
    if text.len() <= LONGEST_NAME && text.split('.').all(wfe_api::is_dns_label) {
        Ok(text.to_owned())
    } else {
        Err("is not the name of an object (1 to 253 of a-z, 0-9, - and .)".to_owned())
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = wfe_core::duration::parse(text).map_err(|error| error.to_string())?;
    if duration >= SHORTEST { Ok(duration) } else { Err("must be at least 1s".to_owned()) }
}

/// The bounds of the CRD for the time-out of a spec.
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let timeout = wfe_core::duration::parse(text).map_err(|error| error.to_string())?;
    if TIMEOUTS.contains(&timeout) { Ok(timeout) } else { Err("must be between 1s and 24h".to_owned()) }
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
    fn every_flag_of_run_has_an_environment_variable_and_a_help_text() {
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        for flag in run.get_arguments().filter(|flag| !matches!(flag.get_id().as_str(), "help" | "version")) {
            assert!(flag.get_env().is_some(), "{} has no environment variable", flag.get_id());
            assert!(flag.get_help().is_some(), "{} has no help", flag.get_id());
        }
    }

    #[test]
    fn replicas_elect_a_leader_unless_they_are_told_not_to() {
        for (flags, elects) in [
            (&[][..], true),
            (&["--leader-elect"], true),
            (&["--leader-elect=true"], true),
            (&["--leader-elect=false"], false),
            (&["--leader-elect", "false"], false),
        ] {
            let cli = Cli::try_parse_from(["wfe-operator", "run"].iter().chain(flags)).unwrap();
            let Command::Run(args) = cli.command else { panic!("{flags:?}") };
            assert_eq!(args.lease.leader_elect, elects, "{flags:?}");
        }
    }

    #[test]
    fn bad_values_are_refused_with_the_name_of_the_flag() {
        for (flag, value) in [
            ("--namespace", ""),
            ("--execution-namespace", "a.b"),
            ("--service-account", "run/ner"),
            ("--config-map", "Upper"),
            ("--default-timeout", "0s"),
            ("--default-timeout", "25h"),
            ("--default-timeout", "99999999999999999999h"),
            ("--start-deadline", "0s"),
            ("--pipelinerun-retention", "0"),
            ("--max-staleness", "soon"),
            ("--leader-elect", "perhaps"),
            ("--lease-duration", "0s"),
            ("--lease-name", "Not_A_Name"),
            ("--identity", "two words"),
            ("--identity", ""),
            ("--metrics-address", "nowhere"),
            ("--log-level", "wfe_operator=loud"),
            ("--log-level", ""),
        ] {
            let error = Cli::try_parse_from(["wfe-operator", "run", flag, value]).unwrap_err().to_string();
            assert!(error.contains(flag), "{error}");
        }
    }
}
