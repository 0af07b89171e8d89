//! Files are checked without a cluster, or with `--server` by the API server, whose words are printed. Nothing is
//! created.

use std::fs;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{World, wfe};

use super::{Caller, has, outputs, said};

fn lint(words: &[&str]) -> Result<Command> {
    let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
    command.arg("lint").args(words).env("KUBECONFIG", "/nonexistent").env("HOME", "/nonexistent");
    Ok(command)
}

#[tokio::test]
async fn files_are_examined_alone_and_by_the_api_server() -> Result<()> {
    let world = World::new("lint").await?;
    let (jo, ann) = (Caller::new(&world, "jo", &["wfe-edit"]).await?, Caller::new(&world, "ann", &["wfe-view"]).await?);
    let on_server = |caller: &Caller<'_>, words: &[&str]| -> Result<Command> {
        let mut command = lint(&[words, &["--server"]].concat())?;
        command.env("KUBECONFIG", &caller.kubeconfig);
        Ok(command)
    };
    let write = |name: &str, object: &Value| -> Result<String> {
        let file = jo.kubeconfig.with_file_name(name);
        fs::write(&file, object.to_string())?;
        Ok(file.to_string_lossy().into_owned())
    };
    let pipeline = json!({
        "apiVersion": "tekton.dev/v1", "kind": "Pipeline", "metadata": {"name": "cleanup"}, "spec": {},
    });
    let file = write("pipeline.json", &pipeline)?;
    let first =
        format!("x {file}:1: metadata.name is \"cleanup\": the operator runs the Pipeline named \"workflow\"\n");
    has(&said(lint(&["-f", &file])?, 1).await?, &[&first, "1 object: 2 errors, 0 warnings\n"]);
    let (json, _) = outputs(lint(&["-f", &file, "-o", "json"])?, &[1]).await?;
    let report: Value = serde_json::from_str(&json)?;
    assert_eq!((&report["kind"], &report["findings"][0]["line"]), (&json!("Lint"), &json!(1)), "{report:#}");
    has(&said(lint(&["-f", "/nonexistent/a.yaml"])?, 2).await?, &["/nonexistent/a.yaml: it cannot be read"]);
    has(&said(lint(&["-f", &file, "--server"])?, 2).await?, &["kubectl wfe: "]);

    let execution = world.wfe("asked").json();
    let file = write("wfe.json", &execution)?;
    has(&said(on_server(&jo, &["-f", &file])?, 0).await?, &["1 object: 0 errors, 0 warnings\n"]);
    assert!(world.api(&wfe::resource(), world.namespace()).get_opt("asked").await?.is_none(), "it was created");
    has(&said(on_server(&ann, &["-f", &file])?, 1).await?, &["the API server answers: ", "cannot create resource"]);

    // Only the API server checks the rules about hints.
    let template = json!({"spec": {
        "targetResource": execution["spec"]["targetResource"], "workflowRef": execution["spec"]["workflowRef"],
    }});
    let hint = json!({"expiresAt": "2030-01-01T00:00:00Z"});
    let schedule = json!({
        "apiVersion": execution["apiVersion"], "kind": "WorkflowSchedule", "metadata": {"name": "hinted"},
        "spec": {"interval": "5m", "template": template, "hint": hint},
    });
    let hinted = write("wfs.json", &schedule)?;
    let said_of_hint = said(on_server(&jo, &["-f", &hinted, "-n", world.namespace()])?, 1).await?;
    has(&said_of_hint, &["the API server answers: ", "exactly one of nextRunAt and interval must be set"]);

    world.wfe("asked").create().await?;
    has(&said(on_server(&jo, &["-f", &file])?, 0).await?, &["! ", "already exists", "0 errors, 1 warning\n"]);
    world.close().await
}
