//! The claims about the protocol (section 16, for claims that concern a single target).

use std::fmt;

/// A claim that a search can refute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// At any moment, at most one run is released and unfinished.
    OneAtATime,
    /// No run is released while something is left of another run.
    Drained,
    /// Each attempt has at most one released run, and there are no more attempts than allowed.
    OneRunEach,
    /// No other execution's run is released between an execution's first release and its end, unless a user has deleted
    /// its run.
    Held,
    /// An execution whose status says that nothing ran never had a released run.
    NothingRan,
    /// The run in a skip held the target at some moment after the skipped execution was created.
    TrueSkip,
    /// The fact in a skip is true when the skip is decided.
    FreshSkip,
    /// A terminal phase is final.
    Final,
    /// A run is released only if its execution has committed to it.
    Committed,
    /// An execution commits only to its own runs.
    Own,
    /// A deleted run is pending, or is finished and its owner is terminal or gone. The owner of a cancelled run is
    /// gone, or its cancellation is requested.
    Kept,
    /// An execution that has committed to a run ends after that run.
    AfterItsRun,
    /// An execution fails because its run is gone only if a user has deleted the run.
    NotLost,
    /// When no further step is possible, every execution is terminal and no run is unfinished. Every sequence of steps
    /// reaches such a state, because the steps form no cycle.
    Ends,
}

impl Claim {
    /// All claims.
    pub const ALL: [Self; 14] = [
        Self::OneAtATime,
        Self::Drained,
        Self::OneRunEach,
        Self::Held,
        Self::NothingRan,
        Self::TrueSkip,
        Self::FreshSkip,
        Self::Final,
        Self::Committed,
        Self::Own,
        Self::Kept,
        Self::AfterItsRun,
        Self::NotLost,
        Self::Ends,
    ];

    /// Returns a short description of the claim.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneAtATime => "one run at a time",
            Self::Drained => "nothing runs while another run drains",
            Self::OneRunEach => "one released run per attempt",
            Self::Held => "the target is held from the first run to the end",
            Self::NothingRan => "what says it never ran never ran",
            Self::TrueSkip => "a skip names a true fact",
            Self::FreshSkip => "a skip names a fact that holds",
            Self::Final => "a terminal phase is final",
            Self::Committed => "only a committed run is released",
            Self::Own => "an execution commits to its own run",
            Self::Kept => "what is needed is kept",
            Self::AfterItsRun => "an execution ends after its run",
            Self::NotLost => "no execution loses its run to the operators",
            Self::Ends => "every execution ends",
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claims(u16);

impl Claims {
    /// Returns all claims.
    #[must_use]
    pub fn all() -> Self {
        Self::of(&Claim::ALL)
    }

    /// Returns a set of these claims.
    #[must_use]
    pub fn of(claims: &[Claim]) -> Self {
        Self(claims.iter().fold(0, |all, claim| all | 1 << *claim as u16))
    }

    /// Returns whether the set contains a claim.
    #[must_use]
    pub fn has(self, claim: Claim) -> bool {
        self.0 & 1 << claim as u16 != 0
    }
}
