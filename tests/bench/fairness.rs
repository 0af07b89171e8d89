//! What one namespace's crowd costs another's single execution: how long it waits for its run beside 10,000 undecided
//! ones, and alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use wfe_testkit::{World, WorldOptions};

use crate::numbers::{float, millis, percentile};
use crate::observer::{Observer, Seen};
use crate::subject::{Kind, Subject};
use crate::{Bench, player};

/// Between two single executions, so that none meets what the last one still has to write.
const PAUSE: Duration = Duration::from_millis(20);

/// Measures single executions alone, and then beside a crowd of so many, each on a target of its own. One operator
/// watches all namespaces: this is not for a cluster that somebody gave.
pub(crate) async fn fairness(bench: &mut Bench, crowd: usize, alone: usize) -> Result<()> {
    let other = Arc::clone(&bench.worlds.floor);
    let options = WorldOptions { all_namespaces: true, ..WorldOptions::default() };
    let world = World::with(other.control_plane(), "crowd", options).await?;
    let measured = async {
        let observer = Observer::start(&world).await?;
        let mut subject = bench.subjects.start(Kind::Operator, &world, false).await?;
        let idle = singles(&other, &mut subject, &observer, "alone", |_, so_far| so_far == alone).await?;
        subject.stop().await?;
        clear(&world, &other).await?;

        // The operator finds all of them undecided when it starts.
        let names: Vec<String> = (0..crowd).map(|number| format!("crowd-{number:05}")).collect();
        player::create_all(&world, names.into_iter().map(|name| (name.clone(), format!("node/{name}")))).await?;
        let observer = Observer::start(&world).await?;
        let mut subject = bench.subjects.start(Kind::Operator, &world, false).await?;
        let begun = Instant::now();
        let is_over = |seen: &Seen, _| seen.running.len() == crowd;
        let beside = singles(&other, &mut subject, &observer, "beside", is_over).await?;
        let took = begun.elapsed();
        subject.stop().await?;
        anyhow::Ok((idle, beside, took))
    }
    .await;
    clear(&world, &other).await?;
    world.close().await?;
    let (idle, beside, took) = measured?;
    let (of_idle, of_beside) = (percentile(&idle.waited, 0.99), percentile(&beside.waited, 0.99));
    let (created_idle, created_beside) = (percentile(&idle.created, 0.99), percentile(&beside.created, 0.99));
    bench.results.add("fairness/alone/p99", "ms", of_idle);
    bench.results.add("fairness/alone/creation/p99", "ms", created_idle);
    bench.results.add("fairness/beside/p50", "ms", percentile(&beside.waited, 0.5));
    bench.results.add("fairness/beside/p99", "ms", of_beside);
    bench.results.add("fairness/beside/creation/p99", "ms", created_beside);
    bench.results.add("fairness/ratio", "times alone", of_beside / of_idle);
    bench.results.add("fairness/crowd", "µs per execution", millis(took) * 1e3 / float(crowd));
    bench.say(&format!(
        "{} single executions beside {crowd} of another namespace: p50 {:.1} ms, p99 {of_beside:.1} ms, of which their \
         creation {created_beside:.1} ms; alone p50 {:.1} ms, p99 {of_idle:.1} ms, creation {created_idle:.1} ms; the \
         crowd took {:.1} s",
        beside.waited.len(),
        percentile(&beside.waited, 0.5),
        percentile(&idle.waited, 0.5),
        took.as_secs_f64()
    ));
    Ok(())
}

async fn clear(world: &World, other: &World) -> Result<()> {
    player::clear(world).await?;
    player::clear(other).await
}

/// What single executions waited for, in milliseconds.
#[derive(Default)]
struct Singles {
    /// From before their creation until their run is there.
    waited: Vec<f64>,
    /// For the answer to their creation: the API server's part, in which the operator has none.
    created: Vec<f64>,
}

/// Creates one execution after the other, each on a target of its own, and waits for its run.
async fn singles(
    world: &World,
    subject: &mut Subject,
    observer: &Observer,
    name: &str,
    is_over: impl Fn(&Seen, usize) -> bool,
) -> Result<Singles> {
    let mut times = Singles::default();
    loop {
        let name = format!("{name}-{:05}", times.waited.len());
        let begun = Instant::now();
        player::execution(world, &name, &format!("node/{name}")).create().await?;
        times.created.push(millis(begun.elapsed()));
        let seen = |seen: &Seen| Some((*seen.created.get(&name)?, is_over(seen, times.waited.len() + 1)));
        let (created, is_over) = subject.until(observer.until("its run is created", seen)).await?;
        times.waited.push(millis(created - begun));
        if is_over {
            return Ok(times);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
