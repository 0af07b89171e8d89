//! Examines the failure of an ended run: whether anything ran, which task is to blame, and why.

mod blame;
mod registry;

use wfe_api::limits::cut;
use wfe_core::evidence::{Doubt, Started};
use wfe_core::findings::Wait;
use wfe_core::findings::{Cause, Findings, Waited};
use wfe_core::reason::FailureReason;

use crate::evidence::{Evidence, Remains, completed_tasks};
use crate::object::{Condition, Object, list, text};
use crate::reasons::{Meaning, RunReason, SkipReason};
use crate::words::{BundleError, Fetch, MAX_MESSAGE, bundle_error};
use blame::{Blamed, blame};

/// The limit of a shown image name, in characters. Nearly all names are shorter, and the limit leaves room for the text
/// around the name.
const MAX_IMAGE: u32 = 255;

/// Examines the objects that a failed run left, together with the evidence that was collected while it ran.
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
        cause: Cause { message: cut(&cause.message, MAX_MESSAGE).into(), ..cause },
        waited: waited.map(|wait| Waited { reason: wait.reason(), words: words(wait, run).into() }),
        unresolved: match meaning {
            Some(Meaning::Bundle) => bundle_error(condition.message).fetch == Fetch::Unsaid,
            _ => waited == Some(Wait::Bundle),
        },
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
        // The reason why nothing started is more informative than the time-out.
        (Some(Meaning::Failed(FailureReason::DeadlineExceeded)), _, Some(wait))
            if wait.reason() != FailureReason::Unknown =>
        {
            of_run(wait.reason(), format!("{said}; nothing started, as it waited for {}", words(wait, run)))
        }
        (Some(Meaning::Failed(reason)), ..) => of_run(reason, format!("{said}{}", remedy(condition.reason))),
        (Some(Meaning::Bundle), ..) => {
            let BundleError { fetch, error } = bundle_error(condition.message);
            let said = format!("{}: {error}", condition.reason);
            match fetch {
                Fetch::Done => of_run(FailureReason::ConfigurationError, said),
                Fetch::Refused => of_run(FailureReason::ImagePullBackOff, said),
                Fetch::Unsaid => {
                    let message = format!("no pipeline came from {}; Tekton says {said}", bundle(run));
                    of_run(FailureReason::ImagePullBackOff, message)
                }
            }
        }
        _ => of_run(FailureReason::Unknown, said),
    }
}

/// Returns advice if Tekton refuses a run whose pipeline needs something that this operator never provides.
fn remedy(reason: &str) -> &'static str {
    match RunReason::parse(reason) {
        Some(RunReason::InvalidWorkspaceBinding | RunReason::RequiredWorkspaceMarkedOptional) => {
            "; this operator binds no workspaces, so the pipeline must not require one"
        }
        _ => "",
    }
}

/// Describes what a run waited for.
fn words(wait: Wait, run: Object<'_>) -> String {
    if wait == Wait::Bundle { format!("a pipeline from {}", bundle(run)) } else { wait.as_str().to_owned() }
}

/// Names the possible causes if a bundle gives neither a pipeline nor an error. The image comes last, because a summary
/// cuts long texts.
fn bundle(run: Object<'_>) -> String {
    let mut params = run.data.pointer("/spec/pipelineRef").into_iter().flat_map(|reference| list(reference, "params"));
    let image = params.find(|param| text(param, "name") == Some("bundle")).and_then(|param| text(param, "value"));
    format!(
        "its bundle: it does not exist, Tekton has no credentials for it, it has no Pipeline named workflow, or Tekton may \
         not create what fetches it: {}",
        cut(image.unwrap_or("an image without a name"), MAX_IMAGE)
    )
}

/// Returns whether a time-out of the tasks or of the finally tasks ended the run. Tekton then skips the tasks that had
/// not begun.
fn has_timed_out(run: Object<'_>) -> bool {
    let skipped = list(&run.data["status"], "skippedTasks").filter_map(|task| text(task, "reason"));
    skipped.filter_map(SkipReason::parse).any(SkipReason::is_timeout)
}

#[cfg(test)]
mod tests;
