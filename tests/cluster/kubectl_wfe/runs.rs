//! What a person starts: executions with `run`, and the pause of a namespace. Also the words that kubectl completes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use anyhow::Result;
use chrono::TimeDelta;
use kube::api::ListParams;
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{Outcome, Pipeline, Terminal, World, wfe};

use super::{Caller, has, outputs, said};
use crate::history::past::{Past, past};
use crate::history::short;
use crate::schedules::{await_schedule, create};

/// The roles of a person who may read everything and create executions.
const RUNNER: [&str; 2] = ["wfe-explain", "wfe-edit"];

/// Returns the number of executions in the namespace of a world.
async fn count(world: &World) -> Result<usize> {
    Ok(world.api(&wfe::resource(), world.namespace()).list(&ListParams::default()).await?.items.len())
}

#[tokio::test]
async fn a_run_is_predicted_then_created_then_followed_to_its_end() -> Result<()> {
    let world = World::new("plugin-creates").await?;
    let works = short(&world).await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let _operator = world.operator().start().await?;
    let jo = Caller::new(&world, "jo", &RUNNER).await?;
    let namespace = world.namespace();
    let on = |target: &'static str, image: &'static str| {
        ["run", "drain", "--on", target, "--version", "1", "--image", image]
    };
    let (works, fails): (&'static str, &'static str) = (works.leak(), fails.leak());

    let node = on("node/n", works);
    let dry = jo.says(0, &[&node[..], &["--dry-run"]].concat()).await?;
    has(&dry, &["a new execution on node/n: would run now.\n", "Nothing was created: --dry-run."]);
    has(&jo.says(1, &on("payment/deployement/cart", works)).await?, &["did you mean", "Nothing was created."]);
    let typed = jo.says(2, &[&node[..], &["--set", "threshold=hunter2"]].concat()).await?;
    has(&typed, &["spec.parameters"]);
    assert!(!typed.contains("hunter2"), "{typed}");
    assert_eq!(count(&world).await?, 0);

    let done = jo.says(0, &[&node[..], &["--set", "KEY=hunter2", "--retry", "2", "--wait"]].concat()).await?;
    has(
        &done,
        &["would run now.\n", &format!("Created {namespace}/drain-"), "created   drain on node/n", "Completed after"],
    );
    assert!(!done.contains("hunter2"), "{done}");
    let all = world.api(&wfe::resource(), namespace).list(&ListParams::default()).await?.items;
    let first = all[0].metadata.name.clone().unwrap_or_default();
    let spec = &all[0].data["spec"];
    assert_eq!((&spec["parameters"], &spec["retry"]), (&json!({"KEY": "hunter2"}), &json!(2)), "{spec:#}");

    let again = jo.says(1, &["run", "--like", &first]).await?;
    has(&again, &["would be skipped, RecentlyRemediated", "Nothing was created."]);
    let like = ["run", "--like", &first, "--on", "node/m", "--name", "again", "-o", "json"];
    let answer: Value = serde_json::from_str(&jo.says(0, &like).await?)?;
    assert_eq!(
        (&answer["kind"], &answer["name"], &answer["isCreated"]),
        (&json!("Run"), &json!("again"), &json!(true))
    );
    assert_eq!(answer["outlook"]["verdict"], "Run", "{answer:#}");
    let again = world.await_phase("again", "Completed").await?;
    assert_eq!(again["spec"]["parameters"], json!({"KEY": "hunter2"}), "{again:#}");
    let like = ["run", "--like", &first, "--on", "node/o", "--name", "again"];
    has(&jo.says(2, &like).await?, &["nothing was created", "\"again\" already exists; give another --name"]);

    let failing = [&on("node/x", fails)[..], &["--name", "broken", "--wait"]].concat();
    has(&jo.says(4, &failing).await?, &["/broken on node/x: Failed half way"]);
    has(
        &jo.says(1, &on("node/x", works)).await?,
        &["would be skipped, PreviousExecutionFailed", "Nothing was created."],
    );
    let recover =
        |workflow: &'static str| ["run", workflow, "--recover", "broken", "--image", works, "--version", "1", "--wait"];
    has(&jo.says(2, &recover("drain")).await?, &["spec.recoveryOf"]);
    has(&jo.says(0, &recover("mend")).await?, &["on node/x: would run now.", "Completed after"]);

    let report = jo.says(0, &["report", "-n", namespace]).await?;
    has(&report, &["kind: Report\n", "KEY: (left out)\n", "notSeen:\n", "pods is forbidden"]);
    assert!(!report.contains("hunter2"), "{report}");

    let before = count(&world).await?;
    let viewer = Caller::new(&world, "viewer", &["wfe-explain"]).await?;
    let refused = viewer.says(2, &on("node/z", works)).await?;
    has(&refused, &["nothing was created: ", "cannot create", "the ClusterRole wfe-edit gives the right"]);
    assert_eq!(count(&world).await?, before);
    let editor = Caller::new(&world, "editor", &["wfe-edit"]).await?;
    let blind = editor.says(0, &on("node/z", works)).await?;
    has(&blind, &["whether it would run is not known: cannot list", &format!("Created {namespace}/drain-")]);
    world.close().await
}

#[tokio::test]
async fn a_namespace_is_paused_and_resumed() -> Result<()> {
    let world = World::new("plugin-pauses").await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    let namespace = world.namespace();
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let words = ["pause", namespace, "--reason", "upgrade"];
    let plain = async |code: i32, words: &[&str]| -> Result<String> {
        let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
        command.args(words).env("KUBECONFIG", &jo.kubeconfig);
        said(command, code).await
    };
    has(&plain(2, &words).await?, &["cannot get resource \"namespaces\"", "an administrator of the namespace"]);

    let (group, name) = ("rbac.authorization.k8s.io", format!("pauses-{namespace}"));
    let rule = json!({"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [namespace], "verbs": ["get", "patch"]});
    for object in [
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "jo", "namespace": namespace}],
        }),
    ] {
        world.apply(&object).await?;
    }
    let ask = async || anyhow::Ok(plain(0, &words).await);
    let paused = wfe_testkit::awaits::ask_until(super::IN_FORCE_WITHIN, "jo may pause", ask, Result::is_ok).await??;
    has(&paused, &[&format!("The namespace {namespace} is paused: no execution starts"), "kubectl wfe resume"]);
    world.wfe("waits").target("node/n").image(&bundle).create().await?;
    has(&jo.says(1, &["explain", "waits"]).await?, &["Paused", "upgrade"]);
    has(&plain(0, &words).await?, &["is paused already: upgrade; nothing was written."]);
    has(&plain(0, &["resume", namespace]).await?, &["has ended (upgrade)"]);
    world.await_phase("waits", "Completed").await?;
    has(&plain(0, &["resume", namespace]).await?, &["is not paused; nothing was written."]);
    has(&plain(2, &["pause", "no-such-namespace", "--reason", "why"]).await?, &["no-such-namespace"]);
    world.close().await
}

#[tokio::test]
async fn the_coming_slots_are_shown_with_what_would_hold_them() -> Result<()> {
    let world = World::new("plugin-next").await?;
    let bundle = short(&world).await?;
    past(&world, "broken", "node/blocked", "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    let _operator = world.operator().start().await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    has(&jo.says(0, &["schedule", "next"]).await?, &["No schedule has a slot within 24h."]);
    for (name, target) in [("free", "node/free"), ("stuck", "node/blocked")] {
        create(&world, name, target, &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
        await_schedule(&world, name, "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
        if name == "free" {
            let (stdout, _) = outputs(jo.command(&["schedule", "next", "--until", "150m"])?, &[0]).await?;
            assert_eq!(stdout.lines().count(), 3, "{stdout}");
            has(&stdout, &["/free  node/free  runs\n"]);
        }
    }
    let answer: Value =
        serde_json::from_str(&jo.says(1, &["schedule", "next", "-A", "--until", "12h30m", "-o", "json"]).await?)?;
    let of = |name: &str| -> Vec<&Value> {
        answer["items"].as_array().into_iter().flatten().filter(|it| it["name"] == name).collect()
    };
    assert_eq!((of("free").len(), of("stuck").len()), (12, 1), "{answer:#}");
    assert_eq!(of("stuck")[0]["then"], "would be held: PreviousExecutionFailed", "{answer:#}");
    world.close().await
}

#[tokio::test]
async fn a_list_is_for_pipes_and_has_colours_on_a_terminal_alone() -> Result<()> {
    let world = World::new("plugin-list").await?;
    past(&world, "broken", "node/n", "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let (names, _) = outputs(jo.command(&["list", "-o", "name"])?, &[0]).await?;
    assert_eq!(names, "workflowexecution.kubernaut.ai/broken\n");
    has(&jo.says(1, &["explain", names.trim()]).await?, &["is Failed"]);
    has(&jo.says(0, &["list", "-o", "wide"]).await?, &["WORKFLOW", "w1"]);
    has(
        &jo.says(0, &["list", "-o", "yaml"]).await?,
        &["apiVersion: cli.kubernaut.ai/v1alpha1\n", "kind: ExecutionList\n"],
    );
    has(&jo.says(0, &["list", "-o", "yaml"]).await?, &["name: broken\n", "phase: Failed\n"]);

    let on_terminal = async |variable: (&str, &str)| -> Result<String> {
        let mut command = jo.command(&["list"])?;
        // A machine of continuous integration sets `CI`, and its logs show colours on any terminal.
        command.env_remove("CI").env_remove("NO_COLOR").env("TERM", "xterm-256color").env(variable.0, variable.1);
        let (status, screen) = Terminal::start(command)?.ended().await?;
        assert!(status.success(), "{screen}");
        Ok(screen)
    };
    let colours = on_terminal(("LANG", "C")).await?;
    has(&colours, &["\u{1b}[31mFailed\u{1b}[0m", "\u{1b}[1mNAME"]);
    for without in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_terminal(without).await?;
        assert!(plain.contains("Failed") && !plain.contains('\u{1b}'), "{without:?}: {plain}");
    }
    world.close().await
}

#[tokio::test]
async fn kubectl_completes_names_of_the_cluster() -> Result<()> {
    let world = World::new("plugin-words").await?;
    past(&world, "broken", "node/n", "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let bin = jo.kubeconfig.with_file_name("bin-words");
    fs::create_dir_all(&bin)?;
    symlink(workspace_binary("kubectl-wfe")?, bin.join("kubectl-wfe"))?;
    let script = bin.join("kubectl_complete-wfe");
    let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
    command.args(["completion", "kubectl"]);
    fs::write(&script, said(command, 0).await?)?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))?;

    let completed = async |words: &[&str]| -> Result<String> {
        let mut command = process::command(world.control_plane().kubectl_path())?;
        command.arg("__complete").arg("wfe").args(words).env("PATH", &bin).env("KUBECONFIG", &jo.kubeconfig);
        Ok(outputs(command, &[0]).await?.0)
    };
    assert_eq!(completed(&["logs", ""]).await?, "broken\tFailed on node/n\n:4\n");
    assert_eq!(completed(&["logs", "c"]).await?, ":4\n");
    has(&completed(&["schedule", "n"]).await?, &["next\t", ":4\n"]);
    has(&completed(&["list", "--needs"]).await?, &["--needs-person\t"]);
    world.close().await
}
