//! Invariant 4: no execution gets its turn while section 6 forbids it. The true state decides, not an operator's view.
//!
//! Each rule judges one commit. The operator's view may be behind. Rules 0 and 1 therefore use only facts that do not
//! change again: a run that was over on that view is over at the commit too. Rules 2 to 5 are judged by the record
//! ([`by_record`]).

mod by_record;

use std::collections::BTreeSet;

use super::{Finding, exclusion};
use crate::Evidence;
use crate::history::{Commit, Execution, Run};
use crate::report::{Counts, Violation};

/// A rule of section 6, which finds what forbade a commit.
type Rule = fn(&Evidence<'_>, &Turn<'_, '_>, &mut Reported) -> Vec<Violation>;

/// The rules that judge one commit, with their numbers.
const RULES: &[(u8, Rule)] = &[(0, unusable_target), (1, resource_busy)];

/// An execution that got its turn.
struct Turn<'e, 'a> {
    execution: &'e Execution<'a>,
    commit: &'e Commit<'a>,
    /// The run that the execution committed to, if the recording contains it.
    run: Option<&'e Run<'a>>,
}

impl Turn<'_, '_> {
    /// Returns whether the turn is for a further attempt.
    fn is_further(&self) -> bool {
        self.execution.is_of_further_attempt(self.commit)
    }
}

/// The pairs of runs that are already reported. If two runs exclude each other, only the first commit is a violation.
type Reported = BTreeSet<[String; 2]>;

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let history = &evidence.history;
    let mut turns: Vec<Turn<'_, '_>> = Vec::new();
    for execution in history.executions.values() {
        for commit in execution.commits.iter().filter(|commit| !evidence.authors.is_strangers(commit.at)) {
            turns.push(Turn { execution, commit, run: history.runs.get(commit.run) });
        }
    }
    turns.sort_by_key(|turn| turn.commit.at);
    let mut reported = Reported::new();
    let mut found = by_record::judge(evidence, &turns, counts);
    for turn in &turns {
        found.extend(RULES.iter().flat_map(|(_, rule)| rule(evidence, turn, &mut reported)));
    }
    found
}

/// Rule 0: an execution with an invalid target gets no turn.
fn unusable_target(_: &Evidence<'_>, turn: &Turn<'_, '_>, _: &mut Reported) -> Vec<Violation> {
    if turn.execution.target.is_some() {
        return Vec::new();
    }
    let text = format!("{} got its turn, and its target is none", turn.execution.object);
    vec![Finding::new(4, "unusable-target", text).about(turn.execution, turn.commit.at)]
}

/// Rule 1 and the check in section 5: the target is free, and no earlier run is in the way. The execution's own
/// unfinished runs also forbid a further attempt, unless its new run was already released or stopped.
fn resource_busy(evidence: &Evidence<'_>, turn: &Turn<'_, '_>, reported: &mut Reported) -> Vec<Violation> {
    let Some(mine) = turn.run else { return Vec::new() };
    let history = &evidence.history;
    let at = turn.commit.at;
    let mut found = Vec::new();
    let is_own_remains = turn.is_further() && !mine.was_touched_by(at);
    let is_rival = |run: &Run<'_>| run.owner != mine.owner || is_own_remains && run.object.uid != mine.object.uid;
    for rival in history.runs.values().filter(|run| run.chain == mine.chain && is_rival(run)) {
        let unfinished = rival.is_unfinished_at(at);
        let committed = history.commit_to(rival).is_some_and(|commit| commit.at < at);
        let (rule, what) = if unfinished && (committed || rival.is_released_at(at)) {
            ("busy", "was committed or released, and unfinished")
        } else if unfinished
            && rival.owner != mine.owner
            && rival.created < mine.created
            && !rival.never_starts_from(at)
        {
            ("order", "had been created first, and was neither finished nor gone")
        } else if rival.is_released_at(at) && history.pieces_of(rival).any(|piece| piece.is_unfinished_at(at)) {
            ("busy", "was draining")
        } else {
            continue;
        };
        // Two runs at the same time are reported by invariant 1.
        let is_known = exclusion::clash(history, mine, rival).is_some();
        if reported.insert(pair(mine, rival)) && !is_known {
            let text =
                format!("{} got its turn with {} while {} {what}", turn.execution.object, mine.object, rival.object);
            let objects = vec![turn.execution.object.clone(), mine.object.clone(), rival.object.clone()];
            found.push(Finding::new(4, rule, text).on(turn.execution.shown_target(), objects, &[at, rival.created]));
        }
    }
    found
}

fn pair(one: &Run<'_>, other: &Run<'_>) -> [String; 2] {
    let mut pair = [one.object.uid.clone(), other.object.uid.clone()];
    pair.sort();
    pair
}
