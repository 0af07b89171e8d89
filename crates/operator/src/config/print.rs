//! Implements `wfe-operator config`, which prints the settings that the operator would use, or all faults in them.

use std::io::Write;

use anyhow::{Context, ensure};
use kube::Config;
use wfe_settings::cli::ConfigArgs;
use wfe_settings::config::{Document, Flags, Place};

use super::follow;
use super::page::{Table, heading};
use crate::cluster::client::Cluster;
use crate::cluster::leadership::Leadership;
use crate::cluster::staleness::Staleness;
use crate::metrics::Metrics;

/// Prints the settings that follow from the flags and the `ConfigMap`. The `ConfigMap` is read from the cluster or from
/// a file.
///
/// # Errors
/// The fault. Faults in values are printed on standard error first.
pub async fn print(args: ConfigArgs, flags: Flags) -> anyhow::Result<()> {
    args.run.policy().context("the flags cannot be used")?;
    let place = Place::of(&args.run);
    let document = match &args.file {
        Some(file) => {
            let read = read_file(file).and_then(|text| Document::of_yaml(&text, &place));
            Some(read.with_context(|| file.display().to_string())?)
        }
        None => read_live(&args, &place).await?,
    };
    let in_force = match flags.under(&place, document.as_ref()) {
        Ok(in_force) => in_force,
        Err(refused) => {
            refused.problems.iter().for_each(|problem| eprintln!("{place}: {problem}"));
            anyhow::bail!(
                "the operator would refuse this {place}: values that cannot be used: {}",
                refused.problems.len()
            )
        }
    };
    in_force.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    let mut stdout = std::io::stdout();
    if args.file.is_none() {
        writeln!(stdout, "{}\n", heading(&place, &in_force))?;
    }
    write!(stdout, "{}", Table(&in_force.settings))?;
    Ok(())
}

async fn read_live(args: &ConfigArgs, place: &Place) -> anyhow::Result<Option<Document>> {
    let config =
        Config::infer().await.context("cannot find a cluster: set KUBECONFIG, or give the ConfigMap with --file")?;
    let metrics = Metrics::new().context("cannot set up the client")?;
    let cluster = Cluster::connect(
        config,
        &args.run.execution_namespace,
        Leadership::without_election(),
        metrics,
        Staleness::default(),
    )
    .context("cannot use the kubeconfig; check its certificates")?;
    follow::read(&cluster, place).await.with_context(|| format!("cannot read {place}"))
}

/// The limit of a file, in bytes: larger than the whole output of the chart.
const LARGEST_FILE: u64 = 8 << 20;

/// Reads a file to its end; `-` is standard input.
fn read_file(file: &std::path::Path) -> anyhow::Result<String> {
    use std::io::Read;
    let source: Box<dyn Read> = if file == std::path::Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).context("it cannot be read")?)
    };
    let mut text = String::new();
    source.take(LARGEST_FILE + 1).read_to_string(&mut text).context("it cannot be read")?;
    ensure!(text.len() as u64 <= LARGEST_FILE, "it is larger than {LARGEST_FILE} bytes");
    Ok(text)
}
