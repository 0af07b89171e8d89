//! The size of each step of the benchmark.

use std::time::Duration;

/// The size of each step.
pub(crate) struct Size {
    pub(crate) pairs: usize,
    /// The number of pairs of rounds with TaskRuns and pods.
    pub(crate) task_pairs: usize,
    pub(crate) blocks: usize,
    pub(crate) load_seconds: u64,
    pub(crate) storms: &'static [(usize, usize)],
    pub(crate) targets: Option<usize>,
    /// The number of executions that wait behind one place, and the number of rounds.
    pub(crate) line: (usize, usize),
    /// The number of executions in a storm with poison, and the number of pairs.
    pub(crate) poison: (usize, usize),
    /// The number of batches of creations with the policies, and also of batches without.
    pub(crate) policies: usize,
    /// The number of executions in each crowd, and the number of rounds.
    pub(crate) fairness: (usize, usize),
    /// The number of schedules, and the number of rounds in which some are due at the same time.
    pub(crate) schedules: (usize, usize),
    /// The number of schedules that are due in the same minute, and the number of rounds.
    pub(crate) minute: (usize, usize),
    pub(crate) past: &'static [usize],
    pub(crate) starts: usize,
    pub(crate) idle: Duration,
}

pub(crate) const FULL: Size = Size {
    pairs: 8,
    task_pairs: 2,
    blocks: 8,
    load_seconds: 10,
    storms: &[(100, 2), (1000, 4), (3000, 1), (10_000, 2)],
    targets: Some(5000),
    line: (10_000, 2),
    poison: (10_000, 2),
    policies: 100,
    fairness: (2400, 3),
    schedules: (5000, 6),
    minute: (500, 5),
    past: &[0, 2500, 10_000, 50_000, 100_000],
    starts: 5,
    idle: Duration::from_secs(30),
};

pub(crate) const QUICK: Size = Size {
    pairs: 2,
    task_pairs: 1,
    blocks: 2,
    load_seconds: 4,
    storms: &[(100, 2), (1000, 2)],
    targets: None,
    line: (1000, 1),
    poison: (500, 1),
    policies: 25,
    fairness: (600, 1),
    schedules: (200, 2),
    minute: (100, 1),
    past: &[0, 2500],
    starts: 1,
    idle: Duration::from_secs(5),
};
