//! Circuits: what they hold, and which failures are shared (section 13.5).

use serde_json::json;
use wfe_auditor::Policy;

use crate::story::{NAMESPACE, Story, uid};

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
    failed_in(failures, |_| NAMESPACE)
}

/// The same, with schedules in several namespaces.
fn failed_in(failures: u64, namespace: impl Fn(u64) -> &'static str) -> (Story, u64, u64) {
    let mut story = Story::by(Policy::default());
    let begun: Vec<u64> = (0..9)
        .map(|number| {
            let (name, target) = (name(number), format!("node/n{number}"));
            story.schedule_in(namespace(number), &name, &target, &json!({"interval": "1m"}));
            story.begin_plan(&name)
        })
        .collect();
    let ended = (0..failures).map(|number| story.pulls_nothing(number, begun[0] + 60 + 2 * number, false)).last();
    (story, begun[0] + 60, ended.unwrap_or(0))
}

impl Story {
    /// The child of a schedule completes, and its schedule says so.
    fn completes(&mut self, number: u64, slot: u64) {
        let (schedule, child) = (name(number), Story::child_name(&name(number), slot));
        self.child_now(&schedule, slot);
        self.names(&schedule, slot);
        self.start(&child, 1);
        self.work(&child, 1);
        self.work_ends(&child, 1, "True");
        self.complete(&child);
        self.records(&schedule, slot, "Completed", 0);
    }
}

#[test]
fn what_the_fifth_failure_opens_holds_the_others_until_one_probes() {
    let (mut story, first, opened) = failed(5);
    // A minute later one probes, and completes; then all are free.
    story.go_on_to(opened + 61);
    let slot = first + 2 * 5 + 60;
    assert!(slot <= opened + 62, "{slot} {opened}");
    story.completes(5, slot);
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
fn a_child_in_a_namespace_that_has_not_failed() {
    let held = || vec!["11 child-circuit".to_owned()];
    for (failed, of_ninth, expected) in [
        (["a", "a", "a", "a", "a"], "b", clean()),
        (["a", "b", "a", "b", "a"], "b", held()),
        (["a", "b", "c", "d", "d"], "e", clean()),
        (["a", "b", "c", "d", "e"], "f", held()),
    ] {
        let namespace = |number| usize::try_from(number).ok().and_then(|number| failed.get(number).copied());
        let (mut story, first, _) = failed_in(5, |number| namespace(number).unwrap_or(of_ninth));
        story.child(&name(8), first + 2 * 8);
        assert_eq!(story.found(), expected, "{failed:?}, and then {of_ninth}");
    }
}

#[test]
fn a_child_in_a_namespace_that_has_failed_since() {
    let (mut story, first, _) = failed_in(5, |number| if number < 5 { NAMESPACE } else { "shop" });
    story.pulls_nothing(5, first + 2 * 5, true);
    assert_eq!(story.found(), clean());
    story.child(&name(6), first + 2 * 6);
    assert_eq!(story.found(), ["11 child-circuit"]);
}

#[test]
fn a_namespace_that_a_circuit_does_not_hold_neither_closes_nor_probes_it() {
    let others = |number| if number == 8 { "shop" } else { NAMESPACE };
    let (mut story, first, opened) = failed_in(5, others);
    story.go_on_to(opened + 20);
    story.completes(8, first + 2 * 8);
    let held = story.child(&name(7), first + 2 * 7);
    assert_eq!(story.found(), ["11 child-circuit"], "{held} after a success elsewhere");
    let (mut story, first, opened) = failed_in(5, others);
    story.go_on_to(opened + 61);
    story.child_now(&name(8), first + 2 * 8 + 60);
    story.child_now(&name(6), first + 2 * 6 + 60);
    assert_eq!(story.found(), clean(), "one elsewhere is no probe, and the first probe may be made beside it");
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
