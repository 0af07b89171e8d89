//! `kubectl wfe schedule next`: the slots of all schedules until a time, and what each would do.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use wfe_core::Time;
use wfe_core::schedule::{Held, HeldBy, Schedule};
use wfe_core::target::TargetName;

use super::explain::foretell;
use super::slots::{slots, zone};
use crate::cli::{ClusterArgs, Format, ScheduleNextArgs};
use crate::moment::{shown, since, span};
use crate::output::{line, output};
use crate::table::table;
use crate::view::{Lookout, Seen};

/// How many slots are shown: more than a person reads.
const MOST: usize = 100;
/// What a slot does if nothing is in its way.
const RUNS: &str = "runs";

/// The answer. `-o json` shows all of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The end of the time for which slots are shown.
    until: String,
    items: Vec<Slot>,
    /// How many further slots there are at least.
    left_out: usize,
    /// Why no operator makes these runs, if that is so.
    undecided: Option<String>,
}

/// A slot of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Slot {
    at: String,
    /// The time in the zone of the cron expression.
    zone: Option<String>,
    namespace: String,
    name: String,
    target: Option<String>,
    /// Whether something holds the run, or would hold it.
    is_held: bool,
    then: String,
    #[serde(skip)]
    time: Time,
}

/// What the slots of a schedule do.
enum Then {
    /// All of them run.
    Run,
    /// The first one is held by something that ends by itself.
    First(String),
    /// All of them are held until a person acts.
    All(String),
}

/// Runs the command. Yes: all slots would run.
pub(super) async fn run(cluster: &ClusterArgs, args: &ScheduleNextArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let seen = lookout.look_with_schedules().await?;
    let namespace = (!args.all_namespaces).then_some(&*lookout.namespace);
    let span_of_time = chrono::TimeDelta::from_std(args.until)?;
    let answer = Answer::of(&seen, namespace, seen.now + span_of_time);
    match args.output {
        Some(Format::Json) => output().json("ScheduleSlots", &answer)?,
        None => write!(output(), "{}", answer.told(seen.now, &span(args.until)))?,
    }
    Ok(answer.undecided.is_none() && !answer.items.iter().any(|slot| slot.is_held))
}

impl Answer {
    fn of(seen: &Seen, namespace: Option<&str>, until: Time) -> Self {
        let mut items = Vec::new();
        let mut undecided = None;
        for target in seen.targets() {
            for schedule in target.schedules.values() {
                if namespace.is_some_and(|namespace| *namespace != *schedule.id.namespace) {
                    continue;
                }
                undecided = undecided.or_else(|| seen.installation.nobody_decides_in(&schedule.id.namespace));
                let Some((schedule, judgement)) =
                    foretell(target, &schedule.id.uid, &seen.installation.policy, seen.now)
                else {
                    continue;
                };
                let name = target.name.as_ref().map(TargetName::as_str);
                items.extend(of_schedule(&schedule, name, &Then::of(&schedule, judgement.held), seen.now, until));
            }
        }
        items.sort_by(|a, b| (a.time, &a.namespace, &a.name).cmp(&(b.time, &b.namespace, &b.name)));
        let left_out = items.len().saturating_sub(MOST);
        items.truncate(MOST);
        Self { until: shown(until), items, left_out, undecided }
    }

    fn told(&self, now: Time, span: &str) -> String {
        let rows = self.items.iter().map(|slot| {
            let schedule = format!("{}/{}", slot.namespace, slot.name);
            let target = slot.target.clone().unwrap_or_default();
            [
                slot.zone.clone().unwrap_or_else(|| slot.at.clone()),
                since(now, slot.time),
                schedule,
                target,
                slot.then.clone(),
            ]
        });
        let mut text = if self.items.is_empty() {
            format!("No schedule has a slot within {span}.\n")
        } else {
            table(["AT", "IN", "SCHEDULE", "TARGET", "THEN"], rows)
        };
        if self.left_out > 0 {
            let _ =
                writeln!(text, "At least {} more slots are left out; a shorter --until shows fewer.", self.left_out);
        }
        if let Some(why) = &self.undecided {
            let _ = writeln!(text, "No operator makes these runs now: {}", line(why));
        }
        text
    }
}

impl Then {
    fn of(schedule: &Schedule, held: Option<HeldBy>) -> Self {
        match (held, &schedule.status.held) {
            (Some(by), _) if needs_a_person(by) => Self::All(format!("held: {}", by.as_str())),
            (Some(by), _) => Self::First(format!("held now: {}", by.as_str())),
            (None, Held::Ahead(message)) => {
                let reason = message.split_once(':').map_or(&**message, |(reason, _)| reason);
                Self::All(format!("would be held: {reason}"))
            }
            (None, _) => Self::Run,
        }
    }
}

/// Returns whether only a person ends what holds a schedule.
fn needs_a_person(by: HeldBy) -> bool {
    match by {
        HeldBy::Suspended
        | HeldBy::TriagePaused
        | HeldBy::Paused
        | HeldBy::PreviousExecutionFailed
        | HeldBy::ExhaustedRetries => true,
        HeldBy::ResourceBusy | HeldBy::RecentlyRemediated | HeldBy::CircuitOpen | HeldBy::Limit => false,
    }
}

/// Lists the slots of a schedule, at most one more than are shown. If a person must release the schedule, only its
/// first slot is listed.
fn of_schedule(schedule: &Schedule, target: Option<&str>, then: &Then, now: Time, until: Time) -> Vec<Slot> {
    let most = if matches!(then, Then::All(_)) { 1 } else { MOST + 1 };
    let coming = slots(schedule, now).take(most).take_while(|planned| planned.at <= until);
    let slot = |(place, planned): (usize, wfe_core::schedule::Planned)| {
        let held = match then {
            Then::All(why) => Some(why),
            Then::First(why) if place == 0 => Some(why),
            Then::First(_) | Then::Run => None,
        };
        Slot {
            at: shown(planned.at),
            zone: zone(schedule, planned.at),
            namespace: schedule.id.namespace.to_string(),
            name: schedule.id.name.to_string(),
            target: target.map(str::to_owned),
            is_held: held.is_some(),
            then: held.cloned().unwrap_or_else(|| RUNS.to_owned()),
            time: planned.at,
        }
    };
    coming.enumerate().map(slot).collect()
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use serde_json::{Value, json};
    use wfe_core::policy::Policy;
    use wfe_view::index::{Delivery, Index, Kind};
    use wfe_view::read::read;

    use super::*;
    use crate::installation::{Config, Installation, Leader};

    fn at(time: &str) -> Time {
        time.parse().unwrap()
    }

    fn schedule(name: &str, target: &str, spec: &Value) -> Value {
        let mut spec = spec.clone();
        spec["template"] = json!({"spec": {
            "targetResource": target,
            "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"},
        }});
        let metadata = json!({"namespace": "ops", "name": name, "uid": name, "resourceVersion": "1", "generation": 1});
        json!({"metadata": metadata, "spec": spec})
    }

    #[test]
    fn what_ends_by_itself_holds_the_first_slot_alone() {
        let by_itself = HeldBy::ALL.into_iter().filter(|by| !needs_a_person(*by));
        let expected = [HeldBy::ResourceBusy, HeldBy::RecentlyRemediated, HeldBy::CircuitOpen, HeldBy::Limit];
        assert_eq!(by_itself.collect::<Vec<_>>(), expected);
    }

    /// Returns the answer at noon, until three hours later, for these schedules beside a blocked `node/blocked`.
    fn answer(schedules: &[Value]) -> Answer {
        let now = at("2026-01-02T12:00:00Z");
        let broke = json!({
            "metadata": {"namespace": "ops", "name": "half-way", "uid": "e", "resourceVersion": "1"},
            "spec": {
                "targetResource": "node/blocked",
                "workflowRef": {"workflowId": "v", "version": "1", "containerImage": "registry.example/v:1"},
            },
            "status": {
                "phase": "Failed", "completionTime": "2026-01-02T11:00:00Z", "runSequence": 1,
                "failureDetails": {"reason": "Unknown", "wasExecutionFailure": true, "failedAt": "2026-01-02T11:00:00Z"},
            },
        });
        let mut index = Index::new(None);
        for kind in Kind::ALL {
            index.apply(Delivery::ListBegins(kind), now);
            let objects = match kind {
                Kind::Schedule => schedules,
                Kind::Execution => std::slice::from_ref(&broke),
                _ => &[],
            };
            for object in objects {
                let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
                index.apply(read(kind, &object, "runs").unwrap(), now);
            }
            index.apply(Delivery::ListEnds(kind), now);
        }
        let installation = Installation {
            policy: Policy::default(),
            policy_of: String::new(),
            config: Config::default(),
            watch_namespace: None,
            execution_namespace: "runs".to_owned(),
            leader: Leader::Is("one".to_owned()),
            log: String::new(),
            policies: crate::policies::Policies::default(),
        };
        Answer::of(&Seen::of(index, vec![], installation, now), Some("ops"), at("2026-01-02T15:00:00Z"))
    }

    #[test]
    fn slots_are_in_order_with_what_would_hold_them() {
        let answer = answer(&[
            schedule("free", "node/free", &json!({"interval": "70m"})),
            schedule("stuck", "node/blocked", &json!({"cron": "30 13 * * *", "timeZone": "Europe/Berlin"})),
            schedule("idle", "node/idle", &json!({"interval": "1h", "suspend": true})),
        ]);
        assert_eq!(
            answer.told(at("2026-01-02T12:00:00Z"), "3h"),
            "AT                       IN     SCHEDULE   TARGET        THEN\n\
             2026-01-02 13:30:00 CET  30m    ops/stuck  node/blocked  would be held: PreviousExecutionFailed\n\
             2026-01-02T13:00:00Z     1h     ops/idle   node/idle     held: Suspended\n\
             2026-01-02T13:10:00Z     1h10m  ops/free   node/free     runs\n\
             2026-01-02T14:20:00Z     2h20m  ops/free   node/free     runs\n"
        );
        let held: Vec<bool> = answer.items.iter().map(|slot| slot.is_held).collect();
        assert_eq!(held, [true, true, false, false]);
    }

    #[test]
    fn many_slots_are_cut_and_counted() {
        let answer = answer(&[schedule("often", "node/n", &json!({"interval": "1m", "minInterval": "1m"}))]);
        assert_eq!((answer.items.len(), answer.left_out), (MOST, 1));
        let told = answer.told(at("2026-01-02T12:00:00Z"), "3h");
        assert!(told.ends_with("At least 1 more slots are left out; a shorter --until shows fewer.\n"), "{told}");
        let none =
            Answer { until: String::new(), items: vec![], left_out: 0, undecided: Some("none leads".to_owned()) };
        assert_eq!(
            none.told(at("2026-01-02T12:00:00Z"), "3h"),
            "No schedule has a slot within 3h.\nNo operator makes these runs now: none leads\n"
        );
    }
}
