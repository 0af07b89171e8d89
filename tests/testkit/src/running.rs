//! One running component: start, wait until it serves, stop, restart. Use this from a thread that outlives the
//! component.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;
use tokio::process::Child;

use crate::components::{Component, Probe};
use crate::place::Place;
use crate::{http, manifests, process};

/// How long a component may take until it serves. A slow machine may be compiling on its two cores.
const SERVES_WITHIN: Duration = Duration::from_mins(2);
const STOPS_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(30);

/// A component and its process.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) component: Component,
    log: PathBuf,
    /// The offset in the log at which the last start begins.
    log_start: u64,
    /// `None` after the component was stopped on purpose.
    child: Option<Child>,
}

impl Running {
    /// Starts a component without waiting until it serves.
    pub(crate) fn spawn(place: &Place, component: Component) -> Result<Self> {
        let log = place.log(component.name);
        let mut running = Self { component, log, log_start: 0, child: None };
        running.respawn()?;
        Ok(running)
    }

    fn respawn(&mut self) -> Result<()> {
        let log = process::open_log(&self.log)?;
        self.log_start = log.metadata()?.len();
        let mut command = process::command(&self.component.program)?;
        command
            .args(&self.component.args)
            .envs(self.component.env.iter().cloned())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.child = Some(tokio::process::Command::from(command).kill_on_drop(true).spawn()?);
        Ok(())
    }

    /// Waits until the component serves. The error names the component and its log, and shows the last lines of the
    /// log.
    pub(crate) async fn await_serving(&mut self) -> Result<()> {
        let deadline = Instant::now() + SERVES_WITHIN;
        let client = match &self.component.probe {
            Probe::Api(kubeconfig) => Some(manifests::client(kubeconfig).await?),
            _ => None,
        };
        loop {
            if let Some(status) = self.exited() {
                bail!("{}", self.obituary(&format!("ended with {}", describe(status))));
            }
            let serves = match &self.component.probe {
                Probe::Http(port, path) => {
                    http::get(&format!("127.0.0.1:{port}"), path).await.is_ok_and(|answer| answer.status == 200)
                }
                Probe::Tcp(port) => tokio::net::TcpStream::connect(("127.0.0.1", *port)).await.is_ok(),
                Probe::Log(words) => self.has_logged(words),
                Probe::Api(_) => match &client {
                    Some(client) => ready(client).await,
                    None => false,
                },
            };
            if serves {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{}", self.obituary(&format!("does not serve after {SERVES_WITHIN:?}")));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn has_logged(&self, words: &[&str]) -> bool {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let start = usize::try_from(self.log_start).unwrap_or(usize::MAX).min(text.len());
        String::from_utf8_lossy(&text[start..]).lines().any(|line| words.iter().all(|word| line.contains(word)))
    }

    /// Returns the exit status if the process has ended on its own.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// Returns whether the log shows that another process has the component's port.
    pub(crate) fn lost_its_port(&self) -> bool {
        let end = process::last_lines(&self.log, 40);
        end.contains("address already in use") || end.contains("failed to listen on")
    }

    /// Describes a component that no longer works.
    pub(crate) fn obituary(&self, what: &str) -> String {
        format!(
            "{} {what}\n  log: {}\n  its last lines:\n{}",
            self.component.name,
            self.log.display(),
            process::last_lines(&self.log, 15)
        )
    }

    /// Ends the process, with SIGTERM first if `gracefully` is set.
    pub(crate) async fn stop(&mut self, gracefully: bool) {
        let Some(mut child) = self.child.take() else { return };
        if gracefully && let Some(pid) = child.id() {
            // An error means that the process has already ended.
            drop(process::signal(pid, Signal::TERM));
            if tokio::time::timeout(STOPS_WITHIN, child.wait()).await.is_ok() {
                return;
            }
        }
        drop(child.kill().await);
    }

    /// Starts the component again, with the same ports and data.
    pub(crate) async fn start_again(&mut self) -> Result<()> {
        if self.child.is_none() || self.exited().is_some() {
            self.respawn()?;
        }
        self.await_serving().await
    }

    /// Treats a component that has ended on its own as stopped.
    pub(crate) fn forget(&mut self) {
        self.child = None;
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        match self.child.as_ref().and_then(Child::id) {
            Some(pid) => process::signal(pid, signal),
            None => bail!("{} does not run", self.component.name),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    }
}

async fn ready(client: &kube::Client) -> bool {
    let Ok(request) = hyper::Request::get("/readyz").body(Vec::new()) else { return false };
    matches!(tokio::time::timeout(Duration::from_secs(5), client.request_text(request)).await, Ok(Ok(_)))
}
