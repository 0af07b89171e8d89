//! Builds `WorkflowExecution`s that the API server and the operator accept.
//!
//! The builder checks every limit and admission rule of the spec: a program finds its mistake before it asks a server.
//! The builder cannot set `spec.cancellation`, `spec.clearance` and `status`, because they may not be set at creation.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::{SignedDuration, fmt::friendly::Spacing, fmt::friendly::SpanPrinter};

use serde_json::Value;
use wfe_core::bundle::Bundle;

use crate::{ExecutionConfig, Phase, RemediationRequestRef, WorkflowExecution, WorkflowExecutionSpec, WorkflowRef};

mod check;
mod error;

pub use error::{BuildError, Problem};

/// A `WorkflowExecution` that is being built.
///
/// [`build`](Self::build) checks all fields; the other methods check nothing.
///
/// ```
/// use std::time::Duration;
/// use wfe_api::{WorkflowExecution, target_resource};
///
/// let execution = WorkflowExecution::builder("payment-restart-1")
///     .namespace("payment")
///     .target(target_resource(Some("payment"), "deployment", "payment-api")?)
///     .workflow("deployment-restart", "1.0", "registry.example/workflows/deployment-restart:1.0")
///     .parameter("READY_TIMEOUT", "90s")
///     .timeout(Duration::from_secs(600))
///     .build()?;
/// assert_eq!(execution.spec.execution_config.unwrap().timeout.as_deref(), Some("10m"));
///
/// let error = WorkflowExecution::builder("payment-restart-2").target("payment-api").build().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "spec.targetResource: must be namespace/kind/name or kind/name, e.g. payment/deployment/api or node/worker-1",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is made until `build`"]
pub struct WorkflowExecutionBuilder {
    metadata: ObjectMeta,
    spec: WorkflowExecutionSpec,
    timeout: Option<Duration>,
    recovered: Option<Recovered>,
}

/// The facts about the failed execution of a recovery.
#[derive(Clone, Debug)]
struct Recovered {
    failed_half_way: bool,
    namespace: Option<String>,
    workflow_id: String,
    bundle: Bundle,
}

// === impl WorkflowExecution ===

impl WorkflowExecution {
    /// Begins a `WorkflowExecution` with this name.
    ///
    /// Derive the name from the request and a number. It is then harmless to create the object twice: the second time
    /// the API server answers `AlreadyExists`.
    pub fn builder(name: impl Into<String>) -> WorkflowExecutionBuilder {
        WorkflowExecutionBuilder {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            spec: WorkflowExecutionSpec {
                remediation_request_ref: None,
                workflow_ref: WorkflowRef::default(),
                target_resource: String::new(),
                parameters: BTreeMap::new(),
                confidence: None,
                rationale: None,
                execution_config: None,
                start_before: None,
                recovery_of: None,
                ttl_seconds_after_finished: None,
                retry: None,
                cancellation: None,
                clearance: None,
            },
            timeout: None,
            recovered: None,
        }
    }

    /// Lists what the rules of the CRD or rule 0 of the decision would refuse in a new object, such as an object from a
    /// file.
    ///
    /// At most one fault of each field is listed. No fault quotes the value of a parameter. Conditions of a retry
    /// policy are not examined.
    #[must_use]
    pub fn faults(&self) -> Vec<BuildError> {
        check::faults(self)
    }
}

// === impl WorkflowExecutionBuilder ===

impl WorkflowExecutionBuilder {
    /// Sets the namespace. Without it, the client's default applies.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.metadata.namespace = Some(namespace.into());
        self
    }

    /// Sets the object that the workflow acts on, as [`target_resource`](crate::target_resource) writes it. Required.
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.spec.target_resource = target.into();
        self
    }

    /// Sets which workflow to run: its key in the catalogue, its version, and the Tekton bundle that holds it.
    /// Required.
    pub fn workflow(
        mut self,
        id: impl Into<String>,
        version: impl Into<String>,
        container_image: impl Into<String>,
    ) -> Self {
        let workflow = &mut self.spec.workflow_ref;
        workflow.workflow_id = id.into();
        workflow.version = version.into();
        workflow.container_image = container_image.into();
        self
    }

    /// Pins the bundle: `sha256:` and 64 hexadecimal digits in lower case.
    pub fn digest(mut self, digest: impl Into<String>) -> Self {
        self.spec.workflow_ref.container_digest = Some(digest.into());
        self
    }

    /// Adds a parameter of the pipeline. A later value of the same key replaces the earlier one.
    pub fn parameter(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.spec.parameters.insert(key.into(), value.into());
        self
    }

    /// Records the object that asks for this execution.
    pub fn requested_by(mut self, reference: RemediationRequestRef) -> Self {
        self.spec.remediation_request_ref = Some(reference);
        self
    }

    /// Records the confidence in the choice of the workflow, from 0 to 1.
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.spec.confidence = Some(confidence);
        self
    }

    /// Records why this workflow was chosen, in words.
    pub fn rationale(mut self, rationale: impl Into<String>) -> Self {
        self.spec.rationale = Some(rationale.into());
        self
    }

    /// Sets the time limit of the run, in whole seconds, from a second to a day.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the service account of the workflow's pods, in the execution namespace.
    pub fn service_account(mut self, name: impl Into<String>) -> Self {
        self.config().service_account_name = Some(name.into());
        self
    }

    /// Sets the latest time at which the execution may be decided. It is kept in whole seconds.
    pub fn start_before(mut self, moment: Time) -> Self {
        self.spec.start_before = Some(moment);
        self
    }

    /// Sets the seconds from the end of the execution to the removal of the object.
    pub fn ttl_seconds_after_finished(mut self, seconds: i32) -> Self {
        self.spec.ttl_seconds_after_finished = Some(seconds);
        self
    }

    /// Sets the retry policy: `true` (all defaults), a number of attempts, or a [`Retry`](crate::retry::Retry).
    ///
    /// Only the operator checks whether the conditions of the policy compile.
    pub fn retry(mut self, retry: impl Into<Value>) -> Self {
        self.spec.retry = Some(retry.into()).filter(|retry| !retry.is_null());
        self
    }

    /// Makes this execution the recovery of an execution in the same namespace that failed half way, by its name.
    ///
    /// If you have the failed execution itself, [`recovers`](Self::recovers) checks more.
    pub fn recovery_of(mut self, name: impl Into<String>) -> Self {
        self.spec.recovery_of = Some(name.into());
        self.recovered = None;
        self
    }

    /// Makes this execution the recovery of an execution that failed half way. Sets `spec.recoveryOf`, and copies the
    /// namespace if none was set.
    ///
    /// [`build`](Self::build) then refuses recoveries that rule 2 would skip:
    ///
    /// - of an execution that did not fail, or that failed before anything ran;
    /// - of an execution in another namespace;
    /// - with the same workflow or bundle again.
    ///
    /// The builder does not know earlier failures. Workflow and bundle must also differ from those of every execution
    /// that failed half way on the target since the last success or clearance (specification, section 6).
    pub fn recovers(mut self, failed: &WorkflowExecution) -> Self {
        let status = failed.status.as_ref();
        let ran = status.and_then(|status| status.failure_details.as_ref()).is_some_and(|it| it.was_execution_failure);
        let namespace = failed.metadata.namespace.clone();
        self.metadata.namespace = self.metadata.namespace.or_else(|| namespace.clone());
        self.spec.recovery_of = Some(failed.metadata.name.clone().unwrap_or_default());
        self.recovered = Some(Recovered {
            failed_half_way: ran && status.and_then(|status| status.phase) == Some(Phase::Failed),
            namespace,
            workflow_id: failed.spec.workflow_ref.workflow_id.clone(),
            bundle: bundle(&failed.spec.workflow_ref),
        });
        self
    }

    /// Checks all fields and makes the object.
    ///
    /// # Guarantees
    ///
    /// The schema and rules of the CRD accept the object, and so does rule 0 of the decision. There is one exception: a
    /// condition of the retry policy may be invalid CEL. The builder cannot check what only the cluster knows: a quota,
    /// the permissions of the caller, a name that exists already.
    pub fn build(mut self) -> Result<WorkflowExecution, BuildError> {
        if let Some(timeout) = self.timeout {
            check::timeout(timeout)?;
            self.config().timeout = Some(go_duration(timeout));
        }
        let execution = WorkflowExecution { metadata: self.metadata, spec: self.spec, status: None };
        check::execution(&execution)?;
        match self.recovered.and_then(|recovered| recovered.objection(&execution)) {
            Some(problem) => Err(BuildError::new("spec.recoveryOf", problem)),
            None => Ok(execution),
        }
    }

    fn config(&mut self) -> &mut ExecutionConfig {
        self.spec.execution_config.get_or_insert_default()
    }
}

// === impl Recovered ===

impl Recovered {
    /// Returns why `execution` cannot be the recovery.
    fn objection(self, execution: &WorkflowExecution) -> Option<Problem> {
        if !self.failed_half_way {
            Some(Problem::NothingToRecover)
        } else if self.namespace != execution.metadata.namespace {
            Some(Problem::OtherNamespace)
        } else if self.workflow_id == execution.spec.workflow_ref.workflow_id {
            Some(Problem::SameWorkflow(self.workflow_id))
        } else if self.bundle.is_same(bundle(&execution.spec.workflow_ref)) {
            Some(Problem::SameBundle)
        } else {
            None
        }
    }
}

fn bundle(workflow: &WorkflowRef) -> Bundle {
    Bundle::new(&workflow.container_image, workflow.container_digest.as_deref())
}

/// Writes whole seconds as a Go duration, e.g. `1h30m`.
fn go_duration(duration: Duration) -> String {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    SpanPrinter::new().spacing(Spacing::None).duration_to_string(&SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
