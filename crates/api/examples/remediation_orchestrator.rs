//! A small RemediationOrchestrator: turns requests into `WorkflowExecution`s, and follows the next step of each.
//!
//! ```sh
//! cargo run --package wfe-api --example remediation_orchestrator -- \
//!     --target-namespace payment --target-kind deployment --target-name payment-api \
//!     --workflow deployment-restart=registry.example/workflows/deployment-restart:1.0 \
//!     --workflow deployment-scale=registry.example/workflows/deployment-scale:1.0 \
//!     request-1
//! ```
//!
//! The workflows are tried in the order given. The next workflow runs only if the one before failed half way, as its
//! recovery. Several requests for one target are created at once, as in a storm of alerts: one runs, and the others
//! wait for it.
//!
//! The program uses the cluster of `KUBECONFIG`, or of its own pod, with the permissions of
//! `config/samples/remediation-orchestrator.yaml`. The exit code is 0 if all requests are remediated. It is 1 if a
//! person must act or the program cannot continue.
//!
//! After a restart with the same requests it finds its executions by name and continues.
//!
//! A real orchestrator keeps its state in a `RemediationRequest`. Before it tries again, it checks whether the alert
//! still fires. An `AIAnalysis` chooses its workflows.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use futures::future::try_join_all;
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use kube::{Client, Resource as _};
use wfe_api::{
    Holder, NextStep, PreviousExecution, RemediationRequestRef, StatusView, UNSAID_WAIT, WorkflowExecution,
    target_resource,
};

#[derive(Parser)]
struct Arguments {
    /// Namespace of the target; leave it out for a cluster-scoped target.
    #[arg(long)]
    target_namespace: Option<String>,
    /// Kind of the target.
    #[arg(long)]
    target_kind: String,
    /// Name of the target.
    #[arg(long)]
    target_name: String,
    /// A workflow: its id and its Tekton bundle. Repeat the flag for several, the best first.
    #[arg(long = "workflow", value_name = "ID=IMAGE", value_parser = workflow, required = true)]
    workflows: Vec<Workflow>,
    /// Minutes until the program gives up.
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    give_up_after: u64,
    /// Names of the requests. Each request gets its own WorkflowExecutions.
    #[arg(required = true)]
    requests: Vec<String>,
}

/// A workflow of the catalogue.
#[derive(Clone)]
struct Workflow {
    id: String,
    image: String,
}

fn workflow(text: &str) -> Result<Workflow, String> {
    let (id, image) = text.split_once('=').ok_or("expected ID=IMAGE")?;
    Ok(Workflow { id: id.to_owned(), image: image.to_owned() })
}

/// How a request ends.
enum End {
    /// An execution of the request completed, or one of another request with the same workflow.
    Remediated,
    /// A program can do nothing more.
    PersonMustAct,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let patience = Duration::from_mins(arguments.give_up_after);
    let namespace = arguments.target_namespace.as_deref();
    let orchestrator = Orchestrator {
        client: Client::try_default().await.context("there is no cluster to speak to")?,
        target: target_resource(namespace, &arguments.target_kind, &arguments.target_name)?,
        workflows: arguments.workflows,
    };
    let requests = try_join_all(arguments.requests.iter().map(|request| orchestrator.remediate(request)));
    let ends = tokio::time::timeout(patience, requests).await.context("nothing was settled in time")??;
    let settled = ends.iter().all(|end| matches!(end, End::Remediated));
    Ok(if settled { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Orchestrator {
    client: Client,
    target: String,
    workflows: Vec<Workflow>,
}

impl Orchestrator {
    /// Handles a request to its end: creates executions, follows them, and takes the next step of each.
    async fn remediate(&self, request: &str) -> Result<End> {
        let mut previous: Vec<PreviousExecution> = Vec::new();
        let mut failed: Vec<WorkflowExecution> = Vec::new();
        for attempt in 1.. {
            let Some(workflow) = self.choose(&failed) else {
                println!("{request}: no workflow is left to try, a person must act");
                return Ok(End::PersonMustAct);
            };
            let name = self.create(&format!("{request}-{attempt}"), request, workflow, failed.last()).await?;
            let (view, execution) = self.follow_to_the_end(&name).await?;
            match view.next_step() {
                NextStep::Nothing => {
                    println!("{request}: {name} completed");
                    return Ok(End::Remediated);
                }
                NextStep::PickAlternative { why } => {
                    println!("{request}: {name} failed half way: {why}");
                    let execution: WorkflowExecution = execution.try_parse().context("it is Failed, but not typed")?;
                    previous.extend(PreviousExecution::of(&execution));
                    println!("{request}: previousExecutions: {}", serde_json::to_string(&previous)?);
                    failed.push(execution);
                    // While something of its run is still stopping, a new execution would be skipped.
                    self.await_release(&Holder { namespace: None, name }).await?;
                }
                NextStep::WaitFor { holder, why } => {
                    println!("{request}: {name} was skipped: {why}");
                    if self.await_release(&holder).await? == Some(workflow.id.clone()) {
                        println!("{request}: {} has done what {name} was to do", holder.name);
                        return Ok(End::Remediated);
                    }
                }
                step @ NextStep::RetryAfter { .. } => {
                    let wait = step.time_left(&Time(Timestamp::now())).unwrap_or_default();
                    println!("{request}: {name} may be repeated in {wait:?}");
                    tokio::time::sleep(wait).await;
                }
                NextStep::PersonMustAct { why } => {
                    println!("{request}: {name}: a person must act: {why}");
                    return Ok(End::PersonMustAct);
                }
                NextStep::Watch => bail!("{name} has not ended"),
            }
        }
        bail!("{request}: out of numbers")
    }

    /// Chooses a workflow that has not failed half way yet. In a real orchestrator an `AIAnalysis` chooses, from the
    /// previous executions.
    fn choose(&self, failed: &[WorkflowExecution]) -> Option<&Workflow> {
        let has_failed = |workflow: &Workflow| failed.iter().any(|it| it.spec.workflow_ref.workflow_id == workflow.id);
        self.workflows.iter().find(|workflow| !has_failed(workflow))
    }

    /// Creates an execution, as the recovery of the last one that failed. An execution that exists already was created
    /// before a restart of this program, and is followed like a new one.
    async fn create(
        &self,
        name: &str,
        request: &str,
        workflow: &Workflow,
        failed: Option<&WorkflowExecution>,
    ) -> Result<String> {
        let mut builder = WorkflowExecution::builder(name)
            .namespace(self.client.default_namespace())
            .target(&self.target)
            .workflow(&workflow.id, "1.0", &workflow.image)
            .requested_by(RemediationRequestRef { name: request.to_owned(), ..RemediationRequestRef::default() });
        if let Some(failed) = failed {
            builder = builder.recovers(failed);
        }
        let execution = builder.build()?;
        let recovery = execution.spec.recovery_of.as_ref().map(|of| format!(", recovery of {of}")).unwrap_or_default();
        let api: Api<WorkflowExecution> = Api::default_namespaced(self.client.clone());
        match api.create(&PostParams::default(), &execution).await {
            Ok(_) => println!("{request}: created {name} ({}{recovery})", workflow.id),
            Err(kube::Error::Api(status)) if status.is_already_exists() => println!("{request}: found {name}"),
            Err(error) => return Err(error).context(format!("{name} cannot be created")),
        }
        Ok(name.to_owned())
    }

    /// Watches an execution until there is something to do.
    async fn follow_to_the_end(&self, name: &str) -> Result<(StatusView, DynamicObject)> {
        let holder = Holder { namespace: None, name: name.to_owned() };
        let ended = |object: Option<DynamicObject>| {
            let Some(object) = object else { return Some(None) };
            let view = StatusView::of_json(&object.data);
            (view.next_step() != NextStep::Watch).then_some(Some((view, object)))
        };
        self.watch(&holder, ended).await?.with_context(|| format!("{name} was deleted"))
    }

    /// Waits until another execution has released the target. Returns its workflow, if it completed.
    async fn await_release(&self, holder: &Holder) -> Result<Option<String>> {
        let released = |object: Option<DynamicObject>| {
            // An execution that cannot be read was written by a later version. It is treated as one that was deleted.
            let execution = object.and_then(|object| object.try_parse::<WorkflowExecution>().ok());
            let holds = execution.as_ref().is_some_and(|execution| !execution.has_released_target());
            (!holds).then_some(execution)
        };
        let Some(execution) = self.watch(holder, released).await? else {
            // Its run may still be stopping, and nothing shows when that ends.
            tokio::time::sleep(UNSAID_WAIT).await;
            return Ok(None);
        };
        let completed = matches!(StatusView::of(&execution), StatusView::Completed { .. });
        Ok(completed.then_some(execution.spec.workflow_ref.workflow_id))
    }

    /// Watches an execution as plain JSON until `found` returns a result. `found` gets `None` if the execution does not
    /// exist.
    async fn watch<T>(&self, which: &Holder, found: impl Fn(Option<DynamicObject>) -> Option<T>) -> Result<T> {
        let namespace = which.namespace.as_deref().unwrap_or(self.client.default_namespace());
        let resource = ApiResource::erase::<WorkflowExecution>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let states = watch_object(api, &which.name).default_backoff();
        pin_mut!(states);
        while let Some(state) = states.next().await {
            match state {
                Ok(object) => {
                    if let Some(result) = found(object) {
                        return Ok(result);
                    }
                }
                Err(error) => eprintln!("{} {}: {error}", WorkflowExecution::kind(&()), which.name),
            }
        }
        bail!("the watch of {} ended", which.name)
    }
}
