//! The flags of `simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Format;

/// The longest play: a week.
const LONGEST: Duration = Duration::from_hours(168);

pub(super) const SIMULATE: &str = "\
Examples:
  kubectl wfe simulate config/scenarios/outage.yaml
  kubectl wfe simulate outage.yaml --until 1h -o json
  kubectl wfe simulate outage.yaml --compare max-consecutive-failures=3,5,8

Exit code: 0 at the end nothing needs a person; 1 something does; 2 an error.";

/// The flags of `simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A file with a scenario (YAML); - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// How long to play, in virtual time. Default: until all is quiet, at most 24h.
    #[arg(long, value_name = "DURATION", value_parser = parse_until)]
    pub(crate) until: Option<Duration>,

    /// Play once with each of these values of a key of the policy, and compare what comes of it.
    #[arg(long, value_name = "KEY=V1,V2", value_parser = parse_compare)]
    pub(crate) compare: Option<(String, Vec<String>)>,

    /// How to answer. Default: for people.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
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
