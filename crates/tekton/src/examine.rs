//! What a run that has ended says about its failure: whether anything ran, which task is to blame, and why.

mod blame;
mod registry;

use wfe_core::evidence::{Doubt, Started};
use wfe_core::findings::{Cause, Findings, Waited};
use wfe_core::reason::FailureReason;

use crate::evidence::{Evidence, Remains, completed_tasks};
use crate::object::{Condition, Object, list, text};
use crate::reasons::{Meaning, RunReason, SkipReason, Wait};
use crate::words::{BundleError, bundle_error, redact_run};
use blame::{Blamed, blame};

/// Looks at what is there of a run that failed, with what was seen of it while it ran.
#[must_use]
pub fn examine(evidence: &Evidence, remains: Remains<'_>) -> Findings {
    let started = evidence.conclude(remains);
    let Some(run) = remains.run else {
        let doubt = Started::Unknown(Doubt::RunGone);
        return Findings { started, ..Findings::unread(doubt.to_string().into()) };
    };
    let condition = run.condition();
    let meaning = RunReason::parse(condition.reason).map(RunReason::means);
    let has_timed_out = meaning == Some(Meaning::Failed(FailureReason::DeadlineExceeded));
    let blamed = blame(remains, has_timed_out, evidence.waiting());
    let waited = evidence.waiting().filter(|_| !started.may_have_run()).map(|(wait, _)| wait);
    let made = remains.task_runs.iter().chain(remains.others);
    let cause = cause(run, condition, meaning, blamed.as_ref(), waited);
    Findings {
        cause: Cause { message: redact_run(&cause.message, run.data).into(), ..cause },
        waited: waited.map(|wait| Waited { reason: wait.reason(), words: wait.as_str().into() }),
        was_cancelled: is_cancelled(meaning, blamed.as_ref()),
        completed_tasks: completed_tasks(made.map(|child| (child.task(), child.condition().is_done()))),
        started,
    }
}

fn is_cancelled(meaning: Option<Meaning>, blamed: Option<&Blamed<'_>>) -> bool {
    match meaning {
        Some(Meaning::Cancelled) => true,
        Some(Meaning::LookInside) => blamed.is_some_and(|blamed| blamed.was_cancelled),
        _ => false,
    }
}

fn cause(
    run: Object<'_>,
    condition: Condition<'_>,
    meaning: Option<Meaning>,
    blamed: Option<&Blamed<'_>>,
    waited: Option<Wait>,
) -> Cause {
    let said = format!("{}: {}", condition.reason, condition.message);
    let is_of_a_task = matches!(
        meaning,
        Some(Meaning::LookInside | Meaning::Cancelled | Meaning::Failed(FailureReason::DeadlineExceeded))
    );
    let task = blamed.filter(|_| is_of_a_task).map(|blamed| blamed.task.clone());
    let of_run = |reason, message: String| Cause { reason, message: message.into(), task: task.clone() };
    match (meaning, blamed, waited) {
        (Some(Meaning::LookInside), Some(blamed), _) => {
            Cause { reason: blamed.reason, message: blamed.message.clone().into(), task }
        }
        (Some(Meaning::LookInside), None, _) if has_timed_out(run) => of_run(FailureReason::DeadlineExceeded, said),
        // Why nothing started says more than that the time was up.
        (Some(Meaning::Failed(FailureReason::DeadlineExceeded)), _, Some(wait))
            if wait.reason() != FailureReason::Unknown =>
        {
            of_run(wait.reason(), format!("{said}; nothing started, as it waited for {}", wait.as_str()))
        }
        (Some(Meaning::Failed(reason)), ..) => of_run(reason, said),
        (Some(Meaning::Bundle), ..) => {
            let BundleError { was_fetched, error } = bundle_error(condition.message);
            let set_up = FailureReason::ConfigurationError;
            let reason = if was_fetched { set_up } else { FailureReason::ImagePullBackOff };
            of_run(reason, format!("{}: {error}", condition.reason))
        }
        _ => of_run(FailureReason::Unknown, said),
    }
}

/// A time-out of the tasks or of the finally tasks ends a run that failed by skipping what had not begun.
fn has_timed_out(run: Object<'_>) -> bool {
    let skipped = list(&run.data["status"], "skippedTasks").filter_map(|task| text(task, "reason"));
    skipped.filter_map(SkipReason::parse).any(SkipReason::is_timeout)
}

#[cfg(test)]
mod tests;
