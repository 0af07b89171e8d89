//! Circuits as a decision sees them.

use std::sync::Arc;

use super::at;
use crate::circuit::{Circuits, ClosedCircuit, Closing, OpenCircuit, Seen};
use crate::fingerprint::Fingerprint;
use crate::name::Uid;

/// A circuit that opened at a second after five targets failed. Its next probe is due a minute later.
pub(crate) fn open_circuit(said: &str, opened: i64, quiet: i64, turn: Option<&str>) -> OpenCircuit {
    OpenCircuit {
        fingerprint: Fingerprint::parse(said).unwrap(),
        opened_at: at(opened),
        holds_from: at(opened),
        failed: 5,
        failed_probes: 0,
        probes: Arc::default(),
        next_probe_at: at(opened + 60),
        quiet_at: at(quiet),
        turn: turn.map(Uid::new),
    }
}

/// A circuit that closed at a second.
pub(crate) fn closed_circuit(said: &str, second: i64, why: Closing) -> ClosedCircuit {
    let fingerprint = Fingerprint::parse(said).unwrap();
    ClosedCircuit { fingerprint, opened_at: at(second - 100), closed_at: at(second), why }
}

/// The view of circuits with these open and closed ones.
pub(crate) fn circuits(open: Vec<OpenCircuit>, closed: Vec<ClosedCircuit>) -> Circuits {
    Seen { open, closed, degraded: None }.into()
}
