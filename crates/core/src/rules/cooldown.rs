//! Rule 5: the same workflow has just succeeded on the target. A clearance does not end a cooldown, because a cooldown
//! follows a success.

use super::Contender;
use crate::Time;
use crate::ending::Skip;
use crate::explain::Finding;
use crate::history::{End, Past};
use crate::moment::{after, round_up};
use crate::verdict::Fact;
use crate::verdict::Verdict;

/// Skips an execution whose workflow completed less than the cooldown ago. At the exact end of the cooldown, the
/// execution runs.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let cooldown = contender.policy.cooldown_period;
    let successes = contender
        .history
        .all()
        .iter()
        .filter(|past| past.end == End::Completed && past.execution.workflow_id == contender.execution.workflow_id)
        // Schedules define their own pace. With a cooldown between them, one schedule could starve another for ever
        // (section 6.5).
        .filter(|past| past.execution.child.is_none() || contender.execution.child.is_none());
    // An execution without a known end may have ended just now.
    let end_of = |past: &Past<'_>| past.ended_at.map_or(Time::MAX_UTC, |ended_at| round_up(after(ended_at, cooldown)));
    let Some(last) = successes.max_by_key(|past| end_of(past)).filter(|_| !cooldown.is_zero()) else {
        return Finding::passes("this workflow has no cooldown on the target");
    };
    let until = end_of(last);
    if until <= contender.now {
        let until = crate::moment::shown(until);
        return Finding::passes(format!("the cooldown after {} was over at {until}", last.execution.id));
    }
    let until = last.ended_at.map(|_| until);
    let skip = Skip::Cooldown { last: last.remediation(), cooldown, until };
    let fact = Fact::Stands(last.execution.id.clone());
    Finding::Decides { verdict: Verdict::Skip { skip, fact }, until }
}
