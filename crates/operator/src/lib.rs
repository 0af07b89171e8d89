//! The WorkflowExecution operator: the kube-rs shell around the decision in `wfe-core`.
//!
//! ```text
//!  watch ──► index ──► queue ──► decide (core) ──► perform ──► API server
//!    ▲                                                │
//!    └────────────────────────────────────────────────┘
//! ```
//!
//! It observes, performs and reports. It never decides.

pub mod client;
pub mod clock;
pub mod config;
pub mod crds;
pub mod ends;
pub mod engine;
pub mod events;
pub mod health;
pub mod hearing;
pub mod lane;
pub mod leadership;
pub mod lease;
pub mod metrics;
pub mod pace;
pub mod parts;
pub mod perform;
pub mod policies;
pub mod queue;
pub mod replica;
pub mod run;
pub mod server;
pub mod signals;
pub mod status;
pub mod telemetry;
pub mod untold;
pub mod verb;
pub mod watch;
pub mod witness;
