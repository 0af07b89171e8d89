//! Invariant 8: the counter and `nextAllowedExecution` follow from the history.

use serde_json::{Value, json};
use wfe_auditor::Policy;

use crate::story::{NODE, Plant, Story, uid};

fn story() -> Story {
    Story::by(Policy::default())
}

fn clean() -> Vec<String> {
    Vec::new()
}

/// Returns the findings about counters. Other tests judge when an execution runs.
fn found(story: &Story) -> Vec<String> {
    story.found().into_iter().filter(|one| one == "8 counter" || one == "8 next-allowed").collect()
}

/// Returns a story with consecutive failures on a target, and then an execution that runs.
fn running(failures: u64) -> Story {
    let mut story = story();
    for n in 1..=failures {
        story.stalls(&format!("past-{n}"), NODE, n);
    }
    story.wfe("one", NODE);
    story.create("one", 9);
    story.commit("one", 9);
    story
}

#[test]
fn failures_make_the_next_one_wait_for_1_2_4_8_and_10_minutes() {
    let mut story = story();
    story.policy.max_consecutive_failures = 0;
    for (n, wait) in (1..).zip([60, 120, 240, 480, 600, 600]) {
        let name = format!("f{n}");
        let next = story.later(wait + 1);
        story.stalls(&name, NODE, n);
        let mut early = story.clone();
        early.correct(&name, |status| {
            let failed = status["completionTime"].as_str().unwrap().to_owned();
            status["nextAllowedExecution"] = json!(failed);
        });
        assert_eq!(found(&early), ["8 next-allowed"], "{name}");
        let status = &story.object(&uid(&name))["status"];
        assert_eq!((&status["consecutiveFailures"], &status["nextAllowedExecution"]), (&json!(n), &json!(next)));
    }
    let report = story.report(false);
    assert_eq!((found(&story), report.counts.of("counters")), (clean(), 6), "{report}");
}

#[test]
fn a_counter_that_is_one_off() {
    for off in [-1, 1] {
        let mut story = running(2);
        story.correct("one", |status| status["consecutiveFailures"] = json!(2 + off));
        assert_eq!(found(&story), ["8 counter"], "at the commit");

        let mut story = running(2);
        story.fail("one", "Unknown", true);
        story.correct("one", |status| status["consecutiveFailures"] = json!(2 + off));
        assert_eq!(found(&story), ["8 counter"], "after an execution failure, which neither counts nor resets");

        let mut story = running(2);
        story.fail("one", "ImagePullBackOff", false);
        story.correct("one", |status| status["consecutiveFailures"] = json!(3 + off));
        assert!(found(&story).contains(&"8 counter".to_owned()), "after a failure that counts");
    }
    let mut story = running(2);
    story.complete("one");
    assert_eq!(found(&story), clean());
    story.correct("one", |status| status["consecutiveFailures"] = json!(2));
    assert_eq!(found(&story), ["8 counter"], "after a success");
}

#[test]
fn who_waits_for_another_time() {
    let planted: [(&str, Plant); 4] = [
        ("none", |status| status["nextAllowedExecution"] = Value::Null),
        ("a second less", |status| status["nextAllowedExecution"] = json!("2026-01-01T00:01:02Z")),
        ("a second more", |status| status["nextAllowedExecution"] = json!("2026-01-01T00:01:04Z")),
        ("no time", |status| status["nextAllowedExecution"] = json!("soon")),
    ];
    let one = || {
        let mut story = running(0);
        story.fail("one", "ImagePullBackOff", false);
        story
    };
    assert_eq!(one().object(&uid("one"))["status"]["nextAllowedExecution"], "2026-01-01T00:01:03Z");
    assert_eq!(found(&one()), clean());
    for (what, plant) in planted {
        let mut story = one();
        story.correct("one", plant);
        assert_eq!(found(&story), ["8 next-allowed"], "{what}");
    }
    let mut jitter = one();
    jitter.policy.backoff_jitter = 100;
    for (next, expected) in
        [("02", vec!["8 next-allowed"]), ("03", vec![]), ("09", vec![]), ("10", vec!["8 next-allowed"])]
    {
        jitter.correct("one", |status| status["nextAllowedExecution"] = json!(format!("2026-01-01T00:01:{next}Z")));
        assert_eq!(found(&jitter), expected, "with a jitter of 0.1, at {next}");
    }
}

#[test]
fn who_makes_somebody_wait_and_should_not() {
    let later = json!("2026-01-02T00:00:00Z");
    let mut commits = running(1);
    commits.correct("one", |status| status["nextAllowedExecution"] = later.clone());
    assert_eq!(found(&commits), ["8 next-allowed"]);
    let mut completes = running(1);
    completes.complete("one");
    completes.correct("one", |status| status["nextAllowedExecution"] = later.clone());
    assert_eq!(found(&completes), ["8 next-allowed"]);
    let mut breaks = running(1);
    breaks.fail("one", "Unknown", true);
    breaks.correct("one", |status| status["nextAllowedExecution"] = later.clone());
    assert_eq!(found(&breaks), ["8 next-allowed"]);
    let mut late = running(1);
    late.comes_too_late("late", NODE);
    assert_eq!(found(&late), clean());
    late.correct("late", |status| status["consecutiveFailures"] = json!(2));
    assert_eq!(found(&late), ["8 counter"], "what came too late does not count");
    let mut cancelled = running(1);
    cancelled.is_cancelled("cancelled", NODE);
    assert_eq!(found(&cancelled), clean());
    cancelled.correct("cancelled", |status| status["consecutiveFailures"] = json!(2));
    assert_eq!(found(&cancelled), ["8 counter"], "what a person cancelled does not count");
}

#[test]
fn a_failure_that_others_share_is_waited_for_and_does_not_count() {
    let shown = |story: &mut Story, name: &str, counted: u64, is_shared: bool| {
        story.correct(name, |status| {
            status["consecutiveFailures"] = json!(counted);
            status["failureDetails"]["sharedOutage"] = json!(is_shared);
        });
    };
    let mut story = story();
    for (number, name, counted, is_shared) in
        [(1, "a", 1, false), (2, "b", 1, true), (3, "c", 1, true), (4, "d", 2, false)]
    {
        story.stalls(name, NODE, number);
        let mut otherwise = story.clone();
        shown(&mut story, name, counted, is_shared);
        assert_eq!(found(&story), clean(), "{name} waits as failure {number} in a row");
        shown(&mut otherwise, name, counted + 1, is_shared);
        assert_eq!(found(&otherwise), ["8 counter"], "{name}");
    }
    story.correct("d", |status| status["nextAllowedExecution"] = status["completionTime"].clone());
    assert_eq!(found(&story), ["8 next-allowed"], "it waits for those that are shared too");
}

#[test]
fn who_shows_a_counter_and_is_no_execution() {
    let mut story = story();
    story.stalls("past", NODE, 1);
    story.wfe("waits", NODE);
    story.write("waits", &json!({"phase": "Pending", "target": NODE, "consecutiveFailures": 1}));
    assert_eq!(found(&story), ["8 counter"]);
    let mut story = running(1);
    story.wfe("busy", NODE);
    story.skip("busy", "one");
    story.correct("busy", |status| status["consecutiveFailures"] = json!(1));
    assert_eq!(found(&story), ["8 counter"]);
    let mut story = Story::default();
    story.wfe("none", "nonsense");
    story.fail("none", "ConfigurationError", false);
    story.correct("none", |status| {
        for field in ["target", "nextAllowedExecution", "consecutiveFailures"] {
            status.as_object_mut().unwrap().remove(field);
        }
    });
    assert_eq!(story.found(), clean());
    story.correct("none", |status| status["consecutiveFailures"] = json!(1));
    assert_eq!(story.found(), ["8 counter"], "what names no target counts for none");
}

#[test]
fn what_resets_the_counter() {
    let next = |mut story: Story, counted: u64| {
        story.failures.insert(NODE.to_owned(), counted);
        story.wfe("next", NODE);
        story.create("next", 20);
        story.commit("next", 20);
        found(&story)
    };
    let mut completed = running(3);
    completed.complete("one");
    assert_eq!((next(completed.clone(), 0), next(completed, 3)), (clean(), vec!["8 counter".to_owned()]));
    let mut broken = running(3);
    broken.fail("one", "Unknown", true);
    assert_eq!((next(broken.clone(), 0), next(broken, 3)), (vec!["8 counter".to_owned()], clean()));
    let cleared = |failures, effective: bool| {
        let mut story = running(failures);
        story.complete("one");
        for n in 1..=failures {
            story.stalls(&format!("again-{n}"), NODE, n + 9);
        }
        let last = format!("again-{failures}");
        story.clear(&last);
        story.record_clearance(&last, effective);
        story
    };
    assert_eq!(next(cleared(5, true), 0), clean());
    assert_eq!(next(cleared(5, true), 5), ["8 counter"]);
    assert_eq!(next(cleared(2, false), 2), clean(), "one that was ineffective changes nothing");
    let mut deleted = running(3);
    deleted.complete("one");
    deleted.delete_wfe("one");
    assert_eq!(next(deleted.clone(), 3), clean(), "older history comes back");
    for n in 1..=3 {
        deleted.delete_wfe(&format!("past-{n}"));
    }
    assert_eq!(next(deleted, 0), clean(), "deletion is a reset");
}

#[test]
fn failures_that_two_operators_write_at_the_same_moment() {
    let twice = |story: &mut Story| {
        story.wfe("a", NODE);
        story.wfe("b", NODE);
        story.is_refused("a", 1);
        story.failures.clear();
    };
    let mut raced = story();
    twice(&mut raced);
    raced.is_refused("b", 2);
    assert_eq!(found(&raced), clean(), "neither knows of the other");
    raced.failures.insert(NODE.to_owned(), 2);
    raced.stalls("c", NODE, 3);
    assert_eq!(found(&raced), clean(), "each counts once from there on");
    let mut seen = story();
    twice(&mut seen);
    seen.write("b", &json!({"phase": "Pending", "target": NODE}));
    seen.is_refused("b", 2);
    assert_eq!(found(&seen), ["8 counter"], "what is written rests on a view that has the other");
    let mut lost = story();
    lost.stalls("a", NODE, 1);
    lost.failures.clear();
    lost.stalls("b", NODE, 2);
    assert_eq!(found(&lost), ["8 counter"]);
}
