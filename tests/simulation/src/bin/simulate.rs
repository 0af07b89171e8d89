//! Plays plans: the plans of seeds, or one plan from a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Parser};
use wfe_simulation::outcome::Outcome;
use wfe_simulation::plan::Plan;
use wfe_simulation::shrink::shrink;
use wfe_simulation::world::{How, play};

/// Plays the operator in a simulated cluster, and judges the result.
#[derive(Debug, Parser)]
enum Command {
    /// Play one plan.
    Play {
        #[command(flatten)]
        which: Which,
        /// Print each request of the replicas.
        #[arg(long)]
        requests: bool,
    },
    /// Print a plan.
    Show {
        #[command(flatten)]
        which: Which,
    },
    /// Look for a smaller plan that breaks the same rule, and print it.
    Shrink {
        #[command(flatten)]
        which: Which,
    },
    /// Play the plans of many seeds.
    Seeds(Many),
}

/// Which plan to play.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The plan of this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// The plan in this file.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Many {
    /// How many seeds.
    #[arg(long)]
    count: u64,
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// End at the first broken seed.
    #[arg(long)]
    first: bool,
    /// Print the hash of each seed's requests.
    #[arg(long)]
    hashes: bool,
    /// How many seeds are played side by side.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

impl Which {
    fn plan(&self) -> anyhow::Result<Plan> {
        match (&self.plan, self.seed) {
            (Some(path), _) => Ok(Plan::read(path)?),
            (None, seed) => Ok(Plan::of_seed(seed.unwrap_or_default())),
        }
    }
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Play { which, requests } => play_one(&which.plan()?, requests),
        Command::Show { which } => {
            println!("{}", which.plan()?);
            Ok(())
        }
        Command::Shrink { which } => {
            println!("{}", shrink(&which.plan()?)?);
            Ok(())
        }
        Command::Seeds(many) => play_many(&many),
    }
}

fn play_one(plan: &Plan, requests: bool) -> anyhow::Result<()> {
    let begin = Instant::now();
    let outcome = play(plan, How { lines: requests })?;
    for line in &outcome.lines {
        println!("{line}");
    }
    for execution in &outcome.executions {
        println!("{execution}");
    }
    println!("{}", describe(&outcome));
    println!("{:.2} s", begin.elapsed().as_secs_f64());
    for violation in &outcome.violations {
        println!("BROKEN: {violation}");
    }
    if outcome.violations.is_empty() { Ok(()) } else { bail!("{} violations", outcome.violations.len()) }
}

fn describe(outcome: &Outcome) -> String {
    let counts: Vec<String> =
        outcome.counts.iter().filter(|(_, count)| **count > 0).map(|(name, count)| format!("{name} {count}")).collect();
    let faults: Vec<String> = outcome.faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
    format!(
        "{} requests, {} decisions, {} virtual s, hash {}\nfaults: {}\ncounts: {}",
        outcome.requests,
        outcome.decisions,
        outcome.took.as_secs(),
        outcome.hash,
        faults.join(", "),
        counts.join(", ")
    )
}

/// The results of many seeds.
#[derive(Default)]
struct Sum {
    broken: BTreeMap<u64, Vec<String>>,
    hashes: BTreeMap<u64, String>,
    faults: BTreeMap<&'static str, u64>,
    counts: BTreeMap<String, u64>,
    requests: u64,
    decisions: u64,
    took: Duration,
}

fn play_many(args: &Many) -> anyhow::Result<()> {
    let (next, sum) = (AtomicU64::new(args.from), Mutex::new(Sum::default()));
    let until = args.from.checked_add(args.count).context("no such seeds")?;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let work = || -> anyhow::Result<()> {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= until {
                    return Ok(());
                }
                let outcome = play(&Plan::of_seed(seed), How::default()).with_context(|| format!("seed {seed}"))?;
                let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(first) = outcome.violations.first() {
                    println!("seed {seed}: {first}");
                    sum.broken.insert(seed, outcome.violations);
                    if args.first {
                        next.store(until, Ordering::Relaxed);
                    }
                }
                sum.hashes.insert(seed, outcome.hash);
                outcome.faults.into_iter().for_each(|(name, count)| *sum.faults.entry(name).or_default() += count);
                outcome.counts.into_iter().for_each(|(name, count)| *sum.counts.entry(name).or_default() += count);
                sum.requests += outcome.requests;
                sum.decisions += outcome.decisions;
                sum.took += outcome.took;
            }
        };
        let workers: Vec<_> = (0..args.threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a play has panicked")))
    })?;
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    if args.hashes {
        sum.hashes.iter().for_each(|(seed, hash)| println!("{seed} {hash}"));
    }
    let all = |counts: Vec<String>| counts.join(", ");
    println!("faults: {}", all(sum.faults.iter().map(|(name, count)| format!("{name} {count}")).collect()));
    println!(
        "counts: {}",
        all(sum
            .counts
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(name, count)| format!("{name} {count}"))
            .collect())
    );
    println!(
        "{} seeds, {} requests, {} decisions, {:.1} virtual hours, {:.0} s",
        sum.hashes.len(),
        sum.requests,
        sum.decisions,
        sum.took.as_secs_f64() / 3600.0,
        begin.elapsed().as_secs_f64()
    );
    if sum.broken.is_empty() { Ok(()) } else { bail!("{} seeds are broken", sum.broken.len()) }
}
