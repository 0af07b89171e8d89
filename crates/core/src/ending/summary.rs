//! The description of a failure for a person or an LLM, in four plain sentences: what failed, what was reported,
//! whether anything ran, and what to do next.

use super::Failure;
use crate::duration;
use crate::evidence::{Absence, Started};
use crate::findings::{FailedTask, TaskCount};
use crate::fingerprint::Stage;
use crate::reason::FailureReason;
use crate::text::cut;

/// The most characters of a name in the summary: names of tasks and steps can have 253 characters, and the summary may
/// contain three names.
const MAX_NAME: usize = 60;
/// The most characters of the reason why no other attempt follows. Only a reason with a condition is longer.
const MAX_STOP: usize = 100;
/// The most characters of the target: enough for nearly every target.
const MAX_TARGET: usize = 120;
/// The most characters of the reported message, if there is room.
const MAX_REPORT: usize = 300;
/// The most characters of a summary, as in the CRD.
const LONGEST: usize = 1000;
/// The most characters of a parameter's name.
const MAX_PARAMETER: usize = 40;

/// Returns a sentence with the parameters that the pipeline does not declare, if there are any.
#[must_use]
pub fn undeclared(parameters: &[Box<str>]) -> Option<String> {
    let (first, others) = parameters.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        1 => " (and 1 other)".to_owned(),
        count => format!(" (and {count} others)"),
    };
    let first = cut(first, MAX_PARAMETER);
    Some(format!("the pipeline declares no parameter {first}{others}, so no task got its value"))
}

impl Failure {
    /// Describes what happened and what to do next, in four sentences of at most 1,000 characters together. A fifth
    /// sentence names undeclared parameters, if there is room. `target` is `None` if it cannot be read.
    #[must_use]
    pub fn summary(&self, workflow_id: &str, target: Option<&str>, parameters: &[Box<str>]) -> String {
        let target = target.map(|target| cut(target, MAX_TARGET));
        let head = self.head(workflow_id, target.as_deref());
        let (verdict, next) = (self.verdict(), self.next(target.as_deref()));
        let undeclared = undeclared(parameters).map(|words| format!(" Note that {words}.")).unwrap_or_default();
        let length: usize = [&head, &verdict, &next, &undeclared].map(|part| part.chars().count()).iter().sum();
        // If space is short, the sentence about undeclared parameters is dropped: the report explains the failure
        // better, and an event also names the parameters.
        let undeclared = if length + MAX_REPORT / 2 > LONGEST { "" } else { &undeclared };
        let text = |report: &str| format!("{head} Reported: {report}. {verdict} {next}{undeclared}");
        let room = LONGEST.saturating_sub(text("").chars().count());
        text(&self.report(room.min(MAX_REPORT)))
    }

    fn head(&self, workflow_id: &str, target: Option<&str>) -> String {
        let workflow = cut(workflow_id, MAX_NAME);
        let attempt = self.attempt();
        let on = target.map(|target| format!(" on {target}")).unwrap_or_default();
        if self.started == Started::NotStarted(Absence::NoRun) {
            return format!("Workflow '{workflow}'{on} failed before it started, with {}{attempt}.", self.reason);
        }
        let after = duration::format(self.ran_for);
        // The reason `Unknown` adds nothing.
        let reason = Some(self.reason).filter(|reason| *reason != FailureReason::Unknown);
        let reason = reason.map(|reason| format!(" with {reason}")).unwrap_or_default();
        let why = self.why();
        let Some(task) = &self.task else {
            return format!("Workflow '{workflow}'{on} failed after {after}{reason}{why}{attempt}.");
        };
        let (name, place) = (cut(&task.name, MAX_NAME), place(task, self.tasks));
        format!("Task '{name}'{place} of workflow '{workflow}'{on} failed after {after}{reason}{why}{attempt}.")
    }

    /// Describes the number of the attempt and why no other follows, if several attempts were allowed.
    fn attempt(&self) -> String {
        let Some(tried) = &self.tried else { return String::new() };
        let why = tried.stop.message();
        format!(", on attempt {} of {} (not tried again: {})", tried.attempt, tried.of, cut(&why, MAX_STOP))
    }

    /// Returns the number of the attempt with the proof that something ran, if it is not the last attempt.
    fn earlier_that_ran(&self) -> Option<u32> {
        let Started::Started(proof) = &self.started else { return None };
        let of = proof.words.strip_prefix("attempt ")?.split_once(':')?.0.parse().ok()?;
        self.tried.as_ref().is_some_and(|tried| of < tried.attempt).then_some(of)
    }

    /// Explains the reason, if an explanation adds something.
    fn why(&self) -> String {
        let step = self.task.as_ref().and_then(|task| task.step.as_deref());
        let container =
            step.map_or("a container of it".to_owned(), |step| format!("its step '{}'", cut(step, MAX_NAME)));
        let exit_code = self.task.as_ref().and_then(|task| task.exit_code);
        match (self.reason, exit_code) {
            (FailureReason::OomKilled, _) => format!(": {container} took more memory than it may have"),
            (FailureReason::DeadlineExceeded, _) => ": its time was up".to_owned(),
            (FailureReason::Forbidden, Some(_)) => format!(": {container} was denied what it tried to do"),
            (FailureReason::ImagePullBackOff, _) if self.task.is_some() => ": an image could not be pulled".to_owned(),
            (FailureReason::ImagePullBackOff, _) if self.stage == Stage::Unresolved => {
                ": its bundle gave no pipeline".to_owned()
            }
            (FailureReason::ImagePullBackOff, _) => ": its bundle could not be fetched".to_owned(),
            (FailureReason::Unknown, Some(code)) => format!(": {container} exited with code {code}"),
            _ => String::new(),
        }
    }

    fn report(&self, room: usize) -> String {
        let report = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        let report = cut(&report, room);
        let report = report.trim_end_matches(['.', '!', '?']);
        if report.is_empty() { "nothing".to_owned() } else { report.to_owned() }
    }

    fn verdict(&self) -> String {
        match &self.started {
            Started::NotStarted(_) => "Nothing of the workflow ran.".to_owned(),
            Started::Started(_) => {
                let earlier =
                    self.earlier_that_ran().map(|attempt| format!(" in attempt {attempt}")).unwrap_or_default();
                format!("Part of the workflow ran{earlier}, so the target may be only partly changed.")
            }
            Started::Unknown(doubt) => {
                let doubt = doubt.to_string();
                format!(
                    "The operator cannot tell whether anything ran, so it counts as if something had: {}.",
                    cut(&doubt, MAX_NAME * 2)
                )
            }
        }
    }

    fn next(&self, target: Option<&str>) -> String {
        if self.cancelled && !self.was_execution_failure() {
            return "Create another WorkflowExecution if it is to run after all.".to_owned();
        }
        if self.was_execution_failure() {
            let repair = match self.reason {
                FailureReason::OomKilled => "give the step more memory",
                FailureReason::DeadlineExceeded => "find out what took so long or give it more time",
                FailureReason::Forbidden => "give its service account the right that it lacks",
                FailureReason::ResourceExhausted => "make room in the cluster",
                FailureReason::ConfigurationError => "correct it or its parameters",
                FailureReason::ImagePullBackOff => "make the image available",
                FailureReason::Unknown => "find the cause in the logs of its pods",
            };
            return format!(
                "Examine the target, clear it when it is in order, and {repair} before this workflow runs again."
            );
        }
        let repair = self.repair();
        if self.charge.exhausts {
            let failures = self.charge.consecutive_failures;
            let target = target.unwrap_or("the target");
            return format!(
                "{repair}, then clear {target}: after {failures} such failures in a row nothing runs there until somebody \
                 does."
            );
        }
        if self.reason == FailureReason::ConfigurationError {
            return format!("{repair} and create another WorkflowExecution.");
        }
        format!("{repair}; it is safe to try again.")
    }

    /// Describes how to remove the cause of a failure that happened before anything ran.
    fn repair(&self) -> &'static str {
        let has_run = self.started != Started::NotStarted(Absence::NoRun);
        match self.reason {
            FailureReason::ConfigurationError => "Correct what the message names",
            FailureReason::ResourceExhausted if has_run => {
                "Raise the quota of the execution namespace or make room on the nodes"
            }
            FailureReason::ResourceExhausted => "Free or raise the quota of the execution namespace",
            FailureReason::Forbidden if has_run => "Let the execution namespace admit the pods of the workflow",
            FailureReason::Forbidden => "Let the policy or webhook that the message names admit the PipelineRun",
            FailureReason::ImagePullBackOff if self.stage == Stage::Unresolved => "See which of these causes it is",
            FailureReason::ImagePullBackOff => "Make it available, with credentials where it needs them",
            FailureReason::OomKilled => "Give its pods more memory",
            FailureReason::DeadlineExceeded => "Find out what held it up, or give it more time",
            FailureReason::Unknown => "End the cause",
        }
    }
}

fn place(task: &FailedTask, tasks: Option<TaskCount>) -> String {
    let number = task.index.saturating_add(1);
    tasks.map_or(String::new(), |tasks| format!(" ({number} of {})", u32::from(tasks.total).max(number)))
}

#[cfg(test)]
mod tests;
