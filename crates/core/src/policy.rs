//! The configuration of decisions: values only, independent of their source.

use std::time::Duration;

use crate::backoff::{Backoff, Thousandths};
use crate::limit::Limits;

/// The policy of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time-out of a workflow whose spec sets none.
    pub default_timeout: Duration,
    /// How long a run may take to be created, and then to start (section 5.8).
    pub start_deadline: Duration,
    /// How long a target may drain before the operator announces it (section 5.6).
    pub drain_deadline: Duration,
    /// How long a finished run is kept (section 5.3).
    pub retention: Duration,
    /// How long a terminal execution is kept if it sets no time to live of its own (section 3.1). `None`: for ever.
    pub ttl: Option<Duration>,
    /// The scope of the block after an execution failure (section 6, rule 2).
    pub previous_execution_failed_scope: Scope,
    /// How many pre-execution failures in a row exhaust a target (section 6, rule 3); 0: no number does.
    pub max_consecutive_failures: u32,
    /// How long a target rests after pre-execution failures (section 7).
    pub backoff: Backoff,
    /// After how long without a pre-execution failure the counter starts again at zero (section 7). `None`: only a
    /// success or a clearance resets it.
    pub failure_quiet_period: Option<Duration>,
    /// How long after a success the same workflow does not run again on the target (section 6, rule 5). Zero: there is
    /// no cooldown.
    pub cooldown_period: Duration,
    /// When a failure counts as shared by many targets (section 13.5).
    pub circuits: CircuitPolicy,
    /// How often failing schedules are analysed (section 13.2).
    pub triage: TriagePolicy,
    /// How many targets are worked on at once (section 18).
    pub limits: Limits,
    /// The object that pauses everything (section 14), as messages name it. `None`: nothing does.
    pub paused_by: Option<Box<str>>,
}

/// When a failure counts as shared by many targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitPolicy {
    /// How many targets must fail with one fingerprint; 0: no number opens a circuit.
    pub outage_targets: u32,
    /// The time within which the targets must fail.
    pub outage_window: Duration,
    /// The share of the finished targets that must fail to delay triage; 0: no share does.
    pub breaker_threshold: Thousandths,
    /// How many targets must finish before the share is considered.
    pub breaker_minimum: u32,
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self {
            outage_targets: 5,
            outage_window: Duration::from_mins(5),
            breaker_threshold: Thousandths(500),
            breaker_minimum: 20,
        }
    }
}

/// How often failing schedules are analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriagePolicy {
    /// How long after one triage of a schedule another may begin.
    pub cooldown: Duration,
    /// How many triages of all schedules may begin within an hour; 0: none.
    pub max_per_hour: u32,
}

impl Default for TriagePolicy {
    fn default() -> Self {
        Self { cooldown: Duration::from_hours(24), max_per_hour: 10 }
    }
}

/// The executions that an execution failure blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every execution on the target: its state is unknown.
    #[default]
    Target,
    /// Executions of the same workflow.
    Workflow,
}

impl Default for Policy {
    /// The defaults of sections 6, 7 and 14.
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_mins(30),
            start_deadline: Duration::from_mins(5),
            drain_deadline: Duration::from_mins(10),
            retention: Duration::from_hours(24),
            ttl: None,
            previous_execution_failed_scope: Scope::Target,
            max_consecutive_failures: 5,
            backoff: Backoff::doubling(Duration::from_mins(1), Duration::from_mins(10), 4),
            failure_quiet_period: None,
            cooldown_period: Duration::from_mins(5),
            circuits: CircuitPolicy::default(),
            triage: TriagePolicy::default(),
            limits: Limits::default(),
            paused_by: None,
        }
    }
}

/// A contradiction in a policy. `flag` is the key in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag}: {why}")]
pub struct PolicyError {
    /// The key at fault.
    pub flag: &'static str,
    /// What is wrong with the value of the key.
    pub why: &'static str,
}

/// The highest useful exponent: one second, doubled 33 times, is longer than the longest Go duration (292 years are
/// less than 2^34 seconds).
const MAX_EXPONENT: u32 = 33;

/// The highest number of targets that a circuit can be configured to need. It limits what is counted for each
/// fingerprint.
const MOST_OUTAGE_TARGETS: u32 = 1000;

/// The longest configurable window in which targets fail together. It limits how long failures are kept.
const LONGEST_OUTAGE_WINDOW: Duration = Duration::from_hours(1);

/// The highest number of finished targets that the share of failures can be configured to need: half of the ends that
/// are kept.
const MOST_BREAKER_MINIMUM: u32 = 10_000;

/// The most triages within an hour: more than anybody reads, and each one may run a pipeline.
const MOST_TRIAGES: u32 = 1000;

/// A requirement on every policy: the flag at fault, whether the policy meets it, and what is wrong if it does not.
type Demand = (&'static str, fn(&Policy) -> bool, &'static str);

/// The requirements on every policy.
const DEMANDS: &[Demand] = &[
    ("default-timeout", |it| is_seconds(it.default_timeout), "must be at least 1s"),
    ("start-deadline", |it| is_seconds(it.start_deadline), "must be at least 1s"),
    ("drain-deadline", |it| is_seconds(it.drain_deadline), "must be at least 1s"),
    ("base-cooldown-period", |it| is_seconds(it.backoff.base), "must be at least 1s"),
    ("max-cooldown-period", |it| it.backoff.max >= it.backoff.base, "must not be less than base-cooldown-period"),
    ("max-backoff-exponent", |it| it.backoff.max_exponent <= MAX_EXPONENT, "must be at most 33"),
    ("backoff-jitter", |it| it.backoff.jitter <= Thousandths::ONE, "must be between 0 and 1"),
    (
        "failure-quiet-period",
        // Otherwise the counter is reset while the target still backs off from the failures that were counted.
        |it| it.failure_quiet_period.is_none_or(|quiet| quiet >= longest_wait(&it.backoff)),
        "must not be less than max-cooldown-period with its jitter; 0 turns it off",
    ),
    (
        "outage-targets",
        // A failure of one target alone is not shared: it would open the circuit of all targets with the same workflow.
        |it| it.circuits.outage_targets == 0 || (2..=MOST_OUTAGE_TARGETS).contains(&it.circuits.outage_targets),
        "must be between 2 and 1000; 0 turns it off",
    ),
    (
        "outage-window",
        |it| is_seconds(it.circuits.outage_window) && it.circuits.outage_window <= LONGEST_OUTAGE_WINDOW,
        "must be between 1s and 1h",
    ),
    ("breaker-threshold", |it| it.circuits.breaker_threshold <= Thousandths::ONE, "must be between 0 and 1"),
    (
        "breaker-minimum",
        |it| (2..=MOST_BREAKER_MINIMUM).contains(&it.circuits.breaker_minimum),
        "must be between 2 and 10000",
    ),
    ("triage-cooldown", |it| is_seconds(it.triage.cooldown), "must be at least 1s"),
    ("triage-max-per-hour", |it| it.triage.max_per_hour <= MOST_TRIAGES, "must be at most 1000"),
];

impl Policy {
    /// Checks that no value contradicts another one.
    pub fn validate(&self) -> Result<(), PolicyError> {
        self.contradictions().next().map_or(Ok(()), Err)
    }

    /// Returns all contradictions between the values, one by one.
    pub fn contradictions(&self) -> impl Iterator<Item = PolicyError> {
        DEMANDS.iter().filter(|(_, holds, _)| !holds(self)).map(|(flag, _, why)| PolicyError { flag, why })
    }
}

/// Returns whether a duration is at least the one second that statuses can hold.
fn is_seconds(duration: Duration) -> bool {
    duration >= Duration::from_secs(1)
}

/// Returns the longest wait of a backoff: jitter adds at most the whole wait.
fn longest_wait(backoff: &Backoff) -> Duration {
    let added = backoff.max.as_millis().saturating_mul(u128::from(backoff.jitter.0)) / 1000;
    backoff.max.saturating_add(Duration::from_millis(u64::try_from(added).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_specification_and_hold_together() {
        let policy = Policy::default();
        assert_eq!(policy.validate(), Ok(()));
        let waits: Vec<_> = (1..=5).map(|n| policy.backoff.after(n)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10].map(Duration::from_mins));
        assert_eq!((policy.max_consecutive_failures, policy.cooldown_period), (5, Duration::from_mins(5)));
    }

    #[test]
    fn a_contradiction_is_refused_with_the_name_of_the_flag() {
        let seconds = Duration::from_secs;
        let backoff = Policy::default().backoff;
        let with = |backoff: Backoff| Policy { backoff, ..Policy::default() };
        let open = CircuitPolicy::default();
        let circuits = |circuits| Policy { circuits, ..Policy::default() };
        let triage = |triage| Policy { triage, ..Policy::default() };
        let quiet = |quiet, backoff| Policy { failure_quiet_period: Some(quiet), backoff, ..Policy::default() };
        for (policy, flag) in [
            (with(Backoff { base: seconds(0), ..backoff }), Some("base-cooldown-period")),
            (with(Backoff { max: seconds(59), ..backoff }), Some("max-cooldown-period")),
            (with(Backoff { max: seconds(60), ..backoff }), None),
            (with(Backoff { max_exponent: 33, ..backoff }), None),
            (with(Backoff { max_exponent: 34, ..backoff }), Some("max-backoff-exponent")),
            (with(Backoff { jitter: Thousandths(1000), ..backoff }), None),
            (with(Backoff { jitter: Thousandths(1001), ..backoff }), Some("backoff-jitter")),
            (quiet(seconds(600), backoff), None),
            (quiet(seconds(599), backoff), Some("failure-quiet-period")),
            (quiet(seconds(659), Backoff { jitter: Thousandths(100), ..backoff }), Some("failure-quiet-period")),
            (quiet(seconds(660), Backoff { jitter: Thousandths(100), ..backoff }), None),
            (Policy { start_deadline: seconds(0), ..Policy::default() }, Some("start-deadline")),
            (circuits(CircuitPolicy { outage_targets: 1, ..open }), Some("outage-targets")),
            (circuits(CircuitPolicy { outage_targets: 1001, ..open }), Some("outage-targets")),
            (circuits(CircuitPolicy { outage_targets: 0, breaker_threshold: Thousandths::ZERO, ..open }), None),
            (circuits(CircuitPolicy { outage_window: seconds(0), ..open }), Some("outage-window")),
            (circuits(CircuitPolicy { outage_window: seconds(3601), ..open }), Some("outage-window")),
            (circuits(CircuitPolicy { breaker_threshold: Thousandths(1001), ..open }), Some("breaker-threshold")),
            (circuits(CircuitPolicy { breaker_minimum: 1, ..open }), Some("breaker-minimum")),
            (triage(TriagePolicy { cooldown: seconds(0), max_per_hour: 0 }), Some("triage-cooldown")),
            (triage(TriagePolicy { cooldown: seconds(1), max_per_hour: 1001 }), Some("triage-max-per-hour")),
            (Policy { cooldown_period: seconds(0), max_consecutive_failures: 0, ..Policy::default() }, None),
        ] {
            assert_eq!(policy.validate().err().map(|error| error.flag), flag, "{policy:?}");
        }
    }
}
