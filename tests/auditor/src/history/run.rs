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
/// `spec.status` of a run that is cancelled but for its `finally` tasks.
const CANCELLED_RUN_FINALLY: &str = "CancelledRunFinally";

/// A chain: runs in different namespaces are no rivals, as their operators know nothing of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: ChainName,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) chain: Chain<'a>,
    pub(crate) number: RunNumber,
    /// What its label says of the number.
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
    /// When it was pending no more, as far as its spec says: also one that is cancelled then looks as if it may run,
    /// until Tekton says that it is done.
    pub(crate) unheld: Option<Moment>,
    /// When somebody first asked Tekton to cancel it, with or without its `finally` tasks.
    pub(crate) cancelled: Option<Moment>,
    /// When Tekton said that it is done.
    pub(crate) finished: Option<Moment>,
    /// Whether it is done and succeeded.
    pub(crate) succeeded: bool,
    /// When its deletion began. A foreign finalizer may hold it after that.
    deleting: Option<Moment>,
    pub(crate) gone: Option<Moment>,
    /// What became of all that was made from it.
    pieces: Pieces,
}

/// How long nothing of a run that is being deleted must have been left before anybody may take it for over, in
/// milliseconds. The operator waits for 30 s; a recorder may see a deletion later than it does.
const BARE_MS: u64 = 20_000;

/// How far all is that was made from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// Nothing was made, or all of it is over since then.
    Over(Option<Moment>),
    /// Something of it goes on.
    Goes,
}

impl<'a> Run<'a> {
    /// Reads a run; `None` where it is not one of ours.
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

    /// Where something was made from it, it was let go, whatever its spec says.
    pub(super) fn note_piece(&mut self, piece: &Piece<'_>) {
        if self.released.is_none_or(|released| piece.created < released) {
            self.released = Some(piece.created);
        }
        self.pieces = match (self.pieces, piece.over) {
            (Pieces::Over(last), Some(over)) => Pieces::Over(last.max(Some(over))),
            _ => Pieces::Goes,
        };
    }

    /// Returns the moment from which on it does nothing more: done, gone, or being deleted with nothing of it left, as
    /// Tekton makes nothing of a run that is being deleted.
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

    /// Returns whether it was there and unfinished at a moment, as far as anybody could know by then.
    pub(crate) fn is_unfinished_at(&self, moment: Moment) -> bool {
        let is_over = [self.finished, self.gone].into_iter().flatten().any(|over| over <= moment);
        let is_left = self.left().is_some_and(|left| left.at_ms.saturating_add(BARE_MS) <= moment.at_ms);
        self.created <= moment && !is_over && !is_left
    }

    /// Returns whether it was on its way out at a moment and not released by then: Tekton starts nothing that is being
    /// deleted, and a deletion is never taken back.
    pub(crate) fn never_starts_from(&self, moment: Moment) -> bool {
        self.deleting.is_some_and(|deleting| deleting <= moment) && !self.is_released_at(moment)
    }

    pub(crate) fn is_released_at(&self, moment: Moment) -> bool {
        self.released.is_some_and(|released| released <= moment)
    }

    /// Returns whether somebody had let it go or stopped it by a moment. What its execution commits to after that is
    /// committed to whatever the rules say, so that the record tells it (ADR 5).
    pub(crate) fn was_touched_by(&self, moment: Moment) -> bool {
        [self.released, self.cancelled, self.finished].into_iter().flatten().any(|touched| touched <= moment)
    }

    /// Returns whether it was deleted without ever having been released.
    pub(crate) fn never_ran(&self) -> bool {
        self.released.is_none()
    }
}

/// Returns whether Tekton is free to start it, or has started something. (Of a run that is cancelled straight from
/// pending it starts nothing; one that is *stopped* or cancelled with its `finally` tasks may run these.)
fn is_let_go(run: &Value) -> bool {
    let held = matches!(text(run, "/spec/status"), Some(PENDING | CANCELLED));
    let children = run.pointer("/status/childReferences").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    !held || children
}
