//! `kubectl wfe list`: executions, a line each, the newest first.

use std::collections::BTreeSet;

use anyhow::Result;
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::json;
use wfe_core::Time;
use wfe_core::ending::Skip;
use wfe_core::execution::ExecutionState;

use crate::cli::{ClusterArgs, Format, ListArgs};
use crate::moment::since;
use crate::object::text;
use crate::output::output;
use crate::recorded::Recorded;
use crate::table::table;
use crate::view::{Lookout, Seen};

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
}

/// Runs the command. Yes, except with `--needs-person` if an execution blocks its target.
pub(crate) async fn run(cluster: &ClusterArgs, args: ListArgs) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let seen = lookout.look(None).await?;
    let namespace = (!args.all_namespaces).then_some(&*lookout.namespace);
    let rows = rows(&seen, namespace, &args);
    if args.output == Some(Format::Json) {
        output().json("ExecutionList", &json!({"items": rows}))?;
    } else if rows.is_empty() {
        let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        writeln!(output(), "There is no such WorkflowExecution{place}.")?;
    } else {
        let cells = rows.iter().map(|row| {
            let blocks = if row.blocks { "True" } else { "" };
            [&row.namespace, &row.name, &row.phase, &row.why, blocks, &row.target, &row.age].map(ToString::to_string)
        });
        write!(output(), "{}", table(["NAMESPACE", "NAME", "PHASE", "WHY", "BLOCKS", "TARGET", "AGE"], cells))?;
    }
    Ok(!args.only.needs_person || rows.is_empty())
}

fn rows(seen: &Seen, namespace: Option<&str>, args: &ListArgs) -> Vec<Row> {
    let blocks =
        |target| seen.blocks(target).first().and_then(Skip::remediation).map(|past| past.execution.uid.clone());
    let blocking: BTreeSet<_> = seen.targets().filter_map(blocks).collect();
    let mut rows: Vec<(Time, Row)> = Vec::new();
    for object in seen.objects() {
        let Ok(record) = seen.record(object) else { continue };
        let execution = &record.execution;
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
                target: record.target.as_ref().map_or(target, |target| target.as_str()).to_owned(),
                age: since(execution.created, seen.now),
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
