//! Judges a recording by the invariants of the specification (section 16).
//!
//! ```text
//!  watch (JSON lines) ──► changes ──► history: lives of executions, runs, pods ──┐
//!                                                                                ├──► invariants ──► Report
//!  audit log ───────────► requests ─► authors: who wrote what ───────────────────┘
//! ```
//!
//! The auditor is a second, independent implementation of these rules. It shares with the operator the names of targets
//! and chains, labels, enumerations such as phases and reasons, and the spelling of durations. It shares no rule. The
//! rules of sections 6, 7 and 11 are written anew (`section_6`, `section_7`, `section_11`). The first two of these
//! modules read a `record` of each target. The auditor has no client and no clock. It orders all changes by
//! resourceVersion, so the lines may be in any order.
//!
//! # What it judges
//! The rules by invariant. The text after the name of a rule describes its violation:
//!
//! - 1, `overlap`: two released, unfinished runs on a target. `drain`: a run is released while an object of an earlier
//!   run is unfinished. `held`: a run is released while another execution holds the target. An execution holds it if it
//!   has a retry policy, is Running, had a run released before, and its run exists.
//! - 2, `second-run`: two released runs of an execution. With a retry policy, a released run must be named by exactly
//!   one attempt, and released after the end of the previous attempt was recorded. `ran-after-all`: a released run of
//!   an execution that was Skipped, or that failed before it had a run. `steps-ran`: steps ran although their
//!   execution, or the attempt, says that nothing ran.
//! - 2, `attempt-many`: more attempts or released runs than `maxAttempts`. `attempt-early`: an attempt begins before
//!   its `notBefore`. `attempt-after`: an attempt is added or begins after the end, a cancellation, the beginning of a
//!   deletion, or `maxDuration`. Also: any attempt after one that succeeded, ran (without `retryExecutionFailures`) or
//!   failed by its configuration (without `retryWhen`). `attempt-delay`: a `delay` does not follow the formula, a
//!   `notBefore` is not that long after the write, or either is changed.
//! - 3, `phase`, `final`, `fixed`, `shape`: a status changes in a forbidden way, or has the wrong fields.
//! - 4, `unusable-target`, `busy`, `order`, `previous-execution-failed`, `exhausted-retries`, `backoff`, `cooldown`: a
//!   commit while rules 0 to 5 of section 6 forbid it. For a further attempt, only rules 0 and 1 apply. Remains of the
//!   execution's own earlier runs also forbid it.
//! - 5, `no-fact`: a skip without the fact that makes its rule apply. `wrong-fact`: a skip that describes the fact
//!   wrongly. `earlier-rule`: a skip although an earlier rule decides.
//! - 6, `undecided`, `leftover`, `abandoned`, `unrecorded`: something is left after the faults have stopped
//!   ([`Options::settled`]).
//! - 7, in the audit log: `foreign`, `create`, `child`, `patch`, `release`, `status`, `delete`, `deleted-early`,
//!   `deleted-committed`, `deleted-needed`, `removed-early`.
//! - 8, `counter`, `next-allowed`: a status disagrees with section 7 about consecutive failures.
//! - 8, `commit`, `number`, `order`, `uncommitted`, `outcome`: faults of the chain and its numbers.
//! - 10, `slot-twice`: two executions at the same time for a slot of a schedule.
//! - 11, `child-leaving`, `child-suspended`, `child-plan`, `child-used`, `child-unrecorded`, `child-at-work`,
//!   `child-early`, `child-late`, `child-busy`, `child-blocked`, `child-paused`, `child-triage-paused`: a child that
//!   section 12.6 forbids on every view that is not older than [`Options::lag`].
//! - 12, `failure-count`: a count that does not follow from the outcomes. `outcome`, `outcome-time`, `outcome-twice`,
//!   `outcome-order`, `outcome-lost`: a recorded outcome is not that of the child, or is recorded twice, out of order
//!   or never. `plan-anew`: a plan begins anew for no reason. `plan-phase`: an edit of the template moves the slots.
//! - 13, `triage-analyst`, `triage-idle`, `triage-early`, `triage-of`, `triage-cooldown`, `triage-many`: a triage
//!   begins while section 13.2 forbids it. `triage-fixed`, `triage-over`: a record changes after its end, is lost, or
//!   outlives its plan. `verdict`, `adjusted`: an effect that does not follow from the verdict, or that the schedule
//!   does not allow. `analyst`: an analyst is made although no triage awaits one.
//! - 15, `spec`: an operator changed the spec of a schedule.
//! - 17, `limit`: more targets with a released, unfinished run than a limit in [`Policy::limits`] allows.
//!
//! # What it cannot judge
//! - Rules 2 to 5 of section 6 and the counter, if the policy is unknown ([`Options::policy`]), or for targets of
//!   executions whose namespace was not recorded. An execution that waits too long is not a violation either.
//! - The values of `retryWhen` and `stopWhen`, and whether the API server really refused a create permanently.
//! - Which of the last changes before a write its writer had seen. A write is right if some possible view allows it.
//! - Which slot of a schedule is due, circuits (section 13.5), and which failures are shared. In the simulation,
//!   `wfe_core::check` judges each decision by these rules.
//! - The report of an analyst, a pause of everything, and whether a child was really refused.
//! - Clocks: the auditor assumes that an operator decided at the time of its write.
//! - Whether a bad object harms only itself (invariant 9), because a bad object looks like one that waits.
//! - The answer to a live read, because a read is recorded only as a request. A skip is judged by whether its fact was
//!   true.
//! - Draining, if the recording has no TaskRuns and pods. The authors of writes, without an audit log.
//! - The acts of a person, without an audit log. The operator is not blamed for what others have written into a status.
//!   But a run that a person released counts for invariants 1 and 2.

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
pub use policy::{Limit, Limits, Policy, Scope};
pub use report::{Counts, Moment, ObjectRef, Report, Requirement, Violation, When};

use authors::Authors;
use history::History;

/// What the auditor must know in addition to the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The user names of the operators, as in the audit log.
    pub operators: BTreeSet<String>,
    /// Whether faults have stopped and everything had time to come to rest. If so, nothing may be left undone.
    pub settled: bool,
    /// The policy of all operators; `None` if it is unknown or differs, or if a clock is wrong. Rules that need the
    /// policy are then not judged.
    pub policy: Option<Policy>,
    /// How old an operator's view may be when it makes a child of a schedule, including the duration of the request.
    pub lag: Duration,
}

/// The input of the invariants.
struct Evidence<'a> {
    history: History<'a>,
    authors: Authors<'a>,
    requests: &'a [Request],
    options: &'a Options,
}

/// Judges a recording. If `requests` is empty, invariant 7 is not judged.
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
