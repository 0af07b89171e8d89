//! Rounds in which the operator and the floor client do the same work, in turns.

use std::time::{Duration, Instant};

use anyhow::Result;
use wfe_testkit::World;

use crate::Bench;
use crate::counters::{Counted, Counters, Probe};
use crate::floor::Pick;
use crate::numbers::{float, median, millis, per_second, percentile};
use crate::observer::{Observer, Seen};
use crate::player::{self, Mode, Player};
use crate::subject::{Kind, Subject, cpu_seconds};

/// The times that a subject needed for many targets.
struct Many {
    /// The time from the creation of the first run until the last execution was Running.
    until_running: Duration,
    /// The time from then until the last run was released to Tekton.
    until_released: Duration,
    /// The time from the end of the first run until the last execution had ended.
    until_ended: Duration,
    cpu_seconds: f64,
    counted: Counted,
}

/// Returns names that are unique in the whole benchmark, so that no round meets the objects of another round.
pub(crate) fn names(bench: &mut Bench, count: usize) -> Vec<String> {
    bench.round += 1;
    (0..count).map(|index| format!("r{:03}-{index:05}", bench.round)).collect()
}

/// Returns the latest of these times.
pub(crate) fn last(times: &std::collections::HashMap<String, Instant>) -> Option<Instant> {
    times.values().max().copied()
}

/// Waits until the wanted number of events has been written, or until no more are written.
async fn await_events(bench: &Bench, before: &Counters, wanted: usize) -> Result<Counted> {
    const QUIET: Duration = Duration::from_secs(3);
    let mut last = (0.0, Instant::now());
    loop {
        let counted = before.since(&bench.client).await?;
        let events = counted.requests.get("create events").copied().unwrap_or_default();
        if events > last.0 {
            last = (events, Instant::now());
        }
        if events >= float(wanted) || last.1.elapsed() > QUIET || !counted.disturbed.is_empty() {
            return Ok(counted);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn many(bench: &mut Bench, world: &World, kind: Kind, count: usize, mode: Mode) -> Result<Many> {
    let names = names(bench, count);
    player::create_all(world, names.iter().map(|name| (name.clone(), format!("node/{name}")))).await?;
    let before = Counters::read(&bench.client).await?;
    let observer = Observer::start(world).await?;
    let probe = Probe::start(bench.client.clone());
    let mut subject = bench.subjects.start(kind, world, Pick::All).await?;
    let ready = Counters::read(&bench.client).await?;
    let all = |seen: &Seen| seen.first_run().zip(last(&seen.running)).filter(|_| seen.running.len() == count);
    let (first, running) = subject.until(observer.until("all run", all)).await?;
    let handed_over = |seen: &Seen| last(&seen.released).filter(|_| seen.released.len() == count);
    let released = subject.until(observer.until("all runs are released", handed_over)).await?;
    let played = Instant::now();
    let tekton = Player::start(world.client(), &world.execution_namespace(), mode);
    let ended = subject
        .until(observer.until("all have ended", |seen| last(&seen.ended).filter(|_| seen.ended.len() == count)))
        .await?;
    let mut counted = await_events(bench, &before, 2 * count).await?;
    counted.disturbed.extend(probe.slow());
    // The lists of the subject's start do not count. Only later lists do.
    let lists = ready.since(&bench.client).await?.requests;
    counted.requests.retain(|request, _| !request.starts_with("list "));
    counted.requests.extend(lists.into_iter().filter(|(request, _)| request.starts_with("list ")));
    let cpu_seconds = cpu_seconds(subject.pid())?;
    if let Subject::Operator(operator) = &subject {
        counted.disturbed.extend(operator.troubles().await?);
    }
    drop((tekton, observer));
    subject.stop().await?;
    player::clear(world).await?;
    Ok(Many {
        until_running: running - first,
        until_released: released - first,
        until_ended: ended - played,
        cpu_seconds,
        counted,
    })
}

/// Measures the operator and the floor client in turns. Their order alternates from pair to pair.
async fn pair(bench: &mut Bench, number: usize, count: usize, mode: Mode) -> Result<(Many, Many)> {
    let worlds = bench.worlds.clone();
    if number.is_multiple_of(2) {
        let floor = many(bench, &worlds.floor, Kind::Floor, count, mode).await?;
        Ok((floor, many(bench, &worlds.operator, Kind::Operator, count, mode).await?))
    } else {
        let operator = many(bench, &worlds.operator, Kind::Operator, count, mode).await?;
        Ok((many(bench, &worlds.floor, Kind::Floor, count, mode).await?, operator))
    }
}

/// Measures how many executions per second become Running, and how many end. Each has its own target.
pub(crate) async fn throughput(bench: &mut Bench, name: &str, count: usize, pairs: usize, mode: Mode) -> Result<()> {
    for number in 0..pairs {
        let (floor, operator) = pair(bench, number, count, mode).await?;
        let disturbed: Vec<&String> = floor.counted.disturbed.iter().chain(&operator.counted.disturbed).collect();
        if !disturbed.is_empty() {
            bench.disturbed(name, &format!("{disturbed:?}"));
            continue;
        }
        let results = &mut bench.results;
        let ratio = floor.until_running.as_secs_f64() / operator.until_running.as_secs_f64();
        results.add(&format!("{name}/ratio"), "of the floor", ratio);
        results.add(
            &format!("{name}/end_ratio"),
            "of the floor",
            floor.until_ended.as_secs_f64() / operator.until_ended.as_secs_f64(),
        );
        results.add(
            &format!("{name}/released_ratio"),
            "of the floor",
            floor.until_released.as_secs_f64() / operator.until_released.as_secs_f64(),
        );
        for (who, one) in [("floor", &floor), ("operator", &operator)] {
            results.add(&format!("{name}/{who}/running_per_second"), "1/s", per_second(count, one.until_running));
            results.add(&format!("{name}/{who}/ended_per_second"), "1/s", per_second(count, one.until_ended));
            results.add(&format!("{name}/{who}/cpu_ms"), "ms per execution", one.cpu_seconds * 1e3 / float(count));
            for (request, times) in requests_of_subject(&one.counted) {
                results.add(&format!("{name}/{who}/requests/{request}"), "per execution", times / float(count));
            }
        }
        bench.say(&format!(
            "{name} {}/{pairs}: {:.0}/s, floor {:.0}/s, ratio {ratio:.2}",
            number + 1,
            per_second(count, operator.until_running),
            per_second(count, floor.until_running),
        ));
    }
    Ok(())
}

/// Returns the requests during a round that only a subject sends. Watches are left out, because a watch is counted only
/// when it ends.
fn requests_of_subject(counted: &Counted) -> impl Iterator<Item = (&String, f64)> {
    const OURS: [&str; 7] = [
        "create pipelineruns",
        "patch pipelineruns",
        "delete pipelineruns",
        "patch workflowexecutions/status",
        "create events",
        "get pipelineruns",
        "get workflowexecutions",
    ];
    counted
        .requests
        .iter()
        .filter(|(request, _)| OURS.contains(&request.as_str()) || request.starts_with("list "))
        .map(|(request, times)| (request, *times))
}

/// Measures how long a single execution waits for its run.
pub(crate) async fn latency(bench: &mut Bench, blocks: usize, samples: usize) -> Result<()> {
    let worlds = bench.worlds.clone();
    let (mut of_floor, mut of_operator) = (Vec::new(), Vec::new());
    for block in 0..2 * blocks {
        let (kind, world, times) = if block.is_multiple_of(2) {
            (Kind::Floor, &worlds.floor, &mut of_floor)
        } else {
            (Kind::Operator, &worlds.operator, &mut of_operator)
        };
        let observer = Observer::start(world).await?;
        let mut subject = bench.subjects.start(kind, world, Pick::All).await?;
        for name in names(bench, samples) {
            let begun = Instant::now();
            player::execution(world, &name, &format!("node/{name}")).create().await?;
            let created =
                subject.until(observer.until("its run is created", |seen| seen.created.get(&name).copied())).await?;
            times.push(millis(created - begun));
            // The next execution must not begin before the writes of this one have finished.
            subject.until(observer.until("it runs", |seen| seen.running.get(&name).copied())).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        subject.stop().await?;
        player::clear(world).await?;
    }
    for (who, times) in [("floor", &of_floor), ("operator", &of_operator)] {
        for time in times {
            bench.results.add(&format!("latency/idle/{who}"), "ms", *time);
        }
    }
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let above = percentile(&of_operator, part) - percentile(&of_floor, part);
        bench.results.add(&format!("latency/idle/{name}_above_floor"), "ms", above);
    }
    bench.say(&format!(
        "latency idle: p50 {:.1} ms, floor {:.1} ms; p99 {:.1} ms, floor {:.1} ms",
        median(&of_operator),
        median(&of_floor),
        percentile(&of_operator, 0.99),
        percentile(&of_floor, 0.99)
    ));
    Ok(())
}

/// Measures how long executions wait for their runs at about half of the API server's possible load.
pub(crate) async fn latency_under_load(bench: &mut Bench, seconds: u64) -> Result<()> {
    // An execution needs less than half of its requests until it is Running. The creation of the execution and Tekton's
    // requests come on top.
    let rate = bench.results.get("throughput/operator/running_per_second").map_or(50.0, |it| it.median() / 5.0);
    let worlds = bench.worlds.clone();
    for (kind, who, world) in [(Kind::Floor, "floor", &worlds.floor), (Kind::Operator, "operator", &worlds.operator)] {
        let observer = Observer::start(world).await?;
        let mut subject = bench.subjects.start(kind, world, Pick::All).await?;
        let player = Player::start(world.client(), &world.execution_namespace(), Mode::Plain);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
        let count = (rate * Duration::from_secs(seconds).as_secs_f64()) as usize;
        let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
        let mut creates = tokio::task::JoinSet::new();
        for name in names(bench, count) {
            pace.tick().await;
            let wfe = player::execution(world, &name, &format!("node/{name}"));
            creates.spawn(async move {
                let begun = Instant::now();
                wfe.create().await.map(|_| (name, begun))
            });
        }
        let mut begun = Vec::new();
        while let Some(created) = creates.join_next().await {
            begun.push(created??);
        }
        subject.until(observer.until("all have ended", |seen| (seen.ended.len() == count).then_some(()))).await?;
        let times = observer
            .until("all runs are there", |seen| {
                begun
                    .iter()
                    .map(|(name, begun)| Some(millis(*seen.created.get(name)? - *begun)))
                    .collect::<Option<Vec<f64>>>()
            })
            .await?;
        bench.results.add(&format!("latency/load/{who}/p50"), "ms", median(&times));
        bench.results.add(&format!("latency/load/{who}/p99"), "ms", percentile(&times, 0.99));
        bench.say(&format!(
            "latency at {rate:.0}/s, {who}: p50 {:.1} ms, p99 {:.1} ms",
            median(&times),
            percentile(&times, 0.99)
        ));
        drop((player, observer));
        subject.stop().await?;
        player::clear(world).await?;
    }
    bench.results.add("latency/load/rate", "1/s", rate);
    Ok(())
}

/// Measures a storm: many executions for one target, from the first creation until all of them are decided.
pub(crate) async fn one_storm(
    bench: &mut Bench,
    world: &World,
    kind: Kind,
    count: usize,
) -> Result<(Duration, Counted, f64)> {
    let names = names(bench, count);
    let target = format!("node/{}", names[0]);
    let before = Counters::read(&bench.client).await?;
    let observer = Observer::start(world).await?;
    let probe = Probe::start(bench.client.clone());
    let mut subject = bench.subjects.start(kind, world, Pick::Storm).await?;
    let idle = cpu_seconds(subject.pid())?;
    let begun = Instant::now();
    player::create_all(world, names.into_iter().map(|name| (name, target.clone()))).await?;
    let decided = |seen: &Seen| last(&seen.skipped).filter(|_| seen.skipped.len() + seen.running.len() == count);
    let decided = subject.until(observer.until("all are decided", decided)).await?;
    let mut counted = await_events(bench, &before, count).await?;
    counted.disturbed.extend(probe.slow());
    let cpu = cpu_seconds(subject.pid())? - idle;
    if let Subject::Operator(operator) = &subject {
        counted.disturbed.extend(operator.troubles().await?);
    }
    drop(observer);
    subject.stop().await?;
    player::clear(world).await?;
    Ok((decided - begun, counted, cpu))
}

/// Measures the cost of a storm in comparison with a floor client that sends the same requests.
pub(crate) async fn storm(bench: &mut Bench, count: usize, pairs: usize) -> Result<()> {
    let worlds = bench.worlds.clone();
    for number in 0..pairs {
        let mut order = [(Kind::Floor, &worlds.floor), (Kind::Operator, &worlds.operator)];
        if !number.is_multiple_of(2) {
            order.reverse();
        }
        let (mut took, mut storms) = ([Duration::ZERO; 2], Vec::new());
        for (kind, world) in order {
            let (time, counted, cpu) = one_storm(bench, world, kind, count).await?;
            took[usize::from(kind == Kind::Operator)] = time;
            storms.push((if kind == Kind::Floor { "floor" } else { "operator" }, counted, cpu));
        }
        let disturbed: Vec<&String> = storms.iter().flat_map(|(_, counted, _)| &counted.disturbed).collect();
        if !disturbed.is_empty() {
            bench.disturbed(&format!("storm of {count}"), &format!("{disturbed:?}"));
            continue;
        }
        for (who, counted, cpu) in storms {
            let of_each = |request: &str| counted.requests.get(request).copied().unwrap_or_default() / float(count);
            for request in ["create events", "get pipelineruns", "patch workflowexecutions/status"] {
                bench.results.add(&format!("storm/{who}/{request}/{count}"), "per execution", of_each(request));
            }
            bench.results.add(&format!("storm/{who}/cpu_ms/{count}"), "ms per execution", cpu * 1e3 / float(count));
        }
        let [floor, operator] = took;
        let ratio = operator.as_secs_f64() / floor.as_secs_f64();
        bench.results.add(&format!("storm/ratio/{count}"), "times the floor", ratio);
        bench.results.add(&format!("storm/floor/us/{count}"), "µs per execution", millis(floor) * 1e3 / float(count));
        bench.results.add(
            &format!("storm/operator/us/{count}"),
            "µs per execution",
            millis(operator) * 1e3 / float(count),
        );
        bench.say(&format!(
            "storm of {count} {}/{pairs}: {:.2} s, floor {:.2} s, {ratio:.2} times",
            number + 1,
            operator.as_secs_f64(),
            floor.as_secs_f64()
        ));
    }
    Ok(())
}
