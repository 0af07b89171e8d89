//! Reads the status of a schedule, of any shape. Absurd times are kept as they are: the decision then makes the plan
//! begin anew.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use wfe_api::limits::{self, RUN_MESSAGE};
use wfe_api::workflow_schedule::conditions::{CHILD_REFUSED, DELETING, HELD, INVALID_SPEC, READY, WOULD_BE_HELD};
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::ScheduleId;
use wfe_core::schedule::{
    Held, HeldBy, LastRun, MOST_FAILURES, Missed, Outcome, Planned, PlannedBy, Ready, Revision, ScheduleStatus, slot_of,
};
use wfe_tekton::moment;

use super::{one_of, time, triage};

/// Reads the status of a schedule with this spec.
pub(super) fn observe(id: &ScheduleId, spec: &Value, status: &Value, conditions: &[Condition]) -> ScheduleStatus {
    ScheduleStatus {
        observed_generation: status["observedGeneration"].as_i64(),
        revision: status["revision"].as_str().and_then(|text| revision(text, id, spec)),
        planned_from: time(&status["plannedFrom"]),
        phase: time(&status["phase"]),
        failure_count: status["failureCount"].as_u64().map_or(0, capped).min(MOST_FAILURES),
        last_run: last_run(&id.name, &status["lastRun"]),
        last_success: time(&status["lastSuccessTime"]),
        last_missed: time(&status["lastMissed"]["slot"])
            .zip(status["lastMissed"]["count"].as_u64().map(capped))
            .map(|(slot, count)| Missed { slot, count }),
        next: time(&status["nextRunTime"])
            .zip(one_of(&PlannedBy::ALL, PlannedBy::as_str, &status["nextRunReason"]))
            .map(|(at, why)| Planned { at, why }),
        triage: triage::record(&status["triage"]).map(Box::new),
        adjust: triage::adjust(&status["adjust"]).map(Box::new),
        ready: find(conditions, READY).map_or(Ready::Unsaid, ready),
        held: find(conditions, HELD).map_or(Held::Never, held),
        ready_since: find(conditions, READY).map(|it| moment(&it.last_transition_time)),
        held_since: find(conditions, HELD).map(|it| moment(&it.last_transition_time)),
    }
}

fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Reads a revision: three groups of hexadecimal digits. An earlier build wrote one group, which is equivalent if the
/// spec was not edited since.
fn revision(text: &str, id: &ScheduleId, spec: &Value) -> Option<Revision> {
    let group = |text: &str| u64::from_str_radix(text, 16).ok();
    if let [uid, plan, template] = text.split('-').collect::<Vec<_>>()[..] {
        return Some(Revision::of(group(uid)?, group(plan)?, group(template)?));
    }
    let is_former = group(text) == Some(super::former_revision(&id.uid, spec));
    is_former.then(|| super::revision(&id.uid, spec))
}

/// Reads the last used slot. If the slot itself cannot be read, it is taken from the name of the child.
fn last_run(schedule: &str, value: &Value) -> Option<LastRun> {
    let from_name = || slot_of(schedule, value["name"].as_str()?);
    let cut = |key: &str| value[key].as_str().map(|text| limits::cut(text, RUN_MESSAGE).into());
    let outcome = &value["outcome"];
    Some(LastRun {
        slot: time(&value["slot"]).or_else(from_name)?,
        again: value["again"] == true,
        started_at: time(&value["startedAt"]),
        ended_at: time(&value["endedAt"]),
        // An unknown value from another version: the slot is used, and its outcome has no effect.
        outcome: one_of(&Outcome::ALL, Outcome::as_str, outcome)
            .or_else(|| (!outcome.is_null()).then_some(Outcome::Skipped)),
        reason: cut("reason"),
        fingerprint: value["fingerprint"].as_str().and_then(Fingerprint::parse),
        message: cut("message"),
    })
}

fn ready(ready: &Condition) -> Ready {
    let message = || limits::cut(&ready.message, RUN_MESSAGE).into();
    match (ready.status.as_str(), ready.reason.as_str()) {
        ("True", _) => Ready::Yes,
        ("False", INVALID_SPEC) => Ready::InvalidSpec(message()),
        ("False", CHILD_REFUSED) => Ready::ChildRefused(message()),
        ("False", DELETING) => Ready::Deleting,
        _ => Ready::Unsaid,
    }
}

fn held(held: &Condition) -> Held {
    let reason = HeldBy::ALL.into_iter().find(|by| by.as_str() == held.reason);
    match reason.filter(|_| held.status == "True") {
        Some(reason) => Held::By { reason, message: limits::cut(&held.message, RUN_MESSAGE).into() },
        None if held.reason == WOULD_BE_HELD => Held::Ahead(limits::cut(&held.message, RUN_MESSAGE).into()),
        None => Held::Released,
    }
}

fn capped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
