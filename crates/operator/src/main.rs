//! The binary `wfe-operator`.

use std::process::ExitCode;

use clap::Parser;
use wfe_operator::cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run(*args),
        Command::Crd => wfe_api::crds_yaml().map(|yaml| print!("{yaml}")).map_err(anyhow::Error::from),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line, causes included, for whoever reads the last line of a log.
            eprintln!("wfe-operator: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: wfe_operator::cli::RunArgs) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(wfe_operator::run::run(args))
}
