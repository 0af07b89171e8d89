//! Flags of leader election.

use std::time::Duration;

use clap::{ArgAction, Args};

use super::parse_duration;
use crate::timing::Timing;

/// The longest name of an object in Kubernetes, and so of a pod.
const MAX_NAME: usize = 253;

/// The flags of leader election.
#[derive(Clone, Debug, Args)]
pub struct LeaseArgs {
    /// Whether replicas elect a leader. Only the leader decides and writes. Set the flag to false only for a single
    /// process: without an election no Lease is used, and several processes interfere with each other.
    #[arg(
        long,
        env = "WFE_LEADER_ELECT",
        value_name = "BOOL",
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub leader_elect: bool,

    /// The name of the Lease, in the operator's own namespace. Operators that watch different namespaces need different
    /// Leases.
    #[arg(long, env = "WFE_LEASE_NAME", value_name = "NAME", default_value = "wfe-operator", value_parser = parse_lease_name)]
    pub lease_name: String,

    /// How long a Lease is valid without a renewal. After that another replica may lead (a Go duration, at most 5m).
    #[arg(long, env = "WFE_LEASE_DURATION", value_name = "DURATION", default_value = "8s", value_parser = parse_duration)]
    pub lease_duration: Duration,

    /// How long the leader keeps writing if it cannot renew the Lease; at least 1s less than --lease-duration.
    #[arg(long, env = "WFE_RENEW_DEADLINE", value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    pub renew_deadline: Duration,

    /// How often a replica renews or reads the Lease, and the time limit of each such request; at most half of
    /// --renew-deadline.
    #[arg(long, env = "WFE_RETRY_PERIOD", value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub retry_period: Duration,

    /// The name of this replica in the Lease, in events and in the User-Agent. In the Lease and the User-Agent a random
    /// part makes it unique. Default: the name of the host, or of the pod.
    #[arg(long, env = "WFE_IDENTITY", value_name = "NAME", value_parser = parse_identity)]
    pub identity: Option<String>,
}

impl LeaseArgs {
    /// Returns the times, checked against each other.
    ///
    /// # Errors
    /// Which flags contradict each other.
    pub fn timing(&self) -> Result<Timing, String> {
        Timing::new(self.lease_duration, self.renew_deadline, self.retry_period)
    }
}

fn parse_lease_name(text: &str) -> Result<String, String> {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let begins_and_ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = text.starts_with(begins_and_ends) && text.ends_with(begins_and_ends) && text.chars().all(is_legal);
    if is_name && text.len() <= MAX_NAME {
        Ok(text.to_owned())
    } else {
        Err("must be the name of an object".to_owned())
    }
}

/// Parses the identity, which becomes part of a header and of log lines.
fn parse_identity(text: &str) -> Result<String, String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_legal) {
        Ok(text.to_owned())
    } else {
        Err(format!("must be 1 to {MAX_NAME} letters, digits, '-', '.' or '_'"))
    }
}
