//! The cost of circuits (section 13.5). Budgets: with a hundred failing fingerprints, fifty executions that end each
//! second take less than 5 % of a core. Fifty thousand executions are folded within 100 ms.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use criterion::{BatchSize, BenchmarkId, Criterion};
use wfe_core::Time;
use wfe_core::circuit::{Asks, End, Event, Fold, OpenCircuit, Taken, Turns, What};
use wfe_core::fingerprint::{Fingerprint, Origin};
use wfe_core::name::{ScheduleId, Uid};
use wfe_core::policy::Policy;
use wfe_core::target::TargetName;

const FINGERPRINTS: u32 = 100;
const ENDS_A_SECOND: u32 = 50;
const TARGETS: u32 = 5_000;
/// The number of schedules that wait for a turn, and the number of their namespaces.
const LINED_UP: u32 = 50_000;
const NAMESPACES: u32 = 1_000;

fn main() {
    let short = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
    let mut criterion = short.configure_from_args();
    let mut group = criterion.benchmark_group("circuits");
    let policy = Policy::default();
    // The executions that end in one second, after a window full of such executions. The circuits are read after each
    // end.
    let window: Vec<Event> = (0..300 * ENDS_A_SECOND).map(ended).collect();
    let second: Vec<Event> = (300 * ENDS_A_SECOND..301 * ENDS_A_SECOND).map(ended).collect();
    let known = Fold::of(&policy, window);
    group.bench_function(BenchmarkId::new("second", FINGERPRINTS), |bencher| {
        let end = |mut fold: Fold| {
            for event in &second {
                let at = event.at;
                let (Taken::Yes | Taken::TooOld) = fold.take([event.clone()]);
                black_box(fold.seen(at));
            }
            fold
        };
        bencher.iter_batched(|| known.clone(), end, BatchSize::LargeInput);
    });
    let all: Vec<Event> = (0..50_000).map(ended).collect();
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("fold", all.len()), |bencher| {
        bencher.iter_batched(|| all.clone(), |all| Fold::of(&policy, all), BatchSize::LargeInput);
    });
    // After a probe the whole line is sorted again, and its head gets the turn.
    let mut turns = Turns::default();
    for number in 0..LINED_UP {
        let (namespace, name) = (format!("team-{}", number % NAMESPACES).into(), format!("nightly-{number}").into());
        let schedule = ScheduleId { uid: Uid::new(&format!("{number:08}")), namespace, name };
        turns.wait(&schedule, Asks { circuit: open().fingerprint, failures: number % 7 });
    }
    group.bench_function(BenchmarkId::new("turn", LINED_UP), |bencher| {
        let give = |mut turns: Turns| {
            let mut circuits = [open()];
            turns.give(&mut circuits, Time::UNIX_EPOCH);
            (turns, circuits)
        };
        bencher.iter_batched(|| turns.clone(), give, BatchSize::LargeInput);
    });
    group.finish();
    criterion.final_summary();
}

/// Returns a circuit that has just been probed.
fn open() -> OpenCircuit {
    let later = Time::UNIX_EPOCH + TimeDelta::hours(1);
    OpenCircuit {
        fingerprint: fingerprint("ImagePullBackOff/registry/r.example"),
        opened_at: Time::UNIX_EPOCH,
        holds_from: Time::UNIX_EPOCH,
        failed: 5,
        failed_probes: 1,
        probes: Arc::new([("team-0".into(), 1)].into()),
        next_probe_at: later,
        quiet_at: later,
        turn: None,
    }
}

fn fingerprint(text: &str) -> Fingerprint {
    Fingerprint::parse(text).unwrap_or_else(|| unreachable!("{text} is one"))
}

/// Returns the end of an execution of one of five thousand schedules: nine out of ten failed, each with one of a
/// hundred fingerprints.
fn ended(number: u32) -> Event {
    let at = Time::UNIX_EPOCH + TimeDelta::seconds(i64::from(number / ENDS_A_SECOND));
    let (of, workflow) = (number % TARGETS, number % FINGERPRINTS);
    let with = Some(fingerprint(&format!("ConfigurationError/workflow/w{workflow}@1")));
    let end = if number % 10 == 3 {
        End::Succeeded { started_at: at }
    } else {
        End::Failed { fingerprint: with, before_start: true }
    };
    let target = TargetName::parse(&format!("node/n{of}")).map(|target| target.chain());
    Event {
        at,
        uid: Uid::new(&format!("{number:08}")),
        namespace: "ops".into(),
        origin: Arc::new(Origin::new(&format!("w{workflow}"), "1", "r.example/w:1")),
        schedule: Some(Uid::new(&format!("s{of}"))),
        what: What::Ended { target: target.unwrap_or_else(|_| unreachable!("a node")), created: at, end },
    }
}
