//! The operator in a process of its own, with a token of the shipped service account and no other rights.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Child;

use super::figures::Figures;
use super::stage::Stage;
use crate::{http, process};

/// The name of the operator's log in the demo's directory.
pub(super) const LOG: &str = "operator.log";

const ACCOUNT: &str = "system:serviceaccount:kubernaut-system:wfe-operator";
const READY_WITHIN: Duration = Duration::from_mins(1);
const STOPS_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// A running operator.
pub(super) struct Operator {
    child: Child,
    log: PathBuf,
    metrics: SocketAddr,
}

impl Operator {
    /// Starts `wfe-operator run` as the shipped service account and waits until it is ready.
    pub(super) async fn start(stage: &Stage, dir: &Path) -> Result<Self> {
        let kubeconfig = dir.join("kubeconfig");
        stage.write_operator_kubeconfig(&kubeconfig).await?;
        let log = dir.join(LOG);
        let output = process::open_log(&log)?;
        let mut command = process::command(process::workspace_binary("wfe-operator")?)?;
        // The environment may have variables for another operator of this person. They are removed.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"WFE_")) {
            command.env_remove(name);
        }
        command
            .args(["run", "--log-format", "json"])
            .args(["--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"])
            .args(stage.operator_args())
            .env("KUBECONFIG", &kubeconfig)
            .stdout(output.try_clone()?)
            .stderr(output);
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
        match await_ready(&mut child, &log).await {
            Ok(metrics) => Ok(Self { child, log, metrics }),
            Err(error) => bail!("the operator {error:#}\nits last lines:\n{}", process::last_lines(&log, 15)),
        }
    }

    /// Describes the operator's account and process in a sentence.
    pub(super) fn introduction(&self) -> String {
        format!("as {ACCOUNT}, pid {}", self.child.id().unwrap_or_default())
    }

    /// Scrapes the operator's metrics.
    pub(super) async fn figures(&self) -> Result<Figures> {
        let answer = http::get(&self.metrics.to_string(), "/metrics").await.context("the operator's metrics")?;
        ensure!(answer.status == 200, "the operator's metrics: {}", answer.text());
        Ok(Figures::parse(std::str::from_utf8(&answer.body)?))
    }

    /// Returns the last lines of the operator's log.
    pub(super) fn last_lines(&self) -> String {
        process::last_lines(&self.log, 15)
    }

    /// Stops the operator with SIGTERM, as Kubernetes does, and checks that the process ends.
    pub(super) async fn stop(&mut self) -> Result<()> {
        if let Some(pid) = self.child.id() {
            process::signal(pid, Signal::TERM)?;
        }
        let status = tokio::time::timeout(STOPS_WITHIN, self.child.wait())
            .await
            .with_context(|| format!("the operator did not stop within {STOPS_WITHIN:?} of SIGTERM"))??;
        ensure!(status.success(), "the operator ended with {status} after SIGTERM:\n{}", self.last_lines());
        Ok(())
    }
}

/// Waits until the operator has logged the addresses of its servers, and then until it is ready. Returns the address of
/// the metrics.
async fn await_ready(child: &mut Child, log: &Path) -> Result<SocketAddr> {
    let deadline = Instant::now() + READY_WITHIN;
    let mut last = "says nothing".to_owned();
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            bail!("ended with {status}");
        }
        let listening = addresses(&std::fs::read_to_string(log).unwrap_or_default());
        if let (Some(health), Some(metrics)) = (listening.get("health"), listening.get("metrics")) {
            match http::get(&health.to_string(), "/readyz").await {
                Ok(answer) if answer.status == 200 => return Ok(*metrics),
                Ok(answer) => last = answer.text(),
                Err(error) => last = format!("{error:#}"),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("is not ready after {READY_WITHIN:?}: {last}")
}

/// Finds the address of each server in the log.
fn addresses(log: &str) -> HashMap<String, SocketAddr> {
    let fields = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    fields
        .filter_map(|line| {
            let field = |name: &str| line["fields"][name].as_str();
            let (server, address) = (field("server")?, field("address")?);
            Some((server.to_owned(), address.parse().ok()?))
        })
        .collect()
}
