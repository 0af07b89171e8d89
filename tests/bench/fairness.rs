//! How much a crowd of executions in one namespace delays a single execution in another namespace. The single execution
//! waits for its run while thousands of executions are undecided. The operator and the floor client are measured in
//! turns.
//!
//! The floor is the shortest possible wait here. Each of the two namespaces has its own floor client, and the crowd's
//! client has only one request in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use wfe_testkit::{World, WorldOptions};

use crate::floor::Pick;
use crate::numbers::{float, millis, percentile};
use crate::observer::{Observer, Seen};
use crate::subject::{Kind, Subject};
use crate::{Bench, player};

/// The pause between two single executions. The next one must not begin before the writes of the last one have
/// finished.
const PAUSE: Duration = Duration::from_millis(20);
/// The number of targets of a crowd of rivals.
const FEW: usize = 12;

/// The targets of the executions in a crowd.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Each execution has its own target, and runs.
    Own,
    /// All executions compete for a few targets. One runs on each target, and the others are skipped.
    Rivals,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Rivals => "rivals",
        }
    }

    fn target(self, number: usize) -> String {
        match self {
            Self::Own => format!("node/crowd-{number:05}"),
            Self::Rivals => format!("node/crowd-{}", number % FEW),
        }
    }
}

/// Measures single executions beside crowds of this size and of both shapes, in this many rounds. The operator watches
/// all namespaces, so this step must not run in a user's cluster.
pub(crate) async fn fairness(bench: &mut Bench, crowd: usize, rounds: usize) -> Result<()> {
    let other = Arc::clone(&bench.worlds.floor);
    let options = WorldOptions { all_namespaces: true, ..WorldOptions::default() };
    let world = World::with(other.control_plane(), "crowd", options).await?;
    let measured = async {
        for shape in [Shape::Own, Shape::Rivals] {
            for round in 0..rounds {
                let order = [Kind::Floor, Kind::Operator];
                let mut p99 = [0.0; 2];
                for at in [round % 2, (round + 1) % 2] {
                    p99[at] = beside(bench, (&world, &other), order[at], shape, crowd).await?;
                }
                let [of_floor, of_operator] = p99;
                bench.results.add(
                    &format!("fairness/{}/ratio", shape.name()),
                    "times the floor",
                    of_operator / of_floor,
                );
            }
        }
        anyhow::Ok(())
    }
    .await;
    clear(&world, &other).await?;
    world.close().await?;
    measured
}

/// Measures single executions beside a crowd until the whole crowd is decided. Returns the p99 of their waits.
async fn beside(
    bench: &mut Bench,
    (world, other): (&World, &World),
    kind: Kind,
    shape: Shape,
    crowd: usize,
) -> Result<f64> {
    // All executions of the crowd exist before the operator starts, so that it has to decide on all of them.
    let execution = |number| (format!("crowd-{number:05}"), shape.target(number));
    player::create_all(world, (0..crowd).map(execution)).await?;
    let observer = Observer::start(world).await?;
    let mut subjects = match kind {
        Kind::Operator => vec![bench.subjects.start(kind, world, Pick::All).await?],
        Kind::Floor => {
            let of_crowd = match shape {
                Shape::Own => Pick::OneByOne,
                Shape::Rivals => Pick::StormOneByOne,
            };
            let singles = bench.subjects.start_floor(world, other.namespace(), Pick::All).await?;
            let crowd = bench.subjects.start_floor(world, world.namespace(), of_crowd).await?;
            vec![Subject::Floor(singles), Subject::Floor(crowd)]
        }
    };
    let begun = Instant::now();
    let is_over = |seen: &Seen| seen.running.len() + seen.skipped.len() == crowd;
    let singles = singles(other, &mut subjects, &observer, is_over).await?;
    let took = begun.elapsed();
    for subject in subjects {
        subject.stop().await?;
    }
    clear(world, other).await?;

    let who = match kind {
        Kind::Operator => "operator",
        Kind::Floor => "floor",
    };
    let name = |what: &str| format!("fairness/{}/{who}/{what}", shape.name());
    let p99 = percentile(&singles.waited, 0.99);
    bench.results.add(&name("p50"), "ms", percentile(&singles.waited, 0.5));
    bench.results.add(&name("p99"), "ms", p99);
    bench.results.add(&name("creation/p99"), "ms", percentile(&singles.created, 0.99));
    bench.results.add(&name("crowd"), "µs per execution", millis(took) * 1e3 / float(crowd));
    bench.say(&format!(
        "{who}: {} single executions beside {crowd} of another namespace ({}): p50 {:.1} ms, p99 {p99:.1} ms, of which \
         their creation {:.1} ms; the crowd took {:.1} s",
        singles.waited.len(),
        shape.name(),
        percentile(&singles.waited, 0.5),
        percentile(&singles.created, 0.99),
        took.as_secs_f64()
    ));
    Ok(p99)
}

async fn clear(world: &World, other: &World) -> Result<()> {
    player::clear(world).await?;
    player::clear(other).await
}

/// How long single executions waited, in milliseconds.
#[derive(Default)]
struct Singles {
    /// The times from before the creation of an execution until its run existed.
    waited: Vec<f64>,
    /// The times until the creation was answered. This part depends only on the API server.
    created: Vec<f64>,
}

/// Creates single executions one after the other, each on its own target, and waits for each run.
async fn singles(
    world: &World,
    subjects: &mut [Subject],
    observer: &Observer,
    is_over: impl Fn(&Seen) -> bool,
) -> Result<Singles> {
    let mut times = Singles::default();
    loop {
        let name = format!("single-{:05}", times.waited.len());
        let begun = Instant::now();
        player::execution(world, &name, &format!("node/{name}")).create().await?;
        times.created.push(millis(begun.elapsed()));
        let seen = |seen: &Seen| Some((*seen.created.get(&name)?, is_over(seen)));
        let (created, is_over) = Subject::until_of_all(subjects, observer.until("its run is created", seen)).await?;
        times.waited.push(millis(created - begun));
        if is_over {
            return Ok(times);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
