//! The tool as a plugin of kubectl: kubectl finds it, and its flags, files and exit codes are those of kubectl.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{World, repository};

use super::{Caller, TARGET, has, outputs, said};
use crate::history::past::{Past, past};

#[tokio::test]
async fn kubectl_finds_it_and_passes_all_on() -> Result<()> {
    let world = World::new("plugin").await?;
    past(&world, "broken", "node/n", "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    // The kubeconfig's current context does not exist.
    let mut config: Value = serde_json::from_slice(&fs::read(&jo.kubeconfig)?)?;
    config["current-context"] = json!("nowhere");
    let mut elsewhere = config["contexts"][0].clone();
    elsewhere["name"] = json!("elsewhere");
    elsewhere["context"]["namespace"] = json!("no-such-namespace");
    config["contexts"] = json!([config["contexts"][0], elsewhere]);
    let file = jo.kubeconfig.with_extension("contexts");
    fs::write(&file, config.to_string())?;
    let file = file.to_string_lossy();
    // kubectl examines every program on the PATH that has the name of a plugin.
    let bin = jo.kubeconfig.with_file_name("bin");
    fs::create_dir_all(&bin)?;
    std::os::unix::fs::symlink(workspace_binary("kubectl-wfe")?, bin.join("kubectl-wfe"))?;
    let kubectl = |words: &[&str]| -> Result<Command> {
        let mut command = process::command(world.control_plane().kubectl_path())?;
        command.args(words).env("PATH", &bin).env_remove("KUBECONFIG").env("HOME", "/nonexistent");
        Ok(command)
    };
    let wfe = |words: &[&str]| -> Result<Command> {
        let mut command = kubectl(&[&["wfe"], words].concat())?;
        command.args(jo.places());
        Ok(command)
    };
    has(&said(kubectl(&["plugin", "list"])?, 0).await?, &["/kubectl-wfe"]);
    let broken = ["explain", "broken", "--kubeconfig", &file];
    let named = |context: &'static str| [&broken[..], &["--context", context]].concat();
    has(&said(wfe(&named("test"))?, 1).await?, &["broken on node/n: is Failed"]);
    let elsewhere = said(wfe(&named("elsewhere"))?, 2).await?;
    has(&elsewhere, &["there is no WorkflowExecution broken in the namespace no-such-namespace"]);
    let namespace = [&named("elsewhere")[..], &["-n", world.namespace()]].concat();
    has(&said(wfe(&namespace)?, 1).await?, &["broken on node/n: is Failed"]);
    has(&said(wfe(&named("lost"))?, 2).await?, &["cannot use --kubeconfig", "lost"]);
    has(&said(wfe(&broken)?, 2).await?, &["nowhere"]);
    has(&said(wfe(&["explain", "node/n"])?, 2).await?, &["kubectl wfe: cannot find a cluster: set KUBECONFIG"]);
    has(&said(wfe(&["explain", "node/n", "--context", "test"])?, 2).await?, &["cannot use --context"]);
    // Without --watch-namespace, the tool reads all namespaces, including those of other tests.
    let (target, execution) = (format!("node/{}", world.namespace()), world.execution_namespace());
    past(&world, "everywhere", &target, "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    let everywhere = ["wfe", "explain", &target, "--execution-namespace", &execution];
    let everywhere = [&everywhere[..], &["--kubeconfig", &file, "--context", "test"]].concat();
    has(&said(kubectl(&everywhere)?, 1).await?, &["would be skipped, PreviousExecutionFailed"]);
    world.close().await
}

#[tokio::test]
async fn help_shows_how_it_is_used_and_what_its_exit_codes_mean() -> Result<()> {
    for (words, expected) in [
        (
            &["--help"][..],
            &["explain", "clear", "--kubeconfig", "--context", "--namespace", "--as", "Usage: kubectl wfe"][..],
        ),
        (&["explain", "--help"], &["kubectl wfe explain -f wfe.yaml -o json", "Exit code: 0 the execution would run"]),
        (&["clear", "--help"], &["kubectl wfe clear payment/", "Exit code: 0 the block is cleared", "--yes"]),
    ] {
        let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
        command.args(words);
        has(&said(command, 0).await?, expected);
    }
    Ok(())
}

#[tokio::test]
async fn it_answers_for_a_file_and_for_a_program() -> Result<()> {
    let world = World::new("files").await?;
    past(&world, "broken", TARGET, "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let dir = jo.kubeconfig.parent().unwrap_or(Path::new("/")).to_owned();
    let json = async |code: i32, words: &[&str]| -> Result<Value> {
        let (stdout, _) = outputs(jo.command(&[words, &["-o", "json"]].concat())?, &[code]).await?;
        Ok(serde_json::from_str(&stdout)?)
    };

    // The sample from the README has the same target, but in another spelling.
    let sample = repository().join("config/samples/payment-restart.yaml");
    let report = json(1, &["explain", "-f", &sample.to_string_lossy()]).await?;
    let broken = json!({"namespace": world.namespace(), "name": "broken"});
    assert_eq!((&report["verdict"], &report["inTheWay"]), (&json!("Skip"), &broken), "{report:#}");
    assert_eq!(report["blocks"][0]["execution"], broken, "{report:#}");

    let recovery = world.wfe("recovery").workflow("w2").patch(|wfe| wfe["spec"]["recoveryOf"] = json!("broken"));
    let file = dir.join("recovery.json");
    fs::write(&file, recovery.json().to_string())?;
    let file = file.to_string_lossy();
    let report = json(0, &["explain", "-f", &file]).await?;
    assert_eq!((&report["verdict"], &report["rule"]), (&json!("Run"), &json!("6 otherwise")), "{report:#}");
    assert_eq!((&report["name"], &report["target"]), (&json!("recovery"), &json!(TARGET)), "{report:#}");
    let report = json(1, &["explain", "wfe/broken"]).await?;
    assert_eq!((&report["verdict"], &report["phase"]), (&json!("Decided"), &json!("Failed")), "{report:#}");

    // The pipe is closed, as by `head` when it has read enough. The tool prints no error, and its exit code is the
    // usual one.
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let mut unread = jo.command(&["explain", TARGET])?;
    unread.stdout(writer).stderr(Stdio::piped());
    let output = tokio::process::Command::from(unread).spawn()?.wait_with_output().await?;
    assert_eq!((output.status.code(), output.stderr), (Some(1), vec![]));

    let storm = repository().join("config/samples/disk-pressure-storm.yaml");
    let other = dir.join("other.yaml");
    fs::write(&other, "kind: ConfigMap\nmetadata: {name: x}\n")?;
    for (words, expected) in [
        (&["explain", "-f", &other.to_string_lossy()][..], "holds no WorkflowExecution"),
        (&["explain", "-f", &storm.to_string_lossy()], "it holds 10 objects; give a file with one WorkflowExecution"),
        (&["explain", "-f", "/nonexistent/wfe.yaml"], "cannot read /nonexistent/wfe.yaml"),
        (&["explain", "-f", &file, "-n", "default"], "leave -n default out"),
        (&["explain", "nobody"], "there is no WorkflowExecution nobody in the namespace"),
        (&["explain", "-n", "default", "broken"], "there is no WorkflowExecution broken in the namespace default"),
        (&["clear", "node/unheard-of", "--yes", "--reason", "x"], "no WorkflowExecution on node/unheard-of is known"),
        (&["clear", "broken", "--yes", "--reason", "x"], "it must be namespace/kind/name or kind/name"),
        (&["clear", TARGET, "--yes", "--reason", " "], "say why the target is in order again"),
        (&["clear", TARGET, "--yes"], "--reason"),
    ] {
        has(&jo.says(2, words).await?, &[expected]);
    }
    has(&jo.says(0, &["explain", "node/unheard-of"]).await?, &["would run now", "no WorkflowExecution on it is known"]);
    assert_eq!(world.get_wfe("broken").await?["spec"]["clearance"], Value::Null);
    world.close().await
}
