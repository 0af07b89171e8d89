//! Rule 5b: a limit of how many targets are worked on at once (section 18). This rule comes last: an execution that
//! waits for a place is skipped, fails, is paused or is cancelled as if there were no limit.

use super::Contender;
use crate::explain::Finding;
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// The name of the rule.
pub(super) const NAME: &str = "5b limit";

/// Makes an execution wait if it needs a place and has none. `None` if no limit is configured.
pub(super) fn rule(contender: &Contender<'_>) -> Option<Finding> {
    let limits = &contender.policy.limits;
    if limits.is_empty() {
        return None;
    }
    let execution = contender.execution;
    let asked = contender.target.limits_of(execution, limits);
    if asked.is_empty() {
        return Some(Finding::passes("no limit matches it"));
    }
    if contender.run.is_some() {
        return Some(Finding::passes("its PipelineRun has its place"));
    }
    if contender.target.has_place(execution) {
        return Some(Finding::passes("it has a place in each limit that matches it"));
    }
    let waiting = Waiting::Limit(Box::new(contender.target.places.wait(limits, asked)));
    Some(Finding::Decides { verdict: Verdict::Wait(waiting), until: None })
}
