//! Removes terminal executions whose `ttlSecondsAfterFinished` is over (section 3.1) and on which no later decision
//! depends (section 7).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::View;
use crate::Time;
use crate::action::{Action, Decision};
use crate::execution::{Execution, ExecutionState, Recorded};
use crate::history::{End, Past};
use crate::moment::after;
use crate::name::Uid;
use crate::run::Owner;
use crate::schedule::Retention;
use crate::target::Target;

/// How many executions are removed at once. The operator serializes the work on a target, so executions that ask for a
/// turn wait meanwhile.
const AT_ONCE: usize = 64;

/// Requests the removals, oldest first, if there is nothing else to do.
pub(super) fn expire(view: View<'_>, decision: &mut Decision) {
    if !decision.actions.is_empty() {
        return; // after these actions, the operator decides on the target again
    }
    let ends_by_time = |it: &Execution| time_to_live(view, it).is_some();
    if !view.target.executions.values().any(ends_by_time) {
        return; // most targets have none to remove
    }
    let (all, in_order_from) = (view.history.all(), view.history.in_order_from());
    let keeps = Keeps::of(view);
    let newest = newest_successes(all);
    // Whether an older failure is kept. A success or clearance that outweighs it is then kept, too.
    let mut failure_stays = false;
    // The latest time of the failures that are kept since the last success.
    let mut latest_time: Option<Time> = None;
    for (at, past) in all.iter().enumerate() {
        let mends = past.end == End::Completed || past.execution.clearance.is_some();
        let failed_at = past.ended_at.unwrap_or(Time::MAX_UTC);
        // Times can contradict the order. A quiet time before this failure then prevents an older failure with a later
        // time from counting.
        let ends_row = past.backs_off() && latest_time.is_some_and(|latest| latest > failed_at);
        let is_needed = failure_stays && mends || ends_row || keeps.past(past) || places_next(all, at, in_order_from);
        let free = !is_needed && keeps.is_free(past.execution);
        let not_before = cools_until(view, past, &newest).max(keeps.waited_for(past));
        if !(free && remove(view, past.execution, not_before, decision)) {
            failure_stays |= past.end != End::Completed;
            latest_time = match past.end {
                End::Completed => None,
                _ if past.backs_off() => latest_time.max(Some(failed_at)),
                _ => latest_time,
            };
        }
    }
    // No decision depends on a skipped execution.
    for execution in view.target.executions.values() {
        if matches!(execution.state, ExecutionState::Skipped { .. }) && keeps.is_free(execution) {
            remove(view, execution, None, decision);
        }
    }
}

/// Returns whether the next execution would change its position without this one. An execution without a number is
/// ordered after the last run that had ended by then. If times contradict the numbers, an execution with a later end
/// may precede that run. Runs are ordered by their numbers alone.
fn places_next(all: &[Past<'_>], at: usize, in_order_from: usize) -> bool {
    let next = all.get(at + 1).filter(|_| at + 1 < in_order_from);
    next.is_some_and(|next| next.execution.run_sequence.is_none())
}

/// Removes an execution if its time to live is over, and returns whether it is removed.
fn remove(view: View<'_>, execution: &Execution, not_before: Option<Time>, decision: &mut Decision) -> bool {
    let Some((ended_at, ttl)) = execution.ended_at().zip(time_to_live(view, execution)) else { return false };
    let expires = after(ended_at, ttl).max(not_before.unwrap_or(ended_at));
    if view.now < expires {
        decision.wake_at(expires);
        return false;
    }
    if decision.actions.len() >= AT_ONCE {
        return false; // after the other removals, the operator decides on the target again
    }
    decision.actions.push(Action::Remove { execution: execution.id.clone(), version: execution.version.clone() });
    true
}

/// Returns how long an execution is kept after its end; `None` if it is never removed.
fn time_to_live(view: View<'_>, execution: &Execution) -> Option<Duration> {
    match execution.child.as_ref().map(|child| child.keep) {
        // The schedule may exist, and need the child.
        Some(_) if view.target.blind_to_schedules => None,
        Some(Retention::Needed) => None,
        Some(Retention::Expendable) => Some(Duration::ZERO),
        Some(Retention::Own) | None => execution.ttl.or(view.policy.ttl),
    }
}

/// Returns the successes that a cooldown may depend on: the latest of each workflow, and the latest without a schedule,
/// because rule 5 does not apply between schedules.
fn newest_successes<'a>(all: &[Past<'a>]) -> BTreeSet<&'a Uid> {
    let successes = || all.iter().filter(|past| past.end == End::Completed);
    let of_all = successes().map(|past| (true, past));
    let of_no_schedule = successes().filter(|past| past.execution.child.is_none()).map(|past| (false, past));
    let mut newest: HashMap<(&str, bool), &Past<'a>> = HashMap::new();
    for (all, past) in of_all.chain(of_no_schedule) {
        let known = newest.entry((&past.execution.workflow_id, all)).or_insert(past);
        if known.ended_at <= past.ended_at {
            *known = past;
        }
    }
    newest.into_values().map(|past| &past.execution.id.uid).collect()
}

/// Returns when the cooldown of a success ends.
fn cools_until(view: View<'_>, past: &Past<'_>, newest: &BTreeSet<&Uid>) -> Option<Time> {
    let cools = past.end == End::Completed && newest.contains(&past.execution.id.uid);
    cools.then_some(after(past.ended_at?, view.policy.cooldown_period))
}

/// Executions that are kept regardless of their time to live.
struct Keeps<'a> {
    /// The newest executions: of all, of those not skipped, of those that backoff depends on, and of those that ran.
    /// Also the one with the highest run number, from which the next number is derived.
    newest: [Option<&'a Uid>; 5],
    /// Executions that still count for backoff or block the target, and failures whose status shows them as recovered:
    /// the admission policy for deletions protects these. Computed once, because a history may be long.
    needed: BTreeSet<&'a Uid>,
    /// Until when shared failures are kept if none of them counts: their number makes the next wait longer.
    quiet_at: Option<Time>,
    /// Executions with an unfinished run.
    at_work: BTreeSet<&'a Uid>,
}

impl<'a> Keeps<'a> {
    fn of(view: View<'a>) -> Self {
        let (target, history) = (view.target, view.history);
        let terminal = target.executions.values().filter(|it| it.is_terminal());
        let newest = terminal.clone().max_by_key(|it| (it.ended_at(), it.created, &it.id.uid));
        let number = target.executions.values().max_by_key(|it| (it.run_sequence, &it.id.uid));
        let newest = [
            newest.map(|it| &it.id.uid),
            history.all().last().map(|past| &past.execution.id.uid),
            history.latest().map(|past| &past.execution.id.uid),
            history.newest_that_ran().map(|past| &past.execution.id.uid),
            number.map(|it| &it.id.uid),
        ];
        let counts = history.consecutive_failures(view.policy, view.now) > 0;
        let waits = !counts && history.failures_to_wait_for(view.policy, view.now) > 0;
        let quiet_at = history.quiet_at(view.policy).filter(|_| waits);
        let counts = counts || waits && quiet_at.is_none();
        let in_a_row = history.failures().filter(|_| counts);
        let needed = in_a_row.chain(history.unmended(view.policy)).chain(history.recovered());
        let needed = needed.map(|past| &past.execution.id.uid).collect();
        Self { newest, needed, quiet_at, at_work: at_work(target) }
    }

    /// Returns whether later decisions depend on the execution, because it counts or blocks.
    fn past(&self, past: &Past<'_>) -> bool {
        // The effect of a clearance on a success is never recorded.
        let clearance = past.execution.clearance.as_ref().filter(|_| past.end != End::Completed);
        let unrecorded = clearance.is_some_and(|clearance| clearance.recorded == Recorded::Not);
        unrecorded || self.needed.contains(&past.execution.id.uid)
    }

    /// Returns until when the execution is kept because it makes the next wait longer.
    fn waited_for(&self, past: &Past<'_>) -> Option<Time> {
        self.quiet_at.filter(|_| past.backs_off())
    }

    /// Returns whether no unfinished run of the execution is left, and it is none of the newest executions.
    fn is_free(&self, execution: &Execution) -> bool {
        let uid = &execution.id.uid;
        let is_needed = self.at_work.contains(uid) || self.newest.contains(&Some(uid));
        !execution.deleting && !execution.draining_shown && !is_needed
    }
}

fn at_work(target: &Target) -> BTreeSet<&Uid> {
    let unfinished = target.runs.values().filter(|run| run.is_unfinished()).map(|run| &run.owner);
    let left = target.residue.values().map(|residue| &residue.owner);
    unfinished.chain(left).filter_map(Owner::execution).map(|id| &id.uid).collect()
}
