//! Invariant 13: triages.

use std::time::Duration;

use serde_json::{Value, json};
use wfe_auditor::Policy;

use crate::story::{NAMESPACE, NODE, OPERATOR, PERSON, Story, time, uid};

const NIGHTLY: &str = "nightly";

fn clean() -> Vec<String> {
    Vec::new()
}

/// Returns a story with a schedule that has failed three times, and the slot of the last failure.
fn failing(more: &Value) -> (Story, u64) {
    let mut story = Story::default();
    story.schedule(NIGHTLY, NODE, more);
    let since = story.begin_plan(NIGHTLY);
    let slots = [(1, 60), (2, 120), (3, 240)];
    let (_, last) = slots.into_iter().fold((since, since), |(ended, _), (number, wait)| {
        let slot = ended + wait;
        (story.stumbles(NIGHTLY, slot, number, number), slot)
    });
    (story, last)
}

/// Returns a reference to a workflow that analyses.
fn pipeline() -> Value {
    json!({"workflowId": "look", "version": "1", "containerImage": "registry.example/look:1"})
}

fn by_pipeline() -> Value {
    json!({"triage": {"analyst": "Pipeline", "workflowRef": pipeline()}})
}

impl Story {
    /// Writes a triage to the status of the schedule.
    fn triage(&mut self, of: &str, analyst: &str, state: &str, verdict: Option<&str>) {
        let triage = json!({"of": of, "at": self.now(), "analyst": analyst, "state": state, "verdict": verdict});
        self.write(NIGHTLY, &json!({"triage": triage}));
    }

    /// Writes a triage of the last failure to the status. It has already ended with a verdict of the built-in analyst.
    fn judged(&mut self, slot: u64, state: &str, verdict: &str) {
        self.triage(&Self::child_name(NIGHTLY, slot), "BuiltIn", state, Some(verdict));
    }

    /// Returns the end of the last run.
    fn ended(&self) -> u64 {
        let ended = &self.object(&uid(NIGHTLY))["status"]["lastRun"]["endedAt"];
        (0..1_000_000).find(|version| *ended == time(*version)).unwrap()
    }

    /// Changes the record of the triage.
    fn goes_on(&mut self, change: &Value) {
        let mut triage = self.object(&uid(NIGHTLY))["status"]["triage"].clone();
        triage.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        self.write(NIGHTLY, &json!({"triage": triage}));
    }

    /// Creates the execution that analyses, as the operator.
    fn analyst(&mut self, slot: u64, change: fn(&mut Value)) -> String {
        let child = Self::child_name(NIGHTLY, slot);
        let name = format!("{child}-triage");
        let mut object = self.child_object(NIGHTLY, slot);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["annotations"] = json!({});
        let by = object["spec"]["remediationRequestRef"].clone();
        object["spec"] = json!({
            "remediationRequestRef": by,
            "workflowRef": pipeline(),
            "targetResource": format!("{NAMESPACE}/workflowexecution/{child}"),
            "parameters": {"EVIDENCE": "{}"},
            "executionConfig": {"timeout": "10m"},
            "startBefore": self.later(600),
        });
        change(&mut object);
        self.add(OPERATOR, object, &uid(&name));
        name
    }

    /// Ends the effect of a triage as a person.
    fn resume(&mut self, named: &str) {
        self.edit(NIGHTLY, &json!({"resume": {"triage": named, "reason": "mended", "resumedBy": PERSON}}));
    }

    fn anew(&mut self, state: &str) {
        let mut triage = self.object(&uid(NIGHTLY))["status"]["triage"].clone();
        triage["state"] = json!(state);
        let anew = json!({"plannedFrom": self.now(), "failureCount": 0, "adjust": null, "triage": triage});
        self.write(NIGHTLY, &anew);
    }
}

#[test]
fn the_third_failure_is_triaged_by_the_built_in_analyst() {
    let (mut story, slot) = failing(&json!({}));
    story.judged(slot, "Filed", "FileFix");
    let report = story.report(false);
    assert!(report.is_clean(), "{report}");
    assert_eq!(["triages", "verdicts", "analysts"].map(|name| report.counts.of(name)), [1, 1, 0]);
}

#[test]
fn a_triage_by_a_pipeline_is_no_child_and_blocks_nothing() {
    let (mut story, slot) = failing(&by_pipeline());
    let child = Story::child_name(NIGHTLY, slot);
    story.triage(&child, "Pipeline", "Analysing", None);
    let name = story.analyst(slot, |_| {});
    story.goes_on(&json!({"run": {"name": name, "uid": uid(&name)}}));
    story.start(&name, 1);
    story.work(&name, 1);
    story.work_ends(&name, 1, "False");
    story.fail(&name, "Unknown", true);
    story.goes_on(&json!({"state": "Failed"}));
    // The analyst's failure is recorded for its own target, and blocks no other target.
    story.live("person", &format!("{NAMESPACE}/workflowexecution/{child}"), 2);
    let report = story.report(true);
    assert!(report.is_clean(), "{report}");
    assert_eq!(["children", "triages", "analysts"].map(|name| report.counts.of(name)), [3, 1, 1]);
}

#[test]
fn a_triage_that_begins_while_something_forbids_it() {
    let found = |more: Value, how: fn(&mut Story, u64)| {
        let (mut story, slot) = failing(&more);
        how(&mut story, slot);
        story.found()
    };
    let judged = |story: &mut Story, slot: u64| story.judged(slot, "Noted", "DoNothing");
    assert_eq!(found(json!({"triage": {"after": 3}}), judged), clean());
    assert_eq!(found(json!({"triage": {"after": 4}}), judged), ["13 triage-early"]);
    assert_eq!(found(json!({"triage": {"analyst": "Off"}}), judged), ["13 triage-analyst"]);
    assert_eq!(found(by_pipeline(), judged), ["13 triage-analyst"]);
    let of_another = |story: &mut Story, slot: u64| story.judged(slot - 1, "Noted", "DoNothing");
    assert_eq!(found(json!({}), of_another), ["13 triage-of"]);
    let of_a_triage = |story: &mut Story, slot: u64| {
        let of = format!("{}-triage", Story::child_name(NIGHTLY, slot));
        story.triage(&of, "BuiltIn", "Noted", Some("DoNothing"));
    };
    assert_eq!(found(json!({}), of_a_triage), ["13 triage-of"]);
    let suspended = |story: &mut Story, slot: u64| {
        story.edit(NIGHTLY, &json!({"suspend": true}));
        story.judged(slot, "Noted", "DoNothing");
    };
    assert_eq!(found(json!({}), suspended), ["13 triage-idle"]);
}

#[test]
fn a_second_triage_within_the_cooldown() {
    for (cooldown, expected) in [(24, vec!["13 triage-cooldown".to_owned()]), (0, clean())] {
        let (mut story, slot) = failing(&json!({}));
        story.policy.triage_cooldown = Duration::from_hours(cooldown);
        story.judged(slot, "Noted", "DoNothing");
        // This is eight minutes after the third run ended.
        let ended = story.ended();
        story.stumbles(NIGHTLY, ended + 480, 4, 4);
        story.judged(ended + 480, "Noted", "DoNothing");
        assert_eq!(story.found(), expected);
    }
}

#[test]
fn more_triages_by_workflows_within_an_hour_than_are_allowed() {
    for (mine, others, most, expected) in [
        ("Pipeline", "Pipeline", 1, vec!["13 triage-many".to_owned()]),
        // The other schedule is in the same namespace. One place is left, but the namespace has already used one.
        ("Pipeline", "Pipeline", 2, vec!["13 triage-many".to_owned()]),
        ("Pipeline", "Pipeline", 3, clean()),
        ("Pipeline", "BuiltIn", 1, clean()),
        ("BuiltIn", "Pipeline", 1, clean()),
    ] {
        let spec = if mine == "Pipeline" { by_pipeline() } else { json!({}) };
        let (mut story, slot) = failing(&spec);
        story.policy.triage_max_per_hour = most;
        story.schedule("other", "node/other", &json!({}));
        story.begin_plan("other");
        let other =
            json!({"of": "other-1", "at": story.now(), "analyst": others, "state": "Noted", "verdict": "DoNothing"});
        story.write_by(PERSON, "other", &json!({"triage": other}));
        let (state, verdict) = if mine == "Pipeline" { ("Analysing", None) } else { ("Noted", Some("DoNothing")) };
        story.triage(&Story::child_name(NIGHTLY, slot), mine, state, verdict);
        assert_eq!(story.found(), expected, "{mine} beside {others}, {most}");
    }
}

#[test]
fn a_record_that_changes_after_its_end_or_is_lost() {
    let (mut story, slot) = failing(&json!({}));
    story.judged(slot, "Noted", "DoNothing");
    story.goes_on(&json!({"state": "Paused", "verdict": "PauseAndNotify"}));
    assert_eq!(story.found(), ["13 triage-fixed"], "no verdict is applied twice");
    let (mut story, slot) = failing(&json!({}));
    story.judged(slot, "Noted", "DoNothing");
    story.write(NIGHTLY, &json!({"triage": null}));
    assert_eq!(story.found()[0], "13 triage-fixed");
}

#[test]
fn an_effect_that_no_verdict_has() {
    for (state, verdict) in [("Paused", "DoNothing"), ("Filed", "PauseAndNotify"), ("Failed", "FileFix")] {
        let (mut story, slot) = failing(&json!({}));
        story.judged(slot, state, verdict);
        assert_eq!(story.found(), ["13 verdict"], "{state}");
    }
}

/// Returns the findings after a triage has set `adjust`, while the schedule permits only the fields in `allowed`.
fn adjusted(allowed: &Value, adjust: &Value) -> Vec<String> {
    let template = json!({"spec": {
        "targetResource": NODE,
        "workflowRef": {"workflowId": "restart", "version": "1", "containerImage": "registry.example/restart:1"},
        "parameters": {"LEVEL": "1"},
    }});
    let (mut story, slot) =
        failing(&json!({"triage": {"allowAdjust": allowed}, "maxInterval": "1h", "template": template}));
    let of = Story::child_name(NIGHTLY, slot);
    let triage =
        json!({"of": of, "at": story.now(), "analyst": "BuiltIn", "state": "Adjusted", "verdict": "AdjustConfig"});
    story.write(NIGHTLY, &json!({"triage": triage, "adjust": adjust}));
    story.found()
}

#[test]
fn what_a_triage_may_adjust() {
    let all = json!(["interval", "timeout", "parameters.LEVEL"]);
    let adjust = json!({"interval": "10m", "timeout": "2h", "parameters": {"LEVEL": "2"}});
    assert_eq!(adjusted(&all, &adjust), clean());
    for allowed in [json!(["interval", "timeout"]), json!(["interval", "parameters.LEVEL"]), json!([])] {
        assert_eq!(adjusted(&allowed, &adjust), ["13 adjusted"], "{allowed}");
    }
    assert_eq!(adjusted(&all, &json!({"interval": "2h"})), ["13 adjusted"], "beyond maxInterval");
    let (mut story, _) = failing(&json!({"triage": {"allowAdjust": all}}));
    story.write(NIGHTLY, &json!({"adjust": {"timeout": "2h"}}));
    assert_eq!(story.found(), ["13 adjusted"], "by nobody");
}

#[test]
fn a_child_is_made_as_it_was_adjusted() {
    let adjust = |timeout: &str| {
        let (mut story, slot) = failing(&json!({"triage": {"allowAdjust": ["interval", "timeout"]}}));
        let of = Story::child_name(NIGHTLY, slot);
        let triage =
            json!({"of": of, "at": story.now(), "analyst": "BuiltIn", "state": "Adjusted", "verdict": "AdjustConfig"});
        story.write(NIGHTLY, &json!({"triage": triage, "adjust": {"interval": "2m", "timeout": "2h"}}));
        let next = story.ended() + 8 * 120;
        story.go_on_to(next);
        let mut child = story.child_object(NIGHTLY, next);
        child["spec"]["executionConfig"] = json!({"timeout": timeout});
        story.add(OPERATOR, child, "uid-next");
        story.found()
    };
    assert_eq!(adjust("2h"), clean());
    assert_eq!(adjust("3h"), ["7 child"], "no triage adjusted that");
}

#[test]
fn a_child_of_a_schedule_that_a_triage_has_paused() {
    let found = |how: fn(&mut Story, &str)| {
        let (mut story, slot) = failing(&json!({}));
        story.judged(slot, "Paused", "PauseAndNotify");
        how(&mut story, &Story::child_name(NIGHTLY, slot));
        if story.found().is_empty() {
            let next = story.ended() + 480;
            story.child(NIGHTLY, next);
        }
        story.found()
    };
    assert_eq!(found(|_, _| {}), ["11 child-triage-paused"]);
    assert_eq!(found(Story::resume), ["11 child-plan"], "its plan is to begin anew");
    let stale = |story: &mut Story, _: &str| {
        story.resume("nightly-1");
        story.anew("Over");
    };
    assert_eq!(found(stale), ["12 plan-anew", "13 triage-fixed"], "of another triage");
}

#[test]
fn a_person_ends_the_pause_of_a_triage() {
    for (state, expected) in [("Over", clean()), ("Paused", vec!["13 triage-over".to_owned()])] {
        let (mut story, slot) = failing(&json!({}));
        story.judged(slot, "Paused", "PauseAndNotify");
        story.resume(&Story::child_name(NIGHTLY, slot));
        story.anew(state);
        assert_eq!(story.found(), expected, "{state}");
    }
}

#[test]
fn a_verdict_on_failures_that_had_ended() {
    for (field, expected) in [("lastRun", clean()), ("lastSuccessTime", vec!["13 verdict".to_owned()])] {
        let (mut story, slot) = failing(&by_pipeline());
        story.triage(&Story::child_name(NIGHTLY, slot), "Pipeline", "Analysing", None);
        if field == "lastSuccessTime" {
            story.write(NIGHTLY, &json!({field: story.later(5)}));
        }
        story.goes_on(&json!({"state": "Paused", "verdict": "PauseAndNotify"}));
        assert_eq!(story.found(), expected, "{field}");
    }
}

#[test]
fn a_triage_that_a_clock_began_ahead_of_its_time() {
    for (cut, expected) in [(true, clean()), (false, vec!["13 triage-fixed".to_owned()])] {
        let (mut story, slot) = failing(&json!({}));
        let of = Story::child_name(NIGHTLY, slot);
        let ahead = story.later(1_000);
        let triage =
            |at: &str| json!({"of": of, "at": at, "analyst": "BuiltIn", "state": "Noted", "verdict": "DoNothing"});
        story.write(NIGHTLY, &json!({"triage": triage(&ahead)}));
        let at = if cut { story.now() } else { ahead };
        story.write(NIGHTLY, &json!({"plannedFrom": story.now(), "failureCount": 0, "triage": triage(&at)}));
        assert_eq!(story.found(), expected, "{cut}");
    }
}

#[test]
fn the_end_of_a_suspension_ends_no_pause_of_a_triage() {
    for (state, expected) in [("Paused", clean()), ("Over", vec!["13 triage-fixed".to_owned()])] {
        let (mut story, slot) = failing(&json!({}));
        story.judged(slot, "Paused", "PauseAndNotify");
        story.edit(NIGHTLY, &json!({"suspend": true}));
        story.write(NIGHTLY, &json!({"conditions": [{"type": "Held", "status": "True", "reason": "Suspended"}]}));
        story.edit(NIGHTLY, &json!({"suspend": false}));
        story.anew(state);
        assert_eq!(story.found(), expected, "{state}");
    }
}

#[test]
fn an_analyst_that_no_triage_awaits() {
    let (mut story, slot) = failing(&by_pipeline());
    story.analyst(slot, |_| {});
    assert_eq!(story.found(), ["13 analyst"]);
    let (mut story, slot) = failing(&by_pipeline());
    story.triage(&Story::child_name(NIGHTLY, slot), "Pipeline", "Analysing", None);
    let name = story.analyst(slot, |_| {});
    story.goes_on(&json!({"run": {"name": name, "uid": uid(&name)}}));
    let again = story.object(&uid(&name)).clone();
    story.delete_wfe(&name);
    story.add(OPERATOR, again, "uid-again");
    assert_eq!(story.found(), ["13 analyst"], "a second one");
}

/// A change that spoils an analyst.
type Change = fn(&mut Value);

#[test]
fn an_analyst_that_is_not_as_it_must_be() {
    let planted: [(&str, Change); 5] = [
        ("the target of others", |it| it["spec"]["targetResource"] = json!(NODE)),
        ("another workflow", |it| it["spec"]["workflowRef"]["version"] = json!("2")),
        ("another account", |it| it["spec"]["executionConfig"]["serviceAccountName"] = json!("admin")),
        ("more time", |it| it["spec"]["executionConfig"]["timeout"] = json!("1h")),
        ("no end", |it| drop(it["spec"].as_object_mut().unwrap().remove("startBefore"))),
    ];
    for (what, plant) in planted {
        let (mut story, slot) = failing(&by_pipeline());
        story.triage(&Story::child_name(NIGHTLY, slot), "Pipeline", "Analysing", None);
        story.analyst(slot, |_| {});
        plant(&mut story.requests.last_mut().unwrap().request);
        assert_eq!(story.found(), ["7 child"], "{what}");
    }
}

#[test]
fn the_defaults_of_the_policy_are_those_of_the_specification() {
    let Policy { triage_cooldown, triage_max_per_hour, .. } = Policy::default();
    assert_eq!((triage_cooldown, triage_max_per_hour), (Duration::from_hours(24), 10));
}
