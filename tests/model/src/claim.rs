//! What is claimed of the protocol (section 16, as far as one target can show it).

use std::fmt;

/// A claim that a search can refute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// At most one released and unfinished run at any moment.
    OneAtATime,
    /// Nothing is released while something of another run is left.
    Drained,
    /// At most one released run per attempt, and no more attempts than there may be.
    OneRunEach,
    /// From an execution's first release to its end no other's run is released, unless somebody erased its run.
    Held,
    /// An execution whose record says that nothing ran never had a released run.
    NothingRan,
    /// A skip names a run that held the target at some moment after the skipped execution was made.
    TrueSkip,
    /// The fact that a skip names holds when it is decided.
    FreshSkip,
    /// A terminal phase is final.
    Final,
    /// Only the run of an execution that is committed to it is released.
    Committed,
    /// An execution commits to a run of its own.
    Own,
    /// Only a pending run is deleted, or a finished one whose owner is terminal or gone; only a run is cancelled whose
    /// owner is gone or is to be cancelled.
    Kept,
    /// An execution that is committed to a run ends after that run.
    AfterItsRun,
    /// An execution fails for a run that is gone only where somebody else has deleted that run.
    NotLost,
    /// When nothing can happen any more, every execution is terminal and no run is left unfinished. As the steps form
    /// no cycle, every schedule comes to such an end.
    Ends,
}

impl Claim {
    /// All of them.
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

    /// Returns what is claimed, in a few words.
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

    /// Returns whether a claim is among them.
    #[must_use]
    pub fn has(self, claim: Claim) -> bool {
        self.0 & 1 << claim as u16 != 0
    }
}
