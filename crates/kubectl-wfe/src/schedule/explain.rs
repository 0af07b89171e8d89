//! `kubectl wfe schedule explain`: when a schedule runs next and why, which rows of the decision were asked, and what
//! holds it, as the operator would decide now.

mod triage;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use wfe_core::action::{Action, ScheduleJudgement};
use wfe_core::decide::decide;
use wfe_core::policy::Policy;
use wfe_core::schedule::{Held, HeldBy, Outcome, Planned, Ready, Schedule};
use wfe_core::target::Target;
use wfe_core::{Time, duration};

use self::triage::{Adjusted, TriageSaid};
use super::no_such;
use super::slots::{slots, zone};
use crate::cli::{ClusterArgs, Format, ScheduleExplainArgs};
use crate::file;
use crate::installation::{Installation, Leader};
use crate::moment::shown;
use crate::output::{line, output};
use crate::subject::AskedSchedule;
use crate::view::Lookout;

/// How many slots are predicted.
const SLOTS: usize = 5;
/// The row that starts a new plan: its status is written, and the rows are asked again.
const ANEW: &str = "1 plan";

/// The answer. `-o json` shows all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    namespace: String,
    name: String,
    target: Option<String>,
    /// What holds the schedule, if anything does.
    held: Option<&'static str>,
    /// What would hold the next run until a person acts.
    would_be_held: Option<String>,
    /// By how much `spread` delays all slots of the schedule.
    later_by: Option<String>,
    failures: u32,
    last_run: Option<Last>,
    /// The latest triage, if there was one.
    triage: Option<TriageSaid>,
    /// The values of a triage that apply in place of those of the spec.
    adjusted: Option<Adjusted>,
    /// The conditions of its status.
    conditions: Vec<Condition>,
    rows: Vec<Row>,
    /// The next slots, if nothing holds it and every run succeeds at once.
    slots: Vec<Slot>,
    policy: String,
    operator: String,
    policies: String,
    /// Why no operator decides on the schedule, if that is so.
    undecided: Option<String>,
    /// What was assumed because it could not be read.
    assumed: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Last {
    slot: String,
    outcome: Option<&'static str>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: &'static str,
    status: bool,
    reason: &'static str,
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    row: &'static str,
    says: String,
}

#[derive(Debug, Serialize)]
struct Slot {
    utc: String,
    /// The time in the zone of the cron expression.
    zone: Option<String>,
    why: &'static str,
}

/// Runs the command. Yes: the schedule runs again, and nothing holds it or would hold its next run.
pub(super) async fn run(cluster: &ClusterArgs, args: &ScheduleExplainArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let asked = match (&args.file, &args.name) {
        (Some(path), _) => AskedSchedule::New(Box::new(from_file(&lookout, path, cluster.namespace.as_deref())?)),
        (None, name) => {
            let name = name.as_deref().context("nothing was asked about")?;
            // `kubectl get --output name` writes the kind before the name.
            let name = name.rsplit('/').next().unwrap_or(name).to_owned();
            AskedSchedule::Named { namespace: lookout.namespace.clone(), name }
        }
    };
    let seen = lookout.look_at_schedules(&asked).await?;
    let (namespace, name) = asked.name();
    let (target, uid) = seen.target_of_schedule(&asked).with_context(|| no_such(namespace, name))?;
    let (schedule, judgement) = foretell(target, uid, &seen.installation.policy, seen.now)
        .context("the operator would not decide on it; look again")?;
    let report = Report {
        undecided: seen.installation.nobody_decides_in(namespace),
        assumed: seen.unread.clone(),
        ..Report::of(&schedule, target, &judgement, &seen.installation, seen.now)
    };
    match args.output {
        Some(Format::Json) => output().json("ScheduleExplanation", &report)?,
        None => write!(output(), "{}", report.told())?,
    }
    Ok(report.held.is_none()
        && report.would_be_held.is_none()
        && report.undecided.is_none()
        && !report.slots.is_empty())
}

fn from_file(lookout: &Lookout, path: &Path, namespace: Option<&str>) -> Result<kube::api::DynamicObject> {
    let shown = path.display();
    let text = file::read(path).with_context(|| format!("cannot read {shown}; check the path and its rights"))?;
    let object = file::the_one_in(&text, "WorkflowSchedule").with_context(|| format!("{shown} cannot be used"))?;
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
    if let (Some(own), Some(asked)) = (own, namespace) {
        ensure!(own == asked, "{shown} is for the namespace {own}; leave -n {asked} out, or change the file");
    }
    lookout.completed(object).with_context(|| format!("{shown} cannot be used"))
}

/// Decides as the operator would. To start a new plan, the operator writes the plan and decides again. This function
/// does the same, without a write.
pub(super) fn foretell(
    target: &Target,
    uid: &wfe_core::name::Uid,
    policy: &Policy,
    now: Time,
) -> Option<(Schedule, ScheduleJudgement)> {
    let judge = |target: &Target| {
        let mut decision = decide(target, policy, now);
        let place = decision.schedules.iter().position(|(id, _)| id.uid == *uid)?;
        let (_, judgement) = decision.schedules.swap_remove(place);
        let wanted = decision.actions.into_iter().find_map(|action| match action {
            Action::Record(record) if record.schedule.uid == *uid => Some(record.status),
            _ => None,
        });
        Some((judgement, wanted))
    };
    let (first, wanted) = judge(target)?;
    let mut schedule = target.schedules.get(uid)?.clone();
    let begins_anew = first.asked.last().is_some_and(|(row, _)| *row == ANEW);
    let Some(wanted) = wanted else { return Some((schedule, first)) };
    if !begins_anew {
        if let Held::Ahead(_) = wanted.held {
            schedule.status.held = wanted.held;
        }
        return Some((schedule, first));
    }
    schedule.status = *wanted;
    let mut anew = target.clone();
    anew.schedules.insert(uid.clone(), schedule.clone());
    let (second, _) = judge(&anew)?;
    // The rows up to this one are already in `first`, with the reason why a new plan starts.
    let further = second.asked.into_iter().skip_while(|(row, _)| *row != ANEW).skip(1);
    let asked = first.asked.into_iter().chain(further).collect();
    Some((schedule, ScheduleJudgement { asked, ..second }))
}

impl Report {
    fn of(
        schedule: &Schedule,
        target: &Target,
        judgement: &ScheduleJudgement,
        installation: &Installation,
        now: Time,
    ) -> Self {
        let last = schedule.status.last_run.as_ref();
        let slot = |planned: Planned| Slot {
            utc: shown(planned.at),
            zone: zone(schedule, planned.at),
            why: planned.why.as_str(),
        };
        let operator = match &installation.leader {
            Leader::Is(name) => format!("{name} leads"),
            Leader::Nobody(why) | Leader::Unknown(why) => why.clone(),
        };
        Self {
            namespace: schedule.id.namespace.to_string(),
            name: schedule.id.name.to_string(),
            target: target.name.as_ref().map(|name| name.as_str().to_owned()),
            held: judgement.held.map(HeldBy::as_str),
            would_be_held: match &schedule.status.held {
                Held::Ahead(message) => Some(message.to_string()),
                Held::Never | Held::Released | Held::By { .. } => None,
            },
            later_by: Some(schedule.past(now).offset).filter(|it| !it.is_zero()).map(duration::format),
            failures: schedule.status.failure_count,
            last_run: last.map(|last| Last {
                slot: shown(last.slot),
                outcome: last.outcome.map(Outcome::as_str),
                reason: last.reason.as_deref().map(str::to_owned),
                message: last.message.as_deref().map(str::to_owned),
            }),
            triage: TriageSaid::of(schedule),
            adjusted: Adjusted::of(schedule),
            conditions: conditions(schedule),
            rows: judgement.asked.iter().map(|(row, says)| Row { row, says: says.to_string() }).collect(),
            slots: slots(schedule, now).take(SLOTS).map(slot).collect(),
            policy: installation.policy_of.clone(),
            operator,
            policies: installation.policies.told(),
            undecided: None,
            assumed: None,
        }
    }

    fn told(&self) -> String {
        let mut text = format!("WorkflowSchedule {}/{}", self.namespace, self.name);
        let target = line(self.target.as_deref().unwrap_or("a target that cannot be read"));
        let _ = match (&self.undecided, self.held, self.slots.first()) {
            (Some(why), ..) => writeln!(text, " on {target} makes no run: {}\n", line(why)),
            (None, Some(held), _) => writeln!(text, " on {target} is held: {held}\n"),
            (None, None, Some(next)) if let Some(why) = &self.would_be_held => {
                writeln!(text, " on {target} would be held at {} ({}): {}\n", next.utc, next.why, line(why))
            }
            (None, None, Some(next)) => writeln!(text, " on {target} runs next at {} ({})\n", next.utc, next.why),
            (None, None, None) => writeln!(text, " on {target} has no next run\n"),
        };
        let _ = writeln!(text, "  failures     {}", self.failures);
        if let Some(later) = &self.later_by {
            let _ = writeln!(text, "  spread       each slot is {later} later than its plan says");
        }
        if let Some(Last { slot, outcome, reason, message }) = &self.last_run {
            let outcome = outcome.unwrap_or("at work");
            let said = message.as_ref().or(reason.as_ref()).map(|said| format!(", {}", line(said))).unwrap_or_default();
            let _ = writeln!(text, "  last run     slot {slot}: {outcome}{said}");
        }
        if let Some(triage) = &self.triage {
            triage.tell(&mut text);
        }
        if let Some(adjusted) = &self.adjusted {
            adjusted.tell(&mut text);
        }
        for Condition { kind, status, reason, message } in &self.conditions {
            let status = if *status { "True" } else { "False" };
            let message = message.as_ref().map(|message| format!(": {}", line(message))).unwrap_or_default();
            let _ = writeln!(text, "  condition    {kind} {status}, {reason}{message}");
        }
        let _ = writeln!(text, "  policy       {}\n  operator     {}", line(&self.policy), line(&self.operator));
        let _ = writeln!(text, "  policies     {}", line(&self.policies));
        if let Some(assumed) = &self.assumed {
            let _ = writeln!(text, "  assumed      {}", line(assumed));
        }
        let _ = writeln!(text, "\nWhat each row found, in order; the last one decides:");
        for Row { row, says } in &self.rows {
            let _ = writeln!(text, "  {row}: {}", line(says));
        }
        if !self.slots.is_empty() {
            let _ =
                writeln!(text, "\nThe next slots, while nothing holds it and every run succeeds before the next one:");
        }
        for Slot { utc, zone, why } in &self.slots {
            let zone = zone.as_ref().map(|zone| format!("   {zone}")).unwrap_or_default();
            let _ = writeln!(text, "  {utc}{zone}   {why}");
        }
        text
    }
}

/// Returns the conditions of the status.
fn conditions(schedule: &Schedule) -> Vec<Condition> {
    let said = |kind, status, reason, message: Option<&str>| Condition {
        kind,
        status,
        reason,
        message: message.map(str::to_owned),
    };
    let ready = match &schedule.status.ready {
        Ready::Unsaid => None,
        Ready::Yes => Some(said("Ready", true, "Ready", None)),
        Ready::InvalidSpec(why) => Some(said("Ready", false, "InvalidSpec", Some(why))),
        Ready::ChildRefused(why) => Some(said("Ready", false, "ChildRefused", Some(why))),
        Ready::Deleting => Some(said("Ready", false, "Deleting", None)),
    };
    let held = match &schedule.status.held {
        Held::Never => None,
        Held::Released => Some(said("Held", false, "Released", None)),
        Held::Ahead(message) => Some(said("Held", false, "WouldBeHeld", Some(message))),
        Held::By { reason, message } => Some(said("Held", true, reason.as_str(), Some(message))),
    };
    ready.into_iter().chain(held).collect()
}

#[cfg(test)]
mod tests;
