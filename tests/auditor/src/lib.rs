//! Judges a recording of what happened by the invariants of the specification (section 16).
//!
//! ```text
//!  watch (JSON lines) ──► changes ──► history: lives of executions, runs, pods ──┐
//!                                                                                ├──► invariants ──► Report
//!  audit log ───────────► requests ─► authors: who wrote what ───────────────────┘
//! ```
//!
//! The auditor is a second, independent reading. It shares with the operator the names of targets and chains, labels,
//! closed words and the spelling of durations, but no rule. The rules of sections 6, 7 and 11 are written anew
//! (`section_6`, `section_7`, `section_11`). The first two modules read a `record` of each target. The auditor has no
//! client and no clock. It orders all changes by resourceVersion, so the order of the lines means nothing.
//!
//! # What it judges
//! By invariant, with the names of the rules:
//!
//! - 1, `overlap`: two released, unfinished runs on a target. `drain`: a run released while something of an earlier run
//!   is unfinished. `held`: a run released while another execution with a retry policy is Running, had a run released
//!   before, and its run exists.
//! - 2, `second-run`: two released runs of an execution. With a retry policy: a released run that not exactly one
//!   attempt names, or that was released before the end of the attempt before was recorded. `ran-after-all`: a released
//!   run of an execution that was Skipped, or that failed before it had a run. `steps-ran`: steps ran although their
//!   execution, or the attempt, says that nothing ran.
//! - 2, `attempt-many`: more attempts or released runs than `maxAttempts`. `attempt-early`: an attempt begun before its
//!   `notBefore`. `attempt-after`: an attempt added or begun after the end, a cancellation, the begin of a deletion or
//!   `maxDuration`. The same after an attempt that succeeded, ran (without `retryExecutionFailures`) or failed by its
//!   configuration (without `retryWhen`). `attempt-delay`: a `delay` that does not follow the formula, a `notBefore`
//!   that is not that long after the write, or a change of either.
//! - 3, `phase`, `final`, `fixed`, `shape`: what a status may become, and which fields it has.
//! - 4, `unusable-target`, `busy`, `order`, `previous-execution-failed`, `exhausted-retries`, `backoff`, `cooldown`: a
//!   commit while rules 0 to 5 of section 6 forbid it. A further attempt is judged by rules 0 and 1, and by what its
//!   own execution has left.
//! - 5, `no-fact`: a skip without the fact that makes its rule decide. `wrong-fact`: a skip that describes the fact
//!   wrongly. `earlier-rule`: a skip while an earlier rule decides.
//! - 6, `undecided`, `leftover`, `abandoned`, `unrecorded`: what is left after faults have stopped
//!   ([`Options::settled`]).
//! - 7, by the audit log: `foreign`, `create`, `child`, `patch`, `release`, `status`, `delete`, `deleted-early`,
//!   `deleted-committed`, `deleted-needed`, `removed-early`.
//! - 8, `counter`, `next-allowed`: what section 7 says about failures in a row.
//! - 8, `commit`, `number`, `order`, `uncommitted`, `outcome`: the chain and its numbers.
//! - 10, `slot-twice`: two executions at once for a slot of a schedule.
//! - 11, `child-leaving`, `child-suspended`, `child-plan`, `child-used`, `child-unrecorded`, `child-at-work`,
//!   `child-early`, `child-late`, `child-busy`, `child-blocked`, `child-paused`, `child-triage-paused`: a child that
//!   section 12.6 forbids on every view that is not older than [`Options::lag`].
//! - 12, `failure-count`: a count that is not the fold of the outcomes. `outcome`, `outcome-time`, `outcome-twice`,
//!   `outcome-order`, `outcome-lost`: an outcome that is not what became of the child, or that is recorded twice, out
//!   of order or never. `plan-anew`: a plan that begins anew for no reason. `plan-phase`: an edit of the template that
//!   moves the slots.
//! - 13, `triage-analyst`, `triage-idle`, `triage-early`, `triage-of`, `triage-cooldown`, `triage-many`: a triage that
//!   begins while section 13.2 forbids it. `triage-fixed`, `triage-over`: a record that changes after its end, is lost,
//!   or outlives its plan. `verdict`, `adjusted`: an effect that the verdict does not have, or that the schedule does
//!   not allow. `analyst`: an execution made for no triage that awaits one.
//! - 15, `spec`: an operator changed the spec of a schedule.
//! - 17, `limit`: more targets with a released, unfinished run than a limit of [`Policy::limits`] allows.
//!
//! # What it cannot judge
//! - Rules 2 to 5 of section 6 and the counter without a known policy ([`Options::policy`]), or on targets of
//!   executions whose namespace was not recorded. Waiting too long is no violation either.
//! - What `retryWhen` and `stopWhen` evaluate to, and whether the API server really refused a create for good.
//! - Which of the last moments before a write its writer has seen. A write is right if some possible view allows it.
//! - Which slot of a schedule is due, circuits (section 13.5), and which failures are shared. `wfe_core::check` judges
//!   each decision of the simulation by these rules.
//! - What an analyst has reported, a pause of everything, and whether a child was really refused.
//! - Clocks: the auditor assumes that an operator decided at the time that it wrote.
//! - That a bad object harms only itself (invariant 9): a bad object looks like one that waits.
//! - The answer to a live read: a read leaves no trace but its request. A skip is judged by whether its fact was true.
//! - Drain, if the recording has no TaskRuns and pods; and the authors of writes without an audit log.
//! - Only the audit log tells a person's acts from the operator's. What others wrote into a status is not held against
//!   the operator, but a run that a person released counts for invariants 1 and 2.

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

/// What the auditor must know besides the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// User names of the operators, as the audit log has them.
    pub operators: BTreeSet<String>,
    /// Faults have stopped, and everything has had time to come to rest. Nothing may be left undone.
    pub settled: bool,
    /// The policy of all operators. `None`: it is unknown, or they had several. What needs it is then not judged.
    pub policy: Option<Policy>,
    /// How old the view of an operator may have been when it made a child of a schedule, including the time of the
    /// request.
    pub lag: Duration,
}

/// Everything that the invariants are judged by.
struct Evidence<'a> {
    history: History<'a>,
    authors: Authors<'a>,
    requests: &'a [Request],
    options: &'a Options,
}

/// Judges a recording. `requests` may be empty; invariant 7 is then not judged.
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
