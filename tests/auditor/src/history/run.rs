//! One PipelineRun of a chain over time: created, released, finished, gone.

use serde_json::Value;
use wfe_api::labels::{
    ANNOTATION_TARGET, ANNOTATION_UID, ANNOTATION_WORKFLOW_EXECUTION, ANNOTATION_WORKFLOW_ID, LABEL_RUN_SEQUENCE,
};
use wfe_core::chain::{ChainName, RunNumber};

use super::life::Life;
use super::piece::{Piece, succeeded};
use super::text;
use crate::report::{Moment, ObjectRef};

/// The `spec.status` with which a run is created.
pub(crate) const PENDING: &str = "PipelineRunPending";
/// The `spec.status` that stops a run at once; one that was pending never starts anything.
pub(crate) const CANCELLED: &str = "Cancelled";
/// The `spec.status` that cancels everything of a run except its `finally` tasks.
const CANCELLED_RUN_FINALLY: &str = "CancelledRunFinally";

/// A chain. Runs in different namespaces are no rivals, because their operators know nothing of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: ChainName,
}

/// One PipelineRun of a chain.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) chain: Chain<'a>,
    pub(crate) number: RunNumber,
    /// The number in its label.
    pub(crate) label: Option<&'a str>,
    /// Uid of its execution.
    pub(crate) owner: &'a str,
    /// namespace/name of its execution.
    pub(crate) owner_name: Option<&'a str>,
    pub(crate) workflow_id: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
    pub(crate) created_time: Option<&'a str>,
    pub(crate) created: Moment,
    /// When Tekton was first free to start it.
    pub(crate) released: Option<Moment>,
    /// When its spec first was not pending. A run that is cancelled while pending also looks startable then, until
    /// Tekton reports that it is done.
    pub(crate) unheld: Option<Moment>,
    /// When Tekton was first asked to cancel it, with or without its `finally` tasks.
    pub(crate) cancelled: Option<Moment>,
    /// When Tekton reported that it is done.
    pub(crate) finished: Option<Moment>,
    /// Whether it is done and has succeeded.
    pub(crate) succeeded: bool,
    /// When its deletion began. A foreign finalizer may keep it after that.
    deleting: Option<Moment>,
    pub(crate) gone: Option<Moment>,
    /// What became of the objects made from it.
    pieces: Pieces,
}

/// A run that is being deleted is over once nothing of it has been left for this long, in milliseconds. The operator
/// waits for 30 s; a recorder may see a deletion later than the operator.
const BARE_MS: u64 = 20_000;

/// Whether the objects made from a run are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// No object was made, or all of them have been over since then.
    Over(Option<Moment>),
    /// At least one object is unfinished.
    Goes,
}

impl<'a> Run<'a> {
    /// Reads a run; `None` if it is not ours.
    pub(super) fn read(life: &Life<'a>) -> Option<Self> {
        let (name, number) = ChainName::of_run(life.name)?;
        let when = |is: fn(&Value) -> bool| life.states.iter().find(|(_, object)| is(object)).map(|(at, _)| *at);
        let done = life.states.iter().find_map(|(at, object)| Some((*at, succeeded(object)?)));
        Some(Self {
            object: life.object(),
            chain: Chain { namespace: life.namespace, name },
            number,
            label: life.label(LABEL_RUN_SEQUENCE),
            owner: life.annotation(ANNOTATION_UID)?,
            owner_name: life.annotation(ANNOTATION_WORKFLOW_EXECUTION),
            workflow_id: life.annotation(ANNOTATION_WORKFLOW_ID),
            target: life.annotation(ANNOTATION_TARGET),
            created_time: text(life.first(), "/metadata/creationTimestamp"),
            created: life.begun(),
            released: when(is_let_go),
            unheld: when(|object| text(object, "/spec/status") != Some(PENDING)),
            cancelled: when(|object| matches!(text(object, "/spec/status"), Some(CANCELLED | CANCELLED_RUN_FINALLY))),
            finished: done.map(|(at, _)| at),
            succeeded: done.is_some_and(|(_, succeeded)| succeeded),
            deleting: when(|object| text(object, "/metadata/deletionTimestamp").is_some()),
            gone: life.gone,
            pieces: Pieces::Over(None),
        })
    }

    /// A run from which something was made has been released, whatever its spec says.
    pub(super) fn note_piece(&mut self, piece: &Piece<'_>) {
        if self.released.is_none_or(|released| piece.created < released) {
            self.released = Some(piece.created);
        }
        self.pieces = match (self.pieces, piece.over) {
            (Pieces::Over(last), Some(over)) => Pieces::Over(last.max(Some(over))),
            _ => Pieces::Goes,
        };
    }

    /// Returns when it stopped for good: done, gone, or being deleted with nothing of it left. Tekton makes nothing
    /// from a run that is being deleted.
    pub(crate) fn over(&self) -> Option<Moment> {
        [self.finished, self.gone, self.left()].into_iter().flatten().min()
    }

    fn left(&self) -> Option<Moment> {
        let deleting = self.deleting.filter(|_| self.released.is_some())?;
        match self.pieces {
            Pieces::Over(last) => last.max(Some(deleting)),
            Pieces::Goes => None,
        }
    }

    /// Returns whether it existed and was unfinished at a moment, by what could be known then.
    pub(crate) fn is_unfinished_at(&self, moment: Moment) -> bool {
        let is_over = [self.finished, self.gone].into_iter().flatten().any(|over| over <= moment);
        let is_left = self.left().is_some_and(|left| left.at_ms.saturating_add(BARE_MS) <= moment.at_ms);
        self.created <= moment && !is_over && !is_left
    }

    /// Returns whether at a moment it was being deleted and had not been released. Tekton starts nothing of such a run,
    /// and a deletion is never taken back.
    pub(crate) fn never_starts_from(&self, moment: Moment) -> bool {
        self.deleting.is_some_and(|deleting| deleting <= moment) && !self.is_released_at(moment)
    }

    pub(crate) fn is_released_at(&self, moment: Moment) -> bool {
        self.released.is_some_and(|released| released <= moment)
    }

    /// Returns whether it had been released or stopped by a moment. Its execution then commits to it whatever the rules
    /// say, because the record must show it (ADR 5).
    pub(crate) fn was_touched_by(&self, moment: Moment) -> bool {
        [self.released, self.cancelled, self.finished].into_iter().flatten().any(|touched| touched <= moment)
    }

    /// Returns whether it was deleted without ever having been released.
    pub(crate) fn never_ran(&self) -> bool {
        self.released.is_none()
    }
}

/// Returns whether Tekton is free to start the run, or has started something of it. (A run that is cancelled while
/// pending starts nothing. A run that is *stopped*, or cancelled with its `finally` tasks, may run these tasks.)
fn is_let_go(run: &Value) -> bool {
    let held = matches!(text(run, "/spec/status"), Some(PENDING | CANCELLED));
    let children = run.pointer("/status/childReferences").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    !held || children
}
