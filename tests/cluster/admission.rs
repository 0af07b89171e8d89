//! Requests that the API server itself refuses, with the CRD and the policies of this repository. No operator runs in
//! these tests.

mod attempts;
mod builder;
mod cancellation;
mod canonical;
mod clearance;
mod collected;
mod deletion;
pub(crate) mod marks;
pub(crate) mod objects;
mod owner;
pub(crate) mod people;
mod recovery;
pub(crate) mod retry;
mod spec;
mod status;
mod target;
mod threats;
mod tools;
pub(crate) mod workflow;
