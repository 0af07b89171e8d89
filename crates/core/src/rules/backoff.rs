//! Rule 4: the latest execution failed before anything ran, and its backoff is not over. This holds for every workflow.

use super::Contender;
use crate::ending::Skip;
use crate::explain::Finding;
use crate::verdict::Fact;
use crate::verdict::Verdict;

/// Skips an execution before `nextAllowedExecution`; from that second on, the execution runs.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let (history, policy) = (contender.history, contender.policy);
    let Some(latest) = history.latest().filter(|latest| latest.backs_off()) else {
        return Finding::passes("the latest execution backs nothing off");
    };
    let until = history.next_allowed(latest, policy, contender.target.label());
    if let Some(until) = until.filter(|until| *until <= contender.now) {
        let next = crate::moment::shown(until);
        return Finding::passes(format!("{} let the next one run from {next} on", latest.execution.id));
    }
    let failures = history.failures_to_wait_for(policy, latest.ended_at.unwrap_or(contender.now));
    let skip = Skip::Backoff { latest: latest.remediation(), failures, until };
    let fact = Fact::Stands(latest.execution.id.clone());
    Finding::Decides { verdict: Verdict::Skip { skip, fact }, until }
}
