//! A failure of the target was cleared, and it is unknown whether the clearance counts (section 17). A skip is final,
//! so a contender waits until the operator has read the policies.

use super::Contender;
use crate::explain::Finding;
use crate::guard::{Directive, DirectiveState};
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Makes an execution wait until the operator knows of every clearance whether it counts.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let guard = contender.target.guard;
    let mut past = contender.history.all().iter();
    let is_open = past.any(|past| past.execution.directive(Directive::Clearance, guard) == Some(DirectiveState::Open));
    Finding::of(is_open.then_some(Verdict::Wait(Waiting::Guard)), "it is known of each clearance whether it counts")
}
