//! Invariant 5, rules 2 to 5: a skip names the execution that is the reason, and describes it correctly.

use serde_json::{Value, json};
use wfe_auditor::Policy;

use crate::story::{NODE, Plant, Story};

const MINUTE: u64 = 60;

/// Adds what happened on the target before the skip.
type Before = fn(&mut Story);

/// A correct skip: the rule, the reason, the time until the rule no longer applies, and what happened before.
type Right = (&'static str, &'static str, Option<&'static str>, Before);

const RIGHT: [Right; 4] = [
    ("by-rule-2", "PreviousExecutionFailed", None, |story| {
        story.breaks("old", NODE, "w", 1);
        story.breaks("past", NODE, "v", 2);
        story.stalls("later", NODE, 3);
        story.wfe_of("next", NODE, "w");
    }),
    ("by-rule-3", "ExhaustedRetries", None, |story| {
        for (n, name) in (1..).zip(["old", "b", "c", "d"]) {
            story.stalls(name, NODE, n);
        }
        story.stalls("past", NODE, 5);
        story.wfe_of("next", NODE, "w");
    }),
    ("by-rule-4", "RecentlyRemediated", Some("1m0s"), |story| {
        story.stalls("old", NODE, 1);
        story.stalls("past", NODE, 2);
        story.wfe_of("next", NODE, "w");
        story.await_time(MINUTE, "past");
    }),
    ("by-rule-5", "RecentlyRemediated", Some("30s"), |story| {
        story.live_of("old", NODE, "w", 1);
        story.live_of("past", NODE, "w", 2);
        story.wfe_of("next", NODE, "w");
        story.await_time(5 * MINUTE - 30, "past");
    }),
];

fn before(how: Before) -> Story {
    let mut story = Story::by(Policy::default());
    how(&mut story);
    story
}

/// Skips `next`, and returns the findings about the skip. (Earlier executions may have run too early.)
fn skipped(mut story: Story, reason: &str, recent: &Value) -> Vec<String> {
    story.skip_for("next", reason, &json!({"recentRemediation": recent}));
    story.found().into_iter().filter(|one| one.starts_with('5')).collect()
}

fn recent(story: &Story, name: &str, remaining: Option<&str>) -> Value {
    let mut recent = story.recent(name);
    if let Some(remaining) = remaining {
        recent["cooldownRemaining"] = json!(remaining);
    }
    recent
}

#[test]
fn a_skip_that_is_right_is_counted_by_its_rule() {
    for (rule, reason, remaining, how) in RIGHT {
        let mut story = before(how);
        story.skip_after("next", reason, "past", remaining);
        let report = story.report(false);
        let found: Vec<&str> = report.violations.iter().filter(|one| one.invariant == 5).map(|one| one.rule).collect();
        assert_eq!(found, Vec::<&str>::new(), "{rule}: {report}");
        assert_eq!(report.counts.of(rule), 1, "{rule}: {report}");
    }
}

#[test]
fn a_skip_that_says_a_wrong_thing_of_its_reason() {
    let planted: [(&str, Plant); 5] = [
        ("another workflow", |recent| recent["workflowId"] = json!("another")),
        ("another target", |recent| recent["targetResource"] = json!("node/other")),
        ("a second less", |recent| recent["cooldownRemaining"] = json!("29s")),
        ("a second more", |recent| recent["cooldownRemaining"] = json!("1m1s")),
        ("no time of a kind", |recent| recent["cooldownRemaining"] = json!("soon")),
    ];
    for (rule, reason, remaining, how) in RIGHT {
        for (what, plant) in planted {
            let story = before(how);
            let mut recent = recent(&story, "past", remaining);
            plant(&mut recent);
            assert_eq!(skipped(story, reason, &recent), ["5 wrong-fact"], "{rule}: {what}");
        }
        if remaining.is_some() {
            let story = before(how);
            let recent = recent(&story, "past", None);
            assert_eq!(skipped(story, reason, &recent), ["5 wrong-fact"], "{rule}: no time, where it lifts the skip");
        }
    }
}

#[test]
fn a_skip_that_names_an_older_one() {
    for (rule, reason, remaining, how) in RIGHT {
        let story = before(how);
        let recent = recent(&story, "old", remaining);
        assert_eq!(skipped(story, reason, &recent), ["5 wrong-fact"], "{rule}");
    }
}

#[test]
fn a_skip_when_time_has_lifted_it() {
    for (_, reason, remaining, how) in RIGHT.into_iter().filter(|(_, _, remaining, _)| remaining.is_some()) {
        let mut story = before(how);
        story.await_time(5 * MINUTE, "past");
        let recent = recent(&story, "past", remaining);
        assert_eq!(skipped(story, reason, &recent), ["5 no-fact"], "{reason}");
    }
}

#[test]
fn a_skip_on_a_target_that_was_cleared() {
    for (rule, reason, remaining, how) in RIGHT.into_iter().take(2) {
        let mut story = before(how);
        story.clear("past");
        let mut raced = story.clone();
        // The skip is then based on a version after the clearance.
        story.write("next", &json!({"phase": "Pending", "target": NODE}));
        let named = recent(&story, "past", remaining);
        assert_eq!(skipped(story, reason, &named), ["5 no-fact"], "{rule}");
        raced.skip_after("next", reason, "past", remaining);
        assert_eq!(raced.report(false).counts.of(rule), 1, "it was so when it was looked at");
    }
}

/// The failure that exhausts a target has no `nextAllowedExecution`. If an earlier failure is cleared, the operator
/// computes the wait with its jitter, and the auditor knows only between which times it ends.
#[test]
fn a_wait_that_no_status_names_has_jitter() {
    let cleared = |seconds| {
        let mut story = Story::by(Policy { backoff_jitter: 100, ..Policy::default() });
        for (n, name) in (1..).zip(["a", "b", "c", "old", "past"]) {
            story.stalls(name, NODE, n);
        }
        story.clear("old");
        story.wfe_of("next", NODE, "w");
        story.await_time(seconds, "past");
        story
    };
    for (remaining, expected) in [(29, vec!["5 wrong-fact"]), (30, vec![]), (36, vec![]), (37, vec!["5 wrong-fact"])] {
        let story = cleared(MINUTE - 30);
        let recent = recent(&story, "past", Some(&format!("{remaining}s")));
        assert_eq!(skipped(story, "RecentlyRemediated", &recent), expected, "{remaining} s");
    }
    for (seconds, expected) in [(MINUTE + 5, vec![]), (MINUTE + 6, vec!["5 no-fact"])] {
        let story = cleared(seconds);
        let recent = recent(&story, "past", Some("1s"));
        assert_eq!(skipped(story, "RecentlyRemediated", &recent), expected, "after {seconds} s");
    }
    for (seconds, early) in [(MINUTE - 1, true), (MINUTE, false), (MINUTE + 6, false)] {
        let mut story = cleared(seconds - 1);
        story.create("next", 6);
        story.commit("next", 6);
        let found = story.found();
        assert_eq!(found.contains(&"4 backoff".to_owned()), early, "after {seconds} s: {found:?}");
    }
}

#[test]
fn a_skip_for_what_does_not_count() {
    let four = |story: &mut Story| {
        for (n, name) in (1..).zip(["a", "b", "c"]) {
            story.stalls(name, NODE, n);
        }
        story.stalls("past", NODE, 4);
        story.wfe("next", NODE);
    };
    let late = |story: &mut Story| {
        story.comes_too_late("past", NODE);
        story.wfe("next", NODE);
    };
    let other = |story: &mut Story| {
        story.live_of("past", NODE, "v", 1);
        story.wfe_of("next", NODE, "w");
    };
    let recovery = |story: &mut Story| {
        story.breaks("past", NODE, "v", 1);
        story.wfe_with("next", NODE, "w", &json!({"recoveryOf": "past"}));
    };
    let rows: [(&str, Option<&str>, Before); 4] = [
        ("ExhaustedRetries", None, four),
        ("RecentlyRemediated", Some("1m0s"), late),
        ("RecentlyRemediated", Some("4m0s"), other),
        ("PreviousExecutionFailed", None, recovery),
    ];
    for (reason, remaining, how) in rows {
        let story = before(how);
        let recent = recent(&story, "past", remaining);
        assert_eq!(skipped(story, reason, &recent), ["5 no-fact"], "{reason}");
    }
}

#[test]
fn a_skip_by_a_rule_that_comes_after_one_that_decides() {
    const BREAKS: Before = |story| story.breaks("broken", NODE, "v", 2);
    const COMPLETES: Before = |story| story.live_of("past", NODE, "w", 1);
    const STALLS: Before = |story| story.stalls("past", NODE, 20);
    const EXHAUSTS: Before = |story| {
        for n in 11..=14 {
            story.stalls(&format!("stalled-{n}"), NODE, n);
        }
        STALLS(story);
    };
    let rows: [(&str, &[Before]); 5] = [
        ("ExhaustedRetries", &[BREAKS, EXHAUSTS]),
        ("RecentlyRemediated", &[BREAKS, STALLS]),
        ("RecentlyRemediated", &[COMPLETES, BREAKS]),
        ("RecentlyRemediated", &[EXHAUSTS]),
        ("ExhaustedRetries", &[EXHAUSTS, BREAKS]),
    ];
    for (row, (reason, all)) in rows.into_iter().enumerate() {
        let mut story = Story::by(Policy::default());
        for how in all {
            how(&mut story);
        }
        story.wfe_of("next", NODE, "w");
        let recent = recent(&story, "past", None);
        assert_eq!(skipped(story, reason, &recent), ["5 earlier-rule"], "row {row}: {reason}");
    }
}

#[test]
fn a_fact_that_was_deleted_before_the_execution_was_seen_is_none() {
    for (rule, reason, remaining, how) in RIGHT.into_iter().take(2) {
        let mut story = before(how);
        let named = recent(&story, "past", remaining);
        story.delete_wfe("past");
        let mut raced = story.clone();
        story.write("next", &json!({"phase": "Pending", "target": NODE}));
        let found = skipped(story, reason, &named);
        assert!(found == ["5 no-fact"] || found == ["5 wrong-fact"], "{rule}: {found:?}");
        raced.skip_for("next", reason, &json!({"recentRemediation": named}));
        assert_eq!(raced.report(false).counts.of(rule), 1, "it was so when it was looked at");
    }
}
