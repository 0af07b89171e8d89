//! The circuits that an operator would see if it started now, with the turns that it would give.

use anyhow::Result;
use wfe_core::Time;
use wfe_core::circuit::Circuits;
use wfe_core::decide::decide;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::ScheduleId;
use wfe_core::policy::Policy;
use wfe_core::schedule::HeldBy;
use wfe_view::index::{Index, Key, Kind};

use super::{Lookout, Seen};

/// The schedules with a due slot that circuits hold, each with its circuit.
pub(crate) type HeldByCircuits = Vec<(ScheduleId, Fingerprint)>;

impl Lookout {
    /// Lists what the operator would list for its circuits. Without the schedules, no schedule has a turn.
    pub(crate) async fn look_at_circuits(&self) -> Result<Seen> {
        let (schedules, unread) = match self.list(Kind::Schedule).await {
            Ok(schedules) => (Some(schedules), None),
            Err(error) => (None, Some(format!("that there are no schedules: {error}"))),
        };
        Ok(Seen { unread, ..self.see(schedules, None, None).await? })
    }
}

impl Seen {
    /// Returns the circuits, with the turns that an operator would give if it started now.
    pub(crate) fn circuits(&self) -> &Circuits {
        self.index.circuits()
    }

    /// Returns the schedules that circuits hold now; `None` if schedules could not be listed.
    pub(crate) fn held_by_circuits(&self) -> Option<HeldByCircuits> {
        if self.unread.is_some() {
            return None;
        }
        let mut held = Vec::new();
        for entry in self.index.keys().filter_map(|key| self.index.ready(key)) {
            if entry.target.schedules.is_empty() {
                continue;
            }
            for (id, judgement) in decide(&entry.target, &self.installation.policy, self.now).schedules {
                let Some(schedule) = entry.target.schedules.get(&id.uid) else { continue };
                if judgement.held == Some(HeldBy::CircuitOpen) {
                    let circuit = schedule.held_by(&entry.target.circuits, self.now);
                    held.extend(circuit.map(|circuit| (id, circuit.fingerprint.clone())));
                }
            }
        }
        Some(held)
    }
}

/// Computes circuits from the ended executions, and gives the turns to probe them: decisions show which schedules wait
/// for a turn.
pub(super) fn draw_turns(index: &mut Index, policy: &Policy, now: Time) {
    index.set_circuit_policy(policy);
    index.update_circuits(now);
    if index.circuits().open().next().is_none() && index.circuits().closed().next().is_none() {
        return;
    }
    let keys: Vec<Key> = index.keys().cloned().collect();
    for key in &keys {
        index.show_circuits(key);
        let Some(entry) = index.ready(key).filter(|entry| !entry.target.schedules.is_empty()) else { continue };
        let decision = decide(&entry.target, policy, now);
        index.queue_probes(&decision, now);
    }
    index.update_circuits(now);
    for key in &keys {
        index.show_circuits(key);
    }
}
