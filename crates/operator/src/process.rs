//! The tasks, signals and logs of the process.

pub mod signals;
pub mod supervised;
pub mod telemetry;
