//! Why an execution is decided on as it is: what each rule found, which numbers it compared, and when that changes.
//!
//! This is no second reading of the rules: it is what they said when they were asked for the decision. The status, the
//! event and the log line of a skip are the words of the rule that decided, so they cannot disagree.

use std::borrow::Cow;
use std::fmt::Write;

use crate::Time;
use crate::rules::Verdict;

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It says nothing, and the next rule is asked.
    Passes {
        /// What was compared.
        because: Cow<'static, str>,
        /// The first moment at which time alone makes it say something.
        until: Option<Time>,
    },
    /// It decides.
    Decides {
        /// What it says.
        verdict: Verdict,
        /// The first moment at which time alone makes it say nothing any more.
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

    /// Makes a finding of a rule that says nothing, whatever the time.
    pub(crate) fn passes(because: impl Into<Cow<'static, str>>) -> Self {
        Self::Passes { because: because.into(), until: None }
    }

    /// Returns the first moment at which time alone changes it.
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

/// The name of what decides when no rule does.
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

    /// Tells a person what each rule found, a line for each.
    #[must_use]
    pub fn explain(&self, target: &str) -> String {
        let mut text = String::new();
        for (rule, finding) in &self.asked {
            let said = match finding {
                Finding::Passes { because, .. } => because.to_string(),
                Finding::Decides { verdict, .. } => verdict.explain(target),
            };
            let until = finding.until().map_or(String::new(), |until| format!(" (until {})", shown(until)));
            let _ = writeln!(text, "{rule}: {said}{until}"); // a String takes all that is written to it
        }
        if self.rule() == OTHERWISE {
            let _ = write!(text, "{OTHERWISE}: {}", self.verdict.explain(target));
        }
        text.trim_end().to_owned()
    }
}

/// Shows a time to people, in whole seconds.
pub(crate) fn shown(time: Time) -> impl std::fmt::Display {
    time.format("%Y-%m-%dT%H:%M:%SZ")
}
