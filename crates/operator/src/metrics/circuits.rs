//! The metrics of circuits (section 13.7).

use std::collections::BTreeMap;

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};
use wfe_core::circuit::Circuits;
use wfe_core::fingerprint::Fingerprint;

use super::series::LimitedSeries;

/// The limit of circuits with their own series (section 13.7).
const MAX_CIRCUITS: usize = 100;
/// The label of all other circuits. It is no fingerprint, because every fingerprint contains a slash.
const OVERFLOW: [&str; 1] = ["overflow"];

/// The metrics of circuits. Cheap to clone.
#[derive(Clone)]
pub struct CircuitMetrics {
    open: IntGaugeVec,
    probes: IntCounterVec,
}

impl CircuitMetrics {
    pub(super) fn new() -> prometheus::Result<Self> {
        let all = Self {
            open: IntGaugeVec::new(
                Opts::new(
                    "workflow_circuit_open",
                    "1 for each circuit that is open, by the fingerprint of the failure that many targets share.",
                ),
                &["fingerprint"],
            )?,
            probes: IntCounterVec::new(
                Opts::new("workflow_circuit_probes_total", "Probes of open circuits that ended, by outcome."),
                &["outcome"],
            )?,
        };
        for completed in [true, false] {
            let _ = all.probes.with_label_values(&[outcome(completed)]);
        }
        Ok(all)
    }

    pub(super) fn register(&self, registry: &Registry) -> prometheus::Result<()> {
        registry.register(Box::new(self.open.clone()))?;
        registry.register(Box::new(self.probes.clone()))
    }

    /// Counts a probe that has ended.
    pub fn probed(&self, completed: bool) {
        self.probes.with_label_values(&[outcome(completed)]).inc();
    }

    /// Returns the gauge of open circuits.
    #[must_use]
    pub fn gauges(&self) -> CircuitGauges {
        let mut open = LimitedSeries::new(self.open.clone(), OVERFLOW);
        open.most = MAX_CIRCUITS;
        CircuitGauges { open, shown: BTreeMap::new() }
    }
}

fn outcome(completed: bool) -> &'static str {
    if completed { "succeeded" } else { "failed" }
}

/// Updates the gauge of open circuits. Owned by the engine.
pub struct CircuitGauges {
    open: LimitedSeries<1>,
    /// The circuits that are shown, and whether each has its own series.
    shown: BTreeMap<Fingerprint, bool>,
}

impl CircuitGauges {
    /// Shows the circuits that are open now.
    pub fn show(&mut self, circuits: &Circuits) {
        let is_open = |key: &Fingerprint| circuits.open().any(|circuit| circuit.fingerprint == *key);
        for (key, has_series) in self.shown.extract_if(.., |key, _| !is_open(key)) {
            if has_series {
                self.open.remove([key.as_str()]);
            } else {
                self.open.remove_beyond(1);
            }
        }
        for circuit in circuits.open() {
            if !self.shown.contains_key(&circuit.fingerprint) {
                let has_series = self.open.add([circuit.fingerprint.as_str()], 1);
                self.shown.insert(circuit.fingerprint.clone(), has_series);
            }
        }
    }

    /// Removes all circuits.
    pub fn forget_all(&mut self) {
        self.show(&Circuits::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::core::Collector;
    use wfe_core::Time;
    use wfe_core::circuit::{OpenCircuit, Seen};

    fn circuits(fingerprints: &[&str]) -> Circuits {
        let at = Time::UNIX_EPOCH;
        let open = fingerprints.iter().map(|fingerprint| OpenCircuit {
            fingerprint: Fingerprint::parse(fingerprint).unwrap(),
            opened_at: at,
            holds_from: at,
            failed: 5,
            failed_probes: 0,
            probes: std::sync::Arc::default(),
            next_probe_at: at,
            quiet_at: at,
            turn: None,
        });
        Seen { open: open.collect(), ..Seen::default() }.into()
    }

    #[test]
    fn a_series_lasts_as_long_as_its_circuit_and_their_number_is_limited() {
        let mut gauges = CircuitMetrics::new().unwrap().gauges();
        gauges.open.most = 2;
        let series = |gauges: &CircuitGauges| -> Vec<String> {
            let metrics = gauges.open.gauge.collect().into_iter().flat_map(|mut family| family.take_metric());
            let mut all: Vec<String> = metrics.map(|metric| metric.get_label()[0].value().to_owned()).collect();
            all.sort();
            all
        };
        let (zero, one, two) = ("Forbidden/cluster", "ImagePullBackOff/registry/r.example", "Unknown/cluster");
        gauges.show(&circuits(&[zero, one]));
        assert_eq!(series(&gauges), [zero, one]);
        gauges.show(&circuits(&[zero, one, two]));
        assert_eq!(series(&gauges), [zero, one, "overflow"]);
        gauges.show(&circuits(&[one, two]));
        assert_eq!(series(&gauges), [one, "overflow"]);
        gauges.show(&circuits(&[one]));
        assert_eq!(series(&gauges), [one]);
        gauges.forget_all();
        assert!(series(&gauges).is_empty());
    }
}
