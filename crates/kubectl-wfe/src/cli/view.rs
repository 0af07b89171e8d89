//! The flags that name the operator, and the settings to assume in place of its own.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, FromArgMatches};
use wfe_settings::cli::PolicyArgs;

/// The operator, and settings to assume instead of its own.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The operator.
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,

    /// A file with the operator's ConfigMap (YAML), or - for standard input. It replaces the ConfigMap in the cluster.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// Values that override the settings in force.
    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

/// The heading of the policy flags, which only the long help shows.
const POLICY: &str = "Values in place of the settings in force";

/// The operator.
#[derive(Clone, Debug, Args)]
pub(crate) struct OperatorArgs {
    /// The namespace of the operator's own objects.
    #[arg(
        id = "operator-namespace",
        long,
        env = "WFE_OPERATOR_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = "kubernaut-system"
    )]
    pub(crate) namespace: String,

    /// The operator's Lease in --operator-namespace, which has the name of the Deployment. The leader publishes its
    /// settings in the Lease.
    #[arg(id = "operator", long, env = "WFE_OPERATOR", value_name = "NAME", default_value = "wfe-operator")]
    pub(crate) name: String,

    /// The only namespace whose WorkflowExecutions the operator watches. Default: what the leader publishes, else all
    /// namespaces.
    #[arg(long, env = "WFE_WATCH_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) watch_namespace: Option<String>,

    /// The namespace in which the operator creates all PipelineRuns. Default: what the leader publishes, else
    /// kubernaut-workflows.
    #[arg(long, env = "WFE_EXECUTION_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) execution_namespace: Option<String>,
}

impl OperatorArgs {
    /// Returns the settings of the operator itself, without others to assume.
    pub(crate) fn view(&self) -> ViewArgs {
        ViewArgs { operator: self.clone(), policy: None, overrides: Overrides::default() }
    }
}

/// The operator's policy flags that were given, as keys and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides(pub(crate) Vec<(String, String)>);

impl Overrides {
    fn flags() -> Vec<Arg> {
        let flags = PolicyArgs::augment_args(clap::Command::new("policy"));
        // The default is the setting in force, not the default of the operator's flag.
        let own = |flag: &Arg| flag.clone().default_value(None::<&str>).hide_short_help(true).help_heading(POLICY);
        flags.get_arguments().map(own).collect()
    }
}

impl Args for Overrides {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Self::flags())
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::flags().into_iter().filter_map(|flag| {
            let value = matches.get_raw(flag.get_id().as_str())?.next_back()?.to_string_lossy().into_owned();
            Some((flag.get_long()?.to_owned(), value))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
