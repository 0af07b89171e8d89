//! What the tests against the real control plane (`cluster/`), the soak (`soak/`) and the recorder (`recorder/`) share.

pub mod outcomes;
mod stable;

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wfe_auditor::{Change, Counts, Options, Report, Request};
use wfe_testkit::{Observed, Recording, World};

pub use stable::stable;

/// Ends a recording and has it judged together with the audit log (SPEC section 16). Everything has to have come to
/// rest. Returns the changes and what the auditor says.
pub async fn audit(world: &World, recording: Recording) -> Result<(Vec<Observed>, Report)> {
    let changes = recording.stop().await?;
    let requests = world.audit().await?;
    let options = Options { operators: BTreeSet::from([world.operator_user()]), settled: true };
    let (judged, witnessed): (Vec<Change>, Vec<Request>) = (translate(&changes)?, translate(&requests)?);
    let report = wfe_auditor::audit(&judged, &witnessed, &options);
    Ok((changes, report))
}

/// Counts what a recording shows so far.
pub fn count(recording: &Recording) -> Result<Counts> {
    let changes: Vec<Change> = translate(&recording.so_far())?;
    Ok(wfe_auditor::audit(&changes, &[], &Options::default()).counts)
}

/// The auditor reads files: it shares the shape of what the testkit records, and no type.
fn translate<T: DeserializeOwned>(recorded: &[impl Serialize]) -> Result<Vec<T>> {
    // One by one, so that a long recording is not in memory three times.
    recorded.iter().map(|one| Ok(serde_json::from_value(serde_json::to_value(one)?)?)).collect()
}
