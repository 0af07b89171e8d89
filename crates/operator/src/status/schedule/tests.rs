use super::*;
use wfe_core::name::Uid;
use wfe_core::schedule::{HeldBy, Missed, Outcome, Planned, PlannedBy, Revision};

fn at(second: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn id() -> ScheduleId {
    ScheduleId { namespace: "ops".into(), name: "nightly".into(), uid: Uid::new("u-1") }
}

fn full() -> ScheduleStatus {
    ScheduleStatus {
        observed_generation: Some(3),
        revision: Some(Revision(0xab)),
        planned_from: Some(at(0)),
        failure_count: 2,
        last_run: Some(LastRun {
            slot: at(60),
            started_at: Some(at(61)),
            ended_at: Some(at(65)),
            outcome: Some(Outcome::Failed),
            reason: Some("Forbidden".into()),
            message: Some("m".into()),
        }),
        last_success: Some(at(5)),
        last_missed: Some(Missed { slot: at(30), count: 6 }),
        next: Some(Planned { at: at(305), why: PlannedBy::Backoff }),
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
            "revision": "00000000000000ab",
            "plannedFrom": "2027-01-15T08:00:00Z",
            "failureCount": 2,
            "lastRun": {
                "name": "nightly-1800000060", "slot": "2027-01-15T08:01:00Z", "startedAt": "2027-01-15T08:01:01Z",
                "endedAt": "2027-01-15T08:01:05Z", "outcome": "Failed", "reason": "Forbidden", "message": "m",
            },
            "lastSuccessTime": "2027-01-15T08:00:05Z",
            "lastMissed": {"slot": "2027-01-15T08:00:30Z", "count": 6},
            "nextRunTime": "2027-01-15T08:05:05Z",
            "nextRunReason": "Backoff",
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
    for field in ["revision", "plannedFrom", "lastRun", "lastSuccessTime", "lastMissed", "nextRunTime", "nextRunReason"]
    {
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
