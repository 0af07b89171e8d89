//! Triage of a schedule that keeps failing (sections 13.2 to 13.4): an analyst examines its last failures once, and the
//! verdict is applied within fixed limits.
//!
//! An analyst is a table in this crate ([`builtin`]) or a workflow. Both return a [`Judgement`]. Only [`apply`] gives a
//! judgement an effect: it changes the status of one schedule and nothing else. This module does not handle JSON:
//! evidence and judgements are values.

pub mod apply;
pub mod builtin;
mod evidence;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::moment::{MAX_AHEAD, after};
use crate::name::{ExecutionId, Uid};
use crate::words::words;

pub use evidence::{Every, Evidence, FailureSeen, Gathered, MOST_FAILURES};

/// The longest explanation of an analyst that a status can hold, in characters.
pub const WHY: usize = 1_000;
/// The longest advice, in characters.
pub const FIX: usize = 4_000;
/// The longest value of a parameter, in characters, as in the API.
pub const PARAMETER_VALUE: usize = 8_192;
/// The longest total of all parameter keys and values of one execution, in characters, as in the CRD.
pub const PARAMETERS_SIZE: usize = 65_536;
/// How many refused requests of an analyst are recorded.
pub const REFUSED: usize = 16;

words! {
    /// Names the analyst of a schedule's failures.
    #[derive(Default)]
    pub enum Analyst {
        /// There is no triage.
        Off,
        /// The analyst is a table in the operator.
        #[default]
        BuiltIn,
        /// The analyst is a workflow.
        Pipeline,
    }
}

/// The triage settings of a schedule (`spec.triage`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriageSpec {
    /// The analyst.
    pub analyst: Analyst,
    /// The number of failures in a row that starts a triage.
    pub after: u32,
    /// The time-out of the analyst's workflow.
    pub timeout: Duration,
    /// The fields that a verdict may change, without parameters that the template does not have.
    pub allow_adjust: Vec<Field>,
    /// The time-out of the template, if a verdict may change it; no verdict shortens it. `None`: the default applies.
    pub template_timeout: Option<Duration>,
    /// The longest total of the parameter values in a verdict, in characters. It keeps the execution within the limit
    /// of the API, whichever values of the template are replaced.
    pub room: usize,
}

impl Default for TriageSpec {
    fn default() -> Self {
        Self {
            analyst: Analyst::BuiltIn,
            after: 3,
            timeout: Duration::from_mins(10),
            allow_adjust: Vec::new(),
            template_timeout: None,
            room: PARAMETERS_SIZE,
        }
    }
}

/// A field that a verdict may change if its schedule allows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// The interval.
    Interval,
    /// The time-out of the executions.
    Timeout,
    /// One parameter of the executions.
    Parameter(Box<str>),
}

impl Field {
    /// Reads the spelling of `spec.triage.allowAdjust`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "interval" => Some(Self::Interval),
            "timeout" => Some(Self::Timeout),
            _ => text.strip_prefix("parameters.").filter(|key| !key.is_empty()).map(|key| Self::Parameter(key.into())),
        }
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interval => f.write_str("interval"),
            Self::Timeout => f.write_str("timeout"),
            Self::Parameter(key) => write!(f, "parameters.{key}"),
        }
    }
}

words! {
    /// Names the recommendation of an analyst.
    pub enum Verdict {
        /// Do nothing: the backoff is enough.
        DoNothing,
        /// A person must repair something.
        FileFix,
        /// Nothing more should run until a person has examined the failures.
        PauseAndNotify,
        /// The schedule should have another interval, timeout or parameter.
        AdjustConfig,
    }
}

/// The judgement of an analyst, read and limited in size, but not yet checked against what it may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The recommendation.
    pub verdict: Verdict,
    /// The reason, for people.
    pub why: Box<str>,
    /// What a person can do.
    pub fix: Option<Box<str>>,
    /// The requested values, with [`Verdict::AdjustConfig`].
    pub adjust: Wanted,
}

/// The values that an analyst requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Another interval, as written.
    pub interval: Option<Box<str>>,
    /// Another time-out, as written.
    pub timeout: Option<Box<str>>,
    /// Other values of parameters.
    pub parameters: BTreeMap<Box<str>, Box<str>>,
}

/// The values that replace those of the spec (`status.adjust`), until the plan begins anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjust {
    /// Replaces `spec.interval`.
    pub interval: Option<Duration>,
    /// Replaces the time-out of the template.
    pub timeout: Option<Duration>,
    /// Replaces values of parameters of the template.
    pub parameters: BTreeMap<Box<str>, Box<str>>,
}

words! {
    /// Names the state of a triage.
    pub enum State {
        /// The analyst has not answered yet.
        Analysing,
        /// The verdict is recorded, and changes nothing.
        Noted,
        /// The verdict is recorded, and a person must repair something.
        Filed,
        /// There is no usable verdict.
        Failed,
        /// The schedule is paused until a person resumes it.
        Paused,
        /// The adjusted values apply until a person ends them.
        Adjusted,
        /// The plan has begun anew: neither a pause nor adjusted values are left.
        Over,
    }
}

impl State {
    /// Returns whether a person can end the effect of the triage (`spec.resume`).
    #[must_use]
    pub fn is_standing(self) -> bool {
        matches!(self, Self::Paused | Self::Adjusted)
    }
}

/// The record of the latest triage of a schedule (`status.triage`).
#[derive(Clone, Debug, PartialEq)]
pub struct Triage {
    /// The name of the failed child that the triage is about, which also identifies the triage.
    pub of: Box<str>,
    /// When the triage began.
    pub at: Time,
    /// The analyst.
    pub analyst: Analyst,
    /// The execution that analyses the failures, once it was seen.
    pub run: Option<(Arc<str>, Uid)>,
    /// The common fingerprint of the failures, if they have one.
    pub fingerprint: Option<Fingerprint>,
    /// The digest of the evidence, in hexadecimal digits.
    pub evidence: Option<Box<str>>,
    /// The recommendation of the analyst.
    pub verdict: Option<Verdict>,
    /// The reason for the recommendation, or why there is none.
    pub why: Option<Box<str>>,
    /// What a person can do.
    pub fix: Option<Box<str>>,
    /// The requests of the analyst that were refused, with the reason.
    pub refused: Vec<Box<str>>,
    /// The state of the triage.
    pub state: State,
}

/// The execution that analyses the failures of a schedule, as the schedule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalystRun {
    /// The execution.
    pub id: ExecutionId,
    /// The slot of the child that the triage is about.
    pub of: Time,
    /// The state of the execution.
    pub state: AnalystState,
}

/// The state of an analyst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnalystState {
    /// The analyst has not ended.
    AtWork,
    /// The analyst completed, so its verdict can be read.
    Completed,
    /// The analyst ended without a verdict; contains how it ended, in one word of the API.
    Ended(&'static str),
}

/// Why no triage begins although a schedule keeps failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suppressed {
    /// The last triage began too recently.
    Cooldown,
    /// Other targets fail with the same fingerprint, and its circuit holds the schedule.
    CircuitOpen,
    /// Too large a share of all targets fails, so the fault is not only in this schedule.
    Degraded,
    /// Too many triages began within the hour.
    TooMany,
}

impl Suppressed {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Cooldown, Self::CircuitOpen, Self::Degraded, Self::TooMany];

    /// Returns the label for metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cooldown => "Cooldown",
            Self::CircuitOpen => "CircuitOpen",
            Self::Degraded => "Degraded",
            Self::TooMany => "TooMany",
        }
    }
}

/// The triages of other schedules in the cluster that began within the last hour, earliest first. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun(Arc<[Began]>);

/// One triage of another schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Began {
    /// When the triage began.
    pub at: Time,
    /// Whether the other schedule is in the same namespace.
    pub beside: bool,
}

/// The window in which triages are counted (section 13.2).
pub const HOUR: Duration = Duration::from_hours(1);

impl Begun {
    /// Keeps the triages that began within the hour before now. A time far in the future comes from a wrong clock, and
    /// is ignored because it would count for too long.
    #[must_use]
    pub fn within_the_hour(others: impl IntoIterator<Item = Began>, now: Time) -> Self {
        let is_recent = |it: &Began| after(it.at, HOUR) > now && it.at <= after(now, MAX_AHEAD);
        let mut others: Vec<Began> = others.into_iter().filter(is_recent).collect();
        others.sort_unstable();
        Self(others.into())
    }

    /// Returns when the schedule's namespace may begin another triage, with this hourly limit; `None` if it may now. A
    /// namespace may begin a triage while more of the limit is free than the namespace has used. No namespace can
    /// therefore use up the limit (section 13.2). Not applicable to a limit of 0, with which no triage begins.
    #[must_use]
    pub fn free_at(&self, most: u32) -> Option<Time> {
        let mut taken = 0_u32;
        let too_many = self.0.iter().rev().find(|it| {
            taken = taken.saturating_add(if it.beside { 2 } else { 1 });
            taken >= most
        });
        too_many.map(|it| after(it.at, HOUR))
    }
}

#[cfg(test)]
mod tests;
