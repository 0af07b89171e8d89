//! The binary `wfe-operator`.

use clap::Parser;
use wfe_operator::cli::{Cli, Command};

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Run(args) => tokio::runtime::Runtime::new()?.block_on(wfe_operator::run::run(*args)),
        Command::Crd => {
            print!("{}", wfe_api::crds_yaml()?);
            Ok(())
        }
    }
}
