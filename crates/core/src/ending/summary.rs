//! The words in which a failure is told to a person or an LLM. All of them, in one place: four plain sentences that say
//! what failed, what was reported, whether anything ran, and what to do next.

use super::Failure;
use crate::duration;
use crate::evidence::{Absence, Started};
use crate::findings::{FailedTask, TaskCount};
use crate::reason::FailureReason;
use crate::text::cut;

/// How much of a name is shown, in characters: names of tasks and steps may have 253, and there are three of them.
const MAX_NAME: usize = 60;
/// How much is shown of why there is no other attempt, in characters: all of it but for the words of a condition.
const MAX_STOP: usize = 100;
/// How much is shown of what was reported, in characters. With the longest of all other words it stays below the 1,000
/// that a status holds.
const MAX_REPORT: usize = 300;

/// The same where attempts are told too, which takes its room from here.
const MAX_REPORT_OF_ATTEMPT: usize = 180;

impl Failure {
    /// Tells what happened and what to do next, in four sentences of no more than 1,000 characters together.
    #[must_use]
    pub fn summary(&self, workflow_id: &str) -> String {
        let head = self.head(workflow_id);
        format!("{head} Reported was: {}. {} {}", self.report(), self.verdict(), self.next())
    }

    fn head(&self, workflow_id: &str) -> String {
        let workflow = cut(workflow_id, MAX_NAME);
        let attempt = self.attempt();
        if self.started == Started::NotStarted(Absence::NoRun) {
            return format!("Workflow '{workflow}' failed before it started, with {}{attempt}.", self.reason);
        }
        let after = duration::format(self.ran_for);
        // That a reason is not known is no news.
        let reason = Some(self.reason).filter(|reason| *reason != FailureReason::Unknown);
        let reason = reason.map(|reason| format!(" with {reason}")).unwrap_or_default();
        let why = self.why();
        let Some(task) = &self.task else {
            return format!("Workflow '{workflow}' failed after {after}{reason}{why}{attempt}.");
        };
        let (name, place) = (cut(&task.name, MAX_NAME), place(task, self.tasks));
        format!("Task '{name}'{place} of workflow '{workflow}' failed after {after}{reason}{why}{attempt}.")
    }

    /// Says which attempt it was and why there is no other, where there could be several.
    fn attempt(&self) -> String {
        let Some(tried) = &self.tried else { return String::new() };
        let why = tried.stop.message();
        format!(", on attempt {} of {} (not tried again: {})", tried.attempt, tried.of, cut(&why, MAX_STOP))
    }

    /// Returns the earlier attempt that the proof that something ran is of, where it is of one.
    fn earlier_that_ran(&self) -> Option<u32> {
        let Started::Started(proof) = &self.started else { return None };
        let of = proof.words.strip_prefix("attempt ")?.split_once(':')?.0.parse().ok()?;
        self.tried.as_ref().is_some_and(|tried| of < tried.attempt).then_some(of)
    }

    /// Says what the reason means here, where there is more to say.
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
            (FailureReason::ImagePullBackOff, _) => ": its bundle could not be fetched".to_owned(),
            (FailureReason::Unknown, Some(code)) => format!(": {container} exited with code {code}"),
            _ => String::new(),
        }
    }

    fn report(&self) -> String {
        let report = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        // What is said of attempts takes its room from here.
        let report = cut(&report, if self.tried.is_some() { MAX_REPORT_OF_ATTEMPT } else { MAX_REPORT });
        let report = report.trim_end_matches(['.', '!', '?']);
        if report.is_empty() { "nothing".to_owned() } else { report.to_owned() }
    }

    fn verdict(&self) -> String {
        match &self.started {
            Started::NotStarted(_) => "Nothing of the workflow ran.".to_owned(),
            Started::Started(_) => {
                let earlier =
                    self.earlier_that_ran().map(|attempt| format!(" in attempt {attempt}")).unwrap_or_default();
                format!("Something of the workflow ran{earlier}, so the target may be changed half way.")
            }
            Started::Unknown(doubt) => {
                let doubt = doubt.to_string();
                format!(
                    "Nobody can tell whether anything ran, so it counts as if it had: {}.",
                    cut(&doubt, MAX_NAME * 2)
                )
            }
        }
    }

    fn next(&self) -> String {
        if self.cancelled && !self.was_execution_failure() {
            return "Create another WorkflowExecution if it is to run after all.".to_owned();
        }
        if self.was_execution_failure() {
            let repair = match self.reason {
                FailureReason::OomKilled => "give the step more memory",
                FailureReason::DeadlineExceeded => "find out what took so long, or give it more time,",
                FailureReason::Forbidden => "give its service account the right that it lacks",
                FailureReason::ResourceExhausted => "make room in the cluster",
                FailureReason::ConfigurationError => "correct it or its parameters",
                FailureReason::ImagePullBackOff => "make the image available",
                FailureReason::Unknown => "find the cause in the logs of its pods",
            };
            return format!(
                "Look at the target and clear it when it is in order; {repair} before this workflow runs again, or choose \
                 another."
            );
        }
        let has_run = self.started != Started::NotStarted(Absence::NoRun);
        match self.reason {
            FailureReason::ConfigurationError => "Correct what the message names and create another WorkflowExecution.",
            FailureReason::ResourceExhausted if has_run => {
                "Raise the quota of the execution namespace or make room on the nodes; it is safe to try again."
            }
            FailureReason::ResourceExhausted => {
                "Free or raise the quota of the execution namespace; it is safe to try again."
            }
            FailureReason::Forbidden if has_run => {
                "Let the execution namespace admit the pods of the workflow; it is safe to try again."
            }
            FailureReason::Forbidden => {
                "Let the policy or webhook that the message names admit the PipelineRun; it is safe to try again."
            }
            FailureReason::ImagePullBackOff => {
                "Make it available, with credentials where it needs them; it is safe to try again."
            }
            FailureReason::OomKilled => "Give its pods more memory; it is safe to try again.",
            FailureReason::DeadlineExceeded => {
                "Find out what held it up, or give it more time; it is safe to try again."
            }
            FailureReason::Unknown => "It is safe to try again once the cause is gone.",
        }
        .to_owned()
    }
}

fn place(task: &FailedTask, tasks: Option<TaskCount>) -> String {
    let number = task.index.saturating_add(1);
    tasks.map_or(String::new(), |tasks| format!(" ({number} of {})", tasks.total.max(number)))
}

#[cfg(test)]
mod tests;
