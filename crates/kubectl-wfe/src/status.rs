//! `kubectl wfe status`: the answer first. Without a subject: who needs a person, what runs, and what waits, with the
//! command that comes next. With one: what holds this target or execution now, and what ends that.

mod card;
mod overview;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;

use crate::cli::{ClusterArgs, ExplainArgs, Format, StatusArgs, StatusFormat};
use crate::explain;
use crate::object::text;
use crate::output::output;
use crate::page::Page;
use crate::subject::Subject;
use crate::view::{Lookout, Seen};
use card::Card;
pub(crate) use overview::{Line, Overview, Row, is_in};

/// Runs the command. Yes: nothing needs a person; of a target or execution: as `explain`.
pub(crate) async fn run(cluster: &ClusterArgs, args: StatusArgs) -> Result<bool> {
    let StatusArgs { subject, output: format, view } = args;
    let Some(subject) = subject else {
        let lookout = Lookout::open(cluster, &view).await?;
        if format == Some(StatusFormat::Html) {
            let page = Page::read(&lookout, cluster).await?;
            output().page(&page.html(None, None))?;
            return Ok(page.is_well());
        }
        let seen = lookout.look().await?;
        let overview = Overview::of(&seen, cluster.namespace.as_deref());
        match format {
            Some(_) => output().json("Status", &overview)?,
            None => write!(output(), "{}", overview.told())?,
        }
        return Ok(overview.is_well());
    };
    ensure!(format != Some(StatusFormat::Html), "-o html shows the overview: name no target or execution");
    if format.is_some() {
        let output = Some(Format::Json);
        let args = ExplainArgs { subject: Some(subject), file: None, workflow: None, output, view };
        return explain::run(cluster, args).await;
    }
    let lookout = Lookout::open(cluster, &view).await?;
    let args = ExplainArgs { subject: Some(subject), file: None, workflow: None, output: None, view };
    let (report, seen) = explain::report(&lookout, cluster, &args).await?;
    let card = match (&seen, &args.subject) {
        (Some(seen), Some(Subject::Target(target))) => Card::of_target(seen, target.as_str()),
        (Some(seen), Some(Subject::Execution(name))) => {
            let object = seen.named(&lookout.namespace, name).context("it has gone meanwhile; look again")?;
            Card::of_execution(seen, object)
        }
        _ => None,
    };
    match card {
        Some(card) => write!(output(), "{}", card.told())?,
        None => write!(output(), "{}", report.brief())?,
    }
    Ok(report.is_yes())
}

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
fn progress(object: &DynamicObject, seen: &Seen) -> String {
    let Ok(record) = seen.record(object) else { return "running".to_owned() };
    let execution = record.execution;
    if let Some(next) = execution.next_attempt() {
        let at = crate::moment::since(seen.now, next.not_before);
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
