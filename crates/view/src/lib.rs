//! The view of a cluster: objects as they are sent, read into small records by target.
//!
//! The operator fills it from its watches, the plugin from one list of each kind, and both decide on the same view. It
//! writes nothing, counts nothing, has no clock, and does not know who leads.

pub mod call;
pub mod error_chain;
pub mod index;
pub mod observe;
pub mod partial;
pub mod printable;
pub mod read;
pub mod source;
