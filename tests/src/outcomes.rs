//! The ways in which a run can end, each played on the control plane: its bundle, its obstacles, and the interventions.
//!
//! The recorder (`recorder/`) plays them as plain PipelineRuns and keeps what Tekton writes. `cluster/outcomes.rs`
//! plays them through the operator and compares the results. This module knows neither.

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

/// Returns all plays, in the order in which the reference page lists them.
#[must_use]
pub fn plays() -> Vec<Play> {
    [steps::plays(), before::plays(), deadlines::plays(), people::plays(), shapes::plays()].concat()
}
