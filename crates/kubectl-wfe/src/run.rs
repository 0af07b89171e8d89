//! `kubectl wfe run`: predicts what an execution would do, creates it, and waits for its end.

mod wanted;

use anyhow::{Context, Result, bail};
use kube::api::{Api, DynamicObject, PostParams};
use serde::Serialize;
use wfe_api::WorkflowExecution;
use wfe_core::target::TargetName;
use wfe_view::call::{CallError, within};
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::cli::{ClusterArgs, ExplainArgs, Format, RunArgs, WaitArgs};
use crate::connection::{ANSWERS_WITHIN, Connection, FIELD_MANAGER};
use crate::execution::{full_name, get};
use crate::explain;
use crate::output::{line, note, output};
use crate::report::Report;
use crate::view::{Forbidden, Lookout};
use crate::wait;
use wanted::{Asked, wanted};

/// The exit code if nothing was created, because the execution would not run.
const WOULD_NOT_RUN: u8 = 1;

/// The answer. `-o json` shows all of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    namespace: String,
    /// The name of the new execution. None if none was created, or if the API server would have chosen one.
    name: Option<String>,
    target: String,
    is_created: bool,
    /// The answer of `explain` before the creation. None if it was not seen.
    outlook: Option<Report>,
    /// Why the outlook was not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_seen: Option<String>,
}

/// Runs the command, and returns its exit code.
pub(crate) async fn run(cluster: &ClusterArgs, args: RunArgs) -> Result<u8> {
    let lookout = Lookout::open(cluster, &args.operator.view()).await?;
    let connection = lookout.connection();
    let like = read(connection, args.like.as_deref(), &[]).await?;
    let failed = read(connection, args.recover.as_deref(), &["status"]).await?;
    let wanted = wanted(&Asked { args: &args, like: like.as_ref(), failed: failed.as_ref() }, &lookout.namespace)?;
    let target = canonical(&wanted);

    let (outlook, not_seen) = match outlook(&lookout, &wanted, &args).await {
        Ok(report) => (Some(report), None),
        Err(error) if error.is::<Forbidden>() => (None, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let would_run = !outlook.as_ref().is_some_and(Report::is_refused);
    if args.output.is_none() {
        match (&outlook, &not_seen) {
            (Some(report), _) => write!(output(), "{}", report.told_of_new())?,
            (None, why) => note(&format!("whether it would run is not known: {}", why.as_deref().unwrap_or_default())),
        }
    }
    let created = if would_run { Some(create(connection, &wanted, args.dry_run).await?) } else { None };

    let name = created.as_ref().and_then(|it| it.metadata.name.clone());
    let answer = Answer {
        namespace: lookout.namespace.clone(),
        name: name.clone().filter(|_| !args.dry_run || args.name.is_some()),
        target,
        is_created: created.is_some() && !args.dry_run,
        outlook,
        not_seen,
    };
    let told = match args.output {
        Some(Format::Json) => output().json("Run", &answer),
        None => write!(output(), "{}", answer.told(&args)).map_err(Into::into),
    };
    told.with_context(|| match &created {
        Some(object) if !args.dry_run => format!("{} was created, and that could not be shown", full_name(object)),
        _ => "nothing was created".to_owned(),
    })?;
    match name {
        Some(name) if args.wait => {
            let wait = WaitArgs { name, timeout: args.timeout, output: args.output };
            wait::watch_on(connection, &wait).await
        }
        Some(_) => Ok(0),
        None => Ok(WOULD_NOT_RUN),
    }
}

impl Answer {
    /// Describes what was done, and which command comes next.
    fn told(&self, args: &RunArgs) -> String {
        let (target, namespace) = (line(&self.target), line(&self.namespace));
        match &self.name {
            Some(name) if self.is_created && args.wait => format!("Created {namespace}/{name} on {target}.\n"),
            Some(name) if self.is_created => {
                format!("Created {namespace}/{name} on {target}. Follow it: kubectl wfe watch {name} -n {namespace}\n")
            }
            _ if args.dry_run && !self.outlook.as_ref().is_some_and(Report::is_refused) => {
                "The API server accepts it. Nothing was created: --dry-run.\n".to_owned()
            }
            _ => "Nothing was created.\n".to_owned(),
        }
    }
}

/// Reads an execution that the flags name: only its spec and the parts in `further`. The others may be of another
/// version.
async fn read(connection: &Connection, name: Option<&str>, further: &[&str]) -> Result<Option<WorkflowExecution>> {
    let Some(name) = name else { return Ok(None) };
    let mut object = get(connection, name).await?;
    if let Some(parts) = object.data.as_object_mut() {
        parts.retain(|part, _| part == "spec" || further.contains(&&**part));
    }
    let read = serde_json::to_value(object).and_then(serde_json::from_value);
    Ok(Some(read.with_context(|| format!("cannot use {name}: its spec is not readable"))?))
}

/// Decides on the execution as the operator would, if it were created now.
async fn outlook(lookout: &Lookout, wanted: &WorkflowExecution, args: &RunArgs) -> Result<Report> {
    let object = lookout.completed(serde_json::to_value(wanted)?)?;
    let workflow = Some(wanted.spec.workflow_ref.workflow_id.clone());
    let args = ExplainArgs { subject: None, file: None, workflow, output: None, view: args.operator.view() };
    Ok(explain::answer(lookout, Some(&object), &args).await?.0)
}

/// Creates the execution, or asks the API server whether it would accept the creation. The request is sent once: a
/// second creation would run the workflow twice.
async fn create(connection: &Connection, wanted: &WorkflowExecution, dry_run: bool) -> Result<DynamicObject> {
    let namespace = &connection.namespace;
    let executions: Api<DynamicObject> = objects(&connection.client, Kind::Execution, Some(namespace));
    let params = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let object: DynamicObject = serde_json::to_value(wanted).and_then(serde_json::from_value)?;
    match within(ANSWERS_WITHIN, executions.create(&params, &object)).await {
        Ok(created) => Ok(created),
        Err(error) => bail!("{}", refused(&error, namespace)),
    }
}

/// Returns why nothing was created, and what to do.
fn refused(error: &CallError, namespace: &str) -> String {
    let CallError::Refused(status) = error else {
        return format!("{error}; whether it was created is not known: kubectl get wfe -n {namespace}");
    };
    let advice = match (status.code, &*status.reason) {
        (401, _) => "; log in again",
        (403, _) if status.message.contains(" cannot create ") => "; the ClusterRole wfe-edit gives the right",
        (409, "AlreadyExists") => "; give another --name, or leave it out",
        _ => "",
    };
    format!("nothing was created: {}{advice}", status.message)
}

fn canonical(wanted: &WorkflowExecution) -> String {
    let target = &wanted.spec.target_resource;
    TargetName::parse(target).map_or_else(|_| target.clone(), |target| target.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_that_nothing_was_created_and_what_to_do() {
        let refusal = |code, reason: &str, message: &str| {
            let (reason, message) = (reason.to_owned(), message.to_owned());
            let status = kube::core::Status { code, reason, message, ..Default::default() };
            refused(&CallError::Refused(Box::new(status)), "payment")
        };
        for (code, reason, message, told) in [
            (
                409,
                "AlreadyExists",
                "\"a\" already exists",
                "\"a\" already exists; give another --name, or leave it out",
            ),
            (403, "Forbidden", "jo cannot create x", "jo cannot create x; the ClusterRole wfe-edit gives the right"),
            (403, "Forbidden", "exceeded quota", "exceeded quota"),
            (422, "Invalid", "recovery denied", "recovery denied"),
        ] {
            assert_eq!(refusal(code, reason, message), format!("nothing was created: {told}"));
        }
        let late = refused(&CallError::TimedOut(ANSWERS_WITHIN), "payment");
        assert!(late.ends_with("whether it was created is not known: kubectl get wfe -n payment"), "{late}");
    }
}
