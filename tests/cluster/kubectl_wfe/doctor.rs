//! What the doctor finds before an installation, after it, and when something is missing.

use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{ControlPlane, World};

use super::{Caller, has, in_system, said};

#[tokio::test]
async fn it_tells_what_is_missing_and_what_it_may_not_see() -> Result<()> {
    let world = World::new("doctor").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let config = json!({"cool-down": "6m", "start-deadline": "soon"});
    world.apply(&in_system(&world, "v1", "ConfigMap", "workflowexecution-config", "data", &config)).await?;
    let said = jo.says(1, &["doctor"]).await?;
    let system = world.system_namespace();
    has(
        &said,
        &[
            "cluster     ok  Kubernetes v",
            "ok  Tekton ",
            "crds        ok  workflowexecutions.kubernaut.ai has all fields of ",
            &format!("operator    x   there is no Deployment {system}/wfe-operator\n"),
            "ok  somebody leads\n",
            "config      x   the operator refuses the ConfigMap: start-deadline: \"soon\" is not a duration",
            "!   \"cool-down\" does nothing: did you mean cooldown-period?\n",
            "people      -   not seen: who has the roles for people: ",
        ],
    );
    let json: Value = serde_json::from_str(&jo.says(1, &["doctor", "-o", "json"]).await?)?;
    assert_eq!((&json["kind"], &json["checks"][0]["verdict"]), (&json!("Doctor"), &json!("ok")), "{json:#}");
    has(&jo.says(1, &["doctor", "--wait", "10s"]).await?, &["errors: ", "checking again for "]);
    has(&jo.says(1, &["doctor", "--pre"]).await?, &["rights      x   you may not create namespaces\n"]);

    has(&jo.says(1, &["config"]).await?, &["KEY ", "x refused  start-deadline: \"soon\"", "! unknown  \"cool-down\""]);
    let config = json!({"cooldown-period": "6m"});
    world.apply(&in_system(&world, "v1", "ConfigMap", "workflowexecution-config", "data", &config)).await?;
    has(&jo.says(0, &["config"]).await?, &["cooldown-period  ", "6m ", "ConfigMap\n"]);
    world.close().await
}

/// Runs the doctor as the administrator of a control plane. The exit code must be this one.
pub(crate) async fn asks(control_plane: &ControlPlane, code: i32, words: &[&str]) -> Result<String> {
    let mut command: Command = process::command(workspace_binary("kubectl-wfe")?)?;
    command.args(words).env("KUBECONFIG", control_plane.kubeconfig());
    said(command, code).await
}

/// Checks that `doctor --pre` reports no error before an installation, although everything is missing that the
/// installation will create.
pub(crate) async fn finds_nothing_before(control_plane: &ControlPlane) -> Result<()> {
    let said = asks(control_plane, 0, &["doctor", "--pre"]).await?;
    has(
        &said,
        &[
            "workflowschedules.kubernaut.ai is not installed yet\n",
            "rights      ok  you may create what an installation needs\n",
            "\n0 errors, ",
        ],
    );
    Ok(())
}

/// Checks that the doctor reports no error after an installation.
pub(crate) async fn finds_no_error(control_plane: &ControlPlane) -> Result<()> {
    let said = asks(control_plane, 0, &["doctor", "--wait", "1m"]).await?;
    has(
        &said,
        &[
            "ok  Tekton's bundles resolver is on\n",
            " replicas of the Deployment kubernaut-system/wfe-operator are ready\n",
            " leads\n",
            " are as they ship\n",
            "workflows   ok  kubernaut-workflows enforces Pod Security: baseline\n",
            "!   kubernaut-workflows/kubernaut-workflow-runner may do nothing in any namespace\n",
            "!   wfe-clear is bound to nobody",
            "alerts      !   ",
            "\n0 errors, ",
        ],
    );
    Ok(())
}
