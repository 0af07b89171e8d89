//! The events about circuits, on the `ConfigMap` with their settings (section 13.7).

use wfe_core::Time;
use wfe_core::circuit::{ClosedCircuit, OpenCircuit};
use wfe_core::fingerprint::Fingerprint;
use wfe_settings::config::ConfigObject;

use super::{About, NewEvent};

impl NewEvent {
    /// A circuit opened: many targets share a failure.
    #[must_use]
    pub fn circuit_opened(config: &ConfigObject, circuit: &OpenCircuit) -> Self {
        let OpenCircuit { fingerprint, failed, opened_at, holds_from, .. } = circuit;
        let holds = if holds_from > opened_at {
            let from = holds_from.format("%H:%M:%SZ");
            format!("as others succeeded a short time ago, it holds nobody before {from}")
        } else {
            "the schedules that failed with it wait, but for one probe at a time; others go on".to_owned()
        };
        let note = format!(
            "{failed} targets failed with {fingerprint} within outage-window: {holds}; \
             kubectl wfe circuits shows when it is probed"
        );
        let about = about(config, fingerprint, *opened_at);
        Self { warning: true, ..Self::normal(about, "CircuitOpened", "Hold", note) }
    }

    /// A circuit closed: targets no longer share its failure.
    #[must_use]
    pub fn circuit_closed(config: &ConfigObject, circuit: &ClosedCircuit) -> Self {
        let ClosedCircuit { fingerprint, opened_at, why, .. } = circuit;
        let note = format!(
            "the circuit of {fingerprint}, open since {}, is closed: {}; \
             the schedules that it held go on within base-cooldown-period",
            opened_at.format("%Y-%m-%dT%H:%M:%SZ"),
            why.as_str()
        );
        let about = about(config, fingerprint, *opened_at);
        Self::normal(about, "CircuitClosed", "Release", note)
    }
}

/// Identifies one opening of a circuit. Several replicas, or a process after a restart, announce the same opening once.
fn about(config: &ConfigObject, fingerprint: &Fingerprint, opened_at: Time) -> About {
    About::Circuit(config.clone(), format!("{:08x}-{}", fingerprint.number(), opened_at.timestamp()))
}

#[cfg(test)]
mod tests {
    use wfe_core::circuit::Closing;

    use super::super::tests::rendered;
    use super::*;

    const PULL: &str = "ImagePullBackOff/registry/r.example";

    fn config() -> ConfigObject {
        ConfigObject { namespace: "ops".into(), name: "config".into(), uid: "u-1".into() }
    }

    fn at(second: i64) -> Time {
        Time::from_timestamp(second, 0).unwrap()
    }

    fn opened(fingerprint: &str, second: i64) -> OpenCircuit {
        OpenCircuit {
            fingerprint: Fingerprint::parse(fingerprint).unwrap(),
            opened_at: at(second),
            holds_from: at(second),
            failed: 5,
            failed_probes: 0,
            probes: std::sync::Arc::default(),
            next_probe_at: at(second),
            quiet_at: at(second),
            turn: None,
        }
    }

    #[test]
    fn an_opening_and_its_closing_have_one_name_each() {
        let name = |key, second| NewEvent::circuit_opened(&config(), &opened(key, second)).name();
        assert_eq!(name(PULL, 7), name(PULL, 7));
        assert!(name(PULL, 7) != name(PULL, 8) && name(PULL, 7) != name("Forbidden/cluster", 7));
        let event = rendered(&NewEvent::circuit_opened(&config(), &opened(PULL, 7)));
        assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Warning"), Some("CircuitOpened")));
        let regarding = event.regarding.unwrap();
        assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("ConfigMap"), Some("config")));
        let note = event.note.unwrap();
        assert!(note.starts_with("5 targets failed with ImagePullBackOff/registry/r.example within"), "{note}");
        assert!(note.contains("the schedules that failed with it wait, but for one probe at a time"), "{note}");
        let holds_later = OpenCircuit { holds_from: at(607), ..opened(PULL, 7) };
        let note = rendered(&NewEvent::circuit_opened(&config(), &holds_later)).note.unwrap();
        assert!(note.contains("it holds nobody before 00:10:07Z; kubectl wfe circuits"), "{note}");
        let fingerprint = Fingerprint::parse(PULL).unwrap();
        let closed = ClosedCircuit { fingerprint, opened_at: at(7), closed_at: at(70), why: Closing::Quiet };
        let event = rendered(&NewEvent::circuit_closed(&config(), &closed));
        assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Normal"), Some("CircuitClosed")));
        let note = event.note.unwrap();
        assert!(note.contains("ImagePullBackOff/registry/r.example, open since 1970-01-01T00:00:07Z"), "{note}");
        assert!(note.ends_with("go on within base-cooldown-period"), "{note}");
    }

    #[test]
    fn the_longest_fingerprint_fits_into_a_note_with_all_that_is_said_of_it() {
        let fingerprint = "ConfigurationError/workflow/".to_owned() + &"x".repeat(320 - 28);
        let note = rendered(&NewEvent::circuit_opened(&config(), &opened(&fingerprint, 7))).note.unwrap();
        assert!(note.ends_with("kubectl wfe circuits shows when it is probed"), "{note}");
    }
}
