//! The events about circuits, on the `ConfigMap` that says when they open (SPEC section 13.7).

use wfe_core::Time;
use wfe_core::circuit::{CircuitKey, ClosedCircuit, OpenCircuit};
use wfe_settings::config::ConfigObject;

use super::{About, Announcement};

impl Announcement {
    /// A failure is shared by many targets.
    #[must_use]
    pub fn circuit_opened(config: &ConfigObject, circuit: &OpenCircuit) -> Self {
        let OpenCircuit { key, scope, failed, of, opened_at, .. } = circuit;
        let targets = if failed == of { failed.to_string() } else { format!("{failed} of {of}") };
        let others = if scope.namespaces().is_some() { ", and of others when they fail with it" } else { "" };
        let note = format!(
            "{targets} targets failed with {} within outage-window: the schedules that this touches wait, but for one \
             probe at a time; it holds schedules of {scope}{others}; kubectl wfe circuits shows when it is probed",
            what(key)
        );
        let about = about(config, key, *opened_at);
        Self { warning: true, ..Self::normal(about, "CircuitOpened", "Hold", note) }
    }

    /// It is not shared any more.
    #[must_use]
    pub fn circuit_closed(config: &ConfigObject, circuit: &ClosedCircuit) -> Self {
        let ClosedCircuit { key, scope, opened_at, why, .. } = circuit;
        let note = format!(
            "the circuit of {}, open since {}, is closed: {}; what it held goes on within base-cooldown-period: \
             schedules of {scope}",
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
    use wfe_core::circuit::{Closing, Scope};
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
            scope: Scope::of(["shop".into(), "ops".into()], at(second)),
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
        let note = event.note.unwrap();
        assert!(note.starts_with("10 of 20 targets failed with whatever it was (*)"), "{note}");
        assert!(note.contains("it holds schedules of namespaces ops, shop, and of others when they fail with it"));
        let scope = Scope::of(["a", "b", "c", "d", "e"].map(Into::into), at(7));
        let of_all = OpenCircuit { scope: scope.clone(), ..opened(&pull, 7) };
        let note = rendered(&Announcement::circuit_opened(&config, &of_all)).note.unwrap();
        assert!(note.contains("it holds schedules of all namespaces; kubectl wfe circuits"), "{note}");
        let closed = ClosedCircuit { key: pull, scope, opened_at: at(7), closed_at: at(70), why: Closing::Quiet };
        let event = rendered(&Announcement::circuit_closed(&config, &closed));
        assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Normal"), Some("CircuitClosed")));
        let note = event.note.unwrap();
        assert!(note.contains("ImagePullBackOff/registry/r.example, open since 1970-01-01T00:00:07Z"), "{note}");
        assert!(note.ends_with("within base-cooldown-period: schedules of all namespaces"), "{note}");
    }

    #[test]
    fn the_longest_names_fit_into_a_note_with_all_that_is_said_of_them() {
        let config = ConfigObject { namespace: "ops".into(), name: "config".into(), uid: "u-1".into() };
        let at = Time::from_timestamp(7, 0).unwrap();
        let fingerprint = "ConfigurationError/workflow/".to_owned() + &"x".repeat(320 - 28);
        let circuit = OpenCircuit {
            key: CircuitKey::Of(Fingerprint::parse(&fingerprint).unwrap()),
            scope: Scope::of((0..4).map(|n| format!("{n}").repeat(63).into()), at),
            opened_at: at,
            failed: 1000,
            of: 1000,
            failed_probes: 0,
            next_probe_at: at,
            quiet_at: at,
            turn: None,
        };
        let note = rendered(&Announcement::circuit_opened(&config, &circuit)).note.unwrap();
        assert!(note.ends_with("kubectl wfe circuits shows when it is probed"), "{note}");
    }
}
