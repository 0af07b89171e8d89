//! `kubectl wfe circuits`: which failures many targets share now; when and by which schedule each circuit is probed,
//! and which schedules it holds.
//!
//! It runs the operator's own code over the objects of the cluster, as an operator that starts would.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use wfe_core::circuit::OpenCircuit;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::ScheduleId;

use crate::cli::{CircuitsArgs, ClusterArgs, Format};
use crate::moment::shown;
use crate::output::{line, output};
use crate::view::{HeldByCircuits, Lookout};

/// The answer. `-o json` shows all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    circuits: Vec<Circuit>,
    policy: String,
    /// What was assumed because it could not be read.
    assumed: Option<String>,
}

/// An open circuit.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Circuit {
    pub(crate) fingerprint: String,
    pub(crate) since: String,
    /// When it begins to hold schedules: later than `since` if other schedules succeeded shortly before it opened.
    holds_from: String,
    /// How many targets had failed when it opened.
    pub(crate) failed: u32,
    pub(crate) failed_probes: u32,
    pub(crate) next_probe: String,
    /// The schedule that makes the next probe, as `namespace/name`. None if every candidate is held for another reason.
    pub(crate) turn: Option<String>,
    /// How many schedules with a due slot it holds; `None` if schedules could not be listed.
    pub(crate) held: Option<usize>,
    /// When it closes without another failure of its kind or a probe.
    closes_by_itself: String,
}

/// Runs the command. Yes: no circuit is open.
pub(crate) async fn run(cluster: &ClusterArgs, args: &CircuitsArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let seen = lookout.look_at_circuits().await?;
    let held = seen.held_by_circuits();
    let report = Report {
        circuits: seen.circuits().open().map(|circuit| Circuit::of(circuit, held.as_ref())).collect(),
        policy: seen.installation.policy_of.clone(),
        assumed: seen.unread.clone(),
    };
    match args.output {
        Some(Format::Json) => output().json("Circuits", &report)?,
        None => write!(output(), "{}", report.told())?,
    }
    Ok(report.circuits.is_empty())
}

impl Circuit {
    /// Reads an open circuit, with the schedules that circuits hold.
    pub(crate) fn of(circuit: &OpenCircuit, held: Option<&HeldByCircuits>) -> Self {
        let is_next = |(id, _): &&(ScheduleId, Fingerprint)| circuit.turn.as_ref() == Some(&id.uid);
        let turn = held.and_then(|held| held.iter().find(is_next));
        let of_circuit = |held: &HeldByCircuits| held.iter().filter(|(_, it)| *it == circuit.fingerprint).count();
        Self {
            fingerprint: circuit.fingerprint.to_string(),
            since: shown(circuit.opened_at),
            holds_from: shown(circuit.holds_from),
            failed: circuit.failed,
            failed_probes: circuit.failed_probes,
            next_probe: shown(circuit.next_probe_at),
            turn: turn.map(|(id, _)| id.to_string()),
            held: held.map(of_circuit),
            closes_by_itself: shown(circuit.quiet_at),
        }
    }
}

impl Report {
    fn told(&self) -> String {
        let mut text = String::new();
        if self.circuits.is_empty() {
            let _ = writeln!(text, "No circuit is open: no failure is shared by many targets.\n");
        }
        for it in &self.circuits {
            let _ = writeln!(text, "Circuit of {}\n", line(&it.fingerprint));
            let turn = match (&it.turn, it.held) {
                (Some(turn), _) => line(turn),
                (None, Some(_)) => "no schedule: something else holds each of them, too".into(),
                (None, None) => "a schedule that cannot be seen".into(),
            };
            let held = match it.held {
                Some(held) => format!("{held} schedules that failed with it and are due"),
                None => "schedules that cannot be seen".to_owned(),
            };
            let from = if it.holds_from == it.since { String::new() } else { format!(", from {} on", it.holds_from) };
            let _ = writeln!(text, "  open since     {}, when {} targets had failed", it.since, it.failed);
            let _ = writeln!(text, "  failed probes  {}", it.failed_probes);
            let _ = writeln!(text, "  next probe     not before {}, by {turn}", it.next_probe);
            let _ = writeln!(text, "  holds          {held}{from}");
            let _ = writeln!(
                text,
                "  closes         by a success, or at {} if neither such a failure nor a probe comes\n",
                it.closes_by_itself
            );
        }
        let _ = writeln!(text, "  policy         {}", line(&self.policy));
        if let Some(assumed) = &self.assumed {
            let _ = writeln!(text, "  assumed        {}", line(assumed));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use wfe_core::Time;
    use wfe_core::name::Uid;

    use super::*;

    #[test]
    fn an_open_circuit_is_told_with_its_numbers() {
        let at = |second: i64| Time::from_timestamp(1_800_000_000 + second, 0).unwrap();
        let fingerprint = Fingerprint::parse("ImagePullBackOff/registry/r.example").unwrap();
        let id = |name: &str| ScheduleId { namespace: "ops".into(), name: name.into(), uid: Uid::new(name) };
        let circuit = OpenCircuit {
            fingerprint: fingerprint.clone(),
            opened_at: at(0),
            holds_from: at(0),
            failed: 5,
            failed_probes: 2,
            probes: std::sync::Arc::default(),
            next_probe_at: at(420),
            quiet_at: at(1500),
            turn: Some(Uid::new("b")),
        };
        let other = Fingerprint::parse("Unknown/cluster").unwrap();
        let held = vec![(id("a"), fingerprint.clone()), (id("b"), fingerprint), (id("c"), other)];
        let told = |circuits| Report { circuits, policy: "the defaults".to_owned(), assumed: None }.told();
        assert_eq!(
            told(vec![Circuit::of(&circuit, Some(&held))]),
            "Circuit of ImagePullBackOff/registry/r.example\n\n\
             \x20 open since     2027-01-15T08:00:00Z, when 5 targets had failed\n\
             \x20 failed probes  2\n\
             \x20 next probe     not before 2027-01-15T08:07:00Z, by ops/b\n\
             \x20 holds          2 schedules that failed with it and are due\n\
             \x20 closes         by a success, or at 2027-01-15T08:25:00Z if neither such a failure nor a probe comes\n\n\
             \x20 policy         the defaults\n"
        );
        let later = OpenCircuit { holds_from: at(600), turn: None, ..circuit };
        let alone = told(vec![Circuit::of(&later, Some(&[].into()))]);
        assert!(alone.contains("by no schedule: something else holds each of them, too\n"), "{alone}");
        assert!(
            alone
                .contains("holds          0 schedules that failed with it and are due, from 2027-01-15T08:10:00Z on\n")
        );
        let unseen = told(vec![Circuit::of(&later, None)]);
        assert!(unseen.contains("by a schedule that cannot be seen\n"), "{unseen}");
        assert!(
            unseen.contains("holds          schedules that cannot be seen, from 2027-01-15T08:10:00Z on\n"),
            "{unseen}"
        );
    }

    #[test]
    fn without_a_circuit_that_is_said() {
        let report = Report { circuits: vec![], policy: "p".to_owned(), assumed: Some("that".to_owned()) };
        assert_eq!(
            report.told(),
            "No circuit is open: no failure is shared by many targets.\n\n  policy         p\n  assumed        that\n"
        );
    }
}
