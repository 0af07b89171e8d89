//! The places in the limits that an operator would give if it started now, and the targets that have a place already.

use wfe_core::Time;
use wfe_core::decide::decide;
use wfe_core::execution::ExecutionState;
use wfe_core::limit::LimitSet;
use wfe_core::policy::Policy;
use wfe_core::target::Target;
use wfe_core::waiting::Waiting;
use wfe_view::index::{Index, Key};

use super::Seen;
use crate::moment::shown;

/// The limit of listed targets: more than a person reads.
const MOST_HOLDERS: usize = 10;

/// Gives the free places: decisions tell which executions and schedules ask for one. Without a limit there is nothing
/// to give.
pub(super) fn give_places(index: &mut Index, policy: &Policy, now: Time) {
    if policy.limits.is_empty() {
        return;
    }
    let keys: Vec<Key> = index.keys().cloned().collect();
    for key in &keys {
        index.show_places(key, &policy.limits, now);
        let Some(entry) = index.ready(key) else { continue };
        let decision = decide(&entry.target, policy, now);
        index.ask_for_places(key, &decision, now);
    }
    index.give_places(now);
    for key in &keys {
        index.show_places(key, &policy.limits, now);
    }
}

impl Seen {
    /// Describes the targets that have the places for which an execution waits, the oldest first, each with what it
    /// waits for itself.
    pub(super) fn holders(&self, target: &Target, waiting: &Waiting) -> Vec<String> {
        let Waiting::Limit(_) = waiting else { return Vec::new() };
        let limits = &self.installation.policy.limits;
        let wanted: Vec<_> = target.executions.values().map(|it| target.limits_of(it, limits)).collect();
        let wanted = wanted.into_iter().fold(LimitSet::default(), LimitSet::union);
        let mut holders: Vec<(Time, &Target)> = self
            .targets()
            .filter(|other| other.limits_in_use(limits).intersects(wanted))
            .map(|other| (since(other, self.now), other))
            .collect();
        holders.sort_by_key(|(since, other)| (*since, other.label().to_owned()));
        let more = holders.len().saturating_sub(MOST_HOLDERS);
        let mut lines: Vec<String> =
            holders.iter().take(MOST_HOLDERS).map(|(since, other)| self.holder(*since, other)).collect();
        if more > 0 {
            lines.push(format!("and {more} more targets have a place"));
        }
        lines
    }

    fn holder(&self, since: Time, target: &Target) -> String {
        let decision = decide(target, &self.installation.policy, self.now);
        let awaits =
            decision.awaiting.first().map(|(_, awaiting)| format!(", {}: {}", awaiting.reason(), awaiting.message()));
        let by = target.running().first().map(|it| format!(" for {}", it.id)).unwrap_or_default();
        format!("{} has a place{by} since {}{}", target.label(), shown(since), awaits.unwrap_or_default())
    }
}

/// Returns since when a target has its place: since its oldest unfinished run, leftover task or pod, or Running
/// execution.
fn since(target: &Target, now: Time) -> Time {
    let runs = target.runs.values().filter(|run| run.is_unfinished()).map(|run| run.created);
    let left = target.residue.values().map(|residue| residue.created);
    let running = target.running().into_iter().filter_map(|execution| match execution.state {
        ExecutionState::Running { started_at, .. } => started_at,
        _ => None,
    });
    runs.chain(left).chain(running).min().unwrap_or(now)
}
