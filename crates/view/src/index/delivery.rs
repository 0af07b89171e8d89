//! The deliveries of the watches: small records, for which each object is parsed once.

use std::sync::Arc;
use std::time::Duration;

use wfe_api::SkipReason;
use wfe_core::Time;
use wfe_core::chain::ChainName;
use wfe_core::execution::Execution;
use wfe_core::name::Uid;
use wfe_core::run::Run;
use wfe_core::schedule::Schedule;
use wfe_core::target::TargetName;
use wfe_tekton::{Descendant, Redaction, RunRequest};

/// Identifies what is decided on together: decisions with the same key are made one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A target, identified by the name of its chain.
    Chain(ChainName),
    /// An execution or schedule whose target cannot be parsed. It locks nothing and is decided on alone.
    Unreadable(Uid),
}

/// The watch that a delivery comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `WorkflowExecution`.
    Execution,
    /// `PipelineRun`: the runs of chains, and the runs of pipelines in pipelines.
    Run,
    /// `TaskRun`.
    TaskRun,
    /// `CustomRun`.
    CustomRun,
    /// `Pod`.
    Pod,
    /// `Namespace`, which can be paused.
    Namespace,
    /// `WorkflowSchedule`.
    Schedule,
}

impl Kind {
    /// All watches, in the order of their declaration.
    pub const ALL: [Self; 7] =
        [Self::Execution, Self::Run, Self::TaskRun, Self::CustomRun, Self::Pod, Self::Namespace, Self::Schedule];
    /// The watches that every decision needs. Without the watch of schedules, only schedules wait.
    pub const NEEDED: [Self; 6] =
        [Self::Execution, Self::Run, Self::TaskRun, Self::CustomRun, Self::Pod, Self::Namespace];

    /// Returns the plural of the resource, which is the label in metrics and logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Execution => "workflowexecutions",
            Self::Run => "pipelineruns",
            Self::TaskRun => "taskruns",
            Self::CustomRun => "customruns",
            Self::Pod => "pods",
            Self::Namespace => "namespaces",
            Self::Schedule => "workflowschedules",
        }
    }
}

/// What the index stores about one `WorkflowExecution`.
#[derive(Clone, Debug)]
pub struct ExecutionRecord {
    /// The part that decisions need.
    pub execution: Execution,
    /// The target of the execution, if it can be parsed.
    pub target: Option<TargetName>,
    /// `metadata.generation`, for `observedGeneration`.
    pub generation: i64,
    /// What the execution requests to run. Set only if it is usable, and while the execution is undecided; with a retry
    /// policy, until it has ended.
    pub request: Option<Arc<RunRequest>>,
    /// The redaction for texts about the execution. Set until everything about the execution is announced: it has
    /// ended, and its clearance, if any, is recorded.
    pub redaction: Option<Arc<Redaction>>,
    /// The end of the execution, as its status shows it. The index does not store it.
    pub end: Option<Box<EndShown>>,
}

/// The end of an execution, as its status shows it. A new leader announces an end that the last leader may not have
/// announced.
#[derive(Clone, Debug, PartialEq)]
pub struct EndShown {
    /// When the execution ended.
    pub at: Time,
    /// The phase that it ended in.
    pub phase: EndPhase,
    /// The reason of the condition `Succeeded`.
    pub reason: Box<str>,
    /// The message of that condition, without the values of parameters.
    pub message: Box<str>,
    /// For how long the execution ran, if it ran.
    pub ran_for: Option<Duration>,
}

/// The phase of an execution that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndPhase {
    /// `Completed`.
    Completed,
    /// `Failed`.
    Failed,
    /// `Skipped`.
    Skipped {
        /// Why the execution was skipped.
        reason: SkipReason,
        /// Whether the skip is a backoff after a failure.
        backs_off: bool,
    },
}

impl ExecutionRecord {
    /// Returns the key for decisions on the execution.
    #[must_use]
    pub fn key(&self) -> Key {
        match &self.target {
            Some(target) => Key::Chain(target.chain()),
            None => Key::Unreadable(self.execution.id.uid.clone()),
        }
    }
}

/// What the index stores about one `WorkflowSchedule`.
#[derive(Clone, Debug)]
pub struct ScheduleRecord {
    /// The part that decisions need. The index adds the children, the pause, and what this process remembers about the
    /// schedule.
    pub schedule: Schedule,
    /// The target of the schedule's template, if it can be parsed.
    pub target: Option<TargetName>,
}

impl ScheduleRecord {
    /// Returns the key for decisions on the schedule.
    #[must_use]
    pub fn key(&self) -> Key {
        match &self.target {
            Some(target) => Key::Chain(target.chain()),
            None => Key::Unreadable(self.schedule.id.uid.clone()),
        }
    }
}

/// One delivery of a watch.
#[derive(Debug)]
pub enum Delivery {
    /// A list begins. Objects that it does not contain when it ends were deleted.
    ListBegins(Kind),
    /// A list is complete.
    ListEnds(Kind),
    /// An execution was listed or changed.
    Execution(Box<ExecutionRecord>),
    /// An execution was deleted.
    ExecutionDeleted(Uid),
    /// A run was listed or changed. The index sets the order of runs, not the watch.
    Run(ChainName, Box<Run>),
    /// A run of a chain, or of a pipeline in a pipeline, was deleted. The last version of a run shows whether it was
    /// released.
    RunDeleted(Uid, Option<Box<Run>>),
    /// A descendant of a run was listed or changed.
    Descendant(Kind, Box<Descendant>),
    /// A descendant of a run was deleted. Its last version may be the only one that shows what it did.
    DescendantDeleted(Kind, Uid, Option<Box<Descendant>>),
    /// A namespace was listed or changed.
    Namespace {
        /// The uid of the namespace.
        uid: Uid,
        /// The name of the namespace.
        name: Box<str>,
        /// Why no new executions start in the namespace, if it is paused.
        paused: Option<Box<str>>,
        /// Whether the deletion of the namespace has begun, so that nothing can be created in it any more.
        leaving: bool,
    },
    /// A namespace was deleted.
    NamespaceDeleted(Uid),
    /// A schedule was listed or changed.
    Schedule(Box<ScheduleRecord>),
    /// A schedule was deleted.
    ScheduleDeleted(Uid),
}
