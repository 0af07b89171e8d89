//! The events about circuits, on the `ConfigMap` that says when they open (SPEC section 13.7).

use wfe_core::Time;
use wfe_core::circuit::{CircuitKey, ClosedCircuit, OpenCircuit};
use wfe_settings::config::ConfigObject;

use super::{About, Announcement};

impl Announcement {
    /// A failure is shared by many targets.
    #[must_use]
    pub fn circuit_opened(config: &ConfigObject, circuit: &OpenCircuit) -> Self {
        let OpenCircuit { key, failed, of, opened_at, .. } = circuit;
        let targets = if failed == of { failed.to_string() } else { format!("{failed} of {of}") };
        let note = format!(
            "{targets} targets failed with {} within outage-window: the schedules that this touches wait, but for one \
             probe at a time; kubectl wfe circuits shows when",
            what(key)
        );
        let about = about(config, key, *opened_at);
        Self { warning: true, ..Self::normal(about, "CircuitOpened", "Hold", note) }
    }

    /// It is not shared any more.
    #[must_use]
    pub fn circuit_closed(config: &ConfigObject, circuit: &ClosedCircuit) -> Self {
        let ClosedCircuit { key, opened_at, why, .. } = circuit;
        let note = format!(
            "the circuit of {}, open since {}, is closed: {}; what it held goes on within base-cooldown-period",
            what(key),
            opened_at.format("%Y-%m-%dT%H:%M:%SZ"),
            why.as_str()
        );
        let about = about(config, key, *opened_at);
        Self::normal(about, "CircuitClosed", "Release", note)
    }
}

fn what(key: &CircuitKey) -> &str {
    match key {
        CircuitKey::All => "whatever it was (*)",
        CircuitKey::Of(fingerprint) => fingerprint.as_str(),
    }
}

/// One circuit of one opening: several replicas, and one before and after a restart, tell of it once.
fn about(config: &ConfigObject, key: &CircuitKey, opened_at: Time) -> About {
    About::Circuit(config.clone(), format!("{:08x}-{}", key.number(), opened_at.timestamp()))
}

#[cfg(test)]
mod tests {
    use wfe_core::circuit::Closing;
    use wfe_core::fingerprint::Fingerprint;

    use super::super::tests::rendered;
    use super::*;

    #[test]
    fn an_opening_and_its_closing_have_one_name_each() {
        let config = ConfigObject { namespace: "ops".into(), name: "config".into(), uid: "u-1".into() };
        let at = |second| Time::from_timestamp(second, 0).unwrap();
        let pull = CircuitKey::Of(Fingerprint::parse("ImagePullBackOff/registry/r.example").unwrap());
        let opened = |key: &CircuitKey, second| OpenCircuit {
            key: key.clone(),
            opened_at: at(second),
            failed: 10,
            of: 20,
            failed_probes: 0,
            next_probe_at: at(second),
            quiet_at: at(second),
            turn: None,
        };
        let name = |key, second| Announcement::circuit_opened(&config, &opened(key, second)).name();
        assert_eq!(name(&pull, 7), name(&pull, 7));
        assert!(name(&pull, 7) != name(&pull, 8) && name(&pull, 7) != name(&CircuitKey::All, 7));
        let event = rendered(&Announcement::circuit_opened(&config, &opened(&CircuitKey::All, 7)));
        assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Warning"), Some("CircuitOpened")));
        let regarding = event.regarding.unwrap();
        assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("ConfigMap"), Some("config")));
        assert!(event.note.unwrap().starts_with("10 of 20 targets failed with whatever it was (*)"));
        let closed = ClosedCircuit { key: pull, opened_at: at(7), closed_at: at(70), why: Closing::Quiet };
        let event = rendered(&Announcement::circuit_closed(&config, &closed));
        assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Normal"), Some("CircuitClosed")));
        assert!(event.note.unwrap().contains("ImagePullBackOff/registry/r.example, open since 1970-01-01T00:00:07Z"));
    }
}
