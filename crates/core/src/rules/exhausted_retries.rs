//! Rule 3: too many failures in a row before anything ran. Another try would only repeat them.

use super::Contender;
use crate::ending::Skip;
use crate::explain::Finding;
use crate::verdict::Fact;
use crate::verdict::Verdict;

/// Skips an execution on a target whose failures have reached the limit.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let (history, policy, limit) = (contender.history, contender.policy, contender.policy.max_consecutive_failures);
    let Some((latest, failures)) = history.exhausted(policy, contender.now) else {
        let failures = history.consecutive_failures(policy, contender.now);
        return Finding::passes(match limit {
            0 => format!("{failures} failures in a row before anything ran; no number is too many"),
            _ => format!("{failures} failures in a row before anything ran, of {limit}"),
        });
    };
    // A quiet period ends the block, if one is configured.
    let until = history.quiet_at(policy);
    let skip = Skip::ExhaustedRetries { latest: latest.remediation(), failures, limit, until };
    let fact = Fact::Stands(latest.execution.id.clone());
    Finding::Decides { verdict: Verdict::Skip { skip, fact }, until }
}
