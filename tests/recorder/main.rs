//! Plays every outcome as a plain PipelineRun, and writes what a watch has delivered as fixtures of `crates/tekton`.

mod fixture;
mod merge;
mod plain;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use futures::StreamExt as _;
use wfe_testkit::{ControlPlane, Options, Tekton, World, repository};
use wfe_tests::outcomes::{End, Needs, Play, await_rest, plays, repair};

/// Plays the outcomes of runs on the control plane and writes the fixtures of the `wfe-tekton` crate.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which Tekton writes them
    #[arg(long, value_enum, default_value_t = Tekton::Current)]
    tekton: Tekton,
    /// The names of the plays; all by default
    names: Vec<String>,
}

/// How many plays run at the same time. They mostly wait, but a busy machine must not let a time-out elapse before a
/// pod exists.
const AT_ONCE: usize = 6;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Arguments { tekton, names } = Arguments::parse();
    // A refused run leaves nothing that could be recorded.
    let mut plays: Vec<Play> = plays().into_iter().filter(|play| play.end != End::Refused).collect();
    if let Some(unknown) = names.iter().find(|name| !plays.iter().any(|play| play.name == **name)) {
        let known: Vec<&str> = plays.iter().map(|play| play.name).collect();
        bail!("no outcome '{unknown}' (there are: {})", known.join(", "));
    }
    plays.retain(|play| names.is_empty() || names.iter().any(|name| name == play.name));
    let mut failed = 0;
    for needs in [Needs::Shipped, Needs::Repaired] {
        let these: Vec<&Play> = plays.iter().filter(|play| play.needs == needs).collect();
        if these.is_empty() {
            continue;
        }
        let control_plane = ControlPlane::start(Options { tekton, crd: true, ..Options::default() }).await?;
        if needs == Needs::Repaired {
            repair(&control_plane).await?;
        }
        let directory = repository().join("crates/tekton/tests/fixtures").join(control_plane.tekton_version());
        let mut played = futures::stream::iter(these)
            .map(|play| record(&control_plane, play, directory.join(play.name).join("story.jsonl")))
            .buffer_unordered(AT_ONCE);
        while let Some(result) = played.next().await {
            if let Err(error) = result {
                eprintln!("{error:#}");
                failed += 1;
            }
        }
    }
    ensure!(failed == 0, "{failed} outcomes are not recorded");
    Ok(())
}

async fn record(control_plane: &ControlPlane, play: &Play, file: PathBuf) -> Result<()> {
    let world = World::on(control_plane, play.name).await?;
    let image = play.prepare(&world).await?;
    let recording = world.record_all().await?;
    plain::start(&world, play, &image).await?;
    play.perform(&world, plain::NAME).await?;
    plain::await_end(&world, play.end).await?;
    if !matches!(play.end, End::Stuck | End::Leaves) {
        await_rest(&world).await?;
    }
    let story = fixture::story(&world, recording.stop().await?)?;
    fixture::write(&file, &story).with_context(|| format!("{} cannot be written", file.display()))?;
    println!("{}: {} changes", play.name, story.len());
    world.close().await
}
