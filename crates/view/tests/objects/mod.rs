//! Objects as the API server sends them, with every field that it adds, for measurements of the index.

use serde_json::{Value, json};
use wfe_core::target::TargetName;

/// The namespace of the executions.
const NAMESPACE: &str = "kubernaut-system";
/// The namespace of the runs.
pub(crate) const EXECUTION_NAMESPACE: &str = "kubernaut-workflows";

const EXECUTION: u16 = 0xe;
const RUN: u16 = 0xa;
const TASK_RUN: u16 = 0xb;
const POD: u16 = 0xc;
const SCHEDULE: u16 = 0xd;

/// The name of every schedule here. A real schedule has a unique name in its namespace.
const SCHEDULE_NAME: &str = "remediation-7c9f4d2b";

/// Returns a uid with digits as random as those from the API server.
fn uid(kind: u16, number: u32, part: u32) -> String {
    let scattered = number.wrapping_mul(0x9e37_79b9);
    format!("{scattered:08x}-7a0e-4b9f-{kind:04x}-5d0a{part:08x}")
}

fn name(number: u32) -> String {
    format!("{SCHEDULE_NAME}-{number}") // as if created for the slot of this second
}

fn run_name(target: &str, number: u32) -> String {
    TargetName::parse(target).map(|target| target.chain().run(u64::from(number) + 1)).unwrap_or_default()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
           "lastTransitionTime": "2026-11-22T00:36:19Z"})
}

/// Returns an undecided execution.
pub(crate) fn execution(number: u32, target: &str) -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {
            "name": name(number),
            "namespace": NAMESPACE,
            "uid": uid(EXECUTION, number, 0),
            "resourceVersion": (1_834_001 + number).to_string(),
            "generation": 1,
            "creationTimestamp": "2026-11-22T00:36:10Z",
            "labels": {"kubernaut.ai/remediation-request": "rr-payment-api-oom-1", "kubernaut.ai/component": "executor"},
            "managedFields": [{
                "apiVersion": "kubernaut.ai/v1alpha1", "fieldsType": "FieldsV1", "manager": "remediation-orchestrator",
                "operation": "Update", "time": "2026-11-22T00:36:10Z",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:kubernaut.ai/component": {}}}, "f:spec": {
                    ".": {}, "f:parameters": {".": {}, "f:MEMORY_LIMIT": {}, "f:REPLICAS": {}}, "f:targetResource": {},
                    "f:workflowRef": {".": {}, "f:containerImage": {}, "f:version": {}, "f:workflowId": {}}}},
            }],
        },
        "spec": {
            "remediationRequestRef": {"name": "rr-payment-api-oom-1", "namespace": NAMESPACE},
            "workflowRef": {
                "workflowId": "increase-memory-conservative", "version": "1.0.0",
                "containerImage": "registry.example/workflows/increase-memory:1.0.0",
                "containerDigest": format!("sha256:{}", "ab".repeat(32)),
            },
            "targetResource": target,
            "parameters": {"MEMORY_LIMIT": "512Mi", "REPLICAS": "3"},
            "confidence": 0.92,
            "rationale": "the pod was killed for its memory three times within the last hour",
            "executionConfig": {"timeout": "30m0s", "serviceAccountName": "kubernaut-workflow-runner"},
        },
    })
}

/// Returns an execution that is committed to its run.
pub(crate) fn running(number: u32, target: &str) -> Value {
    let mut object = execution(number, target);
    object["status"] = json!({
        "phase": "Running", "observedGeneration": 1, "target": target, "startTime": "2026-11-22T00:36:11Z",
        "pipelineRunRef": {"name": run_name(target, number), "uid": uid(RUN, number, 0), "namespace": EXECUTION_NAMESPACE},
        "runSequence": number + 1, "consecutiveFailures": 0,
        "conditions": [
            condition("TargetLocked", "True", "Held", &format!("PipelineRun {} holds the target", run_name(target, number))),
            condition("Succeeded", "Unknown", "Running", "the workflow is running"),
        ],
    });
    object
}

/// Returns an execution that has ended. Two of three are Completed; the others are Failed before anything ran.
pub(crate) fn ended(number: u32, target: &str) -> Value {
    let mut object = running(number, target);
    let failed = number % 3 == 1;
    let message = "Failed to pull the image registry.example/workflows/tools:1.0.0: not found";
    let status = &mut object["status"];
    status["phase"] = if failed { "Failed" } else { "Completed" }.into();
    status["completionTime"] = "2026-11-22T00:36:19Z".into();
    status["duration"] = "8s".into();
    if failed {
        status["consecutiveFailures"] = 1.into();
        status["nextAllowedExecution"] = "2026-11-22T00:37:19Z".into();
        status["failureReason"] = message.into();
        status["failureDetails"] = json!({
            "failedTaskIndex": 0, "failedTaskName": "check", "failedStepName": "run", "reason": "ImagePullBackOff",
            "message": message, "failedAt": "2026-11-22T00:36:19Z", "executionTimeBeforeFailure": "8s",
            "naturalLanguageSummary": "Workflow 'increase-memory-conservative' failed before anything ran.",
            "wasExecutionFailure": false, "requiresManualReview": false,
            "fingerprint": "ImagePullBackOff/registry/registry.example", "sharedOutage": true,
        });
    }
    status["conditions"] = json!([
        condition("TargetLocked", "False", "Free", "the run has ended and the target is free"),
        if failed {
            condition("Succeeded", "False", "ImagePullBackOff", message)
        } else {
            condition("Succeeded", "True", "Completed", "the workflow completed")
        },
        condition(
            "Started",
            if failed { "False" } else { "True" },
            if failed { "OnlyWaited" } else { "StepRunning" },
            "step run of TaskRun wfe-ac45b7d6911e97a5-1-check was seen running, since 2026-11-22T00:36:12Z"
        ),
    ]);
    object
}

/// Returns an ended execution that a schedule created.
pub(crate) fn child(number: u32, target: &str) -> Value {
    let mut object = ended(number, target);
    object["spec"]["remediationRequestRef"] = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": SCHEDULE_NAME,
        "uid": uid(SCHEDULE, number, 0),
    });
    object
}

/// Returns a schedule that has recorded the end of its child.
pub(crate) fn schedule(number: u32, target: &str) -> Value {
    let child = child(number, target);
    let time = |second: u32| format!("1970-01-01T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60);
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowSchedule",
        "metadata": {
            "name": SCHEDULE_NAME, "namespace": NAMESPACE, "uid": uid(SCHEDULE, number, 0), "generation": 3,
            "resourceVersion": (1_894_001 + number).to_string(), "creationTimestamp": "1970-01-01T00:00:00Z",
        },
        "spec": {
            "cron": "30 2 * * MON-FRI", "timeZone": "Europe/Berlin", "history": {"successful": 2, "failed": 5},
            "template": {"metadata": {"labels": {"team": "payment"}}, "spec": {
                "workflowRef": child["spec"]["workflowRef"], "targetResource": target, "parameters": {"REPLICAS": "3"},
            }},
        },
        "status": {
            "observedGeneration": 3, "revision": "00000000000000ff", "plannedFrom": "1969-12-31T23:59:59Z",
            "failureCount": 1,
            "lastRun": {
                "name": name(number), "slot": time(number), "startedAt": time(number), "endedAt": time(number + 8),
                "outcome": "Failed", "reason": "ImagePullBackOff", "message": "WorkflowExecution kubernaut-system/remediation: ImagePullBackOff",
            },
            "lastSuccessTime": "1970-01-01T00:00:00Z", "nextRunTime": time(number + 60), "nextRunReason": "Cron",
            "conditions": [condition("Ready", "True", "Accepted", "its spec can be used"),
                           condition("Held", "False", "Released", "nothing holds it")],
        },
    })
}

/// Returns the labels and annotations that a run and its descendants copy from the execution.
fn copied(number: u32, target: &str) -> Value {
    json!({
        "kubernaut.ai/target-resource": target,
        "kubernaut.ai/workflow-execution": format!("{NAMESPACE}/{}", name(number)),
        "kubernaut.ai/workflow-execution-uid": uid(EXECUTION, number, 0),
        "kubernaut.ai/workflow-id": "increase-memory-conservative",
    })
}

/// Returns the released run of an execution. If the run has ended, its status has the outcome.
pub(crate) fn run(number: u32, target: &str, tasks: u32, has_ended: bool) -> Value {
    let failed = number % 3 == 1;
    let (status, reason) = match (has_ended, failed) {
        (false, _) => ("Unknown", "Running"),
        (true, true) => ("False", "Failed"),
        (true, false) => ("True", "Succeeded"),
    };
    let message = format!("Tasks Completed: {tasks} (Failed: 0, Cancelled 0), Skipped: 0");
    let specs: Vec<Value> = (0..tasks).map(|task| json!({"name": format!("task-{task}")})).collect();
    let mut run = json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {
            "name": run_name(target, number), "namespace": EXECUTION_NAMESPACE, "uid": uid(RUN, number, 0),
            "resourceVersion": (1_934_001 + number).to_string(), "creationTimestamp": "2026-11-22T00:36:10Z",
            "labels": {"kubernaut.ai/workflow-execution": name(number)}, "annotations": copied(number, target),
        },
        "spec": {
            "pipelineRef": {"resolver": "bundles"}, "timeouts": {"pipeline": "30m0s"},
            "params": [{"name": "MEMORY_LIMIT", "value": "512Mi"}, {"name": "TARGET_RESOURCE", "value": target}],
        },
        "status": {
            "startTime": "2026-11-22T00:36:11Z",
            "pipelineSpec": {"params": [{"name": "MEMORY_LIMIT"}, {"name": "TARGET_RESOURCE"}], "tasks": specs},
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason, "message": message,
                            "lastTransitionTime": "2026-11-22T00:36:19Z"}],
        },
    });
    if has_ended {
        run["status"]["completionTime"] = "2026-11-22T00:36:19Z".into();
    }
    run
}

fn made_for(run: &str, kind: &str, part: (&str, u32, u32), annotations: &Value) -> Value {
    let (task, number, at) = part;
    let (task_run, made) = (format!("{run}-{task}"), kind == "Pod");
    let labels = json!({
        "tekton.dev/pipelineRun": run, "tekton.dev/pipelineRunUID": uid(RUN, number, 0), "tekton.dev/pipelineTask": task,
        "tekton.dev/taskRun": task_run, "tekton.dev/taskRunUID": uid(TASK_RUN, number, at),
    });
    json!({
        "apiVersion": if made { "v1" } else { "tekton.dev/v1" }, "kind": kind,
        "metadata": {
            "name": if made { format!("{task_run}-pod") } else { task_run.clone() }, "namespace": EXECUTION_NAMESPACE,
            "uid": uid(if made { POD } else { TASK_RUN }, number, at), "resourceVersion": "1935001",
            "creationTimestamp": "2026-11-22T00:36:11Z", "labels": labels, "annotations": annotations,
        },
    })
}

/// Returns a TaskRun of a run. Its step runs or waits.
pub(crate) fn task_run(number: u32, target: &str, task: u32, runs: bool) -> Value {
    let (run, name) = (run_name(target, number), format!("task-{task}"));
    let mut object = made_for(&run, "TaskRun", (&name, number, task), &copied(number, target));
    let state = if runs { json!({"running": {"startedAt": "2026-11-22T00:36:12Z"}}) } else { json!({"waiting": {}}) };
    let mut step = json!({"name": "run", "container": "step-run"});
    step.as_object_mut().into_iter().for_each(|step| step.extend(state.as_object().cloned().unwrap_or_default()));
    let reason = if runs { "Running" } else { "Pending" };
    object["status"] = json!({
        "podName": format!("{run}-{name}-pod"), "steps": [step],
        "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": reason, "message": "Not all Steps have finished"}],
    });
    object
}

/// Returns the pod of a TaskRun. Its container runs or waits.
pub(crate) fn pod(number: u32, target: &str, task: u32, runs: bool) -> Value {
    let (run, name) = (run_name(target, number), format!("task-{task}"));
    let mut object = made_for(&run, "Pod", (&name, number, task), &copied(number, target));
    let state = if runs {
        json!({"running": {"startedAt": "2026-11-22T00:36:12Z"}})
    } else {
        json!({"waiting": {"reason": "ContainerCreating"}})
    };
    object["status"] = json!({
        "phase": if runs { "Running" } else { "Pending" },
        "containerStatuses": [{"name": "step-run", "state": state, "ready": runs, "restartCount": 0}],
    });
    object
}

/// Returns a pod of typical size from a foreign Deployment in the execution namespace.
pub(crate) fn stranger_pod(number: u32) -> Value {
    let variables: Vec<Value> =
        (0..20).map(|n| json!({"name": format!("SETTING_{n}"), "value": "x".repeat(40)})).collect();
    let fields: Value = (0..60).map(|n| (format!("f:field-{n}"), json!({".": {}, "f:name": {}}))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("somebodys-{number}"), "namespace": EXECUTION_NAMESPACE, "uid": uid(POD, number, 1),
            "resourceVersion": "1935001", "creationTimestamp": "2026-11-22T00:36:11Z",
            "labels": {"app": "somebodys", "pod-template-hash": "7d9c5b6f4"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "somebodys-7d9c5b6f4",
                                 "uid": uid(POD, number, 2), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}],
        },
        "spec": {"containers": [{"name": "main", "image": "registry.example/somebodys:1", "env": variables}]},
        "status": {
            "phase": "Running",
            "conditions": [condition("Ready", "True", "", ""), condition("PodScheduled", "True", "", "")],
            "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0}],
        },
    })
}
