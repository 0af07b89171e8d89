//! `kubectl wfe schedule explain`: when it runs next and why, which rows were asked, and what holds it, as the operator
//! would decide now.

use std::fmt::Write as _;
use std::io::{Write as _, stdout};

use anyhow::{Context, Result};
use serde::Serialize;
use wfe_core::Time;
use wfe_core::action::ScheduleJudgement;
use wfe_core::schedule::{Every, LastRun, Outcome, Planned, Schedule};

use super::clean;
use crate::cli::{ClusterArgs, Format, ScheduleExplainArgs};
use crate::file;
use crate::moment::shown;
use crate::view::Lookout;

/// How many slots are foretold.
const SLOTS: usize = 5;

/// What is said of a schedule. With `-o json`, all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    namespace: String,
    name: String,
    target: Option<String>,
    /// What holds it, where something does.
    held: Option<&'static str>,
    failures: u32,
    last_run: Option<Last>,
    rows: Vec<Row>,
    /// The next slots, as they follow from each other while every run succeeds at once.
    slots: Vec<Slot>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Last {
    slot: String,
    outcome: Option<&'static str>,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    row: &'static str,
    says: String,
}

#[derive(Debug, Serialize)]
struct Slot {
    utc: String,
    /// In the zone of the cron expression.
    zone: Option<String>,
    why: &'static str,
}

/// Runs the command. Yes: nothing holds it.
pub(super) async fn run(cluster: &ClusterArgs, args: &ScheduleExplainArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let added = match &args.file {
        Some(path) => {
            let shown = path.display();
            let text =
                file::read(path).with_context(|| format!("cannot read {shown}; check the path and its rights"))?;
            let object =
                file::the_one_in(&text, "WorkflowSchedule").with_context(|| format!("{shown} cannot be used"))?;
            Some(lookout.completed(object).with_context(|| format!("{shown} cannot be used"))?)
        }
        None => None,
    };
    let seen = lookout.look_at_schedules(added.as_ref()).await?;
    let (namespace, name) = match (&added, &args.name) {
        (Some(added), _) => (added.metadata.namespace.clone(), added.metadata.name.clone()),
        (None, name) => {
            (Some(lookout.namespace.clone()), name.as_deref().map(|it| it.rsplit('/').next().unwrap_or(it).to_owned()))
        }
    };
    let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
    let (schedule, target, judgement) = seen.schedule(&namespace, &name).with_context(|| {
        format!(
            "there is no WorkflowSchedule {name} in the namespace {namespace}; choose another one with -n (kubectl get wfs \
             --all-namespaces)"
        )
    })?;
    let report = Report::of(schedule, target, judgement, seen.now);
    let text = match args.output {
        Some(Format::Json) => serde_json::to_string_pretty(&report)? + "\n",
        None => report.told(),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(report.held.is_none())
}

impl Report {
    fn of(schedule: &Schedule, target: Option<&str>, judgement: Option<ScheduleJudgement>, now: Time) -> Self {
        let last = schedule.status.last_run.as_ref();
        let held = judgement.as_ref().and_then(|judgement| judgement.held);
        let rows = judgement.map(|judgement| judgement.asked).unwrap_or_default();
        let zone = |time: Time| match schedule.plan.as_ref().ok().map(|plan| &plan.every) {
            Some(Every::Cron(cron)) => Some(cron.in_zone(time)),
            _ => None,
        };
        let slot =
            |planned: Planned| Slot { utc: shown(planned.at), zone: zone(planned.at), why: planned.why.as_str() };
        Self {
            namespace: schedule.id.namespace.to_string(),
            name: schedule.id.name.to_string(),
            target: target.map(str::to_owned),
            held: held.map(wfe_core::schedule::HeldBy::as_str),
            failures: schedule.status.failure_count,
            last_run: last.map(|last| Last {
                slot: shown(last.slot),
                outcome: last.outcome.map(Outcome::as_str),
                reason: last.reason.as_deref().map(clean),
            }),
            rows: rows.into_iter().map(|(row, says)| Row { row, says: clean(&says) }).collect(),
            slots: slots(schedule, now).into_iter().map(slot).collect(),
        }
    }

    fn told(&self) -> String {
        let Self { namespace, name, target, held, failures, last_run, rows, slots } = self;
        let mut text = format!("WorkflowSchedule {namespace}/{name}");
        let target = target.as_deref().unwrap_or("a target that cannot be read");
        let _ = match (held, slots.first()) {
            (Some(held), _) => writeln!(text, " on {target} is held: {held}\n"),
            (None, Some(next)) => writeln!(text, " on {target} runs next at {} ({})\n", next.utc, next.why),
            (None, None) => writeln!(text, " on {target} has no next run\n"),
        };
        let _ = writeln!(text, "  failures in a row   {failures}");
        if let Some(Last { slot, outcome, reason }) = last_run {
            let outcome = outcome.unwrap_or("at work");
            let reason = reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
            let _ = writeln!(text, "  last run            slot {slot}: {outcome}{reason}");
        }
        let _ = writeln!(text, "\nWhat was asked, in order; the last one decides:");
        for Row { row, says } in rows {
            let _ = writeln!(text, "  {row:<16}  {says}");
        }
        if !slots.is_empty() {
            let _ = writeln!(text, "\nThe next slots, while every run succeeds before the next one:");
        }
        for Slot { utc, zone, why } in slots {
            let zone = zone.as_ref().map(|zone| format!("   {zone}")).unwrap_or_default();
            let _ = writeln!(text, "  {utc}{zone}   {why}");
        }
        text
    }
}

/// Foretells the next slots. The first is as it is planned now; each further one follows a run that succeeds.
fn slots(schedule: &Schedule, now: Time) -> Vec<Planned> {
    let mut schedule = schedule.clone();
    let mut now = now;
    let mut slots = Vec::new();
    while slots.len() < SLOTS
        && let Some(next) = schedule.next_run(now)
    {
        slots.push(next.planned);
        let slot = next.planned.at;
        now = now.max(slot);
        schedule.status.planned_from.get_or_insert(now);
        schedule.status.failure_count = 0;
        schedule.status.last_run = Some(LastRun {
            slot,
            started_at: Some(slot),
            ended_at: Some(slot),
            outcome: Some(Outcome::Completed),
            reason: None,
            message: None,
        });
    }
    slots
}
