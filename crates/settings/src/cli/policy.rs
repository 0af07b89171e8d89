//! The flags that make up the policy.

use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use wfe_core::backoff::{Backoff, Thousandths};
use wfe_core::limit::Limits;
use wfe_core::policy::{CircuitPolicy, Policy, Scope, TriagePolicy};

use super::limits::parse_limits;
use super::parse_duration;

/// The workflows that an execution failure blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum ScopeArg {
    /// Every workflow on the target.
    Target,
    /// Only the same workflow on the target.
    Workflow,
}

/// The flags of a policy.
#[derive(Clone, Debug, Args)]
pub struct PolicyArgs {
    /// The workflows that are blocked on a target after an execution failed half way, until a person clears the target.
    #[arg(long, env = "WFE_PREVIOUS_EXECUTION_FAILED_SCOPE", value_name = "SCOPE", default_value = "Target")]
    pub previous_execution_failed_scope: ScopeArg,

    /// The number of failures in a row that exhaust a target, until a person clears the target. Only failures before
    /// anything ran count. 0: failures never exhaust a target.
    #[arg(long, env = "WFE_MAX_CONSECUTIVE_FAILURES", value_name = "NUMBER", default_value = "5", value_parser = parse_number)]
    pub max_consecutive_failures: u32,

    /// The backoff of a target after the first failure before anything ran (a Go duration). Each further such failure
    /// in a row doubles the backoff.
    #[arg(long, env = "WFE_BASE_COOLDOWN_PERIOD", value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    pub base_cooldown_period: Duration,

    /// The longest backoff of a target; not less than base-cooldown-period.
    #[arg(long, env = "WFE_MAX_COOLDOWN_PERIOD", value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub max_cooldown_period: Duration,

    /// The maximum number of times that the backoff doubles, 0 to 33.
    #[arg(long, env = "WFE_MAX_BACKOFF_EXPONENT", value_name = "NUMBER", default_value = "4", value_parser = parse_number)]
    pub max_backoff_exponent: u32,

    /// The maximum share of a backoff, 0 to 1, by which the operator lengthens the backoff. Targets that failed
    /// together then try again at different times.
    #[arg(long, env = "WFE_BACKOFF_JITTER", value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    pub backoff_jitter: Thousandths,

    /// The count of failures before anything ran returns to 0 after this time without such a failure. The time must not
    /// be less than the longest backoff with its jitter. 0: only a success or a clearance resets the count.
    #[arg(long, env = "WFE_FAILURE_QUIET_PERIOD", value_name = "DURATION", default_value = "0", value_parser = parse_duration_or_zero)]
    pub failure_quiet_period: Duration,

    /// The time after a success during which the same workflow does not run again on the target. 0: no cooldown.
    #[arg(long, env = "WFE_COOLDOWN_PERIOD", value_name = "DURATION", default_value = "5m", value_parser = parse_duration_or_zero)]
    pub cooldown_period: Duration,

    /// The number of different targets, 2 to 1000, that must fail with the same fingerprint to open a circuit. Only
    /// failures before anything ran count. Schedules that failed with this fingerprint then wait. 0: no circuit opens.
    #[arg(long, env = "WFE_OUTAGE_TARGETS", value_name = "NUMBER", default_value = "5", value_parser = parse_number)]
    pub outage_targets: u32,

    /// The time, up to 1h, within which the targets must fail to open a circuit.
    #[arg(long, env = "WFE_OUTAGE_WINDOW", value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub outage_window: Duration,

    /// Triages wait, for an hour at most, while at least this share (0 to 1) of the finished targets has only failures,
    /// for any reason. A target is finished if an execution on it ended within outage-window. 0: triages do not wait
    /// for this.
    #[arg(long, env = "WFE_BREAKER_THRESHOLD", value_name = "SHARE", default_value = "0.5", value_parser = parse_share)]
    pub breaker_threshold: Thousandths,

    /// The number of different targets, 2 to 10000, that must finish within outage-window before breaker-threshold
    /// applies.
    #[arg(long, env = "WFE_BREAKER_MINIMUM", value_name = "NUMBER", default_value = "20", value_parser = parse_number)]
    pub breaker_minimum: u32,

    /// The shortest time between the starts of two triages of the same schedule.
    #[arg(long, env = "WFE_TRIAGE_COOLDOWN", value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
    pub triage_cooldown: Duration,

    /// The maximum number of triages by a workflow, up to 1000, that begin within an hour for all schedules together.
    /// Namespaces take turns. 0: no triage begins, by any analyst.
    #[arg(long, env = "WFE_TRIAGE_MAX_PER_HOUR", value_name = "NUMBER", default_value = "10", value_parser = parse_number)]
    pub triage_max_per_hour: u32,

    /// A YAML list of at most 20 limits, such as {name: drains, kind: node, maxRunning: 3}. A limit allows work on at
    /// most maxRunning matching targets at the same time. The optional fields kind, workflowId and namespace (of the
    /// target) select what a limit matches. The oldest execution in the line of a limit is next.
    #[arg(long, env = "WFE_LIMITS", value_name = "LIST", default_value = "[]", value_parser = parse_limits)]
    pub limits: Limits,

    /// Whether the operator is paused. A paused operator starts nothing new, on any target. Runs that have begun
    /// continue. Undecided executions wait, and their status says why.
    #[arg(long, env = "WFE_PAUSED", value_name = "true|false", default_value = "false", action = ArgAction::Set, hide_possible_values = true)]
    pub paused: bool,
}

impl PolicyArgs {
    /// Sets the fields of a policy that these flags set. The other fields come from `base`.
    pub(super) fn apply_to(&self, base: &Policy) -> Policy {
        Policy {
            previous_execution_failed_scope: match self.previous_execution_failed_scope {
                ScopeArg::Target => Scope::Target,
                ScopeArg::Workflow => Scope::Workflow,
            },
            max_consecutive_failures: self.max_consecutive_failures,
            backoff: Backoff {
                jitter: self.backoff_jitter,
                ..Backoff::doubling(self.base_cooldown_period, self.max_cooldown_period, self.max_backoff_exponent)
            },
            failure_quiet_period: Some(self.failure_quiet_period).filter(|quiet| !quiet.is_zero()),
            cooldown_period: self.cooldown_period,
            circuits: CircuitPolicy {
                outage_targets: self.outage_targets,
                outage_window: self.outage_window,
                breaker_threshold: self.breaker_threshold,
                breaker_minimum: self.breaker_minimum,
            },
            triage: TriagePolicy { cooldown: self.triage_cooldown, max_per_hour: self.triage_max_per_hour },
            limits: self.limits.clone(),
            paused_by: self.paused.then(|| "the flag --paused (WFE_PAUSED)".into()),
            ..base.clone()
        }
    }
}

pub(super) fn parse_duration_or_zero(text: &str) -> Result<Duration, String> {
    match wfe_core::duration::parse(text) {
        Ok(Duration::ZERO) => Ok(Duration::ZERO),
        _ => parse_duration(text),
    }
}

fn parse_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("is not a whole number from 0 to {}", u32::MAX))
}

fn parse_share(text: &str) -> Result<Thousandths, String> {
    let share: f64 = text.parse().map_err(|_| "is not a number such as 0.25".to_owned())?;
    Thousandths::share(share).ok_or_else(|| "must be between 0 and 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn policy(flags: &[&str]) -> Result<Policy, String> {
        let words = ["wfe-operator", "run"].iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(words).map_err(|error| error.to_string())?.command else {
            return Err("another command".to_owned());
        };
        args.policy().map_err(|error| error.to_string())
    }

    #[test]
    fn without_flags_the_policy_is_that_of_the_specification() {
        assert_eq!(policy(&[]), Ok(Policy::default()));
    }

    #[test]
    fn each_flag_changes_its_value() {
        let changed = policy(&[
            "--previous-execution-failed-scope=Workflow",
            "--max-consecutive-failures=0",
            "--base-cooldown-period=2s",
            "--max-cooldown-period=9s",
            "--max-backoff-exponent=7",
            "--backoff-jitter=0.25",
            "--failure-quiet-period=1h",
            "--cooldown-period=0",
            "--outage-targets=0",
            "--outage-window=1h",
            "--breaker-threshold=0",
            "--breaker-minimum=2",
            "--triage-cooldown=1s",
            "--triage-max-per-hour=0",
            "--limits=[{name: all, maxRunning: 7}]",
            "--paused=true",
        ]);
        let backoff = Backoff {
            jitter: Thousandths(250),
            ..Backoff::doubling(Duration::from_secs(2), Duration::from_secs(9), 7)
        };
        let expected = Policy {
            previous_execution_failed_scope: Scope::Workflow,
            max_consecutive_failures: 0,
            backoff,
            failure_quiet_period: Some(Duration::from_hours(1)),
            cooldown_period: Duration::ZERO,
            circuits: CircuitPolicy {
                outage_targets: 0,
                outage_window: Duration::from_hours(1),
                breaker_threshold: Thousandths::ZERO,
                breaker_minimum: 2,
            },
            triage: TriagePolicy { cooldown: Duration::from_secs(1), max_per_hour: 0 },
            limits: parse_limits("[{name: all, maxRunning: 7}]").unwrap(),
            paused_by: Some("the flag --paused (WFE_PAUSED)".into()),
            ..Policy::default()
        };
        assert_eq!(changed, Ok(expected));
    }

    #[test]
    fn bad_values_and_contradictions_are_refused_with_the_name_of_the_flag() {
        for (flags, named) in [
            (&["--backoff-jitter=1.1"][..], "--backoff-jitter"),
            (&["--backoff-jitter=NaN"], "--backoff-jitter"),
            (&["--max-consecutive-failures=-1"], "--max-consecutive-failures"),
            (&["--previous-execution-failed-scope=Cluster"], "--previous-execution-failed-scope"),
            (&["--cooldown-period=10ms"], "--cooldown-period"),
            (&["--paused=yes"], "--paused"),
            (&["--base-cooldown-period=0"], "--base-cooldown-period"),
            (&["--max-cooldown-period=30s"], "max-cooldown-period: must not be less than base-cooldown-period"),
            (&["--max-backoff-exponent=34"], "max-backoff-exponent"),
            (&["--failure-quiet-period=1m"], "failure-quiet-period"),
            (&["--outage-targets=1"], "outage-targets: must be between 2 and 1000"),
            (&["--outage-window=2h"], "outage-window"),
            (&["--breaker-threshold=2"], "--breaker-threshold"),
            (&["--breaker-minimum=1"], "breaker-minimum"),
            (&["--triage-max-per-hour=1001"], "triage-max-per-hour"),
            (&["--limits=[{name: all}]"], "--limits"),
        ] {
            let error = policy(flags).unwrap_err();
            assert!(error.contains(named), "{flags:?}: {error}");
        }
    }
}
