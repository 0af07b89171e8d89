//! The cost of one decision, by the length of the target's history. Budget: less than 5 microseconds with a history of
//! 10, and growing no faster than the history.
//!
//! Half of a history are successes; the others failed before anything ran, or were skipped. Each execution has its
//! finished run, which is kept for a day.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use wfe_core::Time;
use wfe_core::decide::decide;
use wfe_core::execution::{Execution, ExecutionState, FailedState};
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::policy::Policy;
use wfe_core::reason::FailureReason;
use wfe_core::run::{Order, Outcome, Owner, Presence, Progress, Run, RunMemory};
use wfe_core::target::{Target, TargetName};

/// How many terminal executions a target has.
const HISTORIES: [u32; 4] = [0, 10, 100, 1000];
/// How many executions ask for a turn at once.
const STORMS: [u32; 3] = [100, 1000, 10_000];

fn main() {
    let short = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
    let mut criterion = short.configure_from_args();
    histories(&mut criterion);
    storms(&mut criterion);
    criterion.final_summary();
}

fn histories(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    for length in HISTORIES {
        let mut measure = |name: &str, target: &Target, policy: &Policy| {
            group.bench_with_input(BenchmarkId::new(name, length), target, |bencher, target| {
                bencher.iter(|| decide(black_box(target), policy, now()));
            });
        };
        let idle = history(length);
        measure("idle", &idle, &Policy::default());
        // No execution is old enough to be removed.
        let removes = Policy { ttl: Some(Duration::from_hours(24)), ..Policy::default() };
        measure("idle-with-ttl", &idle, &removes);
        let asked = with(idle, [undecided(length)]);
        measure("judge", &asked, &Policy::default());
    }
    group.finish();
}

/// Measures executions that all ask for a turn at once, with a history of ten: on a free target, and while another
/// execution runs.
fn storms(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    group.sample_size(10).sampling_mode(SamplingMode::Flat); // a decision takes up to a tenth of a second
    for size in STORMS {
        group.throughput(Throughput::Elements(size.into()));
        let free = with(history(10), (10..10 + size).map(undecided));
        let mut busy = with(free.clone(), [running(9)]);
        busy.runs.insert(uid(RUN, 9), run(9, Progress::Released));
        for (name, target) in [("storm-free", &free), ("storm-busy", &busy)] {
            group.bench_with_input(BenchmarkId::new(name, size), target, |bencher, target| {
                bencher.iter(|| decide(black_box(target), &Policy::default(), now()));
            });
        }
    }
    group.finish();
}

/// Distinguishes the uid of an execution from the uid of its run.
const EXECUTION: u32 = 0x5d0a_3a1f;
const RUN: u32 = 0x0d3b_9a52;
/// The time between two successive executions; a thousand executions span less than a day.
const APART: Duration = Duration::from_mins(1);

fn now() -> Time {
    Time::UNIX_EPOCH + Duration::from_hours(500_000)
}

/// Returns when the n-th execution of a history ended. The last one ended so long ago that no cooldown or backoff is
/// left.
fn ended_at(number: u32) -> Time {
    now() - Duration::from_hours(20) + APART * number
}

/// Returns a uid like those of an API server: the order of uids is unrelated to the order of their objects.
fn uid(salt: u32, number: u32) -> Uid {
    let scattered = number.wrapping_mul(0x9e37_79b9);
    Uid::new(&format!("{scattered:08x}-7a0e-4b9f-9a33-{salt:08x}2c11"))
}

fn id(number: u32) -> ExecutionId {
    let name = format!("remediation-7c9f4d2b-{number}").into();
    ExecutionId { namespace: "kubernaut-system".into(), name, uid: uid(EXECUTION, number) }
}

fn execution(number: u32, state: ExecutionState) -> Execution {
    let undecided = Execution::undecided(id(number), Version::new("1834007"), ended_at(number));
    Execution { workflow_id: "restart-deployment".into(), state, ..undecided }
}

fn undecided(number: u32) -> Execution {
    let state = ExecutionState::Undecided { unusable: None, start_before: None };
    Execution { created: now(), ..execution(number, state) }
}

fn running(number: u32) -> Execution {
    let state = ExecutionState::Running { run: Some(run_id(number)), started_at: Some(now()) };
    Execution { run_sequence: Some(number.into()), ..execution(number, state) }
}

fn past(number: u32) -> Execution {
    let ended_at = Some(ended_at(number));
    let state = match number % 4 {
        1 => ExecutionState::Failed(FailedState {
            reason: FailureReason::ImagePullBackOff,
            was_execution_failure: false,
            cancelled: false,
            failed_at: ended_at,
            completed_at: ended_at,
            next_allowed_execution: ended_at,
            fingerprint: None,
            shared_outage: false,
        }),
        3 => ExecutionState::Skipped { completed_at: ended_at },
        _ => ExecutionState::Completed { started_at: None, completed_at: ended_at },
    };
    Execution { run_sequence: Some(number.into()), ..execution(number, state) }
}

fn run_id(number: u32) -> RunId {
    RunId { name: format!("wfe-cf0cc089293b1165-{number}").into(), uid: uid(RUN, number) }
}

fn run(number: u32, progress: Progress) -> Run {
    Run {
        id: run_id(number),
        number: number.into(),
        version: Version::new("1834001"),
        created: ended_at(number),
        order: Order(number.into()),
        owner: Owner::Execution {
            id: id(number),
            workflow_id: "restart-deployment".into(),
            presence: Presence::Watched,
        },
        progress,
        cancelled: false,
        cancel_reason: None,
        stopped: false,
        deleting: false,
        stays: wfe_core::run::Stays::default(),
        doing: "".into(),
        total_tasks: Some(2),
        skipped_tasks: 0,
        undeclared: Box::default(),
        timeout: Some(Duration::from_mins(30)),
        released_at: None,
        stop: None,
        memory: RunMemory { done_seen: Some(ended_at(number)), ..RunMemory::default() },
    }
}

fn finished(number: u32) -> Progress {
    Progress::Done(Outcome {
        succeeded: true,
        reason: "Succeeded".into(),
        message: "Tasks Completed: 2 (Failed: 0, Cancelled 0), Skipped: 0".into(),
        completed_at: Some(ended_at(number)),
    })
}

fn history(length: u32) -> Target {
    let runs = (0..length).filter(|number| number % 4 != 3).map(|number| run(number, finished(number)));
    let target = Target {
        name: TargetName::parse("payment/deployment/payment-api").ok(),
        runs: runs.map(|run| (run.id.uid.clone(), run)).collect(),
        ..Target::default()
    };
    with(target, (0..length).map(past))
}

fn with(mut target: Target, executions: impl IntoIterator<Item = Execution>) -> Target {
    let by_uid = executions.into_iter().map(|execution| (execution.id.uid.clone(), execution));
    target.executions.extend(by_uid);
    target
}
