//! The benchmark measures the operator and a floor client, which sends the same requests but decides nothing. Both are
//! measured in turns, on the same machine and in the same run.
//!
//! ```text
//! Stage ── a control plane without controllers: API server and etcd, and their clients
//!   ├─ Subject   the operator's release binary under the shipped roles, or the floor client; each a process
//!   ├─ Player    finishes runs in place of Tekton, by writing their status
//!   ├─ Observer  sees from outside when runs are created and phases change, the same for both
//!   └─ Counters  the API server's own
//! Results ── every sample, as JSON; Page ── tables and charts of the last two runs, for docs/
//! ```

// This is a program for tests: it prints its results, and an error ends it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod api;
mod budget;
mod counters;
mod etcd;
mod fairness;
mod faults;
mod floor;
mod limits;
mod micro;
mod numbers;
mod observer;
mod page;
mod past;
mod player;
mod poison;
mod policies;
mod results;
mod rounds;
mod schedules;
mod size;
mod subject;
mod template;
mod verbs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use wfe_testkit::{Audit, ControlPlane, Options, World, repository};

use crate::floor::FloorArgs;
use crate::numbers::{float, millis};
use crate::player::Mode;
use crate::results::Results;
use crate::size::{FULL, QUICK, Size};
use crate::subject::{Operator, Subjects};

/// The directory with the last two runs that were kept for the documentation.
const KEPT: &str = "docs/benchmark";

/// Measures what the operator costs in comparison with a floor.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures, compares with the last kept run, shows the budgets, and fails if one is missed
    Run(RunArgs),
    /// Writes the page and the charts of the kept runs
    Page {
        /// The root to write to, in place of the repository's
        #[arg(long)]
        to: Option<PathBuf>,
    },
    /// Sends what the operator sends, and decides nothing
    #[command(hide = true)]
    Floor(FloorArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// A cluster to measure on, in place of the benchmark's own control plane
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The operator's release binary
    #[arg(long)]
    operator: PathBuf,
    /// Criterion's directory, whose estimates are added to the results
    #[arg(long)]
    criterion: Option<PathBuf>,
    /// The bytes that the index holds, one JSON object a line
    #[arg(long)]
    bytes: Option<PathBuf>,
    /// Fewer and smaller rounds, within five minutes
    #[arg(long)]
    quick: bool,
    /// Only the steps whose name begins like this: binary, throughput, latency, storm, tasks, targets, policies,
    /// fairness, limits, poison, schedules, past, disturbed
    #[arg(long)]
    only: Option<String>,
    /// The most executions of any step; larger steps are left out
    #[arg(long, default_value_t = usize::MAX)]
    most: usize,
    /// Where to write the results
    #[arg(long, default_value = "target/bench/results.json")]
    out: PathBuf,
    /// For a machine that is too noisy for times: only missed budgets for counts, sizes and ratios fail the run
    #[arg(long)]
    ratios_only: bool,
    /// Keeps the results for the documentation; the results kept so far become the previous ones
    #[arg(long)]
    keep: bool,
}

/// The worlds: one for each subject, so that a subject does not see the other's objects, and one with many old
/// executions.
#[derive(Clone)]
struct Worlds {
    floor: Arc<World>,
    operator: Arc<World>,
    past: Arc<World>,
}

/// A benchmark run in progress.
struct Bench {
    client: Client,
    worlds: Worlds,
    subjects: Subjects,
    results: Results,
    round: usize,
    begun: Instant,
}

impl Bench {
    fn say(&self, line: &str) {
        println!("{:>5} s  {line}", self.begun.elapsed().as_secs());
    }

    /// Records that a step was disturbed, which the page then lists.
    fn disturbed(&mut self, what: &str, how: &str) {
        let line = format!("{what}: {how}");
        self.say(&format!("DISTURBED: {line}"));
        self.results.disturbed.push(line);
    }
}

// Operators end with the thread that starts them, and this thread lives until the end.
#[tokio::main]
async fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Floor(args) => floor::run(args).await,
        Command::Page { to } => page::write(&to.unwrap_or_else(repository)),
        Command::Run(args) => run(&args).await,
    }
}

async fn run(args: &RunArgs) -> Result<()> {
    let program =
        args.operator.canonicalize().with_context(|| format!("{}: build it first", args.operator.display()))?;
    let begun = Instant::now();
    let mut results = Results::begin(args.quick);
    if let Some(dir) = &args.criterion {
        micro::estimates(dir, &mut results).context("the micro-benchmarks")?;
    }
    if let Some(file) = &args.bytes {
        micro::bytes(file, &mut results)?;
    }
    let control_plane = match &args.kubeconfig {
        Some(kubeconfig) => given(kubeconfig).await?,
        None => ControlPlane::start(Options { pods: false, audit: Audit::Counts, ..Options::default() }).await?,
    };
    let mut bench = stage(&control_plane, &program, results, begun).await?;
    measure(&mut bench, args).await?;
    finish(&bench.results, args)
}

/// Uses an existing cluster. It must have our kinds and Tekton's. Tekton's controller must not run there, because the
/// benchmark plays Tekton.
async fn given(kubeconfig: &Path) -> Result<ControlPlane> {
    let control_plane = ControlPlane::given(kubeconfig)?;
    let client = control_plane.client().await?;
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in ["workflowexecutions.kubernaut.ai", "pipelineruns.tekton.dev", "taskruns.tekton.dev"] {
        ensure!(kinds.get_opt(kind).await?.is_some(), "the cluster has no {kind}: apply that CRD first");
    }
    let controllers: Api<Deployment> = Api::namespaced(client, "tekton-pipelines");
    let controller = controllers.get_opt("tekton-pipelines-controller").await?;
    let replicas = controller.and_then(|it| it.status).and_then(|status| status.available_replicas).unwrap_or_default();
    ensure!(
        replicas == 0,
        "Tekton's controller runs in this cluster, and would run what the benchmark plays: use a cluster with Tekton's \
         kinds alone, or scale the Deployment tekton-pipelines-controller to 0 for as long"
    );
    Ok(control_plane)
}

/// Creates the worlds, and then stops all components that would work beside the measured processes.
async fn stage(control_plane: &ControlPlane, program: &Path, mut results: Results, begun: Instant) -> Result<Bench> {
    let client = control_plane.client().await?;
    let version = client.apiserver_version().await?.git_version;
    results.versions.insert("kubernetes".to_owned(), version);
    results.versions.insert("tekton's kinds".to_owned(), control_plane.tekton_version());
    let worlds = Worlds {
        floor: Arc::new(World::on(control_plane, "floor").await?),
        operator: Arc::new(World::on(control_plane, "operator").await?),
        past: Arc::new(World::on(control_plane, "past").await?),
    };
    if control_plane.is_given() {
        results.disturbed.push("the cluster was given: who else works on it is counted too".to_owned());
    } else {
        for component in ["tekton-controller", "tekton-resolvers", "kube-controller-manager"] {
            control_plane.component(component).stop().await?;
        }
    }
    let subjects = Subjects::prepare(&worlds.floor, program).await?;
    player::clear(&worlds.floor).await?;
    Ok(Bench { client, worlds, subjects, results, round: 0, begun })
}

/// Performs one step after the other. A step that fails loses only its own results.
async fn measure(bench: &mut Bench, args: &RunArgs) -> Result<()> {
    let size = if args.quick { QUICK } else { FULL };
    // The old executions stay in the API server's caches. They are therefore created near the end, and only the
    // disturbed steps follow.
    let all = [
        "binary",
        "throughput",
        "latency",
        "storm",
        "tasks",
        "targets",
        "policies",
        "fairness",
        "limits",
        "poison",
        "schedules",
        "past",
        "disturbed",
    ];
    // A benchmark must not disturb a user's API server, fill its etcd, or start an operator for all its namespaces. The
    // policies are measured on a separate API server.
    let only_ours = ["policies", "fairness", "past", "disturbed"];
    let is_ours = !bench.worlds.operator.control_plane().is_given();
    let wanted = |step: &&str| {
        args.only.as_deref().is_none_or(|only| step.starts_with(only)) && (is_ours || !only_ours.contains(step))
    };
    for step in all.into_iter().filter(wanted) {
        if let Err(error) = take(bench, step, &size, args.most).await {
            bench.disturbed(step, &format!("not measured to its end: {error:#}"));
            for world in [&bench.worlds.floor, &bench.worlds.operator] {
                player::clear(world).await?;
            }
        }
        bench.results.took_seconds = bench.begun.elapsed().as_secs();
        bench.results.write(&args.out)?;
    }
    Ok(())
}

async fn take(bench: &mut Bench, step: &str, size: &Size, most: usize) -> Result<()> {
    match step {
        "binary" => binary(bench).await,
        "throughput" => {
            // The first round fills caches and pools, and does not count.
            rounds::throughput(bench, "warm-up", 200, 1, Mode::Plain).await?;
            bench.results.measures.retain(|name, _| !name.starts_with("warm-up"));
            rounds::throughput(bench, "throughput", 1000, size.pairs, Mode::Plain).await?;
            proof(bench).await
        }
        "latency" => {
            rounds::latency(bench, size.blocks, 25).await?;
            rounds::latency_under_load(bench, size.load_seconds).await
        }
        "storm" => {
            for (count, pairs) in size.storms.iter().filter(|(count, _)| *count <= most) {
                rounds::storm(bench, *count, *pairs).await?;
            }
            Ok(())
        }
        "tasks" => rounds::throughput(bench, "tasks", 500, size.task_pairs, Mode::Tasks).await,
        "past" => {
            let counts: Vec<usize> = size.past.iter().copied().filter(|count| *count <= most).collect();
            past::past(bench, &counts, size.starts, size.idle).await
        }
        "targets" => match size.targets.filter(|targets| *targets <= most) {
            Some(targets) => rounds::throughput(bench, "targets", targets, 1, Mode::Plain).await,
            None => Ok(()),
        },
        "fairness" => fairness::fairness(bench, size.fairness.0.min(most), size.fairness.1).await,
        "limits" => limits::line(bench, size.line.0.min(most), size.line.1).await,
        "poison" => poison::poison(bench, size.poison.0.min(most), size.poison.1).await,
        "policies" => policies::policies(bench, size.policies).await,
        "schedules" => {
            let (count, rounds) = size.schedules;
            // What thousands of deleted schedules leave in the API server would slow these rounds down.
            schedules::minute(bench, size.minute.0.min(most), size.minute.1).await?;
            schedules::schedules(bench, count.min(most), rounds, size.idle).await
        }
        "disturbed" => faults::faults(bench).await,
        _ => Ok(()),
    }
}

/// Measures the size of the binary, and the time from its start until it reports health.
async fn binary(bench: &mut Bench) -> Result<()> {
    let bytes = usize::try_from(std::fs::metadata(&bench.subjects.program)?.len())?;
    bench.results.add("binary/size", "MB", float(bytes) / 1e6);
    let world = Arc::clone(&bench.worlds.operator);
    for _ in 0..10 {
        let operator = Operator::spawn(&world, &bench.subjects.program, None).await?;
        let begun = Instant::now();
        while operator.health().await != Some(true) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bench.results.add("binary/health", "ms", millis(begun.elapsed()));
        operator.stop().await?;
    }
    Ok(())
}

/// Counts the requests of the operator and of the floor client in the throughput rounds, from the API server's audit
/// log.
async fn proof(bench: &mut Bench) -> Result<()> {
    if bench.worlds.floor.control_plane().is_given() {
        return Ok(()); // the audit log of a given cluster is not available
    }
    for (who, world) in [("floor", &bench.worlds.floor), ("operator", &bench.worlds.operator)] {
        let mut executions = 0_usize;
        let mut requests = std::collections::BTreeMap::<String, usize>::new();
        for entry in world.audit().await?.into_iter().filter(|entry| entry.user == world.operator_user()) {
            // The world of the floor client also has requests of an operator, which were recorded there before the
            // rounds.
            let is_floor = entry.user_agent == api::AGENT;
            if (who == "floor") == is_floor && entry.is_write() && (200..300).contains(&entry.code) {
                let slash = if entry.subresource.is_empty() { "" } else { "/" };
                let request = format!("{} {}{slash}{}", entry.verb, entry.resource, entry.subresource);
                executions += usize::from(request == "create pipelineruns");
                *requests.entry(request).or_default() += 1;
            }
        }
        for (request, count) in requests {
            let each = float(count) / float(executions.max(1));
            bench.results.add(&format!("audit/{who}/{request}"), "per execution", each);
        }
    }
    Ok(())
}

fn finish(results: &Results, args: &RunArgs) -> Result<()> {
    results.write(&args.out)?;
    println!("\n{}", page::budgets(&[results]));
    let (last, before) = (repository().join(KEPT).join("last.json"), repository().join(KEPT).join("before.json"));
    if last.is_file() && !results.quick {
        let moved = results.moved_since(&Results::read(&last)?);
        println!("moved beyond the noise since {}: {}", last.display(), if moved.is_empty() { "nothing" } else { "" });
        for line in moved {
            println!("  {line}");
        }
    }
    if args.keep {
        if last.is_file() {
            std::fs::rename(&last, &before)?;
        }
        results.write(&last)?;
        page::write(&repository())?;
    }
    println!("results: {}", args.out.display());
    let missed = page::missed(results, args.ratios_only);
    ensure!(
        missed.is_empty(),
        "{} missed, of the budgets that count here:\n  {}\non a machine that does something else beside, --ratios-only \
         leaves out those that are times",
        missed.len(),
        missed.join("\n  ")
    );
    Ok(())
}
