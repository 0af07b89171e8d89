//! What is seen of a cluster: objects as they are sent, read into small records, and filed under their targets.
//!
//! The operator fills it from its watches, the plugin from one list of each kind, and both decide on the same view. It
//! writes nothing, counts nothing, and has neither a clock nor an opinion about who leads.

pub mod call;
pub mod causes;
pub mod index;
pub mod lean;
pub mod observe;
pub mod printable;
pub mod read;
pub mod source;
