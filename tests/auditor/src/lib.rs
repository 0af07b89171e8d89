//! Judges what was seen to happen by the invariants of the specification (section 16).
//!
//! ```text
//!  watch (JSON lines) ──► changes ──► history: lives of executions, runs, pods ──┐
//!                                                                                ├──► invariants ──► Report
//!  audit log ───────────► requests ─► authors: who wrote what ───────────────────┘
//! ```
//!
//! It is a second, independent reading: it shares with the operator the names of targets and chains, labels, closed
//! words and the spelling of durations, and none of its rules: those of sections 6, 7 and 11 are written anew
//! (`section_6`, `section_7`, `section_11`), the first two to be read from a `record` of each target.
//! All changes are ordered by resourceVersion, so the order of the lines means nothing. It has no client and no clock.
//!
//! # What it judges
//! | invariant | rules |
//! |---|---|
//! | 1 | `overlap`: two released, unfinished runs on a target. `drain`: a run released while something of an earlier
//! one is unfinished. `held`: one released while another execution, which has a retry policy and had a run released,
//! was Running and its run there |
//! | 2 | `second-run`: two released runs of an execution; of one with a retry policy, a released run that not exactly
//! one attempt names, or released before the end of the attempt before it was recorded. `ran-after-all`: one that was
//! Skipped, or failed before it had a run, has a released run. `steps-ran`: steps ran of one that says that nothing
//! did, or of an attempt that says so |
//! | 2 | `attempt-many`: more attempts or released runs than `maxAttempts`. `attempt-early`: an attempt begun before
//! its `notBefore`. `attempt-after`: one added or begun after the end, a cancellation, the begin of a deletion or
//! `maxDuration`, or after an attempt that succeeded, ran (without `retryExecutionFailures`) or failed by its
//! configuration (without `retryWhen`). `attempt-delay`: a `delay` that is not of the formula, a `notBefore` that is
//! not that long after the write, or either written anew |
//! | 3 | `phase`, `final`, `fixed`, `shape`: what a status may become, and what stands in it |
//! | 4 | `unusable-target`, `busy`, `order`, `previous-execution-failed`, `exhausted-retries`, `backoff`, `cooldown`: a
//! commit while rules 0 to 5 of section 6 forbid it; that of a further attempt is judged by rules 0 and 1 and by what
//! its own execution has left |
//! | 5 | `no-fact`, `wrong-fact`, `earlier-rule`: a skip without what makes its rule decide, that names it wrongly, or
//! while a rule before it decides |
//! | 6 | `undecided`, `leftover`, `abandoned`, `unrecorded`: what is left when faults have stopped
//! ([`Options::settled`]) |
//! | 7 | by the audit log: `foreign`, `create`, `child`, `patch`, `release`, `status`, `delete`, `deleted-early`,
//! `deleted-committed`, `deleted-needed`, `removed-early` |
//! | 8 | `counter`, `next-allowed`: what section 7 says of the failures in a row |
//! | 8 | `commit`, `number`, `order`, `uncommitted`, `outcome`: the chain and its numbers |
//! | 10 | `slot-twice`: two executions at once for a slot of a schedule |
//! | 11 | `child-leaving`, `child-suspended`, `child-plan`, `child-used`, `child-unrecorded`, `child-at-work`,
//! `child-early`, `child-late`, `child-busy`, `child-blocked`, `child-paused`, `child-triage-paused`: a child made
//! while section 12.6 forbids it on every view that is not older than [`Options::lag`] |
//! | 12 | `failure-count`: a count that is not the fold of the outcomes. `outcome`, `outcome-time`, `outcome-twice`,
//! `outcome-order`, `outcome-lost`: an outcome that is not what became of the child, is recorded twice, out of order or
//! never. `plan-anew`: a plan that begins anew for no reason |
//! | 13 | `triage-analyst`, `triage-idle`, `triage-early`, `triage-of`, `triage-cooldown`, `triage-many`: a triage that
//! begins while section 13.2 forbids it.
//! `triage-fixed`, `triage-over`: a record that changes after its end, is lost, or outlives its plan. `verdict`,
//! `adjusted`: an effect that the verdict has not, or that the schedule does not allow. `analyst`: an execution made
//! for no triage that awaits one |
//! | 15 | `spec`: an operator changed the spec of a schedule |
//!
//! # What it cannot judge
//! - Rules 2 to 5 of section 6 and the counter, where the policy is not known ([`Options::policy`]), and on targets
//!   where executions of a namespace take part that was not recorded. Waiting too long is no violation either.
//! - What `retryWhen` and `stopWhen` answer, and whether a create was really refused for good.
//! - Which of the last moments before a write its writer has seen: what some view allows that it may rest on is right.
//! - Which slot of a schedule is due, circuits (section 13.5), and which failures are shared: `wfe_core::check` judges
//!   each decision of the simulation by these rules.
//! - What an analyst has said, a pause of everything, and whether a child was really refused.
//! - Clocks: a time that an operator wrote is taken for the time at which it decided.
//! - That a bad object harms only itself (invariant 9): nothing tells a bad object from one that waits.
//! - What a live read answered: a read leaves no trace but its request. A skip is judged by whether its fact was true.
//! - Drain, where the recording has no TaskRuns and pods; who wrote what, where there is no audit log.
//! - A person's acts are told from the operator's only by the audit log: what others wrote into a status is not held
//!   against the operator, but a run that somebody else released counts for invariants 1 and 2.

mod authors;
mod count;
mod history;
pub mod input;
mod invariants;
mod moment;
mod policy;
mod record;
pub mod report;
mod section_11;
mod section_6;
mod section_7;
pub mod silence;

use std::collections::BTreeSet;
use std::time::Duration;

pub use input::{Change, ChangeType, InputError, Request, read_changes, read_requests};
pub use policy::{Policy, Scope};
pub use report::{Counts, Moment, ObjectRef, Report, Requirement, Violation, When};

use authors::Authors;
use history::History;

/// What the recording does not say by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// User names of the operators, as the audit log has them.
    pub operators: BTreeSet<String>,
    /// Faults have stopped and all has had the time to come to rest, so that nothing may be left undone.
    pub settled: bool,
    /// The policy of all operators. `None`: it is not known, or they had several, and nothing is judged by it.
    pub policy: Option<Policy>,
    /// How far the view of an operator may have been behind when it made a child of a schedule, with the time that the
    /// request took.
    pub lag: Duration,
}

/// All that the invariants are judged by.
struct Evidence<'a> {
    history: History<'a>,
    authors: Authors<'a>,
    requests: &'a [Request],
    options: &'a Options,
}

/// Judges a recording. `requests` may be empty: then invariant 7 is not judged.
pub fn audit(changes: &[Change], requests: &[Request], options: &Options) -> Report {
    let mut history = History::read(changes);
    history.compare(requests);
    let evidence = Evidence { history, authors: Authors::read(requests, options), requests, options };
    let mut counts = count::count(&evidence.history);
    let violations = invariants::judge(&evidence, &mut counts);
    let mut gaps = evidence.history.gaps.clone();
    gaps.extend(evidence.authors.gaps());
    gaps.sort();
    gaps.dedup();
    Report { counts, violations, gaps, unjudged: unjudged(&evidence) }
}

fn unjudged(evidence: &Evidence<'_>) -> Vec<String> {
    let Evidence { history, requests, options, .. } = evidence;
    let elsewhere = history.runs.values().filter(|run| history.owner(run).is_none() && !history.covers_owner_of(run));
    let elsewhere: Vec<String> = elsewhere.map(|run| run.object.to_string()).collect();
    [
        (requests.is_empty() || options.operators.is_empty())
            .then(|| "what the operator wrote (invariant 7): no audit log, or no operator is named".to_owned()),
        (!history.shows_pieces && history.runs.values().any(|run| run.released.is_some()))
            .then(|| "draining (invariant 1): the recording has no TaskRuns and no pods".to_owned()),
        (!options.settled)
            .then(|| "whether all ends (invariant 6): the recording is not said to have settled".to_owned()),
        options.policy.is_none().then(|| "rules 2 to 5 and the counter (invariants 4, 5 and 8): no policy".to_owned()),
        (!elsewhere.is_empty()).then(|| {
            format!(
                "commits to {}, and the history of these targets: the owners' namespaces were not recorded",
                elsewhere.join(", ")
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
