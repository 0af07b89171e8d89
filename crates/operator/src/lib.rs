//! The WorkflowExecution operator: the kube-rs shell around the decision in `wfe-core`.
//!
//! ```text
//!  watch ──► index ──► queue ──► decide (core) ──► perform ──► API server
//!    ▲                                                │
//!    └────────────────────────────────────────────────┘
//! ```
//!
//! The operator observes, performs and reports. Only `wfe-core` decides.

pub mod clock;
pub mod cluster;
pub mod config;
pub mod engine;
pub mod events;
pub mod health;
pub mod metrics;
pub mod perform;
pub mod process;
pub mod replica;
pub mod run;
pub mod server;
pub mod status;
pub mod traces;
pub mod verb;
