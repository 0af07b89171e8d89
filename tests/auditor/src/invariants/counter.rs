//! Invariant 8: a status derives its counter and `nextAllowedExecution` from the history as section 7 says.
//!
//! The history is what was on record when the status was written, less what its writer may not have seen. One watch
//! delivers all executions, so the writer's view is of a moment between its precondition's version and the write.
//!
//! An execution that fails without holding the target (a refused create, rule 0) may fail at the same moment as
//! another. The later number is then one too low, and stays so. Later statuses count both failures.
//! count once from there on.

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

/// A status that changes one of these fields is judged anew.
const FIELDS: [&str; 3] = ["phase", "consecutiveFailures", "nextAllowedExecution"];

/// What is wrong with a status: the rule, and a clause that completes "it".
type Flaw = (&'static str, String);

/// What a status must say about the failures in a row.
enum Counted {
    /// It shows no counter.
    Not,
    /// 0, whatever the history.
    Reset,
    /// The number on record at a time.
    Inherited(Seconds),
    /// The number on record at the time of its own failure, plus one.
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
            // Invariant 3 judges changes after the end.
            let is_judged = is_new && !phase(before).is_some_and(Phase::is_terminal);
            before = written.status;
            if !is_judged || evidence.authors.is_strangers(written.at) {
                continue;
            }
            let flaw = match ledger {
                // An execution without a target counts for no target.
                None => judge_numbers(written.status, None),
                Some(None) => None, // nobody knows its history
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
    // For each view: the number of failures in a row, and the number that the next execution waits for.
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

/// Returns what a status must show. `None` if its shape or phase is wrong, which invariant 3 judges.
fn what_counts(execution: &Execution<'_>, written: &Written<'_>) -> Option<Counted> {
    Some(match phase(written.status) {
        // The counter appears with the commit. A Skipped execution never commits.
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

/// Returns when the last attempt began, because a status counts anew at each commit.
fn began(execution: &Execution<'_>, status: &Value) -> Option<Seconds> {
    let of_attempts = listed(status).iter().rev().filter(|_| execution.retry.is_some());
    let mut began = of_attempts.filter_map(|attempt| seconds(attempt, "/startTime"));
    began.next().or_else(|| seconds(status, "/startTime"))
}

/// Judges the counter: it is one of the allowed numbers. `None`: it must be absent.
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

/// Judges `nextAllowedExecution` by the views that give the number in the status. Only a pre-execution failure has this
/// field. A failure that exhausts its target lacks it, because no time lifts that.
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
