//! `kubectl wfe trace`: goes from a pod or a run back to its execution, and to what made the execution.
//!
//! It follows owners and annotations, as the operator does. Labels count only where an owner is gone.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use kube::api::{Api, DynamicObject, ListParams};
use serde::Serialize;
use serde_json::Value;
use wfe_api::labels::{ANNOTATION_SCHEDULED_FOR, ANNOTATION_TARGET, ANNOTATION_UID, ANNOTATION_WORKFLOW_EXECUTION};
use wfe_core::Time;
use wfe_tekton::{Object, run_of, task_run_of};
use wfe_view::call::{CallError, within};
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::cli::{ClusterArgs, Format, TraceArgs};
use crate::connection::{ANSWERS_WITHIN, Connection};
use crate::execution::target;
use crate::moment::{beside, shown};
use crate::output::{line, output};

/// The answer. `-o json` shows all of it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Trace {
    /// The object itself, the object that it was made for, and so on.
    links: Vec<Link>,
    /// The creation of the execution, as far as the API server records it.
    created: Option<Created>,
}

/// One object of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    kind: String,
    namespace: String,
    name: String,
    /// What there is to know of it, or why nothing is known.
    detail: String,
}

/// The creation of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    /// The program that has written the spec first.
    field_manager: Option<String>,
    at: Option<String>,
    #[serde(skip)]
    told: String,
}

/// The result of reading one object.
enum Read {
    Found(Box<DynamicObject>),
    Gone,
    Denied(String),
}

/// Runs the command. Yes: the object belongs to an execution.
pub(crate) async fn run(cluster: &ClusterArgs, args: &TraceArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let is_execution = args.object.kind == Kind::Execution;
    let here =
        if is_execution || cluster.namespace.is_some() { &connection.namespace } else { &args.execution_namespace };
    let trace = trace(&connection, args.object.kind, here, &args.object.name).await?;
    match args.output {
        Some(Format::Json) => output().json("Trace", &trace)?,
        None => write!(output(), "{}", trace.told())?,
    }
    Ok(trace.links.iter().any(|it| it.kind == kind_name(Kind::Execution)))
}

/// Follows an object upwards. An object on the way that is gone or may not be read is skipped: the object below it
/// names the object above it too.
async fn trace(connection: &Connection, kind: Kind, namespace: &str, name: &str) -> Result<Trace> {
    let mut trace = Trace::default();
    let mut last = match read(connection, kind, namespace, name).await? {
        Read::Found(object) => object,
        Read::Gone => {
            bail!("there is no {} {name} in the namespace {namespace}; -n names another one", kind_name(kind))
        }
        Read::Denied(why) => bail!("cannot get {name}: {why}; the Role wfe-oncall of {namespace} gives the right"),
    };
    trace.add(kind, &last, connection.now());
    for above in [Kind::TaskRun, Kind::Run, Kind::Execution].into_iter().skip_while(|above| !is_above(*above, kind)) {
        let Some(named) = named(above, &last) else { continue };
        match read(connection, above, &named.namespace, &named.name).await? {
            Read::Found(object) if above != Kind::Execution || is_owner(&object, &last) => {
                trace.add(above, &object, connection.now());
                last = object;
            }
            Read::Found(_) => trace.links.push(named.with("it is gone, and another one has its name now")),
            Read::Gone => trace.links.push(named.with("it is gone")),
            Read::Denied(why) => trace.links.push(named.with(&format!("not seen: {why}"))),
        }
    }
    Ok(trace)
}

/// Returns whether objects of one kind are made for those of another, at any distance.
fn is_above(above: Kind, kind: Kind) -> bool {
    let height = |kind| [Kind::Pod, Kind::TaskRun, Kind::Run, Kind::Execution].iter().position(|it| *it == kind);
    height(above) > height(kind)
}

/// Reads an object. If the caller may not get the object, lists it alone, because the role wfe-explain permits only
/// lists.
async fn read(connection: &Connection, kind: Kind, namespace: &str, name: &str) -> Result<Read> {
    let api: Api<DynamicObject> = objects(&connection.client, kind, Some(namespace));
    let found = match within(ANSWERS_WITHIN, api.get_opt(name)).await {
        Err(error) if error.code() == 403 => {
            let params = ListParams::default().fields(&format!("metadata.name={name}"));
            match within(ANSWERS_WITHIN, api.list(&params)).await {
                Ok(list) => Ok(list.items.into_iter().next()),
                Err(_) => return Ok(Read::Denied(message(&error))),
            }
        }
        answer => answer,
    };
    match found {
        Ok(Some(object)) => Ok(Read::Found(Box::new(object))),
        Ok(None) => Ok(Read::Gone),
        Err(error) => bail!("cannot get {namespace}/{name}: {error}"),
    }
}

fn message(error: &CallError) -> String {
    match error {
        CallError::Refused(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "Pod",
        Kind::TaskRun => "TaskRun",
        Kind::Run => "PipelineRun",
        Kind::Execution => "WorkflowExecution",
        other => other.label(),
    }
}

fn annotation<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns the object of a kind that another object was made for, by name.
fn named(above: Kind, object: &DynamicObject) -> Option<Link> {
    let tekton = Object { meta: &object.metadata, data: &object.data };
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let (namespace, name) = match above {
        Kind::TaskRun => (own, task_run_of(tekton)?),
        Kind::Run => (own, run_of(tekton)?),
        _ => annotation(object, ANNOTATION_WORKFLOW_EXECUTION)?.split_once('/')?,
    };
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Some(Link { kind: kind_name(above).to_owned(), namespace, name, detail: String::new() })
}

/// Returns whether an object was made for this execution, and not for an earlier one with the same name.
fn is_owner(execution: &DynamicObject, made: &DynamicObject) -> bool {
    execution.metadata.uid.as_deref() == annotation(made, ANNOTATION_UID)
}

/// Returns the object that asked for an execution, as its spec has it.
fn asked_by(execution: &DynamicObject) -> Option<Link> {
    let by = execution.data.pointer("/spec/remediationRequestRef").filter(|it| it.is_object())?;
    let text = |key: &str| by[key].as_str().map(str::to_owned);
    let slot = annotation(execution, ANNOTATION_SCHEDULED_FOR).map(|slot| format!("slot {slot}"));
    Some(Link {
        kind: text("kind").unwrap_or_else(|| "RemediationRequest".to_owned()),
        namespace: text("namespace").or_else(|| execution.metadata.namespace.clone()).unwrap_or_default(),
        name: text("name").unwrap_or_default(),
        detail: slot.unwrap_or_else(|| "by spec.remediationRequestRef".to_owned()),
    })
}

impl Link {
    fn of(kind: Kind, object: &DynamicObject) -> Self {
        let meta = &object.metadata;
        let phase = || object.data["status"]["phase"].as_str().unwrap_or("undecided");
        let detail = match kind {
            Kind::Pod => phase().to_owned(),
            Kind::TaskRun => match (Object { meta, data: &object.data }).task() {
                "" => String::new(),
                task => format!("task {task}"),
            },
            Kind::Run => annotation(object, ANNOTATION_TARGET).map(|it| format!("on {it}")).unwrap_or_default(),
            _ => {
                let workflow = object.data.pointer("/spec/workflowRef/workflowId").and_then(Value::as_str);
                format!("{} on {}, {}", workflow.unwrap_or_default(), target(object), phase())
            }
        };
        Self {
            kind: kind_name(kind).to_owned(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            detail,
        }
    }

    fn with(self, detail: &str) -> Self {
        Self { detail: detail.to_owned(), ..self }
    }
}

impl Created {
    /// Reads the creation from the managed fields. The API server records the name of the program there, and not the
    /// user's.
    fn of(execution: &DynamicObject, now: Time) -> Self {
        let managed = execution.metadata.managed_fields.iter().flatten();
        let specs = managed.filter(|it| it.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some()));
        let first = specs.min_by_key(|it| it.time.as_ref().map(|time| time.0));
        let field_manager = first.and_then(|it| it.manager.clone());
        let at = execution.metadata.creation_timestamp.as_ref();
        let at = at.and_then(|at| Time::from_timestamp(at.0.as_second(), 0));
        let told = match (&field_manager, at) {
            (Some(by), Some(at)) => format!("by the program {by}, {}; the audit log has the user", beside(at, now)),
            (None, Some(at)) => format!("{}; the audit log has the user", beside(at, now)),
            _ => "at an unknown time".to_owned(),
        };
        Self { field_manager, at: at.map(shown), told }
    }
}

impl Trace {
    /// Adds an object. For an execution, also adds what asked for it.
    fn add(&mut self, kind: Kind, object: &DynamicObject, now: Time) {
        self.links.push(Link::of(kind, object));
        if kind == Kind::Execution {
            self.links.extend(asked_by(object));
            self.created = Some(Created::of(object, now));
        }
    }

    fn told(&self) -> String {
        let link = |(place, link): (usize, &Link)| {
            let label = if place == 0 { link.kind.clone() } else { format!("of {}", link.kind) };
            let detail = if link.detail.is_empty() { String::new() } else { format!("  ({})", line(&link.detail)) };
            format!("{:<21} {}/{}{detail}\n", line(&label), line(&link.namespace), line(&link.name))
        };
        let mut text: String = self.links.iter().enumerate().map(link).collect();
        match &self.created {
            Some(created) => {
                let _ = writeln!(text, "{:<21} {}", "created", line(&created.told));
            }
            None if self.links.iter().all(|it| it.kind != kind_name(Kind::Execution)) => {
                text += "It belongs to no WorkflowExecution.\n";
            }
            None => {}
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn execution() -> DynamicObject {
        object(json!({
            "metadata": {
                "name": "nodefail", "namespace": "payment", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z",
                "annotations": {ANNOTATION_SCHEDULED_FOR: "2026-01-02T03:04:00Z"},
                "managedFields": [
                    {"manager": "wfe-operator", "time": "2026-01-02T03:04:06Z", "fieldsV1": {"f:status": {}}},
                    {"manager": "kubectl-wfe", "time": "2026-01-02T03:05:00Z", "fieldsV1": {"f:spec": {}}},
                    {"manager": "kubectl-create", "time": "2026-01-02T03:04:05Z", "fieldsV1": {"f:spec": {}}},
                ],
            },
            "spec": {
                "targetResource": "node/n", "workflowRef": {"workflowId": "drain"},
                "remediationRequestRef": {"kind": "WorkflowSchedule", "name": "nightly"},
            },
            "status": {"phase": "Failed"},
        }))
    }

    #[test]
    fn each_object_names_the_one_above_it() {
        let pod = object(json!({
            "metadata": {
                "name": "p", "namespace": "exec",
                "labels": {"tekton.dev/taskRun": "t", "tekton.dev/pipelineRun": "r"},
                "annotations": {ANNOTATION_WORKFLOW_EXECUTION: "payment/nodefail", ANNOTATION_UID: "u"},
            },
        }));
        let name = |above| named(above, &pod).map(|it| format!("{} {}/{}", it.kind, it.namespace, it.name));
        assert_eq!(name(Kind::TaskRun).as_deref(), Some("TaskRun exec/t"));
        assert_eq!(name(Kind::Run).as_deref(), Some("PipelineRun exec/r"));
        assert_eq!(name(Kind::Execution).as_deref(), Some("WorkflowExecution payment/nodefail"));
        assert!(is_owner(&execution(), &pod) && !is_owner(&pod, &pod));
        let bare = object(json!({"metadata": {"name": "p", "namespace": "exec"}}));
        assert!([Kind::TaskRun, Kind::Run, Kind::Execution].iter().all(|above| named(*above, &bare).is_none()));
        assert!(is_above(Kind::Execution, Kind::Pod) && !is_above(Kind::TaskRun, Kind::Run));
    }

    #[test]
    fn a_trace_is_told_from_the_pod_up() {
        let now = "2026-01-02T03:07:05Z".parse().unwrap();
        let link = |kind: &str, name: &str, detail: &str| Link {
            kind: kind.to_owned(),
            namespace: "exec".to_owned(),
            name: name.to_owned(),
            detail: detail.to_owned(),
        };
        let mut trace = Trace {
            links: vec![link("Pod", "p", "Failed"), link("TaskRun", "t", "it is gone"), link("PipelineRun", "r", "")],
            created: None,
        };
        assert_eq!(
            trace.told(),
            "Pod                   exec/p  (Failed)\n\
             of TaskRun            exec/t  (it is gone)\n\
             of PipelineRun        exec/r\n\
             It belongs to no WorkflowExecution.\n"
        );
        trace.links.clear();
        trace.add(Kind::Execution, &execution(), now);
        assert_eq!(
            trace.told(),
            "WorkflowExecution     payment/nodefail  (drain on node/n, Failed)\n\
             of WorkflowSchedule   payment/nightly  (slot 2026-01-02T03:04:00Z)\n\
             created               by the program kubectl-create, 2026-01-02T03:04:05Z (3m ago); the audit log has the user\n"
        );
    }
}
