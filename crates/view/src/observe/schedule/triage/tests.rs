use super::*;
use serde_json::json;

#[test]
fn a_triage_that_nobody_wrote_is_the_default() {
    assert_eq!(spec(&json!({})), TriageSpec::default());
    assert_eq!(spec(&json!({"triage": "odd"})), TriageSpec::default());
    let odd = spec(&json!({"triage": {"analyst": "Oracle", "after": 11, "timeout": "2h"}}));
    let TriageSpec { analyst, after, timeout, .. } = odd;
    assert_eq!((analyst, after, timeout), (Analyst::Off, 3, Duration::from_mins(10)), "another version's analyst");
}

#[test]
fn a_verdict_may_change_only_parameters_that_the_template_has() {
    let listed = json!(["interval", "parameters.LEVEL", "parameters.OTHER", "cron", 3]);
    let read = spec(&json!({
        "triage": {"analyst": "Pipeline", "after": 5, "timeout": "1m", "allowAdjust": listed},
        "template": {"spec": {"parameters": {"LEVEL": "1"}}},
    }));
    assert_eq!((read.analyst, read.after, read.timeout), (Analyst::Pipeline, 5, MINUTE));
    assert_eq!(read.allow_adjust, [Field::Interval, Field::Parameter("LEVEL".into())]);
    assert_eq!(read.template_timeout, None);
    assert_eq!(read.room, limits::PARAMETERS_SIZE as usize - "LEVEL1".len());
    assert_eq!(PARAMETERS_SIZE, limits::PARAMETERS_SIZE as usize);
    assert_eq!(wfe_core::triage::PARAMETER_VALUE, limits::PARAMETER_VALUE as usize);
}

#[test]
fn the_time_out_of_the_template_is_kept_where_a_verdict_may_change_it() {
    let read = |allowed: &str| {
        spec(&json!({
            "triage": {"allowAdjust": [allowed]},
            "template": {"spec": {"executionConfig": {"timeout": "45m"}}},
        }))
    };
    assert_eq!(read("timeout").template_timeout, Some(Duration::from_mins(45)));
    assert_eq!(read("interval").template_timeout, None);
}

#[test]
fn a_record_is_read_as_it_is_written_and_a_word_of_another_version_pauses_nothing() {
    let written = json!({
        "of": "nightly-1800000000", "at": "2027-01-15T08:00:00Z", "analyst": "Pipeline",
        "run": {"name": "nightly-1800000000-triage", "uid": "u"}, "fingerprint": "Unknown/cluster", "evidence": "ab",
        "verdict": "PauseAndNotify", "why": "so", "fix": "that", "refused": ["interval: no"], "state": "Paused",
    });
    let triage = record(&written).unwrap();
    assert_eq!((triage.state, triage.verdict, triage.refused.len()), (State::Paused, Some(Verdict::PauseAndNotify), 1));
    assert_eq!(triage.run.map(|(_, uid)| uid), Some(Uid::new("u")));
    let mut other = written.clone();
    other["state"] = json!("Frozen");
    assert_eq!(record(&other).map(|triage| triage.state), Some(State::Over));
    assert_eq!(record(&json!({"of": "x"})), None, "nobody knows when it began");
    assert_eq!(record(&json!(null)), None);
}

#[test]
fn adjusted_values_that_cannot_be_read_are_not_there() {
    assert_eq!(adjust(&json!({"interval": "0s", "timeout": "25h", "parameters": {"A": 1}})), None);
    let read = adjust(&json!({"interval": "10m", "timeout": "2h", "parameters": {"A": "1"}})).unwrap();
    let (minutes, hours) = (Duration::from_mins(10), Duration::from_hours(2));
    assert_eq!((read.interval, read.timeout, read.parameters.len()), (Some(minutes), Some(hours), 1));
}
