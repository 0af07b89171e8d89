//! The binary `kubectl-wfe`, which kubectl finds as `kubectl wfe`: for a person who wants to know why a target does or
//! does not run something, and to clear it. It judges by the operator's own reading and decision, and has no rule.

mod clear;
mod cli;
mod explain;
mod view;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kubectl wfe: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        match cli.command {
            Command::Explain(args) => explain::run(*args).await,
            Command::Clear(args) => clear::run(*args).await,
        }
    })
}
