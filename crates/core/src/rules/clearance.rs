//! Somebody has cleared a failure of the target, and nobody knows yet whether that counts (SPEC section 17): a skip is
//! final, so whoever asks meanwhile waits for the look at the policies, which takes a moment.

use super::Contender;
use crate::explain::Finding;
use crate::guard::{Word, WordKind};
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Holds an execution back until it is known of every clearance whether it counts.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let guard = contender.target.guard;
    let mut past = contender.history.all().iter();
    let is_open = past.any(|past| past.execution.word(WordKind::Clearance, guard) == Some(Word::Open));
    Finding::of(is_open.then_some(Verdict::Wait(Waiting::Guard)), "no clearance is being looked into")
}
