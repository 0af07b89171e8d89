//! Invariant 1: a target has at most one released and unfinished run. No run is released while an earlier one drains,
//! or while another execution holds the target between two attempts.

mod held;

use super::Finding;
use crate::Evidence;
use crate::history::{History, Piece, Run};
use crate::report::{Counts, Moment, Violation};

/// How two released runs were in conflict.
pub(super) enum Clash<'h, 'a> {
    /// Both were released and unfinished at the same time.
    Overlap,
    /// The earlier run had ended or was deleted, but these of its objects were unfinished.
    Drain(Vec<&'h Piece<'a>>),
}

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    let history = &evidence.history;
    let mut found = Vec::new();
    for runs in history.chains().values() {
        for (index, one) in runs.iter().enumerate() {
            for other in &runs[index + 1..] {
                found.extend(judge_pair(history, one, other));
            }
        }
        found.extend(held::judge(history, runs));
    }
    found
}

fn judge_pair(history: &History<'_>, one: &Run<'_>, other: &Run<'_>) -> Option<Violation> {
    let (earlier, later) = in_order_of_release(one, other)?;
    let (first, second) = (earlier.released?, later.released?);
    let target = history.target_of(later);
    let mut objects = vec![later.object.clone(), earlier.object.clone()];
    match clash(history, earlier, later)? {
        Clash::Overlap => {
            let text = format!("{} was released while {} was released and unfinished", later.object, earlier.object);
            Some(Finding::new(1, "overlap", text).on(target, objects, &[second, first]))
        }
        Clash::Drain(pieces) => {
            let names: Vec<String> = pieces.iter().map(|piece| piece.object.to_string()).collect();
            let text = format!(
                "{} was released and unfinished while {} was over, but not yet: {}",
                later.object,
                earlier.object,
                names.join(", ")
            );
            objects.extend(pieces.iter().map(|piece| piece.object.clone()));
            let at = pieces.iter().map(|piece| piece.created.max(second)).min().unwrap_or(second);
            Some(Finding::new(1, "drain", text).on(target, objects, &[at, second]))
        }
    }
}

/// Returns how two runs of one chain were in conflict. Either may have been released first.
pub(super) fn clash<'h, 'a>(history: &'h History<'a>, one: &'h Run<'a>, other: &'h Run<'a>) -> Option<Clash<'h, 'a>> {
    let (earlier, later) = in_order_of_release(one, other)?;
    let released = later.released?;
    if earlier.over().is_none_or(|over| released < over) && intersects(released, later.over(), earlier) {
        return Some(Clash::Overlap);
    }
    let pieces: Vec<_> = history
        .pieces_of(earlier)
        .filter(|piece| piece.over.is_none_or(|over| released < over))
        .filter(|piece| later.over().is_none_or(|over| piece.created < over))
        .collect();
    (!pieces.is_empty()).then_some(Clash::Drain(pieces))
}

/// Returns whether each run was still unfinished at its own release. A run that was cancelled while pending, and
/// released afterwards, was over before its release and blocked no other run.
fn intersects(released: Moment, over: Option<Moment>, earlier: &Run<'_>) -> bool {
    let alive = |released: Option<Moment>, over: Option<Moment>| {
        released.is_some_and(|released| over.is_none_or(|over| released < over))
    };
    alive(Some(released), over) && alive(earlier.released, earlier.over())
}

fn in_order_of_release<'h, 'a>(one: &'h Run<'a>, other: &'h Run<'a>) -> Option<(&'h Run<'a>, &'h Run<'a>)> {
    Some(if one.released? <= other.released? { (one, other) } else { (other, one) })
}
