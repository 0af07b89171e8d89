//! The control plane as a program: `up` is for people, `serve` and `exec` are for the tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use wfe_testkit::{Audit, Options, Tekton, bundle, manifests, process, supervisor};

/// Runs a real Kubernetes control plane with Tekton on this machine, without containers.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs in the foreground until Ctrl-C, and prints how to use it
    Up(Parts),
    /// Pushes a Tekton bundle over plain HTTP, as `tkn bundle push` does, and prints its digest
    Push {
        /// What to push it as: `$REGISTRY/NAME:TAG`
        image: String,
        /// A YAML file with the bundle's objects, such as a Pipeline
        file: PathBuf,
    },
    /// Runs for a parent process, until its end of the standard input closes
    #[command(hide = true)]
    Serve(Parts),
    /// Becomes another program, which the kernel kills when the parent ends
    #[command(hide = true)]
    Exec {
        /// Id of the process that starts this
        #[arg(long)]
        parent: u32,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Becomes another program, in another root and without capabilities
    #[command(hide = true)]
    Confine {
        /// Id of the process that starts this
        #[arg(long)]
        parent: u32,
        /// The directory to use as the root
        #[arg(long)]
        root: PathBuf,
        /// The program, by its path in that root, and its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
struct Parts {
    /// Which Tekton to run; without it, there is no registry either
    #[arg(long, value_enum, default_value_t = Tekton::Current)]
    tekton: Tekton,
    /// Leave out the scheduler, the node and its pods
    #[arg(long)]
    no_pods: bool,
    /// Run Tekton's admission webhook too
    #[arg(long)]
    webhook: bool,
    /// Leave out the kinds of this repository
    #[arg(long)]
    no_crd: bool,
    /// How much the audit log holds
    #[arg(long, value_enum, default_value_t = Audit::Bodies)]
    audit: Audit,
}

impl From<Parts> for Options {
    fn from(parts: Parts) -> Self {
        let Parts { tekton, no_pods, webhook, no_crd, audit } = parts;
        Self { tekton, pods: !no_pods, webhook, crd: !no_crd, audit }
    }
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Up(parts) => run(supervisor::up(parts.into())),
        Command::Push { image, file } => run(push(&image, &file)),
        Command::Serve(parts) => run(supervisor::serve(parts.into())),
        Command::Exec { parent, command } => match command.split_first() {
            Some((program, args)) => process::exec(parent, program, args),
            None => Ok(()),
        },
        Command::Confine { parent, root, command } => match command.split_first() {
            Some((program, args)) => process::confine(parent, &root, program, args),
            None => Ok(()),
        },
    }
}

async fn push(image: &str, file: &Path) -> Result<()> {
    let (registry, repository) = image.split_once('/').with_context(|| format!("{image} names no registry"))?;
    let pushed = bundle::push(registry, repository, &manifests::read(file)?).await?;
    println!("{}@{}", pushed.image, pushed.digest);
    Ok(())
}

/// Runs the work on this thread, because child processes end with the thread that starts them.
fn run(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A thread may still be reading the standard input. The shutdown must not wait for that thread.
    runtime.shutdown_background();
    result
}
