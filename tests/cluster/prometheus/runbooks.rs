//! The commands of the runbooks, exactly as written.

use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{World, repository};

use crate::expect::text;
use crate::history::unusable;

/// Returns whether a command only reads. Commands that change something, or read the log of a pod, have no object here.
fn looks(line: &str) -> bool {
    line.starts_with("kubectl get ") || line.starts_with("kubectl wfe explain ")
}

#[tokio::test]
async fn the_commands_of_the_runbooks_work_as_they_stand_there() -> Result<()> {
    let world = World::new("runbooks").await?;
    let operator = world.operator().start().await?;
    let target = format!("node/{}", world.namespace());
    unusable(world.wfe("failed").target(&target)).create().await?;
    let failed = world.await_phase("failed", "Failed").await?;
    assert_eq!(text(&failed["status"]["target"]), target);

    let home = world.control_plane().dir().join("worlds").join(world.namespace()).join("runbooks");
    std::fs::create_dir_all(&home)?;
    symlink(world.control_plane().kubectl_path(), home.join("kubectl"))?;
    symlink(workspace_binary("kubectl-wfe")?, home.join("kubectl-wfe"))?;
    let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap_or_default());

    let mut tried = 0;
    for page in std::fs::read_dir(repository().join("docs/runbooks"))? {
        let page = page?.path();
        for line in std::fs::read_to_string(&page)?.lines().filter(|line| looks(line)) {
            let command_line = line
                .replace("explain TARGET", &format!("explain {target}"))
                .replace("get wfe NAME ", "get wfe failed ")
                .replace("--namespace NAMESPACE", &format!("--namespace {}", world.namespace()))
                .replace("=RUN", "=no-such-run")
                .replace("kubernaut-workflows", &world.execution_namespace())
                .replace("kubernaut-system", &world.system_namespace());
            let mut command = process::command("bash")?;
            command
                .args(["-c", &format!("set -o pipefail; {command_line}")])
                .env("PATH", &path)
                .env("HOME", &home)
                .env("KUBECONFIG", world.control_plane().kubeconfig())
                .env("WFE_EXECUTION_NAMESPACE", world.execution_namespace())
                .env("WFE_OPERATOR_NAMESPACE", world.system_namespace());
            let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
            // A report that the execution would not run is a valid answer.
            let is_answer = output.status.code() == Some(1) && line.contains("explain");
            ensure!(
                output.status.success() || is_answer,
                "{}: {line}\nends with {}: {}{}",
                page.display(),
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            tried += 1;
        }
    }
    assert!(tried >= 20, "only {tried} commands were found");
    operator.terminate().await?;
    world.close().await
}
