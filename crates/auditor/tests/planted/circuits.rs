//! Circuits: what they hold, and which failures are shared (section 13.5).

use serde_json::json;
use wfe_auditor::Policy;

use crate::story::{Story, uid};

/// What all failures here come from.
const REGISTRY: &str = "ImagePullBackOff/registry/registry.example";

fn clean() -> Vec<String> {
    Vec::new()
}

fn name(number: u64) -> String {
    format!("s{number}")
}

impl Story {
    /// The child of a schedule fails before anything ran, and its schedule says so. Returns when it ended.
    fn pulls_nothing(&mut self, number: u64, slot: u64, shared: bool) -> u64 {
        let schedule = name(number);
        let child = self.child(&schedule, slot);
        self.names(&schedule, slot);
        let ended = self.is_refused_uncounted(&child, 1);
        self.correct(&child, |status| {
            status["failureDetails"]["reason"] = json!("ImagePullBackOff");
            status["failureDetails"]["fingerprint"] = json!(REGISTRY);
            if shared {
                status["failureDetails"]["sharedOutage"] = json!(true);
            }
        });
        self.records(&schedule, slot, "Failed", u64::from(!shared));
        self.correct(&schedule, |status| status["lastRun"]["fingerprint"] = json!(REGISTRY));
        ended
    }
}

/// Nine schedules of one registry, each on a target of its own; so many of them have failed. Returns the slot of the
/// first, after which the others have theirs two seconds apart, and when the last failure ended.
fn failed(failures: u64) -> (Story, u64, u64) {
    let mut story = Story::by(Policy::default());
    let begun: Vec<u64> = (0..9)
        .map(|number| {
            story.schedule(&name(number), &format!("node/n{number}"), &json!({"interval": "1m"}));
            story.begin_plan(&name(number))
        })
        .collect();
    let ended = (0..failures).map(|number| story.pulls_nothing(number, begun[0] + 60 + 2 * number, false)).last();
    (story, begun[0] + 60, ended.unwrap_or(0))
}

#[test]
fn what_the_fifth_failure_opens_holds_the_others_until_one_probes() {
    let (mut story, first, opened) = failed(5);
    // A minute later one probes, and completes; then all are free.
    story.go_on_to(opened + 61);
    let slot = first + 2 * 5 + 60;
    assert!(slot <= opened + 62, "{slot} {opened}");
    story.child_now(&name(5), slot);
    let probe = Story::child_name(&name(5), slot);
    story.names(&name(5), slot);
    story.start(&probe, 1);
    story.work(&probe, 1);
    story.work_ends(&probe, 1, "True");
    story.complete(&probe);
    story.records(&name(5), slot, "Completed", 0);
    story.child(&name(6), first + 2 * 6 + 60);
    let report = story.report(false);
    assert!(report.is_clean(), "{report}");
    assert_eq!(["children", "probes", "shared"].map(|name| report.counts.of(name)), [7, 1, 0]);
}

#[test]
fn a_child_that_an_open_circuit_holds() {
    for (failures, expected) in [(4, clean()), (5, vec!["11 child-circuit".to_owned()])] {
        let (mut story, first, _) = failed(failures);
        story.child(&name(8), first + 2 * 8);
        assert_eq!(story.found(), expected, "{failures}");
    }
}

#[test]
fn a_second_probe_beside_the_first() {
    let (mut story, first, opened) = failed(5);
    story.go_on_to(opened + 61);
    story.child_now(&name(5), first + 2 * 5 + 60);
    story.child_now(&name(6), first + 2 * 6 + 60);
    assert_eq!(story.found(), ["11 child-circuit"]);
    story.lag = std::time::Duration::from_secs(1);
    assert_eq!(story.found(), clean(), "the first may have come unseen");
}

#[test]
fn a_policy_that_opens_no_circuit_holds_nothing() {
    let (mut story, first, _) = failed(5);
    story.child(&name(8), first + 2 * 8);
    story.policy.outage_targets = 0;
    assert_eq!(story.found(), clean());
    story.policy.breaker_minimum = 5;
    assert_eq!(story.found(), ["11 child-circuit"], "all that finished have failed");
    story.policy.breaker_threshold = 0;
    assert_eq!(story.found(), clean());
}

#[test]
fn a_shared_failure_counts_for_nobody() {
    for (shared, expected) in [(true, clean()), (false, vec!["8 shared-outage".to_owned()])] {
        let (mut story, first, opened) = failed(5);
        story.go_on_to(opened + 61);
        story.pulls_nothing(5, first + 2 * 5 + 60, shared);
        assert_eq!(story.found(), expected, "{shared}");
    }
    let (mut story, first, _) = failed(3);
    story.pulls_nothing(3, first + 2 * 3, true);
    assert_eq!(story.found(), ["8 shared-outage"], "no circuit is open");
}

#[test]
fn a_count_of_a_schedule_that_a_shared_failure_changes() {
    let (mut story, first, opened) = failed(5);
    story.go_on_to(opened + 61);
    let slot = first + 2 * 5 + 60;
    story.pulls_nothing(5, slot, true);
    story.correct(&name(5), |status| status["failureCount"] = json!(1));
    assert_eq!(story.found(), ["12 failure-count"]);
}

#[test]
fn an_execution_of_a_person_runs_and_its_shared_failure_is_waited_for() {
    for (number, expected) in [(0, clean()), (1, vec!["8 counter".to_owned()])] {
        let (mut story, _, _) = failed(5);
        story.wfe("person", "node/person");
        story.is_refused("person", 1);
        story.correct("person", |status| {
            status["failureDetails"]["fingerprint"] = json!(REGISTRY);
            status["failureDetails"]["sharedOutage"] = json!(true);
            status["consecutiveFailures"] = json!(number);
        });
        assert_eq!(story.found(), expected, "{number}");
    }
    // Shared failures exhaust no target, and the next one waits for them.
    let (mut story, _, _) = failed(5);
    story.wfe("person", "node/person");
    story.is_refused("person", 1);
    story.correct("person", |status| {
        status["failureDetails"]["fingerprint"] = json!(REGISTRY);
        status["failureDetails"]["sharedOutage"] = json!(true);
        status["consecutiveFailures"] = json!(0);
    });
    story.failures.clear();
    story.turn(("early", "node/person", "scale", 2), 30, "person");
    assert_eq!(story.found(), ["4 backoff"]);
    assert_eq!(story.object(&uid("early"))["status"]["phase"], "Running");
}
