//! Deeds of people and programs on the objects of a cluster.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A deed on an execution (`namespace/name`), on its newest run, or on a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Operation {
    /// Creates an execution.
    Create(Create),
    /// Deletes it.
    Delete(String),
    /// Cancels it.
    Cancel(String),
    /// Clears its target, if the execution has failed.
    Clear(String),
    /// Changes a part that no decision uses.
    Touch(String),
    /// Writes a status that no operator writes.
    Scribble(String),
    /// Changes a part of its run that no decision uses.
    TouchRun(String),
    /// Removes our label from its run.
    UnlabelRun(String),
    /// Adds a finalizer to its run, which is removed when everything heals.
    HoldRun(String),
    /// Asks Tekton to cancel its run.
    CancelRun(String),
    /// Deletes its run.
    DeleteRun(String),
    /// The kubelet starts the waiting containers of its run's pods before Tekton sees it.
    StartPods(String),
    /// Creates a run that looks like the next one of a target, but belongs to no execution.
    ForgeRun(String),
    /// Creates a schedule.
    Schedule(NewSchedule),
    /// Changes the spec of a schedule.
    EditSchedule(Edit),
    /// Gives a schedule a hint.
    Hint(Hint),
    /// Deletes a schedule.
    DeleteSchedule(String),
    /// Clears the status of a schedule, like a restore without statuses.
    WipeSchedule(String),
    /// Deletes the newest child of a schedule.
    DeleteChild(String),
    /// Cancels the newest child of a schedule.
    CancelChild(String),
    /// Clears the newest child of a schedule.
    ClearChild(String),
    /// Resumes a schedule: ends the triage that its status names.
    Resume(String),
}

/// A schedule to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NewSchedule {
    /// As `namespace/name`.
    pub name: String,
    /// The value of `spec.template.spec.targetResource`.
    pub target: String,
    /// `workflowId` of the template.
    pub workflow: String,
    /// The recorded story of its first child.
    pub story: String,
    /// The stories of its later children, in order. The last story is repeated for the remaining children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// The host of the bundle; `registry.test` if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The rest of the spec, such as `{"interval": "1m"}`.
    pub spec: Value,
}

/// A change of the spec of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Edit {
    /// As `namespace/name`.
    pub name: String,
    /// The merge patch of the spec, such as `{"suspend": true}`.
    pub spec: Value,
}

/// A hint for a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hint {
    /// As `namespace/name`.
    pub name: String,
    /// `nextRunAt`, in seconds from the deed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// `expiresAt`, in seconds from the deed.
    pub lasts: u32,
}

/// An execution to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Create {
    /// As `namespace/name`.
    pub name: String,
    /// The value of `spec.targetResource`.
    pub target: String,
    /// `spec.workflowRef.workflowId`.
    pub workflow: String,
    /// The recorded story that Tekton plays. If no story has this name, the bundle is missing.
    pub story: String,
    /// The stories of its later attempts, in order. The last story is repeated for the remaining attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// `spec.retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Value>,
    /// `spec.executionConfig.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// `spec.recoveryOf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_of: Option<String>,
    /// `spec.startBefore`, in seconds after the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<u32>,
    /// `spec.ttlSecondsAfterFinished`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
}

impl Operation {
    /// Returns the execution or schedule of the deed, as `namespace/name`.
    #[must_use]
    pub fn object(&self) -> &str {
        match self {
            Self::Create(create) => &create.name,
            Self::Schedule(schedule) => &schedule.name,
            Self::EditSchedule(edit) => &edit.name,
            Self::Hint(hint) => &hint.name,
            Self::Delete(name)
            | Self::Cancel(name)
            | Self::Clear(name)
            | Self::Touch(name)
            | Self::Scribble(name)
            | Self::TouchRun(name)
            | Self::UnlabelRun(name)
            | Self::HoldRun(name)
            | Self::CancelRun(name)
            | Self::DeleteRun(name)
            | Self::StartPods(name)
            | Self::ForgeRun(name)
            | Self::DeleteSchedule(name)
            | Self::WipeSchedule(name)
            | Self::DeleteChild(name)
            | Self::CancelChild(name)
            | Self::ClearChild(name)
            | Self::Resume(name) => name,
        }
    }
}
