//! The binary `wfe-operator`.

use std::process::ExitCode;

use clap::Parser;
use wfe_operator::config;
use wfe_settings::cli::{Cli, Command};
use wfe_settings::config::Flags;
use wfe_view::error_chain::with_causes;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => start(wfe_operator::run::run(*args, Flags::of_process())),
        Command::Config(args) => start(config::print(*args, Flags::of_process())),
        Command::Crd => wfe_api::crds_yaml().map(|yaml| print!("{yaml}")).map_err(anyhow::Error::from),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line with all causes, for people who read only the last line of a log.
            eprintln!("wfe-operator: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn start(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(command)
}
