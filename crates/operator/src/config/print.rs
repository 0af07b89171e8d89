//! `wfe-operator config`: shows what the operator would run by, or all that is wrong with it.

use anyhow::Context;
use kube::Config;
use std::io::Write;

use super::manifest::read_file;
use super::page::{Table, heading};
use super::{Document, Flags, Place, follow};
use crate::cli::ConfigArgs;
use crate::client::Cluster;
use crate::hearing::Hearing;
use crate::leadership::Leadership;
use crate::metrics::Metrics;

/// Prints what is in force by the flags and by the `ConfigMap` of the cluster, or by that of a file.
///
/// # Errors
/// What is wrong; what is wrong with values is listed before on standard error.
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
        Hearing::default(),
    )
    .context("cannot use the kubeconfig; check its certificates")?;
    follow::read(&cluster, place).await.with_context(|| format!("cannot read {place}"))
}
