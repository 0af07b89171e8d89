//! Decides whether an execution may run on its target now, and what the next step is.
//!
//! [`decide`](decide::decide) reads one [`Target`](target::Target) as a value. It returns [`Action`](action::Action)s,
//! each with its precondition, and the time of the next decision.
//!
//! ```text
//!  Target { executions, runs, residue }
//!      ──► decide(&Target, &Policy, now)
//!      ──► Decision { actions, waiting, judged, blocks, wake }
//! ```
//!
//! This crate knows neither Kubernetes objects nor Tekton: `wfe-operator` and `wfe-tekton` translate. It has no client,
//! clock, randomness or async. The time is an argument, and wake-ups are part of the result.

pub mod action;
pub mod awaiting;
pub mod backoff;
pub mod blocks;
pub mod bundle;
pub mod chain;
#[cfg(any(test, feature = "check"))]
pub mod check;
pub mod circuit;
pub mod decide;
pub mod duration;
pub mod ending;
pub mod evidence;
pub mod execution;
pub mod explain;
pub mod findings;
pub mod fingerprint;
pub mod guard;
pub mod history;
pub mod limit;
mod moment;
pub mod name;
pub mod policy;
pub mod reason;
pub mod recurrence;
pub mod residue;
pub mod retry;
pub mod rules;
pub mod run;
pub mod schedule;
pub mod target;
#[cfg(test)]
mod testing;
mod text;
pub mod triage;
pub mod tries;
pub mod trouble;
pub mod uid_map;
pub mod verdict;
pub mod waiting;
mod words;

pub use moment::MAX_AHEAD;

/// A moment in UTC. The API stores times in whole seconds.
pub type Time = chrono::DateTime<chrono::Utc>;
