//! The only writer: carries out what a decision asks for, each write with its precondition.
//!
//! It never chooses differently. Where a precondition fails, the target is looked at again.

mod examine;
mod executions;
mod facts;
mod live;
mod marks;
mod refusal;
mod runs;
mod telling;

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use wfe_core::Time;
use wfe_core::action::Action;
use wfe_core::chain::{ChainName, RunNumber};
use wfe_core::findings::Findings;
use wfe_core::name::{ExecutionId, Uid, Version};
use wfe_core::reason::Refusal;
use wfe_core::run::Run;
use wfe_core::target::TargetName;
use wfe_core::tries::{Trouble, TroubleKind};
use wfe_tekton::{Defaults, Evidence, RunRequest};
use wfe_view::call::CallError;
use wfe_view::index::{Expected, Key, Kind, Live, Written};

use crate::client::Cluster;
use crate::events::{Announcement, Events};
use crate::metrics::Metrics;
use crate::status::{Commitment, Going, Subject};

const EXECUTIONS: &str = "workflowexecutions";
const EXECUTION_STATUS: &str = "workflowexecutions/status";
/// How many writes of one decision are under way at once: a storm's skips go out side by side, and one target leaves
/// the API server room for the others.
const PARALLEL_WRITES: usize = 16;

/// One decision's actions, with what is needed to carry them out.
#[derive(Debug)]
pub struct Work {
    /// The target.
    pub key: Key,
    /// Its name, where it can be read.
    pub target: Option<TargetName>,
    /// What to do.
    pub actions: Vec<Action>,
    /// The executions that the actions name.
    pub subjects: HashMap<Uid, Subject>,
    /// The executions with a create of which a run was seen before, with the versions that the decision rests on.
    pub had_runs: HashMap<Uid, Version>,
    /// What the executions ask to run, where the actions create runs.
    pub requests: HashMap<Uid, Arc<RunRequest>>,
    /// What was seen of the runs that the actions look at.
    pub evidence: HashMap<Uid, Evidence>,
    /// What the configuration that the decision was made by holds for a spec that is silent.
    pub defaults: Defaults,
    /// The time of the decision.
    pub now: Time,
}

/// What carrying out the actions has brought.
#[derive(Debug, Default)]
pub struct Report {
    /// What is known now that the watches do not say, or do not say yet.
    pub learned: Vec<Learned>,
    /// What could not be done; the target is to be looked at again after a while.
    pub errors: Vec<PerformError>,
    /// The actions whose requests failed.
    pub failed: Vec<Action>,
}

/// Something that a write or a live read has brought to light.
#[derive(Debug)]
pub enum Learned {
    /// A write of ours, which the watch must deliver before the next decision.
    Expect(Expected),
    /// A create that was refused for good.
    Refused(Uid, Refusal),
    /// A run was deleted, as it could not be released in time.
    Unreleased(Uid),
    /// A number that an object outside our watch has taken.
    NumberTaken(RunNumber),
    /// An owner that is gone.
    OwnerGone(ExecutionId),
    /// What a live look at a run has found.
    Looked(Uid, Box<Findings>),
    /// A write to this execution was answered, and told of.
    Told(Uid),
    /// What a live read has found of an object whose write is awaited.
    Read(Expected, Live),
    /// A run that is there, and that its watch does not deliver any more.
    Unwatched(ChainName, Box<Run>),
    /// A run that is gone, as a live read says.
    RunGone(Uid),
    /// It has been told that steps of a run have run again.
    ReplayTold(Uid),
    /// It has been said that the target does not drain.
    DrainWarned,
}

/// Why an action was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PerformError {
    /// The precondition of a write no longer holds: somebody else was faster, and the watch will say who.
    #[error("{what} has changed since the decision")]
    Changed {
        /// Which object.
        what: String,
    },
    /// A live read does not confirm the fact that a write rests on.
    #[error("{what}, so the view is behind")]
    Refuted {
        /// What the read found.
        what: String,
    },
    /// The request failed.
    #[error("cannot {what}: {source}")]
    Call {
        /// What was tried.
        what: String,
        /// How it failed.
        #[source]
        source: CallError,
        /// What there is to tell, should it have happened after all.
        untold: Option<Box<Telling>>,
    },
}

impl PerformError {
    /// Says whether the operator's own account lacks a right for the request.
    #[must_use]
    pub fn lacks_right(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.lacks_right())
    }

    /// Returns what keeps the decision from being carried out, where a request failed.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        let Self::Call { source, .. } = self else { return None };
        let kind = if source.lacks_right() {
            TroubleKind::OperatorForbidden
        } else if source.is_kind_missing() {
            TroubleKind::TektonUnavailable
        } else {
            TroubleKind::ApiErrors
        };
        Some(Trouble { kind, words: self.to_string().into() })
    }

    /// All labels.
    pub const LABELS: [&str; 11] = [
        "changed",
        "refuted",
        "timeout",
        "transport",
        "forbidden",
        "conflict",
        "invalid",
        "throttled",
        "server",
        "refused",
        "lease",
    ];

    /// Adds what there is to tell, should the write have happened after all.
    fn with_untold(self, telling: Telling) -> Self {
        match self {
            Self::Call { what, source, .. } if source.is_in_doubt() => {
                Self::Call { what, source, untold: Some(Box::new(telling)) }
            }
            other => other,
        }
    }

    /// Takes out what there is to tell, should the write have happened after all.
    pub fn take_untold(&mut self) -> Option<Telling> {
        match self {
            Self::Call { untold, .. } => untold.take().map(|telling| *telling),
            _ => None,
        }
    }

    /// Returns the closed label for metrics.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Refuted { .. } => "refuted",
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

/// What one write has brought, and why it failed, where it did.
type Attempt = (Vec<Learned>, Option<PerformError>);

#[cfg(test)]
pub(crate) use telling::Told;
pub use telling::{Sight, Telling, TellingKey};

type Result<T> = std::result::Result<T, PerformError>;

/// Carries out actions. Cheap to clone.
#[derive(Clone)]
pub struct Performer {
    cluster: Cluster,
    metrics: Metrics,
    events: Events,
}

impl Performer {
    /// Makes a performer.
    #[must_use]
    pub fn new(cluster: Cluster, metrics: Metrics, events: Events) -> Self {
        Self { cluster, metrics, events }
    }

    /// Carries out one decision. The actions are independent of each other, and so is their failure.
    pub async fn perform(self, mut work: Work) -> (Key, Report) {
        let actions = std::mem::take(&mut work.actions);
        let key = work.key.clone();
        let work = Arc::new(work);
        let results: Vec<(Action, Vec<Attempt>)> = stream::iter(actions)
            .map(|action| {
                let attempts = self.clone().perform_one(Arc::clone(&work), action.clone());
                async move { (action, attempts.await) }
            })
            .buffer_unordered(PARALLEL_WRITES)
            .collect()
            .await;
        let mut report = Report::default();
        for (action, attempts) in results {
            if attempts.iter().any(|(_, error)| matches!(error, Some(PerformError::Call { .. }))) {
                report.failed.push(action);
            }
            for (learned, error) in attempts {
                report.learned.extend(learned);
                report.errors.extend(error);
            }
        }
        (key, report)
    }

    async fn perform_one(self, work: Arc<Work>, action: Action) -> Vec<Attempt> {
        let result = match action {
            Action::Create { execution, number } => self.create(&work, &execution, number).await,
            Action::Commit { execution, version, run, number, consecutive_failures, facts, .. } => {
                let commitment = Commitment { run: &run, number, consecutive_failures };
                self.commit(&work, &execution, &version, commitment, &facts).await
            }
            Action::GiveUp { execution, version, number } => self.give_up(&work, &execution, &version, number).await,
            Action::Release { run } => self.release(&run, work.now).await,
            Action::Finish { execution, version, ending, facts, draining } => {
                self.finish(&work, &execution, &version, &ending, &facts, draining).await
            }
            Action::ShowProgress { execution, version, run, shown, doing, started_at } => {
                let going = Going { run: &run, shown: &shown, doing: &doing, since: started_at };
                self.show_progress(&work, &execution, &version, going).await
            }
            Action::Examine { run } => self.examine(&work, &run).await,
            Action::Follow { run } => self.follow(&run).await,
            Action::TellReplay { execution, run, task_run } => {
                tracing::warn!(wfe = %execution, target = %Shown(&work.target), %run, %task_run, "steps have run again");
                self.events.announce(Announcement::steps_replayed(&execution, &run, &task_run));
                Ok(vec![Learned::ReplayTold(run.uid)])
            }
            Action::Freed { execution, version } => self.freed(&work, &execution, &version).await,
            Action::RecordClearance { execution, version, clearance, effective } => {
                self.record_clearance(&work, &execution, &version, &clearance, effective).await
            }
            Action::ShowBlocked { execution, version, blocked } => {
                self.show_blocked(&work, &execution, &version, blocked).await
            }
            Action::ShowWaiting { execution, version, waiting, tried } => {
                self.show_waiting(&work, &execution, &version, &waiting, tried).await
            }
            Action::DrainSlow { holder, residue, since } => {
                self.metrics.drain_slow();
                let (kind, name) = (residue.kind.as_str(), &residue.name);
                tracing::warn!(wfe = %holder, target = %Shown(&work.target), kind, name, %since, "the target does not drain");
                self.events.announce(Announcement::drain_slow(&holder, &residue, since));
                Ok(vec![Learned::DrainWarned])
            }
            Action::Skip { skipped, skip, fact } => {
                return self.skip_all(work, skipped, Arc::new(skip), &fact).await;
            }
            Action::Delete { run, version, why, facts } => self.delete(&work, &run, &version, why, &facts).await,
            Action::Remove { execution, version } => self.remove(&work, &execution, &version).await,
            Action::Cancel { run, why, facts } => self.cancel(&work, &run, why, &facts).await,
        };
        vec![split(result)]
    }
}

/// Shows a target in logs, also one that cannot be read.
struct Shown<'a>(&'a Option<TargetName>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_ref().map_or("(unreadable)", TargetName::as_str))
    }
}

fn split(result: Result<Vec<Learned>>) -> Attempt {
    match result {
        Ok(learned) => (learned, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}

fn call(what: String, source: CallError) -> PerformError {
    PerformError::Call { what, source, untold: None }
}

/// 404 and 409 say that the object is not what the decision saw; anything else is a failed request.
fn changed_or_call(error: CallError, what: String, verb: &str) -> PerformError {
    match error.code() {
        404 | 409 => PerformError::Changed { what },
        _ => call(format!("{verb} {what}"), error),
    }
}

/// Asks for the deletion of an object that is still as it was seen: its uid and its version say so.
fn if_unchanged(uid: &Uid, version: &Version) -> DeleteParams {
    let (uid, resource_version) = (Some(uid.to_string()), Some(version.as_str().to_owned()));
    DeleteParams { preconditions: Some(Preconditions { uid, resource_version }), ..DeleteParams::background() }
}

/// What a deletion leads to: the object goes, or somebody's finalizer holds it for a while.
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
