//! Carries out decisions, and is the only writer to the API server. Each write carries its precondition.
//!
//! This module never decides. If a precondition fails, the engine decides on the target again.

mod announcement;
mod attempts;
mod children;
mod examine;
mod executions;
mod facts;
mod live;
mod objects;
#[cfg(test)]
mod played;
mod quoted;
mod refusal;
mod required_labels;
mod runs;
mod schedules;
mod skip_lines;
mod stored;
mod task;
mod triage;
pub mod unconfirmed;

use std::sync::Arc;

use futures::{StreamExt, stream};
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use tokio::sync::Semaphore;
use wfe_core::action::Mark;
use wfe_core::name::{Uid, Version};
use wfe_core::target::TargetName;
use wfe_core::tries::{Trouble, TroubleKind};
use wfe_core::trouble::{OwnCause, OwnTrouble};
use wfe_view::call::CallError;
use wfe_view::index::{Expected, Key, Kind, Learned, Written};

use crate::cluster::client::Cluster;
use crate::cluster::concurrency_limit::ConcurrencyLimit;
use crate::cluster::crds::Crds;
use crate::cluster::lane::Lane;
use crate::events::{Events, NewEvent};
use crate::metrics::Metrics;
use crate::traces::Traces;

const EXECUTIONS: &str = "workflowexecutions";
const EXECUTION_STATUS: &str = "workflowexecutions/status";
/// How many writes of one decision may be in flight. The skips of a storm are written in parallel, and one target still
/// leaves the API server room for other targets.
const PARALLEL_WRITES: usize = 16;
/// How many conditions are evaluated in parallel: each evaluation takes up to 35 MiB of memory.
const PARALLEL_CONDITIONS: usize = 2;

/// The outcome of carrying out a decision.
#[derive(Debug, Default)]
pub struct Report {
    /// The results that the watches never deliver, or have not delivered yet.
    pub learned: Vec<Learned>,
    /// The errors of failed actions. The target is decided on again after a delay.
    pub errors: Vec<PerformError>,
    /// The errors of failed actions for schedules. They delay no execution.
    pub of_schedules: Vec<PerformError>,
    /// The actions whose requests failed.
    pub failed: Vec<Mark>,
    /// The actions whose writes the API server accepted without storing anything.
    pub ignored: Vec<Mark>,
}

/// Why an action was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PerformError {
    /// The precondition of a write no longer holds. The watch will deliver the change of the object.
    #[error("{what} has changed since the decision")]
    Changed {
        /// The changed object.
        what: String,
    },
    /// A live read does not confirm the fact that a write depends on.
    #[error("{what}, so the view is behind")]
    Refuted {
        /// What the live read found.
        what: String,
    },
    /// The API server accepted a status, but did not store a decisive part of it.
    #[error(
        "the API server accepted the status of {what} and did not store {fields}; apply the CRD of this version: \
         wfe-operator crd | kubectl apply -f -"
    )]
    Dropped {
        /// The object with the status.
        what: String,
        /// The fields that were not stored.
        fields: String,
    },
    /// A request failed.
    #[error("cannot {what}: {source}")]
    Call {
        /// What the request was for.
        what: String,
        /// How the request failed.
        #[source]
        source: CallError,
        /// The announcement of a write that may have succeeded.
        unconfirmed: Option<Box<Announcement>>,
    },
}

impl PerformError {
    /// Returns the fault of the operator itself that prevents the action, if there is one.
    #[must_use]
    pub fn own_trouble(&self) -> Option<OwnTrouble> {
        self.trouble()?.own()
    }

    /// Returns what prevents the action, if a request failed.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        let kind = match self {
            Self::Changed { .. } | Self::Refuted { .. } => return None,
            Self::Dropped { .. } => TroubleKind::Operator(OwnCause::WriteDropped),
            Self::Call { source, .. } => match source.own_cause() {
                Some(cause) => TroubleKind::Operator(cause),
                None if source.is_kind_missing() => TroubleKind::TektonUnavailable,
                None => TroubleKind::ApiErrors,
            },
        };
        Some(Trouble { kind, words: self.to_string().into() })
    }

    /// Adds the announcement of the write, if the write may have succeeded.
    fn with_unconfirmed(self, announcement: Announcement) -> Self {
        match self {
            Self::Call { what, source, .. } if source.is_in_doubt() => {
                Self::Call { what, source, unconfirmed: Some(Box::new(announcement)) }
            }
            other => other,
        }
    }

    /// Removes and returns the announcement of a write that may have succeeded.
    pub fn take_unconfirmed(&mut self) -> Option<Announcement> {
        match self {
            Self::Call { unconfirmed, .. } => unconfirmed.take().map(|announcement| *announcement),
            _ => None,
        }
    }

    /// Returns the label for metrics, one of [`CAUSES`](crate::metrics::CAUSES).
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Refuted { .. } => "refuted",
            Self::Dropped { .. } => "dropped",
            Self::Call { source, .. } => match source {
                CallError::TimedOut(_) => "timeout",
                CallError::Transport(_) => "transport",
                CallError::NotLeading => "lease",
                CallError::Refused(status) => match status.code {
                    403 => "forbidden",
                    409 => "conflict",
                    422 => "invalid",
                    429 => "throttled",
                    500.. => "server",
                    _ => "refused",
                },
            },
        }
    }
}

/// The results of one write, and why the write failed, if it did.
type Attempt = (Vec<Learned>, Option<PerformError>);

#[cfg(test)]
pub(crate) use announcement::AnnouncedWrite;
pub use announcement::{Announcement, AnnouncementKey, OfExecution, OfSchedule, Sight};
pub use schedules::ChildCreation;
use skip_lines::SkipLines;
pub use task::{Common, Creation, Question, Task, Work};

type Result<T> = std::result::Result<T, PerformError>;

/// Carries out actions. Cheap to clone.
#[derive(Clone)]
pub struct Performer {
    cluster: Cluster,
    crds: Crds,
    metrics: Metrics,
    events: Events,
    /// Limits how many conditions are evaluated in parallel.
    asking: Arc<Semaphore>,
    skips_logged: SkipLines,
    traces: Traces,
}

impl Performer {
    /// Makes a performer.
    #[must_use]
    pub fn new(cluster: Cluster, crds: Crds, metrics: Metrics, events: Events, traces: Traces) -> Self {
        Self {
            cluster,
            crds,
            metrics,
            events,
            asking: Arc::new(Semaphore::new(PARALLEL_CONDITIONS)),
            skips_logged: SkipLines::default(),
            traces,
        }
    }

    /// Returns the measured latency of the API server.
    #[must_use]
    pub fn concurrency_limit(&self) -> ConcurrencyLimit {
        self.cluster.concurrency_limit()
    }

    /// Returns the same performer with this lane for its requests.
    #[must_use]
    pub fn in_lane(self, lane: Lane) -> Self {
        Self { cluster: self.cluster.in_lane(lane), ..self }
    }

    /// Creates an event that does not follow from a write.
    pub fn announce(&self, announcement: NewEvent) {
        self.events.announce(announcement);
    }

    /// Carries out one decision. Its actions are independent: the failure of one does not stop the others.
    pub async fn perform(self, work: Work) -> (Key, Report) {
        let Work { key, common, tasks } = work;
        let common = Arc::new(common);
        let results: Vec<(Mark, bool, Vec<Attempt>)> = stream::iter(tasks)
            .map(|(mark, task)| {
                let (this, common) = (self.clone(), Arc::clone(&common));
                async move {
                    let of_schedule = matches!(task, Ok(Task::CreateChild(_) | Task::Record(..) | Task::Triage(_)));
                    match task {
                        Ok(task) => (mark, of_schedule, this.carry_out(common, task).await),
                        Err(error) => (mark, of_schedule, vec![(Vec::new(), Some(error))]),
                    }
                }
            })
            .buffer_unordered(PARALLEL_WRITES)
            .collect()
            .await;
        let mut report = Report::default();
        for (mark, of_schedule, attempts) in results {
            let has_failed = |error: &Option<PerformError>| error.as_ref().is_some_and(|it| it.trouble().is_some());
            if attempts.iter().any(|(_, error)| has_failed(error)) {
                report.failed.push(mark);
            } else if attempts.iter().any(|(learned, _)| learned.iter().any(|it| matches!(it, Learned::NothingStored)))
            {
                report.ignored.push(mark);
            }
            for (learned, error) in attempts {
                report.learned.extend(learned);
                if of_schedule { &mut report.of_schedules } else { &mut report.errors }.extend(error);
            }
        }
        (key, report)
    }

    async fn carry_out(self, common: Arc<Common>, task: Task) -> Vec<Attempt> {
        let result = match task {
            Task::Create(creation) => self.create(&common, &creation).await,
            Task::Write(write, subject) => self.write(&common, *write, subject).await,
            Task::Skip { skipped, skip, fact } => return self.skip_all(common, skipped, skip, &fact).await,
            Task::Change(change) => self.change(&common, &change).await,
            Task::Remove(execution, version) => self.remove(&common, &execution, &version).await,
            Task::Examine(run, evidence) => self.examine(&run, &evidence).await,
            Task::Ask(question) => self.ask(question).await,
            Task::ReadOwner(owner) => self.read_owner(&owner, common.now).await,
            Task::CreateChild(creation) => self.create_child(&creation, common.now).await,
            Task::Record(record, shown) => self.record(&record, &shown, common.now).await,
            Task::Triage(step) => self.triage(&step).await,
            Task::Tell(tell, attempt) => Ok(self.tell_people(&common, tell, attempt)),
        };
        vec![split(result)]
    }
}

/// Shows a target in log lines, even if its name cannot be read.
pub(crate) struct Shown<'a>(pub(crate) Option<&'a TargetName>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.map_or("(unreadable)", TargetName::as_str))
    }
}

fn split(result: Result<Vec<Learned>>) -> Attempt {
    match result {
        Ok(learned) => (learned, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}

fn call(what: String, source: CallError) -> PerformError {
    PerformError::Call { what, source, unconfirmed: None }
}

/// Classifies an error: 404 and 409 mean that the object differs from what the decision saw.
fn changed_or_call(error: CallError, what: String, verb: &str) -> PerformError {
    match error.code() {
        404 | 409 => PerformError::Changed { what },
        _ => call(format!("{verb} {what}"), error),
    }
}

/// Requests the deletion of an object with this uid and version.
fn if_unchanged(uid: &Uid, version: &Version) -> DeleteParams {
    let (uid, resource_version) = (Some(uid.to_string()), Some(version.as_str().to_owned()));
    DeleteParams { preconditions: Some(Preconditions { uid, resource_version }), ..DeleteParams::background() }
}

/// Returns what to await after a deletion: the object disappears, or a finalizer keeps it for a while.
fn deleted(object: Written, leaving: Option<&DynamicObject>) -> Vec<Learned> {
    match leaving {
        Some(leaving) => expect_object(object.kind, leaving),
        None => vec![Learned::Expect(Expected::Absence { object })],
    }
}

fn expect_object(kind: Kind, object: &DynamicObject) -> Vec<Learned> {
    let (Some(object), Some(version)) = (written(kind, object), &object.metadata.resource_version) else {
        return Vec::new();
    };
    vec![Learned::Expect(Expected::Version { object, version: Version::new(version) })]
}

fn written(kind: Kind, object: &DynamicObject) -> Option<Written> {
    let meta = &object.metadata;
    Some(Written {
        kind,
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref()?.into(),
        uid: Uid::new(meta.uid.as_deref()?),
    })
}
