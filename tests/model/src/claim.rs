//! The claims about the protocol (section 16, as far as one target can show them).

use std::fmt;

/// A claim that a search can refute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// At most one released and unfinished run at any moment.
    OneAtATime,
    /// No run is released while something of another run is left.
    Drained,
    /// At most one released run per attempt, and no more attempts than allowed.
    OneRunEach,
    /// Between an execution's first release and its end no other's run is released, unless a user erased its run.
    Held,
    /// An execution whose record says that nothing ran never had a released run.
    NothingRan,
    /// A skip names a run that held the target at some moment after the skipped execution was created.
    TrueSkip,
    /// The fact that a skip names is true when the skip is decided.
    FreshSkip,
    /// A terminal phase is final.
    Final,
    /// A run is released only if its execution is committed to it.
    Committed,
    /// An execution commits only to its own runs.
    Own,
    /// A deleted run is pending, or is finished and its owner is terminal or gone. A cancelled run has an owner that is
    /// gone or is to be cancelled.
    Kept,
    /// An execution that is committed to a run ends after that run.
    AfterItsRun,
    /// An execution fails because its run is gone only if a user has deleted that run.
    NotLost,
    /// When nothing more can happen, every execution is terminal and no run is unfinished. Every schedule comes to such
    /// an end, because the steps form no cycle.
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

    /// Returns a short description.
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

    /// Returns these claims.
    #[must_use]
    pub fn of(claims: &[Claim]) -> Self {
        Self(claims.iter().fold(0, |all, claim| all | 1 << *claim as u16))
    }

    /// Returns whether a claim is in the set.
    #[must_use]
    pub fn has(self, claim: Claim) -> bool {
        self.0 & 1 << claim as u16 != 0
    }
}
