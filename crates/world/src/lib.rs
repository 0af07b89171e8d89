//! A fake API server in memory that answers as the real one does.
//!
//! ```text
//! kube::Client ── service::FakeApi ── server::Server      one value: objects, one revision counter, one log of changes
//!      │                                   ├─ schema      what the generated CRD allows, read from the CRD
//!      │                                   └─ rules       its CEL rules, read from the CRD
//! ```
//! The server knows no clock and draws no random numbers: the time comes in with each request, and uids come from a seed.

pub mod server;
pub mod service;
