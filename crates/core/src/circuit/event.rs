//! The events from which circuits are computed: a child was created, or an execution ended.

use std::sync::Arc;

use crate::Time;
use crate::chain::ChainName;
use crate::fingerprint::{Fingerprint, Origin};
use crate::name::Uid;

/// An event of one execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When the event happened.
    pub at: Time,
    /// The execution.
    pub uid: Uid,
    /// The namespace of the execution, which may differ from the namespace of its target.
    pub namespace: Arc<str>,
    /// The workflow that the execution runs, and its registry.
    pub origin: Arc<Origin>,
    /// The schedule for which the execution was created, if it is a child.
    pub schedule: Option<Uid>,
    /// What happened.
    pub what: What,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The execution was created for a schedule. If a circuit holds that schedule, the execution is a probe.
    Made,
    /// The execution ended, and was neither skipped nor cancelled nor too late. The analysis for a triage causes no
    /// event.
    Ended {
        /// The target of the execution.
        target: ChainName,
        /// When the execution was created.
        created: Time,
        /// How the execution ended.
        end: End,
    },
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The execution completed.
    Succeeded {
        /// When the execution committed to its run (`status.startTime`).
        started_at: Time,
    },
    /// The execution failed.
    Failed {
        /// The fingerprint; `None` if the status has none that circuits use.
        fingerprint: Option<Fingerprint>,
        /// Whether the execution failed before anything ran: only such failures open a circuit.
        before_start: bool,
    },
}

/// The position of an event in the order in which events are folded.
pub(super) type Place = (Time, Uid, bool);

impl Event {
    /// Returns the position of the event: by time, then by uid. The creation of an execution comes before its end.
    pub(super) fn order(&self) -> Place {
        (self.at, self.uid.clone(), matches!(self.what, What::Ended { .. }))
    }
}
