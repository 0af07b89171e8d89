//! Judges a soak: the auditor's report must be clean, and enough must have happened to make the report meaningful.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use wfe_auditor::{Counts, silence};
use wfe_core::Time;
use wfe_testkit::record::{Change, Observed};
use wfe_testkit::{Recording, World};

/// How often each of these must happen for a soak to count: a hundred runs, and twenty times for most others. A few are
/// rarer. A turn after a clearance requires a blocked target. A failing schedule waits longer after each failure. A
/// schedule has at most one triage in 20 seconds.
const REQUIRED: &[(&str, u64)] = &[
    ("runs", 100),
    ("waited-for-place", 20),
    ("completed", 20),
    ("failed", 20),
    ("failed-early", 20),
    ("ResourceBusy", 20),
    ("by-rule-2", 20),
    ("by-rule-3", 20),
    ("by-rule-4", 20),
    ("by-rule-5", 20),
    ("turns-on-record", 20),
    ("turns-after-clearance", 5),
    ("counters", 20),
    ("abandoned", 20),
    ("withdrawn", 20),
    ("leftovers", 20),
    ("cancelled", 20),
    ("children", 20),
    ("outcomes", 20),
    ("failures-of-schedules", 10),
    ("holds", 10),
    ("triages", 1),
];

/// Returns what must happen more often for the soak to count; `None` if nothing is missing.
pub(crate) fn missing(counts: &Counts) -> Option<String> {
    let missing: Vec<String> = REQUIRED
        .iter()
        .filter(|(name, at_least)| counts.of(name) < *at_least)
        .map(|(name, at_least)| format!("{} of {at_least} {name}", counts.of(name)))
        .collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// Ends the recording. Fails if the auditor found something, if a wait had no sign, or if too little happened.
pub(crate) async fn judge(world: &World, recording: Recording) -> Result<()> {
    let (changes, report) = wfe_tests::audit(world, recording).await?;
    println!("{} changes judged", changes.len());
    print!("{report}");
    let (violations, gaps) = (report.violations.len(), report.gaps.len());
    let at = |change: &Observed| Time::UNIX_EPOCH + Duration::from_millis(change.at_ms);
    let versions = changes.iter().map(|change| {
        let uid = change.object["metadata"]["uid"].as_str().unwrap_or_default();
        let object = (change.change != Change::Deleted).then_some(&change.object);
        silence::Version { at: at(change), kind: &change.kind, uid, object }
    });
    let end = changes.iter().map(at).max().unwrap_or_default();
    // No fault of the soak is long enough to excuse a wait that the status does not show.
    let silent = silence::lasted(versions, end);
    for lasted in &silent {
        println!("{lasted}");
    }
    ensure!(silent.is_empty(), "{} waits had no sign", silent.len());
    ensure!(report.is_clean(), "the auditor found {violations} violations and {gaps} gaps");
    if let Some(missing) = missing(&report.counts) {
        bail!("too little happened for the soak to count: {missing}");
    }
    println!("soak: clean, and it counts");
    Ok(())
}
