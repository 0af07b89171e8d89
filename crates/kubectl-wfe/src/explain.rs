//! `kubectl wfe explain`: whether an execution would run now, which rule decides, and when that changes.

use std::path::Path;

use anyhow::{Context, Error, Result, ensure};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::cli::{ClusterArgs, ExplainArgs, Format};
use crate::file;
use crate::output::output;
use crate::report::{Report, Scope};
use crate::subject::Subject;
use crate::view::{Forbidden, Lookout, Seen};

/// Runs the command. Yes: the execution would run now, runs, or has completed.
pub(crate) async fn run(cluster: &ClusterArgs, args: ExplainArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let (report, _) = report(&lookout, cluster, &args).await?;
    match args.output {
        Some(Format::Json) => output().json("Explanation", &report)?,
        None => write!(output(), "{report}")?,
    }
    Ok(report.is_yes())
}

/// Reports on the subject of the flags, and returns what was seen. Returns nothing if the operator does not watch the
/// namespace of the subject, or if the caller may not list.
pub(crate) async fn report(
    lookout: &Lookout,
    cluster: &ClusterArgs,
    args: &ExplainArgs,
) -> Result<(Report, Option<Seen>)> {
    let added = match (&args.file, &args.subject) {
        (Some(file), _) => Some(from_file(lookout, file, cluster.namespace.as_deref())?),
        (None, Some(Subject::Target(target))) => Some(lookout.hypothetical(target, args.workflow.as_deref())?),
        _ => None,
    };
    answer(lookout, added.as_ref(), args).await
}

/// Reports on the subject of the flags, or on an execution that does not exist.
pub(crate) async fn answer(
    lookout: &Lookout,
    added: Option<&DynamicObject>,
    args: &ExplainArgs,
) -> Result<(Report, Option<Seen>)> {
    match not_seen(lookout, added, args).await? {
        Some(report) => Ok((report, None)),
        None => foretell(lookout, added, args).await,
    }
}

/// Lists what the operator would list, and predicts the decision.
async fn foretell(
    lookout: &Lookout,
    added: Option<&DynamicObject>,
    args: &ExplainArgs,
) -> Result<(Report, Option<Seen>)> {
    let target = match (added, &args.subject) {
        (None, Some(Subject::Execution(name))) => match lookout.find(name).await {
            Ok(found) => lookout.installation.record(&found.with_context(|| none_of_that_name(lookout, name))?)?.target,
            Err(_) => None,
        },
        _ => added.map(|added| lookout.installation.record(added)).transpose()?.and_then(|record| record.target),
    };
    let mut seen = match lookout.look_at(target.as_ref(), added).await {
        Err(error) if error.is::<Forbidden>() => return Ok((from_status(lookout, args, error).await?, None)),
        seen => seen?,
    };
    let object = match (added, &args.subject) {
        (None, Some(Subject::Execution(name))) => {
            seen.named(&lookout.namespace, name).with_context(|| none_of_that_name(lookout, name))?.clone()
        }
        _ => added.context("nothing was asked about")?.clone(),
    };
    let record = seen.record(&object)?;
    lookout.read_owners(&mut seen, &record).await?;
    let is_made_up = args.file.is_none() && added.is_some();
    let scope = if is_made_up && args.workflow.is_none() { Scope::EachWorkflow } else { Scope::One };
    let mut report = Report::on(&seen, seen.target_of(&record)?, &record, (!is_made_up).then_some(&object), scope);
    if let Some(target) = record.target.as_ref().filter(|_| record.execution.is_undecided()) {
        report.is_unserved(lookout.unserved(target).await);
    }
    Ok((report, Some(seen)))
}

/// Answers for a decided execution from its own status. It is for a caller who may read the execution, and may not list
/// all that decisions depend on. Any other question remains refused.
async fn from_status(lookout: &Lookout, args: &ExplainArgs, refused: Error) -> Result<Report> {
    let Some(Subject::Execution(name)) = &args.subject else { return Err(refused) };
    let Ok(found) = lookout.read_alone(name).await else { return Err(refused) };
    let object = found.with_context(|| none_of_that_name(lookout, name))?;
    let record = lookout.installation.record(&object)?;
    if record.execution.is_undecided() {
        return Err(refused.context(format!("{} is not decided yet, and others count for it", record.execution.id)));
    }
    Ok(Report::alone(&lookout.installation, &record.execution, &object, refused.to_string(), lookout.now()))
}

/// Answers for a namespace that the operator does not watch.
async fn not_seen(lookout: &Lookout, added: Option<&DynamicObject>, args: &ExplainArgs) -> Result<Option<Report>> {
    let watched = lookout.installation.watch_namespace.as_deref();
    let namespace = added.and_then(|object| object.metadata.namespace.as_deref()).unwrap_or(&lookout.namespace);
    if watched.is_none_or(|watched| watched == namespace) {
        return Ok(None);
    }
    let found = match (added, &args.subject) {
        (None, Some(Subject::Execution(name))) => {
            Some(lookout.find(name).await?.with_context(|| none_of_that_name(lookout, name))?)
        }
        _ => None,
    };
    let object = found.as_ref().or(added).context("nothing was asked about")?;
    let is_made_up = args.file.is_none() && added.is_some();
    Ok(Some(Report::unseen(&lookout.installation, namespace, object, !is_made_up, lookout.now())))
}

fn none_of_that_name(lookout: &Lookout, name: &str) -> String {
    format!(
        "there is no WorkflowExecution {name} in the namespace {}; choose another one with -n \
         (kubectl get wfe --all-namespaces), or name a target: namespace/kind/name or kind/name",
        lookout.namespace
    )
}

fn from_file(lookout: &Lookout, file: &Path, namespace: Option<&str>) -> Result<DynamicObject> {
    let shown = file.display();
    let text = file::read(file).with_context(|| format!("cannot read {shown}; check the path and its rights"))?;
    let object = file::the_one_in(&text, "WorkflowExecution").with_context(|| format!("{shown} cannot be used"))?;
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
    if let (Some(own), Some(asked)) = (own, namespace) {
        ensure!(own == asked, "{shown} is for the namespace {own}; leave -n {asked} out, or change the file");
    }
    lookout.completed(object).with_context(|| format!("{shown} cannot be used"))
}
