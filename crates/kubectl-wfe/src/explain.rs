//! `kubectl wfe explain`: whether an execution would run now, which rule decides, and when that changes.

use std::fs::File;
use std::io::{Read, Write, stdin, stdout};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::cli::{ClusterArgs, ExplainArgs, Format};
use crate::report::Report;
use crate::subject::Subject;
use crate::view::Lookout;

/// More than the API server takes of one object, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// Runs the command. Yes: it would run now, runs, or has completed.
pub(crate) async fn run(cluster: &ClusterArgs, args: ExplainArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let added = match (&args.file, &args.subject) {
        (Some(file), _) => Some(from_file(&lookout, file, cluster.namespace.as_deref())?),
        (None, Some(Subject::Target(target))) => Some(lookout.hypothetical(target, args.workflow.as_deref())?),
        _ => None,
    };
    let seen = lookout.look(added.as_ref()).await?;
    let object = match (&added, &args.subject) {
        (None, Some(Subject::Execution(name))) => seen.named(&lookout.namespace, name).with_context(|| {
            format!(
                "there is no WorkflowExecution {name} in the namespace {}; choose another one with -n \
                 (kubectl get wfe --all-namespaces), or name a target: namespace/kind/name or kind/name",
                lookout.namespace
            )
        })?,
        _ => added.as_ref().context("nothing was asked about")?,
    };
    let record = seen.record(object)?;
    let is_made_up = args.file.is_none() && added.is_some();
    let report = Report::on(&seen, seen.target_of(&record)?, &record, (!is_made_up).then_some(object));
    match args.output {
        Some(Format::Json) => writeln!(stdout(), "{}", serde_json::to_string_pretty(&report)?)?,
        None => write!(stdout(), "{report}")?,
    }
    Ok(report.is_yes())
}

fn from_file(lookout: &Lookout, file: &Path, namespace: Option<&str>) -> Result<DynamicObject> {
    let shown = file.display();
    let text = read(file).with_context(|| format!("cannot read {shown}; check the path and its rights"))?;
    let object: Value = serde_saphyr::from_str(&text).with_context(|| format!("{shown} is not one YAML document"))?;
    ensure!(
        object["kind"] == "WorkflowExecution",
        "{shown} holds no WorkflowExecution; give a file with one, and nothing else"
    );
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
    if let (Some(own), Some(asked)) = (own, namespace) {
        ensure!(own == asked, "{shown} is for the namespace {own}; leave -n {asked} out, or change the file");
    }
    lookout.completed(object).with_context(|| format!("{shown} cannot be used"))
}

fn read(file: &Path) -> Result<String> {
    let source: Box<dyn Read> = if file == Path::new("-") { Box::new(stdin()) } else { Box::new(File::open(file)?) };
    let mut text = String::new();
    source.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= LARGEST_FILE, "it is larger than {LARGEST_FILE} bytes");
    Ok(text)
}
