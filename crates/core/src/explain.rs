//! Explains a decision: what each rule found, which values it compared, and when the finding changes.
//!
//! The explanation is recorded while the rules decide; nothing is judged a second time. The status, the event and the
//! log line of a skip use the text of the rule that decided, so they always agree.

use std::borrow::Cow;
use std::fmt;

use crate::Time;
use crate::moment::shown;
use crate::verdict::Verdict;

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The rule does not match, and the next rule is applied.
    Passes {
        /// What was compared.
        because: Cow<'static, str>,
        /// The first moment at which the rule matches by time alone.
        until: Option<Time>,
    },
    /// The rule decides.
    Decides {
        /// The verdict.
        verdict: Verdict,
        /// The first moment at which the rule stops matching by time alone.
        until: Option<Time>,
    },
}

impl Finding {
    /// Creates a finding that does not change with time.
    pub(crate) fn of(verdict: Option<Verdict>, passes: &'static str) -> Self {
        match verdict {
            Some(verdict) => Self::Decides { verdict, until: None },
            None => Self::passes(passes),
        }
    }

    /// Creates a finding of a rule that never matches, whatever the time.
    pub(crate) fn passes(because: impl Into<Cow<'static, str>>) -> Self {
        Self::Passes { because: because.into(), until: None }
    }

    /// Returns when time alone changes the verdict.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        match self {
            Self::Passes { until, .. } | Self::Decides { until, .. } => *until,
        }
    }
}

/// How one execution was judged: the rules that were applied, in order, up to the one that decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What was decided.
    pub verdict: Verdict,
    /// The names of the rules that were applied, with their findings. The last one decided, unless none did.
    pub asked: Vec<(&'static str, Finding)>,
}

/// The name that is shown if no rule decided.
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

    /// Returns the finding of each rule as text, in order; the last rule decided.
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

    /// Returns the findings of all rules as text, one line for each rule.
    #[must_use]
    pub fn explain(&self, target: &str) -> String {
        self.told(target).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

/// The finding of a rule, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The name of the rule.
    pub rule: &'static str,
    /// What the rule compared, or what it decided.
    pub text: String,
    /// The first moment at which time alone changes the finding.
    pub until: Option<Time>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)?;
        self.until.map_or(Ok(()), |until| write!(f, " (until {})", shown(until)))
    }
}
