//! The invariants of section 16 that can be judged from outside, in order. This list defines what the auditor judges.

mod attempts;
mod chain;
mod counter;
mod exclusion;
mod facts;
mod forbidden;
mod limits;
mod phases;
mod schedules;
mod settled;
mod writes;

use std::collections::BTreeMap;

use crate::Evidence;
use crate::history::{Execution, Run};
use crate::report::{Counts, Moment, ObjectRef, Violation, When};

/// Judges one invariant: returns its violations, and counts the judged cases.
type Invariant = fn(&Evidence<'_>, &mut Counts) -> Vec<Violation>;

const INVARIANTS: &[Invariant] = &[
    exclusion::judge,
    attempts::judge,
    phases::judge,
    forbidden::judge,
    facts::judge,
    settled::judge,
    writes::judge,
    counter::judge,
    chain::judge,
    schedules::judge,
    limits::judge,
];

/// Judges all invariants. The violations of each invariant are ordered by time.
pub(crate) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    INVARIANTS
        .iter()
        .flat_map(|invariant| {
            let mut found = invariant(evidence, counts);
            found.sort_by(|a, b| (order(a), a.rule, &a.objects, &a.text).cmp(&(order(b), b.rule, &b.objects, &b.text)));
            found
        })
        .collect()
}

fn order(violation: &Violation) -> (u64, &str) {
    match violation.at.first() {
        Some(When::Change(moment)) => (moment.resource_version, ""),
        Some(When::Request { received_at, resource_version }) => (resource_version.unwrap_or(u64::MAX), received_at),
        None => (u64::MAX, ""),
    }
}

/// A violation under construction.
struct Finding {
    invariant: u8,
    rule: &'static str,
    text: String,
}

impl Finding {
    fn new(invariant: u8, rule: &'static str, text: String) -> Self {
        Self { invariant, rule, text }
    }

    /// Completes a violation that is about an execution.
    fn about(self, execution: &Execution<'_>, at: Moment) -> Violation {
        self.on(execution.shown_target(), vec![execution.object.clone()], &[at])
    }

    fn on(self, target: String, objects: Vec<ObjectRef>, at: &[Moment]) -> Violation {
        let at = at.iter().copied().map(When::from).collect();
        Violation { invariant: self.invariant, rule: self.rule, target, objects, at, text: self.text }
    }
}

/// Groups runs by the execution that owns them. The runs of each are ordered by creation.
fn runs_by_owner<'e, 'a>(evidence: &'e Evidence<'a>) -> BTreeMap<&'a str, Vec<&'e Run<'a>>> {
    let mut by_owner: BTreeMap<&str, Vec<&Run<'_>>> = BTreeMap::new();
    for run in evidence.history.runs.values() {
        by_owner.entry(run.owner).or_default().push(run);
    }
    for runs in by_owner.values_mut() {
        runs.sort_by_key(|run| run.created);
    }
    by_owner
}
