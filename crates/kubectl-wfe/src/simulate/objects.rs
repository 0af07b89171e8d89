//! The executions and schedules of a scenario. The operator's own code reads them, so a spec means the same as in a
//! cluster.

use std::path::Path;
use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::execution::ExecutionState;
use wfe_core::name::ScheduleId;
use wfe_core::schedule::child_name;
use wfe_core::target::TargetName;
use wfe_tekton::rfc3339;
use wfe_view::index::ExecutionRecord;
use wfe_view::observe::{observe_execution, observe_schedule};

use super::node::{Fault, Node, unknown};
use super::scenario::{Arrival, Planned, Scenario, numbered, uid};
use crate::file;

/// The namespace of all runs. No decision depends on its name.
const RUNS: &str = "kubernaut-workflows";
/// The most copies of a schedule: as many as an operator is measured with.
const COPIES: u64 = 5_000;

impl Scenario {
    fn check_workflow(&self, name: &str, node: &Node) -> Result<(), Fault> {
        let known: Vec<&str> = self.workflows.keys().map(String::as_str).collect();
        if known.is_empty() || known.contains(&name) {
            return Ok(());
        }
        node.fault(unknown(name, " in workflows", &known))
    }

    pub(super) fn arrival(&self, node: &Node, path: &str) -> Result<Arrival, Fault> {
        let known = [
            "workflow",
            "on",
            "targets",
            "at",
            "every",
            "times",
            "namespace",
            "name",
            "retry",
            "timeout",
            "recoveryOf",
        ];
        let fields = node.fields(path, &known)?;
        let workflow = fields.need("workflow")?.text(&fields.path("workflow"))?;
        self.check_workflow(&workflow, fields.need("workflow")?)?;
        let on = fields.need("on")?.text(&fields.path("on"))?;
        if let Err(error) = TargetName::parse(&numbered(&on, 1)) {
            return fields.need("on")?.fault(format!("{path}.on: \"{on}\" {error}"));
        }
        let name = fields.read("name", Node::text)?.unwrap_or_else(|| workflow.clone());
        let namespace = fields.read("namespace", Node::text)?.unwrap_or_else(|| "default".to_owned());
        let every = fields.read("every", interval)?;
        let times = fields.read("times", Node::count)?;
        let mut spec = json!({"targetResource": numbered(&on, 1), "workflowRef": self.reference(&workflow)});
        for (key, field) in
            [("retry", "/retry"), ("recoveryOf", "/recoveryOf"), ("timeout", "/executionConfig/timeout")]
        {
            if let Some(value) = fields.get(key) {
                set(&mut spec, field, value.json());
            }
        }
        let at_fault = ["retry", "timeout", "recoveryOf"].into_iter().find_map(|key| fields.get(key)).unwrap_or(node);
        let record = execution(&namespace, &name, self.start, &spec).or_else(|why| at_fault.fault(why))?;
        Ok(Arrival {
            line: node.line,
            record,
            name,
            on,
            targets: fields.read("targets", Node::count)?,
            at: fields.read("at", Node::duration)?.unwrap_or_default(),
            every,
            times: times.or(if every.is_none() { Some(1) } else { None }),
        })
    }

    /// Returns the `workflowRef` of a workflow.
    fn reference(&self, name: &str) -> Value {
        let workflow = self.workflow(name);
        let image = workflow.image.unwrap_or_else(|| format!("registry.example/workflows/{name}:{}", workflow.version));
        json!({"workflowId": name, "version": workflow.version, "containerImage": image})
    }

    pub(super) fn add_schedules(&mut self, node: &Node, path: &str, folder: &Path) -> Result<(), Fault> {
        let fields = node.fields(path, &["file", "name", "namespace", "spec", "copies"])?;
        let (mut object, at) = match (fields.get("file"), fields.get("spec")) {
            (Some(at), None) => {
                let name = at.text(&fields.path("file"))?;
                let read = file::read(&folder.join(&name)).and_then(|text| file::the_one_in(&text, "WorkflowSchedule"));
                (read.or_else(|error| at.fault(format!("cannot use {name}: {error}")))?, at)
            }
            (None, Some(at)) => (json!({"spec": at.json()}), at),
            _ => return node.fault(format!("{path} must have either \"file\" or \"spec\"")),
        };
        let own = |key: &str, default: &str| {
            let own = object.pointer(&format!("/metadata/{key}")).and_then(Value::as_str);
            fields.read(key, Node::text).map(|it| it.unwrap_or_else(|| own.unwrap_or(default).to_owned()))
        };
        let (name, namespace) = (own("name", "schedule")?, own("namespace", "default")?);
        let workflow = text_at(&object, "/spec/template/spec/workflowRef/workflowId");
        self.check_workflow(&workflow, at)?;
        for (key, value) in self.reference(&workflow).as_object().into_iter().flatten() {
            let path = format!("/spec/template/spec/workflowRef/{key}");
            if object.pointer(&path).is_none() {
                set(&mut object, &path, value.clone());
            }
        }
        let copies = fields.read("copies", Node::count)?.unwrap_or(1);
        if copies > COPIES {
            return node.fault(format!("{path}.copies must be at most {COPIES}"));
        }
        for copy in 1..=copies {
            let number = if copies == 1 { String::new() } else { format!("-{copy}") };
            let planned = self.planned(&object, &namespace, &name, &number, copy, at)?;
            self.schedules.push(planned);
        }
        Ok(())
    }

    fn planned(
        &self,
        object: &Value,
        namespace: &str,
        name: &str,
        number: &str,
        copy: u64,
        at: &Node,
    ) -> Result<Planned, Fault> {
        let target = text_at(object, "/spec/template/spec/targetResource");
        // Copies have targets of their own.
        let target = if target.contains("{n}") { numbered(&target, copy) } else { format!("{target}{number}") };
        let mut spec = object["spec"].clone();
        set(&mut spec, "/template/spec/targetResource", json!(target));
        let (name, uid) = (format!("{name}{number}"), uid(2, self.schedules.len() as u64));
        let object = from_json(namespace, &name, &uid, self.start, &spec).or_else(|why| at.fault(why))?;
        Planned::of(&object, self.start).or_else(|why| at.fault(why))
    }
}

impl Planned {
    /// Reads a schedule, and makes a child from which the others are copied. Fails if the spec cannot be used.
    pub(super) fn of(object: &DynamicObject, start: Time) -> Result<Self, String> {
        let record = observe_schedule(object).ok_or("it is not a WorkflowSchedule")?;
        let ScheduleId { namespace, name, uid } = &record.schedule.id;
        record.schedule.plan.as_ref().map_err(ToString::to_string)?;
        let spec = &object.data["spec"];
        let mut template = spec["template"]["spec"].clone();
        set(
            &mut template,
            "/remediationRequestRef",
            json!({"apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": &**name, "uid": uid.to_string()}),
        );
        set(&mut template, "/startBefore", json!(rfc3339(start)));
        let child = execution(namespace, &child_name(name, start), start, &template)?;
        let every = ["/interval", "/cron"].map(|path| text_at(spec, path)).concat();
        Ok(Self { record, child, every })
    }
}

fn interval(node: &Node, path: &str) -> Result<Duration, Fault> {
    match node.duration(path)? {
        every if every.is_zero() => node.fault(format!("{path} must be at least 1s; without it, all arrive at once")),
        every => Ok(every),
    }
}

/// Reads an execution. Fails if its spec cannot be used.
fn execution(namespace: &str, name: &str, created: Time, spec: &Value) -> Result<ExecutionRecord, String> {
    let object = from_json(namespace, name, &uid(1, 0), created, spec)?;
    let mut record = observe_execution(&object, RUNS).ok_or("it is not a WorkflowExecution")?;
    if let ExecutionState::Undecided { unusable: Some(why), .. } = &record.execution.state {
        return Err(why.to_string());
    }
    // A play renders no PipelineRun from the request, and has no secret to redact.
    (record.request, record.redaction) = (None, None);
    Ok(record)
}

fn from_json(namespace: &str, name: &str, uid: &str, created: Time, spec: &Value) -> Result<DynamicObject, String> {
    let object = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": uid, "generation": 1, "resourceVersion": "1",
            "creationTimestamp": rfc3339(created),
        },
        "spec": spec,
    });
    serde_json::from_value(object).map_err(|error| format!("it does not have the shape of an object: {error}"))
}

fn text_at(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Sets a value at a path, and the objects on the way. A value on the way that is no object stays as it is.
fn set(value: &mut Value, path: &str, to: Value) {
    let mut place = value;
    for key in path.split('/').skip(1) {
        if place.is_null() {
            *place = json!({});
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry(key).or_insert(Value::Null);
    }
    *place = to;
}
