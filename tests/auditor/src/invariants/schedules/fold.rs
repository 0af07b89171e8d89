//! Invariant 12: `failureCount` follows from the sequence of outcomes. Each outcome is recorded once, in the order of
//! the slots.
//!
//! Each status is compared with the status that it replaced, which is the version in its precondition. Only what it
//! says about a child may be older, by no more than the lag.

use serde_json::Value;
use wfe_api::{FailureReason, Phase};
use wfe_core::duration;

use super::{Finding, made_for, replaced};
use crate::Evidence;
use crate::history::{Execution, LastRun, Schedule, failure_count, phase, planned_from, text};
use crate::moment::{Seconds, seconds};
use crate::record::is_cancelled;
use crate::report::{Counts, Moment, Violation};

/// How many seconds a time in a status may lie in the future. If it lies further ahead, a clock was wrong, and a new
/// plan begins. The beginning of a plan is rounded up, so a time exactly 60 s after it can already be too far ahead.
const MAX_AHEAD: Seconds = 60;

/// The rule that a status breaks, and a clause that completes "it".
type Flaw = (&'static str, String);

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (schedule, before, after) in replaced(evidence) {
        if is_held(after.status) && !is_held(before.status) {
            counts.add("holds");
        }
        let step = Step { evidence, schedule, before: before.status, after: after.status, at: after.at };
        found.extend(step.flaws(counts).into_iter().map(|(rule, what)| {
            Finding::new(12, rule, format!("{} {what}", schedule.object)).of_schedule(schedule, after.at)
        }));
    }
    found
}

/// Returns whether a person has ended the effect of a triage.
pub(super) fn is_lifted(spec: &Value, status: &Value) -> bool {
    let (triage, named) = (&status["triage"], &spec["resume"]["triage"]);
    let is_standing = triage["state"] == "Paused" || triage["state"] == "Adjusted" || status["adjust"].is_object();
    is_standing && named.is_string() && triage["of"] == *named
}

/// Returns whether a status says that the schedule is held.
fn is_held(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Held" && it["status"] == "True")
}

/// A status and the status that it replaced.
struct Step<'j, 'e> {
    evidence: &'j Evidence<'e>,
    schedule: &'j Schedule<'e>,
    before: &'e Value,
    after: &'e Value,
    at: Moment,
}

impl Step<'_, '_> {
    fn flaws(&self, counts: &mut Counts) -> Vec<Flaw> {
        if planned_from(self.before) != planned_from(self.after) {
            counts.add("plans");
            return [self.anew(), self.count(0)].into_iter().flatten().collect();
        }
        let (before, after) = (LastRun::read(self.before), LastRun::read(self.after));
        let count = failure_count(self.before);
        let Some(after) = after else {
            let lost = before.map(|_| ("outcome-lost", "forgot its last run".to_owned()));
            return lost.into_iter().chain(self.count(count)).collect();
        };
        let is_same = before.is_some_and(|before| before.slot == after.slot);
        let is_recorded = after.outcome.is_some() && !(is_same && before.is_some_and(|it| it.outcome.is_some()));
        let moved = self.moved(before, after);
        let Some(outcome) = after.outcome.filter(|_| is_recorded) else {
            return moved.into_iter().chain(self.count(count)).collect();
        };
        counts.add("outcomes");
        if matches!(outcome, "Failed" | "Refused") {
            counts.add("failures-of-schedules");
        }
        // A child from before the beginning of the plan does not count for the plan.
        let is_of_plan = planned_from(self.after).is_none_or(|since| after.slot > since);
        let expected = match outcome {
            _ if !is_of_plan => count,
            "Completed" => 0,
            "Failed" | "Refused" => count + 1,
            _ => count,
        };
        [moved, self.outcome(after, outcome), self.count(expected)].into_iter().flatten().collect()
    }

    fn count(&self, expected: u64) -> Option<Flaw> {
        let said = failure_count(self.after);
        (said != expected)
            .then(|| ("failure-count", format!("says failureCount {said}, and the outcomes say {expected}")))
    }

    /// Returns the newest child for a slot.
    fn made_for(&self, slot: Seconds) -> Option<&Execution<'_>> {
        let all = made_for(self.evidence, self.schedule);
        let made = all.filter(|(of, child)| *of == slot && child.created < self.at).map(|(_, child)| child);
        made.max_by_key(|child| child.created)
    }

    /// Checks that a new plan begins only for a reason, and keeps what is known of the last run.
    fn anew(&self) -> Option<Flaw> {
        let Some(since) = planned_from(self.after) else {
            return Some(("plan-anew", "forgot when its plan began".to_owned()));
        };
        let held = self.before["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Held");
        let was_suspended = held.is_some_and(|held| held["status"] == "True" && held["reason"] == "Suspended");
        let spec = &self.schedule.object_at(self.at)["spec"];
        let is_suspended = spec["suspend"] == true;
        let (last, kept) = (LastRun::read(self.before), LastRun::read(self.after));
        let triage = seconds(&self.before["triage"], "/at");
        let phase = seconds(self.before, "/phase");
        let times = [planned_from(self.before), phase, last.map(|it| it.slot), last.and_then(|it| it.ended), triage];
        let is_ahead = times.into_iter().flatten().any(|time| time >= since + MAX_AHEAD);
        let is_changed = self.before["revision"] != self.after["revision"] || planned_from(self.before).is_none();
        let is_resumed = was_suspended && !is_suspended;
        if !(is_changed || is_resumed || is_ahead || is_lifted(spec, self.before)) {
            return Some(("plan-anew", "began its plan anew for no reason".to_owned()));
        }
        if let Some(flaw) = self.phase(spec) {
            return Some(flaw);
        }
        let is_kept = match (last, kept) {
            // The slot of an open run identifies its child. If the slot lies in the future, it is removed, but never
            // changed.
            (Some(last), kept) if last.outcome.is_none() && last.slot > since => kept.is_none(),
            (Some(last), Some(kept)) => kept.outcome == last.outcome && kept.slot == last.slot.min(since),
            (last, kept) => last.is_none() && kept.is_none(),
        };
        (!is_kept).then(|| ("outcome-lost", "forgot its last run when its plan began anew".to_owned()))
    }

    /// Checks that an edit of the template does not move the slots of an interval.
    fn phase(&self, spec: &Value) -> Option<Flaw> {
        let revision = |status: &'_ Value| {
            let (plan, template) = status["revision"].as_str()?.rsplit_once('-')?;
            Some((plan.to_owned(), template.to_owned()))
        };
        let ((was, before), (is, after)) = (revision(self.before)?, revision(self.after)?);
        let every = duration::parse(text(spec, "/interval")?).ok()?.as_secs();
        let every = Seconds::try_from(every).ok().filter(|_| was == is && before != after)?;
        let since = planned_from(self.before)?;
        let last = LastRun::read(self.before).map(|last| last.slot).filter(|slot| *slot > since);
        // With a spread, the first slot is not at the beginning of the plan.
        let is_plain = spec["spread"].is_null() && self.before["adjust"].is_null();
        let base = seconds(self.before, "/phase").or(last).or(is_plain.then_some(since))?;
        let moved = seconds(self.after, "/phase").map(|phase| (phase - base) % every.max(1));
        let is_moved = self.before["adjust"].is_null() && moved != Some(0);
        is_moved.then(|| ("plan-phase", format!("counts its slots from {moved:?} s beside those before")))
    }

    /// Checks that the last run changes only to a later slot, and only after the run before has an outcome.
    fn moved(&self, before: Option<LastRun<'_>>, after: LastRun<'_>) -> Option<Flaw> {
        let flaw = |rule: &'static str, what: String| Some((rule, what));
        let slot = after.slot;
        if let Some(before) = before.filter(|before| before.slot == slot) {
            let is_changed = before.outcome.is_some() && before.outcome != after.outcome;
            return is_changed
                .then(|| ("outcome-twice", format!("said {:?} of slot {slot}, and then another", before.outcome)));
        }
        if let Some(before) = before {
            if slot < before.slot {
                return flaw("outcome-order", format!("went from slot {} back to {slot}", before.slot));
            }
            if before.outcome.is_none() {
                return flaw("outcome-lost", format!("went on from slot {}, which had no outcome", before.slot));
            }
        }
        let since = planned_from(self.after).unwrap_or(Seconds::MIN);
        if slot <= since {
            return flaw("outcome-order", format!("went on to slot {slot}, which is not after its plan began"));
        }
        let used = before.map_or(since, |before| before.slot.max(since));
        let passed = made_for(self.evidence, self.schedule)
            .find(|(between, child)| (used + 1..slot).contains(between) && self.is_known(child))?;
        flaw("outcome-lost", format!("passed over {}, which is of an earlier slot", passed.1.object))
    }

    /// Returns whether a child has existed for longer than the lag.
    fn is_known(&self, child: &Execution<'_>) -> bool {
        child.exists_at(self.at) && child.created.at_ms + self.lag() < self.at.at_ms
    }

    fn lag(&self) -> u64 {
        u64::try_from(self.evidence.options.lag.as_millis()).unwrap_or(u64::MAX)
    }

    /// Checks that the recorded outcome is the true outcome of the child.
    fn outcome(&self, last: LastRun<'_>, outcome: &str) -> Option<Flaw> {
        let slot = last.slot;
        let made = self.made_for(slot);
        let wrong = |what: &str| Some(("outcome", format!("says {outcome} of slot {slot}, and {what}")));
        let Some(child) = made else {
            let is_without = matches!(outcome, "Refused");
            return if is_without { None } else { wrong("no child was ever made for it") };
        };
        let status = child.at(self.at);
        let truth = came_of(status);
        let is_there = child.exists_at(self.at);
        match outcome {
            // A foreign object may have the name, or a late request may have made the child.
            "Refused" | "Deleted" if self.is_known(child) => wrong("its child is there"),
            "Refused" | "Deleted" => None,
            _ if truth != Some(outcome) => wrong(&format!("its child says {}", truth.unwrap_or("nothing yet"))),
            _ if is_there && self.evidence.options.policy.is_some() && !is_end_of(status, last.ended) => {
                Some(("outcome-time", format!("says that slot {slot} ended at another time than its child does")))
            }
            _ => None,
        }
    }
}

/// Returns the outcome of a child; `None` while it is at work.
fn came_of(status: &Value) -> Option<&'static str> {
    let details = &status["failureDetails"];
    let is_late = details["reason"] == FailureReason::DeadlineExceeded.as_str()
        && details["wasExecutionFailure"] == false
        && status["runSequence"].is_null();
    Some(match phase(status)? {
        Phase::Completed => "Completed",
        Phase::Skipped => "Skipped",
        Phase::Failed if is_cancelled(status) => "Cancelled",
        Phase::Failed if is_late => "TooLate",
        Phase::Failed => "Failed",
        _ => return None,
    })
}

fn is_end_of(status: &Value, ended: Option<Seconds>) -> bool {
    let ends = [seconds(status, "/completionTime"), seconds(status, "/failureDetails/failedAt")];
    ends.contains(&ended)
}
