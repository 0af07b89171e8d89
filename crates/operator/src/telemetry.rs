//! Structured logs on standard error: one line per transition, with wfe, target and reason.

use std::io::IsTerminal;
use std::sync::Arc;

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, reload};

/// kube logs each failed connection and each failed watch on its own, without what to do; ours say that, once.
const KUBE_OFF: &str = "kube_client::client::builder=off,kube_runtime::watcher=off";

/// How much can be logged.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object per line.
    Json,
}

/// Reads a log level: `error`, `warn`, `info`, `debug` or `trace` for the operator's own lines, or a full filter such
/// as `warn,wfe_operator=debug,kube=debug`.
///
/// # Errors
/// When it is neither.
pub fn parse_level(text: &str) -> Result<String, String> {
    // A word that is no level would be the name of a target, and silence all others.
    let is_level = |directive: &str| LEVELS.contains(&directive.rsplit('=').next().unwrap_or_default());
    if let Some(strange) = text.split(',').find(|directive| !is_level(directive)) {
        return Err(format!("names no level in {strange:?}: one of {}", LEVELS.join(", ")));
    }
    let filter = match text {
        "error" | "warn" | "info" | "debug" | "trace" => format!("warn,{KUBE_OFF},wfe_operator={text}"),
        _ => text.to_owned(),
    };
    EnvFilter::try_new(&filter).map(|_| filter).map_err(|error| error.to_string())
}

/// How much is logged, from now on. Cheap to clone.
#[derive(Clone)]
pub struct LogLevel(Arc<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Changes it. `filter` comes from [`parse_level`].
    pub fn set(&self, filter: &str) {
        if let Err(error) = (self.0)(EnvFilter::new(filter)) {
            tracing::warn!(%error, "the log level stays as it is");
        }
    }
}

/// Starts logging. `filter` comes from [`parse_level`].
#[must_use]
pub fn start(format: LogFormat, filter: &str) -> LogLevel {
    let builder = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter)).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let builder = builder.with_ansi(std::io::stderr().is_terminal()).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            LogLevel(Arc::new(move |filter| handle.reload(filter)))
        }
        LogFormat::Json => {
            let builder = builder.json().with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            LogLevel(Arc::new(move |filter| handle.reload(filter)))
        }
    }
}
