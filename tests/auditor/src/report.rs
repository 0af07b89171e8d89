//! The auditor's report: counts, violations, gaps in the recording, and what could not be judged.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use wfe_api::{FailureReason, SkipReason};

/// The result of [`audit`](crate::audit).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use = "violations are only reported"]
pub struct Report {
    /// How many times each thing happened.
    pub counts: Counts,
    /// The violations, sorted by invariant and then by time.
    pub violations: Vec<Violation>,
    /// Gaps in the recording. If there are any, the rest of the report proves nothing.
    pub gaps: Vec<String>,
    /// What could not be judged from this recording.
    pub unjudged: Vec<String>,
}

/// One broken invariant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    /// The number of the invariant in section 16 of the specification.
    pub invariant: u8,
    /// The name of the rule that was broken. Each invariant has a fixed set of rules.
    pub rule: &'static str,
    /// The target in canonical form, or as far as it is known.
    pub target: String,
    /// The objects involved. The offender comes first.
    pub objects: Vec<ObjectRef>,
    /// When each part happened. The offence comes first.
    pub at: Vec<When>,
    /// What happened, in one sentence.
    pub text: String,
}

/// A reference to an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObjectRef {
    /// Such as `PipelineRun`.
    pub kind: String,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object; empty if it is unknown.
    pub uid: String,
}

/// A moment: a position in the order of all changes, and the time at which the recorder saw the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment {
    /// The version, which orders all changes.
    pub resource_version: u64,
    /// Milliseconds since the recording began.
    pub at_ms: u64,
}

/// When something happened: at a recorded change, or at a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum When {
    /// A recorded change.
    Change(Moment),
    /// A request in the audit log.
    Request {
        /// When the request arrived (RFC 3339).
        received_at: String,
        /// The resourceVersion in the answer.
        resource_version: Option<u64>,
    },
}

/// How many times each thing happened, by name. All known names are present, with 0 if the thing did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, u64>);

/// A count that a recording must reach to be meaningful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name of a count.
    pub name: String,
    /// The smallest allowed value.
    pub at_least: u64,
}

/// The counts that are not named after a reason, with their meanings.
pub(crate) const COUNTS: &[(&str, &str)] = &[
    ("executions", "WorkflowExecutions that were created"),
    ("ran", "executions that got their turn: they committed to a run"),
    ("waited-for-place", "executions that waited for a place of a limit"),
    ("completed", "executions that ended Completed"),
    ("failed", "executions that ended Failed, for whatever reason"),
    ("failed-early", "executions that ended Failed of which nothing ran"),
    ("skipped", "executions that ended Skipped, for whatever reason"),
    ("abandoned", "executions that were deleted while they were Running"),
    ("created", "runs that were created"),
    ("runs", "runs that were released"),
    ("withdrawn", "pending runs that were deleted while their owner was undecided"),
    ("leftovers", "pending runs that were deleted when their owner no longer needed them"),
    ("cancelled", "runs that somebody asked Tekton to cancel or stop"),
    ("turns-on-record", "turns that rules 2 to 5 were asked about on a history that was not empty"),
    ("turns-after-clearance", "turns on a history of which a clearance covered something"),
    ("recoveries", "turns past an execution failure, by recoveryOf"),
    ("raced-turns", "turns that something forbade which came after the view that they rest on"),
    ("by-rule-2", "skips that rule 2 explains, previous execution failed"),
    ("by-rule-3", "skips that rule 3 explains, exhausted retries"),
    ("by-rule-4", "skips that rule 4 explains, backoff"),
    ("by-rule-5", "skips that rule 5 explains, cooldown"),
    ("attempts", "further attempts that were begun, by a retry policy"),
    ("ended-waiting", "executions that ended while they waited for their next attempt"),
    ("children", "executions that schedules made"),
    ("outcomes", "outcomes that schedules recorded"),
    ("failures-of-schedules", "outcomes of those that count as failures"),
    ("holds", "times that a schedule began to be held"),
    ("plans", "plans of schedules that began, or began anew"),
    ("triages", "triages of schedules that began"),
    ("analysts", "executions that triages made"),
    ("verdicts", "verdicts that triages recorded"),
    ("counters", "statuses whose counter was judged, with failures in a row"),
];

// === impl Report ===

impl Report {
    /// Returns whether the recording is complete and no invariant is broken.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.gaps.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            match COUNTS.iter().find(|(word, _)| *word == name) {
                Some((_, what)) => writeln!(f, "{name:<24}{count:>8}  {what}")?,
                None => writeln!(f, "{name:<24}{count:>8}")?,
            }
        }
        for what in &self.unjudged {
            writeln!(f, "not judged: {what}")?;
        }
        for gap in &self.gaps {
            writeln!(f, "incomplete: {gap}")?;
        }
        for violation in &self.violations {
            write!(f, "{violation}")?;
        }
        match self.violations.len() {
            0 => writeln!(f, "no violation"),
            1 => writeln!(f, "1 violation"),
            n => writeln!(f, "{n} violations"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "VIOLATION of invariant {} ({}) on {}: {}", self.invariant, self.rule, self.target, self.text)?;
        for object in &self.objects {
            writeln!(f, "    {object} uid {}", object.uid)?;
        }
        for when in &self.at {
            writeln!(f, "    at {when}")?;
        }
        Ok(())
    }
}

impl ObjectRef {
    /// Returns whether the object has this namespace/name.
    pub(crate) fn is_named(&self, full: &str) -> bool {
        full.split_once('/') == Some((self.namespace.as_str(), self.name.as_str()))
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(Moment { resource_version, at_ms }) => {
                write!(f, "resourceVersion {resource_version}, {}.{:03} s", at_ms / 1000, at_ms % 1000)
            }
            Self::Request { received_at, resource_version: Some(version) } => {
                write!(f, "resourceVersion {version}, request of {received_at}")
            }
            Self::Request { received_at, resource_version: None } => write!(f, "request of {received_at}"),
        }
    }
}

impl From<Moment> for When {
    fn from(moment: Moment) -> Self {
        Self::Change(moment)
    }
}

// === impl Counts ===

impl Counts {
    pub(crate) fn zero() -> Self {
        let reasons = SkipReason::ALL.iter().map(|reason| reason.as_str());
        let failures = FailureReason::ALL.iter().map(|reason| reason.as_str());
        let names = COUNTS.iter().map(|(name, _)| *name).chain(reasons).chain(failures);
        Self(names.map(|name| (name.to_owned(), 0)).collect())
    }

    pub(crate) fn add(&mut self, name: &str) {
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    /// Returns the count with this name, which is a fixed name, a skip reason or a failure reason.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Lists all counts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// Returns the requirements that are not met.
    #[must_use]
    pub fn unmet<'a>(&self, requirements: &'a [Requirement]) -> Vec<&'a Requirement> {
        requirements.iter().filter(|one| self.of(&one.name) < one.at_least).collect()
    }
}

// === impl Requirement ===

impl std::str::FromStr for Requirement {
    type Err = String;

    /// Parses `name=number`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, at_least) = text.split_once('=').ok_or_else(|| format!("'{text}' is not NAME=NUMBER"))?;
        let counts = Counts::zero();
        if !counts.0.contains_key(name) {
            let names: Vec<&str> = counts.iter().map(|(name, _)| name).collect();
            return Err(format!("there is no count '{name}'; there are {}", names.join(", ")));
        }
        let at_least = at_least.parse().map_err(|_| format!("'{at_least}' is not a number"))?;
        Ok(Self { name: name.to_owned(), at_least })
    }
}
