//! Nothing new starts in a paused namespace; what is undecided waits (SPEC section 14).

use super::{Contender, Verdict};
use crate::action::Waiting;
use crate::explain::Finding;

/// Holds an execution back while its namespace is paused.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let paused = contender.execution.paused.clone();
    Finding::of(paused.map(|why| Verdict::Wait(Waiting::Paused(why))), "its namespace is not paused")
}
