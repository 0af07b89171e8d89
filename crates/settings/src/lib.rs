//! The settings of the operator: its command line, and the `ConfigMap` whose keys win over it.
//!
//! The operator runs by its settings. The plugin `kubectl-wfe` reads the settings of an operator in a cluster, to
//! foretell its decisions. Everything here is a function of texts: nothing asks a cluster, reads a clock or logs.

pub mod cli;
pub mod config;
pub mod log;
pub mod policies;
pub mod table;
pub mod timing;
