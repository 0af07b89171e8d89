//! The overview: what needs a person, what runs and waits, and which schedules would be held.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::TimeDelta;
use kube::api::DynamicObject;
use serde::Serialize;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::execution::ExecutionState;
use wfe_core::schedule::Held;
use wfe_core::target::Target;

use crate::installation::Leader;
use crate::moment::since;
use crate::object::text;
use crate::output::line;
use crate::progress::{place_of_failure, progress};
use crate::recorded::Recorded;
use crate::view::Seen;

/// How many rows of a section are shown: what fits on a screen. The heading counts all.
const SHOWN: usize = 20;
/// How far back ended executions are counted.
const LATELY: TimeDelta = TimeDelta::hours(1);

/// The answer. `-o json` shows all of it, with all rows.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overview {
    pub(crate) operator: Line,
    pub(crate) policies: Line,
    pub(crate) circuits: Line,
    /// Targets that are blocked, and schedules that a triage has paused or whose spec cannot be used.
    pub(crate) needs_person: Vec<Row>,
    pub(crate) running: Vec<Row>,
    pub(crate) waiting: Vec<Row>,
    /// Schedules whose next slot would be held.
    would_be_held: Vec<Row>,
    /// How many executions ended within the last hour: by phase, or by the reason of a skip.
    pub(crate) last_hour: BTreeMap<String, usize>,
    /// The namespace that the rows are limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    /// The command that comes next, if something needs a person.
    next: Option<String>,
    /// Whether an execution waits because of a problem of the operator, and not for another execution or a person.
    is_stuck: bool,
}

/// What is known of a part of the installation.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) is_well: bool,
    pub(crate) message: String,
}

/// A target, execution or schedule, since when, and why.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) subject: String,
    /// Since when, as `3m`; for a schedule, in how much time its slot is.
    pub(crate) age: String,
    pub(crate) why: String,
    #[serde(skip)]
    pub(crate) at: Time,
    /// The commands that come next, the first one first.
    #[serde(skip)]
    pub(crate) commands: Vec<String>,
}

impl Overview {
    /// Collects the overview. If a namespace is given: only its executions and schedules, and the targets in it.
    pub(crate) fn of(seen: &Seen, namespace: Option<&str>) -> Self {
        let open: Vec<String> = seen
            .circuits()
            .open()
            .map(|it| format!("{} since {}", it.fingerprint, since(it.opened_at, seen.now)))
            .collect();
        let mut overview = Self {
            operator: match &seen.installation.leader {
                Leader::Is(name) => Line { is_well: true, message: format!("{name} leads") },
                Leader::Unknown(why) => Line { is_well: true, message: why.clone() },
                Leader::Nobody(why) => Line { is_well: false, message: why.clone() },
            },
            policies: Line {
                is_well: seen.installation.policies.wrong.is_empty(),
                message: seen.installation.policies.told(),
            },
            circuits: match open.len() {
                0 => Line { is_well: true, message: "none is open".to_owned() },
                count => Line { is_well: false, message: format!("{count} open: {}", open.join(", ")) },
            },
            namespace: namespace.map(str::to_owned),
            ..Self::default()
        };
        for target in seen.targets() {
            overview.add_target(seen, target, namespace);
        }
        for object in seen.objects().filter(|it| is_in(it.metadata.namespace.as_deref(), namespace)) {
            overview.add_execution(seen, object);
        }
        for rows in
            [&mut overview.needs_person, &mut overview.running, &mut overview.waiting, &mut overview.would_be_held]
        {
            rows.sort_by(|a, b| (a.at, &a.subject).cmp(&(b.at, &b.subject)));
        }
        overview.next = overview.needs_person.first().and_then(|row| row.commands.first().cloned());
        overview
    }

    fn add_target(&mut self, seen: &Seen, target: &Target, namespace: Option<&str>) {
        let place = target.name.as_ref().and_then(|name| name.namespace());
        let name = target.label();
        if let Some(block) = seen.blocks(target).first()
            && let Some(past) = block.remediation()
            && (is_in(place, namespace) || is_in(Some(&past.execution.namespace), namespace))
        {
            let object = seen.of_uid(&past.execution.uid);
            let place = object.and_then(place_of_failure).map(|place| format!(" in {place}")).unwrap_or_default();
            let why = match block {
                Skip::ExhaustedRetries { failures, .. } => {
                    let reason = object.and_then(|it| text(it, "/status/failureDetails/reason")).unwrap_or("unknown");
                    format!("{failures} failures in a row, the last {}: {reason}", past.execution)
                }
                _ => format!("{} failed{place}", past.execution),
            };
            let row = Row::since(name, past.completed_at, seen.now, why).then([
                format!("kubectl wfe status {name}"),
                format!("kubectl wfe logs {} -n {}", past.execution.name, past.execution.namespace),
                format!("kubectl wfe clear {name} --reason ''"),
            ]);
            self.needs_person.push(row);
        }
        for schedule in target.schedules.values().filter(|it| is_in(Some(&it.id.namespace), namespace)) {
            let here = format!("{} -n {}", schedule.id.name, schedule.id.namespace);
            let subject = format!("schedule/{here}");
            let explain = format!("kubectl wfe schedule explain {here}");
            if let Err(why) = &schedule.plan {
                let why = format!("its spec cannot be used: {why}");
                self.needs_person.push(Row::since(&subject, seen.now, seen.now, why).then([explain.clone()]));
            } else if let Some(triage) = schedule.status.paused_by() {
                let why = format!("paused by the triage of {}", triage.of);
                let at = schedule.status.held_since.unwrap_or(seen.now);
                let resume = format!("kubectl wfe schedule resume {here} --reason ''");
                self.needs_person.push(Row::since(&subject, at, seen.now, why).then([explain.clone(), resume]));
            }
            if let (Held::Ahead(why), Some(next)) = (&schedule.status.held, &schedule.status.next) {
                let age = format!("in {}", since(seen.now, next.at));
                let row = Row { subject, age, why: why.to_string(), at: next.at, commands: vec![explain] };
                self.would_be_held.push(row);
            }
        }
    }

    fn add_execution(&mut self, seen: &Seen, object: &DynamicObject) {
        let Some((target, execution)) = seen.known(object) else { return };
        let target = target.name.as_ref().map_or("an unreadable target", |target| target.as_str());
        let here = format!("{} -n {}", execution.id.name, execution.id.namespace);
        match &execution.state {
            ExecutionState::Running { started_at, .. } => {
                let why = format!("{}: {}", execution.id, progress(execution, seen.now));
                let row = Row::since(target, started_at.unwrap_or(execution.created), seen.now, why);
                self.running.push(row.then([format!("kubectl wfe logs {here} --follow")]));
            }
            ExecutionState::Undecided { .. } => {
                let recorded = Recorded::of(object, seen.now);
                self.is_stuck |= recorded.as_ref().is_some_and(Recorded::is_trouble);
                let why = recorded.as_ref().map_or("new", |recorded| recorded.reason());
                let why = format!("{}: {why}", execution.id);
                let row = Row::since(target, execution.created, seen.now, why);
                self.waiting.push(row.then([format!("kubectl wfe explain {here}")]));
            }
            state => {
                let ended = text(object, "/status/completionTime").and_then(|at| at.parse::<Time>().ok());
                if ended.is_some_and(|ended| ended > seen.now - LATELY) {
                    let word = match state {
                        ExecutionState::Completed { .. } => "completed",
                        ExecutionState::Failed(_) => "failed",
                        _ => text(object, "/status/skipDetails/reason").unwrap_or("skipped"),
                    };
                    *self.last_hour.entry(word.to_owned()).or_default() += 1;
                }
            }
        }
    }

    /// Returns whether nothing needs a person. Missing policies do not count: `doctor` and an alert report them.
    pub(crate) fn is_well(&self) -> bool {
        self.needs_person.is_empty() && !self.is_stuck && self.operator.is_well
    }

    /// Shows it to people.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        for (name, it) in [("operator", &self.operator), ("policies", &self.policies), ("circuits", &self.circuits)] {
            let mark = if it.is_well { "ok" } else { "! " };
            let _ = writeln!(text, "{mark}  {name}   {}", line(&it.message));
        }
        let sections = [
            ("NEEDS A PERSON", &self.needs_person),
            ("RUNNING", &self.running),
            ("WAITING", &self.waiting),
            ("WOULD BE HELD", &self.would_be_held),
        ];
        for (heading, rows) in sections.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            let _ = writeln!(text, "\n{heading} ({})", rows.len());
            let shown = rows.iter().take(SHOWN);
            let wide = shown.clone().map(|row| row.subject.chars().count()).max().unwrap_or_default();
            let long = shown.clone().map(|row| row.age.chars().count()).max().unwrap_or_default();
            for Row { subject, age, why, .. } in shown {
                let _ = writeln!(text, "  {:wide$}  {age:>long$}  {}", line(subject), line(why));
            }
            if rows.len() > SHOWN {
                let _ = writeln!(text, "  and {} more: kubectl wfe status -o json", rows.len() - SHOWN);
            }
        }
        if self.needs_person.is_empty() && self.running.is_empty() && self.waiting.is_empty() {
            let _ = writeln!(text, "\nNothing runs, nothing waits, and nothing needs a person.");
        }
        let hour: Vec<String> = self.last_hour.iter().map(|(word, count)| format!("{count} {}", line(word))).collect();
        let hour = if hour.is_empty() { "no execution ended".to_owned() } else { hour.join(", ") };
        let _ = writeln!(text, "\nlast hour  {hour}");
        if let Some(next) = &self.next {
            let _ = writeln!(text, "next       {}", line(next));
        }
        text
    }
}

impl Row {
    fn since(subject: &str, at: Time, now: Time, why: String) -> Self {
        Self { subject: subject.to_owned(), age: since(at, now), why, at, commands: Vec::new() }
    }

    /// Adds the commands that come next.
    fn then<const N: usize>(self, commands: [String; N]) -> Self {
        Self { commands: commands.into(), ..self }
    }
}

/// Returns whether a namespace is the one that was asked for, if one was.
pub(crate) fn is_in(namespace: Option<&str>, asked: Option<&str>) -> bool {
    asked.is_none() || namespace == asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, age: &str, why: &str) -> Row {
        Row {
            subject: subject.to_owned(),
            age: age.to_owned(),
            why: why.to_owned(),
            at: Time::default(),
            commands: vec![],
        }
    }

    #[test]
    fn who_needs_a_person_is_named_with_the_command_that_comes_next() {
        let well = |message: &str| Line { is_well: true, message: message.to_owned() };
        let mut overview = Overview {
            operator: well("wfe-operator-1 leads"),
            policies: well("all 13 are as they ship"),
            circuits: well("none is open"),
            needs_person: vec![row("node/worker-1", "10m", "payment/nodefail failed in task restart: exit code 1")],
            running: vec![row("payment/deployment/web", "38s", "payment/slow2: 1 of 2 tasks done")],
            last_hour: [("completed".to_owned(), 7), ("ResourceBusy".to_owned(), 8)].into(),
            next: Some("kubectl wfe status node/worker-1".to_owned()),
            ..Overview::default()
        };
        assert_eq!(
            overview.told(),
            "ok  operator   wfe-operator-1 leads\n\
             ok  policies   all 13 are as they ship\n\
             ok  circuits   none is open\n\n\
             NEEDS A PERSON (1)\n  node/worker-1  10m  payment/nodefail failed in task restart: exit code 1\n\n\
             RUNNING (1)\n  payment/deployment/web  38s  payment/slow2: 1 of 2 tasks done\n\n\
             last hour  8 ResourceBusy, 7 completed\nnext       kubectl wfe status node/worker-1\n"
        );
        assert!(!overview.is_well());
        overview.needs_person = vec![];
        assert!(overview.is_well());
        overview.is_stuck = true;
        assert!(!overview.is_well());
        overview.waiting = (0..25).map(|nth| row(&format!("node/{nth}"), "1s", "ns/a: Turn")).collect();
        let told = overview.told();
        assert!(told.contains("WAITING (25)\n") && told.contains("  and 5 more: "), "{told}");
        let empty = Overview::default().told();
        assert!(empty.contains("Nothing runs, nothing waits") && empty.contains("no execution ended"), "{empty}");
    }
}
