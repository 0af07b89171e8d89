//! The process that owns a control plane. It starts the components, executes commands from its standard input, and ends
//! when the input closes.
//!
//! The input closes when the owner ends for any reason, so no component outlives a test that was killed. If the
//! supervisor itself is killed, the kernel kills the components (see `process`). The supervisor must run on one thread.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};
use tokio::signal::unix::{SignalKind, signal};

use crate::assets::Assets;
use crate::running::Running;
use crate::stack::{self, Info, Options, Stack};
use crate::used_rights::Witness;

/// A request of the owner, one JSON object on each line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Command {
    pub(crate) what: Verb,
    pub(crate) component: String,
}

/// What to do with a component.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verb {
    Stop,
    Kill,
    Start,
    Pause,
    Resume,
}

/// An answer of the supervisor, one JSON object on each line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// All components serve.
    Ready(Info),
    /// The start failed for this reason, and no component runs.
    Failed(String),
    /// The command was carried out.
    Done,
    /// The command was not carried out, for this reason.
    Refused(String),
}

/// How often the supervisor checks the components.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs a control plane for the process that writes to the standard input, until the input closes.
pub async fn serve(options: Options) -> Result<()> {
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let mut stop = Interrupts::new()?;
    let assets = Assets::find(options.tekton)?;
    let witness = Witness::begin()?;
    let started = tokio::select! {
        started = stack::start(&assets, options) => started,
        // No process waits for an answer, and the components end with this process.
        () = stop.wait() => return Ok(()),
        () = end_of(&mut input) => return Ok(()),
    };
    let (mut stack, info) = match started {
        Ok(started) => started,
        Err(error) => {
            answer(&Answer::Failed(format!("{error:#}")))?;
            return Ok(());
        }
    };
    answer(&Answer::Ready(info))?;
    let failed = obey(&mut stack, &mut input, &mut stop).await;
    stack.stop(false).await;
    if let Some(witness) = witness {
        witness.end(&stack.place.audit_log())?;
    }
    stack.place.remove(failed || keep());
    Ok(())
}

/// Runs a control plane in the foreground until Ctrl-C.
pub async fn up(options: Options) -> Result<()> {
    let mut stop = Interrupts::new()?;
    let assets = Assets::find(options.tekton)?;
    eprintln!("starting (assets: {})", assets.dir().display());
    let (mut stack, info) = tokio::select! {
        started = stack::start(&assets, options) => started?,
        () = stop.wait() => return Ok(()),
    };
    println!("export KUBECONFIG={}", info.kubeconfig.display());
    if let Some(registry) = &info.registry {
        println!("export REGISTRY={registry}");
    }
    // The directories of the programs of this repository (such as kubectl-wfe) and of the kubectl of the same version.
    let folders = [std::env::current_exe()?, info.kubectl.clone()];
    let folders: Vec<_> = folders.iter().filter_map(|it| it.parent()).map(|it| it.display().to_string()).collect();
    println!("export PATH={}:$PATH", folders.join(":"));
    println!("# API server {}; the registry speaks plain HTTP, and the bundles resolver pulls from it", info.url);
    println!("# logs {}", info.dir.join("logs").display());
    println!("# Ctrl-C ends it");
    let mut failed = false;
    loop {
        tokio::select! {
            () = stop.wait() => break,
            () = tokio::time::sleep(LOOK_EVERY) => failed |= report_dead(&mut stack.running),
        }
    }
    stack.stop(false).await;
    stack.place.remove(failed || keep());
    Ok(())
}

fn keep() -> bool {
    std::env::var_os("KEEP").is_some_and(|value| value == "1")
}

/// Executes commands until the input closes or a signal arrives. Returns whether a component died meanwhile.
async fn obey(stack: &mut Stack, input: &mut Lines<BufReader<Stdin>>, stop: &mut Interrupts) -> bool {
    let mut failed = false;
    loop {
        tokio::select! {
            () = stop.wait() => return failed,
            () = tokio::time::sleep(LOOK_EVERY) => failed |= report_dead(&mut stack.running),
            line = input.next_line() => {
                let Ok(Some(line)) = line else { return failed };
                let reply = match perform(stack, &line).await {
                    Ok(()) => Answer::Done,
                    Err(error) => Answer::Refused(format!("{error:#}")),
                };
                if answer(&reply).is_err() {
                    return failed;
                }
            }
        }
    }
}

async fn perform(stack: &mut Stack, line: &str) -> Result<()> {
    let command: Command = serde_json::from_str(line)?;
    let component = stack.component(&command.component)?;
    match command.what {
        Verb::Stop => component.stop(true).await,
        Verb::Kill => component.stop(false).await,
        Verb::Start => component.start_again().await?,
        Verb::Pause => component.signal(Signal::STOP)?,
        Verb::Resume => component.signal(Signal::CONT)?,
    }
    Ok(())
}

/// Reports each component that has ended on its own, once. Returns whether there was one.
fn report_dead(running: &mut [Running]) -> bool {
    let mut any = false;
    for one in running {
        if one.exited().is_some() {
            eprintln!("control-plane: {}", one.obituary("ended by itself"));
            one.forget();
            any = true;
        }
    }
    any
}

async fn end_of(input: &mut Lines<BufReader<Stdin>>) {
    while let Ok(Some(_)) = input.next_line().await {}
}

fn answer(answer: &Answer) -> Result<()> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, answer)?;
    writeln!(output)?;
    output.flush()?;
    Ok(())
}

/// The signals SIGINT and SIGTERM.
struct Interrupts {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Interrupts {
    fn new() -> Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}

/// Returns the directory of the logs of the control plane in `dir`.
#[must_use]
pub(crate) fn logs(dir: &Path) -> std::path::PathBuf {
    dir.join("logs")
}
