//! How executions end. Every outcome of `wfe_tests::outcomes` is played through the operator on real Tekton, and its
//! status is checked (section 9). `docs/reference/outcomes.md` shows the results.
//!
//! The quick outcomes are always played. `WFE_TEST_ALL=1` plays all outcomes, on two versions of Tekton. The page is
//! then compared with the results, or written if `WFE_WRITE_OUTCOMES=1` is set too.

mod page;
mod row;
mod rows;
mod seen;
mod stage;

use std::collections::BTreeMap;

use anyhow::Result;
use futures::StreamExt as _;
use wfe_testkit::{ControlPlane, Options, Tekton};
use wfe_tests::outcomes::{Needs, Play, plays, repair};

use self::row::Row;
use self::rows::rows;
use self::seen::Seen;
use self::stage::TOKEN;
use crate::faults::all;

/// How many outcomes are played at once. Each has its own namespaces and operator, and mostly waits.
const AT_ONCE: usize = 6;

#[tokio::test]
async fn executions_tell_the_truth_about_how_they_ended() -> Result<()> {
    if !all() {
        let quick: Vec<Row> = rows().into_iter().filter(|row| row.quick).collect();
        let (seen, wrong) = play(ControlPlane::shared().await?, &quick).await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        return page::compare_lines(&seen);
    }
    let (current, mut wrong) = play_all(Tekton::Current).await?;
    let (oldest, also_wrong) = play_all(Tekton::Oldest).await?;
    wrong.extend(also_wrong);
    // The page is written before the assertion, because it shows mistakes more clearly than a list.
    page::write_or_compare(&current, &oldest)?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn every_outcome_that_an_execution_can_have_has_one_row() {
    let mut expected: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows() {
        *expected.entry(row.play).or_default() += 1;
    }
    // Plays with these time-outs are left out, because an execution cannot set them.
    let playable = plays().into_iter().filter(|play| play.plain_timeouts.is_none());
    let playable: BTreeMap<&str, usize> = playable.map(|play| (play.name, 1)).collect();
    assert_eq!(expected, playable);
}

/// The results with one version of Tekton.
struct Version {
    name: String,
    seen: Vec<Seen>,
}

/// Plays all rows on control planes with this Tekton. Returns the results in the order of the plays, and the
/// differences.
async fn play_all(tekton: Tekton) -> Result<(Version, Vec<String>)> {
    let mut version = Version { name: String::new(), seen: Vec::new() };
    let mut wrong = Vec::new();
    for needs in [Needs::Shipped, Needs::Repaired] {
        let control_plane = ControlPlane::start(Options { tekton, ..Options::default() }).await?;
        if needs == Needs::Repaired {
            repair(&control_plane).await?;
        }
        let these = rows().into_iter().map(|row| row.with(tekton)).filter(|row| play_of(row).needs == needs);
        let these: Vec<Row> = these.collect();
        let (seen, these_wrong) = play(&control_plane, &these).await;
        version.name = control_plane.tekton_version();
        version.seen.extend(seen);
        wrong.extend(these_wrong.into_iter().map(|one| format!("Tekton {}: {one}", version.name)));
    }
    version.seen.sort_by_key(|seen| plays().iter().position(|play| play.name == seen.play));
    Ok((version, wrong))
}

/// Plays these rows at the same time. Returns the results, and how they differ from the rows.
async fn play(control_plane: &ControlPlane, rows: &[Row]) -> (Vec<Seen>, Vec<String>) {
    let played = futures::stream::iter(rows)
        .map(|row| async move { (row, stage::play(control_plane, row, &play_of(row)).await) })
        // The results are in the order of the rows, regardless of which play ends first.
        .buffered(AT_ONCE);
    let mut played = std::pin::pin!(played);
    let (mut all_seen, mut wrong) = (Vec::new(), Vec::new());
    while let Some((row, result)) = played.next().await {
        match result {
            Ok(seen) => {
                wrong.extend(row.differences(&seen).into_iter().map(|what| format!("{}: {what}", row.play)));
                all_seen.push(seen);
            }
            Err(error) => wrong.push(format!("{}: {error:#}", row.play)),
        }
    }
    (all_seen, wrong)
}

fn play_of(row: &Row) -> Play {
    let found = plays().into_iter().find(|play| play.name == row.play);
    found.unwrap_or_else(|| panic!("no outcome is named {}", row.play)).declares(TOKEN)
}
