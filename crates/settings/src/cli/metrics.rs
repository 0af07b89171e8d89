//! The flags of the metrics port.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Where the metrics are served, how, and to whom.
#[derive(Clone, Debug, Args)]
pub struct MetricsArgs {
    /// The address on which the path /metrics serves Prometheus metrics.
    #[arg(long, env = "WFE_METRICS_ADDRESS", value_name = "IP:PORT", default_value = "0.0.0.0:9090")]
    pub metrics_address: SocketAddr,

    /// The certificate file for metrics over TLS (PEM, with its chain). A new certificate is used within a minute.
    /// Default: plain HTTP.
    #[arg(
        long,
        env = "WFE_METRICS_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "metrics_tls_key",
        required_if_eq("metrics_authentication", "true")
    )]
    pub metrics_tls_certificate: Option<PathBuf>,

    /// The key file of that certificate (PEM).
    #[arg(long, env = "WFE_METRICS_TLS_KEY", value_name = "FILE", requires = "metrics_tls_certificate")]
    pub metrics_tls_key: Option<PathBuf>,

    /// Whether a client must send a token of the cluster (TokenReview) and needs permission to get the path /metrics
    /// (SubjectAccessReview). Requires TLS, which protects the token in transit.
    #[arg(
        long,
        env = "WFE_METRICS_AUTHENTICATION",
        value_name = "true|false",
        default_value = "false",
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub metrics_authentication: bool,
}
