//! Draws the triage of failing schedules: analysts and their verdicts, resumes, and registries that are down. These
//! draws do not affect the rest of the plan.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{LASTS, MINUTE, SECOND, pick};
use crate::cluster::verdicts::{SAYS, names};
use crate::plan::{Act, Fault, Operation, Plan, Trouble};

/// The second registry. Some of the schedules use it.
const OTHER: &str = "other.test";
/// Stories of analysts without a verdict: one completes, one fails, one hangs until its deadline, and one is missing.
const SILENT: [&str; 4] = ["success", "exit-first", "cancel-after", "no-such-story"];
/// The number of outages of registries is below this.
const OUTAGES: usize = 3;

/// Adds triages to the schedules of a plan, with resumes and outages of registries.
pub(super) fn add(plan: &mut Plan, seed: u64) {
    let mut chance = Rng::with_seed(seed.rotate_left(41) ^ 0x7214_6E55);
    flags(plan, &mut chance);
    let tekton = plan.tekton.clone();
    let mut resumes = Vec::new();
    for act in &mut plan.acts {
        let Operation::Schedule(schedule) = &mut act.what else { continue };
        if let Some(mut triage) = triage(&tekton, &mut chance) {
            if schedule.spec["cron"].is_string()
                && let Some(fields) = triage["allowAdjust"].as_array_mut()
            {
                fields.retain(|field| field != "interval"); // a schedule with cron may not have this field
            }
            schedule.spec["triage"] = triage;
        }
        schedule.registry = (chance.u8(0..4) == 0).then(|| OTHER.to_owned());
        for _ in 0..chance.usize(0..3) {
            let at = act.at + chance.u64(MINUTE..LASTS);
            resumes.push(Act { at, what: Operation::Resume(schedule.name.clone()) });
        }
    }
    plan.acts.extend(resumes);
    if !plan.faults.is_empty() {
        for _ in 0..chance.usize(0..OUTAGES) {
            let from = chance.u64(0..LASTS);
            let to = from + chance.u64(10 * SECOND..6 * MINUTE);
            let registry = pick(&mut chance, &["registry.test", "registry.test", OTHER]).to_owned();
            plan.faults.push(Fault { from, to, replica: None, what: Trouble::RegistryDown { registry } });
        }
    }
}

fn flags(plan: &mut Plan, chance: &mut Rng) {
    let choices: [(&str, &[&str]); 5] = [
        ("--outage-targets", &["2", "2", "3", "5", "0"]),
        ("--breaker-minimum", &["20", "3"]),
        ("--breaker-threshold", &["0.5", "0.75", "0"]),
        ("--triage-cooldown", &["24h", "2m", "10s"]),
        ("--triage-max-per-hour", &["10", "1"]),
    ];
    for (flag, values) in choices {
        plan.flags.push(format!("{flag}={}", pick(chance, values)));
    }
}

/// Draws `spec.triage`. `None` means that the schedule keeps the defaults.
fn triage(tekton: &str, chance: &mut Rng) -> Option<Value> {
    let allowed = json!(["timeout", "interval"]);
    let after = chance.u8(1..4);
    Some(match chance.u8(0..6) {
        0 => return None,
        1 => json!({"analyst": "Off"}),
        2 => json!({"after": after, "allowAdjust": allowed}),
        _ => {
            let said: Vec<&str> = names().collect();
            let story = match chance.u8(0..4) {
                0 => pick(chance, &SILENT).to_owned(),
                _ => format!("success{SAYS}{}", pick(chance, &said)),
            };
            let image = format!("registry.test/{tekton}/{story}:1.0");
            json!({
                "analyst": "Pipeline",
                "after": after,
                "timeout": "1m",
                "workflowRef": {"workflowId": "look", "version": "1.0", "containerImage": image},
                "allowAdjust": if chance.bool() { allowed } else { json!([]) },
            })
        }
    })
}
