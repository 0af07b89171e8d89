//! Tests against the real control plane. Each module tests one aspect.
//!
//! The tests of a test run share one control plane, and each has its own namespaces. Tests that stop a component or
//! need other components start a control plane of their own. See docs/testing.md.

// The whole file is test code: clippy lets helpers panic as tests do.
#![cfg(test)]

mod admission;
mod another_crd;
mod audited;
mod awaiting;
mod blocked;
mod budget;
mod cancelled;
mod chart;
mod circuits;
mod clearing;
mod configuration;
mod conformance;
mod control_plane;
mod documented;
mod evidence;
mod expect;
mod faults;
mod gitops;
mod held;
mod history;
mod hostile;
mod kubectl_wfe;
mod leader;
mod lifecycle;
mod limits;
mod lock;
mod metrics_port;
mod orchestrator;
mod outcomes;
mod poison;
mod policies;
mod process;
mod prometheus;
mod refused;
mod restore;
mod retries;
mod rights;
mod schedules;
mod storm;
mod strange;
mod tekton_words;
mod told;
mod traces;
mod tries;
mod ttl;
mod tutorial;
mod unattended;
mod unguarded;
mod upgrade;
mod webhook;
