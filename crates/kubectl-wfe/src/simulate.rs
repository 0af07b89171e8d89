//! `kubectl wfe simulate`: what the operator would do in a scenario, in virtual time. With a file, no cluster is
//! contacted, and nothing here reads a clock, the environment or anything random: the same file gives the same bytes.
//! With a target, the play begins with the objects of that target in the cluster, and writes nothing there.

mod carry;
mod cluster;
mod compare;
mod drawing;
mod node;
mod objects;
mod outlook;
mod play;
mod read;
mod render;
mod scenario;
mod story;
mod timeline;
mod totals;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use wfe_core::target::TargetName;

use crate::cli::{ClusterArgs, Condition, PageFormat, SimulateArgs};
use crate::file;
use crate::output::output;
use crate::view::{Lookout, Seen};
use cluster::Start;
use compare::Comparison;
use node::Fault;
use outlook::Outlook;
use play::Play;
use render::Simulation;
use scenario::Scenario;

/// How long a play is without `--until`, if it does not become quiet before.
const A_DAY: Duration = Duration::from_hours(24);

/// Runs the command. Yes: at the end nothing needs a person.
pub(crate) async fn run(cluster: &ClusterArgs, args: &SimulateArgs) -> Result<bool> {
    match (&args.from_cluster, &args.file) {
        (Some(target), _) => of_cluster(cluster, args, target).await,
        (None, file) => of_file(args, file.as_deref().context("nothing is to be played: name a FILE")?),
    }
}

async fn of_cluster(cluster: &ClusterArgs, args: &SimulateArgs, target: &TargetName) -> Result<bool> {
    let lookout = Lookout::open(cluster, &args.view).await?;
    let mut seen = lookout.look_at(Some(target), None).await?;
    if seen.target(target).is_some() {
        let record = seen.record(&lookout.hypothetical(target, None)?)?;
        lookout.read_owners(&mut seen, &record).await?;
    }
    let condition = args.condition.as_ref().unwrap_or(&Condition::Nothing);
    answer(seen, target, condition, args.until.unwrap_or(A_DAY), args.output)
}

/// Plays what was read of a target.
fn answer(
    seen: Seen,
    target: &TargetName,
    condition: &Condition,
    until: Duration,
    format: Option<PageFormat>,
) -> Result<bool> {
    let Start { scenario, policy, ends, assumed } = Start::of(&seen, target, condition)?;
    let policy_of = seen.installation.policy_of.clone();
    let story = Play::on_target(&scenario, &policy, seen.into_index(), target).play(until, false)?;
    let is_well = !story.totals.needs_a_person();
    let outlook =
        Outlook { target, condition, until, ends: &ends, assumed: &assumed, policy: &policy_of, story: &story };
    match format {
        Some(PageFormat::Html) => {
            let (facts, title, condition) = (outlook.facts(), target.to_string(), outlook.headline());
            output().page(&story.page(title, Some(condition), facts).html())?;
        }
        Some(PageFormat::Json) => output().json("Simulation", &outlook.json())?,
        None => write!(output(), "{outlook}")?,
    }
    Ok(is_well)
}

fn of_file(args: &SimulateArgs, path: &Path) -> Result<bool> {
    let of_cluster = args.view.policy.is_some() || !args.view.overrides.0.is_empty();
    ensure!(!of_cluster, "with a FILE, its key policy has the settings; their flags go with --from-cluster");
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "(standard input)".to_owned() } else { path.display().to_string() };
    let text = file::read(path).with_context(|| format!("cannot read {name}; check the path and its rights"))?;
    let folder = path.parent().filter(|_| !is_stdin).unwrap_or(Path::new(""));
    let in_file = |Fault { line, what }: Fault| anyhow!("{name}:{line}: {what}");
    let scenario = Scenario::read(&text, folder).map_err(in_file)?;
    let until = args.until.unwrap_or(A_DAY);
    scenario.check_size(until).map_err(in_file)?;
    match &args.compare {
        None => {
            let policy = scenario.policy(None).map_err(in_file)?;
            let story = Play::new(&scenario, &policy).play(until, args.until.is_none())?;
            let is_well = !story.totals.needs_a_person();
            match args.output {
                Some(PageFormat::Html) => output().page(&story.page(name, None, Vec::new()).html())?,
                Some(PageFormat::Json) => output().json("Simulation", &Simulation(&story))?,
                None => write!(output(), "{}", Simulation(&story))?,
            }
            Ok(is_well)
        }
        Some((key, values)) => {
            ensure!(args.output != Some(PageFormat::Html), "-o html shows one play: leave --compare out");
            scenario::check_key(key).map_err(|what| anyhow!("--compare: {what}"))?;
            let comparison = Comparison::of(&scenario, key, values, until, args.until.is_none())?;
            match args.output {
                Some(_) => output().json("SimulationComparison", &comparison)?,
                None => write!(output(), "{comparison}")?,
            }
            Ok(comparison.is_fine())
        }
    }
}
