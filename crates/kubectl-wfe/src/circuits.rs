//! `kubectl wfe circuits`: which failures many targets share now, when each is probed, by whom, and what it holds.
//!
//! The operator's own fold over what the cluster holds now, as an operator that starts would compute it.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use wfe_core::circuit::{CircuitKey, OpenCircuit};

use crate::cli::{CircuitsArgs, ClusterArgs, Format};
use crate::moment::shown;
use crate::output::{line, output};
use crate::view::{HeldByCircuits, Lookout};

/// What is said of the circuits. With `-o json`, all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    circuits: Vec<Circuit>,
    policy: String,
    /// What was assumed, as it could not be read.
    assumed: Option<String>,
}

/// An open circuit.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Circuit {
    /// `*` for the circuit of all failures.
    fingerprint: String,
    since: String,
    /// How many targets had failed when it opened, and of how many.
    failed: u32,
    of: u32,
    failed_probes: u32,
    next_probe: String,
    /// The schedule that makes the next probe, as `namespace/name`. None where something else holds each.
    turn: Option<String>,
    /// How many schedules it holds whose slot is due.
    held: usize,
    /// The namespaces whose schedules it holds. None: all.
    namespaces: Option<Vec<String>>,
    /// When it closes unless a failure of its kind or a probe comes.
    closes_by_itself: String,
}

/// Runs the command. Yes: no circuit is open.
pub(crate) async fn run(cluster: &ClusterArgs, args: &CircuitsArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let seen = lookout.look_at_circuits().await?;
    let held = seen.held_by_circuits();
    let report = Report {
        circuits: seen.circuits().open().map(|circuit| Circuit::of(circuit, &held)).collect(),
        policy: seen.installation.policy_of.clone(),
        assumed: seen.unread.clone(),
    };
    match args.output {
        Some(Format::Json) => output().json(&report)?,
        None => write!(output(), "{}", report.told())?,
    }
    Ok(report.circuits.is_empty())
}

impl Circuit {
    fn of(circuit: &OpenCircuit, held: &HeldByCircuits) -> Self {
        let turn = circuit.turn.as_ref().and_then(|uid| held.iter().find(|(id, _)| id.uid == *uid));
        let holds = |key: &CircuitKey| held.iter().filter(|(_, circuits)| circuits.contains(key)).count();
        Self {
            fingerprint: circuit.key.to_string(),
            since: shown(circuit.opened_at),
            failed: circuit.failed,
            of: circuit.of,
            failed_probes: circuit.failed_probes,
            next_probe: shown(circuit.next_probe_at),
            turn: turn.map(|(id, _)| id.to_string()),
            held: holds(&circuit.key),
            namespaces: circuit.scope.namespaces().map(|all| all.into_iter().map(str::to_owned).collect()),
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
            let what = if it.fingerprint == "*" { "any failure (*)".into() } else { line(&it.fingerprint) };
            let _ = writeln!(text, "Circuit of {what}\n");
            let targets = if it.failed == it.of { it.of.to_string() } else { format!("{} of {}", it.failed, it.of) };
            let turn = it.turn.as_deref().map_or("no schedule that nothing else holds".into(), line);
            let _ = writeln!(text, "  open since     {}, when {targets} targets had failed", it.since);
            let _ = writeln!(text, "  failed probes  {}", it.failed_probes);
            let _ = writeln!(text, "  next probe     not before {}, by {turn}", it.next_probe);
            let _ = writeln!(text, "  holds          {} schedules whose slot is due", it.held);
            let (whose, there) = match &it.namespaces {
                Some(some) => (format!("{}; others when they fail with it", some.join(", ")), " in these namespaces"),
                None => ("all".to_owned(), ""),
            };
            let _ = writeln!(text, "  namespaces     {}", line(&whose));
            let _ = writeln!(
                text,
                "  closes         by a success{there}, or at {} if neither such a failure nor a probe comes\n",
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
    use wfe_core::circuit::Scope;
    use wfe_core::fingerprint::Fingerprint;
    use wfe_core::name::{ScheduleId, Uid};

    use super::*;

    #[test]
    fn an_open_circuit_is_told_with_its_numbers() {
        let at = |second: i64| Time::from_timestamp(1_800_000_000 + second, 0).unwrap();
        let key = CircuitKey::Of(Fingerprint::parse("ImagePullBackOff/registry/r.example").unwrap());
        let id = |name: &str| ScheduleId { namespace: "ops".into(), name: name.into(), uid: Uid::new(name) };
        let circuit = OpenCircuit {
            key: key.clone(),
            scope: Scope::of(["shop".into(), "ops".into()], at(0)),
            opened_at: at(0),
            failed: 5,
            of: 5,
            failed_probes: 2,
            next_probe_at: at(420),
            quiet_at: at(1500),
            turn: Some(Uid::new("b")),
        };
        let held = vec![(id("a"), vec![key.clone()]), (id("b"), vec![key, CircuitKey::All]), (id("c"), vec![])];
        let told = |circuits| Report { circuits, policy: "the defaults".to_owned(), assumed: None }.told();
        assert_eq!(
            told(vec![Circuit::of(&circuit, &held)]),
            "Circuit of ImagePullBackOff/registry/r.example\n\n\
             \x20 open since     2027-01-15T08:00:00Z, when 5 targets had failed\n\
             \x20 failed probes  2\n\
             \x20 next probe     not before 2027-01-15T08:07:00Z, by ops/b\n\
             \x20 holds          2 schedules whose slot is due\n\
             \x20 namespaces     ops, shop; others when they fail with it\n\
             \x20 closes         by a success in these namespaces, or at 2027-01-15T08:25:00Z if neither such a failure \
             nor a probe comes\n\n\
             \x20 policy         the defaults\n"
        );
        let scope = Scope::of(["a", "b", "c", "d", "e"].map(Into::into), at(0));
        let of_all = OpenCircuit { key: CircuitKey::All, scope, failed: 12, of: 20, turn: None, ..circuit };
        let told = told(vec![Circuit::of(&of_all, &held)]);
        assert!(told.contains("Circuit of any failure (*)") && told.contains("12 of 20 targets"), "{told}");
        assert!(told.contains("by no schedule that nothing else holds"), "{told}");
        assert!(told.contains("namespaces     all\n") && told.contains("by a success, or at"), "{told}");
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
