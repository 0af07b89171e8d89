//! The operator in simulation: its own replicas in one thread and in virtual time, against a fake API server that
//! answers as the real one does.
//!
//! ```text
//! plan (of a seed, or of a file) ── world ── network ── service::FakeApi ◄── cluster: Tekton, collector, kubelet
//!                                     └── oracle: auditor, second reading of each decision, what is left at the end
//! ```
//! The fake server, and how it is compared with a real one:
//!
//! ```text
//! kube::Client ── service::FakeApi ── server::Server      one value: objects, one revision counter, one log of changes
//!      │                                   ├─ schema      what the generated CRD allows, read from the CRD
//!      │                                   └─ rules       its CEL rules, read from the CRD
//!      └── conformance::play(plan)         the same requests, sent to the fake and to a real kube-apiserver
//! ```
//! The server has no clock and draws no random numbers: each request contains its time, and uids follow from a seed.
//! Features that no plan of [`conformance`] uses are not simulated. A request for such a feature gets an error.

pub mod cluster;
pub mod conformance;
pub mod network;
pub mod oracle;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod server;
pub mod service;
pub mod shrink;
pub mod users;
pub mod world;
