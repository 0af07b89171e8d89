//! What the API server itself refuses, with the CRD and the policies of this repository: no operator runs here.

mod attempts;
mod builder;
mod cancellation;
mod clearance;
mod objects;
mod people;
mod retry;
mod spec;
mod status;
mod tools;
mod workflow;
