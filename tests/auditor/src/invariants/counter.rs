//! Invariant 8: the counter and `nextAllowedExecution` in a status follow from the history (section 7).
//!
//! The history is what was recorded before the status was written, except what its writer may not have seen. All
//! executions come from one watch, so the writer's view is the state at some moment between the version in the
//! precondition and the write.
//!
//! An execution that fails without holding the target (a refused create, or rule 0) may fail at the same moment as
//! another. The later number is then too low by one, permanently. Statuses from then on count both failures.

use serde_json::Value;
use wfe_api::Phase;

use super::Finding;
use crate::history::{Execution, Written, listed, phase};
use crate::moment::{Seconds, seconds};
use crate::record::{End, Ledger, Past};
use crate::report::{Counts, Moment, Violation};
use crate::section_6::Reading;
use crate::section_7::next_allowed;
use crate::{Evidence, Policy};

/// A status is judged again when one of these fields changes.
const FIELDS: [&str; 3] = ["phase", "consecutiveFailures", "nextAllowedExecution"];

/// The rule that a status breaks, and a clause that completes "it".
type Flaw = (&'static str, String);

/// What a status must say about consecutive failures.
enum Counted {
    /// There must be no counter.
    Not,
    /// The counter must be 0, whatever the history.
    Reset,
    /// The counter must be the number that was recorded at this time.
    Inherited(Seconds),
    /// The counter must be the number that was recorded at the time of the execution's own failure, plus one.
    OneMore(Seconds),
}

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let Some(policy) = &evidence.options.policy else { return Vec::new() };
    let ledgers = Ledger::open(&evidence.history);
    let mut found = Vec::new();
    for execution in evidence.history.executions.values() {
        let ledger = execution.target.as_ref().map(|target| ledgers.get(target));
        let mut before = &Value::Null;
        for written in &execution.written {
            let is_new = FIELDS.iter().any(|field| written.status[field] != before[field]);
            // Changes after the end are judged by invariant 3.
            let is_judged = is_new && !phase(before).is_some_and(Phase::is_terminal);
            before = written.status;
            if !is_judged || evidence.authors.is_strangers(written.at) {
                continue;
            }
            let flaw = match ledger {
                // An execution without a target is not in the history of any target.
                None => judge_numbers(written.status, None),
                Some(None) => None, // its history is unknown
                Some(Some(ledger)) => {
                    let oldest = ledger.oldest_view(&evidence.history, execution, written.at);
                    judge_write(policy, ledger, execution, written, oldest, counts)
                }
            };
            found.extend(flaw.map(|(rule, what)| {
                Finding::new(8, rule, format!("{} {what}", execution.object)).about(execution, written.at)
            }));
        }
    }
    found
}

fn judge_write(
    policy: &Policy,
    ledger: &Ledger<'_>,
    execution: &Execution<'_>,
    written: &Written<'_>,
    oldest: Moment,
    counts: &mut Counts,
) -> Option<Flaw> {
    let views = ledger.views(oldest, written.at);
    // For each view, the number of consecutive failures, and the number of those for which the next execution waits.
    let on_record = |at: Seconds| {
        let read = move |view: &Moment| {
            let record = ledger.at(*view);
            let reading = Reading::of(&record, policy, at);
            (reading.row_length(), reading.waits_for() + 1)
        };
        views.iter().map(read)
    };
    let allowed: Vec<(u64, u64)> = match what_counts(execution, written)? {
        Counted::Not => return judge_numbers(written.status, None),
        Counted::Reset => vec![(0, 0)],
        Counted::Inherited(at) => on_record(at).collect(),
        Counted::OneMore(at) => on_record(at).map(|(count, waits)| (count + 1, waits)).collect(),
    };
    let numbers: Vec<u64> = allowed.iter().map(|(count, _)| *count).collect();
    if numbers.iter().any(|count| *count > 0) {
        counts.add("counters");
    }
    judge_numbers(written.status, Some(&numbers)).or_else(|| judge_next(policy, execution, written, &allowed))
}

/// Returns what a status must show. `None` if its form or phase is wrong, which invariant 3 judges.
fn what_counts(execution: &Execution<'_>, written: &Written<'_>) -> Option<Counted> {
    Some(match phase(written.status) {
        // The counter appears with the commit. A Skipped execution has no commit.
        None | Some(Phase::Pending | Phase::Skipped) => execution.commits.is_empty().then_some(Counted::Not)?,
        Some(Phase::Running | Phase::Completed) if execution.commits.is_empty() => return None,
        Some(Phase::Running) => Counted::Inherited(began(execution, written.status)?),
        Some(Phase::Completed | Phase::Failed) => {
            let past = Past::read(execution, written.at)?;
            match past.end {
                End::Completed => Counted::Reset,
                End::ExecutionFailure | End::SharedFailure | End::Uncounted => Counted::Inherited(past.failed?),
                End::PreExecutionFailure => Counted::OneMore(past.failed?),
            }
        }
    })
}

/// Returns the beginning of the last attempt, because a status counts anew at each commit.
fn began(execution: &Execution<'_>, status: &Value) -> Option<Seconds> {
    let of_attempts = listed(status).iter().rev().filter(|_| execution.retry.is_some());
    let mut began = of_attempts.filter_map(|attempt| seconds(attempt, "/startTime"));
    began.next().or_else(|| seconds(status, "/startTime"))
}

/// Checks that the counter is one of the allowed numbers. With `None` it must be absent.
fn judge_numbers(status: &Value, allowed: Option<&[u64]>) -> Option<Flaw> {
    let said = &status["consecutiveFailures"];
    let is_right = allowed.map_or(said.is_null(), |allowed| said.as_u64().is_some_and(|said| allowed.contains(&said)));
    let wanted = match allowed {
        None => "no counter is to be shown".to_owned(),
        Some(allowed) => {
            let mut allowed = allowed.to_vec();
            allowed.sort_unstable();
            allowed.dedup();
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            format!("the history says {}", allowed.join(" or "))
        }
    };
    (!is_right).then(|| ("counter", format!("says consecutiveFailures {said}, and {wanted}")))
}

/// Judges `nextAllowedExecution` by those views that lead to the number in the status. Only a pre-execution failure has
/// this field. If the failure exhausts its target, the field is absent, because no time ends the block.
fn judge_next(
    policy: &Policy,
    execution: &Execution<'_>,
    written: &Written<'_>,
    allowed: &[(u64, u64)],
) -> Option<Flaw> {
    let said = &written.status["nextAllowedExecution"];
    let wrong = |wanted: String| Some(("next-allowed", format!("says nextAllowedExecution {said}, and {wanted}")));
    let past = Past::read(execution, written.at).filter(Past::backs_off);
    let Some((failed, number)) = past.and_then(|past| past.failed.zip(written.status["consecutiveFailures"].as_u64()))
    else {
        return if said.is_null() { None } else { wrong("it makes nobody wait".to_owned()) };
    };
    let limit = u64::from(policy.max_consecutive_failures);
    let exhausts = limit > 0 && number >= limit && written.status.pointer("/failureDetails/sharedOutage").is_none();
    if exhausts {
        return if said.is_null() { None } else { wrong("it exhausts its target".to_owned()) };
    }
    let next = seconds(written.status, "/nextAllowedExecution");
    let mut wanted = Vec::new();
    for (_, waits) in allowed.iter().filter(|(count, _)| *count == number) {
        let (earliest, latest) = next_allowed(policy, *waits, failed);
        if next.is_some_and(|next| (earliest..=latest).contains(&next)) {
            return None;
        }
        wanted.push(format!("failure {waits} in a row is to wait {} to {} s", earliest - failed, latest - failed));
    }
    wanted.dedup();
    wrong(wanted.join(", or "))
}
