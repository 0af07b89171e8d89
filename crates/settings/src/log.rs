//! Parses the values of the log flags: a format, and a level or a filter.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// A filter that silences the library kube. The library logs each failed connection and watch without advice, but the
/// operator logs them once, with advice. The library also logs the whole body of an unreadable answer, which may
/// contain parameter values.
const KUBE_OFF: &str = "kube_client::client=off,kube_client::client::tls=warn,kube_runtime::watcher=off";

/// The log levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// JSON for machines: one object per line.
    Json,
}

/// Parses a log level: `error`, `warn`, `info`, `debug` or `trace` for the operator's own lines, or a full filter such
/// as `warn,wfe_operator=debug,kube=debug`.
///
/// # Errors
/// If the text is neither.
pub fn parse_level(text: &str) -> Result<String, String> {
    // The filter would take any other word for the name of a log target, and silence all other log targets.
    let is_level = |directive: &str| LEVELS.contains(&directive.rsplit('=').next().unwrap_or_default());
    if let Some(strange) = text.split(',').find(|directive| !is_level(directive)) {
        return Err(format!("names no level in {strange:?}: one of {}", LEVELS.join(", ")));
    }
    let filter = match text {
        "error" | "warn" | "info" | "debug" | "trace" => format!("warn,{KUBE_OFF},wfe_operator={text}"),
        // `KUBE_OFF` applies even if the text has a filter for all of kube. Only a filter for the same log targets
        // overrides `KUBE_OFF`.
        _ => format!("{KUBE_OFF},{text}"),
    };
    EnvFilter::try_new(&filter).map(|_| filter).map_err(|error| error.to_string())
}
