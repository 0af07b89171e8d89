//! Triage of a schedule that keeps failing (section 13.2 to 13.4): an analyst examines its last failures once, and its
//! verdict is applied within closed rights.
//!
//! An analyst is a table in this crate ([`builtin`]), or a workflow. Both give a [`Judgement`], and only [`apply`]
//! gives it an effect: it changes the status of one schedule and nothing else. This module knows no JSON: evidence goes
//! out and judgements come in as values.

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

/// The longest explanation of an analyst, in characters. A status holds it.
pub const WHY: usize = 1_000;
/// The longest advice, in characters.
pub const FIX: usize = 4_000;
/// The longest value of a parameter, in characters, as the API has it.
pub const PARAMETER_VALUE: usize = 8_192;
/// How long all parameter keys and values of one execution may be together, in characters, as in the CRD.
pub const PARAMETERS_SIZE: usize = 65_536;
/// How many refused requests of an analyst are recorded.
pub const REFUSED: usize = 16;

words! {
    /// Says who looks at the failures of a schedule.
    #[derive(Default)]
    pub enum Analyst {
        /// Nobody does.
        Off,
        /// A table in the operator.
        #[default]
        BuiltIn,
        /// A workflow.
        Pipeline,
    }
}

/// The triage settings of a schedule (`spec.triage`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriageSpec {
    /// Who analyses.
    pub analyst: Analyst,
    /// After how many failures in a row.
    pub after: u32,
    /// How long a pipeline may take.
    pub timeout: Duration,
    /// What a verdict may change. Parameters that the template does not have are left out.
    pub allow_adjust: Vec<Field>,
    /// The time-out of the template, if a verdict may change it: no verdict makes it shorter. None: the default.
    pub template_timeout: Option<Duration>,
    /// How long the parameter values of a verdict can be together, in characters, so that the execution stays within
    /// the limit of the API, whichever values of the template they replace.
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
    /// Says what an analyst recommends.
    pub enum Verdict {
        /// Nothing: the backoff is the cure.
        DoNothing,
        /// A person has to mend something.
        FileFix,
        /// Nothing more should run until a person has looked.
        PauseAndNotify,
        /// The schedule should have another interval, timeout or parameter.
        AdjustConfig,
    }
}

/// The answer of an analyst: read and bounded, and not yet checked against its rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What it recommends.
    pub verdict: Verdict,
    /// Why, for people.
    pub why: Box<str>,
    /// What a person can do.
    pub fix: Option<Box<str>>,
    /// The values that it requests, with [`Verdict::AdjustConfig`].
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
    /// Replace values of parameters of the template.
    pub parameters: BTreeMap<Box<str>, Box<str>>,
}

words! {
    /// Says how far a triage is.
    pub enum State {
        /// The analyst has not answered yet.
        Analysing,
        /// The verdict is recorded, and changes nothing.
        Noted,
        /// The verdict is recorded, and a person has something to mend.
        Filed,
        /// There is no usable verdict.
        Failed,
        /// Nothing runs until a person ends it.
        Paused,
        /// The adjustments are in force until a person ends them.
        Adjusted,
        /// The plan has begun anew since: neither a pause nor adjustments are left.
        Over,
    }
}

impl State {
    /// Returns whether a person can end it (`spec.resume`).
    #[must_use]
    pub fn is_standing(self) -> bool {
        matches!(self, Self::Paused | Self::Adjusted)
    }
}

/// The record of the latest triage of a schedule (`status.triage`).
#[derive(Clone, Debug, PartialEq)]
pub struct Triage {
    /// The name of the failed child that it is about: the name of this triage, too.
    pub of: Box<str>,
    /// When it began.
    pub at: Time,
    /// Who analyses.
    pub analyst: Analyst,
    /// The execution that analyses, once it was seen.
    pub run: Option<(Arc<str>, Uid)>,
    /// The common fingerprint of the failures, if they have one.
    pub fingerprint: Option<Fingerprint>,
    /// The digest of the evidence, in hexadecimal digits.
    pub evidence: Option<Box<str>>,
    /// What the analyst recommends.
    pub verdict: Option<Verdict>,
    /// Why, or why there is no verdict.
    pub why: Option<Box<str>>,
    /// What a person can do.
    pub fix: Option<Box<str>>,
    /// The requests of the analyst that were refused, with the reason.
    pub refused: Vec<Box<str>>,
    /// How far it is.
    pub state: State,
}

/// The execution that analyses the failures of a schedule, as the schedule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalystRun {
    /// Which execution.
    pub id: ExecutionId,
    /// The slot of the child that it is about.
    pub of: Time,
    /// Its state.
    pub state: AnalystState,
}

/// The state of an analyst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnalystState {
    /// It has not ended.
    AtWork,
    /// It completed: its verdict can be read.
    Completed,
    /// It ended without a verdict; how, in one word of the API.
    Ended(&'static str),
}

/// Why no triage begins, though a schedule keeps failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suppressed {
    /// The last one began too short a time ago.
    Cooldown,
    /// Other targets fail with it, too: the circuit paces the schedule.
    CircuitOpen,
    /// Too large a share of all targets fails, so the fault is not this schedule's alone.
    Degraded,
    /// Too many began within the hour.
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

/// The triages of other schedules in the whole cluster that began within the last hour, the earliest first. Cheap to
/// clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun(Arc<[Began]>);

/// One triage of another schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Began {
    /// When it began.
    pub at: Time,
    /// Whether the other schedule is in the same namespace.
    pub beside: bool,
}

/// The window in which triages are counted (section 13.2).
pub const HOUR: Duration = Duration::from_hours(1);

impl Begun {
    /// Keeps the triages that began within the hour before now. One that lies far in the future comes from a wrong
    /// clock, and would count for as long.
    #[must_use]
    pub fn within_the_hour(others: impl IntoIterator<Item = Began>, now: Time) -> Self {
        let is_recent = |it: &Began| after(it.at, HOUR) > now && it.at <= after(now, MAX_AHEAD);
        let mut others: Vec<Began> = others.into_iter().filter(is_recent).collect();
        others.sort_unstable();
        Self(others.into())
    }

    /// Returns when its namespace may begin another triage, with this limit for an hour: none if it may now. Namespaces
    /// take turns: each may while more places of the hour are free than it has used, so that no namespace takes the
    /// last ones from all others (section 13.2). It does not apply to a limit of 0, with which no triage begins.
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
