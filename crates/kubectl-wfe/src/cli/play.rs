//! The flags of `simulate`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wfe_core::target::TargetName;

use super::{PageFormat, ViewArgs};
use crate::subject::Subject;

/// The longest play: a week.
const LONGEST: Duration = Duration::from_hours(168);

pub(super) const SIMULATE: &str = "\
Examples:
  kubectl wfe simulate config/scenarios/outage.yaml
  kubectl wfe simulate outage.yaml --until 1h -o html > outage.html
  kubectl wfe simulate outage.yaml --compare max-consecutive-failures=3,5,8
  kubectl wfe simulate --from-cluster node/worker-1 --if cleared
  kubectl wfe simulate --from-cluster node/worker-1 --if 'workflow disk-cleanup fails' --until 1h

Exit code: 0 at the end nothing needs a person; 1 something does; 2 an error.";

/// The flags of `simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A file with a scenario (YAML); - for standard input.
    #[arg(value_name = "FILE", required_unless_present = "from_cluster", conflicts_with = "from_cluster")]
    pub(crate) file: Option<PathBuf>,

    /// Begin with the present state of this target in the cluster (namespace/kind/name or kind/name).
    #[arg(long, value_name = "TARGET", value_parser = Subject::parse_target)]
    pub(crate) from_cluster: Option<TargetName>,

    /// What to suppose: nothing, cleared, 'workflow NAME completes' or 'workflow NAME fails'. Default: nothing.
    #[arg(long = "if", value_name = "CONDITION", requires = "from_cluster", value_parser = Condition::parse)]
    pub(crate) condition: Option<Condition>,

    /// How long to play, in virtual time, up to 168h. Default: until all is quiet, at most 24h; with --from-cluster,
    /// 24h.
    #[arg(long, value_name = "DURATION", value_parser = parse_until)]
    pub(crate) until: Option<Duration>,

    /// Play once with each of these values of a key of the policy, and compare the results.
    #[arg(long, value_name = "KEY=V1,V2", value_parser = parse_compare, conflicts_with = "from_cluster")]
    pub(crate) compare: Option<(String, Vec<String>)>,

    /// The output format. Default: text for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<PageFormat>,

    /// The operator and its settings.
    #[command(flatten, next_help_heading = "With --from-cluster: the operator and its settings")]
    pub(crate) view: ViewArgs,
}

/// What `--if` supposes about a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No person does anything.
    Nothing,
    /// A person clears the target now.
    Cleared,
    /// Each run of this workflow that ends from now on completes.
    Completes(String),
    /// Each run of this workflow that ends from now on fails half way.
    Fails(String),
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match &*text.split_whitespace().collect::<Vec<_>>() {
            ["nothing"] => Ok(Self::Nothing),
            ["cleared"] => Ok(Self::Cleared),
            ["workflow", name, "completes"] => Ok(Self::Completes((*name).to_owned())),
            ["workflow", name, "fails"] => Ok(Self::Fails((*name).to_owned())),
            _ => Err("write nothing, cleared, 'workflow NAME completes' or 'workflow NAME fails'".to_owned()),
        }
    }

    /// Describes it, for people.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Nothing => "no person does anything".to_owned(),
            Self::Cleared => "a person clears it now".to_owned(),
            Self::Completes(name) => format!("each run of {name} completes"),
            Self::Fails(name) => format!("each run of {name} fails"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Cleared => f.write_str("cleared"),
            Self::Completes(name) => write!(f, "workflow {name} completes"),
            Self::Fails(name) => write!(f, "workflow {name} fails"),
        }
    }
}

/// Parses `KEY=V1,V2` of `--compare`.
fn parse_compare(text: &str) -> Result<(String, Vec<String>), String> {
    let (key, values) = text.split_once('=').ok_or("write KEY=VALUE,VALUE, as in cooldown-period=1m,5m")?;
    Ok((key.to_owned(), values.split(',').map(str::to_owned).collect()))
}

/// Parses the duration of `--until`.
fn parse_until(text: &str) -> Result<Duration, String> {
    let until = wfe_core::duration::parse(text).map_err(|error| format!("it {error}"))?;
    if until > LONGEST { Err("it must be at most 168h".to_owned()) } else { Ok(until) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_as_it_is_read() {
        for text in ["nothing", "cleared", "workflow scale completes", "workflow scale fails"] {
            assert_eq!(Condition::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "clear", "workflow fails", "workflow a b fails"] {
            assert!(Condition::parse(text).is_err_and(|error| error.starts_with("write nothing, cleared")), "{text}");
        }
    }
}
