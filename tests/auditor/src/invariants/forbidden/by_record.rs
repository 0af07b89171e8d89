//! Rules 2 to 5: what the record of the target forbids.
//!
//! The commit is judged by the record at the moment of its write. The operator decided on an earlier view, and a
//! precondition cannot cover other objects. A commit is therefore right if one of the views on which it may be based
//! allows it. There are few such views ([`Ledger::views`]). Two kinds of change may be missed between the oldest view
//! and the commit:
//! - A failure without a run: a refused create (section 5.7), or a failure before the turn. It costs one attempt that
//!   begins too early. A failure whose run was committed before is never missed, because the operator waits for its
//!   end.
//! - A deletion, which may make older history count again. Nothing orders it relative to the commit of another object.
//!
//! A clearance in the meantime only allows more runs.
//!
//! The further attempts of an execution are not judged here, because the execution holds its target since the first
//! attempt.

use super::Turn;
use crate::Evidence;
use crate::Policy;
use crate::history::Execution;
use crate::invariants::Finding;
use crate::moment::{Seconds, seconds};
use crate::record::{Ledger, Record};
use crate::report::{Counts, Violation};
use crate::section_6::Reading;

pub(super) fn judge(evidence: &Evidence<'_>, turns: &[Turn<'_, '_>], counts: &mut Counts) -> Vec<Violation> {
    let Some(policy) = &evidence.options.policy else { return Vec::new() };
    let ledgers = Ledger::open(&evidence.history);
    let mut found = Vec::new();
    let is_past_it = |turn: &Turn<'_, '_>| turn.run.is_some_and(|run| run.was_touched_by(turn.commit.at));
    for turn in turns.iter().filter(|turn| !turn.is_further() && !is_past_it(turn)) {
        // Without a startTime, the time of the commit is unknown, which invariant 3 reports.
        let ledger = turn.execution.target.as_ref().and_then(|target| ledgers.get(target));
        let now = seconds(turn.commit.status, "/startTime");
        if let (Some(ledger), Some(now)) = (ledger, now) {
            found.extend(judge_turn(evidence, policy, ledger, turn, now, counts));
        }
    }
    found
}

fn judge_turn(
    evidence: &Evidence<'_>,
    policy: &Policy,
    ledger: &Ledger<'_>,
    turn: &Turn<'_, '_>,
    now: Seconds,
    counts: &mut Counts,
) -> Option<Violation> {
    let (execution, at) = (turn.execution, turn.commit.at);
    let views = ledger.views(ledger.oldest_view(&evidence.history, execution, at), at);
    let (newest, older) = views.split_last()?;
    let record = ledger.at(*newest);
    let reading = Reading::of(&record, policy, now);
    count(&reading, &record, execution, counts);
    let ban = reading.ban(execution)?;
    if older.iter().any(|view| Reading::of(&ledger.at(*view), policy, now).ban(execution).is_none()) {
        counts.add("raced-turns");
        return None;
    }
    let (number, what) = (ban.rule.number(), ban.tell(now));
    let text = format!("{} got its turn, and rule {number} forbade it: {what}", execution.object);
    let because = ban.because.iter().map(|past| past.execution.object.clone());
    let objects = std::iter::once(execution.object.clone()).chain(because).collect();
    Some(Finding::new(4, ban.rule.word(), text).on(execution.shown_target(), objects, &[at]))
}

fn count(reading: &Reading<'_, '_>, record: &Record<'_>, asks: &Execution<'_>, counts: &mut Counts) {
    if !record.all.is_empty() {
        counts.add("turns-on-record");
    }
    if reading.is_cleared() {
        counts.add("turns-after-clearance");
    }
    if reading.lets_recover(asks) {
        counts.add("recoveries");
    }
}
