use std::time::Duration;

use super::*;
use wfe_core::name::Uid;
use wfe_core::schedule::{HeldBy, Missed, Outcome, Planned, PlannedBy, Revision};
use wfe_core::triage::{Analyst, State};
use wfe_view::observe::observe_schedule;

fn at(second: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn id() -> ScheduleId {
    ScheduleId { namespace: "ops".into(), name: "nightly".into(), uid: Uid::new("u-1") }
}

fn triage() -> Triage {
    Triage {
        of: "nightly-1800000060".into(),
        at: at(70),
        analyst: Analyst::Pipeline,
        run: Some(("nightly-1800000060-triage".into(), Uid::new("a-1"))),
        fingerprint: Fingerprint::parse("Forbidden/workflow/cleanup@1"),
        evidence: Some("0f".repeat(32).into()),
        verdict: Some(Verdict::AdjustConfig),
        why: Some("slow".into()),
        fix: Some("more time".into()),
        refused: vec!["interval: no".into()],
        state: State::Adjusted,
    }
}

fn adjust() -> Adjust {
    Adjust {
        interval: Some(Duration::from_mins(10)),
        timeout: Some(Duration::from_hours(2)),
        parameters: [("LEVEL".into(), "2".into())].into(),
    }
}

fn full() -> ScheduleStatus {
    ScheduleStatus {
        observed_generation: Some(3),
        revision: Some(Revision::of(0xa, 0xb, 0xc)),
        planned_from: Some(at(0)),
        phase: Some(at(-5)),
        failure_count: 2,
        last_run: Some(LastRun {
            slot: at(60),
            again: true,
            started_at: Some(at(61)),
            ended_at: Some(at(65)),
            outcome: Some(Outcome::Failed),
            reason: Some("Forbidden".into()),
            fingerprint: Fingerprint::parse("Forbidden/cluster"),
            message: Some("m".into()),
        }),
        last_success: Some(at(5)),
        last_missed: Some(Missed { slot: at(30), count: 6 }),
        next: Some(Planned { at: at(305), why: PlannedBy::Backoff }),
        triage: Some(Box::new(triage())),
        adjust: Some(Box::new(adjust())),
        ready: Ready::Yes,
        held: Held::Released,
        ready_since: Some(at(1)),
        held_since: Some(at(2)),
    }
}

#[test]
fn all_of_a_status_is_written_and_what_it_has_not_goes() {
    let rendered = schedule(&id(), &full(), &full(), at(100));
    assert_eq!(
        rendered,
        json!({
            "observedGeneration": 3,
            "revision": "000a-0000b-0000c",
            "plannedFrom": "2027-01-15T08:00:00Z",
            "phase": "2027-01-15T07:59:55Z",
            "failureCount": 2,
            "lastRun": {
                "name": "nightly-1800000060", "slot": "2027-01-15T08:01:00Z", "again": true, "startedAt": "2027-01-15T08:01:01Z",
                "endedAt": "2027-01-15T08:01:05Z", "outcome": "Failed", "reason": "Forbidden",
                "fingerprint": "Forbidden/cluster", "message": "m",
            },
            "lastSuccessTime": "2027-01-15T08:00:05Z",
            "lastMissed": {"slot": "2027-01-15T08:00:30Z", "count": 6},
            "nextRunTime": "2027-01-15T08:05:05Z",
            "nextRunReason": "Backoff",
            "triage": {
                "of": "nightly-1800000060", "at": "2027-01-15T08:01:10Z", "analyst": "Pipeline",
                "run": {"name": "nightly-1800000060-triage", "uid": "a-1"},
                "fingerprint": "Forbidden/workflow/cleanup@1", "evidence": "0f".repeat(32), "verdict": "AdjustConfig",
                "why": "slow", "fix": "more time", "refused": ["interval: no"], "state": "Adjusted",
            },
            "adjust": {"interval": "10m0s", "timeout": "2h0m0s", "parameters": {"LEVEL": "2"}},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Planned", "message": "its spec can be used",
                    "lastTransitionTime": "2027-01-15T08:00:01Z", "observedGeneration": 3},
                {"type": "Held", "status": "False", "reason": "Released",
                    "message": "nothing keeps it from running any more",
                    "lastTransitionTime": "2027-01-15T08:00:02Z", "observedGeneration": 3},
            ],
        })
    );
    let empty = schedule(&id(), &full(), &ScheduleStatus::default(), at(100));
    for field in [
        "revision",
        "plannedFrom",
        "lastRun",
        "lastSuccessTime",
        "lastMissed",
        "nextRunTime",
        "nextRunReason",
        "triage",
        "adjust",
    ] {
        assert_eq!(empty.get(field), Some(&Value::Null), "{field}");
    }
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let held = |reason| Held::By { reason, message: "m".into() };
    let time_of = |shown: &ScheduleStatus, wanted: &ScheduleStatus| {
        let rendered = schedule(&id(), shown, wanted, at(100));
        rendered["conditions"][1]["lastTransitionTime"].as_str().unwrap().to_owned()
    };
    let (free, busy) = (full(), ScheduleStatus { held: held(HeldBy::ResourceBusy), ..full() });
    let suspended = ScheduleStatus { held: held(HeldBy::Suspended), ..full() };
    assert_eq!(time_of(&free, &busy), "2027-01-15T08:01:40Z");
    assert_eq!(time_of(&busy, &suspended), "2027-01-15T08:00:02Z", "another reason is no transition");
    assert_eq!(time_of(&ScheduleStatus::default(), &free), "2027-01-15T08:01:40Z");
}

#[test]
fn a_run_that_was_refused_has_no_name() {
    let refused = LastRun { started_at: None, outcome: Some(Outcome::Refused), ..full().last_run.unwrap() };
    let rendered = render_run(&id(), &refused);
    assert_eq!((rendered.get("name"), rendered.get("startedAt")), (Some(&Value::Null), Some(&Value::Null)));
}

/// Parses a rendered status.
fn read_back(rendered: &Value) -> ScheduleStatus {
    let object = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
        "metadata": {"namespace": "ops", "name": "nightly", "uid": "u-1"},
        "status": rendered,
    });
    observe_schedule(&serde_json::from_value(object).unwrap()).unwrap().schedule.status
}

#[test]
fn what_is_written_is_read_back_and_fits_the_kind() {
    let runs = Outcome::ALL.map(|outcome| {
        let last_run = full().last_run.map(|run| LastRun { outcome: Some(outcome), ..run });
        ScheduleStatus { last_run, ..full() }
    });
    let plans = PlannedBy::ALL.map(|why| ScheduleStatus { next: Some(Planned { at: at(305), why }), ..full() });
    let ready =
        [Ready::Yes, Ready::InvalidSpec("spec.cron: no".into()), Ready::ChildRefused("no".into()), Ready::Deleting]
            .map(|ready| ScheduleStatus { ready, ..full() });
    let held = HeldBy::ALL.map(|reason| ScheduleStatus { held: Held::By { reason, message: "m".into() }, ..full() });
    let unsaid = ScheduleStatus { ready_since: None, held_since: None, ..ScheduleStatus::default() };
    let triages = State::ALL.iter().flat_map(|state| Verdict::ALL.map(|verdict| (*state, verdict)));
    let triages = triages.map(|(state, verdict)| {
        let triage = Triage { state, verdict: Some(verdict), ..triage() };
        ScheduleStatus { triage: Some(Box::new(triage)), ..full() }
    });
    let bare = Triage {
        run: None,
        fingerprint: None,
        evidence: None,
        verdict: None,
        why: None,
        fix: None,
        refused: vec![],
        ..triage()
    };
    let bare = ScheduleStatus { triage: Some(Box::new(bare)), adjust: None, ..full() };
    let all = runs.into_iter().chain(plans).chain(ready).chain(held).chain(triages).chain([full(), bare, unsaid]);
    for wanted in all {
        // The previous status is the same, so no condition changes its time.
        let rendered = schedule(&id(), &wanted, &wanted, at(100));
        assert_eq!(read_back(&rendered), wanted, "else it is written again and again: {rendered}");
        let typed: Result<wfe_api::WorkflowScheduleStatus, _> = serde_json::from_value(rendered.clone());
        assert!(typed.is_ok(), "{typed:?} of {rendered}");
    }
}
