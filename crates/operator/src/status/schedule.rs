//! Renders the status of a `WorkflowSchedule` (section 12.1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};
use wfe_api::limits;
use wfe_api::workflow_schedule::conditions;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::ScheduleId;
use wfe_core::schedule::{Held, LastRun, MOST_FAILURES, Ready, ScheduleStatus, child_name};
use wfe_core::triage::{Adjust, Triage, Verdict};
use wfe_core::{Time, duration};
use wfe_tekton::api_time;

/// Renders a status as a merge patch. A missing field becomes null, so that it is removed. `shown` is the present
/// status: an unchanged condition keeps its time.
#[must_use]
pub fn schedule(id: &ScheduleId, shown: &ScheduleStatus, wanted: &ScheduleStatus, now: Time) -> Value {
    let ScheduleStatus { last_run, last_missed, next, .. } = wanted;
    let time = |time: Time| json!(api_time(time));
    json!({
        "observedGeneration": wanted.observed_generation,
        "revision": wanted.revision.map(|revision| revision.to_string()),
        "plannedFrom": wanted.planned_from.map(time),
        "phase": wanted.phase.map(time),
        "failureCount": wanted.failure_count.min(MOST_FAILURES),
        "lastRun": last_run.as_ref().map(|run| render_run(id, run)),
        "lastSuccessTime": wanted.last_success.map(time),
        "lastMissed": last_missed.map(|missed| {
            json!({"slot": api_time(missed.slot), "count": missed.count.min(MOST_FAILURES)})
        }),
        "nextRunTime": next.map(|next| time(next.at)),
        "nextRunReason": next.map(|next| next.why.as_str()),
        "triage": wanted.triage.as_deref().map(render_triage),
        "adjust": wanted.adjust.as_deref().map(render_adjust),
        "conditions": render_conditions(shown, wanted, now),
    })
}

fn render_run(id: &ScheduleId, run: &LastRun) -> Value {
    let LastRun { slot, again, started_at, ended_at, outcome, reason, fingerprint, message } = run;
    let mut rendered = Map::new();
    // A child whose creation was refused never existed, so it has no name.
    let name = started_at.map(|_| child_name(&id.name, *slot));
    rendered.insert("name".to_owned(), json!(name));
    rendered.insert("slot".to_owned(), json!(api_time(*slot)));
    rendered.insert("again".to_owned(), json!(again.then_some(true)));
    rendered.insert("startedAt".to_owned(), json!(started_at.map(api_time)));
    rendered.insert("endedAt".to_owned(), json!(ended_at.map(api_time)));
    rendered.insert("outcome".to_owned(), json!(outcome.map(wfe_core::schedule::Outcome::as_str)));
    let text = |text: &Option<Box<str>>, most| text.as_ref().map(|text| limits::cut(text, most));
    rendered.insert("reason".to_owned(), json!(text(reason, limits::REASON)));
    rendered.insert("fingerprint".to_owned(), json!(fingerprint.as_ref().map(Fingerprint::as_str)));
    rendered.insert("message".to_owned(), json!(text(message, limits::RUN_MESSAGE)));
    Value::Object(rendered)
}

fn render_triage(triage: &Triage) -> Value {
    let text = |text: Option<&str>, most| text.map(|text| limits::cut(text, most));
    let refused = triage.refused.iter().take(limits::TRIAGE_FIELDS as usize);
    let refused: Vec<String> = refused.map(|why| limits::cut(why, limits::TRIAGE_REFUSED)).collect();
    json!({
        "of": &*triage.of,
        "at": api_time(triage.at),
        "analyst": triage.analyst.as_str(),
        "run": triage.run.as_ref().map(|(name, uid)| json!({"name": &**name, "uid": uid.to_string()})),
        "fingerprint": triage.fingerprint.as_ref().map(Fingerprint::as_str),
        "evidence": triage.evidence,
        "verdict": triage.verdict.map(Verdict::as_str),
        "why": text(triage.why.as_deref(), limits::TRIAGE_WHY),
        "fix": text(triage.fix.as_deref(), limits::TRIAGE_FIX),
        "refused": refused,
        "state": triage.state.as_str(),
    })
}

/// Adjusted values are only added one by one, and removed all at once. A single key is therefore never set to null.
fn render_adjust(adjust: &Adjust) -> Value {
    json!({
        "interval": adjust.interval.map(duration::format),
        "timeout": adjust.timeout.map(duration::format),
        "parameters": Some(&adjust.parameters).filter(|all| !all.is_empty()),
    })
}

fn render_conditions(shown: &ScheduleStatus, wanted: &ScheduleStatus, now: Time) -> Vec<Condition> {
    let ready = |ready: &Ready| match ready {
        Ready::Unsaid => None,
        Ready::Yes => Some(("True", conditions::PLANNED, "its spec can be used".to_owned())),
        Ready::InvalidSpec(why) => Some(("False", conditions::INVALID_SPEC, why.to_string())),
        Ready::ChildRefused(why) => Some(("False", conditions::CHILD_REFUSED, why.to_string())),
        Ready::Deleting => {
            let why = "its deletion has begun, or that of its namespace: nothing is made for it any more";
            Some(("False", conditions::DELETING, why.to_owned()))
        }
    };
    let held = |held: &Held| match held {
        Held::Never => None,
        Held::Released => Some(("False", conditions::RELEASED, "nothing keeps it from running any more".to_owned())),
        Held::Ahead(message) => Some(("False", conditions::WOULD_BE_HELD, message.to_string())),
        Held::By { reason, message } => Some(("True", reason.as_str(), message.to_string())),
    };
    let since =
        |was: Option<&'static str>, is: &str, since: Option<Time>| since.filter(|_| was == Some(is)).unwrap_or(now);
    let status = |condition: Option<(&'static str, &'static str, String)>| condition.map(|(status, ..)| status);
    let all = [
        (conditions::READY, ready(&wanted.ready), status(ready(&shown.ready)), shown.ready_since),
        (conditions::HELD, held(&wanted.held), status(held(&shown.held)), shown.held_since),
    ];
    let render = |(type_, is, was, at): (&str, Option<(&'static str, &str, String)>, _, _)| {
        let (status, reason, message) = is?;
        Some(Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: limits::cut(&message, limits::MESSAGE),
            last_transition_time: api_time(since(was, status, at)),
            observed_generation: wanted.observed_generation,
        })
    };
    all.into_iter().filter_map(render).collect()
}

#[cfg(test)]
mod tests;
