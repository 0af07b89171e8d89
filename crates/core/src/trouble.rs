//! The operator's own trouble: it keeps the operator from its work, and no execution and no target is at fault.
//!
//! There is one rule for all of it. The execution waits, with a condition that names the trouble; a gauge counts the
//! targets that wait, and an alert calls a person. The trouble is nobody's failure, no deadline ends it, and the
//! execution continues when it is repaired.

/// What keeps the operator from its work, with words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTrouble {
    /// Which trouble it is.
    pub cause: OwnCause,
    /// What was tried, what happened, and what a person can do.
    pub words: Box<str>,
}

/// The closed list of the operator's own troubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnCause {
    /// The operator's account lacks a right.
    LacksRight,
    /// An admission policy of this operator refuses the operator itself.
    RefusedByPolicy,
    /// The CRD in the cluster lacks fields that decisions depend on.
    CrdLacksFields,
    /// A failed run cannot be examined.
    CannotExamine,
    /// The API server accepted a status and dropped a decisive part of it.
    WriteDropped,
}

impl OwnCause {
    /// All causes.
    pub const ALL: [Self; 5] =
        [Self::LacksRight, Self::RefusedByPolicy, Self::CrdLacksFields, Self::CannotExamine, Self::WriteDropped];

    /// Returns the reason of the condition that names the trouble, which is also its label in metrics.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::LacksRight => "OperatorForbidden",
            Self::RefusedByPolicy => "OperatorRefused",
            Self::CrdLacksFields => "CrdLacksFields",
            Self::CannotExamine => "Examining",
            Self::WriteDropped => "WriteDropped",
        }
    }
}

impl OwnTrouble {
    /// Returns the message of the condition that names the trouble.
    #[must_use]
    pub fn message(&self) -> String {
        let words = &self.words;
        match self.cause {
            OwnCause::LacksRight => {
                format!("the operator itself lacks a right, and goes on as soon as it has it: {words}")
            }
            OwnCause::RefusedByPolicy => {
                format!("an admission policy of the operator refuses the operator itself: {words}")
            }
            OwnCause::CrdLacksFields => {
                format!("the CRD in the cluster lacks fields that the operator decides by: {words}")
            }
            OwnCause::CannotExamine => {
                format!("the failed run cannot be examined, and the operator tries again until it can: {words}")
            }
            OwnCause::WriteDropped => {
                format!("the API server accepted a status and did not store all of it: {words}")
            }
        }
    }
}
