//! The acts of persons, the operator and Tekton, one write each.

use serde_json::{Value, json};
use wfe_auditor::Change;
use wfe_core::target::TargetName;

use super::{EXECUTION_NAMESPACE, NAMESPACE, OPERATOR, PERSON, Story, TEKTON, run, uid};

// === impl Story: what persons do ===

impl Story {
    pub(crate) fn wfe(&mut self, name: &str, target: &str) {
        self.wfe_of(name, target, "restart");
    }

    pub(crate) fn wfe_of(&mut self, name: &str, target: &str, workflow: &str) {
        self.wfe_with(name, target, workflow, &json!({}));
    }

    /// Creates an execution with further fields in the spec.
    pub(crate) fn wfe_with(&mut self, name: &str, target: &str, workflow: &str, more: &Value) {
        let mut object = json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowExecution",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "targetResource": target,
                "workflowRef": {
                    "workflowId": workflow, "version": "1", "containerImage": format!("registry.example/{workflow}:1"),
                },
            },
        });
        object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.add(PERSON, object, &uid(name));
    }

    pub(crate) fn delete_wfe(&mut self, name: &str) {
        self.remove(PERSON, &uid(name), &Value::Null);
    }
}

// === impl Story: what the operator does ===

impl Story {
    /// Creates a pending run.
    pub(crate) fn create(&mut self, owner: &str, number: u64) {
        let object = self.run_object(owner, number);
        self.add(OPERATOR, object, &run(owner, number));
    }

    pub(crate) fn run_object(&self, owner: &str, number: u64) -> Value {
        let target = self.target(owner);
        json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun",
            "metadata": {
                "name": TargetName::parse(&target).map_or_else(
                    |_| format!("wfe-0000000000000000-{number}"),
                    |target| target.chain().run(number),
                ),
                "namespace": EXECUTION_NAMESPACE,
                "labels": {
                    "app.kubernetes.io/managed-by": "wfe-operator",
                    "kubernaut.ai/run-sequence": number.to_string(),
                },
                "annotations": {
                    "kubernaut.ai/target-resource": target,
                    "kubernaut.ai/workflow-execution": self.full_name(owner),
                    "kubernaut.ai/workflow-execution-uid": uid(owner),
                    "kubernaut.ai/workflow-id": self.first(owner)["spec"]["workflowRef"]["workflowId"],
                },
            },
            "spec": {"status": "PipelineRunPending"},
        })
    }

    /// Commits to a run.
    pub(crate) fn commit(&mut self, name: &str, number: u64) {
        self.commit_to(name, name, number, number);
    }

    pub(crate) fn commit_to(&mut self, name: &str, owner: &str, number: u64, sequence: u64) {
        let run_name = self.run_object(owner, number)["metadata"]["name"].clone();
        self.write(
            name,
            &json!({
                "target": self.target(name),
                "phase": "Running",
                "startTime": self.objects[&uid(name)]["status"].get("startTime").cloned().unwrap_or(json!(self.now())),
                "pipelineRunRef": {"name": run_name, "uid": run(owner, number)},
                "runSequence": sequence,
                "consecutiveFailures": self.counted(name),
            }),
        );
    }

    /// Returns the consecutive failures on an execution's target; null if the target is invalid.
    fn counted(&self, name: &str) -> Value {
        let target = self.target(name);
        TargetName::parse(&target).map_or(Value::Null, |_| json!(self.failures.get(&target).unwrap_or(&0)))
    }

    /// Releases a run.
    pub(crate) fn release(&mut self, owner: &str, number: u64) {
        self.release_by(OPERATOR, owner, number);
    }

    pub(crate) fn release_by(&mut self, user: &str, owner: &str, number: u64) {
        let uid = run(owner, number);
        let sent = release_patch(&uid);
        self.change(user, &uid, "", sent, |run| {
            run["spec"].as_object_mut().unwrap().remove("status");
        });
    }

    pub(crate) fn cancel(&mut self, owner: &str, number: u64) {
        let uid = run(owner, number);
        let sent = json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/metadata/annotations/kubernaut.ai~1cancel-reason", "value": "Deleted"},
            {"op": "add", "path": "/spec/status", "value": "Cancelled"},
        ]);
        self.change(OPERATOR, &uid, "", sent, |run| {
            run["metadata"]["annotations"]["kubernaut.ai/cancel-reason"] = json!("Deleted");
            run["spec"]["status"] = json!("Cancelled");
        });
    }

    /// Deletes a run by uid and version as the operator.
    pub(crate) fn delete_run(&mut self, owner: &str, number: u64) {
        let uid = run(owner, number);
        let version = self.objects[&uid]["metadata"]["resourceVersion"].clone();
        self.remove(OPERATOR, &uid, &json!({"uid": uid, "resourceVersion": version}));
    }

    pub(crate) fn complete(&mut self, name: &str) {
        let now = self.now();
        self.failures.remove(&self.target(name));
        self.write(
            name,
            &json!({"phase": "Completed", "completionTime": now, "duration": "1s", "consecutiveFailures": 0}),
        );
    }

    pub(crate) fn fail(&mut self, name: &str, reason: &str, was_execution_failure: bool) {
        let (now, next) = if was_execution_failure {
            (self.now(), Value::Null)
        } else {
            let failures = self.failures.entry(self.target(name)).or_default();
            *failures += 1;
            let (base, max) = (self.policy.base_cooldown_period, self.policy.max_cooldown_period);
            let wait = (base.as_secs() << (*failures - 1).min(4)).min(max.as_secs());
            let limit = u64::from(self.policy.max_consecutive_failures);
            // If the failure exhausts its target, no time ends the block.
            let next = if limit > 0 && *failures >= limit { Value::Null } else { json!(self.later(wait)) };
            (self.now(), next)
        };
        self.write(
            name,
            &json!({
                "target": self.target(name),
                "phase": "Failed",
                "completionTime": now,
                "consecutiveFailures": self.counted(name),
                "nextAllowedExecution": next,
                "failureDetails": {
                    "reason": reason,
                    "message": "it broke",
                    "failedAt": now,
                    "wasExecutionFailure": was_execution_failure,
                    "requiresManualReview": was_execution_failure,
                },
            }),
        );
    }

    /// Skips an execution because of ResourceBusy.
    pub(crate) fn skip(&mut self, name: &str, holder: &str) {
        let started = self.objects.get(&uid(holder)).map_or(Value::Null, |wfe| wfe["status"]["startTime"].clone());
        let conflict = json!({
            "namespace": NAMESPACE,
            "name": holder,
            "workflowId": self.first(holder)["spec"]["workflowRef"]["workflowId"],
            "startedAt": started,
            "targetResource": self.target(name),
        });
        self.skip_for(name, "ResourceBusy", &json!({"conflictingWorkflow": conflict}));
    }

    pub(crate) fn skip_for(&mut self, name: &str, reason: &str, details: &Value) {
        let now = self.now();
        let mut all = json!({"reason": reason, "message": "no", "skippedAt": now});
        all.as_object_mut().unwrap().extend(details.as_object().unwrap().clone());
        let target = self.target(name);
        self.write(name, &json!({"target": target, "phase": "Skipped", "completionTime": now, "skipDetails": all}));
        let event = json!({"kind": "Event", "metadata": {"namespace": NAMESPACE, "name": format!("{name}.skipped")}});
        self.ask(OPERATOR, "create", "", &event, Value::Null, 201);
    }

    /// Merges fields into an execution's status, with the operator's preconditions.
    pub(crate) fn write(&mut self, name: &str, status: &Value) {
        self.write_by(OPERATOR, name, status);
    }

    pub(crate) fn write_by(&mut self, user: &str, name: &str, status: &Value) {
        let uid = uid(name);
        let version = self.objects[&uid]["metadata"]["resourceVersion"].clone();
        let sent = json!({"metadata": {"uid": uid, "resourceVersion": version}, "status": status});
        self.change(user, &uid, "status", sent, |wfe| {
            if wfe["status"].is_null() {
                wfe["status"] = json!({});
            }
            for (field, value) in status.as_object().unwrap() {
                if value.is_null() {
                    wfe["status"].as_object_mut().unwrap().remove(field);
                } else {
                    wfe["status"][field] = value.clone();
                }
            }
        });
    }

    /// Returns the namespace and name of an object.
    fn full_name(&self, name: &str) -> String {
        format!("{}/{name}", self.first(name)["metadata"]["namespace"].as_str().unwrap())
    }

    pub(crate) fn target(&self, name: &str) -> String {
        self.first(name)["spec"]["targetResource"].as_str().unwrap().to_owned()
    }

    /// Returns the first version of an execution, even if the execution is deleted.
    fn first(&self, name: &str) -> &Value {
        let is = |change: &&Change| change.object["metadata"]["uid"] == uid(name);
        self.changes.iter().find(is).map(|change| &change.object).unwrap()
    }
}

/// Returns the JSON patch that releases a run.
pub(crate) fn release_patch(uid: &str) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/spec/status", "value": "PipelineRunPending"},
        {"op": "remove", "path": "/spec/status"},
    ])
}

// === impl Story: what Tekton does ===

impl Story {
    /// Creates a TaskRun and a pod with a running step.
    pub(crate) fn work(&mut self, owner: &str, number: u64) {
        self.task(owner, number);
        self.pod(owner, number);
        self.step_runs(owner, number);
    }

    pub(crate) fn task(&mut self, owner: &str, number: u64) {
        let run = run(owner, number);
        let object = json!({
            "kind": "TaskRun",
            "metadata": {
                "name": format!("{run}-task"),
                "namespace": EXECUTION_NAMESPACE,
                "labels": {"tekton.dev/pipelineRunUID": run, "kubernaut.ai/run-sequence": number.to_string()},
                "ownerReferences": [{"kind": "PipelineRun", "uid": run, "controller": true}],
            },
            "spec": {},
        });
        self.add(TEKTON, object, &format!("{run}-task"));
    }

    pub(crate) fn pod(&mut self, owner: &str, number: u64) {
        let run = run(owner, number);
        // The pod lacks Tekton's label, but its TaskRun shows to which run it belongs.
        let object = json!({
            "kind": "Pod",
            "metadata": {
                "name": format!("{run}-pod"),
                "namespace": EXECUTION_NAMESPACE,
                "labels": {"kubernaut.ai/run-sequence": number.to_string()},
                "ownerReferences": [{"kind": "TaskRun", "uid": format!("{run}-task"), "controller": true}],
            },
            "spec": {},
            "status": {"phase": "Pending"},
        });
        self.add(TEKTON, object, &format!("{run}-pod"));
    }

    pub(crate) fn step_runs(&mut self, owner: &str, number: u64) {
        self.change("kwok", &format!("{}-pod", run(owner, number)), "status", Value::Null, |pod| {
            pod["status"] = json!({
                "phase": "Running",
                "containerStatuses": [{"name": "step-main", "state": {"running": {"startedAt": "now"}}}],
            });
        });
    }

    pub(crate) fn pod_ends(&mut self, owner: &str, number: u64) {
        self.change("kwok", &format!("{}-pod", run(owner, number)), "status", Value::Null, |pod| {
            pod["status"]["phase"] = json!("Succeeded");
        });
    }

    pub(crate) fn task_ends(&mut self, owner: &str, number: u64) {
        self.change(TEKTON, &format!("{}-task", run(owner, number)), "status", Value::Null, |task| {
            task["status"] = json!({"conditions": [{"type": "Succeeded", "status": "False"}]});
        });
    }

    /// Writes the end of a run as Tekton does: True or False.
    pub(crate) fn run_ends(&mut self, owner: &str, number: u64, how: &str) {
        self.change(TEKTON, &run(owner, number), "status", Value::Null, |run| {
            run["status"] = json!({"conditions": [{"type": "Succeeded", "status": how}]});
        });
    }

    /// Ends all objects of a run, in order.
    pub(crate) fn work_ends(&mut self, owner: &str, number: u64, how: &str) {
        self.pod_ends(owner, number);
        self.task_ends(owner, number);
        self.run_ends(owner, number, how);
    }
}
