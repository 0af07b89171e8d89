//! The people and programs of a cluster. They create executions, and do things that the operator does not expect.

mod schedules;

use http::Method;
use serde_json::{Value, json};
use wfe_api::labels;
use wfe_core::target::TargetName;
use wfe_operator::clock::Clock;

use crate::cluster::scripts::THEN;
use crate::plan::{Create, Operation};
use crate::service::FakeApi;
use schedules::Schedules;
pub use schedules::schedules_in;

/// The user name of the person.
pub(crate) const PERSON: &str = "alice@example.com";
/// The registry of a bundle unless the plan names one.
const REGISTRY: &str = "registry.test";
/// The namespace of all runs.
pub const EXECUTION_NAMESPACE: &str = "kubernaut-workflows";
/// The label of a pod that contains the name of its run.
const LABEL_PIPELINE_RUN: &str = "tekton.dev/pipelineRun";
/// A finalizer that no controller in the cluster removes.
const FINALIZER: &str = "example.com/archive";

/// A person with every permission.
pub struct People {
    api: FakeApi,
    clock: Clock,
    tekton: String,
}

impl People {
    /// Creates a person in a cluster. The bundles contain the stories of the version `tekton`.
    #[must_use]
    pub fn new(api: FakeApi, clock: Clock, tekton: &str) -> Self {
        Self { api, clock, tekton: tekton.to_owned() }
    }

    /// Performs an operation. Nothing happens if the object does not exist, or if the API server refuses the operation.
    pub fn act(&self, deed: &Operation) {
        let path = path_of(deed.object());
        match deed {
            Operation::Create(create) => self.create(create),
            Operation::Delete(_) => self.ask(&Method::DELETE, &path, &Value::Null),
            Operation::Cancel(_) => {
                let cancellation = json!({"requestedBy": "alice", "reason": "not needed"});
                self.ask(&Method::PATCH, &path, &json!({"spec": {"cancellation": cancellation}}));
            }
            Operation::Clear(_) => {
                let clearance = json!({"clearedBy": "alice", "reason": "looked at it"});
                self.ask(&Method::PATCH, &path, &json!({"spec": {"clearance": clearance}}));
            }
            Operation::Touch(_) => {
                let touched = json!({"metadata": {"annotations": {"example.com/seen": self.clock.now().to_rfc3339()}}});
                self.ask(&Method::PATCH, &path, &touched);
            }
            Operation::Scribble(_) => {
                let status = json!({"status": {"observedGeneration": 7, "phase": "Pending"}});
                self.ask(&Method::PATCH, &format!("{path}/status"), &status);
            }
            Operation::TouchRun(name) => {
                self.change_run(name, &json!({"metadata": {"labels": {"example.com/seen": "yes"}}}));
            }
            Operation::UnlabelRun(name) => {
                let label = json!({labels::LABEL_WORKFLOW_EXECUTION: null});
                self.change_run(name, &json!({"metadata": {"labels": label}}));
            }
            Operation::HoldRun(name) => self.change_run(name, &json!({"metadata": {"finalizers": [FINALIZER]}})),
            Operation::CancelRun(name) => self.change_run(name, &json!({"spec": {"status": "Cancelled"}})),
            Operation::DeleteRun(name) => {
                if let Some(run) = self.run_of(name) {
                    self.ask(&Method::DELETE, &run, &Value::Null);
                }
            }
            Operation::StartPods(name) => self.start_pods(name),
            Operation::ForgeRun(name) => self.forge_run(name),
            _ => self.schedules().act(deed),
        }
    }

    /// Ends what would delay the plan for ever: removes the finalizers from runs, and suspends all schedules.
    pub fn repair(&self) {
        self.schedules().suspend_all();
        for run in self.api.all(&runs()) {
            if run["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) {
                let path = format!("{}/{}", runs(), run["metadata"]["name"].as_str().unwrap_or_default());
                self.ask(&Method::PATCH, &path, &json!({"metadata": {"finalizers": null}}));
            }
        }
    }

    /// Pauses a namespace, or ends its pause.
    pub fn pause(&self, namespace: &str, is_paused: bool) {
        let why = is_paused.then_some("maintenance");
        let paused = json!({"metadata": {"annotations": {labels::ANNOTATION_PAUSED: why}}});
        self.ask(&Method::PATCH, &format!("/api/v1/namespaces/{namespace}"), &paused);
    }

    fn schedules(&self) -> Schedules<'_> {
        Schedules { api: &self.api, clock: &self.clock, tekton: &self.tekton }
    }

    fn create(&self, create: &Create) {
        let (namespace, name) = create.name.split_once('/').unwrap_or_default();
        let stories = [std::slice::from_ref(&create.story), &create.then].concat().join(THEN);
        let image = format!("{REGISTRY}/{}/{stories}:1.0", self.tekton);
        let mut spec = json!({
            "targetResource": create.target,
            "workflowRef": {"workflowId": create.workflow, "version": "1.0", "containerImage": image},
        });
        if let Some(timeout) = &create.timeout {
            spec["executionConfig"] = json!({"timeout": timeout});
        }
        if let Some(recovered) = &create.recovery_of {
            spec["recoveryOf"] = json!(recovered);
        }
        if let Some(retry) = &create.retry {
            spec["retry"] = retry.clone();
        }
        if let Some(ttl) = create.ttl {
            spec["ttlSecondsAfterFinished"] = json!(ttl);
        }
        if let Some(within) = create.start_within {
            let until = self.clock.now() + chrono::TimeDelta::seconds(i64::from(within));
            spec["startBefore"] = json!(until.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        let object = json!({
            "apiVersion": format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION),
            "kind": "WorkflowExecution",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        });
        self.ask(&Method::POST, &executions_in(namespace), &object);
    }

    fn change_run(&self, execution: &str, change: &Value) {
        if let Some(run) = self.run_of(execution) {
            self.ask(&Method::PATCH, &run, change);
        }
    }

    /// Returns the path of the newest run of an execution with this name.
    fn run_of(&self, execution: &str) -> Option<String> {
        let is_its = |run: &Value| run["metadata"]["annotations"][labels::ANNOTATION_WORKFLOW_EXECUTION] == *execution;
        let newest = self.api.all(&runs()).into_iter().filter(is_its).max_by_key(|run| {
            let sequence = run["metadata"]["labels"][labels::LABEL_RUN_SEQUENCE].as_str();
            sequence.and_then(|number| number.parse::<u64>().ok())
        })?;
        Some(format!("{}/{}", runs(), newest["metadata"]["name"].as_str()?))
    }

    /// Marks the containers of a run's pods as running. Only pods whose containers are all waiting are changed.
    fn start_pods(&self, execution: &str) {
        let Some(run) = self.run_of(execution) else { return };
        let run = run.rsplit('/').next().unwrap_or_default();
        let now = self.clock.now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
        for pod in self.api.all(&pods()) {
            let containers = pod["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
            let is_its = pod["metadata"]["labels"][LABEL_PIPELINE_RUN] == *run;
            let waits = !containers.is_empty() && containers.iter().all(|it| it["state"]["waiting"].is_object());
            if is_its && waits && pod["metadata"]["deletionTimestamp"].is_null() {
                let mut started = containers.to_vec();
                for container in &mut started {
                    container["state"] = json!({"running": {"startedAt": now}});
                }
                let path = format!("{}/{}/status", pods(), pod["metadata"]["name"].as_str().unwrap_or_default());
                let status = json!({"phase": "Running", "containerStatuses": started});
                self.ask(&Method::PATCH, &path, &json!({"status": status}));
            }
        }
    }

    /// Creates a run with the next name in the sequence of runs on this execution's target.
    fn forge_run(&self, execution: &str) {
        let found = self.api.ask("", &Method::GET, &path_of(execution), &Value::Null).body;
        let target = found["spec"]["targetResource"].as_str().and_then(|target| TargetName::parse(target).ok());
        let Some(target) = target else { return };
        let chain = target.chain();
        let taken = self.api.all(&runs());
        let next = taken
            .iter()
            .filter_map(|run| run["metadata"]["name"].as_str()?.strip_prefix(&format!("{chain}-"))?.parse::<u64>().ok())
            .max()
            .unwrap_or(0)
            + 1;
        let run = json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun",
            "metadata": {
                "name": format!("{chain}-{next}"),
                "namespace": EXECUTION_NAMESPACE,
                "labels": {labels::LABEL_WORKFLOW_EXECUTION: "somebody"},
            },
            "spec": {"pipelineRef": {"name": "other"}, "status": "PipelineRunPending"},
        });
        self.ask(&Method::POST, &runs(), &run);
    }

    fn ask(&self, method: &Method, path: &str, body: &Value) {
        // Refused requests are ignored, because people make mistakes.
        let _ = self.api.ask(PERSON, method, path, body);
    }
}

/// Returns the path of all runs.
#[must_use]
pub fn runs() -> String {
    format!("/apis/tekton.dev/v1/namespaces/{EXECUTION_NAMESPACE}/pipelineruns")
}

fn pods() -> String {
    format!("/api/v1/namespaces/{EXECUTION_NAMESPACE}/pods")
}

/// Returns the path of a namespace's executions.
#[must_use]
pub fn executions_in(namespace: &str) -> String {
    format!("/apis/{}/{}/namespaces/{namespace}/workflowexecutions", wfe_api::GROUP, wfe_api::VERSION)
}

fn path_of(execution: &str) -> String {
    let (namespace, name) = execution.split_once('/').unwrap_or_default();
    format!("{}/{name}", executions_in(namespace))
}
