//! Tests that every status fits the CRD's schema: the API server would refuse any other status, so it could never be
//! written. Tests on a real API server cover the rules across several fields.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use wfe_core::Time;
use wfe_core::awaiting::Unanswered;
use wfe_core::evidence::{Absence, Doubt, Proof, Ran, Started};
use wfe_core::findings::{FailedTask, Wait};
use wfe_core::fingerprint::{Fingerprint, Origin, Stage};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::run::Outcome;
use wfe_core::trouble::{OwnCause, OwnTrouble};
use wfe_core::waiting::Pause;

use super::*;
use wfe_core::duration;
use wfe_core::ending::{Charge, Conflict, Failure, Remediation, Skip, Tried};
use wfe_core::execution::{Clearance, Recorded};
use wfe_core::reason::FailureReason;
use wfe_core::retry::{Attempt, AttemptEnd, Stop};

/// Finds where a value does not fit a schema.
fn misfits(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut expect = |fits: bool, what: &str| {
        if !fits {
            found.push(format!("{path}: {what}: {}", limits::cut(&value.to_string(), 80)));
        }
    };
    let within = |number: f64, key: &str, fits: fn(f64, f64) -> bool| {
        schema[key].as_f64().is_none_or(|limit| fits(number, limit))
    };
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(map)) => {
            for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                expect(map.contains_key(required), required);
            }
            for (key, value) in map {
                let property = &schema["properties"][key];
                if property.is_null() {
                    found.push(format!("{path}.{key}: unknown"));
                } else {
                    misfits(property, value, &format!("{path}.{key}"), found);
                }
            }
        }
        (Some("array"), Value::Array(list)) => {
            expect(within(count(list.len()), "maxItems", |it, limit| it <= limit), "too many");
            for (index, value) in list.iter().enumerate() {
                misfits(&schema["items"], value, &format!("{path}[{index}]"), found);
            }
        }
        (Some("string"), Value::String(text)) => {
            let length = count(text.chars().count());
            expect(within(length, "maxLength", |it, limit| it <= limit), "too long");
            expect(within(length, "minLength", |it, limit| it >= limit), "too short");
            expect(schema["enum"].as_array().is_none_or(|values| values.contains(value)), "not of the enum");
            let is_date = || wfe_tekton::parse_moment(text).is_some();
            expect(schema["format"] != "date-time" || is_date(), "no time");
            // Accepts what the rule `duration(self)` accepts.
            let is_go = || duration::parse(text).is_ok();
            let has_duration = ["uration", "BeforeFailure", ".delay"].iter().any(|end| path.ends_with(end));
            expect(!has_duration || is_go(), "no duration");
        }
        (Some("integer"), Value::Number(number)) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            expect(within(number, "minimum", |it, limit| it >= limit), "too small");
            let fits = |bits: i32| number.abs() < 2_f64.powi(bits - 1);
            expect(if schema["format"] == "int32" { fits(32) } else { fits(64) }, "too large");
        }
        (Some("boolean"), Value::Bool(_)) => {}
        (kind, _) => expect(false, kind.unwrap_or("no type")),
    }
}

/// Converts a length to a float; lengths here are small enough to be exact.
#[allow(clippy::cast_precision_loss)]
fn count(length: usize) -> f64 {
    length as f64
}

static STATUS_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let crd = serde_json::to_value(&wfe_api::crds()[0]).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"].clone()
});

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z-]{0,20}",
        2 => "\\PC{0,40}",
        1 => (250..40_000_usize).prop_map(|length| "ä".repeat(length)),
    ]
}

fn times() -> impl Strategy<Value = Time> {
    let edges = [Time::MIN_UTC, Time::MAX_UTC, Time::UNIX_EPOCH];
    prop_oneof![
        3 => (-100_000_000_000..300_000_000_000_i64).prop_map(|second| Time::from_timestamp(second, 0).unwrap()),
        1 => prop::sample::select(edges.to_vec()),
    ]
}

fn verdicts() -> impl Strategy<Value = Started> {
    let absence = prop::sample::select(vec![Absence::NoRun, Absence::NoTaskRun, Absence::OnlyWaited]);
    let doubt = (texts(), 0..9_usize).prop_map(|(name, which)| {
        let name: Box<str> = name.into();
        match which {
            0 => Doubt::RunGone,
            1 => Doubt::Opaque(name),
            2 => Doubt::Vanished(name),
            3 => Doubt::Unfinished(name),
            4 => Doubt::Ambiguous(name),
            5 => Doubt::Unfollowed(name),
            6 => Doubt::Unseen(name),
            7 => Doubt::TooMany,
            _ => Doubt::Unread,
        }
    });
    prop_oneof![
        absence.prop_map(Started::NotStarted),
        doubt.prop_map(Started::Unknown),
        (texts(), texts(), texts(), prop::option::of(times()))
            .prop_map(|(a, b, c, at)| Started::Started(Proof::ended(&a, &b, &c, at))),
    ]
}

fn failures() -> impl Strategy<Value = Failure> {
    let task = (texts(), any::<u32>(), prop::option::of(texts()), prop::option::of(any::<i32>())).prop_map(
        |(name, index, step, exit_code)| FailedTask {
            name: name.into(),
            index,
            step: step.map(Into::into),
            exit_code,
            registry: None,
        },
    );
    let outcome = (texts(), texts(), prop::option::of(times())).prop_map(|(reason, message, completed_at)| {
        // Texts are cut as in `observe_run`.
        let short = |text: &str| limits::cut(text, wfe_tekton::MAX_MESSAGE).into();
        Outcome { succeeded: false, reason: short(&reason), message: short(&message), completed_at }
    });
    let tasks = prop::option::of((any::<u16>(), any::<u16>()));
    (
        (prop::sample::select(FailureReason::ALL.to_vec()), texts(), verdicts(), prop::option::of(task), tasks),
        (times(), any::<u64>(), prop::option::of(any::<u64>()), prop::option::of(outcome)),
        (any::<u32>(), prop::option::of(times()), any::<bool>()),
    )
        .prop_map(|((reason, message, started, task, tasks), (failed_at, seconds, number, outcome), charge)| {
            let mut failure = Failure {
                reason,
                message: message.into(),
                started,
                task,
                tasks: tasks.map(|(completed, total)| TaskCount { completed, total }),
                failed_at,
                ran_for: Duration::from_secs(seconds),
                number,
                outcome,
                cancelled: number.is_some(),
                stage: Stage::Released,
                fingerprint: None,
                shared_outage: number.is_none(),
                charge: Charge { consecutive_failures: charge.0, next_allowed_execution: charge.1, exhausts: charge.2 },
                tried: None,
            };
            let origin = Origin::new(&failure.message, &failure.message, &failure.message);
            failure.fingerprint = Some(Fingerprint::of(failure.symptoms(), &origin));
            failure
        })
}

proptest! {
    #[test]
    fn any_failure_fits(failure in failures(), is_running in any::<bool>(), draining in any::<bool>(), workflow in texts()) {
        let target = TargetName::parse("node/n").unwrap();
        let workflow_id = limits::cut(&workflow, limits::NAME).into();
        let subject = Subject { generation: 1, workflow_id, is_running, ..Subject::default() };
        let status = ended(Some(&target), &subject, &Ending::Failed(failure), draining);
        prop_assert_eq!(misfits_of(&status), Vec::<String>::new());
    }
}

proptest! {
    #[test]
    fn any_progress_fits(
        proof in prop::option::of((texts(), prop::option::of(times()))),
        tasks in prop::option::of((any::<u16>(), any::<u16>())),
        doing in "[A-Za-z]{0,64}",
        awaits in prop::option::of(awaiting()),
        since in times(),
    ) {
        let shown = RunShown {
            awaits: awaits.map(|awaits| Box::new(awaits.shown(None))),
            proof: proof.map(|(name, at)| Box::new(Proof::running(&name, &name, "?", at))),
            tasks: tasks.map(|(completed, total)| TaskCount { completed, total }),
        };
        let subject = Subject { generation: 1, workflow_id: "w".into(), is_running: true, ..Subject::default() };
        let run = RunId { name: "wfe-x-1".into(), uid: wfe_core::name::Uid::new("u") };
        let status = going(None, &subject, &run, &shown, &doing, since, since);
        prop_assert_eq!(misfits_of(&status), Vec::<String>::new());
        let said = wfe_view::observe::run_shown(&serde_json::to_value(&status).unwrap(), &status.conditions);
        prop_assert_eq!(said.awaits, shown.awaits, "it would be written again and again");
    }
}

/// Generates what a Running execution may wait for, with texts up to the longest possible.
fn awaiting() -> impl Strategy<Value = Awaiting> {
    let waits = prop::sample::select(vec![Wait::Controller, Wait::Bundle, Wait::Pod]);
    (waits, times(), texts(), prop::option::of(texts()), texts(), any::<bool>(), 0..3_u8).prop_map(
        |(wait, time, said, managed_by, finalizers, deleting, which)| match which {
            0 => Awaiting::Starting { wait, until: time },
            1 => {
                let trouble = OwnTrouble { cause: OwnCause::CannotExamine, words: limits::cut(&said, 4096).into() };
                Awaiting::Examining { since: time, trouble }
            }
            _ => Awaiting::Cancelling(Unanswered {
                run: RunId { name: "wfe-x-1".into(), uid: Uid::new("u") },
                since: time,
                why: "it was not done a minute after its time-out",
                said: limits::cut(&said, 4096).into(),
                managed_by: managed_by.map(|manager| limits::cut(&manager, 64).into()),
                finalizers: limits::cut(&finalizers, 256).into(),
                deleting,
            }),
        },
    )
}

fn ends() -> impl Strategy<Value = AttemptEnd> {
    let reason = prop::option::of(prop::sample::select(FailureReason::ALL.to_vec()));
    (times(), prop::sample::select(Ran::ALL.to_vec()), reason, texts()).prop_map(
        |(completed_at, started, reason, message)| AttemptEnd {
            completed_at,
            started,
            reason,
            message: message.into(),
        },
    )
}

/// Generates delays up to the longest that Go can hold. Longer ones are not read from a status.
fn delays() -> impl Strategy<Value = Duration> {
    (0..i64::MAX.unsigned_abs()).prop_map(Duration::from_nanos)
}

/// Generates attempts that a status may contain, including edited ones.
fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let delay = prop::option::of(delays());
    let run = prop::option::of(texts().prop_map(|name| format!("r{name}").into()));
    let times = (prop::option::of(times()), prop::option::of(times()));
    let attempt = (delay, run, times, prop::option::of(ends())).prop_map(|(delay, run, times, end)| {
        let (not_before, started_at) = times;
        Attempt { delay, not_before, run, started_at, end }
    });
    // A status holds at most twenty attempts, and one more may be appended, so there are fewer here.
    prop::collection::vec(attempt, 0..20)
}

proptest! {
    #[test]
    fn any_attempts_fit(
        attempts in attempts(),
        end in ends(),
        (started_at, now) in (prop::option::of(times()), times()),
        delay in delays(),
        failure in failures(),
        stop in 0..10_usize,
    ) {
        let run = RunId { name: "wfe-x-1".into(), uid: Uid::new("u") };
        let policy = wfe_api::retry::read(Some(&serde_json::json!(20))).unwrap().unwrap();
        let attempt = u32::try_from(attempts.len().max(1)).unwrap();
        let subject = Subject {
            generation: 1,
            is_running: true,
            started_at,
            run: Some(run.clone()),
            retry: Some(Box::new(Retry { policy, attempts })),
            ..Subject::default()
        };
        let (of, proof) = (20, Some(Proof::running("t", "s", "?", None)));
        let retry = Says::Retry { attempt, of, run: None, end: end.clone(), proof, delay, not_before: now };
        let stop = match stop {
            0 => Stop::ConditionError("x".repeat(40_000).into()),
            1 => Stop::Exhausted,
            _ => Stop::Ran,
        };
        let tried = Some(Box::new(Tried { attempt, of, end: Some(end), stop }));
        let ended = Says::Ended { ending: Ending::Failed(Failure { tried, ..failure }), draining: false };
        let commit = Says::Running { run, number: 1, consecutive_failures: 0 };
        for what in [retry, ended, commit] {
            let status = render(None, &subject, &what, Vec::new(), "runs", now);
            prop_assert_eq!(misfits_of(&status), Vec::<String>::new());
        }
    }
}

/// Returns the places where a status does not fit the schema.
fn misfits_of(status: &WorkflowExecutionStatus) -> Vec<String> {
    let mut found = Vec::new();
    misfits(&STATUS_SCHEMA, &serde_json::to_value(status).unwrap(), "status", &mut found);
    found
}

/// Generates names that an older CRD, another operator or an administrator may have made.
fn ids() -> impl Strategy<Value = ExecutionId> {
    (texts(), texts()).prop_map(|(namespace, name)| ExecutionId {
        namespace: namespace.into(),
        name: name.into(),
        uid: Uid::new("u"),
    })
}

fn skips() -> impl Strategy<Value = Skip> {
    let remediation = (ids(), texts(), times(), any::<bool>(), any::<bool>()).prop_map(
        |(execution, workflow, at, completed, is_dated)| Remediation {
            execution,
            workflow_id: workflow.into(),
            completed_at: at,
            completed,
            is_dated,
        },
    );
    (remediation, any::<u32>(), prop::option::of(times()), any::<bool>(), 0..5_u8).prop_map(
        |(past, failures, until, flag, which)| match which {
            0 => Skip::ResourceBusy(Conflict {
                holder: past.execution,
                workflow_id: past.workflow_id,
                started_at: past.completed_at,
                deleted: !flag,
                draining: flag,
                next: None,
                unanswered: None,
            }),
            1 => Skip::PreviousExecutionFailed { failed: past, is_repeated: flag },
            2 => Skip::ExhaustedRetries { latest: past, failures, limit: failures, until },
            3 => Skip::Backoff { latest: past, failures, until },
            _ => Skip::Cooldown { last: past, cooldown: Duration::MAX, until },
        },
    )
}

fn waits() -> impl Strategy<Value = Waiting> {
    (texts(), 0..7_u8).prop_map(|(text, which)| match which {
        0 => Waiting::Paused(Arc::new(Pause { namespace: text.clone().into(), why: text.into() })),
        1 => Waiting::PausedEverywhere(text.into()),
        2 => Waiting::ApiErrors(text.into()),
        3 => Waiting::Blind(text.into()),
        4 => Waiting::Operator(OwnTrouble { cause: OwnCause::LacksRight, words: text.into() }),
        5 => Waiting::TektonUnavailable(text.into()),
        _ => Waiting::Turn(Box::new(ExecutionId {
            namespace: text.clone().into(),
            name: text.into(),
            uid: Uid::new("u"),
        })),
    })
}

proptest! {
    #[test]
    fn any_skip_fits(skip in skips(), now in times()) {
        let target = TargetName::parse("node/n").unwrap();
        let subject = Subject { generation: 1, workflow_id: "w".into(), is_running: false, ..Subject::default() };
        prop_assert_eq!(misfits_of(&skipped(Some(&target), &subject, &skip, now)), Vec::<String>::new());
    }

    #[test]
    fn any_wait_fits(wait in waits(), tried in prop::option::of(any::<u64>()), now in times(), number in any::<u64>()) {
        let tried = tried.map(std::time::Duration::from_secs);
        let subject = Subject { generation: 1, workflow_id: "w".into(), is_running: false, ..Subject::default() };
        prop_assert_eq!(misfits_of(&render_waiting(None, &subject, &wait, tried, now)), Vec::<String>::new());
        prop_assert_eq!(misfits_of(&given_up(None, &subject, number, now)), Vec::<String>::new());
    }

    #[test]
    fn any_clearance_fits(reason in texts(), cleared_by in texts(), effective in any::<bool>(), now in times()) {
        let target = TargetName::parse("node/n").unwrap();
        let subject = Subject { generation: 1, workflow_id: "w".into(), is_running: false, ..Subject::default() };
        let clearance = Clearance { reason: reason.into(), cleared_by: cleared_by.into(), recorded: Recorded::Not, unguarded: None };
        let status = cleared(Some(&target), &subject, Vec::new(), &clearance, effective, now);
        prop_assert_eq!(misfits_of(&status), Vec::<String>::new());
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let mut found = Vec::new();
    let odd = serde_json::json!({
        "phase": "Odd", "startTime": "yesterday", "duration": "long", "runSequence": -1, "new": 1,
        "consecutiveFailures": 3_000_000_000_u64, "target": "x".repeat(600), "conditions": [{"type": ""}],
    });
    misfits(&STATUS_SCHEMA, &odd, "status", &mut found);
    let fields =
        ["phase", "startTime", "duration", "runSequence", "new", "consecutiveFailures", "target", "conditions[0]"];
    for field in fields {
        assert!(found.iter().any(|found| found.starts_with(&format!("status.{field}"))), "{field}: {found:#?}");
    }
}
