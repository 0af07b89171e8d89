//! Whether an admission policy guarded what a person has set on an execution: its clearance, its cancellation
//! ([ADR 13](../../../docs/adr/0013-unguarded-clearances.md), SPEC section 17).
//!
//! The policies say who may set these. While one is missing, anybody may who can write the object, and nothing in it
//! shows that afterwards. So the status of an execution names the policies that were in force when it had neither, and
//! a look after one was set says whether they are the same still: then they were there all the time.
//!
//! It knows nothing of how policies are read, and what a mark is made of.

use std::fmt;
use std::num::NonZeroU32;

use sha2::{Digest, Sha256};

use crate::Time;

/// Names the two policies with their bindings, as they are at one time: each change of what one says, and each time
/// one is made anew, gives another mark. Nobody chooses it, as it is made of what the API server counts and draws, so
/// four bytes are enough; there is one for each execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GuardMark(NonZeroU32);

impl GuardMark {
    /// Makes the mark of a number that stands for the policies.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    /// Makes the mark of policies by all that tells them from others.
    #[must_use]
    pub fn of(names: &str) -> Self {
        let hash = Sha256::digest(names);
        Self::new(hash.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// Reads what [`Display`](fmt::Display) writes; `None` where it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = u32::from_str_radix(text, 16).ok()?;
        let mark = Self(NonZeroU32::new(number)?);
        (mark.to_string() == text).then_some(mark)
    }
}

impl fmt::Display for GuardMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// A second, as creation times have it. Each target has one, so it is small; it ends in 2106.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second(u32);

impl Second {
    /// Tells whether a time lies before this second.
    #[must_use]
    pub fn is_after(self, time: Time) -> bool {
        i64::from(self.0) > time.timestamp()
    }
}

impl From<Time> for Second {
    fn from(time: Time) -> Self {
        Self(u32::try_from(time.timestamp()).unwrap_or(u32::MAX))
    }
}

/// What this process knows of the policies, from looking at them now and then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Nobody looks: what a person has set counts.
    #[default]
    Off,
    /// They do not protect as far as is known, or not for long enough that every API server has heard of them.
    Unknown,
    /// They protect.
    By {
        /// As which policies.
        mark: GuardMark,
        /// Since when this process knows that.
        since: Second,
    },
}

impl Guard {
    /// Returns which policies protect, where they do.
    #[must_use]
    pub fn mark(self) -> Option<GuardMark> {
        match self {
            Self::By { mark, .. } => Some(mark),
            Self::Off | Self::Unknown => None,
        }
    }
}

/// What a person has set on an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// `spec.cancellation`.
    pub cancellation: bool,
    /// `spec.clearance`.
    pub clearance: bool,
}

/// What a look at the policies has found that began after this was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// What was set when it began: of what was set later it says nothing.
    pub touch: Touch,
    /// As which policies they protect; `None` where they do not.
    pub found: Option<GuardMark>,
}

/// Whether what a person has set counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It counts: its policy guarded it, or nobody looks.
    Counts,
    /// Nobody has looked since it was set.
    Open,
    /// No policy guarded it, as far as anybody can tell, and the status does not say so yet.
    Unguarded,
    /// It does not count, as the status says.
    Ignored,
}

/// Which of the two it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// The clearance of an execution that failed.
    Clearance,
    /// The cancellation of one that has not ended.
    Cancellation,
}

impl WordKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Clearance, Self::Cancellation];

    /// Returns the reason of the condition `Unguarded`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Clearance => "ClearanceUnguarded",
            Self::Cancellation => "CancellationUnguarded",
        }
    }

    /// Tells a person what that means, and what to do.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::Clearance => {
                "the clearance does not count: the admission policies of clearances and cancellations were missing, \
                 changed or made anew since this status last named them, so nobody knows who set it; repair the \
                 target by another workflow with recoveryOf, or delete this WorkflowExecution, which takes the right to \
                 clear it"
            }
            Self::Cancellation => {
                "the cancellation does not count: the admission policies of clearances and cancellations were missing, \
                 changed or made anew since this status last named them, so nobody knows who set it; to stop it, delete \
                 this WorkflowExecution"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_is_written_and_not_otherwise() {
        for number in [1, 0xf00d, u32::MAX] {
            let mark = GuardMark::new(number);
            assert_eq!(GuardMark::parse(&mark.to_string()), Some(mark));
        }
        assert_eq!(GuardMark::new(0), GuardMark::new(1), "no mark is nothing");
        for text in ["", "00000000", "f00d", "0000F00D", "+000f00d", "000000000f00d"] {
            assert_eq!(GuardMark::parse(text), None, "{text}");
        }
    }
}
