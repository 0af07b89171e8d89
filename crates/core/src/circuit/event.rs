//! What the circuits are computed from: that a child was made, and that an execution ended.

use std::sync::Arc;

use crate::Time;
use crate::chain::ChainName;
use crate::fingerprint::{Fingerprint, Origin};
use crate::name::Uid;

/// Something that happened to one execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it happened.
    pub at: Time,
    /// The execution.
    pub uid: Uid,
    /// Its namespace: that of whoever asked for it, which its target need not be in.
    pub namespace: Arc<str>,
    /// What it would run, from where.
    pub origin: Arc<Origin>,
    /// The schedule that it was made for, where it is a child of one.
    pub schedule: Option<Uid>,
    /// What happened.
    pub what: What,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It was made for a schedule. While a circuit holds that schedule, it is a probe.
    Made,
    /// It ended, and was neither skipped nor cancelled nor too late. What a triage runs is no event.
    Ended {
        /// The target that it ran on.
        target: ChainName,
        /// When it was made.
        created: Time,
        /// How it ended.
        end: End,
    },
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It completed.
    Succeeded {
        /// When it was committed to its run (`status.startTime`).
        began: Time,
    },
    /// It failed.
    Failed {
        /// With what; none where its status has no fingerprint that circuits know.
        with: Option<Fingerprint>,
        /// Whether nothing of it had run: only such failures open a circuit.
        before: bool,
    },
}

/// The place of an event in the order in which events are folded.
pub(super) type Place = (Time, Uid, bool);

impl Event {
    /// Returns its place: by time, then by uid. An execution is made before it ends.
    pub(super) fn place(&self) -> Place {
        (self.at, self.uid.clone(), matches!(self.what, What::Ended { .. }))
    }
}
