//! `kubectl wfe report`: what the maintainers need to find a fault, without the values of parameters.

mod redact;

use std::collections::BTreeMap;

use anyhow::Result;
use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, LogParams};
use serde::Serialize;
use serde_json::Value;
use wfe_view::call::within;
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::cli::{ClusterArgs, OperatorArgs, ReportArgs};
use crate::connection::{ANSWERS_WITHIN, Connection, words};
use crate::installation::Installation;
use crate::moment::shown;
use crate::output::output;
use crate::view::list;
use crate::{config, doctor};
use redact::Values;

/// How many objects of a kind are reported, the newest ones: a fault is rarely older, and an issue has a size limit.
const MOST_OBJECTS: usize = 200;
/// How many pods' logs are reported: a Deployment of the operator has two or three.
const MOST_PODS: u32 = 5;
/// How much of a log is reported.
const MOST_LINES: i64 = 1000;
const MOST_BYTES: u64 = 1 << 20;
/// The label of the operator's pods, in chart and base.
const OPERATOR_PODS: &str = "app.kubernetes.io/name=wfe-operator";

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    at: String,
    /// The version of the plugin.
    plugin: &'static str,
    operator: String,
    /// The object of `config`.
    config: Value,
    /// The object of `doctor`.
    doctor: Value,
    executions: Vec<Value>,
    schedules: Vec<Value>,
    /// The last lines of the operator's pods.
    logs: BTreeMap<String, Vec<String>>,
    /// What could not be read, and why.
    not_seen: Vec<String>,
}

/// Runs the command. Always yes: what could not be read is a part of the report.
pub(crate) async fn run(cluster: &ClusterArgs, args: &ReportArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let installation = Installation::read(&connection, &args.operator.view()).await?;
    let namespace = cluster.namespace.as_deref();
    let mut not_seen = Vec::new();
    let executions = newest(&connection, Kind::Execution, namespace, &mut not_seen).await;
    let schedules = newest(&connection, Kind::Schedule, namespace, &mut not_seen).await;
    let report = Report {
        at: shown(connection.now()),
        plugin: env!("CARGO_PKG_VERSION"),
        operator: installation
            .nobody_decides_in(&connection.namespace)
            .unwrap_or_else(|| "an operator decides".to_owned()),
        config: config::answer(&installation)?,
        doctor: doctor::answer(&connection, &args.operator).await?,
        logs: logs(&connection, &args.operator, &mut not_seen).await,
        executions: vec![],
        schedules: vec![],
        not_seen,
    };
    output().yaml("Report", &redacted(report, &executions, &schedules)?)?;
    Ok(true)
}

/// Adds the objects to a report, and removes the values of their parameters from the whole report.
fn redacted(report: Report, executions: &[DynamicObject], schedules: &[DynamicObject]) -> Result<Value> {
    let mut values = Values::default();
    let executions = executions.iter().map(|it| values.take_from(it)).collect();
    let schedules = schedules.iter().map(|it| values.take_from(it)).collect();
    let mut report = serde_json::to_value(Report { executions, schedules, ..report })?;
    values.leave_out_of(&mut report);
    Ok(report)
}

/// Lists the newest objects of a kind.
async fn newest(
    connection: &Connection,
    kind: Kind,
    namespace: Option<&str>,
    not_seen: &mut Vec<String>,
) -> Vec<DynamicObject> {
    let api = objects(&connection.client, kind, namespace);
    let mut found = match list(&api, ListParams::default(), |_| true).await {
        Ok(found) => found,
        Err(error) => {
            not_seen.push(format!("{}: {}", kind.label(), words(&error)));
            return Vec::new();
        }
    };
    found.sort_by_key(|it| std::cmp::Reverse(it.metadata.creation_timestamp.as_ref().map(|at| at.0)));
    if found.len() > MOST_OBJECTS {
        not_seen.push(format!("{}: {} older ones are left out", kind.label(), found.len() - MOST_OBJECTS));
        found.truncate(MOST_OBJECTS);
    }
    found
}

/// Reads the last lines of the operator's pods.
async fn logs(
    connection: &Connection,
    operator: &OperatorArgs,
    not_seen: &mut Vec<String>,
) -> BTreeMap<String, Vec<String>> {
    let pods: Api<Pod> = Api::namespaced(connection.client.clone(), &operator.namespace);
    let params = ListParams::default().labels(OPERATOR_PODS).limit(MOST_PODS);
    let found = match within(ANSWERS_WITHIN, pods.list(&params)).await {
        Ok(found) => found.items,
        Err(error) => {
            not_seen.push(format!("the operator's pods: {}", words(&error)));
            return BTreeMap::new();
        }
    };
    let mut logs = BTreeMap::new();
    for name in found.into_iter().filter_map(|pod| pod.metadata.name) {
        match within(ANSWERS_WITHIN, log(&pods, &name)).await {
            Ok(text) => drop(logs.insert(name, text.lines().map(str::to_owned).collect())),
            Err(error) => not_seen.push(format!("the log of {name}: {}", words(&error))),
        }
    }
    logs
}

async fn log(pods: &Api<Pod>, name: &str) -> Result<String, kube::Error> {
    let limit_bytes = i64::try_from(MOST_BYTES).ok();
    let params = LogParams { tail_lines: Some(MOST_LINES), limit_bytes, ..LogParams::default() };
    let mut log = std::pin::pin!(pods.log_stream(name, &params).await?.take(MOST_BYTES));
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).await.map_err(kube::Error::ReadEvents)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_value_of_a_parameter_is_in_a_report() {
        let object = |object: Value| -> DynamicObject { serde_json::from_value(object).unwrap() };
        let execution = object(json!({
            "metadata": {
                "name": "a", "annotations": {"last-applied": "{\"TOKEN\":\"hunter2!\"}", "kubernaut.ai/scheduled-for": "s"},
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {"parameters": {"TOKEN": "hunter2!", "COUNT": "85"}, "targetResource": "node/n", "rationale": "why"},
            "status": {"failureDetails": {"message": "cannot log in with hunter2!"}},
        }));
        let schedule = object(json!({
            "metadata": {"name": "s"},
            "spec": {"template": {"spec": {"parameters": {"TOKEN": "correct\n\"horse", "FORCE": "true"}}}},
            "status": {"adjust": {"parameters": {"TOKEN": "battery staple"}}},
        }));
        let line = json!({"message": "hunter2! correct\n\"horse battery staple"}).to_string();
        let report = Report {
            at: String::new(),
            plugin: "0",
            operator: String::new(),
            config: Value::Null,
            doctor: Value::Null,
            executions: vec![],
            schedules: vec![],
            logs: [("pod".to_owned(), vec![line])].into(),
            not_seen: vec![],
        };
        let report = redacted(report, &[execution], &[schedule]).unwrap();
        let text = report.to_string();
        for secret in ["hunter2", "horse", "staple", "85", "why"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let out = "(left out)";
        let execution = json!({
            "metadata": {"name": "a", "annotations": {"kubernaut.ai/scheduled-for": "s"}},
            "spec": {"parameters": {"TOKEN": out, "COUNT": out}, "targetResource": "node/n", "rationale": out},
            "status": {"failureDetails": {"message": format!("cannot log in with {out}")}},
        });
        assert_eq!(report["executions"][0], execution);
        assert_eq!(report["logs"]["pod"][0], format!("{{\"message\":\"{out} {out} {out}\"}}"));
    }
}
