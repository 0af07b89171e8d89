//! The operator under test: the real binary in its own process, with a token of the shipped service account.
//!
//! The operator dies with the thread that started it (see `process`). Start it from the test itself: a task may run on
//! a thread that outlives the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use rustix::process::Signal;
use serde_json::Value;

use crate::awaits::DEADLINE;
use crate::metrics::Metrics;
use crate::proxy::Proxy;
use crate::world::World;
use crate::{http, place, process, rbac};

const READY_WITHIN: Duration = Duration::from_mins(1);
const ENDS_WITHIN: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(20);
/// The lifetime of a token. It is longer than the longest test, but a leaked token is useless afterwards.
const TOKEN_SECONDS: i64 = 6 * 3600;

/// An operator that is not started yet.
#[must_use = "nothing runs until `start` or `spawn`"]
pub struct OperatorBuilder<'w> {
    world: &'w World,
    /// The path of the binary, if it is not the binary of this workspace.
    program: Option<PathBuf>,
    /// Flags with their values. A flag without a value is a switch.
    args: Vec<(String, Option<String>)>,
    env: Vec<(String, String)>,
    kubeconfig: Option<PathBuf>,
    /// The URL of the API server, if it is not the URL of the control plane.
    url: Option<String>,
}

impl<'w> OperatorBuilder<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        let builder = Self { world, args: Vec::new(), env: Vec::new(), kubeconfig: None, url: None, program: None };
        // Worlds share a control plane without the shipped policies. The setting is a variable, because older binaries
        // lack the flag.
        let builder = builder.env("WFE_POLICY_CHECK_INTERVAL", "0");
        let builder = if world.watches_all() { builder } else { builder.arg("--watch-namespace", world.namespace()) };
        builder
            .arg("--namespace", &world.system_namespace())
            .arg("--execution-namespace", &world.execution_namespace())
            .arg("--metrics-address", "127.0.0.1:0")
            .arg("--health-address", "127.0.0.1:0")
            .arg("--log-format", "json")
            .arg("--log-level", "debug")
            // Most tests start a single operator, or several that rival each other on purpose.
            .arg("--leader-elect", "false")
    }

    /// Runs this binary instead of the binary of this workspace.
    pub fn program(mut self, path: &Path) -> Self {
        self.program = Some(path.to_owned());
        self
    }

    /// Makes the operator a replica that takes part in the leader election. Its identity begins with this name.
    pub fn replica(self, name: &str) -> Self {
        self.arg("--leader-elect", "true").arg("--identity", name)
    }

    /// Sets a flag to a value, which replaces any earlier value of the flag.
    pub fn arg(self, flag: &str, value: &str) -> Self {
        let mut this = self.without(flag);
        this.args.push((flag.to_owned(), Some(value.to_owned())));
        this
    }

    /// Sets a flag that has no value.
    pub fn switch(mut self, flag: &str) -> Self {
        self.args.push((flag.to_owned(), None));
        self
    }

    /// Removes a flag.
    pub fn without(mut self, flag: &str) -> Self {
        self.args.retain(|(one, _)| one != flag);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses this kubeconfig instead of one that has a new token of the shipped service account.
    pub fn kubeconfig(mut self, path: &Path) -> Self {
        self.kubeconfig = Some(path.to_owned());
        self
    }

    /// Connects the operator to the API server through this proxy, with the operator's own token. It cannot be combined
    /// with [`OperatorBuilder::kubeconfig`].
    pub fn through(mut self, proxy: &Proxy) -> Self {
        self.url = Some(proxy.url());
        self
    }

    /// Starts the operator, and waits until `/readyz` answers 200.
    pub async fn start(self) -> Result<Operator> {
        let mut operator = self.spawn().await?;
        operator.await_ready().await?;
        Ok(operator)
    }

    /// Starts the operator without waiting until it is ready.
    pub async fn spawn(self) -> Result<Operator> {
        let program = self.program.map_or_else(|| process::workspace_binary("wfe-operator"), Ok)?;
        let number = self.world.number_operator();
        let dir = self.world.control_plane().dir().join("worlds").join(self.world.namespace());
        fs::create_dir_all(&dir)?;
        let kubeconfig = if let Some(path) = self.kubeconfig {
            path
        } else {
            let path = dir.join(format!("kubeconfig-{number}"));
            let account = (self.world.system_namespace(), rbac::OPERATOR);
            write_kubeconfig(self.world, (&account.0, account.1), self.url.as_deref(), &path).await?;
            path
        };
        let log = dir.join(format!("operator-{number}.log"));
        let file = process::open_log(&log)?;
        let mut command = process::command(program)?;
        command.arg("run");
        for (flag, value) in &self.args {
            command.arg(flag).args(value);
        }
        command
            .env("KUBECONFIG", kubeconfig)
            .env("RUST_BACKTRACE", "1")
            .envs(self.env)
            .stdout(file.try_clone()?)
            .stderr(file);
        self.world.remember_log(log.clone());
        let flags = self.args.into_iter().map(|(flag, value)| (flag, value.unwrap_or_default()));
        self.world.remember_flags(flags.collect());
        Operator::new(command, log)
    }
}

/// Writes a kubeconfig with a token of a service account, which is given by namespace and name. Its user has exactly
/// the rights of the account.
pub(crate) async fn write_kubeconfig(
    world: &World,
    (namespace, account): (&str, &str),
    url: Option<&str>,
    path: &Path,
) -> Result<()> {
    let token = token(&world.client(), namespace, account).await?;
    let control_plane = world.control_plane();
    let url = url.unwrap_or(control_plane.url());
    place::write_kubeconfig(path, url, &control_plane.authority(), &token, world.namespace())
}

/// Returns a new token of a service account.
pub(crate) async fn token(client: &Client, namespace: &str, account: &str) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .with_context(|| format!("no token for the service account {account}"))?;
    answer.status.and_then(|status| status.token).context("a token request without an answer")
}

/// A running operator. Dropping it kills the process, and fails the test if the operator has panicked.
#[derive(Debug)]
pub struct Operator {
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
    judged: bool,
}

impl Operator {
    pub(crate) fn new(mut command: Command, log: PathBuf) -> Result<Self> {
        let child = command.spawn().context("the operator cannot be started")?;
        Ok(Self { child, log, status: None, judged: false })
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of the log.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Reads the JSON objects in the log. Lines that are not JSON, such as a panic's, are left out.
    pub async fn log(&self) -> Vec<Value> {
        let text = tokio::fs::read(&self.log).await.unwrap_or_default();
        String::from_utf8_lossy(&text).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits until a metric has at least this value.
    pub async fn await_value(&self, metric: &str, value: f64) -> Result<()> {
        self.await_metrics(&format!("{metric} of {value}"), |metrics| metrics.value(metric, &[]) >= value).await
    }

    /// Waits until `are` accepts a scrape of the metrics. `what` completes the error "awaited ...".
    pub async fn await_metrics(&self, what: &str, are: impl Fn(&Metrics) -> bool) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let metrics = self.metrics().await?;
            if are(&metrics) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let seen = metrics.samples();
                bail!("awaited {what} for {DEADLINE:?}, in vain; {}; the metrics are {seen:#?}", self.last_words());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until `is` accepts a line of the log, and returns the line. `what` completes the error "awaited a line
    /// that ...".
    pub async fn await_line(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(line) = self.log().await.into_iter().find(|line| is(line)) {
                return Ok(line);
            }
            if Instant::now() > deadline {
                bail!("awaited a line that {what} for {DEADLINE:?}, in vain; {}", self.last_words());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until `/readyz` answers 200.
    pub async fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        while !self.ready().await {
            if let Some(status) = self.ended() {
                bail!("the operator ended ({status}); {}", self.last_words());
            }
            if Instant::now() > deadline {
                bail!("the operator is not ready after {READY_WITHIN:?}; {}", self.last_words());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Returns whether `/readyz` answers 200 now.
    pub async fn ready(&self) -> bool {
        self.get("health", "/readyz").await.is_ok_and(|(status, _)| status == 200)
    }

    /// Scrapes the metrics.
    pub async fn metrics(&self) -> Result<Metrics> {
        let (status, text) = self.get("metrics", "/metrics").await?;
        anyhow::ensure!(status == 200, "/metrics answered {status}: {text}");
        Metrics::parse(&text)
    }

    /// Requests a path from one of the operator's servers (`metrics` or `health`), and returns status and body.
    pub async fn get(&self, server: &str, path: &str) -> Result<(u16, String)> {
        let address =
            self.address(server).await.with_context(|| format!("the operator does not say where {server} listens"))?;
        let answer = http::get(&address, path).await?;
        Ok((answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
    }

    /// Finds the address of a server in the log.
    pub async fn address(&self, server: &str) -> Option<String> {
        let lines = self.log().await;
        let fields = lines
            .iter()
            .map(|line| &line["fields"])
            .find(|fields| fields["message"] == "listening" && fields["server"] == server)?;
        fields["address"].as_str().map(str::to_owned)
    }

    /// Sends SIGTERM, and waits until the operator has ended. Returns an error if the operator has panicked.
    pub async fn terminate(mut self) -> Result<ExitStatus> {
        process::signal(self.child.id(), Signal::TERM)?;
        let deadline = Instant::now() + ENDS_WITHIN;
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            if Instant::now() > deadline {
                bail!("the operator has not ended {ENDS_WITHIN:?} after SIGTERM; {}", self.last_words());
            }
            tokio::time::sleep(PAUSE).await;
        };
        self.judge()?;
        Ok(status)
    }

    /// Waits until the operator ends on its own (for example after a refused start), and returns its status. Panics in
    /// the log are ignored.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let deadline = Instant::now() + ENDS_WITHIN;
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("the operator still runs after {ENDS_WITHIN:?}; {}", self.last_words());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Kills the operator (SIGKILL), as a crash would. Returns an error if the operator had panicked.
    // Async so that callers can use it in the same way as `terminate`.
    #[allow(clippy::unused_async)]
    pub async fn kill(mut self) -> Result<()> {
        self.end();
        self.judge()
    }

    /// Suspends the operator (SIGSTOP).
    pub fn pause(&self) -> Result<()> {
        process::signal(self.child.id(), Signal::STOP)
    }

    /// Resumes the operator (SIGCONT).
    pub fn resume(&self) -> Result<()> {
        process::signal(self.child.id(), Signal::CONT)
    }

    /// Returns the exit status of the operator, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    fn end(&mut self) {
        if self.ended().is_none() {
            // The operator may be ending on its own at this moment.
            drop(self.child.kill());
            self.status = self.child.wait().ok();
        }
    }

    /// Fails if the operator panicked in any thread.
    fn judge(&mut self) -> Result<()> {
        self.judged = true;
        let text = fs::read(&self.log).unwrap_or_default();
        match String::from_utf8_lossy(&text).lines().find(|line| line.contains("panicked at")) {
            Some(line) => bail!("the operator panicked: {line}\n{}", self.last_words()),
            None => Ok(()),
        }
    }

    fn last_words(&self) -> String {
        format!("log {}, its last lines:\n{}", self.log.display(), process::last_lines(&self.log, 30))
    }
}

impl Drop for Operator {
    // A panic of the operator fails the test here, at teardown.
    #[allow(clippy::panic)]
    fn drop(&mut self) {
        self.end();
        if !self.judged
            && !std::thread::panicking()
            && let Err(error) = self.judge()
        {
            panic!("{error:#}");
        }
    }
}
