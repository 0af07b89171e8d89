//! The measured process, which is an operator or the floor client.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::ValueEnum as _;
use wfe_testkit::{Proxy, World, process};

use crate::floor::Pick;
use crate::numbers::float;
use crate::template::Templates;

/// How long a subject may take until it is ready.
const READY_WITHIN: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_millis(5);
/// The kernel's unit of processor time. It is the same on all Linux systems that run this benchmark.
const TICKS_PER_SECOND: f64 = 100.0;

/// The two kinds of subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Floor,
    Operator,
}

/// An operator with the shipped roles and default settings.
pub(crate) struct Operator(wfe_testkit::Operator);

impl Operator {
    /// Starts an operator and waits until it is ready.
    pub(crate) async fn start(world: &World, program: &Path, through: Option<&Proxy>) -> Result<Self> {
        let mut operator = Self::spawn(world, program, through).await?;
        operator.await_ready().await?;
        Ok(operator)
    }

    /// Starts an operator without waiting until it is ready.
    pub(crate) async fn spawn(world: &World, program: &Path, through: Option<&Proxy>) -> Result<Self> {
        let builder = world.operator().program(program).arg("--log-level", "info");
        let builder = match through {
            Some(proxy) => builder.through(proxy),
            None => builder,
        };
        Ok(Self(builder.spawn().await?))
    }

    /// Starts an operator with these limits, and waits until it is ready.
    pub(crate) async fn start_limited(world: &World, program: &Path, limits: &str) -> Result<Self> {
        let builder = world.operator().program(program).arg("--log-level", "info").arg("--limits", limits);
        let mut operator = Self(builder.spawn().await?);
        operator.await_ready().await?;
        Ok(operator)
    }

    /// Starts an operator that takes part in the leader election, which is the default.
    pub(crate) async fn spawn_replica(world: &World, program: &Path) -> Result<Self> {
        let builder = world.operator().replica("bench").program(program).arg("--log-level", "info");
        Ok(Self(builder.spawn().await?))
    }

    /// Waits until the operator is ready.
    pub(crate) async fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        while !self.0.ready().await {
            if let Some(status) = self.0.ended() {
                bail!("the operator ended: {status}; its log is {}", self.0.log_path().display());
            }
            if Instant::now() > deadline {
                bail!("the operator is not ready after {READY_WITHIN:?}; its log is {}", self.0.log_path().display());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Returns the disturbances that the operator's own metrics show.
    pub(crate) async fn troubles(&self) -> Result<Vec<String>> {
        let metrics = self.0.metrics().await?;
        let mut troubles = Vec::new();
        for (code, what) in [("429", "throttled"), ("500", "failed"), ("503", "failed"), ("0", "without an answer")] {
            let count = metrics.value("workflowexecution_api_requests_total", &[("code", code)]);
            if count > 0.0 {
                troubles.push(format!("{count} requests of the operator were {what}"));
            }
        }
        let lost = metrics.value("workflowexecution_events_lost_total", &[]);
        if lost > 0.0 {
            troubles.push(format!("{lost} events were lost"));
        }
        Ok(troubles)
    }

    /// Returns the number of requests that the operator has sent, except those about its Lease.
    pub(crate) async fn requests(&self) -> Result<f64> {
        let metrics = self.0.metrics().await?;
        let of = |labels: &[(&str, &str)]| metrics.value("workflowexecution_api_requests_total", labels);
        Ok(of(&[]) - of(&[("resource", "leases")]))
    }

    /// Returns whether `/healthz` reports health; `None` while it does not answer.
    pub(crate) async fn health(&self) -> Option<bool> {
        let (status, _) = self.0.get("health", "/healthz").await.ok()?;
        Some(status == 200)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.0.terminate().await.map(drop)
    }
}

/// A running subject.
pub(crate) enum Subject {
    Operator(Operator),
    Floor(Floor),
}

impl Subject {
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Operator(operator) => operator.pid(),
            Self::Floor(floor) => floor.child.id(),
        }
    }

    /// Waits for `work`. Returns an error if the subject ends before.
    pub(crate) async fn until<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            done = work => done,
            why = self.death() => Err(why),
        }
    }

    /// Waits for `work`. Returns an error if one of the subjects ends before.
    pub(crate) async fn until_of_all<T>(subjects: &mut [Self], work: impl Future<Output = Result<T>>) -> Result<T> {
        let deaths = subjects.iter_mut().map(|subject| Box::pin(subject.death()));
        tokio::select! {
            done = work => done,
            (why, _, _) = futures::future::select_all(deaths) => Err(why),
        }
    }

    async fn death(&mut self) -> anyhow::Error {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let (ended, log) = match self {
                Self::Operator(operator) => (operator.0.ended(), operator.0.log_path()),
                Self::Floor(floor) => (floor.child.try_wait().ok().flatten(), floor.log.as_path()),
            };
            if let Some(status) = ended {
                return anyhow!("what is measured ended: {status}; {}", process::last_lines(log, 40));
            }
        }
    }

    /// Stops the subject. If a floor client has already ended on its own, this is an error, because it has sent too few
    /// requests.
    pub(crate) async fn stop(self) -> Result<()> {
        match self {
            Self::Operator(operator) => operator.stop().await,
            Self::Floor(mut floor) => match floor.child.try_wait()? {
                None => Ok(()),
                Some(status) => bail!("the floor client ended: {status}; {}", process::last_lines(&floor.log, 5)),
            },
        }
    }
}

/// The process of the floor client. Dropping it kills the process.
pub(crate) struct Floor {
    child: Child,
    log: PathBuf,
}

impl Drop for Floor {
    fn drop(&mut self) {
        // The process may have ended on its own.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is needed to start subjects of both kinds.
pub(crate) struct Subjects {
    pub(crate) program: PathBuf,
    templates: PathBuf,
    dir: PathBuf,
}

impl Subjects {
    /// Records the operator's requests for the floor client.
    pub(crate) async fn prepare(world: &World, program: &Path) -> Result<Self> {
        let dir = world.control_plane().dir().join("bench");
        std::fs::create_dir_all(&dir)?;
        let templates = dir.join("templates.json");
        let recorded = Templates::record(world, program).await.context("the operator's requests were not recorded")?;
        std::fs::write(&templates, serde_json::to_string(&recorded)?)?;
        Ok(Self { program: program.to_owned(), templates, dir })
    }

    /// Starts a subject of this kind, and waits until it is ready.
    pub(crate) async fn start(&self, kind: Kind, world: &World, pick: Pick) -> Result<Subject> {
        Ok(match kind {
            Kind::Operator => Subject::Operator(Operator::start(world, &self.program, None).await?),
            Kind::Floor => Subject::Floor(self.start_floor(world, world.namespace(), pick).await?),
        })
    }

    /// Starts a floor client for the executions in a namespace. Their runs are in the world's execution namespace.
    pub(crate) async fn start_floor(&self, world: &World, namespace: &str, pick: Pick) -> Result<Floor> {
        let kubeconfig = self.dir.join(format!("floor-{namespace}"));
        world.write_operator_kubeconfig(None, &kubeconfig).await?;
        let log = self.dir.join(format!("floor-{namespace}.log"));
        std::fs::write(&log, "")?;
        let file = std::fs::OpenOptions::new().append(true).open(&log)?;
        let mut command = process::command(std::env::current_exe()?)?;
        command.arg("floor").arg("--kubeconfig").arg(&kubeconfig).arg("--templates").arg(&self.templates);
        command.args(["--namespace", namespace, "--execution-namespace", &world.execution_namespace()]);
        command.args(["--pick", pick.to_possible_value().context("a pick has no name")?.get_name()]);
        let child = command.stdout(file.try_clone()?).stderr(file).stdin(Stdio::null()).spawn()?;
        let mut floor = Floor { child, log };
        let deadline = Instant::now() + READY_WITHIN;
        while !std::fs::read_to_string(&floor.log)?.contains("ready") {
            if let Some(status) = floor.child.try_wait()? {
                bail!("the floor client ended: {status}; {}", process::last_lines(&floor.log, 5));
            }
            if Instant::now() > deadline {
                bail!("the floor client is not ready after {READY_WITHIN:?}");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(floor)
    }
}

/// Returns the processor time of a process in seconds, with two decimal places.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    Ok(processor_seconds(&format!("/proc/{pid}/stat"))?.0)
}

/// Returns the processor time of all children of this process that have ended, in seconds, with two decimal places.
pub(crate) fn reaped_seconds() -> Result<f64> {
    Ok(processor_seconds("/proc/self/stat")?.1)
}

/// Returns the processor time of a process, and of its children that have ended.
fn processor_seconds(path: &str) -> Result<(f64, f64)> {
    let stat = std::fs::read_to_string(path)?;
    // The process name may contain spaces, and ends with the last bracket. The 12th and 13th fields after it are user
    // and system time, and the next two fields are those of the children.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let seconds = |at: usize| {
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = ticks(at).zip(ticks(at + 1)).context("/proc does not contain the processor time")?;
        anyhow::Ok((user + system) / TICKS_PER_SECOND)
    };
    Ok((seconds(11)?, seconds(13)?))
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(float(kilobytes) * 1024.0)
}
