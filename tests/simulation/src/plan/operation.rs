//! Operations by people and programs on the objects of a cluster.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An operation on an execution (`namespace/name`), on the newest run of an execution, or on a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Operation {
    /// Creates an execution.
    Create(Create),
    /// Deletes an execution.
    Delete(String),
    /// Cancels an execution.
    Cancel(String),
    /// Clears the target of an execution, if the execution has failed.
    Clear(String),
    /// Changes a part of an execution that no decision uses.
    Touch(String),
    /// Writes a status that no operator would write.
    Scribble(String),
    /// Changes a part of a run that no decision uses.
    TouchRun(String),
    /// Removes the operator's label from a run.
    UnlabelRun(String),
    /// Adds a finalizer to a run. The finalizer is removed at the end of the plan.
    HoldRun(String),
    /// Asks Tekton to cancel a run.
    CancelRun(String),
    /// Deletes a run.
    DeleteRun(String),
    /// The kubelet starts the waiting containers of a run's pods, and Tekton does not see the start yet.
    StartPods(String),
    /// Creates a run that looks like the next run of a target, but belongs to no execution.
    ForgeRun(String),
    /// Creates a schedule.
    Schedule(NewSchedule),
    /// Changes the spec of a schedule.
    EditSchedule(Edit),
    /// Sets the hint of a schedule.
    Hint(Hint),
    /// Deletes a schedule.
    DeleteSchedule(String),
    /// Clears the status of a schedule, as a restore without statuses does.
    WipeSchedule(String),
    /// Deletes the newest child of a schedule.
    DeleteChild(String),
    /// Cancels the newest child of a schedule.
    CancelChild(String),
    /// Clears the newest child of a schedule.
    ClearChild(String),
    /// Resumes a schedule by ending the triage in its status.
    Resume(String),
}

/// A schedule that an operation creates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NewSchedule {
    /// The namespace and name, as `namespace/name`.
    pub name: String,
    /// The value of `spec.template.spec.targetResource`.
    pub target: String,
    /// `workflowId` of the template.
    pub workflow: String,
    /// The recorded story of the first child.
    pub story: String,
    /// The stories of later children, in order. The last story is repeated for all further children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// The registry host of the bundle; `registry.test` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The rest of the spec, such as `{"interval": "1m"}`.
    pub spec: Value,
}

/// A change to the spec of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Edit {
    /// The namespace and name, as `namespace/name`.
    pub name: String,
    /// The merge patch for the spec, such as `{"suspend": true}`.
    pub spec: Value,
}

/// A hint that an operation sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hint {
    /// The namespace and name, as `namespace/name`.
    pub name: String,
    /// `nextRunAt`, in seconds after the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// The field `interval` of the hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// `expiresAt`, in seconds after the operation.
    pub lasts: u32,
}

/// An execution that an operation creates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Create {
    /// The namespace and name, as `namespace/name`.
    pub name: String,
    /// The value of `spec.targetResource`.
    pub target: String,
    /// The value of `spec.workflowRef.workflowId`.
    pub workflow: String,
    /// The recorded story that Tekton plays. If no story has this name, the bundle does not exist.
    pub story: String,
    /// The stories of later attempts, in order. The last story is repeated for all further attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// The value of `spec.retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Value>,
    /// The value of `spec.executionConfig.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The value of `spec.recoveryOf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_of: Option<String>,
    /// `spec.startBefore`, in seconds after the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<u32>,
    /// The value of `spec.ttlSecondsAfterFinished`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
}

impl Operation {
    /// Returns the execution or schedule that the operation affects, as `namespace/name`.
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
