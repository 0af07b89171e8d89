//! Plays of many seeds: nothing is broken, and the same seed always leads to the same requests.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use wfe_simulation::outcome::Outcome;
use wfe_simulation::plan::Plan;
use wfe_simulation::world::{How, play};

/// How many seeds are played. `hashes.txt` has 200; `simulate seeds --count 200 --hashes` plays them all.
const SEEDS: u64 = 150;
/// Each seed that this divides is played twice.
const TWICE: u64 = 20;

/// Plays seeds on all processors.
fn play_all(seeds: u64, look: impl Fn(u64, Outcome) + Sync) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    look(seed, play(&Plan::of_seed(seed), How::default()).unwrap());
                }
            });
        }
    });
}

#[test]
fn nothing_is_broken_and_each_seed_sends_the_requests_that_are_on_record() {
    let recorded: Vec<&str> = include_str!("hashes.txt").lines().collect();
    let problems = Mutex::new(Vec::new());
    play_all(SEEDS, |seed, outcome| {
        let mut problems = problems.lock().unwrap();
        for violation in &outcome.violations {
            problems.push(format!("seed {seed}: {violation}"));
        }
        let hash = format!("{seed} {}", outcome.hash);
        if !recorded.contains(&hash.as_str()) {
            problems
                .push(format!("seed {seed} sends other requests than those on record: its hash is {}", outcome.hash));
        }
        if seed % TWICE == 0 {
            let again = play(&Plan::of_seed(seed), How::default()).unwrap();
            if again != outcome {
                problems.push(format!("seed {seed} played twice differs: {} and {}", outcome.hash, again.hash));
            }
        }
    });
    let problems = problems.into_inner().unwrap();
    let (first, rest) = (&problems[..problems.len().min(10)], problems.len().saturating_sub(10));
    assert!(
        problems.is_empty(),
        "{}\nand {rest} more; `simulate play --seed N --requests` plays one of them; where a change means to send other \
         requests, `simulate seeds --count 200 --hashes` prints the new record",
        first.join("\n")
    );
}

#[test]
fn the_same_seed_sends_the_same_bytes_twenty_times() {
    let plan = Plan::of_seed(3);
    assert!(!plan.faults.is_empty(), "a plan with faults");
    let first = play(&plan, How { lines: true }).unwrap();
    assert!(first.requests > 100, "{first:?}");
    for turn in 1..20 {
        let again = play(&plan, How { lines: true }).unwrap();
        let differs = first.lines.iter().zip(&again.lines).find(|(a, b)| a != b);
        assert_eq!(differs, None, "turn {turn}");
        assert_eq!(first, again, "turn {turn}");
    }
}
