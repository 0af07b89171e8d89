//! A person cancelled the execution before it started (section 3.1, `cancellation`).

use super::Contender;
use crate::explain::Finding;
use crate::guard::{Directive, DirectiveState};
use crate::reason::FailureReason;
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Fails an execution that was cancelled before its turn came. If it is unknown whether the cancellation counts, the
/// execution waits. It also waits until its status records that the cancellation does not count. Otherwise a later
/// reader could not tell whether the commit or the cancellation came first.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let Some(cancellation) = &contender.execution.cancellation else {
        return Finding::passes("nobody has asked for its cancellation");
    };
    match contender.execution.directive(Directive::Cancellation, contender.target.guard) {
        Some(DirectiveState::Counts) => {
            let (by, why) = (cancellation.author(), &cancellation.reason);
            let message = format!("cancelled by {by} before it started: {why}").into();
            Finding::of(Some(Verdict::Fail { reason: FailureReason::Unknown, message, counts: false }), "")
        }
        Some(DirectiveState::Open | DirectiveState::Unguarded) => Finding::of(Some(Verdict::Wait(Waiting::Guard)), ""),
        Some(DirectiveState::Ignored) | None => {
            Finding::passes("no policy guards its cancellation, so that does not count")
        }
    }
}
