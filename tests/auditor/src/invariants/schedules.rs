//! Invariants 10 to 13 and 15: schedules.

mod children;
mod fold;
mod triage;

use std::collections::BTreeMap;

use super::Finding;
use crate::Evidence;
use crate::history::{ChildOf, Execution, Schedule, Written};
use crate::moment::Seconds;
use crate::report::{Counts, Moment, Violation};

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let mut found = slots_twice(evidence);
    found.extend(children::judge(evidence, counts));
    found.extend(fold::judge(evidence, counts));
    found.extend(triage::judge(evidence, counts));
    found.extend(specs(evidence));
    found
}

impl Finding {
    /// Completes a violation that is about a schedule.
    fn of_schedule(self, schedule: &Schedule<'_>, at: Moment) -> Violation {
        let target = schedule.last()["spec"]["template"]["spec"]["targetResource"].as_str().unwrap_or_default();
        self.on(target.to_owned(), vec![schedule.object.clone()], &[at])
    }
}

/// Lists the schedules' statuses that operators wrote. Each has the schedule, the status before, and the new status.
fn replaced<'j, 'e>(
    evidence: &'j Evidence<'e>,
) -> impl Iterator<Item = (&'j Schedule<'e>, &'j Written<'e>, &'j Written<'e>)> {
    let all = evidence.history.schedules.values().flat_map(|schedule| {
        let pairs = schedule.written.iter().zip(schedule.written.iter().skip(1));
        pairs.map(move |(before, after)| (schedule, before, after))
    });
    all.filter(|(.., after)| !evidence.authors.is_strangers(after.at))
}

/// Lists the views on which a write may be based, the newest first. The oldest is from the beginning of the lag.
fn views(evidence: &Evidence<'_>, write: Moment, changes: impl Iterator<Item = Moment>) -> Vec<Moment> {
    let lag = u64::try_from(evidence.options.lag.as_millis()).unwrap_or(u64::MAX);
    let since = write.at_ms.saturating_sub(lag);
    let mut all: Vec<Moment> = changes.filter(|at| *at < write).collect();
    all.sort_unstable();
    all.dedup();
    let mut views = match all.iter().rposition(|at| at.at_ms < since) {
        Some(oldest) => all.split_off(oldest),
        // The lag begins before the first change.
        None => std::iter::once(Moment { resource_version: 0, at_ms: 0 }).chain(all).collect(),
    };
    views.reverse();
    views
}

/// Lists the executions that were made for slots of a schedule.
fn made_for<'e, 'a>(
    evidence: &'e Evidence<'a>,
    schedule: &'e Schedule<'_>,
) -> impl Iterator<Item = (Seconds, &'e Execution<'a>)> {
    let uid = schedule.object.uid.as_str();
    let slot = move |child: ChildOf<'_>| (child.schedule == uid).then_some(child.slot);
    evidence.history.executions.values().filter_map(move |it| Some((it.child.and_then(slot)?, it)))
}

/// Invariant 10: at any time, at most one execution existed for a slot. The names do not matter.
fn slots_twice(evidence: &Evidence<'_>) -> Vec<Violation> {
    let mut by_slot: BTreeMap<(&str, Seconds), Vec<&Execution<'_>>> = BTreeMap::new();
    for execution in evidence.history.executions.values() {
        if let Some(ChildOf { schedule, slot }) = execution.claim.or(execution.child) {
            by_slot.entry((schedule, slot)).or_default().push(execution);
        }
    }
    let mut found = Vec::new();
    for executions in by_slot.values_mut() {
        executions.sort_by_key(|it| it.created);
        for pair in executions.windows(2) {
            if let [first, second] = pair
                && first.exists_at(second.created)
            {
                let text = format!("{} was made for the slot of {}, which was there", second.object, first.object);
                let objects = vec![second.object.clone(), first.object.clone()];
                let at = [second.created, first.created];
                found.push(Finding::new(10, "slot-twice", text).on(second.shown_target(), objects, &at));
            }
        }
    }
    found
}

/// Invariant 15: no operator changes the spec of a schedule.
fn specs(evidence: &Evidence<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for schedule in evidence.history.schedules.values() {
        for pair in schedule.versions.windows(2) {
            if let [(_, before), (at, after)] = pair
                && before["spec"] != after["spec"]
                && evidence.authors.is_operators(*at)
            {
                let text = format!("an operator changed the spec of {}", schedule.object);
                found.push(Finding::new(15, "spec", text).of_schedule(schedule, *at));
            }
        }
    }
    found
}
