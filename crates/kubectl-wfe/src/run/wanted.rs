//! The execution that the flags of `run` describe.

use anyhow::{Context, Result, anyhow, bail, ensure};
use wfe_api::WorkflowExecution;
use wfe_core::duration;

use crate::cli::RunArgs;

/// The longest beginning of a generated name: the API server cuts a longer one.
const LONGEST_PREFIX: usize = 52;
/// Stands for the characters that the API server adds, while the name is checked.
const GENERATED: &str = "00000";

/// What the command line asks for.
pub(super) struct Asked<'a> {
    pub(super) args: &'a RunArgs,
    /// The execution of `--like`.
    pub(super) like: Option<&'a WorkflowExecution>,
    /// The execution of `--recover`.
    pub(super) failed: Option<&'a WorkflowExecution>,
}

/// Makes the execution, and checks it like the API server and rule 0 of the decision. No error has the value of a
/// parameter.
pub(super) fn wanted(asked: &Asked<'_>, namespace: &str) -> Result<WorkflowExecution> {
    let Asked { args, like, failed } = asked;
    let workflow = like.map(|like| &like.spec.workflow_ref);
    let id = args.workflow.as_ref().or(workflow.map(|it| &it.workflow_id)).context("which workflow? name it")?;
    let image = args.image.as_ref().or(workflow.map(|it| &it.container_image)).context("which bundle? give --image")?;
    let target = match (&args.on, failed, like) {
        (Some(target), ..) => target.as_str(),
        (None, Some(source), _) | (None, None, Some(source)) => &source.spec.target_resource,
        (None, None, None) => bail!("which target? give --on"),
    };
    let version = match (&args.version, &args.image, workflow) {
        (Some(version), ..) => version,
        (None, None, Some(workflow)) => &*workflow.version,
        (None, ..) => tag(image).context("the bundle has no tag that tells its version; give --version")?,
    };

    let prefix = prefix(id);
    let name = args.name.clone().unwrap_or_else(|| format!("{prefix}{GENERATED}"));
    let mut builder = WorkflowExecution::builder(name).namespace(namespace).target(target).workflow(id, version, image);
    if let Some(like) = like {
        let spec = &like.spec;
        for (key, value) in &spec.parameters {
            builder = builder.parameter(key, value);
        }
        if let Some(digest) = workflow.and_then(|it| it.container_digest.as_ref()).filter(|_| args.image.is_none()) {
            builder = builder.digest(digest);
        }
        if let Some(retry) = &spec.retry {
            builder = builder.retry(retry.clone());
        }
        if let Some(seconds) = spec.ttl_seconds_after_finished {
            builder = builder.ttl_seconds_after_finished(seconds);
        }
        let config = spec.execution_config.as_ref();
        if let Some(timeout) = config.and_then(|config| config.timeout.as_deref()) {
            builder = builder.timeout(duration::parse(timeout).map_err(|error| anyhow!("its timeout {error}"))?);
        }
        if let Some(account) = config.and_then(|config| config.service_account_name.as_deref()) {
            builder = builder.service_account(account);
        }
    }
    for (place, parameter) in args.parameters.iter().enumerate() {
        let (key, value) = parameter.split_once('=').unwrap_or_default();
        ensure!(!key.is_empty(), "--set number {} is not KEY=VALUE", place + 1);
        builder = builder.parameter(key, value);
    }
    if let Some(attempts) = args.retry {
        builder = builder.retry(attempts);
    }
    if let Some(failed) = failed {
        builder = builder.recovers(failed);
    }
    let mut execution = builder.build()?;
    if args.name.is_none() {
        execution.metadata.name = None;
        execution.metadata.generate_name = Some(prefix);
    }
    Ok(execution)
}

/// Returns the tag of an image.
fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let (_, tag) = image.rsplit('/').next()?.split_once(':')?;
    Some(tag)
}

/// Makes the beginning of an execution's name from the name of its workflow, which may be any text.
fn prefix(workflow: &str) -> String {
    let allowed = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let name: String = workflow.chars().map(allowed).take(LONGEST_PREFIX).collect();
    match name.trim_matches('-') {
        "" => "run-".to_owned(),
        name => format!("{name}-"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::{Cli, Command};

    const IMAGE: &str = "registry.example/cleanup:1.4";

    fn args(words: &[&str]) -> RunArgs {
        match Cli::try_parse_from([&["kubectl-wfe", "run"], words].concat()).unwrap().command {
            Command::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn made(words: &[&str], like: Option<&WorkflowExecution>, failed: Option<&WorkflowExecution>) -> Result<Value> {
        let args = args(words);
        let execution = wanted(&Asked { args: &args, like, failed }, "payment")?;
        let mut object = serde_json::to_value(execution)?;
        object.as_object_mut().unwrap().retain(|key, _| ["metadata", "spec"].contains(&&**key));
        Ok(object)
    }

    fn earlier(status: &Value) -> WorkflowExecution {
        serde_json::from_value(json!({
            "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
            "metadata": {"name": "earlier", "namespace": "payment"},
            "spec": {
                "targetResource": "node/n",
                "workflowRef": {
                    "workflowId": "cleanup", "version": "7", "containerImage": IMAGE,
                    "containerDigest": format!("sha256:{}", "a".repeat(64)),
                },
                "parameters": {"A": "1", "B": "2"}, "retry": {"maxAttempts": 5}, "confidence": 0.5, "rationale": "why",
                "executionConfig": {"timeout": "90s", "serviceAccountName": "runner"}, "recoveryOf": "first",
                "startBefore": "2026-01-02T03:04:05Z", "ttlSecondsAfterFinished": 60,
                "remediationRequestRef": {"name": "request"},
                "cancellation": {"reason": "r", "requestedBy": "jo"}, "clearance": {"reason": "r", "clearedBy": "jo"},
            },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn the_flags_describe_an_execution() {
        let words =
            ["disk_cleanup", "--on", "Nodes/n", "--image", IMAGE, "--set", "A=b=c", "--set", "B=", "--retry", "3"];
        assert_eq!(
            made(&words, None, None).unwrap(),
            json!({
                "metadata": {"generateName": "disk-cleanup-", "namespace": "payment"},
                "spec": {
                    "targetResource": "node/n",
                    "workflowRef": {"workflowId": "disk_cleanup", "version": "1.4", "containerImage": IMAGE},
                    "parameters": {"A": "b=c", "B": ""}, "retry": 3,
                },
            })
        );
    }

    #[test]
    fn a_run_like_another_has_its_spec_and_not_its_history() {
        let like = earlier(&Value::Null);
        let object = made(&["--like", "earlier", "--set", "B=3", "--name", "again"], Some(&like), None).unwrap();
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(
            object,
            json!({
                "metadata": {"name": "again", "namespace": "payment"},
                "spec": {
                    "targetResource": "node/n",
                    "workflowRef": {
                        "workflowId": "cleanup", "version": "7", "containerImage": IMAGE, "containerDigest": digest,
                    },
                    "parameters": {"A": "1", "B": "3"}, "retry": {"maxAttempts": 5},
                    "executionConfig": {"timeout": "1m30s", "serviceAccountName": "runner"},
                    "ttlSecondsAfterFinished": 60,
                },
            })
        );
        // Another bundle has another version and another digest.
        let object = made(&["--like", "earlier", "--image", "registry.example/cleanup:2"], Some(&like), None).unwrap();
        let workflow = json!({"workflowId": "cleanup", "version": "2", "containerImage": "registry.example/cleanup:2"});
        assert_eq!(object["spec"]["workflowRef"], workflow);
    }

    #[test]
    fn a_recovery_is_another_workflow_on_the_target_of_the_failure() {
        let failed = json!({"phase": "Failed", "failureDetails": {
            "reason": "Unknown", "message": "exit 1", "wasExecutionFailure": true, "failedTaskIndex": 0, "failedTaskName": "a", "executionTimeBeforeFailure": "1s",
            "requiresManualReview": true, "failedAt": "2026-01-02T03:04:05Z",
            "naturalLanguageSummary": "it failed",
        }});
        let words = ["replace", "--recover", "earlier", "--image", "registry.example/replace:1"];
        let object = made(&words, None, Some(&earlier(&failed))).unwrap();
        assert_eq!(
            (&object["spec"]["recoveryOf"], &object["spec"]["targetResource"]),
            (&json!("earlier"), &json!("node/n"))
        );
        for (words, status) in [
            (words, json!({"phase": "Completed"})),
            (["cleanup", "--recover", "earlier", "--image", "registry.example/replace:1"], failed.clone()),
            (["replace", "--recover", "earlier", "--image", IMAGE], failed),
        ] {
            let error = made(&words, None, Some(&earlier(&status))).unwrap_err().to_string();
            assert!(error.starts_with("spec.recoveryOf: "), "{error}");
        }
    }

    #[test]
    fn what_the_api_server_would_refuse_is_refused_and_no_value_is_shown() {
        let basic = ["w", "--on", "node/n", "--image", IMAGE];
        for (more, told) in [
            (&["--set", "secret"][..], "--set number 1 is not KEY=VALUE"),
            (&["--set", "A=b", "--set", "=secret"], "--set number 2 is not KEY=VALUE"),
            (&["--set", "a=secret"], "spec.parameters"),
            (&["--set", "TARGET_RESOURCE=secret"], "spec.parameters"),
            (&["--set", "A=secret $(context.secret)"], "spec.parameters"),
            (&["--name", "Upper"], "metadata.name"),
        ] {
            let error = format!("{:#}", made(&[&basic[..], more].concat(), None, None).unwrap_err());
            assert!(error.starts_with(told) && !error.contains("secret"), "{more:?}: {error}");
        }
        let untagged = made(&["w", "--on", "node/n", "--image", "registry:5000/w"], None, None).unwrap_err();
        assert_eq!(untagged.to_string(), "the bundle has no tag that tells its version; give --version");
    }

    #[test]
    fn a_generated_name_begins_with_the_workflow() {
        for (workflow, name) in [
            ("cleanup", "cleanup-"),
            ("Disk Cleanup/v2", "disk-cleanup-v2-"),
            ("...", "run-"),
            ("ü", "run-"),
            (&"a".repeat(253), &format!("{}-", "a".repeat(52))),
        ] {
            assert_eq!(prefix(workflow), name);
        }
        for (image, found) in
            [("a:1", Some("1")), ("h:5/a", None), ("h:5/a:b@sha256:c", Some("b")), ("a@sha256:c", None)]
        {
            assert_eq!(tag(image), found, "{image}");
        }
    }
}
