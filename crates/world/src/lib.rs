//! A fake API server in memory that answers as the real one does, and the plans that check this on both.
//!
//! ```text
//! kube::Client ── service::FakeApi ── server::Server      one value: objects, one revision counter, one log of changes
//!      │                                   ├─ schema      what the generated CRD allows, read from the CRD
//!      │                                   └─ rules       its CEL rules, read from the CRD
//!      └── conformance::play(plan)         the same requests, sent to the fake and to a real kube-apiserver
//! ```
//! The server knows no clock and draws no random numbers: the time comes in with each request, and uids come from a
//! seed. What the plans of [`conformance`] do not ask is not simulated, and is answered with an error.

pub mod conformance;
pub mod server;
pub mod service;
