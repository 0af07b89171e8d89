//! Converts a `WorkflowSchedule` to the record that the index stores (section 12.1). An object of any shape has a
//! record. The text about an unusable spec names the field and the remedy. No text quotes the value of a parameter.

mod status;
mod triage;

use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wfe_api::limits;
use wfe_core::name::{ExecutionId, ScheduleId, Uid, Version};
use wfe_core::schedule::cron::Cron;
use wfe_core::schedule::{Every, Hint, HistoryLimits, Plan, Revision, Schedule, ScheduleMemory, Wish};
use wfe_core::target::TargetName;
use wfe_core::{Time, duration};
use wfe_tekton::parse_moment;

use super::{conditions, no_variables, origin, retry, usable_request};
use crate::index::ScheduleRecord;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// The upper limit of an interval, and of `minInterval` and `maxInterval`.
const LONGEST: Duration = Duration::from_hours(720);
/// The prefix of labels and annotations that only operators set.
const OURS: &str = "kubernaut.ai/";
/// The largest number of children of each outcome that a history keeps.
const HISTORY: u8 = 100;

/// Reads one `WorkflowSchedule`. `None` only for an object without name, namespace or uid, which no API server creates.
#[must_use]
pub fn observe_schedule(object: &DynamicObject) -> Option<ScheduleRecord> {
    let meta = &object.metadata;
    let id = ScheduleId {
        namespace: meta.namespace.as_deref()?.into(),
        name: meta.name.as_deref()?.into(),
        uid: Uid::new(meta.uid.as_deref()?),
    };
    let spec = &object.data["spec"];
    let text = |path: &str| spec.pointer(path).and_then(Value::as_str);
    let target = text("/template/spec/targetResource").and_then(|target| TargetName::parse(target).ok());
    let schedule = Schedule {
        version: Version::new(meta.resource_version.as_deref().unwrap_or_default()),
        generation: meta.generation.unwrap_or_default(),
        leaving: meta.deletion_timestamp.is_some(),
        plan: plan(&id, spec).map_err(|why| limits::cut(&why, limits::RUN_MESSAGE).into()),
        suspended: spec["suspend"] == true,
        hint: hint(&spec["hint"]).map(Box::new),
        // If the limits cannot be read, no child is removed.
        history: history(&spec["history"]).unwrap_or(HistoryLimits { successful: HISTORY, failed: HISTORY }),
        triage: triage::shared(triage::spec(spec)),
        resume: text("/resume/triage").map(|of| limits::cut(of, limits::NAME).into()),
        revision: revision(&id.uid, spec),
        workflow_id: text("/template/spec/workflowRef/workflowId").unwrap_or_default().into(),
        origin: Arc::new(origin(&spec["template"]["spec"]["workflowRef"])), // the index replaces it with a shared copy
        paused: None, // the index knows which namespaces are paused
        status: status::observe(&id, spec, &object.data["status"], &conditions(&object.data)),
        children: Vec::new(), // the index knows the executions
        analyst: None,
        memory: ScheduleMemory::default(),
        id,
    };
    Some(ScheduleRecord { schedule, target })
}

/// Returns the revision of the plan. An edit of labels, annotations, `rationale` or the TTL does not change the
/// revision (section 12.2).
fn revision(uid: &Uid, spec: &Value) -> Revision {
    let plan = json!([spec["interval"], spec["cron"], spec["timeZone"], spec["spread"]]);
    let mut template = spec["template"]["spec"].clone();
    if let Some(template) = template.as_object_mut() {
        template.retain(|key, _| key != "rationale" && key != "ttlSecondsAfterFinished");
    }
    Revision::of(digest(&json!(uid.to_string())), digest(&plan), digest(&template))
}

/// Returns the revision in the form of earlier builds, in which schedules did not keep their phase.
fn former_revision(uid: &Uid, spec: &Value) -> u64 {
    digest(&json!([uid.to_string(), spec["interval"], spec["cron"], spec["timeZone"], spec["template"]]))
}

/// Returns the digest of a value. The keys of JSON objects are sorted, so equal values have equal digests.
fn digest(value: &Value) -> u64 {
    let digest = Sha256::digest(value.to_string());
    digest.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Reads when a schedule runs, or returns why its spec cannot be used (row 0 of section 12.6). The API server refuses
/// most of these specs already, but an older CRD may have accepted them.
fn plan(id: &ScheduleId, spec: &Value) -> Result<Plan, String> {
    if !spec.is_object() {
        return Err(
            "spec: is no object; install the CRD that belongs to this operator and apply the WorkflowSchedule \
                    again"
                .to_owned(),
        );
    }
    if id.name.len() > limits::SCHEDULE_NAME as usize {
        return Err(format!(
            "metadata.name: is longer than {} characters; make the WorkflowSchedule again with a shorter one",
            limits::SCHEDULE_NAME
        ));
    }
    if !matches!(spec["suspend"], Value::Null | Value::Bool(_)) {
        return Err("spec.suspend: must be true or false".to_owned());
    }
    history(&spec["history"])?;
    template(id, &spec["template"])?;
    let every = every(spec)?;
    let spread = seconds(spec, "spread", Duration::ZERO..=DAY, "0s to 24h")?.unwrap_or_default();
    let (min_interval, max_interval) = clamps(spec, &every)?;
    match &every {
        Every::Interval(interval) if spread >= *interval => {
            return Err("spec.spread: must be shorter than interval; lower it".to_owned());
        }
        Every::Interval(_) | Every::Cron(_) => {}
    }
    Ok(Plan { every, min_interval, max_interval, spread, deadline: deadline(&spec["startingDeadlineSeconds"])? })
}

/// Reads the interval or the cron expression.
fn every(spec: &Value) -> Result<Every, String> {
    let zone = &spec["timeZone"];
    let interval = seconds(spec, "interval", SECOND..=LONGEST, "1s to 720h")?;
    match (interval, &spec["cron"]) {
        (Some(_), Value::Null) if !zone.is_null() => {
            Err("spec.timeZone: goes with cron only; remove it, or set cron in the place of interval".to_owned())
        }
        (Some(interval), Value::Null) => Ok(Every::Interval(interval)),
        (Some(_), _) => Err("spec: has both interval and cron; remove one of them".to_owned()),
        (None, Value::Null) => Err("spec: has neither interval nor cron; set one of them".to_owned()),
        (None, cron) => {
            let cron = cron.as_str().ok_or("spec.cron: must be five fields in a text, e.g. \"30 2 * * MON\"")?;
            let zone = if zone.is_null() { Some("UTC") } else { zone.as_str() };
            let zone = zone.ok_or("spec.timeZone: must be the IANA name of a zone, e.g. Europe/Berlin")?;
            let cron = Cron::parse(cron, zone).map_err(|why| why.to_string())?;
            Ok(Every::Cron(Arc::new(cron)))
        }
    }
}

/// Reads `minInterval` and `maxInterval`. The defaults never contradict a given value.
fn clamps(spec: &Value, every: &Every) -> Result<(Duration, Duration), String> {
    let min = seconds(spec, "minInterval", SECOND..=LONGEST, "1s to 720h")?;
    let max = seconds(spec, "maxInterval", SECOND..=LONGEST, "1s to 720h")?;
    match (every, min, max) {
        (Every::Interval(interval), Some(min), _) if min > *interval => {
            Err("spec.minInterval: must not be longer than interval; lower it, or remove it".to_owned())
        }
        (Every::Interval(interval), _, Some(max)) if max < *interval => {
            Err("spec.maxInterval: must not be shorter than interval; raise it, or remove it".to_owned())
        }
        (Every::Interval(interval), ..) => {
            let tenth = Duration::from_secs(interval.as_secs() / 10);
            Ok((min.unwrap_or(tenth.max(MINUTE).min(*interval)), max.unwrap_or(DAY.max(*interval))))
        }
        (Every::Cron(_), Some(min), Some(max)) if max < min => {
            Err("spec.maxInterval: must not be shorter than minInterval; raise it, or remove one of them".to_owned())
        }
        (Every::Cron(_), ..) => {
            Ok((min.unwrap_or(MINUTE.min(max.unwrap_or(MINUTE))), max.unwrap_or(DAY.max(min.unwrap_or(DAY)))))
        }
    }
}

fn deadline(value: &Value) -> Result<Option<Duration>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let seconds = value.as_u64().filter(|seconds| (10..=2_592_000).contains(seconds));
    let seconds = seconds.ok_or("spec.startingDeadlineSeconds: must be a whole number from 10 to 2592000")?;
    Ok(Some(Duration::from_secs(seconds)))
}

fn history(value: &Value) -> Result<HistoryLimits, String> {
    if !matches!(value, Value::Null | Value::Object(_)) {
        return Err("spec.history: must be an object, e.g. {successful: 3, failed: 3}".to_owned());
    }
    let limit = |key: &str, default: u8| match &value[key] {
        Value::Null => Ok(default),
        given => given
            .as_u64()
            .and_then(|limit| u8::try_from(limit).ok())
            .filter(|limit| *limit <= HISTORY)
            .ok_or_else(|| format!("spec.history.{key}: must be a whole number from 0 to {HISTORY}")),
    };
    let default = HistoryLimits::default();
    Ok(HistoryLimits { successful: limit("successful", default.successful)?, failed: limit("failed", default.failed)? })
}

/// Checks the template like the spec of an execution. Otherwise the children of the schedule would be created only to
/// fail by rule 0.
fn template(id: &ScheduleId, template: &Value) -> Result<(), String> {
    for field in ["labels", "annotations"] {
        let given = &template["metadata"][field];
        let refuse = |why: &str| Err(format!("spec.template.metadata.{field}: {why}"));
        if given.is_null() {
            continue;
        }
        match given.as_object() {
            Some(given) if given.values().all(Value::is_string) => {
                if given.len() > limits::TEMPLATE_METADATA as usize {
                    return refuse("has more than 16 entries; remove some");
                }
                if given.keys().any(|key| key.starts_with(OURS)) {
                    return refuse(
                        "must have no key that begins with kubernaut.ai/, those are the operator's; remove it",
                    );
                }
            }
            _ => return refuse("must be an object of texts"),
        }
    }
    let child = ExecutionId { namespace: id.namespace.clone(), name: id.name.clone(), uid: id.uid.clone() };
    let spec = &template["spec"];
    let in_template = |why: String| format!("spec.template.{why}");
    usable_request(&child, spec).and_then(|request| no_variables(&request)).map_err(in_template)?;
    retry::usable_policy(spec).map_err(in_template)?;
    Ok(())
}

/// Reads the hint of an advisor. An unreadable hint is ignored, because an advisor must never stop a schedule.
fn hint(value: &Value) -> Option<Hint> {
    let expires_at = moment(&value["expiresAt"])?;
    let wish = match (&value["nextRunAt"], &value["interval"]) {
        (Value::Null, interval) => Wish::Interval(whole_seconds(interval, &(SECOND..=LONGEST))?),
        (at, Value::Null) => Wish::At(moment(at).filter(|at| *at < expires_at)?),
        _ => return None,
    };
    Some(Hint { wish, expires_at })
}

/// Reads a time between the years 1970 and 9998.
fn moment(value: &Value) -> Option<Time> {
    let last = Time::from_timestamp(253_370_764_800, 0); // the year 9999 begins
    value.as_str().and_then(parse_moment).filter(|time| *time >= Time::UNIX_EPOCH && Some(*time) < last)
}

type Range = std::ops::RangeInclusive<Duration>;

/// Reads a duration in whole seconds; `None` if the field is missing.
fn seconds(spec: &Value, field: &str, range: Range, said: &str) -> Result<Option<Duration>, String> {
    let value = &spec[field];
    if value.is_null() {
        return Ok(None);
    }
    let refused = || format!("spec.{field}: must be a duration in whole seconds from {said}, e.g. 90s, 5m or 1h30m");
    whole_seconds(value, &range).map(Some).ok_or_else(refused)
}

fn whole_seconds(value: &Value, range: &Range) -> Option<Duration> {
    let duration = duration::parse(value.as_str()?).ok()?;
    (duration.subsec_nanos() == 0 && range.contains(&duration)).then_some(duration)
}

/// Reads a value of an enumeration.
fn one_of<T: Copy>(all: &[T], spelled: fn(T) -> &'static str, value: &Value) -> Option<T> {
    all.iter().copied().find(|it| value == spelled(*it))
}

fn time(value: &Value) -> Option<Time> {
    value.as_str().and_then(parse_moment)
}

#[cfg(test)]
mod tests;
