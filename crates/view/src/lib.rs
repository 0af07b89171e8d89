//! The view of a cluster: converts objects from the API server to small records, stored by target.
//!
//! The operator fills the view from its watches; the plugin fills it from one list of each kind. Both make decisions on
//! the same view. It writes nothing, has no clock and no metrics, and does not know which replica leads.

pub mod call;
pub mod error_chain;
pub mod index;
pub mod observe;
pub mod partial;
pub mod printable;
pub mod read;
pub mod source;
pub mod spans;
