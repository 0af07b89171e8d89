//! The events that circuits are computed from: a child was made, or an execution ended.

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
    /// The namespace of the execution, which may differ from that of its target.
    pub namespace: Arc<str>,
    /// What it runs, and from which registry.
    pub origin: Arc<Origin>,
    /// The schedule that it was made for, if it is a child.
    pub schedule: Option<Uid>,
    /// What happened.
    pub what: What,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It was made for a schedule. If a circuit holds that schedule, the child is a probe.
    Made,
    /// It ended, and was neither skipped nor cancelled nor too late. The analysis of a triage is no event.
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
        started_at: Time,
    },
    /// It failed.
    Failed {
        /// The fingerprint; none if its status has none that circuits know.
        fingerprint: Option<Fingerprint>,
        /// Whether it failed before anything of it ran: only such failures open a circuit.
        before_start: bool,
    },
}

/// The position of an event in the order in which events are folded.
pub(super) type Place = (Time, Uid, bool);

impl Event {
    /// Returns its position: by time, then by uid. An execution is made before it ends.
    pub(super) fn order(&self) -> Place {
        (self.at, self.uid.clone(), matches!(self.what, What::Ended { .. }))
    }
}
