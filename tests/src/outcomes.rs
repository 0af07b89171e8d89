//! The ways in which a run can end. Each is a play on the control plane: a bundle, obstacles, and interventions.
//!
//! The recorder (`recorder/`) plays them as plain PipelineRuns, and records what Tekton writes. `cluster/outcomes.rs`
//! plays them through the operator, and compares the results. This module depends on neither.

mod before;
mod deadlines;
mod people;
mod play;
mod repair;
mod script;
mod shapes;
mod steps;

pub use play::{End, Needs, Play, await_rest};
pub use repair::repair;

/// Returns all plays, in the order of the reference page.
#[must_use]
pub fn plays() -> Vec<Play> {
    [steps::plays(), before::plays(), deadlines::plays(), people::plays(), shapes::plays()].concat()
}
