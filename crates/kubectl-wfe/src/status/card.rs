//! The card of one target or execution: what holds it, what happened, and which command comes next.

use std::fmt::Write as _;

use kube::api::DynamicObject;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::execution::ExecutionState;
use wfe_core::schedule::Held;

use crate::moment::{beside, since};
use crate::object::{condition, text};
use crate::output::line;
use crate::progress::{place_of_failure, progress};
use crate::report::skipped_for;
use crate::view::Seen;

/// A headline, facts with their labels, and commands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Card {
    head: String,
    facts: Vec<(&'static str, String)>,
    /// What to do: a command, and what it is for.
    commands: Vec<(String, &'static str)>,
}

impl Card {
    /// Describes a blocked target. None if nothing blocks the target: a prediction is then the better answer.
    pub(super) fn of_target(seen: &Seen, name: &str) -> Option<Self> {
        let target = seen.targets().find(|target| target.label() == name)?;
        let blocks = seen.blocks(target);
        let past = blocks.first()?.remediation()?;
        let mut card = Self {
            head: format!(
                "{name} is BLOCKED for {}: nothing runs here until a person clears it",
                since(past.completed_at, seen.now)
            ),
            ..Self::default()
        };
        let object = seen.of_uid(&past.execution.uid);
        let failed =
            format!("{} (workflow {}), {}", past.execution, past.workflow_id, beside(past.completed_at, seen.now));
        card.facts.push(("failed", failed));
        if let Some(Skip::ExhaustedRetries { failures, limit, .. }) = blocks.first() {
            card.facts.push(("in a row", format!("{failures} failed before anything ran; the limit is {limit}")));
        }
        if let Some(object) = object {
            card.tell_failure(object);
        }
        let ahead = target.schedules.values().filter_map(|it| match (&it.status.held, &it.status.next) {
            (Held::Ahead(_), Some(next)) => Some(format!("{} at {}: would be held", it.id, beside(next.at, seen.now))),
            _ => None,
        });
        card.facts.extend(ahead.map(|ahead| ("next slot", ahead)));
        let skips = seen.objects().filter(|it| is_skipped_for(it, &past.execution.name));
        let times = skips.filter_map(|it| text(it, "/status/completionTime")?.parse::<Time>().ok());
        let (count, last) = times.fold((0, None), |(count, last), at| (count + 1, last.max(Some(at))));
        if let Some(last) = last {
            card.facts.push(("skipped", format!("{count} since, the last {} ago", since(last, seen.now))));
        }
        let namespace = &past.execution.namespace;
        let logs = format!("kubectl wfe logs {} -n {namespace}", past.execution.name);
        card.commands.push((logs, "what its steps wrote"));
        card.commands.push((format!("kubectl wfe clear {name} --reason '...'"), "when all is in order again"));
        Some(card)
    }

    /// Describes an execution that is Running or has ended. None for one that is undecided.
    pub(super) fn of_execution(seen: &Seen, object: &DynamicObject) -> Option<Self> {
        let (target, execution) = seen.known(object)?;
        let id = &execution.id;
        let target = target.name.as_ref().map_or("an unreadable target", |target| target.as_str());
        let time = |pointer: &str| text(object, pointer).and_then(|at| at.parse::<Time>().ok());
        let ended =
            time("/status/completionTime").map(|at| format!(" {} ago", since(at, seen.now))).unwrap_or_default();
        let took = text(object, "/status/duration").map(|took| format!(", after {took}")).unwrap_or_default();
        let here = format!("{} -n {}", id.name, id.namespace);
        let mut card = Self::default();
        match &execution.state {
            ExecutionState::Undecided { .. } => return None,
            ExecutionState::Running { started_at, .. } => {
                let limit = execution.timeout.unwrap_or(seen.installation.policy.default_timeout);
                let age = since(started_at.unwrap_or(execution.created), seen.now);
                card.head = format!("{id} runs on {target} for {age}, of at most {}", crate::moment::span(limit));
                card.facts.push(("progress", progress(execution, seen.now)));
                card.commands.push((format!("kubectl wfe logs {here} --follow"), "what its steps write"));
                card.commands.push((format!("kubectl wfe cancel {here} --reason '...'"), "stop it"));
            }
            ExecutionState::Completed { .. } => card.head = format!("{id} completed on {target}{ended}{took}"),
            ExecutionState::Failed(failed) => {
                let ran = if failed.was_execution_failure { "half way" } else { "before anything ran" };
                card.head = format!("{id} failed on {target}{ended}, {ran}{took}");
                card.tell_failure(object);
                if let Some(next) = failed.next_allowed_execution {
                    card.facts.push(("next", format!("an execution can run from {} on", beside(next, seen.now))));
                }
                card.commands.push((format!("kubectl wfe logs {here}"), "what its steps wrote"));
                if failed.was_execution_failure {
                    card.commands.push((format!("kubectl wfe status {target}"), "whether it still blocks"));
                }
            }
            ExecutionState::Skipped { .. } => {
                let reason = text(object, "/status/skipDetails/reason").unwrap_or("unknown");
                card.head = format!("{id} was skipped on {target}{ended}: {reason}");
                let why = text(object, "/status/skipDetails/message").unwrap_or("its status does not say why");
                card.facts.push(("then", why.to_owned()));
                if let Some(past) = skipped_for(object)
                    && let Some(other) = seen.named(&past.0, &past.1)
                {
                    let phase = text(other, "/status/phase").unwrap_or("Pending");
                    card.facts.push(("since", format!("{}/{} is {phase}", past.0, past.1)));
                }
                let now = format!("kubectl wfe status {target}");
                card.commands.push((now, "how the target stands now"));
                card.commands.push((format!("kubectl wfe run --like {here}"), "once more"));
            }
        }
        Some(card)
    }

    fn tell_failure(&mut self, object: &DynamicObject) {
        let details = |key: &str| text(object, &format!("/status/failureDetails/{key}")).map(str::to_owned);
        self.facts.extend(place_of_failure(object).map(|place| ("where", place)));
        let reason = details("reason").filter(|reason| reason != "Unknown");
        self.facts.extend(reason.map(|reason| ("reason", reason)));
        self.facts.extend(details("message").map(|message| ("said", message)));
        let started = condition(object, wfe_api::conditions::STARTED);
        let ran = started.and_then(|it| {
            let word = match it["status"].as_str()? {
                "True" => "yes",
                "False" => "no",
                _ => "perhaps",
            };
            Some(format!("{word}: {}", it["message"].as_str()?))
        });
        self.facts.extend(ran.map(|ran| ("ran", ran)));
    }

    /// Shows it to people.
    pub(super) fn told(&self) -> String {
        let mut text = line(&self.head).into_owned() + "\n";
        if !self.facts.is_empty() {
            text.push('\n');
        }
        for (label, said) in &self.facts {
            let _ = writeln!(text, "  {label:<10} {}", line(said));
        }
        if !self.commands.is_empty() {
            text.push('\n');
        }
        for (command, what) in &self.commands {
            let _ = writeln!(text, "  {what}:\n    {}", line(command));
        }
        text
    }
}

fn is_skipped_for(object: &DynamicObject, name: &str) -> bool {
    text(object, "/status/phase") == Some("Skipped") && skipped_for(object).is_some_and(|(_, it)| it == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_comes_first_and_the_commands_last() {
        let card = Card {
            head: "node/n is BLOCKED for 10m: nothing runs here".to_owned(),
            facts: vec![("failed", "ns/a\u{1b}[2J".to_owned())],
            commands: vec![("kubectl wfe logs a".to_owned(), "what its steps wrote"), ("x".to_owned(), "y")],
        };
        assert_eq!(
            card.told(),
            "node/n is BLOCKED for 10m: nothing runs here\n\n  failed     ns/a\\u{1b}[2J\n\n  \
             what its steps wrote:\n    kubectl wfe logs a\n  y:\n    x\n"
        );
        assert_eq!(Card { head: "a completed".to_owned(), ..Card::default() }.told(), "a completed\n");
    }
}
