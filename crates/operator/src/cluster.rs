//! The operator's access to the API server: requests and their limits, watches, and leader election.

pub mod client;
pub mod concurrency_limit;
pub mod crds;
pub mod lane;
pub mod leadership;
pub mod lease;
pub mod policies;
pub mod staleness;
pub mod watch;
