//! `kubectl wfe list`: executions, a line each, the newest first.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::Result;
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::json;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::execution::ExecutionState;

use crate::cli::{ClusterArgs, ListArgs, ListFormat};
use crate::moment::since;
use crate::object::text;
use crate::output::output;
use crate::recorded::Recorded;
use crate::table::{names, table};
use crate::view::{Lookout, Seen};

/// The kind of the answer for programs.
const KIND: &str = "ExecutionList";

/// An execution.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    namespace: String,
    name: String,
    phase: String,
    /// What it does or waits for, or why it ended.
    why: String,
    /// Whether it blocks its target until a person clears it.
    blocks: bool,
    target: String,
    age: String,
    workflow: String,
    /// How long it ran.
    duration: Option<String>,
    /// The name of its latest run.
    pipeline_run: Option<String>,
}

/// The headings of the table. Only `-o wide` shows the last three columns.
const COLUMNS: [&str; 10] =
    ["NAMESPACE", "NAME", "PHASE", "WHY", "BLOCKS", "TARGET", "AGE", "WORKFLOW", "DURATION", "PIPELINERUN"];
const NARROW: usize = 7;

/// Runs the command. Yes, except with `--needs-person` if an execution blocks its target.
pub(crate) async fn run(cluster: &ClusterArgs, args: ListArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let seen = lookout.look().await?;
    let namespace = (!args.all_namespaces).then_some(&*lookout.namespace);
    let rows = rows(&seen, namespace, &args);
    // As in kubectl, only `--all-namespaces` shows the column of the namespace.
    let first = usize::from(!args.all_namespaces);
    let mut out = output();
    let items = json!({"items": rows});
    match args.output {
        Some(ListFormat::Json) => out.json(KIND, &items)?,
        Some(ListFormat::Yaml) => out.yaml(KIND, &items)?,
        Some(ListFormat::Name) => write!(out, "{}", names("workflowexecution", rows.iter().map(|row| &*row.name)))?,
        None | Some(ListFormat::Wide) if rows.is_empty() => {
            let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            writeln!(out, "There is no such WorkflowExecution{place}.")?;
        }
        None => write!(out, "{}", table_of(&rows, first..NARROW))?,
        Some(ListFormat::Wide) => write!(out, "{}", table_of(&rows, first..COLUMNS.len()))?,
    }
    Ok(!args.only.needs_person || rows.is_empty())
}

/// Renders these columns.
fn table_of(rows: &[Row], columns: Range<usize>) -> String {
    let cells = rows.iter().map(|row| {
        let blocks = if row.blocks { "True" } else { "" };
        let (duration, run) = (row.duration.as_deref().unwrap_or_default(), row.pipeline_run.as_deref());
        let run = run.unwrap_or_default();
        let cells: [&str; COLUMNS.len()] = [
            &row.namespace,
            &row.name,
            &row.phase,
            &row.why,
            blocks,
            &row.target,
            &row.age,
            &row.workflow,
            duration,
            run,
        ];
        cells[columns.clone()].iter().map(ToString::to_string).collect::<Vec<_>>()
    });
    table(COLUMNS[columns.clone()].iter().copied(), cells)
}

fn rows(seen: &Seen, namespace: Option<&str>, args: &ListArgs) -> Vec<Row> {
    let blocks =
        |target| seen.blocks(target).first().and_then(Skip::remediation).map(|past| past.execution.uid.clone());
    let blocking: BTreeSet<_> = seen.targets().filter_map(blocks).collect();
    let mut rows: Vec<(Time, Row)> = Vec::new();
    for object in seen.objects() {
        let Some((known, execution)) = seen.known(object) else { continue };
        let blocks = blocking.contains(&execution.id.uid);
        let is_asked = (!args.only.needs_person || blocks)
            && (!args.only.running || matches!(execution.state, ExecutionState::Running { .. }))
            && (!args.only.waiting || execution.is_undecided())
            && namespace.is_none_or(|namespace| *namespace == *execution.id.namespace);
        if is_asked {
            let target = text(object, "/spec/targetResource").unwrap_or_default();
            let row = Row {
                namespace: execution.id.namespace.to_string(),
                name: execution.id.name.to_string(),
                phase: text(object, "/status/phase").unwrap_or("Pending").to_owned(),
                why: why(object, seen.now),
                blocks,
                target: known.name.as_ref().map_or(target, |target| target.as_str()).to_owned(),
                age: since(execution.created, seen.now),
                workflow: execution.workflow_id.to_string(),
                duration: text(object, "/status/duration").map(str::to_owned),
                pipeline_run: text(object, "/status/pipelineRunRef/name").map(str::to_owned),
            };
            rows.push((execution.created, row));
        }
    }
    rows.sort_by(|(a, left), (b, right)| (b, &left.name).cmp(&(a, &right.name)));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns the summary of a status; earlier versions of the operator did not write one.
fn why(object: &DynamicObject, now: Time) -> String {
    let recorded = || Recorded::of(object, now).map(|recorded| recorded.reason().to_owned());
    let failed =
        || text(object, "/status/failureDetails/reason").or_else(|| text(object, "/status/skipDetails/reason"));
    let summary = text(object, "/status/summary").or_else(failed).map(str::to_owned);
    summary
        .or_else(|| text(object, "/status/phase").is_none_or(|phase| phase == "Pending").then(recorded)?)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_narrow_or_wide_or_names_alone() {
        let row = Row {
            namespace: "ops".to_owned(),
            name: "a".to_owned(),
            phase: "Completed".to_owned(),
            why: "took 2s".to_owned(),
            blocks: false,
            target: "node/n".to_owned(),
            age: "3m".to_owned(),
            workflow: "drain".to_owned(),
            duration: Some("2s".to_owned()),
            pipeline_run: None,
        };
        assert_eq!(
            table_of(std::slice::from_ref(&row), 1..NARROW),
            "NAME  PHASE      WHY      BLOCKS  TARGET  AGE\n\
             a     Completed  took 2s          node/n  3m\n"
        );
        assert_eq!(
            table_of(std::slice::from_ref(&row), 0..COLUMNS.len()),
            "NAMESPACE  NAME  PHASE      WHY      BLOCKS  TARGET  AGE  WORKFLOW  DURATION  PIPELINERUN\n\
             ops        a     Completed  took 2s          node/n  3m   drain     2s\n"
        );
    }
}
