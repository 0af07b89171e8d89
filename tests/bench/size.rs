//! The size of each step.

use std::time::Duration;

/// How large each step is.
pub(crate) struct Size {
    pub(crate) pairs: usize,
    /// Pairs with TaskRuns and pods.
    pub(crate) task_pairs: usize,
    pub(crate) blocks: usize,
    pub(crate) load_seconds: u64,
    pub(crate) storms: &'static [(usize, usize)],
    pub(crate) targets: Option<usize>,
    /// Executions of the storm beside the poison, and pairs.
    pub(crate) poison: (usize, usize),
    /// Batches of creations with the policies, and the same number without.
    pub(crate) policies: usize,
    /// Executions of each crowd beside the single ones, and rounds.
    pub(crate) fairness: (usize, usize),
    /// Schedules, and rounds in which some of them are due together.
    pub(crate) schedules: (usize, usize),
    /// Schedules that are due at the same minute, and rounds.
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
    poison: (10_000, 2),
    policies: 100,
    fairness: (2400, 3),
    schedules: (5000, 6),
    minute: (500, 3),
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
    poison: (500, 1),
    policies: 25,
    fairness: (600, 1),
    schedules: (200, 2),
    minute: (100, 1),
    past: &[0, 2500],
    starts: 1,
    idle: Duration::from_secs(5),
};
