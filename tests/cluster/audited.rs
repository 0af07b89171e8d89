//! The auditor at the end of a test: what was recorded must violate no invariant (section 16).

use anyhow::Result;
use wfe_testkit::{Observed, Recording, World};

/// Ends a recording, audits it together with the audit log, and returns the changes.
pub(crate) async fn audited(world: &World, recording: Recording) -> Result<Vec<Observed>> {
    let (changes, report) = wfe_tests::audit(world, recording).await?;
    assert!(report.is_clean(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}

/// Does the same if another world shares the execution namespace. The recording has the executions of both.
pub(crate) async fn audited_with(world: &World, neighbour: &World, recording: Recording) -> Result<Vec<Observed>> {
    let (changes, report) = wfe_tests::audit_with(world, &[neighbour], recording).await?;
    assert!(report.is_clean(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}
