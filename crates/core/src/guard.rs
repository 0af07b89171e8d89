//! Whether admission policies guard the clearance and the cancellation of an execution ([ADR
//! 13](../../../docs/adr/0013-unguarded-clearances.md), section 17).
//!
//! The policies restrict who may set a clearance or a cancellation. While a policy is missing, every user who can write
//! the object can set them in any name, and the object does not show that afterwards. Both therefore count only while
//! the policies are in force. If the policies were not in force when the operator saw one, the status records that for
//! ever.
//!
//! This module does not know how the policies are read.

use crate::Time;

/// Whether the admission policies are in force, as far as this process knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// This process does not check the policies. It trusts the statuses.
    #[default]
    Recorded,
    /// The last check is too old.
    Unknown,
    /// The policies are in force, or the operator is configured not to check them.
    InForce,
    /// A policy is missing, or differs from the shipped one.
    Missing,
}

/// The condition `Unguarded` of a clearance or a cancellation: no policy was in force when the operator saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unguarded {
    /// Since when the condition is set.
    pub since: Time,
    /// Whether the clearance or cancellation counts after all, because the policies were back later. This never changes
    /// back.
    pub counts: bool,
}

/// Whether a clearance or cancellation counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveState {
    /// The clearance or cancellation counts.
    Counts,
    /// It is unknown whether the policies are in force.
    Open,
    /// The policies are not in force, and the status does not record it yet.
    Unguarded,
    /// The clearance or cancellation does not count now, and the status records that.
    Ignored,
}

/// A clearance or a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// The clearance of an execution that failed.
    Clearance,
    /// The cancellation of an execution that has not ended.
    Cancellation,
}

impl Directive {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Clearance, Self::Cancellation];

    /// Returns the reason of the condition `Unguarded`, which depends on whether the clearance or cancellation counts.
    #[must_use]
    pub fn reason(self, counts: bool) -> &'static str {
        match (self, counts) {
            (Self::Clearance, false) => "ClearanceUnguarded",
            (Self::Clearance, true) => "ClearanceCounts",
            (Self::Cancellation, false) => "CancellationUnguarded",
            (Self::Cancellation, true) => "CancellationCounts",
        }
    }

    /// Describes for a person what the condition means, and what to do.
    #[must_use]
    pub fn message(self, counts: bool) -> &'static str {
        match (self, counts) {
            (Self::Clearance, false) => {
                "the clearance does not count now: the admission policies of clearances and cancellations are missing or \
                 changed, so nothing has checked who set it; it counts as soon as they are back, so apply \
                 config/admission again or upgrade the Helm release"
            }
            (Self::Clearance, true) => {
                "the clearance counts: the admission policies are back, or the operator does not ask for them; none was in \
                 force when the operator saw the clearance, so the name in it is what its author wrote"
            }
            (Self::Cancellation, false) => {
                "the cancellation does not count now: the admission policies of clearances and cancellations are missing \
                 or changed, so nothing has checked who set it; it counts as soon as they are back; to stop the execution \
                 now, delete it"
            }
            (Self::Cancellation, true) => {
                "the cancellation counts: the admission policies are back, or the operator does not ask for them; none was \
                 in force when the operator saw the cancellation, so the name in it is what its author wrote"
            }
        }
    }
}

/// Returns the name in a clearance or a cancellation, with a remark if no policy has checked it.
#[must_use]
pub fn author(name: &str, unguarded: Option<Unguarded>) -> String {
    match unguarded {
        Some(_) => format!("{name} (no admission policy has checked that name)"),
        None => name.to_owned(),
    }
}
