//! Schedules: what persons request, and what the operator creates and writes.

use serde_json::{Value, json};

use super::{NAMESPACE, OPERATOR, PERSON, Story, time, uid};

/// The time of version 0, in seconds of the Unix epoch.
const BEGIN: u64 = 1_767_225_600;

impl Story {
    /// Creates a schedule as a person.
    pub(crate) fn schedule(&mut self, name: &str, target: &str, more: &Value) {
        self.schedule_in(NAMESPACE, name, target, more);
    }

    /// Creates a schedule in a given namespace as a person.
    pub(crate) fn schedule_in(&mut self, namespace: &str, name: &str, target: &str, more: &Value) {
        let mut object = json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowSchedule",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"interval": "1m", "template": {"spec": {
                "targetResource": target,
                "workflowRef": {"workflowId": "restart", "version": "1", "containerImage": "registry.example/restart:1"},
            }}},
        });
        object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.add(PERSON, object, &uid(name));
    }

    /// Changes the spec of a schedule as a person.
    pub(crate) fn edit(&mut self, name: &str, more: &Value) {
        self.edit_by(PERSON, name, more);
    }

    pub(crate) fn edit_by(&mut self, user: &str, name: &str, more: &Value) {
        self.change(user, &uid(name), "", Value::Null, |schedule| {
            schedule["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        });
    }

    /// Begins a new plan of a schedule, and returns its beginning.
    pub(crate) fn begin_plan(&mut self, name: &str) -> u64 {
        let revision = json!(format!("{}", self.version));
        self.write(name, &json!({"plannedFrom": self.now(), "revision": revision, "failureCount": 0}));
        self.version - 1
    }

    /// Lets time pass until this version.
    pub(crate) fn go_on_to(&mut self, version: u64) {
        assert!(version >= self.version, "it is later than that");
        self.version = version;
    }

    /// Returns the name of a slot's child. The slot is given as a version.
    pub(crate) fn child_name(schedule: &str, slot: u64) -> String {
        format!("{schedule}-{}", BEGIN + slot)
    }

    /// Creates the child of a slot as the operator, as soon as the slot is due. Returns the child's name.
    pub(crate) fn child(&mut self, schedule: &str, slot: u64) -> String {
        // The write takes one second.
        self.version = self.version.max(slot.saturating_sub(1));
        self.child_now(schedule, slot)
    }

    /// Creates a child as the operator, even if its slot is not due.
    pub(crate) fn child_now(&mut self, schedule: &str, slot: u64) -> String {
        let name = Self::child_name(schedule, slot);
        let object = self.child_object(schedule, slot);
        self.add(OPERATOR, object, &uid(&name));
        name
    }

    pub(crate) fn child_object(&self, schedule: &str, slot: u64) -> Value {
        let made_by = self.object(&uid(schedule));
        let mut spec = made_by["spec"]["template"]["spec"].clone();
        spec["remediationRequestRef"] = json!({
            "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": schedule, "uid": uid(schedule)});
        spec["startBefore"] = json!(time(slot + 3_600));
        json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowExecution",
            "metadata": {
                "name": Self::child_name(schedule, slot),
                "namespace": made_by["metadata"]["namespace"],
                "labels": {"kubernaut.ai/schedule": schedule},
                "annotations": {"kubernaut.ai/scheduled-for": time(slot)},
            },
            "spec": spec,
        })
    }

    /// Records in the status that a child is at work.
    pub(crate) fn names(&mut self, schedule: &str, slot: u64) {
        let run = json!({"name": Self::child_name(schedule, slot), "slot": time(slot), "startedAt": time(slot)});
        self.write(schedule, &json!({"lastRun": run}));
    }

    /// Records in the status the outcome of a slot.
    pub(crate) fn records(&mut self, schedule: &str, slot: u64, outcome: &str, count: u64) {
        let name = Self::child_name(schedule, slot);
        let ended = self.objects.get(&uid(&name)).map(|child| child["status"]["completionTime"].clone());
        let ended = ended.filter(serde_json::Value::is_string).unwrap_or(json!(self.now()));
        let run =
            json!({"name": name, "slot": time(slot), "startedAt": time(slot), "endedAt": ended, "outcome": outcome});
        self.write(schedule, &json!({"lastRun": run, "failureCount": count}));
    }

    /// Lets a child complete, and its schedule record the outcome.
    pub(crate) fn succeeds(&mut self, schedule: &str, slot: u64, number: u64) {
        let name = self.child(schedule, slot);
        self.names(schedule, slot);
        self.start(&name, number);
        self.work(&name, number);
        self.work_ends(&name, number, "True");
        self.complete(&name);
        self.records(schedule, slot, "Completed", 0);
    }

    /// Lets a child fail because its run is refused, which counts only for its schedule. Returns when the child ended.
    pub(crate) fn stumbles(&mut self, schedule: &str, slot: u64, number: u64, count: u64) -> u64 {
        let name = self.child(schedule, slot);
        self.names(schedule, slot);
        let ended = self.is_refused_uncounted(&name, number);
        self.records(schedule, slot, "Failed", count);
        ended
    }

    pub(crate) fn is_refused_uncounted(&mut self, name: &str, number: u64) -> u64 {
        let failures = self.failures.clone();
        let ended = self.version;
        self.is_refused(name, number);
        self.failures = failures;
        let counted = self.failures.get(&self.target(name)).copied().unwrap_or(0);
        self.correct(name, |status| {
            status["consecutiveFailures"] = json!(counted);
            status.as_object_mut().unwrap().remove("nextAllowedExecution");
        });
        ended
    }
}
