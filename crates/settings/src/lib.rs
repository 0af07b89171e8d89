//! The settings of the operator: its command line, and the `ConfigMap` whose keys override it.
//!
//! The operator runs with these settings. The plugin `kubectl-wfe` reads the settings of an operator in a cluster, to
//! predict the operator's decisions. All functions here work on texts: they do not call a cluster, read a clock or log.

pub mod cli;
pub mod config;
pub mod log;
pub mod policies;
pub mod published;
pub mod table;
pub mod timing;
