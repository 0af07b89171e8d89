//! The policy in force during a recording: the numbers for rules 2 to 5 of section 6, the counter of section 7, and the
//! triages of section 13. Its flags and their defaults are the operator's.

use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, ValueEnum};
use serde::Deserialize;

/// The policy of all operators of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Policy {
    /// What a workflow that failed half way blocks.
    #[arg(long, value_name = "SCOPE", default_value = "Target")]
    pub previous_execution_failed_scope: Scope,

    /// How many failures in a row before anything ran exhausted a target. 0: no number did.
    #[arg(long, value_name = "NUMBER", default_value = "5")]
    pub max_consecutive_failures: u32,

    /// How long a target was left alone after the first such failure (a Go duration).
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub base_cooldown_period: Duration,

    /// The longest time that a target was left alone.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub max_cooldown_period: Duration,

    /// How many times that wait doubled at the most.
    #[arg(long, value_name = "NUMBER", default_value = "4")]
    pub max_backoff_exponent: u32,

    /// By how much the wait may have been lengthened, in thousandths; on the command line as a share from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = thousandths)]
    pub backoff_jitter: u32,

    /// How much time without such a failure ended the row. 0: no time did.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = duration)]
    pub failure_quiet_period: Duration,

    /// How long after a success the same workflow did not run again on the target. 0: at once.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub cooldown_period: Duration,

    /// The least time between the beginnings of two triages of one schedule.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub triage_cooldown: Duration,

    /// How many triages may have begun within an hour.
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    pub triage_max_per_hour: u32,

    /// How many targets one leader may have worked on at once, as a JSON list of limits.
    #[arg(long, value_name = "LIST", default_value = "[]", value_parser = limits)]
    pub limits: Limits,
}

/// Limits of how many targets are worked on at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Limits(pub Vec<Limit>);

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// The kind of the target, in canonical form.
    #[serde(default)]
    pub kind: Option<String>,
    /// The workflow.
    #[serde(default)]
    pub workflow_id: Option<String>,
    /// The namespace of the target.
    #[serde(default)]
    pub namespace: Option<String>,
    /// How many targets.
    pub max_running: u32,
}

/// What an execution failure blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Scope {
    /// Every workflow on the target.
    Target,
    /// The same workflow on the target.
    Workflow,
}

/// The flags on their own, without a command.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Flags {
    #[command(flatten)]
    policy: Policy,
}

impl Policy {
    /// Reads the policy from an operator's flags. Other flags are ignored.
    ///
    /// # Errors
    /// Returns the name of the flag whose value cannot be read.
    pub fn of_flags<'f>(flags: impl IntoIterator<Item = (&'f str, &'f str)>) -> Result<Self, String> {
        let command = Flags::command();
        let is_known = |flag: &str| command.get_arguments().any(|known| known.get_long() == flag.strip_prefix("--"));
        let words = flags.into_iter().filter(|(flag, _)| is_known(flag)).map(|(flag, value)| format!("{flag}={value}"));
        Flags::try_parse_from(words).map(|flags| flags.policy).map_err(|error| error.to_string())
    }
}

impl Default for Policy {
    /// Returns the defaults of sections 6, 7, 13 and 14.
    fn default() -> Self {
        Self {
            previous_execution_failed_scope: Scope::Target,
            max_consecutive_failures: 5,
            base_cooldown_period: Duration::from_mins(1),
            max_cooldown_period: Duration::from_mins(10),
            max_backoff_exponent: 4,
            backoff_jitter: 0,
            failure_quiet_period: Duration::ZERO,
            cooldown_period: Duration::from_mins(5),
            triage_cooldown: Duration::from_hours(24),
            triage_max_per_hour: 10,
            limits: Limits::default(),
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    wfe_core::duration::parse(text).map_err(|error| error.to_string())
}

fn limits(text: &str) -> Result<Limits, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn thousandths(text: &str) -> Result<u32, String> {
    let share: f64 = text.parse().map_err(|_| "is not a number such as 0.25".to_owned())?;
    // A float is cast to the nearest whole number that fits; this one does.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let thousandths = (share * 1000.0).round() as u32;
    if (0.0..=1.0).contains(&share) { Ok(thousandths) } else { Err("must be between 0 and 1".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_flags_it_is_that_of_the_specification() {
        assert_eq!(Policy::of_flags([]), Ok(Policy::default()));
    }

    #[test]
    fn each_flag_of_an_operator_changes_its_value_and_others_are_passed_over() {
        let flags = [
            ("--previous-execution-failed-scope", "Workflow"),
            ("--max-consecutive-failures", "0"),
            ("--base-cooldown-period", "2s"),
            ("--max-cooldown-period", "9s"),
            ("--max-backoff-exponent", "7"),
            ("--backoff-jitter", "0.25"),
            ("--failure-quiet-period", "1h"),
            ("--cooldown-period", "0"),
            ("--triage-cooldown", "1h"),
            ("--triage-max-per-hour", "4"),
            ("--limits", r#"[{"name": "drains", "kind": "node", "maxRunning": 3}]"#),
            ("--log-level", "debug"),
        ];
        let expected = Policy {
            previous_execution_failed_scope: Scope::Workflow,
            max_consecutive_failures: 0,
            base_cooldown_period: Duration::from_secs(2),
            max_cooldown_period: Duration::from_secs(9),
            max_backoff_exponent: 7,
            backoff_jitter: 250,
            failure_quiet_period: Duration::from_hours(1),
            cooldown_period: Duration::ZERO,
            triage_cooldown: Duration::from_hours(1),
            triage_max_per_hour: 4,
            limits: Limits(vec![Limit {
                name: "drains".to_owned(),
                kind: Some("node".to_owned()),
                workflow_id: None,
                namespace: None,
                max_running: 3,
            }]),
        };
        assert_eq!(Policy::of_flags(flags), Ok(expected));
        assert!(Policy::of_flags([("--cooldown-period", "soon")]).unwrap_err().contains("--cooldown-period"));
    }
}
