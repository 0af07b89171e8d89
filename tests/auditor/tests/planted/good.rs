//! A story without a violation. The order of its lines does not matter.

use proptest::prelude::*;
use serde_json::json;
use wfe_auditor::{Counts, Report};

use crate::story::{NODE, Story};

fn positive(counts: &Counts) -> Vec<(&str, u64)> {
    counts.iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let report = Story::good().report(true);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.unjudged, Vec::<String>::new());
    let expected = [
        ("ImagePullBackOff", 1),
        ("OOMKilled", 1),
        ("PreviousExecutionFailed", 1),
        ("ResourceBusy", 3),
        ("ResourceExhausted", 1),
        ("abandoned", 1),
        ("by-rule-2", 1),
        ("cancelled", 1),
        ("completed", 2),
        ("counters", 3),
        ("created", 7),
        ("executions", 11),
        ("failed", 3),
        ("failed-early", 2),
        ("leftovers", 1),
        ("ran", 5),
        ("runs", 5),
        ("skipped", 4),
        ("turns-on-record", 2),
        ("withdrawn", 1),
    ];
    assert_eq!(positive(&report.counts), expected);
}

#[test]
fn nothing_is_found_by_the_watch_alone_and_what_is_not_judged_is_said() {
    let mut story = Story::good();
    story.requests.clear();
    story.changes.retain(|change| !matches!(change.kind.as_str(), "TaskRun" | "Pod"));
    // Without the pods, the recording does not show that the target still drained.
    story.changes.retain(|change| change.object["metadata"]["name"] != "drained");
    let report = story.report(false);
    assert!(report.is_clean(), "{report}");
    let unjudged: Vec<&str> = report.unjudged.iter().map(|what| what.split(" (").next().unwrap()).collect();
    assert_eq!(unjudged, ["what the operator wrote", "draining", "whether all ends"]);
}

#[test]
fn an_empty_recording_is_clean() {
    let report = wfe_auditor::audit(&[], &[], &wfe_auditor::Options::default());
    assert!(report.is_clean());
    assert_eq!(positive(&report.counts), []);
}

#[test]
fn the_number_may_begin_again_once_nothing_shows_it() {
    let mut story = Story::default();
    story.live("one", NODE, 1);
    story.live("two", NODE, 2);
    for (name, number) in [("one", 1), ("two", 2)] {
        story.delete_run(name, number);
        for piece in ["task", "pod"] {
            story.remove("gc", &format!("run-{name}-{number}-{piece}"), &json!(null));
        }
        story.delete_wfe(name);
    }
    story.live("three", NODE, 1);
    assert_eq!(story.found_settled(), Vec::<String>::new());
}

/// Returns a story with several violations of different kinds.
fn bad() -> Story {
    let mut story = Story::good();
    story.wfe("rival", NODE);
    story.wfe("other", NODE);
    story.start("rival", 3);
    story.start("other", 4);
    story.run_ends("rival", 3, "False");
    story.complete("rival");
    story.wfe("forgotten", NODE);
    story.write("rival", &json!({"phase": "Running"}));
    for request in &mut story.requests {
        request.request = request.request.pointer("/status").cloned().unwrap_or_default();
    }
    story.changes.remove(0);
    story
}

fn shuffled<T: Clone>(all: &[T], seed: u64) -> Vec<T> {
    let mut keyed: Vec<(u64, &T)> = (1..)
        .map(|n: u64| n.wrapping_mul(seed | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ seed)
        .zip(all)
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, one)| one.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_order_of_the_lines_means_nothing(seed in any::<u64>()) {
        for story in [Story::good(), bad()] {
            let mut mixed = story.clone();
            mixed.changes = shuffled(&story.changes, seed);
            mixed.requests = shuffled(&story.requests, seed);
            // A watch that is restarted may repeat a line.
            mixed.changes.extend_from_slice(&story.changes[..3]);
            let (expected, report): (Report, Report) = (story.report(true), mixed.report(true));
            prop_assert_eq!(report, expected);
        }
    }

    #[test]
    fn no_shape_of_an_object_is_too_strange(cut in 0_usize..300, path in "(/(metadata|spec|status|uid|name|conditions|phase|0)){1,3}") {
        let mut story = bad();
        let index = cut % story.changes.len();
        if let Some(part) = story.changes[index].object.pointer_mut(&path) {
            *part = json!([{"x": 1}, "y", null]);
        }
        let _any = story.report(true);
    }
}
