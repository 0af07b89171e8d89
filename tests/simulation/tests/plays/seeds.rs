//! Plays of many seeds: no play breaks a rule, and the same seed always leads to the same requests.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::sync::Mutex;

use wfe_simulation::plan::Plan;
use wfe_simulation::world::{How, play};

use super::on_all_processors;

/// The number of seeds that are played by default, and with `WFE_TEST_ALL=1`. `hashes.txt` contains the hashes of the
/// larger number.
const SEEDS: (usize, usize) = (60, 200);
/// Every seed that is divisible by this number is played twice.
const TWICE: u64 = 20;
/// How many times one seed is played by default, and with `WFE_TEST_ALL=1`.
const TURNS: (usize, usize) = (5, 20);

fn count((usual, all): (usize, usize)) -> usize {
    if super::all() { all } else { usual }
}

#[test]
fn nothing_is_broken_and_each_seed_sends_the_requests_that_are_on_record() {
    let recorded: Vec<&str> = include_str!("../hashes.txt").lines().collect();
    let problems = Mutex::new(Vec::new());
    on_all_processors(count(SEEDS), |number| {
        let seed = number as u64;
        let outcome = play(&Plan::of_seed(seed), How::default()).unwrap();
        let mut problems = problems.lock().unwrap();
        for violation in &outcome.violations {
            problems.push(format!("seed {seed}: {violation}"));
        }
        let hash = format!("{seed} {}", outcome.hash);
        if !recorded.contains(&hash.as_str()) {
            problems
                .push(format!("seed {seed} sends other requests than those on record: its hash is {}", outcome.hash));
        }
        if seed.is_multiple_of(TWICE) {
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
fn the_same_seed_sends_the_same_bytes_every_time() {
    let plan = Plan::of_seed(3);
    assert!(!plan.faults.is_empty(), "a plan with faults");
    let first = play(&plan, How { lines: true }).unwrap();
    assert!(first.requests > 100, "{first:?}");
    for turn in 1..count(TURNS) {
        let again = play(&plan, How { lines: true }).unwrap();
        let differs = first.lines.iter().zip(&again.lines).find(|(a, b)| a != b);
        assert_eq!(differs, None, "turn {turn}");
        assert_eq!(first, again, "turn {turn}");
    }
}
