//! What is between the operator and the API server: requests, their limits, the watches, and who may write.

pub mod client;
pub mod crds;
pub mod hearing;
pub mod lane;
pub mod leadership;
pub mod lease;
pub mod pace;
pub mod policies;
pub mod watch;
