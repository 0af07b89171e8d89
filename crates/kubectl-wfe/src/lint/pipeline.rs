//! Tekton Pipelines and Tasks: what this operator needs of a workflow, beside what Tekton itself validates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::Findings;

/// The name under which the operator refers to the pipeline of a bundle.
const NAME: &str = "workflow";
/// The parameter with the target.
const TARGET: &str = "TARGET_RESOURCE";
/// The parameter of an analyst: a workflow that examines the failures of a schedule.
const EVIDENCE: &str = "EVIDENCE";
/// The result of an analyst.
const VERDICT: &str = "verdict";

/// The capabilities that a container may add at the Pod Security level `baseline`.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// The limit of parameters that are named in one finding.
const NAMED: usize = 5;

/// Examines a Pipeline.
pub(super) fn pipeline(object: &Value, found: &mut Findings) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name != NAME {
        found.error(
            "metadata.name",
            format!("metadata.name is {name:?}: the operator runs the Pipeline named {NAME:?}"),
        );
    }
    let spec = &object["spec"];
    parameters(spec, found);
    for (place, workspace) in list(&spec["workspaces"]) {
        if workspace["optional"] != true {
            found.error(
                format!("spec.workspaces[{place}]"),
                format!(
                    "workspace {} is required, and the operator binds none: make it optional, or mount a volume in the task",
                    named(workspace)
                ),
            );
        }
    }
    for part in ["tasks", "finally"] {
        for (place, task) in list(&spec[part]) {
            let at = format!("spec.{part}[{place}]");
            let reference = &task["taskRef"];
            let is_of_tekton =
                reference["apiVersion"].as_str().is_none_or(|version| version.starts_with("tekton.dev/"));
            if reference["name"].is_string() && reference["resolver"].is_null() && is_of_tekton {
                found.warning(
                    format!("{at}.taskRef"),
                    format!(
                        "task {}: taskRef names a Task of the execution namespace, not of the bundle: use taskSpec, or a \
                         resolver",
                        named(task)
                    ),
                );
            }
            steps(&task["taskSpec"], &format!("{at}.taskSpec"), &format!("task {}, ", named(task)), found);
        }
    }
}

/// Examines a Task.
pub(super) fn task(object: &Value, found: &mut Findings) {
    steps(&object["spec"], "spec", "", found);
}

fn parameters(spec: &Value, found: &mut Findings) {
    let declares = |name: &str| list(&spec["params"]).any(|(_, it)| it["name"] == name);
    let is_analyst = declares(EVIDENCE);
    if is_analyst {
        if !list(&spec["results"]).any(|(_, it)| it["name"] == VERDICT) {
            found.error("spec", format!("it takes {EVIDENCE}, so it is an analyst: it must have the result {VERDICT}"));
        }
    } else if !declares(TARGET) {
        found.error("spec", format!("it takes no parameter {TARGET}, so it cannot know its target"));
    } else if !references(spec, TARGET) {
        found.warning("spec", format!("no task uses the parameter {TARGET}, so the workflow cannot know its target"));
    }
    for (place, parameter) in list(&spec["params"]) {
        let (field, name) = (format!("spec.params[{place}]"), named(parameter));
        let is_passed = name == TARGET || is_analyst && name == EVIDENCE;
        let has_default = !parameter["default"].is_null();
        let mut told = |says: &str| {
            let says = format!("parameter {name}: {says}");
            // Without a default, no execution of this workflow can start.
            if has_default { found.warning(&field, says) } else { found.error(&field, says) }
        };
        if parameter["type"].as_str().is_some_and(|kind| kind != "string")
            || parameter["default"].is_array()
            || parameter["default"].is_object()
        {
            told("an execution can only set texts (type string)");
        } else if !is_passed && is_analyst && !has_default {
            told(&format!("an analyst gets {EVIDENCE} alone: give it a default"));
        } else if !is_passed && !is_upper_snake(name) {
            told("an execution can only set UPPER_SNAKE_CASE names");
        } else if !is_passed && !has_default {
            found.warning(&field, format!("parameter {name} has no default: an execution that does not set it fails"));
        }
    }
}

fn steps(spec: &Value, at: &str, task: &str, found: &mut Findings) {
    for (part, kind) in [("steps", "step"), ("sidecars", "sidecar")] {
        for (place, container) in list(&spec[part]) {
            let (at, who) = (format!("{at}.{part}[{place}]"), format!("{task}{kind} {}", named(container)));
            script(container, &at, &who, found);
            refused_in_pods(container, &at, &who, found);
        }
    }
    refused_in_pods(&spec["stepTemplate"], &format!("{at}.stepTemplate"), &format!("{task}stepTemplate"), found);
    for (place, volume) in list(&spec["volumes"]) {
        refused_in_pods(volume, &format!("{at}.volumes[{place}]"), &format!("{task}volume {}", named(volume)), found);
    }
}

/// Tekton puts the text of a parameter into a script before the script runs.
fn script(container: &Value, at: &str, who: &str, found: &mut Findings) {
    if let Some(script) = container["script"].as_str()
        && let Some(parameters) = parameters_in(script)
    {
        let says = format!("{who}: {parameters} inside a script is run as a program: use env");
        found.warning(format!("{at}.script"), says);
    }
    for part in ["command", "args"] {
        let words: Vec<(usize, &str)> =
            list(&container[part]).filter_map(|(place, word)| Some((place, word.as_str()?))).collect();
        // What follows `-c` is the script of a shell.
        let is_shell = container[part].as_array().is_some_and(|words| words.iter().any(|word| word == "-c"))
            || container["command"].as_array().is_some_and(|words| words.last().is_some_and(|word| word == "-c"));
        for (place, word) in words.into_iter().filter(|_| is_shell) {
            if let Some(parameters) = parameters_in(word) {
                let says = format!("{who}: {parameters} in the {part} of a shell is run as a program: use env");
                found.warning(format!("{at}.{part}[{place}]"), says);
            }
        }
    }
}

/// Lists the parameters that a text refers to, such as `$(params.A), $(params.B)`.
fn parameters_in(text: &str) -> Option<String> {
    let begins = text.match_indices("$(params").map(|(place, _)| &text[place..]);
    let references = begins.filter_map(|rest| {
        let end = rest.find(')')?;
        let reference = &rest[..=end];
        reference["$(params".len()..].starts_with(['.', '[']).then_some(reference)
    });
    let references: BTreeSet<&str> = references.collect();
    let shown: Vec<String> =
        references.iter().take(NAMED).map(|reference| wfe_api::limits::cut(reference, 64)).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// Returns whether any text below a value refers to a parameter.
fn references(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => [format!("params.{name}"), format!("params[\"{name}\"]"), format!("params['{name}']")]
            .iter()
            .any(|reference| text.contains(reference.as_str())),
        Value::Array(items) => items.iter().any(|item| references(item, name)),
        Value::Object(fields) => fields.values().any(|field| references(field, name)),
        _ => false,
    }
}

/// Finds what the Pod Security level `baseline` refuses: the shipped execution namespace enforces it.
fn refused_in_pods(value: &Value, at: &str, who: &str, found: &mut Findings) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = format!("{at}.{name}");
                if let Some(what) = refused_field(name, value) {
                    let says = format!("{who}: {what} is refused in the execution namespace (Pod Security: baseline)");
                    found.warning(at, says);
                } else {
                    refused_in_pods(value, &at, who, found);
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                refused_in_pods(item, &format!("{at}[{place}]"), who, found);
            }
        }
        _ => {}
    }
}

fn refused_field(name: &str, value: &Value) -> Option<String> {
    let is_refused = match name {
        "privileged" | "hostProcess" | "hostNetwork" | "hostPID" | "hostIPC" => *value == true,
        "hostPath" => value.is_object(),
        "hostPort" => value.as_u64().is_some_and(|port| port > 0),
        "procMount" => value == "Unmasked",
        "seccompProfile" => value["type"] == "Unconfined",
        "capabilities" => {
            let added = list(&value["add"]).filter_map(|(_, it)| it.as_str());
            let beyond: Vec<&str> = added.filter(|it| !CAPABILITIES.contains(it)).collect();
            return (!beyond.is_empty()).then(|| format!("the capability {}", beyond.join(", ")));
        }
        _ => false,
    };
    let shown = if name == "seccompProfile" { "seccompProfile Unconfined" } else { name };
    is_refused.then(|| shown.to_owned())
}

fn list(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

fn named(value: &Value) -> &str {
    value["name"].as_str().unwrap_or("(unnamed)")
}

/// Returns whether an execution can have a parameter of this name.
fn is_upper_snake(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Level;
    use super::*;

    fn says(object: &Value) -> Vec<String> {
        let mut found = Findings::default();
        pipeline(object, &mut found);
        let mark = |level| if level == Level::Error { "x" } else { "!" };
        found.0.into_iter().map(|it| format!("{} {}: {}", mark(it.level), it.field, it.says)).collect()
    }

    fn good() -> Value {
        let step =
            json!({"name": "rm", "env": [{"name": "T", "value": "$(params.TARGET_RESOURCE)"}], "script": "rm $T"});
        json!({
            "metadata": {"name": "workflow"},
            "spec": {
                "params": [{"name": "TARGET_RESOURCE", "type": "string"}, {"name": "DIR", "default": "/tmp"}],
                "workspaces": [{"name": "cache", "optional": true}],
                "tasks": [{"name": "clean", "taskSpec": {"steps": [step]}}],
            },
        })
    }

    #[test]
    fn each_fault_of_a_pipeline_is_told_with_what_to_do() {
        assert_eq!(says(&good()), Vec::<String>::new());
        let analyst = json!([{"name": "EVIDENCE"}]);
        for (pointer, value, expected) in [
            (
                "/metadata/name",
                json!("cleanup"),
                "x metadata.name: metadata.name is \"cleanup\": the operator runs the Pipeline named \"workflow\"",
            ),
            ("/spec/params", json!([]), "x spec: it takes no parameter TARGET_RESOURCE, so it cannot know its target"),
            (
                "/spec/tasks",
                json!([]),
                "! spec: no task uses the parameter TARGET_RESOURCE, so the workflow cannot know its target",
            ),
            (
                "/spec/params",
                analyst,
                "x spec: it takes EVIDENCE, so it is an analyst: it must have the result verdict",
            ),
            (
                "/spec/params/1",
                json!({"name": "threshold", "default": "85"}),
                "! spec.params[1]: parameter threshold: an execution can only set UPPER_SNAKE_CASE names",
            ),
            (
                "/spec/params/1",
                json!({"name": "threshold"}),
                "x spec.params[1]: parameter threshold: an execution can only set UPPER_SNAKE_CASE names",
            ),
            (
                "/spec/params/1",
                json!({"name": "DIRS", "type": "array"}),
                "x spec.params[1]: parameter DIRS: an execution can only set texts (type string)",
            ),
            (
                "/spec/params/1",
                json!({"name": "DIR"}),
                "! spec.params[1]: parameter DIR has no default: an execution that does not set it fails",
            ),
            (
                "/spec/workspaces",
                json!([{"name": "source"}]),
                "x spec.workspaces[0]: workspace source is required, and the operator binds none: make it optional, or mount \
                 a volume in the task",
            ),
            (
                "/spec/finally",
                json!([{"name": "tell", "taskRef": {"name": "tell"}}]),
                "! spec.finally[0].taskRef: task tell: taskRef names a Task of the execution namespace, not of the bundle: \
                 use taskSpec, or a resolver",
            ),
            (
                "/spec/tasks/0/taskSpec/steps/0/script",
                json!("rm $(params.DIR) $(params[\"A\"]) $(params.DIR) $(params) $(paramsx.Y)"),
                "! spec.tasks[0].taskSpec.steps[0].script: task clean, step rm: $(params.DIR), $(params[\"A\"]) inside a \
                 script is run as a program: use env",
            ),
            (
                "/spec/tasks/0/taskSpec/steps/0/args",
                json!(["-c", "rm $(params.DIR)"]),
                "! spec.tasks[0].taskSpec.steps[0].args[1]: task clean, step rm: $(params.DIR) in the args of a shell is run \
                 as a program: use env",
            ),
            (
                "/spec/tasks/0/taskSpec/steps/0/securityContext",
                json!({"privileged": true}),
                "! spec.tasks[0].taskSpec.steps[0].securityContext.privileged: task clean, step rm: privileged is refused in \
                 the execution namespace (Pod Security: baseline)",
            ),
            (
                "/spec/tasks/0/taskSpec/volumes",
                json!([{"name": "root", "hostPath": {"path": "/"}}]),
                "! spec.tasks[0].taskSpec.volumes[0].hostPath: task clean, volume root: hostPath is refused in the execution \
                 namespace (Pod Security: baseline)",
            ),
            (
                "/spec/tasks/0/taskSpec/stepTemplate",
                json!({"securityContext": {"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}}),
                "! spec.tasks[0].taskSpec.stepTemplate.securityContext.capabilities: task clean, stepTemplate: the \
                 capability SYS_ADMIN is refused in the execution namespace (Pod Security: baseline)",
            ),
        ] {
            let mut object = good();
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            match object.pointer_mut(parent).unwrap() {
                Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
                parent => parent[name] = value,
            }
            assert_eq!(says(&object), [expected], "{pointer}");
        }
    }

    #[test]
    fn args_of_a_program_that_is_no_shell_are_no_script() {
        let mut object = good();
        object["spec"]["tasks"][0]["taskSpec"]["steps"][0]["args"] = json!(["--dir", "$(params.DIR)"]);
        assert_eq!(says(&object), Vec::<String>::new());
    }

    #[test]
    fn objects_of_any_shape_are_examined() {
        for object in
            [json!(null), json!([]), json!({"spec": []}), json!({"spec": {"tasks": {"steps": 1}, "params": [1]}})]
        {
            assert!(!says(&object).is_empty());
        }
    }
}
