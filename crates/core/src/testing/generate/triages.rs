//! Generates triages in all states, including states that no operator writes.

use super::schedules::slot;
use super::*;
use crate::name::ExecutionId;
use crate::schedule::{Heard, ScheduleStatus};
use crate::triage::{
    Adjust, Analyst, AnalystRun, AnalystState, Began, Begun, Every, Evidence, Field, Gathered, Judgement,
    PARAMETERS_SIZE, State, Triage, TriageSpec, Verdict, WHY, Wanted,
};

fn of() -> impl Strategy<Value = Box<str>> {
    slot().prop_map(|slot| crate::schedule::child_name("wfs-s", at(slot)).into())
}

fn analyst() -> impl Strategy<Value = Analyst> {
    prop::sample::select(vec![Analyst::Off, Analyst::BuiltIn, Analyst::BuiltIn, Analyst::Pipeline, Analyst::Pipeline])
}

pub(super) fn any_triage_spec() -> impl Strategy<Value = TriageSpec> {
    let all = vec![Field::Interval, Field::Timeout, Field::Parameter("A".into())];
    let allow = prop::sample::subsequence(all, 0..=3);
    let timeout = prop::sample::select(vec![10, 60, 600]).prop_map(Duration::from_secs);
    let template = prop::option::of(Just(Duration::from_mins(45)));
    let room = prop_oneof![8 => Just(PARAMETERS_SIZE), 1 => 0..3_usize];
    (analyst(), 1..5_u32, timeout, allow, template, room).prop_map(
        |(analyst, after, timeout, allow_adjust, template_timeout, room)| TriageSpec {
            analyst,
            after,
            timeout,
            allow_adjust,
            template_timeout,
            room,
        },
    )
}

pub(super) fn any_triage() -> impl Strategy<Value = Triage> {
    let state = prop::sample::select(State::ALL.to_vec());
    // The last time comes from a clock that was ahead.
    let at_ = prop::sample::select(vec![-100_000, -86_401, -3600, -60, 0, NOW, NOW + 3600]);
    let run = prop::option::of(Just((Arc::from("wfs-s-0-triage"), Uid::new("analyst"))));
    let why = prop::sample::select(vec!["so".to_owned(), "w".repeat(WHY)]);
    (of(), at_, analyst(), run, state, why).prop_map(|(of, begun, analyst, run, state, why)| Triage {
        of,
        at: at(begun),
        // Only an analyst of the kind Pipeline can be analysing: every other analyst gives its verdict at once.
        analyst: if state == State::Analysing { Analyst::Pipeline } else { analyst },
        run,
        fingerprint: None,
        evidence: Some("digest".into()),
        verdict: (!matches!(state, State::Analysing | State::Failed)).then_some(Verdict::DoNothing),
        why: (state != State::Analysing).then(|| why.into()),
        fix: None,
        refused: vec![],
        state,
    })
}

pub(super) fn any_adjust() -> impl Strategy<Value = Adjust> {
    let interval = prop::option::of(prop::sample::select(vec![1, 30, 90]));
    let timeout = prop::option::of(prop::sample::select(vec![1, 3600]));
    (interval, timeout).prop_map(|(interval, timeout)| Adjust {
        interval: interval.map(Duration::from_secs),
        timeout: timeout.map(Duration::from_secs),
        ..Adjust::default()
    })
}

pub(super) fn any_analyst_run() -> impl Strategy<Value = AnalystRun> {
    let state =
        prop::sample::select(vec![AnalystState::AtWork, AnalystState::Completed, AnalystState::Ended("Failed")]);
    let uid = prop::sample::select(vec!["analyst", "another"]);
    (state, uid, slot()).prop_map(|(state, uid, of)| AnalystRun {
        of: at(of),
        id: ExecutionId { namespace: "ops".into(), name: "wfs-s-0-triage".into(), uid: Uid::new(uid) },
        state,
    })
}

pub(super) fn any_gathered() -> impl Strategy<Value = Gathered> {
    (of(), prop::sample::select(vec!["digest", "another"])).prop_map(|(of, digest)| Gathered {
        of,
        evidence: Evidence {
            subject: "ops/wfs-s".into(),
            target: "node/n".into(),
            workflow_id: "w1".into(),
            version: "1".into(),
            every: Every::Interval("60s".into()),
            failure_count: 3,
            last_success: None,
            open_circuits: vec![],
            timeout: Duration::from_mins(30),
            failures: vec![],
        },
        text: "{}".into(),
        digest: digest.into(),
    })
}

pub(super) fn any_heard() -> impl Strategy<Value = Heard> {
    let verdict = prop::sample::select(Verdict::ALL.to_vec());
    let texts = prop::option::of(prop::sample::select(vec!["1s", "45s", "2h", "1500ms", "-1s", "forty"]));
    let wanted = (texts.clone(), texts, prop::bool::ANY).prop_map(|(interval, timeout, parameters)| Wanted {
        interval: interval.map(Into::into),
        timeout: timeout.map(Into::into),
        parameters: parameters.then(|| ("A".into(), "b".into())).into_iter().collect(),
    });
    let why = prop::sample::select(vec!["so".to_owned(), "w".repeat(WHY)]);
    let judgement = (verdict, wanted, why).prop_map(|(verdict, adjust, why)| Judgement {
        verdict,
        why: why.into(),
        fix: None,
        adjust,
    });
    let said = prop_oneof![3 => judgement.prop_map(Ok), 1 => Just(Err("it said nothing".into()))];
    (of(), said).prop_map(|(of, said)| Heard { of, said })
}

/// Adds a triage to a schedule, with parts that often fit together.
pub(super) fn with_triage(
    mut schedule: Schedule,
    spec: TriageSpec,
    said: (Option<Triage>, Option<Adjust>, Option<AnalystRun>),
    remembered: (Option<Gathered>, Option<Heard>, Vec<i64>),
    resumes: bool,
) -> Schedule {
    let (triage, adjust, analyst) = said;
    let (gathered, heard, begun) = remembered;
    let status =
        ScheduleStatus { triage: triage.map(Box::new), adjust: adjust.map(Box::new), ..schedule.status.clone() };
    schedule.resume = status.triage.as_ref().filter(|_| resumes).map(|triage| triage.of.clone());
    schedule.status = status;
    schedule.triage = Arc::new(spec);
    schedule.analyst = analyst.map(Box::new);
    schedule.memory.triage_evidence = gathered.map(Box::new);
    schedule.memory.analyst_answer = heard.map(Box::new);
    schedule.memory.others_begun = Begun::within_the_hour(
        begun.into_iter().map(|seconds| Began { at: at(seconds), beside: seconds % 2 == 0 }),
        at(NOW),
    );
    schedule
}
