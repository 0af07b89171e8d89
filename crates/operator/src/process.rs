//! The tasks, signals and logs of the process.

pub mod parts;
pub mod signals;
pub mod telemetry;
