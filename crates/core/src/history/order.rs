//! The order of executions (section 6): by the number of their run, then by the time of their end, then by uid.
//!
//! An execution with an unusable spec never tried a run, so it has no number. It is ordered after all runs that had
//! ended by then. An unknown time counts as the one that allows fewer runs. For a success that is the earliest time, so
//! that it excuses nothing; for a failure it is the latest.

use super::{End, Past};
use crate::Time;
use crate::chain::RunNumber;

/// Sorts executions, oldest first. Their original order does not matter.
pub(super) fn sort(past: &mut Vec<Past<'_>>) {
    let has_numbers = past.iter().all(|past| past.execution.run_sequence.is_some());
    let highest = if has_numbers { Vec::new() } else { highest_by_time(past) };
    let place = |past: &Past<'_>| {
        let ended_at = ended_at(past);
        let number = past.execution.run_sequence;
        // At the same time, an execution without a number comes after the run with that number.
        (number.unwrap_or_else(|| highest_at(&highest, ended_at)), ended_at, number.is_none())
    };
    // Each sort key is computed once: the executions of a long history do not fit into the processor's cache.
    let mut placed: Vec<_> = past.drain(..).map(|past| (place(&past), past)).collect();
    placed.sort_unstable_by(|(a, one), (b, other)| {
        a.cmp(b).then_with(|| one.execution.id.uid.cmp(&other.execution.id.uid))
    });
    past.extend(placed.into_iter().map(|(_, past)| past));
}

/// Returns the time by which an execution is ordered.
pub(super) fn ended_at(past: &Past<'_>) -> Time {
    past.ended_at.unwrap_or(if past.end == End::Completed { Time::MIN_UTC } else { Time::MAX_UTC })
}

/// Returns the highest number among the runs that had ended, for each time at which a run ended.
fn highest_by_time(past: &[Past<'_>]) -> Vec<(Time, RunNumber)> {
    let numbered = past.iter().filter_map(|past| Some((ended_at(past), past.execution.run_sequence?)));
    let mut ends: Vec<(Time, RunNumber)> = numbered.collect();
    ends.sort_unstable();
    let mut highest = 0;
    for (_, number) in &mut ends {
        highest = highest.max(*number);
        *number = highest;
    }
    ends
}

fn highest_at(ends: &[(Time, RunNumber)], time: Time) -> RunNumber {
    let ended = ends.partition_point(|(end, _)| *end <= time);
    ended.checked_sub(1).and_then(|last| ends.get(last)).map_or(0, |(_, number)| *number)
}
