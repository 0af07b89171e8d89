//! What the index holds in memory, in bytes that were asked for: exact, the same on every machine. Budget: under 1.5 kB
//! per terminal execution.
//!
//! One test in a process of its own, as it counts what the whole process allocates. `WFE_MEMORY_REPORT` names a file
//! that gets the measures, one line of JSON for each.

// All of it is test code, so that a helper may panic as a test does.
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
use wfe_view::lean::LeanObject;
use wfe_view::read::read;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Enough that what there is once does not count. The tables of the index are then two thirds full, as on average.
const EXECUTIONS: u32 = 5000;
/// The most that a terminal execution may cost, with its finished run and, where it is alone on it, its target.
const PER_EXECUTION: usize = 1500;
/// The most that it may cost more where a schedule made it: its schedule and its slot.
const PER_CHILD: usize = 24;
/// The most that a schedule may cost with its target and a child that has ended: 10 MB for 5,000 of them.
const PER_SCHEDULE: usize = 2000;
/// The most that a Running execution may cost with its run, of which nothing is there yet.
const PER_RUNNING: usize = 2500;
/// The most that a task that runs or waits may cost, with its pod.
const PER_TASK: usize = 1500;

/// How many pods others have in the execution namespace.
const STRANGERS: u32 = 50_000;

/// A measure: what it is, what it came to, and what it may come to.
struct Measure {
    name: &'static str,
    bytes: usize,
    limit: usize,
}

/// Fills an index with a list of objects, and returns what it then holds per execution.
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
    index.apply(read(kind, object, objects::EXECUTION_NAMESPACE).unwrap(), Time::UNIX_EPOCH);
}

/// Terminal executions, so many on each target, with or without their runs.
fn terminal(name: &'static str, per_target: u32, has_run: bool) -> Measure {
    measure(name, PER_EXECUTION, EXECUTIONS, |index, number| {
        let target = format!("payment/deployment/payment-api-{}", number / per_target);
        put(index, Kind::Execution, objects::ended(number, &target));
        if has_run {
            put(index, Kind::Run, objects::run(number, &target, 2, true));
        }
    })
}

/// Terminal executions that a schedule made, each alone on its target, with their runs. The schedules are gone, or
/// there.
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

/// A Running execution with its run, and the TaskRuns and pods that it has.
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

/// The pods of others in the execution namespace, as their lists bring them: nothing is kept of one.
fn strangers() -> Measure {
    let (mut bytes, mut took) = (0, Duration::ZERO);
    let measure = measure("bytes_per_pod_of_a_stranger", 0, STRANGERS, |_, number| {
        let pod = objects::stranger_pod(number).to_string();
        bytes += pod.len();
        let begun = Instant::now();
        let LeanObject { object, .. } = LeanObject::from_bytes(pod.as_bytes()).unwrap();
        assert!(read(Kind::Pod, object, objects::EXECUTION_NAMESPACE).is_none());
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
