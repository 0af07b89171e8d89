//! Reads what happened on each target, from the executions and schedules of the cluster.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use wfe_api::conditions::BLOCKED;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::policy::Policy;
use wfe_core::schedule::{Held, Schedule};
use wfe_core::target::Target;

use super::lane::{Kind, Span, Track};
use crate::history::events;
use crate::object::{condition, text};
use crate::overview::is_in;
use crate::progress::place_of_failure;
use crate::view::Seen;

/// Collects what happened. If a namespace is given: only on the targets in it, and by the executions in it.
pub(super) fn tracks(seen: &Seen, namespace: Option<&str>) -> Vec<Track> {
    let mut tracks: BTreeMap<String, Track> = BTreeMap::new();
    for object in seen.objects() {
        let Some((target, execution)) = seen.known(object) else { continue };
        let Some(target) = &target.name else { continue };
        if is_in(object.metadata.namespace.as_deref(), namespace) || is_in(target.namespace(), namespace) {
            let track = tracks.entry(target.as_str().to_owned()).or_default();
            track.spans.extend(spans(execution, object, &seen.installation.policy, seen.now));
            track.events.extend(events(object));
        }
    }
    for target in seen.targets() {
        let Some(track) = tracks.get_mut(target.label()) else { continue };
        if let Some(past) = seen.blocks(target).first().and_then(Skip::remediation) {
            track.needs_person = Some(past.completed_at);
            let said = format!("{} blocks the target", past.execution);
            track.spans.push(Span { kind: Kind::Blocked, from: past.completed_at, to: seen.now, said });
        }
        track.spans.extend(slots(target, namespace));
    }
    tracks.into_iter().map(|(target, track)| Track { target, ..track }).collect()
}

/// Returns the next slots of the schedules of a target.
fn slots(target: &Target, namespace: Option<&str>) -> impl Iterator<Item = Span> {
    let schedules = target.schedules.values().filter(move |it| is_in(Some(&it.id.namespace), namespace));
    schedules.filter_map(slot)
}

fn slot(schedule: &Schedule) -> Option<Span> {
    let at = schedule.status.next?.at;
    let (kind, then) = match &schedule.status.held {
        Held::By { reason, .. } => (Kind::HeldSlot, format!("is held, {}", reason.as_str())),
        Held::Ahead(_) => (Kind::HeldSlot, "would be held".to_owned()),
        Held::Never | Held::Released => (Kind::Slot, "runs next".to_owned()),
    };
    Some(Span { kind, from: at, to: at, said: format!("schedule {} {then}", schedule.id) })
}

/// Returns what an execution did, and what followed from it.
fn spans(execution: &Execution, object: &DynamicObject, policy: &Policy, now: Time) -> Vec<Span> {
    let span = |kind, from: Time, to: Time, said: &str| Span {
        kind,
        from: from.min(to),
        to,
        said: format!("{} {said}", execution.id),
    };
    let time = |pointer: &str| text(object, pointer)?.parse::<Time>().ok();
    let ended = execution.ended_at();
    let mut spans = Vec::new();
    match (&execution.state, ended) {
        (ExecutionState::Undecided { .. }, _) => spans.push(span(Kind::Waiting, execution.created, now, "waits")),
        (ExecutionState::Running { started_at, .. }, _) => {
            spans.push(span(Kind::Runs, started_at.unwrap_or(execution.created), now, "runs"));
        }
        (ExecutionState::Completed { started_at, .. }, Some(end)) => {
            spans.push(span(Kind::Ran, started_at.unwrap_or(end), end, "completed"));
            spans.push(span(Kind::Cooldown, end, end + policy.cooldown_period, "cooldown of its workflow"));
        }
        (ExecutionState::Skipped { .. }, Some(end)) => {
            let why = text(object, "/status/skipDetails/reason").unwrap_or("for an unknown reason");
            spans.push(span(Kind::Skipped, end, end, &format!("skipped, {why}")));
        }
        (ExecutionState::Failed(failed), Some(end)) => {
            let place = place_of_failure(object);
            let why = place.as_deref().or_else(|| text(object, "/status/failureDetails/reason")).unwrap_or("unknown");
            spans.push(span(Kind::Failed, time("/status/startTime").unwrap_or(end), end, &format!("failed, {why}")));
            let cleared = time("/status/clearance/clearedAt");
            if let Some(next) = failed.next_allowed_execution.filter(|_| !failed.was_execution_failure) {
                let until = cleared.map_or(next, |cleared| cleared.min(next));
                spans.extend((until > end).then(|| span(Kind::Backoff, end, until, "backoff")));
            }
            let lifted = condition(object, BLOCKED).filter(|it| it["status"] == "False");
            let lifted = lifted.and_then(|it| it["lastTransitionTime"].as_str()?.parse::<Time>().ok());
            spans.extend(lifted.map(|lifted| span(Kind::Blocked, end, lifted, "blocked the target")));
            let by = text(object, "/status/clearance/clearedBy").unwrap_or("a person");
            spans.extend(cleared.map(|at| span(Kind::Cleared, at, at, &format!("cleared by {by}"))));
        }
        // A status without the time of the end has no place on an axis.
        (ExecutionState::Completed { .. } | ExecutionState::Skipped { .. } | ExecutionState::Failed(_), None) => {}
    }
    spans
}
