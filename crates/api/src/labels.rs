//! Labels and annotations of the operator's `PipelineRuns`. Tekton copies the labels to every object that it creates
//! for a run. This module also has the labels and annotations of the children of schedules, and [`ANNOTATION_PAUSED`],
//! which people put on a namespace.
//!
//! The code that writes a label makes its value legal: it cuts a long value and adds a hash. The annotation with the
//! same key holds the whole value. The owner of a run is the execution in the annotation [`ANNOTATION_UID`], never the
//! one that a name suggests.

/// Label: name of the `WorkflowExecution` that the run belongs to.
pub const LABEL_WORKFLOW_EXECUTION: &str = "kubernaut.ai/workflow-execution";
/// Label: `spec.workflowRef.workflowId`.
pub const LABEL_WORKFLOW_ID: &str = "kubernaut.ai/workflow-id";
/// Label: the canonical target, `/` written as `__`.
pub const LABEL_TARGET: &str = "kubernaut.ai/target-resource";
/// Label: namespace of the `WorkflowExecution`.
pub const LABEL_SOURCE_NAMESPACE: &str = "kubernaut.ai/source-namespace";
/// Label: number of the run in its target's chain, `status.runSequence`.
pub const LABEL_RUN_SEQUENCE: &str = "kubernaut.ai/run-sequence";
/// Label: the program that manages the run; the value is [`MANAGED_BY`].
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of the label `app.kubernetes.io/managed-by`.
pub const MANAGED_BY: &str = "wfe-operator";

/// Annotation of the operator's Lease: the settings that the leader has in force, as JSON.
pub const ANNOTATION_SETTINGS: &str = "kubernaut.ai/settings";

/// Annotation: uid of the `WorkflowExecution` that owns the run.
pub const ANNOTATION_UID: &str = "kubernaut.ai/workflow-execution-uid";
/// Annotation: namespace/name of the `WorkflowExecution` that owns the run.
pub const ANNOTATION_WORKFLOW_EXECUTION: &str = LABEL_WORKFLOW_EXECUTION;
/// Annotation: `spec.workflowRef.workflowId`, not cut.
pub const ANNOTATION_WORKFLOW_ID: &str = LABEL_WORKFLOW_ID;
/// Annotation: the canonical target, not cut.
pub const ANNOTATION_TARGET: &str = LABEL_TARGET;
/// Annotation: when the operator released the run to Tekton (RFC 3339); the deadlines of the run count from this time.
pub const ANNOTATION_RELEASED_AT: &str = "kubernaut.ai/released-at";
/// Annotation: why the operator cancelled the run, one of the `CANCEL_` values. A cancelled run without it was not
/// cancelled by the operator.
pub const ANNOTATION_CANCEL_REASON: &str = "kubernaut.ai/cancel-reason";
/// Value of [`ANNOTATION_CANCEL_REASON`]: the `WorkflowExecution` that owned the run is gone.
pub const CANCEL_DELETED: &str = "WorkflowExecutionDeleted";
/// Value of [`ANNOTATION_CANCEL_REASON`]: a person set `spec.cancellation`.
pub const CANCEL_REQUESTED: &str = "CancellationRequested";
/// Value of [`ANNOTATION_CANCEL_REASON`]: the run was released, and nothing of it started within the start deadline.
pub const CANCEL_NOT_STARTED: &str = "StartDeadlineExceeded";
/// Value of [`ANNOTATION_CANCEL_REASON`]: the run was not done a minute after its time-out.
pub const CANCEL_TIMED_OUT: &str = "DeadlineExceeded";
/// Annotation: when the operator asked Tekton to cancel the run.
pub const ANNOTATION_CANCELLED_AT: &str = "kubernaut.ai/cancelled-at";
/// Annotation: how often the operator has asked Tekton to cancel the run, if more than once.
pub const ANNOTATION_CANCEL_ASKED: &str = "kubernaut.ai/cancel-asked";

/// Label on a `WorkflowExecution`: name of the `WorkflowSchedule` whose child it is. It is meant for people and their
/// selectors. An execution is a child because of its `spec.remediationRequestRef`, not because of this label.
pub const LABEL_SCHEDULE: &str = "kubernaut.ai/schedule";
/// Annotation on a `WorkflowExecution` and its runs: the slot of its schedule that it was made for (RFC 3339).
pub const ANNOTATION_SCHEDULED_FOR: &str = "kubernaut.ai/scheduled-for";

/// Annotation on a namespace: no `WorkflowExecution` in the namespace starts, and none starts on a target in it. The
/// value is the reason, for people.
pub const ANNOTATION_PAUSED: &str = "kubernaut.ai/paused";
