//! Measures the memory that the index allocates, in bytes. The numbers are exact, and the same on every machine. The
//! budget is less than 1.5 kB per terminal execution.
//!
//! This test has a process of its own, because it counts every allocation of the process. `WFE_MEMORY_REPORT` names a
//! file for the results, one line of JSON each.

// The whole file is test code. With this attribute, clippy allows helpers to panic as tests do.
#![cfg(test)]

mod objects;

use std::alloc::System;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use wfe_core::Time;
use wfe_view::index::Delivery::{ListBegins, ListEnds};
use wfe_view::index::{Index, Kind};
use wfe_view::partial::PartialObject;
use wfe_view::read::read;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of executions: large enough that one-time costs do not matter. The hash tables of the index are then two
/// thirds full, as on average.
const EXECUTIONS: u32 = 5000;
/// The limit for a terminal execution with its finished run. If the execution is alone on its target, the limit
/// includes the target.
const PER_EXECUTION: usize = 1500;
/// The additional limit for a child of a schedule, which also stores its schedule and its slot.
const PER_CHILD: usize = 24;
/// The limit for a schedule with its target and a child that has ended: 10 MB for 5,000 schedules.
const PER_SCHEDULE: usize = 2000;
/// The limit for a Running execution with a run that has no TaskRuns yet.
const PER_RUNNING: usize = 2500;
/// The limit for a TaskRun that runs or waits, with its pod.
const PER_TASK: usize = 1500;

/// How many foreign pods are in the execution namespace.
const STRANGERS: u32 = 50_000;

/// A measurement: its name, its value and its limit.
struct Measure {
    name: &'static str,
    bytes: usize,
    limit: usize,
}

/// Fills an index with a list of objects, and returns the memory per execution.
fn measure(name: &'static str, limit: usize, executions: u32, mut fill: impl FnMut(&mut Index, u32)) -> Measure {
    let region = Region::new(ALLOCATOR);
    let mut index = Index::new(None);
    for kind in Kind::ALL {
        index.apply(ListBegins(kind), Time::UNIX_EPOCH);
    }
    for number in 0..executions {
        fill(&mut index, number);
    }
    for kind in Kind::ALL {
        index.apply(ListEnds(kind), Time::UNIX_EPOCH);
    }
    drop(index.take_dirty());
    let change = region.change();
    let bytes = (change.bytes_allocated - change.bytes_deallocated) / executions as usize;
    let blocks = (change.allocations - change.deallocations) / executions as usize;
    println!("{name}: {bytes} bytes in {blocks} allocations");
    drop(index);
    Measure { name, bytes, limit }
}

fn put(index: &mut Index, kind: Kind, object: Value) {
    let object = serde_json::from_value(object).unwrap();
    index.apply(read(kind, &object, objects::EXECUTION_NAMESPACE).unwrap(), Time::UNIX_EPOCH);
}

/// Measures terminal executions, `per_target` on each target, with or without their runs.
fn terminal(name: &'static str, per_target: u32, has_run: bool) -> Measure {
    measure(name, PER_EXECUTION, EXECUTIONS, |index, number| {
        let target = format!("payment/deployment/payment-api-{}", number / per_target);
        put(index, Kind::Execution, objects::ended(number, &target));
        if has_run {
            put(index, Kind::Run, objects::run(number, &target, 2, true));
        }
    })
}

/// Measures terminal children of schedules, each alone on its target, with their runs. The schedules exist or are gone.
fn scheduled(name: &'static str, limit: usize, has_schedule: bool) -> Measure {
    measure(name, limit, EXECUTIONS, |index, number| {
        let target = format!("payment/deployment/payment-api-{number}");
        put(index, Kind::Execution, objects::child(number, &target));
        if has_schedule {
            put(index, Kind::Schedule, objects::schedule(number, &target));
        } else {
            put(index, Kind::Run, objects::run(number, &target, 2, true));
        }
    })
}

/// Measures a Running execution with its run and the TaskRuns and pods of the run.
fn running(name: &'static str, tasks: u32, runs: bool) -> Measure {
    let limit = PER_RUNNING + PER_TASK * tasks as usize;
    measure(name, limit, EXECUTIONS / 10, |index, number| {
        let target = format!("payment/deployment/payment-api-{number}");
        put(index, Kind::Execution, objects::running(number, &target));
        put(index, Kind::Run, objects::run(number, &target, tasks, false));
        for task in 0..tasks {
            put(index, Kind::TaskRun, objects::task_run(number, &target, task, runs));
            put(index, Kind::Pod, objects::pod(number, &target, task, runs));
        }
    })
}

/// Measures foreign pods in the execution namespace, as lists deliver them. The index stores nothing about them.
fn strangers() -> Measure {
    let (mut bytes, mut took) = (0, Duration::ZERO);
    let measure = measure("bytes_per_pod_of_a_stranger", 0, STRANGERS, |_, number| {
        let pod = objects::stranger_pod(number).to_string();
        bytes += pod.len();
        let begun = Instant::now();
        let PartialObject { object, .. } = PartialObject::from_bytes(pod.as_bytes()).unwrap();
        assert!(read(Kind::Pod, &object, objects::EXECUTION_NAMESPACE).is_none());
        took += begun.elapsed();
    });
    println!("{STRANGERS} pods of strangers: {bytes} bytes, read in {took:?}");
    measure
}

#[test]
fn the_index_is_small() {
    let measures = [
        terminal("bytes_per_terminal_execution", 10, true),
        terminal("bytes_per_terminal_execution_without_run", 10, false),
        terminal("bytes_per_terminal_execution_alone_on_its_target", 1, true),
        terminal("bytes_per_terminal_execution_alone_on_its_target_without_run", 1, false),
        scheduled("bytes_per_terminal_child_alone_on_its_target", PER_EXECUTION + PER_CHILD, false),
        scheduled("bytes_per_schedule_with_a_child", PER_SCHEDULE, true),
        running("bytes_per_running_execution", 0, true),
        running("bytes_per_running_execution_with_1_task", 1, true),
        running("bytes_per_running_execution_with_5_tasks", 5, true),
        running("bytes_per_running_execution_with_20_tasks", 20, true),
        running("bytes_per_running_execution_with_20_tasks_that_wait", 20, false),
        strangers(),
    ];
    if let Some(path) = std::env::var_os("WFE_MEMORY_REPORT") {
        let mut report = String::new();
        for Measure { name, bytes, .. } in &measures {
            writeln!(report, "{}", json!({*name: bytes})).unwrap();
        }
        std::fs::write(path, report).unwrap();
    }
    for Measure { name, bytes, limit } in measures {
        assert!(bytes <= limit, "{name}: {bytes} bytes, of {limit} at the most");
    }
}
