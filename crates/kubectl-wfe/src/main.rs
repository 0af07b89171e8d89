//! The binary `kubectl-wfe`, which kubectl finds as `kubectl wfe`: it shows a person why a target does or does not run
//! a workflow, and clears the target. It uses the operator's own code to read and decide, and has no rule of its own.
//!
//! Exit codes are those of `kubectl diff`: 0 yes, 1 no, 2 failed. Each command defines yes. `wait`, `watch` and
//! `run --wait` have a code for each outcome.

mod ask;
mod cancel;
mod circuits;
mod clear;
mod cli;
mod complete;
mod config;
mod connection;
mod dashboard;
mod doctor;
mod execution;
mod explain;
mod file;
mod history;
mod installation;
mod kinds;
mod lint;
mod list;
mod logs;
mod moment;
mod nearest;
mod object;
mod output;
mod overview;
mod page;
mod paint;
mod pause;
mod policies;
mod progress;
mod recorded;
mod report;
mod retries;
mod run;
mod schedule;
mod simulate;
mod status;
mod subject;
mod support;
mod table;
mod trace;
mod view;
mod wait;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

/// The exit code of a failure: the same as clap's for an invalid command line.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    // The command for completion is not defined in clap, so no shell offers it.
    let done = match complete::asked(std::env::args_os()) {
        Some(words) => complete::answer(&words),
        None => run(Cli::parse()),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::complain(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// Runs the command, and returns its exit code.
fn run(cli: Cli) -> anyhow::Result<u8> {
    // One thread: with more, handing each part of a long list to another one takes a seventh of the time.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let is_yes = match cli.command {
            Command::Wait(args) => return wait::run(&cli.cluster, &args).await,
            Command::Watch(args) => return wait::watch(&cli.cluster, &args).await,
            Command::Run(args) => return Box::pin(run::run(&cli.cluster, *args)).await,
            Command::Dashboard(args) => dashboard::run(&cli.cluster, &args).await,
            Command::Status(args) => status::run(&cli.cluster, *args).await,
            Command::List(args) => list::run(&cli.cluster, *args).await,
            Command::History(args) => history::run(&cli.cluster, *args).await,
            Command::Explain(args) => explain::run(&cli.cluster, *args).await,
            Command::Clear(args) => clear::run(&cli.cluster, *args).await,
            Command::Circuits(args) => circuits::run(&cli.cluster, &args).await,
            Command::Logs(args) => logs::run(&cli.cluster, &args).await,
            Command::Cancel(args) => cancel::run(&cli.cluster, &args).await,
            Command::Trace(args) => trace::run(&cli.cluster, &args).await,
            Command::Config(args) => config::run(&cli.cluster, &args).await,
            Command::Doctor(args) => doctor::run(&cli.cluster, &args).await,
            Command::Report(args) => support::run(&cli.cluster, &args).await,
            Command::Lint(args) => lint::run(&cli.cluster, &args).await,
            Command::Simulate(args) => simulate::run(&cli.cluster, &args).await,
            Command::Pause(args) => pause::pause(&cli.cluster, &args).await,
            Command::Resume(args) => pause::resume(&cli.cluster, &args).await,
            Command::Schedule { command } => schedule::run(&cli.cluster, command).await,
            Command::Completion(args) => complete::run(&args),
        }?;
        Ok(u8::from(!is_yes))
    })
}
