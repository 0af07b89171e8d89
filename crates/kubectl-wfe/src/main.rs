//! The binary `kubectl-wfe`, which kubectl finds as `kubectl wfe`: for a person who wants to know why a target does or
//! does not run something, and to clear it. It judges by the operator's own reading and decision, and has no rule.
//!
//! Exit codes are those of `kubectl diff`: 0 yes, 1 no, 2 it could not be done. What is yes, each command says.

mod ask;
mod circuits;
mod clear;
mod cli;
mod explain;
mod file;
mod installation;
mod moment;
mod output;
mod policies;
mod report;
mod retries;
mod schedule;
mod subject;
mod view;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

/// As clap's own, for a command line that it cannot read.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(FAILED)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<bool> {
    tokio::runtime::Runtime::new()?.block_on(async {
        match cli.command {
            Command::Explain(args) => explain::run(&cli.cluster, *args).await,
            Command::Clear(args) => clear::run(&cli.cluster, *args).await,
            Command::Circuits(args) => circuits::run(&cli.cluster, &args).await,
            Command::Schedule { command } => schedule::run(&cli.cluster, command).await,
        }
    })
}
