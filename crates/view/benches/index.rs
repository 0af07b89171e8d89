//! Measures the cost of the index, and of reading objects for it: one delivery, a start with many objects, and each
//! object as a watch delivers it.

#[path = "../tests/objects/mod.rs"]
mod objects;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, SamplingMode, Throughput};
use kube::api::{DynamicObject, WatchEvent};
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::action::Action;
use wfe_core::decide::decide;
use wfe_core::policy::Policy;
use wfe_view::index::Delivery::{ListBegins, ListEnds};
use wfe_view::index::{Delivery, Index, Kind};
use wfe_view::partial::PartialObject;
use wfe_view::read::read;

/// How many executions a start lists. Each has a run.
const STARTS: [u32; 3] = [100, 1000, 10_000];
/// How many executions each target has.
const PER_TARGET: u32 = 10;
/// How many schedules one target has.
const SCHEDULES: u32 = 10_000;
/// The target whose run is in progress.
const BUSY: &str = "payment/deployment/payment-api";

fn main() {
    let short = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
    let mut criterion = short.configure_from_args();
    reading(&mut criterion);
    applying(&mut criterion);
    starting(&mut criterion);
    crowded(&mut criterion);
    criterion.final_summary();
}

/// Returns what the watches deliver about one execution: the name in the results, the kind and the object.
fn brought() -> [(&'static str, Kind, Value); 7] {
    [
        ("execution-undecided", Kind::Execution, objects::execution(0, BUSY)),
        ("execution-ended", Kind::Execution, objects::ended(0, BUSY)),
        ("schedule", Kind::Schedule, objects::schedule(0, BUSY)),
        ("run", Kind::Run, objects::run(0, BUSY, 2, false)),
        ("task-run", Kind::TaskRun, objects::task_run(0, BUSY, 0, true)),
        ("pod", Kind::Pod, objects::pod(0, BUSY, 0, true)),
        ("pod-of-a-stranger", Kind::Pod, objects::stranger_pod(0)),
    ]
}

/// Measures the conversion of a watch event's bytes to a record, and separately that of the parsed object.
fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    for (name, kind, object) in brought() {
        let line = json!({"type": "MODIFIED", "object": object}).to_string();
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_function(BenchmarkId::new("event", name), |bencher| {
            bencher.iter(|| match serde_json::from_str(black_box(&line)) {
                Ok(WatchEvent::Modified(PartialObject { object, .. })) => {
                    read(kind, &object, objects::EXECUTION_NAMESPACE)
                }
                _ => None,
            });
        });
        let object: DynamicObject = parsed(object);
        group.bench_function(BenchmarkId::new("object", name), |bencher| {
            let read = |object| read(kind, &object, objects::EXECUTION_NAMESPACE);
            bencher.iter_batched(|| object.clone(), read, BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// Measures one delivery to an index of a hundred executions, for a target whose run is in progress.
fn applying(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("apply");
    let mut index = started(100);
    for delivery in deliver(&[
        (Kind::Execution, objects::running(0, BUSY)),
        (Kind::Run, objects::run(0, BUSY, 2, false)),
        (Kind::TaskRun, objects::task_run(0, BUSY, 0, true)),
        (Kind::Pod, objects::pod(0, BUSY, 0, true)),
    ]) {
        index.apply(delivery, Time::UNIX_EPOCH);
    }
    for (name, kind, object) in brought() {
        let object: DynamicObject = parsed(object);
        let delivery = || read(kind, &object, objects::EXECUTION_NAMESPACE);
        group.bench_function(name, |bencher| {
            let apply =
                |delivery: Option<Delivery>| delivery.into_iter().for_each(|it| index.apply(it, Time::UNIX_EPOCH));
            bencher.iter_batched(delivery, apply, BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// Measures the delivery of all parsed lists of a start. No decision is made before the last list ends.
fn starting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("start");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for executions in STARTS {
        let objects = listed(executions);
        group.throughput(Throughput::Elements(objects.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(executions), |bencher| {
            bencher.iter_batched(|| deliver(&objects), start, BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Measures a decision on a target with very many schedules, of which none is due.
fn crowded(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedules");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let objects: Vec<_> = (0..SCHEDULES).map(|number| (Kind::Schedule, objects::schedule(number, BUSY))).collect();
    let index = start(deliver(&objects));
    let Some(mut target) = index.keys().next().and_then(|key| index.ready(key)).map(|entry| entry.target.clone())
    else {
        unreachable!("all lists are complete");
    };
    let now = target.schedules.values().filter_map(|it| it.status.planned_from).max().unwrap_or_default();
    // Afterwards the status of each schedule names its next run.
    for action in decide(&target, &Policy::default(), now).actions {
        let Action::Record(record) = action else { continue };
        if let Some(schedule) = target.schedules.get_mut(&record.schedule.uid) {
            schedule.status = *record.status;
        }
    }
    group.throughput(Throughput::Elements(SCHEDULES.into()));
    group.bench_function(BenchmarkId::new("of-one-target", SCHEDULES), |bencher| {
        bencher.iter(|| decide(black_box(&target), &Policy::default(), now));
    });
    group.finish();
}

fn listed(executions: u32) -> Vec<(Kind, Value)> {
    let of_one = |number: u32| {
        let target = format!("payment/deployment/api-{}", number / PER_TARGET);
        [(Kind::Execution, objects::ended(number, &target)), (Kind::Run, objects::run(number, &target, 2, true))]
    };
    (0..executions).flat_map(of_one).collect()
}

fn started(executions: u32) -> Index {
    start(deliver(&listed(executions)))
}

fn start(deliveries: Vec<Delivery>) -> Index {
    let mut index = Index::new(None);
    let (begun, ended) = (Kind::ALL.map(ListBegins), Kind::ALL.map(ListEnds));
    for delivery in begun.into_iter().chain(deliveries).chain(ended) {
        index.apply(delivery, Time::UNIX_EPOCH);
    }
    index
}

fn deliver(objects: &[(Kind, Value)]) -> Vec<Delivery> {
    let read = |(kind, object): &(Kind, Value)| read(*kind, &parsed(object.clone()), objects::EXECUTION_NAMESPACE);
    objects.iter().filter_map(read).collect()
}

fn parsed(object: Value) -> DynamicObject {
    serde_json::from_value(object).unwrap_or_else(|error| unreachable!("an object as the API server sends it: {error}"))
}
