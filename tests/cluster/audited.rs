//! The auditor at the end of a test: what was recorded must break no invariant (SPEC section 16).

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wfe_testkit::{Observed, Recording, World};

/// Ends a recording, has it judged together with the audit log, and returns the changes.
pub(crate) async fn audited(world: &World, recording: Recording) -> Result<Vec<Observed>> {
    let changes = recording.stop().await?;
    let requests = world.audit().await?;
    let options = wfe_auditor::Options { operators: BTreeSet::from([world.operator_user()]), settled: true };
    let (judged, witnessed): (Vec<wfe_auditor::Change>, Vec<wfe_auditor::Request>) =
        (translate(&changes)?, translate(&requests)?);
    let report = wfe_auditor::audit(&judged, &witnessed, &options);
    assert!(report.violations.is_empty() && report.gaps.is_empty(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}

/// The auditor reads files: it shares the shape of what the testkit records, and no type.
fn translate<T: DeserializeOwned>(recorded: &impl Serialize) -> Result<T> {
    Ok(serde_json::from_value(serde_json::to_value(recorded)?)?)
}
