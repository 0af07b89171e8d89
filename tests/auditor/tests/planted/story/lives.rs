//! Complete lives of executions, and a story without a violation.

use serde_json::{Value, json};
use wfe_auditor::Policy;

use super::{API, EXECUTION_NAMESPACE, NODE, OPERATOR, PERSON, Story, TEKTON, run};

impl Story {
    /// Creates, commits and releases the run of an execution.
    pub(crate) fn start(&mut self, name: &str, number: u64) {
        self.create(name, number);
        self.commit(name, number);
        self.release(name, number);
    }

    /// Plays the complete life of an execution on a free target.
    pub(crate) fn live(&mut self, name: &str, target: &str, number: u64) {
        self.live_of(name, target, "restart", number);
    }

    pub(crate) fn live_of(&mut self, name: &str, target: &str, workflow: &str, number: u64) {
        self.wfe_of(name, target, workflow);
        self.start(name, number);
        self.work(name, number);
        self.work_ends(name, number, "True");
        self.complete(name);
    }

    /// Returns a story in which every decision is made once and correctly.
    pub(crate) fn good() -> Self {
        let mut story = Self::by(Policy::default());
        story.strangers();
        // One execution runs, another one is skipped meanwhile, and a third runs afterwards.
        story.wfe("first", NODE);
        story.create("first", 1);
        story.change(TEKTON, &run("first", 1), "status", Value::Null, |run| {
            run["status"] = json!({"conditions": [{"type": "Succeeded", "status": "Unknown"}]});
        });
        story.commit("first", 1);
        story.wfe("busy", NODE);
        story.skip("busy", "first");
        story.release("first", 1);
        story.work("first", 1);
        story.work_ends("first", 1, "True");
        story.complete("first");
        story.wfe_of("broken", NODE, "scale");
        story.start("broken", 2);
        story.work("broken", 2);
        story.work_ends("broken", 2, "False");
        story.fail("broken", "OOMKilled", true);
        // A terminal status may still record the effect of a clearance.
        story
            .write("broken", &json!({"conditions": [{"type": "Blocked", "status": "False"}], "observedGeneration": 2}));
        story.wfe("repeated", NODE);
        story.skip_after("repeated", "PreviousExecutionFailed", "broken", None);
        story.rivals();
        story.failures();
        story
    }

    /// Two operators create runs at the same time, and one of them withdraws its run. The holder is deleted, and its
    /// run drains.
    fn rivals(&mut self) {
        self.wfe("older", API);
        self.wfe("younger", API);
        self.create("older", 1);
        self.create("younger", 2);
        self.commit("older", 1);
        self.delete_run("younger", 2);
        self.skip("younger", "older");
        self.release("older", 1);
        self.work("older", 1);
        self.delete_wfe("older");
        self.cancel("older", 1);
        self.task_ends("older", 1);
        self.run_ends("older", 1, "False");
        self.wfe("drained", API);
        // The holder is deleted, so only its run still shows when it started.
        let conflict = json!({
            "name": "ops/older",
            "workflowId": "restart",
            "startedAt": self.object(&run("older", 1))["metadata"]["creationTimestamp"],
            "targetResource": API,
        });
        self.skip_for("drained", "ResourceBusy", &json!({"conflictingWorkflow": conflict}));
        self.remove("kwok", "run-older-1-pod", &Value::Null);
        self.live("next", API, 2);
        self.remove("kwok", "run-older-1-task", &Value::Null);
        self.delete_run("older", 1);
    }

    /// Adds a refused create, a leftover, and a run that started nothing.
    fn failures(&mut self) {
        self.wfe("refused", API);
        let object = self.run_object("refused", 3);
        self.ask(OPERATOR, "create", "", &object, object.clone(), 403);
        self.fail("refused", "ResourceExhausted", false);
        self.wfe("vanished", API);
        self.create("vanished", 4);
        self.delete_wfe("vanished");
        self.delete_run("vanished", 4);
        self.wfe("unpulled", API);
        self.await_time(5 * 60, "refused");
        self.start("unpulled", 4);
        self.task("unpulled", 4);
        self.pod("unpulled", 4);
        self.task_ends("unpulled", 4);
        self.remove(TEKTON, "run-unpulled-4-pod", &Value::Null);
        self.run_ends("unpulled", 4, "False");
        self.fail("unpulled", "ImagePullBackOff", false);
    }

    /// Adds objects that do not concern the operator.
    fn strangers(&mut self) {
        for name in ["build", "wfe-ac45b7d6911e97a5-7"] {
            let object = json!({
                "kind": "PipelineRun",
                "metadata": {"name": name, "namespace": EXECUTION_NAMESPACE,
                    "labels": {"kubernaut.ai/run-sequence": "7"}},
                "spec": {},
            });
            self.add(PERSON, object, &format!("stranger-{name}"));
            let pod = json!({
                "kind": "Pod",
                "metadata": {"name": format!("{name}-pod"), "namespace": EXECUTION_NAMESPACE, "labels": {
                    "tekton.dev/pipelineRunUID": format!("stranger-{name}"), "kubernaut.ai/run-sequence": "7"}},
                "spec": {},
            });
            self.add(TEKTON, pod, &format!("stranger-{name}-pod"));
        }
    }
}
