//! Executions with a retry policy, and the operator's writes about their attempts.

use serde_json::{Value, json};

use super::{OPERATOR, PERSON, Story, run, uid};

impl Story {
    /// Creates an execution with a retry policy.
    pub(crate) fn retrying(&mut self, name: &str, target: &str, retry: &Value) {
        self.wfe_with(name, target, "restart", &json!({"retry": retry}));
    }

    /// Returns the attempts in the status of an execution.
    pub(crate) fn attempts(&self, name: &str) -> Vec<Value> {
        self.object(&uid(name))["status"]["attempts"].as_array().cloned().unwrap_or_default()
    }

    /// Makes run `number` the run of the last attempt in the status, or of the first if there is none. Sets the
    /// execution Running.
    pub(crate) fn commit_attempt(&mut self, name: &str, number: u64) {
        let mut attempts = self.attempts(name);
        if attempts.is_empty() {
            attempts.push(json!({"attempt": 1}));
        }
        let last = attempts.last_mut().unwrap();
        last["pipelineRun"] = self.run_object(name, number)["metadata"]["name"].clone();
        last["startTime"] = json!(self.now());
        self.commit(name, number);
        self.correct(name, |status| {
            status["attempts"] = json!(attempts);
            status["conditions"] = json!([{"type": "Retrying", "status": "False", "reason": "Running"}]);
        });
    }

    /// Creates, commits and releases the run of an attempt.
    pub(crate) fn begin_attempt(&mut self, name: &str, number: u64) {
        self.create(name, number);
        self.commit_attempt(name, number);
        self.release(name, number);
    }

    /// Plays an attempt that fails before anything runs.
    pub(crate) fn try_in_vain(&mut self, name: &str, number: u64) {
        self.begin_attempt(name, number);
        self.run_ends(name, number, "False");
    }

    /// Records that the current attempt has failed, and that another follows after this many seconds.
    pub(crate) fn try_again(&mut self, name: &str, started: &str, delay: u64) {
        let next = json!({"delay": format!("{delay}s"), "notBefore": self.later(delay)});
        self.try_again_with(name, started, &next);
    }

    pub(crate) fn try_again_with(&mut self, name: &str, started: &str, next: &Value) {
        let mut attempts = self.attempts(name);
        end_last(&mut attempts, started, "ImagePullBackOff", &self.now());
        let mut entry = next.clone();
        entry["attempt"] = json!(attempts.len() + 1);
        attempts.push(entry);
        let retrying = json!({
            "type": "Retrying", "status": "True", "reason": "Backoff", "lastTransitionTime": self.now(),
        });
        self.write(name, &json!({"attempts": attempts, "conditions": [retrying]}));
    }

    /// Records a failed attempt, because the API server has refused to create its run.
    pub(crate) fn is_refused_attempt(&mut self, name: &str, number: u64, delay: u64) {
        let object = self.run_object(name, number);
        self.ask(OPERATOR, "create", "", &object, object.clone(), 403);
        // The condition `Retrying` is already true, and keeps its transition time.
        let conditions = self.object(&uid(name))["status"]["conditions"].clone();
        self.try_again(name, "False", delay);
        self.correct(name, |status| status["conditions"] = conditions);
    }

    /// Fails the execution together with its current attempt.
    pub(crate) fn fail_attempt(&mut self, name: &str, started: &str) {
        let mut attempts = self.attempts(name);
        end_last(&mut attempts, started, "ImagePullBackOff", &self.now());
        let ran = attempts.iter().any(|attempt| attempt["started"] != "False");
        self.fail(name, "ImagePullBackOff", ran);
        self.correct(name, |status| status["attempts"] = json!(attempts));
    }

    pub(crate) fn complete_attempt(&mut self, name: &str) {
        let mut attempts = self.attempts(name);
        end_last(&mut attempts, "True", "", &self.now());
        attempts.last_mut().unwrap().as_object_mut().unwrap().remove("reason");
        self.complete(name);
        self.correct(name, |status| status["attempts"] = json!(attempts));
    }

    /// Cancels an execution as a person.
    pub(crate) fn ask_to_cancel(&mut self, name: &str) {
        let cancellation = json!({"reason": "enough", "requestedBy": PERSON});
        self.change(PERSON, &uid(name), "", Value::Null, |wfe| wfe["spec"]["cancellation"] = cancellation);
    }

    /// Ends a cancelled execution, which waits or runs.
    pub(crate) fn is_cancelled_attempt(&mut self, name: &str) {
        self.fail(name, "Unknown", false);
        let failures = self.failures.get_mut(&self.target(name)).unwrap();
        *failures -= 1;
        let counted = json!(*failures);
        self.correct(name, |status| {
            status["consecutiveFailures"] = counted;
            status.as_object_mut().unwrap().remove("nextAllowedExecution");
            status["conditions"] = json!([{"type": "Succeeded", "status": "False", "reason": "Cancelled"}]);
        });
    }

    /// Deletes the run of an execution as another user.
    pub(crate) fn erase(&mut self, owner: &str, number: u64) {
        self.remove(PERSON, &run(owner, number), &Value::Null);
    }
}

/// Records the end of the last attempt.
fn end_last(attempts: &mut [Value], started: &str, reason: &str, now: &str) {
    let last = attempts.last_mut().unwrap();
    last["completionTime"] = json!(now);
    last["started"] = json!(started);
    last["reason"] = json!(reason);
}
