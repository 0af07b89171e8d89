//! Invariants 10 and 12: at most one execution of a slot at a time, and what the status of a schedule counts is the fold of
//! the outcomes of its children (section 12.6, 12.7).
//!
//! What others wrote into a status is not held against the operator; what it makes of that is judged from there on.

use std::collections::BTreeMap;

use serde_json::Value;
use wfe_api::Phase;

use super::Finding;
use crate::Evidence;
use crate::history::{Execution, Schedule, Written, last_run, phase, text};
use crate::record::seconds;
use crate::report::{Counts, Moment, Violation};

/// What is wrong with a status: the rule, and a clause that completes "it".
type Flaw = (&'static str, String);

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let mut found = slots(evidence);
    for schedule in evidence.history.schedules.values() {
        for pair in schedule.written.windows(2) {
            let [before, written] = pair else { continue };
            if evidence.authors.is_strangers(written.at) {
                continue;
            }
            if last_run(written.status).is_some_and(|(_, outcome)| outcome.is_some()) {
                counts.add("slots");
            }
            for (rule, what) in judge_write(evidence, schedule, before.status, written) {
                let text = format!("{} {what}", schedule.object);
                found.push(Finding::new(12, rule, text).on(
                    schedule.shown(),
                    vec![schedule.object.clone()],
                    &[written.at],
                ));
            }
        }
    }
    found
}

/// Of the executions that one schedule made for one slot, which is in their name, one is there at a time.
fn slots(evidence: &Evidence<'_>) -> Vec<Violation> {
    let mut by_slot: BTreeMap<(&str, &str), Vec<&Execution<'_>>> = BTreeMap::new();
    for execution in evidence.history.executions.values() {
        if let Some(schedule) = execution.schedule() {
            let slot = execution.object.name.rsplit('-').next().unwrap_or_default();
            by_slot.entry((schedule, slot)).or_default().push(execution);
        }
    }
    let mut found = Vec::new();
    for all in by_slot.values_mut() {
        all.sort_by_key(|execution| execution.created);
        for pair in all.windows(2) {
            let [one, next] = pair else { continue };
            if one.exists_at(next.created) {
                let text = format!("{} was made for a slot that {} was made for", next.object, one.object);
                found.push(Finding::new(10, "slot-twice", text).about(next, next.created));
            }
        }
    }
    found
}

fn judge_write(evidence: &Evidence<'_>, schedule: &Schedule<'_>, before: &Value, written: &Written<'_>) -> Vec<Flaw> {
    let after = written.status;
    let count = |status: &Value| status["failureCount"].as_u64().unwrap_or(0);
    let (was, is) = (count(before), count(after));
    if before["plannedFrom"] != after["plannedFrom"] {
        let begins = (is != 0).then(|| ("count", format!("says failureCount {is} where its plan begins anew")));
        return begins.into_iter().collect();
    }
    let mut flaws = Vec::new();
    let recorded = last_run(after).filter(|(_, outcome)| outcome.is_some() && last_run(before) != last_run(after));
    let expected = match recorded {
        Some((_, Some(outcome))) if is_in_plan(after) => fold(outcome, was),
        _ => was,
    };
    if is != expected {
        let outcome = recorded.and_then(|(_, outcome)| outcome).unwrap_or("no new outcome");
        flaws.push(("count", format!("says failureCount {is} after {was} and {outcome}: it is {expected}")));
    }
    if let (Some((_, Some(known))), Some((slot, now))) = (last_run(before), last_run(after))
        && last_run(before).is_some_and(|(before, _)| before == slot)
        && now != Some(known)
    {
        flaws.push(("outcome", format!("says another outcome of the slot {slot} than {known}, which it had recorded")));
    }
    let slots = |status: &Value| seconds(&status["lastRun"], "/slot");
    if slots(before).zip(slots(after)).is_some_and(|(was, is)| is < was) {
        flaws.push(("slot", "names an earlier slot than before, in one plan".to_owned()));
    }
    if let Some((_, Some(outcome))) = recorded {
        flaws.extend(judge_outcome(evidence, schedule, &after["lastRun"], outcome, written.at));
    }
    flaws
}

/// Tells whether the slot of the last run is of the plan that the status tells of: no earlier one counts.
fn is_in_plan(status: &Value) -> bool {
    seconds(status, "/plannedFrom") < seconds(&status["lastRun"], "/slot")
}

/// Returns the count after an outcome.
fn fold(outcome: &str, count: u64) -> u64 {
    match outcome {
        "Completed" => 0,
        "Failed" | "Refused" => count + 1,
        _ => count,
    }
}

/// The outcome is that of the child, as it was when that was written.
fn judge_outcome(
    evidence: &Evidence<'_>,
    schedule: &Schedule<'_>,
    run: &Value,
    outcome: &str,
    at: Moment,
) -> Option<Flaw> {
    let name = text(run, "/name")?;
    let of_it = |execution: &&Execution<'_>| {
        execution.object.name == name && execution.schedule() == Some(schedule.object.uid.as_str())
    };
    let child = evidence.history.executions.values().find(of_it)?;
    let is_there = child.exists_at(at);
    let wrong = |what: &str| Some(("outcome", format!("says {outcome} of {name}, which {what}")));
    match (outcome, phase(child.at(at))) {
        ("Deleted", _) if is_there => wrong("was there"),
        ("Deleted", _) | ("Completed", Some(Phase::Completed)) | ("Skipped", Some(Phase::Skipped)) => None,
        ("Failed" | "Cancelled" | "TooLate", Some(Phase::Failed)) => None,
        (_, phase) => wrong(&format!("was {}", phase.map_or("undecided", Phase::as_str))),
    }
}
