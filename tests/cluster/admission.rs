//! What the API server itself refuses, with the CRD of this repository and nothing else: no operator runs here.

mod objects;
mod spec;
mod status;
mod tools;
