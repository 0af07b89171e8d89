//! A failure of the target was cleared, and it is not known yet whether the clearance counts (section 17). A skip is
//! final, so an execution that asks meanwhile waits until the operator has read the policies.

use super::Contender;
use crate::explain::Finding;
use crate::guard::{Directive, DirectiveState};
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Holds an execution back until it is known for every clearance whether it counts.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let guard = contender.target.guard;
    let mut past = contender.history.all().iter();
    let is_open = past.any(|past| past.execution.directive(Directive::Clearance, guard) == Some(DirectiveState::Open));
    Finding::of(is_open.then_some(Verdict::Wait(Waiting::Guard)), "it is known of each clearance whether it counts")
}
