//! Nothing new starts in a paused namespace; what is undecided waits (SPEC section 14).

use super::{Contender, Verdict};
use crate::action::Waiting;

/// Holds an execution back while its namespace is paused.
pub(super) fn rule(contender: &Contender<'_>) -> Option<Verdict> {
    contender.execution.paused.clone().map(|why| Verdict::Wait(Waiting::Paused(why)))
}
