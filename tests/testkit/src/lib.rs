//! Starts the real control plane for tests and the demo, and has builders, waits and dumps. For tests only.
//!
//! ```text
//! ControlPlane ── a supervisor process ── etcd, kube-apiserver, controller-manager, scheduler,
//!      │          (bin control-plane)     Tekton, kwok, registry
//!      └─ World ── namespaces of one test, shipped RBAC
//!           ├─ Operator     the real binary, its own process and token
//!           ├─ Proxy        between an operator and the API server: faults
//!           ├─ Prometheus   a real one, that scrapes an operator
//!           ├─ wfe(..)      builders
//!           ├─ await_..(..) watches with deadlines
//!           └─ record()     every change, for judging afterwards
//! ```
//! A test process has one shared control plane: [`ControlPlane::shared`], which [`World::new`] uses. Tests that change
//! cluster-scoped objects or stop a component start their own ([`ControlPlane::start`]).

mod account;
mod assets;
mod audit;
pub mod awaits;
pub mod bundle;
mod components;
mod control_plane;
pub mod demo;
mod deployed;
mod dump;
mod given;
mod http;
pub mod look;
pub mod manifests;
pub mod metrics;
mod operator;
pub mod pipeline;
mod pki;
mod place;
mod prepared;
pub mod process;
pub mod prometheus;
pub mod proxy;
mod random;
mod rbac;
pub mod record;
pub mod rights;
mod running;
mod stack;
pub mod supervisor;
mod terminal;
pub mod used_rights;
mod webhook;
pub mod wfe;
mod world;

pub use account::rights_of_people;
pub use assets::{Assets, clients, helm, previous, repository};
pub use audit::AuditEntry;
pub use bundle::Bundle;
pub use control_plane::{ComponentHandle, ControlPlane};
pub use look::is_terminal;
pub use metrics::Metrics;
pub use operator::{Operator, OperatorBuilder};
pub use pipeline::{Outcome, Pipeline};
pub use pki::issue as issue_certificate;
pub use prometheus::Prometheus;
pub use proxy::{Fault, Gate, Proxy, Refusal, When};
pub use record::{Change, Observed, Recording};
pub use rights::Right;
pub use stack::{Audit, Info, Options, Tekton};
pub use terminal::Terminal;
pub use wfe::WfeBuilder;
pub use world::{World, WorldOptions};
