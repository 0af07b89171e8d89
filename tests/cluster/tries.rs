//! A create or release that is not possible yet is retried until the start deadline. No execution fails because the
//! operator lacks a permission. A run's own deadlines begin with its release.

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{World, look};

use crate::expect::{condition, first_run, text};
use crate::faults::short;
use crate::history::past::{time, write};
use crate::refused::check_refused;

/// Makes the API server refuse this operation on the runs of a world by a foreign policy, and waits until the policy is
/// in force. The policy is deleted at the end of the world.
pub(crate) async fn refuse(world: &World, operation: &str, validation: Value) -> Result<()> {
    let name = world.execution_namespace();
    world
        .apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                    "resourceRules": [{
                        "apiGroups": ["tekton.dev"],
                        "apiVersions": ["v1"],
                        "resources": ["pipelineruns"],
                        "operations": [operation],
                    }],
                },
                "validations": [validation],
            },
        }))
        .await?;
    world
        .apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }))
        .await?;
    let runs = world.api(&look::pipeline_runs(), &name);
    let probe: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {"name": "probe"},
        "spec": {"status": "PipelineRunPending", "pipelineRef": {"name": "none"}},
    }))?;
    let is_update = operation == "UPDATE";
    if is_update {
        runs.create(&PostParams::default(), &probe).await?;
    }
    let ask = async || {
        let answer = if is_update {
            let dry = PatchParams { dry_run: true, ..PatchParams::default() };
            runs.patch("probe", &dry, &Patch::Merge(json!({"spec": {"status": null}}))).await
        } else {
            runs.create(&PostParams { dry_run: true, ..PostParams::default() }, &probe).await
        };
        anyhow::Ok(answer)
    };
    drop(ask_until(DEADLINE, "the policy acts", ask, |answer| matches!(answer, Err(kube::Error::Api(_)))).await?);
    if is_update {
        runs.delete("probe", &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_policy_that_speaks_like_rbac_fails_the_execution_and_does_not_make_it_wait() -> Result<()> {
    let world = World::new("forged-denial").await?;
    let message = format!(
        "pipelineruns.tekton.dev is forbidden: User \"{}\" cannot create resource \"pipelineruns\" in API group \
         \"tekton.dev\" in the namespace \"{}\"",
        world.operator_user(),
        world.execution_namespace()
    );
    refuse(&world, "CREATE", json!({"expression": "false", "message": message, "reason": "Forbidden"})).await?;
    let operator = world.operator().start().await?;
    world.wfe("denied").create().await?;
    check_refused(&world.await_phase("denied", "Failed").await?, "Forbidden", "ValidatingAdmissionPolicy");
    assert!(operator.ready().await, "the operator lacks nothing");
    world.close().await
}

#[tokio::test]
async fn a_release_that_a_policy_refuses_ends_at_the_start_deadline_and_nothing_ran() -> Result<()> {
    let world = World::new("refused-release").await?;
    let recording = world.record().await?;
    let stays_pending = "has(object.spec.status) || !has(oldObject.spec.status)";
    refuse(&world, "UPDATE", json!({"expression": stays_pending, "message": "nothing is let go today"})).await?;
    let operator = world.operator().arg("--start-deadline", "3s").start().await?;
    world.wfe("refused").create().await?;
    let wfe = world.await_terminal("refused").await?;
    let (status, details) = (&wfe["status"], &wfe["status"]["failureDetails"]);
    assert_eq!((&details["reason"], &details["wasExecutionFailure"]), (&json!("Unknown"), &json!(false)), "{wfe:#}");
    assert!(text(&details["message"]).contains("nothing is let go today"), "{details:#}");
    assert_eq!((&status["phase"], &status["consecutiveFailures"]), (&json!("Failed"), &json!(1)), "{status:#}");
    assert_eq!(condition(&wfe, "TargetLocked"), "False Free");
    assert_eq!(condition(&wfe, "Started"), "False NoRun");
    assert_eq!(world.runs().await?.len(), 0, "it was deleted, pending");
    operator.terminate().await?;
    crate::faults::judge::History::judged(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_run_that_is_released_an_hour_after_the_commit_has_all_its_time() -> Result<()> {
    let world = World::new("late-release").await?;
    let bundle = short(&world).await?;
    world.wfe("committed").image(&bundle).timeout("10m").create().await?;
    let wfe = world.get_wfe("committed").await?;
    // This is the state after an operator that stopped right after the commit.
    let namespace = world.execution_namespace();
    let params = json!([{"name": "TARGET_RESOURCE", "value": "payment/deployment/payment-api"}]);
    let run: DynamicObject = serde_json::from_value(first_run(&wfe, &namespace, &bundle, &params))?;
    let run = world.api(&look::pipeline_runs(), &namespace).create(&PostParams::default(), &run).await?;
    let (name, uid) = (run.metadata.name, run.metadata.uid.context("a uid")?);
    let commit = json!({
        "phase": "Running",
        "startTime": time(Utc::now() - TimeDelta::hours(1)),
        "runSequence": 1,
        "pipelineRunRef": {"name": name, "uid": uid, "namespace": namespace},
    });
    write(&world, "committed", &[commit]).await?;
    let begun = Utc::now();
    let _operator = world.operator().start().await?;
    world.await_phase("committed", "Completed").await?;
    let runs = world.runs().await?;
    let released_at = text(&runs[0]["metadata"]["annotations"]["kubernaut.ai/released-at"]);
    let released_at = DateTime::parse_from_rfc3339(released_at).with_context(|| format!("{runs:#?}"))?;
    assert!(begun <= released_at && released_at <= Utc::now(), "{released_at}");
    world.close().await
}
