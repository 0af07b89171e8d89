//! What the watches deliver: small records of objects, parsed once at the edge.

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

/// What a decision is about, and what is decided one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A target, by the name of its chain.
    Chain(ChainName),
    /// An execution or a schedule whose target cannot be read: it locks nothing and stands alone.
    Unreadable(Uid),
}

/// Which watch a delivery comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `WorkflowExecution`.
    Execution,
    /// `PipelineRun`: the runs of chains, and pipelines in pipelines.
    Run,
    /// `TaskRun`.
    TaskRun,
    /// `CustomRun`.
    CustomRun,
    /// `Pod`.
    Pod,
    /// `Namespace`, for its pause.
    Namespace,
    /// `WorkflowSchedule`.
    Schedule,
}

impl Kind {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 7] =
        [Self::Execution, Self::Run, Self::TaskRun, Self::CustomRun, Self::Pod, Self::Namespace, Self::Schedule];
    /// Those without which no target is decided on. Where schedules cannot be seen, only schedules wait.
    pub const NEEDED: [Self; 6] =
        [Self::Execution, Self::Run, Self::TaskRun, Self::CustomRun, Self::Pod, Self::Namespace];

    /// Returns the plural of the resource: the closed label for metrics and logs.
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

/// What the index keeps of one `WorkflowExecution`.
#[derive(Clone, Debug)]
pub struct ExecutionRecord {
    /// What decisions need.
    pub execution: Execution,
    /// Its target, where it can be read.
    pub target: Option<TargetName>,
    /// `metadata.generation`, for `observedGeneration`.
    pub generation: i64,
    /// What it asks to run; kept only while it is undecided and usable, and with a retry policy until it has ended.
    pub request: Option<Arc<RunRequest>>,
    /// What no text may quote that leaves it; kept until all is told of it: it has ended, and its clearance, where it
    /// has one, is recorded.
    pub redaction: Option<Arc<Redaction>>,
    /// How it has ended, in the words of its status. The index does not keep it.
    pub end: Option<Box<EndShown>>,
}

/// What a status says of the end of its execution. A leader tells of an end that an earlier leader may not have told.
#[derive(Clone, Debug, PartialEq)]
pub struct EndShown {
    /// When the execution ended.
    pub at: Time,
    /// Into which phase.
    pub phase: EndPhase,
    /// The reason of the condition `Succeeded`.
    pub reason: Box<str>,
    /// The message of that condition, without the values of parameters.
    pub message: Box<str>,
    /// For how long the execution ran, where it ran.
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
        /// Why.
        reason: SkipReason,
        /// Whether the execution came too early after a failure.
        backs_off: bool,
    },
}

impl ExecutionRecord {
    /// Returns what it is decided with.
    #[must_use]
    pub fn key(&self) -> Key {
        match &self.target {
            Some(target) => Key::Chain(target.chain()),
            None => Key::Unreadable(self.execution.id.uid.clone()),
        }
    }
}

/// What the index keeps of one `WorkflowSchedule`.
#[derive(Clone, Debug)]
pub struct ScheduleRecord {
    /// What decisions need. The index adds its children, its pause, and what this process remembers of it.
    pub schedule: Schedule,
    /// The target of its template, where it can be read.
    pub target: Option<TargetName>,
}

impl ScheduleRecord {
    /// Returns what it is decided with.
    #[must_use]
    pub fn key(&self) -> Key {
        match &self.target {
            Some(target) => Key::Chain(target.chain()),
            None => Key::Unreadable(self.schedule.id.uid.clone()),
        }
    }
}

/// What one watch has delivered.
#[derive(Debug)]
pub enum Delivery {
    /// A list begins: what it does not hold at its end is gone.
    ListBegins(Kind),
    /// A list is complete.
    ListEnds(Kind),
    /// An execution was listed or changed.
    Execution(Box<ExecutionRecord>),
    /// An execution was deleted.
    ExecutionDeleted(Uid),
    /// A run was listed or changed. Its order is given here, not by the watch.
    Run(ChainName, Box<Run>),
    /// A run was deleted, or a pipeline in a pipeline; with the run's last version, which shows whether it was
    /// released.
    RunDeleted(Uid, Option<Box<Run>>),
    /// A descendant of a run was listed or changed.
    Descendant(Kind, Box<Descendant>),
    /// A descendant of a run was deleted; with its last version, which may be the only one that shows what it did.
    DescendantDeleted(Kind, Uid, Option<Box<Descendant>>),
    /// A namespace was listed or changed.
    Namespace {
        /// Its uid.
        uid: Uid,
        /// Its name.
        name: Box<str>,
        /// Why nothing new starts in it, where that is so.
        paused: Option<Box<str>>,
        /// Whether its deletion has begun: nothing can be created in it any more.
        leaving: bool,
    },
    /// A namespace was deleted.
    NamespaceDeleted(Uid),
    /// A schedule was listed or changed.
    Schedule(Box<ScheduleRecord>),
    /// A schedule was deleted.
    ScheduleDeleted(Uid),
}
