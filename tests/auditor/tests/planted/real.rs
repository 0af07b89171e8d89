//! A recording of a real control plane with two operators at the same time. One of three rivals on a target runs.
//! Afterwards a fourth execution fails there. A fifth one, on another target, is deleted while it runs.
//!
//! The files are small, because the objects lack fields that no invariant reads, such as the specs of pods.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use wfe_auditor::{Change, Options, Report, Request, audit, read_changes, read_requests};

fn open(name: &str) -> BufReader<File> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    BufReader::new(File::open(path).unwrap())
}

fn recording() -> (Vec<Change>, Vec<Request>) {
    let changes = read_changes(open("two-operators.watch.jsonl")).unwrap();
    (changes, read_requests(open("two-operators.audit.jsonl")).unwrap())
}

fn judge(changes: &[Change], requests: &[Request]) -> Report {
    let is_operator = |request: &&Request| request.user.ends_with(":wfe-operator");
    let operators: BTreeSet<String> = requests.iter().filter(is_operator).map(|request| request.user.clone()).collect();
    // The recording was made before statuses had a counter.
    audit(changes, requests, &Options { operators, settled: true, policy: None, ..Options::default() })
}

#[test]
fn a_real_recording_is_clean() {
    let (changes, requests) = recording();
    let report = judge(&changes, &requests);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.unjudged, ["rules 2 to 5 and the counter (invariants 4, 5 and 8): no policy"]);
    for (name, expected) in [("executions", 5), ("ran", 3), ("runs", 3), ("ResourceBusy", 2), ("cancelled", 1)] {
        assert_eq!(report.counts.of(name), expected, "{name}");
    }
}

#[test]
fn no_line_of_a_real_recording_can_be_taken_out_unseen() {
    let (changes, requests) = recording();
    let ours = |change: &Change| matches!(change.kind.as_str(), "WorkflowExecution" | "PipelineRun");
    for index in (0..changes.len()).filter(|index| ours(&changes[*index])) {
        let mut torn = changes.clone();
        let line = torn.remove(index);
        let report = judge(&torn, &requests);
        assert!(!report.is_clean(), "without the {:?} of {}", line.change, line.resource_version);
    }
}

#[test]
fn a_real_recording_in_which_the_pods_last_longer_shows_the_drain() {
    let (mut changes, requests) = recording();
    let is_end = |change: &Change| {
        change.kind == "Pod" && matches!(change.object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
    };
    changes.retain(|change| !is_end(change));
    let found: Vec<(u8, &str)> =
        judge(&changes, &requests).violations.iter().map(|one| (one.invariant, one.rule)).collect();
    assert_eq!(found, [(1, "drain")]);
}

#[test]
fn a_real_recording_in_which_the_release_comes_first_is_not_clean() {
    let (mut changes, _) = recording();
    for change in &mut changes {
        if change.kind == "WorkflowExecution" && change.object["status"]["phase"] == "Running" {
            change.resource_version += 1_000_000;
        }
    }
    let found: BTreeSet<(u8, &str)> =
        judge(&changes, &[]).violations.iter().map(|one| (one.invariant, one.rule)).collect();
    assert!(found.contains(&(8, "uncommitted")), "{found:?}");
}
