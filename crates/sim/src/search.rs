//! The searches.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::model::Setting;
use crate::trace::tell;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// How many different states it met.
    pub states: usize,
    /// How long it took.
    pub took: Duration,
    /// How many steps the longest path has.
    pub depth: usize,
    /// Broken claims with the steps that broke them.
    pub broken: Vec<(&'static str, Vec<String>)>,
}

/// Searches everything that a setting allows, or until a claim is broken.
#[must_use]
pub fn search(setting: Setting, threads: usize) -> Found {
    let started = Instant::now();
    let checker = setting.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let broken =
        checker.discoveries().into_iter().map(|(claim, path)| (claim, tell(&setting, path))).collect();
    Found { states: checker.unique_state_count(), took: started.elapsed(), depth: checker.max_depth(), broken }
}
