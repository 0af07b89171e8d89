//! The demo: one workflow that completes, then ten executions at once on one target. Every claim is checked.
//!
//! ```text
//!  stage (a cluster, given or started) ──► operator (its own process and account) ──► story (two acts, then figures)
//! ```
//!
//! The demo prints what it observes. A claim that is not true within its deadline ends the demo.

mod figures;
mod follow;
mod operator;
mod screen;
mod stage;
mod story;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use operator::Operator;
use screen::{Screen, Tone};
use stage::Stage;

use crate::random;

/// Runs the demo. `KEEP=1` keeps the cluster and the operator until Ctrl-C. `KUBECONFIG` names an existing cluster to
/// use.
pub async fn run() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let screen = Screen::new();
    let scratch = Scratch::create()?;
    let cast = tokio::select! {
        told = tell(&screen, &scratch) => told?,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("asked to stop"),
    };
    if std::env::var_os("KEEP").is_some_and(|value| value == "1") {
        screen.line("kept", "", Tone::Plain, "the cluster and the operator run until Ctrl-C")?;
        screen.plain(&format!("\n{}\n", cast.stage.how_to_use()))?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    let Cast { mut operator, stage } = cast;
    operator.stop().await?;
    let left = stage.leave().await?;
    screen.line("done", "", Tone::Good, &format!("the story happened as told; {left}"))?;
    Ok(())
}

/// Prints on standard error why the demo failed, in one paragraph. Prints nothing if the reason is a closed pipe.
#[must_use]
pub fn fail(error: &anyhow::Error) -> ExitCode {
    if !is_closed_pipe(error) {
        // If standard error is closed too, there is nowhere left to report to.
        drop(writeln!(std::io::stderr(), "\ndemo: {error:#}"));
    }
    ExitCode::FAILURE
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// The participants, in the order in which they end.
struct Cast {
    operator: Operator,
    stage: Stage,
}

async fn tell(screen: &Screen, scratch: &Scratch) -> Result<Cast> {
    let stage = Stage::set(screen).await?;
    screen.line("install", "", Tone::Plain, "kubectl apply --server-side -k config/base")?;
    stage.install().await?;
    screen.line("operator", "starting", Tone::Busy, "wfe-operator run")?;
    let operator = Operator::start(&stage, &scratch.dir).await?;
    screen.line("operator", "ready", Tone::Good, &operator.introduction())?;
    if let Err(error) = story::tell(screen, &stage, &operator).await {
        if is_closed_pipe(&error) {
            return Err(error);
        }
        let log = scratch.keep().join(operator::LOG);
        let lines = operator.last_lines();
        bail!("{error:#}\n\nthe operator's last lines ({}):\n{lines}", log.display());
    }
    Ok(Cast { operator, stage })
}

/// The demo's directory for the operator's kubeconfig and log. It is deleted with this value unless the demo is kept.
struct Scratch {
    dir: PathBuf,
    keep: std::cell::Cell<bool>,
}

impl Scratch {
    fn create() -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let dir = std::env::temp_dir().join(format!("wfe-demo-{}", random::letters(10)));
        // Only the owner may read the directory: the kubeconfig contains a token.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .with_context(|| format!("{} cannot be made", dir.display()))?;
        Ok(Self { dir, keep: std::cell::Cell::new(false) })
    }

    fn keep(&self) -> &std::path::Path {
        self.keep.set(true);
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep.get() {
            drop(std::fs::remove_dir_all(&self.dir));
        }
    }
}
