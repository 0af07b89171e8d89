//! What makes a program a process: its tasks, signals and logs.

pub mod parts;
pub mod signals;
pub mod telemetry;
