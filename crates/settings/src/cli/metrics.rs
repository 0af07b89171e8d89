//! The flags of the metrics port.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Where the metrics are served, how, and to whom.
#[derive(Clone, Debug, Args)]
pub struct MetricsArgs {
    /// Where Prometheus metrics are served, under /metrics.
    #[arg(long, env = "WFE_METRICS_ADDRESS", value_name = "IP:PORT", default_value = "0.0.0.0:9090")]
    pub metrics_address: SocketAddr,

    /// The file with the certificate (PEM, with what leads to its authority) that the metrics are served with, over
    /// TLS. A new one is in use within a minute. Default: plain HTTP.
    #[arg(
        long,
        env = "WFE_METRICS_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "metrics_tls_key",
        required_if_eq("metrics_authentication", "true")
    )]
    pub metrics_tls_certificate: Option<PathBuf>,

    /// The file with the key (PEM) of that certificate.
    #[arg(long, env = "WFE_METRICS_TLS_KEY", value_name = "FILE", requires = "metrics_tls_certificate")]
    pub metrics_tls_key: Option<PathBuf>,

    /// Whether the metrics are served only to those who send a token of the cluster (TokenReview) and have the right to
    /// get the path /metrics (SubjectAccessReview). Needs TLS: a token is not for everybody on the way.
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
