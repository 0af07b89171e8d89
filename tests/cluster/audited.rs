//! The auditor at the end of a test: the recording must show no violation of an invariant (section 16).

use anyhow::Result;
use wfe_testkit::{Observed, Recording, World};

/// Ends a recording, has the auditor judge it together with the audit log, and returns the changes.
pub(crate) async fn audited(world: &World, recording: Recording) -> Result<Vec<Observed>> {
    let (changes, report) = wfe_tests::audit(world, recording).await?;
    assert!(report.is_clean(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}

/// Audits as [`audited`] does while another world shares the execution namespace. The recording has the executions of
/// both worlds.
pub(crate) async fn audited_with(world: &World, neighbour: &World, recording: Recording) -> Result<Vec<Observed>> {
    let (changes, report) = wfe_tests::audit_with(world, &[neighbour], recording).await?;
    assert!(report.is_clean(), "{:#?}\n{:#?}", report.violations, report.gaps);
    Ok(changes)
}
