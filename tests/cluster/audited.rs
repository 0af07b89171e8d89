//! The auditor at the end of a test: what was recorded must break no invariant (section 16).

use anyhow::Result;
use wfe_testkit::{Observed, Recording, World};

/// Ends a recording, has it judged together with the audit log, and returns the changes.
pub(crate) async fn audited(world: &World, recording: Recording) -> Result<Vec<Observed>> {
    let (changes, report) = wfe_tests::audit(world, recording).await?;
    assert!(report.is_clean(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}

/// Does the same where another world shares the execution namespace, of which the recording has the executions too.
pub(crate) async fn audited_with(world: &World, neighbour: &World, recording: Recording) -> Result<Vec<Observed>> {
    let (changes, report) = wfe_tests::audit_with(world, &[neighbour], recording).await?;
    assert!(report.is_clean(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}
