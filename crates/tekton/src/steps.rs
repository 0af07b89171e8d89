//! Reads the steps in a task's pod, and the run or task that an object was created for. The plugin uses these functions
//! to show one run.

use serde_json::Value;

use crate::object::{Object, RUN_LABEL, TASK_RUN, list, text};

/// The prefix of a container that is a step. Other containers are sidecars, Tekton's own, or injected.
const STEP_PREFIX: &str = "step-";

/// A step of a task, in one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStep {
    /// The name of the task in the pipeline.
    pub task: String,
    /// The name of the step in the task.
    pub name: String,
    /// The container of the step in the pod.
    pub container: String,
    /// The progress of the step.
    pub state: StepState,
}

/// The progress of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepState {
    /// The container has not started, for this reason; the reason is empty if the pod gives none.
    Waiting(String),
    /// The container runs. Tekton starts the containers of all steps together, so the step itself may still wait.
    Running,
    /// The step has ended with this exit code.
    Ended(i64),
    /// The container has ended, but Tekton skipped the step, because an earlier step had failed.
    Skipped,
}

impl StepState {
    /// Returns whether the container has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Skipped)
    }

    /// Returns whether the container may have written a log: it has started, and the step was not skipped.
    #[must_use]
    pub fn has_log(&self) -> bool {
        matches!(self, Self::Running | Self::Ended(_))
    }

    /// Returns the exit code of a step that failed.
    #[must_use]
    pub fn failed_with(&self) -> Option<i64> {
        match self {
            Self::Ended(code) => Some(*code).filter(|code| *code != 0),
            Self::Waiting(_) | Self::Running | Self::Skipped => None,
        }
    }
}

/// Returns the steps of a pod, in the order in which they run.
#[must_use]
pub fn steps_of(pod: Object<'_>) -> Vec<PodStep> {
    let statuses = &pod.data["status"];
    let containers = list(&pod.data["spec"], "containers").filter_map(|it| text(it, "name"));
    let step = |container: &str| {
        let name = container.strip_prefix(STEP_PREFIX)?;
        let status = list(statuses, "containerStatuses").find(|it| text(it, "name") == Some(container));
        let state = state_of(status.map_or(&Value::Null, |it| &it["state"]));
        Some(PodStep { task: pod.task().to_owned(), name: name.to_owned(), container: container.to_owned(), state })
    };
    containers.filter_map(step).collect()
}

fn state_of(state: &Value) -> StepState {
    if state["running"].is_object() {
        return StepState::Running;
    }
    let terminated = &state["terminated"];
    if let Some(code) = terminated["exitCode"].as_i64() {
        return if was_skipped(terminated) { StepState::Skipped } else { StepState::Ended(code) };
    }
    StepState::Waiting(text(&state["waiting"], "reason").unwrap_or_default().to_owned())
}

/// Returns whether Tekton's entrypoint skipped the step. It then writes this into the termination message, as a list of
/// results, and ends with exit code 1.
fn was_skipped(terminated: &Value) -> bool {
    let results: Vec<Value> = serde_json::from_str(text(terminated, "message").unwrap_or_default()).unwrap_or_default();
    results.iter().any(|it| text(it, "key") == Some("Reason") && text(it, "value") == Some("Skipped"))
}

/// Returns the selector of all objects that Tekton created for a run.
#[must_use]
pub fn made_for_run(run: &str) -> String {
    format!("{RUN_LABEL}={run}")
}

/// Returns the name of the `TaskRun` that a pod belongs to.
#[must_use]
pub fn task_run_of(pod: Object<'_>) -> Option<&str> {
    owner(pod, "TaskRun").or_else(|| pod.labelled(TASK_RUN))
}

/// Returns the name of the run that a pod or a `TaskRun` belongs to. A pod names its run only in a label.
#[must_use]
pub fn run_of(object: Object<'_>) -> Option<&str> {
    owner(object, crate::KIND).or_else(|| object.labelled(RUN_LABEL))
}

fn owner<'a>(object: Object<'a>, kind: &str) -> Option<&'a str> {
    let owners = object.meta.owner_references.iter().flatten();
    let mut ours = owners.filter(|it| it.kind == kind && it.api_version.starts_with(crate::GROUP));
    ours.next().map(|it| it.name.as_str())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::*;

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_steps_of_a_pod_are_its_containers_in_order() {
        let skipped = r#"[{"key":"Reason","value":"Skipped","type":3}]"#;
        let ended = |code: i64| json!({"terminated": {"exitCode": code, "message": "[]"}});
        let names = ["step-a", "sidecar-log", "step-b", "step-c", "step-d", "step-e", "istio-proxy", "step-f"];
        let pod = json!({
            "spec": {"containers": names.map(|name| json!({"name": name}))},
            "status": {"containerStatuses": [
                {"name": "step-b", "state": ended(3)},
                {"name": "step-a", "state": ended(0)},
                {"name": "step-c", "state": {"terminated": {"exitCode": 1, "message": skipped}}},
                {"name": "step-d", "state": {"running": {}}},
                {"name": "step-e", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
            ]},
        });
        let meta = meta(json!({"labels": {"tekton.dev/pipelineTask": "drain"}}));
        let steps = steps_of(Object { meta: &meta, data: &pod });
        let states: Vec<_> = steps.iter().map(|it| (&*it.task, &*it.name, &*it.container, it.state.clone())).collect();
        assert_eq!(
            states,
            [
                ("drain", "a", "step-a", StepState::Ended(0)),
                ("drain", "b", "step-b", StepState::Ended(3)),
                ("drain", "c", "step-c", StepState::Skipped),
                ("drain", "d", "step-d", StepState::Running),
                ("drain", "e", "step-e", StepState::Waiting("ImagePullBackOff".to_owned())),
                ("drain", "f", "step-f", StepState::Waiting(String::new())),
            ]
        );
        let failed: Vec<_> = steps.iter().filter_map(|it| it.state.failed_with()).collect();
        assert_eq!((failed, steps.iter().filter(|it| it.state.is_over()).count()), (vec![3], 3));
    }

    #[test]
    fn an_owner_is_believed_before_a_label() {
        let labels = json!({"tekton.dev/taskRun": "by-label", "tekton.dev/pipelineRun": "r"});
        let owner = |version: &str| json!([{"apiVersion": version, "kind": "TaskRun", "name": "by-owner", "uid": "u"}]);
        for (owners, task_run) in [
            (owner("tekton.dev/v1"), Some("by-owner")),
            (owner("example.test/v1"), Some("by-label")),
            (json!([]), Some("by-label")),
        ] {
            let meta = meta(json!({"labels": labels, "ownerReferences": owners}));
            let pod = Object { meta: &meta, data: &Value::Null };
            assert_eq!((task_run_of(pod), run_of(pod)), (task_run, Some("r")));
        }
        let bare = ObjectMeta::default();
        let pod = Object { meta: &bare, data: &Value::Null };
        assert_eq!(
            (task_run_of(pod), run_of(pod), made_for_run("r")),
            (None, None, "tekton.dev/pipelineRun=r".to_owned())
        );
    }
}
