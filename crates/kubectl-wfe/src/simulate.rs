//! `kubectl wfe simulate`: what the operator would do in a scenario, in virtual time. No cluster is contacted.
//!
//! The same file gives the same bytes: nothing here reads a clock, the environment or anything random.

mod carry;
mod compare;
mod node;
mod objects;
mod play;
mod read;
mod render;
mod scenario;
mod story;
mod timeline;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::cli::{Format, SimulateArgs};
use crate::file;
use crate::output::output;
use compare::Comparison;
use node::Fault;
use play::Play;
use render::Simulation;
use scenario::Scenario;

/// How long a play is without `--until`, if it does not become quiet before.
const A_DAY: Duration = Duration::from_hours(24);

/// Runs the command. Yes: at the end nothing needs a person.
pub(crate) fn run(args: &SimulateArgs) -> Result<bool> {
    let is_stdin = args.file == Path::new("-");
    let name = if is_stdin { "(standard input)".to_owned() } else { args.file.display().to_string() };
    let text = file::read(&args.file).with_context(|| format!("cannot read {name}; check the path and its rights"))?;
    let folder = args.file.parent().filter(|_| !is_stdin).unwrap_or(Path::new(""));
    let in_file = |Fault { line, what }: Fault| anyhow!("{name}:{line}: {what}");
    let scenario = Scenario::read(&text, folder).map_err(in_file)?;
    let until = args.until.unwrap_or(A_DAY);
    scenario.check_size(until).map_err(in_file)?;
    match &args.compare {
        None => {
            let policy = scenario.policy(None).map_err(in_file)?;
            let story = Play::new(&scenario, &policy).play(until, args.until.is_none())?;
            let simulation = Simulation(&story);
            match args.output {
                Some(Format::Json) => output().json("Simulation", &simulation)?,
                None => write!(output(), "{simulation}")?,
            }
            Ok(!story.totals.needs_a_person())
        }
        Some((key, values)) => {
            scenario::check_key(key).map_err(|what| anyhow!("--compare: {what}"))?;
            let comparison = Comparison::of(&scenario, key, values, until, args.until.is_none())?;
            match args.output {
                Some(Format::Json) => output().json("SimulationComparison", &comparison)?,
                None => write!(output(), "{comparison}")?,
            }
            Ok(comparison.is_fine())
        }
    }
}
