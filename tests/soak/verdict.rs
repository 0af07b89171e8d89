//! What the auditor says, and whether enough has happened for that to mean something.

use anyhow::{Result, ensure};
use wfe_auditor::Requirement;
use wfe_testkit::{Recording, World};

/// What must have happened, and how often, for a soak to count: a hundred runs, and twenty of every decision.
const REQUIRED: &[(&str, u64)] = &[
    ("runs", 100),
    ("completed", 20),
    ("failed", 20),
    ("failed-early", 20),
    ("ResourceBusy", 20),
    ("abandoned", 20),
    ("withdrawn", 20),
    ("leftovers", 20),
    ("cancelled", 20),
];

/// Ends the recording and judges it.
pub(crate) async fn judge(world: &World, recording: Recording) -> Result<()> {
    let (changes, report) = wfe_tests::audit(world, recording).await?;
    println!("{} changes judged", changes.len());
    print!("{report}");
    ensure!(
        report.is_clean(),
        "the auditor found {} violations and {} gaps",
        report.violations.len(),
        report.gaps.len()
    );
    let required: Vec<Requirement> =
        REQUIRED.iter().map(|(name, at_least)| Requirement { name: (*name).to_owned(), at_least: *at_least }).collect();
    let unmet = report.counts.unmet(&required);
    ensure!(unmet.is_empty(), "too little happened for the soak to count: {unmet:?}");
    println!("soak: clean, and it counts");
    Ok(())
}
