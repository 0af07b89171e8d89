//! Troubles of the operator itself: they prevent its work, and no execution or target is at fault.
//!
//! All are handled in the same way. The execution waits, with a condition that names the trouble. A gauge counts the
//! targets that wait, and an alert calls a person. The execution does not fail and no deadline ends the wait; it
//! continues when the trouble is repaired.

/// A trouble that prevents the operator's work, with a description for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTrouble {
    /// Which trouble it is.
    pub cause: OwnCause,
    /// What the operator tried, what happened, and what a person can do.
    pub words: Box<str>,
}

/// The fixed set of the operator's own troubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnCause {
    /// The operator's account lacks a permission.
    LacksRight,
    /// An admission policy of this operator refuses the operator itself.
    RefusedByPolicy,
    /// The CRD in the cluster lacks fields that decisions depend on.
    CrdLacksFields,
    /// A failed run cannot be examined.
    CannotExamine,
    /// The API server accepted a status, but dropped a part that decisions depend on.
    WriteDropped,
}

impl OwnCause {
    /// All causes.
    pub const ALL: [Self; 5] =
        [Self::LacksRight, Self::RefusedByPolicy, Self::CrdLacksFields, Self::CannotExamine, Self::WriteDropped];

    /// Returns the reason of the condition that names the trouble; metrics use it as a label, too.
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
