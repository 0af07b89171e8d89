//! Reads the triage settings and the triage record of a schedule (sections 12.1 and 13.4), of any shape. An unreadable
//! part grants no permission and pauses nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::Value;
use wfe_api::limits;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::Uid;
use wfe_core::triage::{
    Adjust, Analyst, FIX, Field, PARAMETERS_SIZE, REFUSED, State, Triage, TriageSpec, Verdict, WHY,
};

use super::{LONGEST, MINUTE, SECOND, one_of, time, whole_seconds};

/// The largest number of fields that a verdict may change.
const FIELDS: usize = limits::TRIAGE_FIELDS as usize;
/// The upper limit of an execution's time-out.
const TIMEOUT: Duration = Duration::from_hours(24);

/// Reads `spec.triage`. An unknown analyst of another version counts as `Off`.
pub(super) fn spec(spec: &Value) -> TriageSpec {
    let (given, default) = (&spec["triage"], TriageSpec::default());
    let analyst = match &given["analyst"] {
        Value::Null => default.analyst,
        analyst => one_of(&Analyst::ALL, Analyst::as_str, analyst).unwrap_or(Analyst::Off),
    };
    let after = given["after"].as_u64().and_then(|after| u32::try_from(after).ok());
    let parameters = spec.pointer("/template/spec/parameters").and_then(Value::as_object);
    let has = |key: &str| parameters.is_some_and(|all| all.contains_key(key));
    let chars =
        |(key, value): (&String, &Value)| key.chars().count() + value.as_str().map_or(0, |it| it.chars().count());
    let length = || parameters.into_iter().flatten().map(chars).sum();
    let listed = given["allowAdjust"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_there = |field: &Field| !matches!(field, Field::Parameter(key) if !has(key));
    let allow_adjust: Vec<Field> = listed.filter_map(Field::parse).filter(is_there).take(FIELDS).collect();
    let may_set = allow_adjust.iter().any(|field| matches!(field, Field::Parameter(_)));
    let template = spec.pointer("/template/spec/executionConfig/timeout").unwrap_or(&Value::Null);
    let template_timeout = whole_seconds(template, &(SECOND..=TIMEOUT));
    TriageSpec {
        analyst,
        after: after.filter(|after| (1..=10).contains(after)).unwrap_or(default.after),
        timeout: whole_seconds(&given["timeout"], &(MINUTE..=Duration::from_hours(1))).unwrap_or(default.timeout),
        room: if may_set { PARAMETERS_SIZE.saturating_sub(length()) } else { PARAMETERS_SIZE },
        template_timeout: template_timeout.filter(|_| allow_adjust.contains(&Field::Timeout)),
        allow_adjust,
    }
}

/// The settings of all schedules without `spec.triage`, as one shared copy.
static SILENT: LazyLock<Arc<TriageSpec>> = LazyLock::new(Arc::default);

/// Replaces default settings with the shared copy: there may be thousands of schedules with default settings.
pub(super) fn shared(spec: TriageSpec) -> Arc<TriageSpec> {
    if spec == **SILENT { Arc::clone(&SILENT) } else { Arc::new(spec) }
}

/// Reads `status.triage`.
pub(super) fn record(value: &Value) -> Option<Triage> {
    let text = |key: &str, most: usize| {
        let text = value[key].as_str()?;
        Some(limits::cut(text, u32::try_from(most).unwrap_or(u32::MAX)).into())
    };
    let run = |run: &Value| Some((run["name"].as_str()?.into(), Uid::new(run["uid"].as_str()?)));
    let refused = value["refused"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Some(Triage {
        of: text("of", limits::NAME as usize)?,
        at: time(&value["at"])?,
        analyst: one_of(&Analyst::ALL, Analyst::as_str, &value["analyst"]).unwrap_or(Analyst::Off),
        run: run(&value["run"]),
        fingerprint: value["fingerprint"].as_str().and_then(Fingerprint::parse),
        evidence: text("evidence", limits::EVIDENCE as usize),
        verdict: one_of(&Verdict::ALL, Verdict::as_str, &value["verdict"]),
        why: text("why", WHY),
        fix: text("fix", FIX),
        refused: refused.take(REFUSED).map(|text| limits::cut(text, limits::TRIAGE_REFUSED).into()).collect(),
        // An unknown value from another version neither pauses nor adjusts anything.
        state: one_of(&State::ALL, State::as_str, &value["state"]).unwrap_or(State::Over),
    })
}

/// Reads `status.adjust`.
pub(super) fn adjust(value: &Value) -> Option<Adjust> {
    let parameters = value["parameters"].as_object().into_iter().flatten();
    let texts = parameters.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    let adjust = Adjust {
        interval: whole_seconds(&value["interval"], &(SECOND..=LONGEST)),
        timeout: whole_seconds(&value["timeout"], &(SECOND..=TIMEOUT)),
        parameters: texts.take(FIELDS).collect::<BTreeMap<_, _>>(),
    };
    (adjust != Adjust::default()).then_some(adjust)
}

#[cfg(test)]
mod tests;
