//! The text of a report, for people.

use std::fmt;

use kube::api::DynamicObject;
use wfe_api::conditions::{CLEARANCE_INEFFECTIVE, UNGUARDED};
use wfe_core::ending::Skip;
use wfe_core::execution::Recorded;
use wfe_core::guard::Directive;
use wfe_core::name::ExecutionId;
use wfe_core::target::Target;
use wfe_view::observe::observe_clearance;

use super::{Named, OfWorkflow, Report, Rule, Word};
use crate::object::condition;
use crate::output::line;
use crate::view::Seen;

impl Report {
    /// Returns the answer, in words that finish a sentence.
    pub(crate) fn outlook(&self) -> String {
        match (self.verdict, &self.message) {
            (Word::Depends, _) => {
                let each =
                    self.workflows.iter().map(|it| format!("\n  {} {}", line(&it.workflow_id), line(&it.outlook)));
                format!(
                    "{}:{}\n  any other {}",
                    line(&self.head),
                    each.collect::<String>(),
                    line(&self.other_workflows)
                )
            }
            (Word::Skip | Word::Fail, Some(message)) => format!("{}: {}.", line(&self.head), line(message)),
            _ => format!("{}.", line(&self.head)),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.brief())?;
        if !self.basis.is_empty() && self.facts.is_empty() {
            writeln!(f)?;
        }
        for (label, said) in &self.basis {
            writeln!(f, "  {label:<12} {}", line(said))?;
        }
        if !self.rules.is_empty() {
            writeln!(f, "\nWhat each rule found, in order:")?;
        }
        for Rule { name, found, until } in &self.rules {
            let until = until.as_ref().map_or(String::new(), |until| format!(" (until {until})"));
            writeln!(f, "  {name}: {}{until}", line(found))?;
        }
        Ok(())
    }
}

/// A report without what it depends on and without the findings of the rules.
pub(crate) struct Brief<'a>(&'a Report);

impl Report {
    /// Shows the answer about a new execution, in one line.
    pub(crate) fn told_of_new(&self) -> String {
        let (target, outlook) = (line(&self.target), self.outlook());
        match &self.unserved {
            Some(why) => format!("{target}: {}\n", line(why)),
            None => format!("a new execution on {target}: {outlook}\n"),
        }
    }

    /// Shows the answer alone.
    pub(crate) fn brief(&self) -> Brief<'_> {
        Brief(self)
    }

    fn write_brief(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [target, namespace, head] = [&self.target, &self.namespace, &self.head].map(|text| line(text));
        if let Some(why) = &self.unserved {
            writeln!(f, "{target}: {}\n", line(why))?;
        }
        match &self.name {
            Some(name) => writeln!(f, "{namespace}/{} on {target}: {head}", line(name))?,
            None => writeln!(f, "a new execution on {target}: {head}")?,
        }
        if self.verdict == Word::Depends {
            writeln!(f)?;
            for OfWorkflow { workflow_id, outlook, .. } in &self.workflows {
                writeln!(f, "  {}: {}", line(workflow_id), line(outlook))?;
            }
            writeln!(f, "  any other: {}\n\nAny other workflow:", line(&self.other_workflows))?;
        }
        if !self.facts.is_empty() {
            writeln!(f)?;
        }
        for (label, said) in &self.facts {
            writeln!(f, "  {label:<12} {}", line(said))?;
        }
        Ok(())
    }
}

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_brief(f)
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Describes the history beyond the rules: no execution is known on the target, or its latest one was cleared.
pub(super) fn told_of_history(seen: &Seen, target: &Target, asks: &ExecutionId, exists: bool) -> Option<String> {
    if target.executions.values().all(|execution| execution.id == *asks) {
        // If the execution exists, it is itself known on the target.
        let unknown = "no WorkflowExecution on it is known; should one be, check the spelling";
        return (!exists).then(|| unknown.to_owned());
    }
    let latest = seen.latest(target)?;
    let clearance = latest.clearance.as_ref().filter(|clearance| !clearance.is_in_vain())?;
    let (by, why) = (clearance.author(), &clearance.reason);
    Some(format!("{by} has cleared the latest, {}: {why}; to delete it brings back what was before", latest.id))
}

pub(super) fn in_the_way(skip: &Skip) -> &ExecutionId {
    match skip {
        Skip::ResourceBusy(conflict) => &conflict.holder,
        Skip::PreviousExecutionFailed { failed: past, .. }
        | Skip::ExhaustedRetries { latest: past, .. }
        | Skip::Backoff { latest: past, .. }
        | Skip::Cooldown { last: past, .. } => &past.execution,
    }
}

/// Describes the recorded effect of a clearance, if there is one.
pub(crate) fn what_clearing_did(object: &DynamicObject) -> Option<String> {
    let clearance = observe_clearance(&object.data)?;
    Some(match clearance.recorded {
        Recorded::Not if clearance.is_in_vain() => has_no_effect_yet(Directive::Clearance),
        Recorded::Not => "no operator has recorded it yet".to_owned(),
        Recorded::Effective => "has lifted the block".to_owned(),
        Recorded::Ineffective => {
            let said = condition(object, CLEARANCE_INEFFECTIVE);
            let why = said.and_then(|it| it["message"].as_str()).unwrap_or("nothing was blocked");
            format!("has had no effect ({CLEARANCE_INEFFECTIVE}): {why}")
        }
    })
}

fn has_no_effect_yet(kind: Directive) -> String {
    format!("has no effect yet ({UNGUARDED}): {}", kind.message(false))
}

/// Reports that a cancellation has no effect now, if the operator has recorded that.
pub(crate) fn what_cancelling_did(object: &DynamicObject) -> Option<String> {
    let mut conditions = object.data["status"]["conditions"].as_array()?.iter();
    let kind = Directive::Cancellation;
    let is_said = conditions.any(|it| it["type"] == UNGUARDED && it["reason"] == kind.reason(false));
    is_said.then(|| has_no_effect_yet(kind))
}
