//! One PipelineRun of a chain over time: its creation, release, end and deletion.

use serde_json::Value;
use wfe_api::labels::{
    ANNOTATION_TARGET, ANNOTATION_UID, ANNOTATION_WORKFLOW_EXECUTION, ANNOTATION_WORKFLOW_ID, LABEL_RUN_SEQUENCE,
};
use wfe_core::chain::{ChainName, RunNumber};

use super::life::Life;
use super::piece::{Piece, succeeded};
use super::text;
use crate::report::{Moment, ObjectRef};

/// The `spec.status` of a new run.
pub(crate) const PENDING: &str = "PipelineRunPending";
/// The `spec.status` that stops a run at once. If the run was pending, it never starts.
pub(crate) const CANCELLED: &str = "Cancelled";
/// The `spec.status` that cancels all tasks of a run except its `finally` tasks.
const CANCELLED_RUN_FINALLY: &str = "CancelledRunFinally";

/// The sequence of runs on one target in one namespace. Runs in different namespaces do not compete, because their
/// operators do not see each other.
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
    /// The number in the run's label.
    pub(crate) label: Option<&'a str>,
    /// The uid of the run's execution.
    pub(crate) owner: &'a str,
    /// The namespace/name of the run's execution.
    pub(crate) owner_name: Option<&'a str>,
    pub(crate) workflow_id: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
    pub(crate) created_time: Option<&'a str>,
    pub(crate) created: Moment,
    /// When Tekton could first start the run.
    pub(crate) released: Option<Moment>,
    /// When the run's spec was first not pending. A pending run that is cancelled also looks startable, until Tekton
    /// reports its end.
    pub(crate) unheld: Option<Moment>,
    /// When Tekton was first asked to cancel the run, with or without its `finally` tasks.
    pub(crate) cancelled: Option<Moment>,
    /// When Tekton reported the end of the run.
    pub(crate) finished: Option<Moment>,
    /// Whether the run has ended and succeeded.
    pub(crate) succeeded: bool,
    /// When the deletion of the run began. A foreign finalizer may keep the run afterwards.
    deleting: Option<Moment>,
    pub(crate) gone: Option<Moment>,
    /// Whether the objects that were made for the run are over.
    pieces: Pieces,
}

/// How long nothing may be left of a run before its deletion counts as its end, in milliseconds. The operator waits for
/// 30 s, but a recorder may see a deletion later than the operator.
const BARE_MS: u64 = 20_000;

/// Whether the objects that were made for a run are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// No object was made, or all are over since this moment.
    Over(Option<Moment>),
    /// At least one object is unfinished.
    Goes,
}

impl<'a> Run<'a> {
    /// Reads a run; `None` if it belongs to no execution.
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

    /// Records an object that was made for the run. The run has then been released, whatever its spec says.
    pub(super) fn note_piece(&mut self, piece: &Piece<'_>) {
        if self.released.is_none_or(|released| piece.created < released) {
            self.released = Some(piece.created);
        }
        self.pieces = match (self.pieces, piece.over) {
            (Pieces::Over(last), Some(over)) => Pieces::Over(last.max(Some(over))),
            _ => Pieces::Goes,
        };
    }

    /// Returns when the run stopped for good: when it ended, was deleted, or was being deleted with nothing of it left.
    /// Tekton makes no objects for a run that is being deleted.
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

    /// Returns whether the run existed and was unfinished at a moment, according to what an operator could know then.
    pub(crate) fn is_unfinished_at(&self, moment: Moment) -> bool {
        let is_over = [self.finished, self.gone].into_iter().flatten().any(|over| over <= moment);
        let is_left = self.left().is_some_and(|left| left.at_ms.saturating_add(BARE_MS) <= moment.at_ms);
        self.created <= moment && !is_over && !is_left
    }

    /// Returns whether the run was being deleted at a moment, and had not been released. Tekton starts nothing of such
    /// a run, and a deletion cannot be revoked.
    pub(crate) fn never_starts_from(&self, moment: Moment) -> bool {
        self.deleting.is_some_and(|deleting| deleting <= moment) && !self.is_released_at(moment)
    }

    pub(crate) fn is_released_at(&self, moment: Moment) -> bool {
        self.released.is_some_and(|released| released <= moment)
    }

    /// Returns whether the run had been released or stopped by a moment. Its execution then commits to it without
    /// regard to the rules, because the status must show the run (ADR 5).
    pub(crate) fn was_touched_by(&self, moment: Moment) -> bool {
        [self.released, self.cancelled, self.finished].into_iter().flatten().any(|touched| touched <= moment)
    }

    /// Returns whether the run was never released.
    pub(crate) fn never_ran(&self) -> bool {
        self.released.is_none()
    }
}

/// Returns whether Tekton could start the run, or has started a part of it. A pending run that is cancelled starts
/// nothing. A run that is *stopped*, or cancelled with its `finally` tasks, may run these tasks.
fn is_let_go(run: &Value) -> bool {
    let held = matches!(text(run, "/spec/status"), Some(PENDING | CANCELLED));
    let children = run.pointer("/status/childReferences").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    !held || children
}
