//! One WorkflowSchedule over time, and how to recognize the executions that were made for it.

use serde_json::Value;
use wfe_api::labels::ANNOTATION_SCHEDULED_FOR;
use wfe_api::workflow_schedule::KIND;
use wfe_core::Time;

use super::life::{Life, Written};
use super::text;
use crate::moment::{Seconds, seconds};
use crate::report::{Moment, ObjectRef};

/// The suffix that a triage's execution has after the name of the child.
pub(crate) const ANALYST: &str = "-triage";

/// One WorkflowSchedule.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) gone: Option<Moment>,
    /// All versions of the object.
    pub(crate) versions: Vec<(Moment, &'a Value)>,
    /// The statuses, of which each differs from the one before.
    pub(crate) written: Vec<Written<'a>>,
}

/// The slot and the schedule for which an execution was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChildOf<'a> {
    /// The uid of the schedule.
    pub(crate) schedule: &'a str,
    pub(crate) slot: Seconds,
}

/// The content of `status.lastRun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastRun<'a> {
    pub(crate) slot: Seconds,
    pub(crate) ended: Option<Seconds>,
    /// The outcome; `None` while the child is at work.
    pub(crate) outcome: Option<&'a str>,
}

// === impl Schedule ===

impl<'a> Schedule<'a> {
    pub(super) fn read(life: &Life<'a>) -> Self {
        let mut written: Vec<Written<'a>> = Vec::new();
        for (at, object) in &life.states {
            let status = object.get("status").unwrap_or(&Value::Null);
            if written.last().is_none_or(|last| last.status != status) {
                written.push(Written { at: *at, status });
            }
        }
        Self { object: life.object(), gone: life.gone, versions: life.states.clone(), written }
    }

    /// Returns the version of the object at a moment; null if the object did not exist.
    pub(crate) fn object_at(&self, moment: Moment) -> &'a Value {
        if self.gone.is_some_and(|gone| gone <= moment) {
            return &Value::Null;
        }
        self.versions.iter().rev().find(|(at, _)| *at <= moment).map_or(&Value::Null, |(_, object)| object)
    }

    /// Returns the last version of the object.
    pub(crate) fn last(&self) -> &'a Value {
        self.versions.last().map_or(&Value::Null, |(_, object)| object)
    }
}

// === impl LastRun ===

impl<'a> LastRun<'a> {
    /// Reads `status.lastRun` from the status of a schedule.
    pub(crate) fn read(status: &'a Value) -> Option<Self> {
        let last = &status["lastRun"];
        Some(Self { slot: seconds(last, "/slot")?, ended: seconds(last, "/endedAt"), outcome: text(last, "/outcome") })
    }
}

/// Returns `status.plannedFrom`.
pub(crate) fn planned_from(status: &Value) -> Option<Seconds> {
    seconds(status, "/plannedFrom")
}

/// Returns `status.failureCount`, or 0 if it is absent.
pub(crate) fn failure_count(status: &Value) -> u64 {
    status["failureCount"].as_u64().unwrap_or(0)
}

// === impl ChildOf ===

impl<'a> ChildOf<'a> {
    /// Returns the schedule and slot for which an execution was made (section 12.5). Its reference contains the uid of
    /// the schedule, and its name consists of the schedule's name and the slot.
    pub(crate) fn read(execution: &'a Value) -> Option<Self> {
        Self::named(execution, text(execution, "/metadata/name")?)
    }

    fn named(execution: &'a Value, name: &str) -> Option<Self> {
        let by = &execution["spec"]["remediationRequestRef"];
        let namespace = text(execution, "/metadata/namespace");
        let is_here = text(by, "/namespace").is_none_or(|other| Some(other) == namespace);
        let slot = name.strip_prefix(text(by, "/name")?)?.strip_prefix('-')?;
        let seconds: Seconds = slot.parse().ok()?;
        let is_slot = Time::from_timestamp(seconds, 0).is_some() && seconds.to_string() == slot;
        (by["kind"] == KIND && is_here && is_slot).then_some(())?;
        Some(Self { schedule: text(by, "/uid")?, slot: seconds })
    }

    /// Returns the child whose failure an execution analyses (section 12.5). The execution has the child's name with a
    /// suffix.
    pub(crate) fn analysed(execution: &'a Value) -> Option<Self> {
        let child = text(execution, "/metadata/name")?.strip_suffix(ANALYST)?;
        Self::named(execution, child)
    }

    /// Returns the slot that an execution's reference claims, even if the execution's name does not fit.
    pub(super) fn claim(execution: &'a Value) -> Option<Self> {
        let by = &execution["spec"]["remediationRequestRef"];
        let slot = crate::moment::seconds_of(execution["metadata"]["annotations"][ANNOTATION_SCHEDULED_FOR].as_str()?)?;
        (by["kind"] == KIND).then_some(())?;
        Some(Self { schedule: text(by, "/uid")?, slot })
    }
}
