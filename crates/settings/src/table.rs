//! The table of settings: the facts about each key that the definition of its flag does not contain.
//!
//! Each flag, its variable, default, help text and parser are defined once, in `cli`. From the table and `cli`, `make
//! generate` writes every list of keys in the repository (with the program `settings`).

/// The only key that is read just once, at the start: two execution namespaces would mean two locks.
pub const EXECUTION_NAMESPACE: &str = "execution-namespace";

/// The key whose values are longest.
pub const LIMITS: &str = "limits";

/// Every key of the `ConfigMap`, in the order in which lists show them.
pub const TABLE: &[Row] = &[
    Row::new("base-cooldown-period", Kind::Duration),
    Row::new("max-cooldown-period", Kind::Duration),
    Row::new("max-backoff-exponent", Kind::Number { min: 0, max: 33 }),
    Row::new("backoff-jitter", Kind::Share),
    Row::new("max-consecutive-failures", Kind::Number { min: 0, max: u32::MAX }),
    Row::new("failure-quiet-period", Kind::DurationOrOff),
    Row::new("cooldown-period", Kind::DurationOrOff),
    Row::new("previous-execution-failed-scope", Kind::Choice),
    Row::new("paused", Kind::Boolean),
    Row::new(EXECUTION_NAMESPACE, Kind::ObjectName).with(Effect::AtRestart),
    Row::new("service-account", Kind::ObjectName),
    Row::new("default-timeout", Kind::Duration),
    Row::new("start-deadline", Kind::Duration),
    Row::new("drain-deadline", Kind::Duration),
    Row::new("pipelinerun-retention", Kind::Duration),
    Row::new("ttl-after-finished", Kind::DurationOrOff),
    Row::new("log-level", Kind::LogFilter),
    Row::new("outage-targets", Kind::Number { min: 0, max: 1000 }),
    Row::new("outage-window", Kind::Duration),
    Row::new("breaker-threshold", Kind::Share),
    Row::new("breaker-minimum", Kind::Number { min: 2, max: 10_000 }),
    Row::new("triage-cooldown", Kind::Duration),
    Row::new("triage-max-per-hour", Kind::Number { min: 0, max: 1000 }),
    Row::new(LIMITS, Kind::Limits),
];

/// One key of the `ConfigMap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key: the name of its flag without the leading dashes.
    pub key: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// When a change takes effect.
    pub effect: Effect,
}

/// The kind of the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A duration that is not 0.
    Duration,
    /// A duration, or 0.
    DurationOrOff,
    /// A whole number.
    Number {
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
    },
    /// A number from 0 to 1.
    Share,
    /// `true` or `false`.
    Boolean,
    /// One of the values that the flag lists.
    Choice,
    /// A log level or filter.
    LogFilter,
    /// A list of limits for how many targets are worked on at the same time.
    Limits,
    /// The name of an object. The chart creates the object and has its own value for the name, so the chart has no such
    /// key.
    ObjectName,
}

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At the next decision.
    AtOnce,
    /// At the next start of the operator.
    AtRestart,
}

impl Row {
    const fn new(key: &'static str, kind: Kind) -> Self {
        Self { key, kind, effect: Effect::AtOnce }
    }

    const fn with(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
}

/// Returns the keys, each of which is a flag.
pub fn keys() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.key)
}

#[cfg(test)]
mod tests;
