//! A line: many executions, each on its own target, under a limit that allows one of them to run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Bench;
use crate::counters::{Counters, Probe};
use crate::numbers::{float, millis};
use crate::observer::{Observer, Seen};
use crate::player::{self, Mode, Player};
use crate::rounds::{last, names};
use crate::subject::{Operator, cpu_seconds};
use crate::verbs::verbs;

/// The limit, in the format of the flag.
const ONE: &str = r#"[{"name":"one","maxRunning":1}]"#;
/// How long the operator is observed while the line does not move.
const REST: Duration = Duration::from_secs(5);
/// The number of executions that run one after the other, to measure the cost of each turn.
const TURNS: usize = 50;

/// Returns when the last execution was decided: one runs, and each of the others waits.
fn decided(seen: &Seen, count: usize) -> Option<Instant> {
    if seen.running.len() + seen.waiting.len() < count {
        return None;
    }
    // The execution that runs may have waited first.
    let waiting = seen.waiting.keys().filter(|name| !seen.running.contains_key(*name)).count();
    last(&seen.waiting).filter(|_| seen.running.len() == 1 && waiting == count - 1)
}

/// Measures a line of this many executions: the time until all are decided, the operator's requests while the line
/// rests, the verbs of `kubectl wfe`, and the turns.
pub(crate) async fn line(bench: &mut Bench, count: usize, rounds: usize) -> Result<()> {
    for number in 0..rounds {
        let world = Arc::clone(&bench.worlds.operator);
        let names = names(bench, count);
        let before = Counters::read(&bench.client).await?;
        let observer = Observer::start(&world).await?;
        let probe = Probe::start(bench.client.clone());
        let operator = Operator::start_limited(&world, &bench.subjects.program, ONE).await?;
        let pid = operator.pid();
        let begun = Instant::now();
        player::create_all(&world, names.iter().map(|name| (name.clone(), format!("node/{name}")))).await?;
        let all = observer.until("one runs, all others wait", |seen| decided(seen, count)).await?;
        let mut counted = before.since(&bench.client).await?;
        counted.disturbed.extend(probe.slow());

        let before = operator.requests().await?;
        tokio::time::sleep(REST).await;
        let at_rest = operator.requests().await? - before;

        verbs(bench, &world, &names[count / 2]).await?;
        let cpu = cpu_seconds(pid)?;
        let tekton = Player::start(world.client(), &world.execution_namespace(), Mode::Plain);
        let turns = |seen: &Seen| (seen.ended.len() >= TURNS).then_some(());
        observer.until("the line moves", turns).await?;
        let of_turns = (cpu_seconds(pid)? - cpu) * 1e3 / float(TURNS);
        drop((tekton, observer));
        operator.stop().await?;
        player::clear(&world).await?;
        if !counted.disturbed.is_empty() {
            bench.disturbed(&format!("a line of {count}"), &format!("{:?}", counted.disturbed));
            continue;
        }

        let each = millis(all - begun) * 1e3 / float(count);
        bench.results.add(&format!("limits/us/{count}"), "µs per execution", each);
        for request in ["create events", "patch workflowexecutions/status"] {
            let sent = counted.requests.get(request).copied().unwrap_or_default();
            bench.results.add(&format!("limits/{request}/{count}"), "per execution", sent / float(count));
        }
        bench.results.add("limits/requests_at_rest", "in five seconds", at_rest);
        bench.results.add(&format!("limits/turn/cpu_ms/{count}"), "ms per turn", of_turns);
        bench.say(&format!(
            "a line of {count} {}/{rounds}: {each:.0} µs each, {at_rest:.0} requests at rest, {of_turns:.2} ms of \
             processor a turn",
            number + 1,
        ));
    }
    Ok(())
}
