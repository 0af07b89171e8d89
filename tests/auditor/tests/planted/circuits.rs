//! Circuits: what they hold, which failures are shared, and what they put off (sections 13.5 and 13.6).

use serde_json::json;
use wfe_auditor::Policy;

use crate::story::{NAMESPACE, Story, uid};

/// What all failures here come from.
const REGISTRY: &str = "ImagePullBackOff/registry/registry.example";
/// The interval of all schedules here, in seconds.
const INTERVAL: u64 = 30;

fn clean() -> Vec<String> {
    Vec::new()
}

fn name(number: usize) -> String {
    format!("s{number}")
}

/// Twelve schedules of one registry, each on a target of its own.
struct Outage {
    story: Story,
    /// From when the slots of each are counted, and how often it has failed.
    slots: Vec<(u64, u64)>,
}

/// So many of the schedules have failed once.
fn failed(failures: usize) -> Outage {
    let mut story = Story::by(Policy::default());
    let begun = (0..12).map(|number| {
        let (name, target) = (name(number), format!("node/n{number}"));
        let spec = json!({"interval": "30s", "triage": {"after": 1}});
        story.schedule_in(NAMESPACE, &name, &target, &spec);
        story.begin_plan(&name)
    });
    let slots = begun.map(|begun| (begun + INTERVAL, 0)).collect();
    let mut outage = Outage { story, slots };
    (0..failures).for_each(|number| outage.fails(number));
    outage
}

impl Outage {
    /// Returns the next slot of a schedule from a time on.
    fn slot(&self, number: usize, from: u64) -> u64 {
        let (first, _) = self.slots[number];
        first + from.saturating_sub(first).div_ceil(INTERVAL) * INTERVAL
    }

    /// Makes the next child of a schedule, not before a time. Returns its slot.
    fn makes(&mut self, number: usize, from: u64) -> u64 {
        let slot = self.slot(number, from.max(self.story.version + 1));
        self.story.child(&name(number), slot);
        slot
    }

    /// The next child of a schedule fails before anything ran, and its schedule says so.
    fn fails(&mut self, number: usize) {
        self.fails_from(number, 0);
    }

    fn fails_from(&mut self, number: usize, from: u64) {
        let slot = self.makes(number, from);
        let (schedule, child) = (name(number), Story::child_name(&name(number), slot));
        self.story.names(&schedule, slot);
        let ended = self.story.is_refused_uncounted(&child, 1 + self.slots[number].1);
        self.story.correct(&child, |status| {
            status["failureDetails"]["reason"] = json!("ImagePullBackOff");
            status["failureDetails"]["fingerprint"] = json!(REGISTRY);
        });
        let count = self.slots[number].1 + 1;
        self.story.records(&schedule, slot, "Failed", count);
        self.story.correct(&schedule, |status| status["lastRun"]["fingerprint"] = json!(REGISTRY));
        self.slots[number] = (ended + (INTERVAL << count), count);
    }

    /// The next child of a schedule completes, and its schedule says so.
    fn completes(&mut self, number: usize, from: u64) {
        let slot = self.makes(number, from);
        let (schedule, child) = (name(number), Story::child_name(&name(number), slot));
        self.story.names(&schedule, slot);
        let run = 1 + self.slots[number].1;
        self.story.start(&child, run);
        self.story.work(&child, run);
        self.story.work_ends(&child, run, "True");
        self.story.complete(&child);
        self.story.records(&schedule, slot, "Completed", 0);
        self.slots[number] = (slot + INTERVAL, self.slots[number].1);
    }

    /// When the circuit opened: with the end of the fifth failure.
    fn opened(&self) -> u64 {
        self.slots[4].0 - (INTERVAL << 1)
    }

    /// A schedule has its first failure triaged.
    fn triages(&mut self, number: usize) {
        let last = self.story.object(&uid(&name(number)))["status"]["lastRun"]["name"].clone();
        let triage = json!({
            "of": last, "at": self.story.now(), "analyst": "BuiltIn", "state": "Noted", "verdict": "DoNothing",
        });
        self.story.write(&name(number), &json!({"triage": triage}));
    }
}

#[test]
fn what_the_fifth_failure_opens_holds_what_failed_until_one_probes() {
    let mut outage = failed(5);
    // Whoever has not failed goes on. A minute later one probes, and completes; then all are free.
    outage.makes(8, 0);
    let probed = outage.opened() + 60;
    outage.completes(4, probed);
    outage.makes(3, 0);
    let report = outage.story.report(false);
    assert!(report.is_clean(), "{report}");
    assert_eq!(["children", "probes", "shared"].map(|name| report.counts.of(name)), [8, 1, 0]);
}

#[test]
fn a_child_that_an_open_circuit_holds() {
    for (failures, expected) in [(4, clean()), (5, vec!["11 child-circuit".to_owned()])] {
        let mut outage = failed(failures);
        outage.makes(0, 0);
        assert_eq!(outage.story.found(), expected, "{failures}");
    }
}

#[test]
fn a_second_probe_beside_the_first_and_one_too_soon_after_it() {
    let mut outage = failed(5);
    let probed = outage.opened() + 60;
    outage.makes(4, probed);
    outage.makes(3, 0);
    assert_eq!(outage.story.found(), ["11 child-circuit"]);
    outage.story.lag = std::time::Duration::from_secs(40);
    assert_eq!(outage.story.found(), clean(), "the first may have come unseen");
    for (wait, expected) in [(80, vec!["11 child-circuit".to_owned()]), (121, clean())] {
        let mut outage = failed(5);
        outage.fails_from(4, probed);
        outage.makes(3, probed + wait);
        assert_eq!(outage.story.found(), expected, "{wait}");
    }
}

#[test]
fn what_others_successes_close_holds_nobody_for_a_while() {
    let mut outage = failed(5);
    let opened = outage.opened();
    outage.completes(8, opened + 2);
    outage.makes(0, 0);
    assert_eq!(outage.story.found(), clean(), "the registry answers");
    let mut outage = failed(5);
    outage.completes(8, opened + 2);
    for number in [5, 6, 7, 9, 10] {
        outage.fails(number);
    }
    outage.makes(5, 0);
    assert_eq!(outage.story.found(), clean(), "it is open again, and holds nobody");
}

#[test]
fn a_policy_that_opens_no_circuit_holds_nothing() {
    let mut outage = failed(5);
    outage.makes(0, 0);
    outage.story.policy.outage_targets = 0;
    assert_eq!(outage.story.found(), clean());
}

#[test]
fn a_failure_of_a_child_is_shared_with_nobody_and_counts_for_its_schedule() {
    let probe = |shared: bool, count: u64| {
        let mut outage = failed(5);
        let probed = outage.opened() + 60;
        outage.fails_from(4, probed);
        outage.story.correct(&name(4), |status| status["failureCount"] = json!(count));
        if !shared {
            return outage.story.found();
        }
        let slot = outage.makes(9, 0);
        let child = Story::child_name(&name(9), slot);
        outage.story.is_refused_uncounted(&child, 1);
        outage.story.correct(&child, |status| {
            status["failureDetails"]["fingerprint"] = json!(REGISTRY);
            status["failureDetails"]["sharedOutage"] = json!(true);
        });
        outage.story.found()
    };
    assert_eq!(probe(false, 2), clean());
    assert_eq!(probe(false, 1), ["12 failure-count"]);
    assert_eq!(probe(true, 2), ["8 shared-outage"]);
}

#[test]
fn a_triage_that_others_failures_put_off() {
    let found = |failures: usize, change: fn(&mut Policy)| {
        let mut outage = failed(failures);
        outage.triages(0);
        change(&mut outage.story.policy);
        outage.story.found()
    };
    assert_eq!(found(4, |_| {}), clean());
    assert_eq!(found(5, |_| {}), ["13 triage-circuit"]);
    assert_eq!(found(5, |policy| policy.outage_targets = 0), clean());
    let degraded = |policy: &mut Policy| (policy.outage_targets, policy.breaker_minimum) = (0, 5);
    assert_eq!(found(5, degraded), ["13 triage-degraded"]);
    assert_eq!(found(4, degraded), clean(), "too few have finished");
    // An hour after the failure that made it due it begins, whatever fails.
    for (number, expected) in [(0, clean()), (5, vec!["13 triage-degraded".to_owned()])] {
        let mut outage = failed(5);
        let soon = outage.opened() + 3_500;
        (5..10).for_each(|number| outage.fails_from(number, soon));
        outage.story.go_on_to(soon + 250);
        outage.triages(number);
        degraded(&mut outage.story.policy);
        assert_eq!(outage.story.found(), expected, "{number}");
    }
}

#[test]
fn an_execution_of_a_person_runs_and_its_shared_failure_is_waited_for() {
    for (number, expected) in [(0, clean()), (1, vec!["8 counter".to_owned()])] {
        let mut story = failed(5).story;
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
    let mut story = failed(5).story;
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
