//! The soak: two hundred executions at once on twenty targets, under two operators that are killed, stopped, cut off
//! and given wrong answers. At the end all executions must be at rest, and the auditor must find no violation.
//!
//! ```text
//! Load ── twenty players, one a target: bursts of WorkflowExecutions, ends of held pods, cancellations, deletions
//! Schedules ─ six more, one a schedule: suspended, hinted, edited, wiped, made again; their children deleted, cleared
//! Chaos ─ two operators, each behind a fault proxy: killed, stopped, partitioned, their requests harmed
//! Verdict  the recording and the audit log, judged; a soak in which too little happened does not count
//! ```

// This is a program for tests: what it prints is its output, and an error ends it.
#![allow(clippy::print_stdout)]

mod board;
mod chaos;
mod load;
mod schedules;
mod verdict;

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use serde_json::json;
use wfe_testkit::{Recording, World};

use board::Board;
use chaos::Chaos;
use load::Load;
use schedules::Schedules;

/// How often the soak prints its progress.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// The longest that a soak may take on a slow machine, as a multiple of the requested minutes.
const MOST: u32 = 4;

/// A limit for all 24 targets of the soak. It is in the `ConfigMap`, because the auditor reads only flags and must not
/// judge it: two leaders in a row may exceed a limit. The soak shows that each line becomes empty.
const LIMITS: &str = "[{name: nodes, kind: node, maxRunning: 14}]";

/// Runs many WorkflowExecutions under two operators and many faults, and has the auditor judge what happened.
#[derive(Debug, Parser)]
struct Cli {
    /// How long faults are injected, in minutes; longer if too little has happened for the soak to count. After that,
    /// what is left gets time to come to rest.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The seed of all choices, printed at the start. The same seed makes the same choices, but not the same times.
    #[arg(long)]
    seed: Option<u64>,
}

// The soak runs on one thread: an operator dies with the thread that started it, and this thread lives to the end.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("soak: {} min, --seed {seed}", cli.minutes);
    let world = World::new("soak").await?;
    soak(&world, Duration::from_secs(60 * cli.minutes), seed).await.inspect_err(|_| world.dump())?;
    world.close().await
}

async fn soak(world: &World, duration: Duration, seed: u64) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let config = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "workflowexecution-config", "namespace": world.system_namespace()},
        "data": {"limits": LIMITS},
    });
    world.apply(&config).await?;
    let recording = world.record_all().await?;
    let board = Board::new(world);
    let load = Load::new(world, &board).await?;
    let schedules = Schedules::new(world, &board, load.bundles());
    let mut rng_of_schedules = rng.fork();
    let mut chaos = Chaos::start(world, rng.fork()).await?;
    let stop = Cell::new(false);
    tokio::select! {
        stopped = board.follow() => stopped?,
        done = async {
            let clock = clock(world, &recording, &board, duration, &stop);
            let ticking = schedules.play(&mut rng_of_schedules, &stop);
            tokio::try_join!(load.play(&mut rng, &stop), ticking, chaos.rage(&stop), clock)?;
            chaos.calm().await?;
            println!("calm; waiting until all has come to rest");
            schedules.suspend().await?;
            load.settle().await?;
            schedules.settle().await?;
            load.settle().await?; // a schedule may have created a child before the operator saw the suspension
            anyhow::Ok(())
        } => done?,
    }
    println!("{}\n{}", board.summary(), chaos.terminate().await?);
    verdict::judge(world, recording).await
}

/// Stops the soak once the requested time is over and enough has happened, but no later than [`MOST`] times that time.
async fn clock(
    world: &World,
    recording: &Recording,
    board: &Board,
    duration: Duration,
    stop: &Cell<bool>,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        tokio::time::sleep(REPORT_EVERY).await;
        println!("{:>4} s: {}", begun.elapsed().as_secs(), board.summary());
        if begun.elapsed() < duration {
            continue;
        }
        match verdict::missing(&wfe_tests::count(world, recording).await?) {
            Some(missing) if begun.elapsed() < duration * MOST => {
                println!("too little for the soak to count: {missing}");
            }
            _ => break,
        }
    }
    stop.set(true);
    Ok(())
}
