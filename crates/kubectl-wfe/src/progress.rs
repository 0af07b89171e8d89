//! What an execution does, or where it failed, in a few words.

use kube::api::DynamicObject;
use wfe_core::Time;
use wfe_core::execution::Execution;

use crate::moment::since;
use crate::object::text;

/// Describes where an execution failed: `task drain, step evict: exit code 1`. None if its status names no task.
pub(crate) fn place_of_failure(object: &DynamicObject) -> Option<String> {
    let details = "/status/failureDetails";
    let task = text(object, &format!("{details}/failedTaskName"))?;
    let step = text(object, &format!("{details}/failedStepName")).map(|step| format!(", step {step}"));
    let code = object.data.pointer(&format!("{details}/exitCode")).and_then(serde_json::Value::as_i64);
    let code = code.map(|code| format!(": exit code {code}"));
    Some(format!("task {task}{}{}", step.unwrap_or_default(), code.unwrap_or_default()))
}

/// Returns what a Running execution does: how many of its tasks are done, or what it waits for.
pub(crate) fn progress(execution: &Execution, now: Time) -> String {
    if let Some(next) = execution.next_attempt() {
        let at = since(now, next.not_before);
        return format!("waits for attempt {} of {}, in {at}", next.attempt, next.of);
    }
    if let Some(awaits) = &execution.run_shown.awaits {
        return format!("{}: {}", awaits.reason, awaits.message);
    }
    match execution.run_shown.tasks {
        Some(tasks) => format!("{} of {} tasks done", tasks.completed, tasks.total),
        None => "running".to_owned(),
    }
}
