//! Nothing new starts while all is paused, or in a paused namespace; what is undecided waits (SPEC section 14).

use super::{Contender, Verdict};
use crate::action::Waiting;
use crate::explain::Finding;

/// Holds an execution back while everything is paused, or its namespace.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let everywhere = contender.policy.paused_by.clone().map(Waiting::PausedEverywhere);
    let waiting = everywhere.or_else(|| contender.execution.paused.clone().map(Waiting::Paused));
    Finding::of(waiting.map(Verdict::Wait), "neither everything nor its namespace is paused")
}
