//! Explains a decision: what each rule found, which numbers it compared, and when that changes.
//!
//! The explanation is recorded while the rules decide; it does not judge a second time. The status, the event and the
//! log line of a skip are the words of the rule that decided, so they cannot disagree.

use std::borrow::Cow;
use std::fmt;

use crate::Time;
use crate::moment::shown;
use crate::verdict::Verdict;

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It does not match, and the next rule is asked.
    Passes {
        /// What was compared.
        because: Cow<'static, str>,
        /// The first moment at which it matches by time alone.
        until: Option<Time>,
    },
    /// It decides.
    Decides {
        /// The verdict.
        verdict: Verdict,
        /// The first moment at which it stops matching by time alone.
        until: Option<Time>,
    },
}

impl Finding {
    /// Makes a finding that time does not change.
    pub(crate) fn of(verdict: Option<Verdict>, passes: &'static str) -> Self {
        match verdict {
            Some(verdict) => Self::Decides { verdict, until: None },
            None => Self::passes(passes),
        }
    }

    /// Makes a finding of a rule that does not match, at any time.
    pub(crate) fn passes(because: impl Into<Cow<'static, str>>) -> Self {
        Self::Passes { because: because.into(), until: None }
    }

    /// Returns when the verdict changes without any event.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        match self {
            Self::Passes { until, .. } | Self::Decides { until, .. } => *until,
        }
    }
}

/// How one execution was judged: the rules that were asked, in order, up to the one that decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What was decided.
    pub verdict: Verdict,
    /// The rules that were asked, by name, with what they found. The last one decided, unless none did.
    pub asked: Vec<(&'static str, Finding)>,
}

/// The name shown when no rule decided.
pub const OTHERWISE: &str = "6 otherwise";

impl Judgement {
    /// Returns the name of the rule that decided.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.asked.last() {
            Some((rule, Finding::Decides { .. })) => rule,
            _ => OTHERWISE,
        }
    }

    /// Returns the first moment at which time alone changes the judgement.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        self.asked.iter().filter_map(|(_, finding)| finding.until()).min()
    }

    /// Returns what each rule found, in order; the last one decided.
    #[must_use]
    pub fn told(&self, target: &str) -> Vec<Told> {
        let told = |(rule, finding): &(&'static str, Finding)| {
            let text = match finding {
                Finding::Passes { because, .. } => because.to_string(),
                Finding::Decides { verdict, .. } => verdict.explain(target),
            };
            Told { rule, text, until: finding.until() }
        };
        let mut all: Vec<Told> = self.asked.iter().map(told).collect();
        if self.rule() == OTHERWISE {
            all.push(Told { rule: OTHERWISE, text: self.verdict.explain(target), until: None });
        }
        all
    }

    /// Returns what each rule found as text, a line for each.
    #[must_use]
    pub fn explain(&self, target: &str) -> String {
        self.told(target).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

/// What a rule found, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its name.
    pub rule: &'static str,
    /// What it compared, or what it decided.
    pub text: String,
    /// The first moment at which time alone changes that.
    pub until: Option<Time>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)?;
        self.until.map_or(Ok(()), |until| write!(f, " (until {})", shown(until)))
    }
}
