//! What prevents a triage that would otherwise begin: its cooldown, the hourly limit, and shared failures (section
//! 13.6).

use super::Case;
use crate::Time;
use crate::circuit::{Closing, PUT_OFF, Share};
use crate::moment::{after, shown};
use crate::schedule::{Outcome, ScheduleStatus};
use crate::triage::{Analyst, Suppressed};

/// Returns what prevents a triage that would otherwise begin, in order of importance, each with the time when it ends.
pub(super) fn suppressors(case: Case<'_>, status: &ScheduleStatus) -> Vec<(Suppressed, String, Time)> {
    let Case { schedule, view, .. } = case;
    let (now, policy) = (view.now, view.policy.triage);
    let cooldown = status.triage.as_ref().map(|triage| after(triage.at, policy.cooldown)).filter(|until| *until > now);
    let cooldown = cooldown.map(|until| {
        let because = format!("no other triage begins before {} (triage-cooldown)", shown(until));
        (Suppressed::Cooldown, because, until)
    });
    let others = put_off(case, status);
    // The built-in analyst costs nothing, so the limit does not count it.
    let is_counted = schedule.triage.analyst == Analyst::Pipeline;
    let too_many = schedule.memory.others_begun.free_at(policy.max_per_hour);
    let too_many = too_many.filter(|until| is_counted && *until > now);
    let too_many = too_many.map(|until| {
        let because = format!("its namespace begins no other triage before {} (triage-max-per-hour)", shown(until));
        (Suppressed::TooMany, because, until)
    });
    [cooldown, others, too_many].into_iter().flatten().collect()
}

/// Returns the shared failure that delays the triage. It delays the triage for at most an hour after the failure that
/// made the triage due (section 13.6).
fn put_off(case: Case<'_>, status: &ScheduleStatus) -> Option<(Suppressed, String, Time)> {
    let (now, circuits) = (case.view.now, &case.view.target.circuits);
    // The new status counts: the failure that is being recorded may be the shared one.
    let last = status.last_run.as_ref()?;
    let (failed_at, failed_with) = (last.ended_at.unwrap_or(last.slot), last.fingerprint.as_ref());
    let ends = after(case.due_since(status)?, PUT_OFF);
    if ends <= now {
        return None;
    }
    if let Some(circuit) = circuits.holding(failed_with, now) {
        let because = format!("no triage while the circuit {} is open, or before {}", circuit.fingerprint, shown(ends));
        return Some((Suppressed::CircuitOpen, because, ends.min(circuit.quiet_at)));
    }
    let closing = failed_with.and_then(|fingerprint| circuits.closing(fingerprint, failed_at, now));
    if let Some((at, Closing::Probe)) = closing {
        let because = format!(
            "a probe closed the circuit of its failure at {}: no triage without a new failure, or before {}",
            shown(at),
            shown(ends)
        );
        return Some((Suppressed::CircuitOpen, because, ends));
    }
    let degraded = circuits.degraded()?;
    let Share { failed, of } = degraded;
    let because = format!("{failed} of {of} targets fail: no triage while so many do, or before {}", shown(ends));
    Some((Suppressed::Degraded, because, ends))
}

impl Case<'_> {
    /// Returns the end of the failure that made a triage due: the first one that completed the required number in a
    /// row. If its child is gone, the failure came after the last success and after the plan began, so the later of
    /// these two counts. A triage is therefore never delayed for longer than an hour.
    fn due_since(self, status: &ScheduleStatus) -> Option<Time> {
        let last = status.last_run.as_ref()?;
        let since = usize::try_from(status.failure_count.checked_sub(self.schedule.triage.after)?).ok()?;
        if since == 0 {
            // The time of a refusal is when it was noticed, and a restarted operator notices it again.
            return last.ended_at.filter(|_| last.outcome == Some(Outcome::Failed)).or(Some(last.slot));
        }
        let due = self.failures(status).nth(since).and_then(|(_, at)| at);
        due.or(status.last_success.max(status.planned_from))
    }
}
