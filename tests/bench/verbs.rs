//! How long the reading verbs of `kubectl wfe` take in a cluster with many executions.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Result, ensure};
use tokio::process::Command;
use wfe_testkit::World;

use crate::Bench;
use crate::numbers::millis;
use crate::subject::reaped_seconds;

/// The plugin's program, in the directory of the operator's program.
const PLUGIN: &str = "kubectl-wfe";

/// Runs each verb that reads one object, one target or all executions, and measures its wall-clock time and its own
/// processor time. `one` is an execution, and its target is `node/` and its name.
pub(crate) async fn verbs(bench: &mut Bench, world: &World, one: &str) -> Result<()> {
    let target = format!("node/{one}");
    let verbs: [(&str, &[&str]); 10] = [
        ("status", &["status"]),
        ("status of a target", &["status", &target]),
        ("status of an execution", &["status", one]),
        ("status as a page", &["status", "-o", "html"]),
        ("list", &["list"]),
        ("list as JSON", &["list", "-o", "json"]),
        ("explain", &["explain", one]),
        ("history", &["history", &target]),
        ("circuits", &["circuits"]),
        ("config", &["config"]),
    ];
    let plugin = bench.subjects.program.with_file_name(PLUGIN);
    for (verb, arguments) in verbs {
        let (begun, reaped) = (Instant::now(), reaped_seconds()?);
        run(&plugin, world, arguments).await?;
        let (wall, own) = (millis(begun.elapsed()), (reaped_seconds()? - reaped) * 1e3);
        bench.results.add(&format!("verbs/{verb}/wall"), "ms", wall);
        bench.results.add(&format!("verbs/{verb}/own"), "ms", own);
        bench.say(&format!("kubectl wfe {verb}: {wall:.0} ms, {own:.0} ms of them its own"));
    }
    Ok(())
}

async fn run(plugin: &Path, world: &World, arguments: &[&str]) -> Result<()> {
    ensure!(plugin.exists(), "{} is missing: cargo build --release --package kubectl-wfe", plugin.display());
    let mut command = Command::new(plugin);
    command.arg("--kubeconfig").arg(world.control_plane().kubeconfig()).arg("--namespace").arg(world.namespace());
    let done = command.args(arguments).stdin(Stdio::null()).output().await?;
    // Exit codes above 0 are answers, too. A verb that fails says why on stderr and shows no answer.
    ensure!(!done.stdout.is_empty(), "{arguments:?} answered nothing: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
