//! A running control plane, as the API for tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use kube::Client;
use tokio::sync::OnceCell;

use crate::assets::Assets;
use crate::audit::{self, AuditEntry};
use crate::given::{self, GivenDir};
use crate::stack::{Info, Options, Tekton};
use crate::supervisor::{self, Answer, Verb};
use crate::{manifests, process};

/// A control plane in a process of its own, or a given cluster. A control plane ends when the last clone of this value
/// is dropped, or when this process ends. A given cluster keeps running.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    info: Arc<Info>,
    keeper: Arc<Keeper>,
}

/// The owner of the processes and files of a control plane.
#[derive(Debug)]
enum Keeper {
    Supervisor(Mutex<Supervisor>),
    /// A given cluster, whose processes are not ours. The directory is removed with this value.
    Given {
        _dir: GivenDir,
    },
}

/// The supervising process, and its standard input and output.
#[derive(Debug)]
struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// The shared control plane, or the error of its start. Without the remembered error, the next hundred tests would each
/// wait for a failing start.
static SHARED: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();

impl ControlPlane {
    /// Returns the control plane of this process. The first caller starts it, and it ends with the process.
    pub async fn shared() -> Result<&'static Self> {
        let start = || async { Self::start(Options::default()).await.map_err(|error| format!("{error:#}")) };
        match SHARED.get_or_init(start).await {
            Ok(control_plane) => Ok(control_plane),
            Err(why) => bail!("{why}"),
        }
    }

    /// Starts a control plane for a single test.
    pub async fn start(options: Options) -> Result<Self> {
        tokio::task::spawn_blocking(move || Self::start_blocking(options)).await.context("the start panicked")?
    }

    /// Uses the existing cluster of a kubeconfig. The kubeconfig must contain the certificate authority as data.
    pub fn given(kubeconfig: &Path) -> Result<Self> {
        let dir = GivenDir::create(kubeconfig)?;
        let cluster = given::cluster(kubeconfig)?;
        let info = Info {
            kubeconfig: kubeconfig.to_owned(),
            url: cluster.server.context("the cluster of the kubeconfig has no server")?,
            etcd: None,
            registry: None,
            tekton: None,
            kubectl: Assets::find(Tekton::Current)?.program("kubectl"),
            dir: dir.path().to_owned(),
        };
        Ok(Self { info: Arc::new(info), keeper: Arc::new(Keeper::Given { _dir: dir }) })
    }

    /// Returns whether the cluster was given. The components of a given cluster cannot be stopped.
    #[must_use]
    pub fn is_given(&self) -> bool {
        matches!(*self.keeper, Keeper::Given { .. })
    }

    fn start_blocking(options: Options) -> Result<Self> {
        let mut supervisor = Supervisor::spawn(options)?;
        match supervisor.hear()? {
            Answer::Ready(info) => {
                Ok(Self { info: Arc::new(info), keeper: Arc::new(Keeper::Supervisor(Mutex::new(supervisor))) })
            }
            Answer::Failed(why) => bail!("the control plane did not start: {why}"),
            other => bail!("the supervisor of the control plane said {other:?}"),
        }
    }

    /// Creates a client for the administrator. A client belongs to the runtime of the test that created it.
    pub async fn client(&self) -> Result<Client> {
        manifests::client(&self.info.kubeconfig).await
    }

    /// Returns the administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.info.kubeconfig
    }

    /// Returns the kubeconfig that a component reads when it starts.
    #[must_use]
    pub fn component_kubeconfig(&self, name: &str) -> PathBuf {
        self.info.dir.join(format!("kubeconfig-{name}"))
    }

    /// Returns the URL of the API server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.info.url
    }

    /// Returns the run directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.info.dir
    }

    /// Returns the directory of the components' logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        supervisor::logs(&self.info.dir)
    }

    /// Reads every request for our kinds from the audit log, in the order of the log's lines. Only `resource_version`
    /// gives the order of writes.
    pub async fn audit(&self) -> Result<Vec<AuditEntry>> {
        self.audit_since(0, "").await
    }

    /// Reads the entries of the audit log that contain a text, from a byte offset on.
    pub(crate) async fn audit_since(&self, from: u64, text: &str) -> Result<Vec<AuditEntry>> {
        audit::read(&self.audit_log(), from, text).await
    }

    /// Returns the current length of the audit log in bytes; 0 if the log does not exist.
    pub(crate) fn audit_length(&self) -> u64 {
        std::fs::metadata(self.audit_log()).map_or(0, |log| log.len())
    }

    fn audit_log(&self) -> PathBuf {
        self.info.dir.join("audit.log")
    }

    /// Returns the registry as host:port; empty without Tekton.
    #[must_use]
    pub fn registry(&self) -> String {
        self.info.registry.clone().unwrap_or_default()
    }

    /// Returns the URL of the control plane's etcd; `None` for a given cluster.
    #[must_use]
    pub fn etcd(&self) -> Option<&str> {
        self.info.etcd.as_deref()
    }

    /// Returns the version of Tekton, such as `v1.12.0`; empty without Tekton.
    #[must_use]
    pub fn tekton_version(&self) -> String {
        self.info.tekton.clone().unwrap_or_default()
    }

    /// Returns the path of the authority's certificate, which signed the API server's certificate.
    #[must_use]
    pub(crate) fn authority(&self) -> PathBuf {
        crate::pki::Pki::at(&self.info.dir.join("pki")).authority()
    }

    /// Returns the path of the built `kubectl`.
    #[must_use]
    pub fn kubectl_path(&self) -> &Path {
        &self.info.kubectl
    }

    /// Prepares a call of the built `kubectl` as the administrator.
    pub(crate) fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.info.kubectl);
        command.arg("--kubeconfig").arg(&self.info.kubeconfig).args(args).stdin(Stdio::null());
        // Without this, control planes that had the same port would share the discovery cache of kubectl.
        command.arg("--cache-dir").arg(self.info.dir.join("kubectl-cache"));
        command
    }

    /// Calls the built `kubectl` as the administrator and returns what it printed.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let output = tokio::process::Command::from(self.kubectl_command(args))
            .output()
            .await
            .context("kubectl cannot be started")?;
        if !output.status.success() {
            bail!("kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).context("kubectl printed what is not UTF-8")
    }

    /// Returns the id of the process that owns the components; `None` for a given cluster.
    #[must_use]
    pub fn supervisor_pid(&self) -> Option<u32> {
        match &*self.keeper {
            Keeper::Supervisor(supervisor) => Some(lock(supervisor).child.id()),
            Keeper::Given { .. } => None,
        }
    }

    /// Returns one component (such as `kube-apiserver` or `tekton-controller`), to stop or restart it. The control
    /// plane must be private to the test.
    #[must_use]
    pub fn component(&self, name: &str) -> ComponentHandle {
        ComponentHandle { name: name.to_owned(), keeper: Arc::clone(&self.keeper) }
    }
}

/// One component of a private control plane.
#[derive(Debug, Clone)]
pub struct ComponentHandle {
    name: String,
    keeper: Arc<Keeper>,
}

impl ComponentHandle {
    /// Stops the component with SIGTERM, and waits until its process has ended.
    pub async fn stop(&self) -> Result<()> {
        self.ask(Verb::Stop).await
    }

    /// Kills the component.
    pub async fn kill(&self) -> Result<()> {
        self.ask(Verb::Kill).await
    }

    /// Starts the component again, with the same ports and data, and waits until it serves.
    pub async fn start(&self) -> Result<()> {
        self.ask(Verb::Start).await
    }

    /// Stops and starts the component.
    pub async fn restart(&self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// Suspends the component (SIGSTOP): its connections stay open, but it does not answer.
    pub async fn pause(&self) -> Result<()> {
        self.ask(Verb::Pause).await
    }

    /// Resumes the component (SIGCONT).
    pub async fn resume(&self) -> Result<()> {
        self.ask(Verb::Resume).await
    }

    async fn ask(&self, what: Verb) -> Result<()> {
        let command = supervisor::Command { what, component: self.name.clone() };
        let keeper = Arc::clone(&self.keeper);
        tokio::task::spawn_blocking(move || {
            let Keeper::Supervisor(supervisor) = &*keeper else {
                bail!("{what:?} {}: the cluster is somebody else's", command.component)
            };
            let mut supervisor = lock(supervisor);
            supervisor.say(&command)?;
            match supervisor.hear()? {
                Answer::Done => Ok(()),
                Answer::Refused(why) => bail!("{what:?} {}: {why}", command.component),
                other => bail!("the supervisor of the control plane said {other:?}"),
            }
        })
        .await
        .context("the conversation with the supervisor panicked")?
    }
}

fn lock(supervisor: &Mutex<Supervisor>) -> MutexGuard<'_, Supervisor> {
    supervisor.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    fn spawn(options: Options) -> Result<Self> {
        let mut command = Command::new(process::workspace_binary("control-plane")?);
        let (tekton, audit) = (options.tekton.to_possible_value(), options.audit.to_possible_value());
        command.args(["serve", "--tekton"]).args(tekton.as_ref().map(PossibleValue::get_name));
        command.arg("--audit").args(audit.as_ref().map(PossibleValue::get_name));
        for (wanted, flag) in [(!options.pods, "--no-pods"), (options.webhook, "--webhook"), (!options.crd, "--no-crd")]
        {
            if wanted {
                command.arg(flag);
            }
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the supervisor of the control plane cannot be started")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the supervisor has no output")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn say(&mut self, command: &supervisor::Command) -> Result<()> {
        let input = self.input.as_mut().context("the supervisor is gone")?;
        writeln!(input, "{}", serde_json::to_string(command)?).context("the supervisor is gone")
    }

    fn hear(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.output.read_line(&mut line).context("the supervisor cannot be read")?;
        if line.is_empty() {
            bail!("the supervisor of the control plane ended; what it said stands above, on standard error");
        }
        serde_json::from_str(&line).with_context(|| format!("the supervisor said {line:?}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The supervisor ends when its input closes.
        self.input = None;
        drop(self.child.wait());
    }
}
