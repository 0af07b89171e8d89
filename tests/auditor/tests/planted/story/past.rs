//! The past of a target, and what the operator and persons do because of it.

use serde_json::{Value, json};

use super::{NAMESPACE, OPERATOR, PERSON, Story, time, uid};

impl Story {
    /// Plays an execution that fails after something ran.
    pub(crate) fn breaks(&mut self, name: &str, target: &str, workflow: &str, number: u64) {
        self.wfe_of(name, target, workflow);
        self.start(name, number);
        self.work(name, number);
        self.work_ends(name, number, "False");
        self.fail(name, "Unknown", true);
    }

    /// Plays an execution whose run the API server refuses to create.
    pub(crate) fn stalls(&mut self, name: &str, target: &str, number: u64) {
        self.wfe_of(name, target, name);
        self.is_refused(name, number);
    }

    pub(crate) fn is_refused(&mut self, name: &str, number: u64) {
        let object = self.run_object(name, number);
        self.ask(OPERATOR, "create", "", &object, object.clone(), 403);
        self.fail(name, "ResourceExhausted", false);
        self.correct(name, |status| status["runSequence"] = json!(number));
    }

    /// Plays an execution that is decided after its `startBefore`.
    pub(crate) fn comes_too_late(&mut self, name: &str, target: &str) {
        self.wfe(name, target);
        self.fail(name, "DeadlineExceeded", false);
        let failures = self.failures.get_mut(target).unwrap();
        *failures -= 1;
        let counted = json!(*failures);
        self.correct(name, |status| {
            status["consecutiveFailures"] = counted;
            status.as_object_mut().unwrap().remove("nextAllowedExecution");
        });
    }

    /// Plays an execution that a person cancels before its turn, and that does not count.
    pub(crate) fn is_cancelled(&mut self, name: &str, target: &str) {
        self.comes_too_late(name, target);
        self.correct(name, |status| {
            status["failureDetails"]["reason"] = json!("Unknown");
            status["conditions"] = json!([{"type": "Succeeded", "status": "False", "reason": "Cancelled"}]);
        });
    }

    /// Changes the last write afterwards.
    pub(crate) fn correct(&mut self, name: &str, how: impl FnOnce(&mut Value)) {
        let status = &mut self.changes.last_mut().unwrap().object["status"];
        how(status);
        let status = status.clone();
        self.objects.get_mut(&uid(name)).unwrap()["status"] = status;
    }

    /// Clears a target as a person.
    pub(crate) fn clear(&mut self, name: &str) {
        let clearance = json!({"reason": "looked", "clearedBy": PERSON});
        self.change(PERSON, &uid(name), "", Value::Null, |wfe| wfe["spec"]["clearance"] = clearance);
    }

    /// Records the effect of a clearance as the operator.
    pub(crate) fn record_clearance(&mut self, name: &str, effective: bool) {
        let status = if effective {
            json!({"clearance": {"clearedBy": PERSON, "clearedAt": self.now(), "reason": "looked"}})
        } else {
            json!({"conditions": [{"type": "ClearanceIneffective", "status": "True"}]})
        };
        self.write(name, &status);
    }

    /// Lets time pass until this many seconds after the end of another execution.
    pub(crate) fn await_time(&mut self, seconds: u64, after: &str) {
        let ended = self.end_of(after);
        assert!(ended + seconds >= self.version, "it is later than that");
        self.version = ended + seconds;
    }

    /// Gives an execution of a workflow its turn, this many seconds after the end of another execution.
    pub(crate) fn turn(
        &mut self,
        (name, target, workflow, number): (&str, &str, &str, u64),
        seconds: u64,
        after: &str,
    ) {
        self.wfe_of(name, target, workflow);
        self.create(name, number);
        self.await_time(seconds, after);
        self.commit(name, number);
    }

    /// Skips an execution because of an earlier execution.
    pub(crate) fn skip_after(&mut self, name: &str, reason: &str, other: &str, remaining: Option<&str>) {
        let mut recent = self.recent(other);
        if let Some(remaining) = remaining {
            recent["cooldownRemaining"] = json!(remaining);
        }
        self.skip_for(name, reason, &json!({"recentRemediation": recent}));
    }

    /// Returns the fields of a skip about an earlier execution.
    pub(crate) fn recent(&self, name: &str) -> Value {
        let wfe = self.object(&uid(name));
        json!({
            "namespace": NAMESPACE,
            "name": name,
            "workflowId": wfe["spec"]["workflowRef"]["workflowId"],
            "completedAt": wfe["status"]["completionTime"],
            "outcome": wfe["status"]["phase"],
            "targetResource": self.target(name),
        })
    }

    fn end_of(&self, name: &str) -> u64 {
        let ended = &self.object(&uid(name))["status"]["completionTime"];
        (0..=self.version).find(|seconds| *ended == time(*seconds)).unwrap()
    }
}
