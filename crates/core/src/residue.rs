//! The remains of a target's runs: unfinished tasks and pods, whether or not the run still exists.

use crate::Time;
use crate::name::Uid;
use crate::run::Owner;

/// An unfinished descendant of a run. While it exists, the target is not free (section 5.6).
#[derive(Clone, Debug, PartialEq)]
pub struct Residue {
    /// The object.
    pub id: ResidueId,
    /// The owner, from the annotations that the object inherited from its run.
    pub owner: Owner,
    /// When the API server created the object.
    pub created: Time,
}

/// Identifies one descendant of a run in the execution namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResidueId {
    /// The kind of the object.
    pub kind: ResidueKind,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
}

/// The kinds of descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResidueKind {
    /// A task of a run.
    TaskRun,
    /// A task that another controller runs.
    CustomRun,
    /// A pipeline in the pipeline.
    PipelineRun,
    /// A task's pod.
    Pod,
}

impl ResidueKind {
    /// Returns the kind's name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TaskRun => "TaskRun",
            Self::CustomRun => "CustomRun",
            Self::PipelineRun => "PipelineRun",
            Self::Pod => "Pod",
        }
    }
}
