//! The deliveries of the watches: small records of objects, parsed once.

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

/// The key of a decision: decisions with the same key are made one at a time.
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
    /// All watches, in the order of their declaration.
    pub const ALL: [Self; 7] =
        [Self::Execution, Self::Run, Self::TaskRun, Self::CustomRun, Self::Pod, Self::Namespace, Self::Schedule];
    /// The watches that a decision needs. Without that of schedules, only schedules wait.
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
    /// The part that decisions need.
    pub execution: Execution,
    /// Its target, if it can be read.
    pub target: Option<TargetName>,
    /// `metadata.generation`, for `observedGeneration`.
    pub generation: i64,
    /// What it asks to run; kept only while it is undecided and usable; with a retry policy, until it has ended.
    pub request: Option<Arc<RunRequest>>,
    /// The redaction of its texts; kept until everything is announced: it has ended, and its clearance, if any, is
    /// recorded.
    pub redaction: Option<Arc<Redaction>>,
    /// Its end, in the words of its status. The index does not keep it.
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
        /// Why.
        reason: SkipReason,
        /// Whether the execution came too early after a failure.
        backs_off: bool,
    },
}

impl ExecutionRecord {
    /// Returns the key of its decisions.
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
    /// The part that decisions need. The index adds its children, its pause, and what this process remembers of it.
    pub schedule: Schedule,
    /// The target of its template, if it can be read.
    pub target: Option<TargetName>,
}

impl ScheduleRecord {
    /// Returns the key of its decisions.
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
    /// A list begins: objects that it does not contain at its end are gone.
    ListBegins(Kind),
    /// A list is complete.
    ListEnds(Kind),
    /// An execution was listed or changed.
    Execution(Box<ExecutionRecord>),
    /// An execution was deleted.
    ExecutionDeleted(Uid),
    /// A run was listed or changed. The index sets its order, not the watch.
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
        /// Why nothing new starts in it, if it is paused.
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
