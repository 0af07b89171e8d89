//! Structured logs on standard error: one line per transition, with wfe, target and reason.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::sync::Arc;

use tracing_subscriber::{EnvFilter, reload};
use wfe_settings::log::LogFormat;

/// How much is logged, from now on. Cheap to clone.
#[derive(Clone)]
pub struct LogLevel(Arc<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Changes it. `filter` comes from [`parse_level`](wfe_settings::log::parse_level).
    pub fn set(&self, filter: &str) {
        if let Err(error) = (self.0)(EnvFilter::new(filter)) {
            tracing::warn!(%error, "the log level stays as it is");
        }
    }
}

/// Tells whether lines have colours: on a terminal, unless the variable `NO_COLOR` has a value
/// (<https://no-color.org>).
fn has_colours(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Starts logging. `filter` comes from [`parse_level`](wfe_settings::log::parse_level).
#[must_use]
pub fn start(format: LogFormat, filter: &str) -> LogLevel {
    let builder = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter)).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let has_colours = has_colours(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
            let builder = builder.with_ansi(has_colours).with_filter_reloading();
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

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use wfe_settings::log::parse_level;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what a log at a level says when kube cannot read an answer, and of its other troubles.
    fn logged(level: &str) -> String {
        let lines = Lines::default();
        let to = lines.clone();
        let filter = EnvFilter::new(parse_level(level).unwrap());
        let subscriber =
            tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || to.clone()).with_ansi(false);
        tracing::subscriber::with_default(subscriber.finish(), || {
            tracing::warn!(target: "kube_client::client", "body");
            tracing::error!(target: "kube_client::client::builder", "connection");
            tracing::warn!(target: "kube_client::client::tls", "certificate");
            tracing::warn!(target: "kube_client::config", "kubeconfig");
        });
        let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn the_body_of_an_answer_is_logged_only_where_somebody_names_what_logs_it() {
        for level in ["info", "trace", "kube=debug", "warn,wfe_operator=debug,kube=trace"] {
            let said = logged(level);
            assert!(!said.contains("body") && !said.contains("connection"), "{level}: {said}");
            assert!(said.contains("certificate") && said.contains("kubeconfig"), "{level}: {said}");
        }
        assert!(logged("warn,kube_client::client=debug").contains("body"));
    }

    #[test]
    fn lines_have_colours_on_a_terminal_whose_user_wants_them() {
        for (is_terminal, no_color, expected) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (true, Some("0"), false),
            (false, None, false),
        ] {
            assert_eq!(has_colours(is_terminal, no_color.map(OsStr::new)), expected, "{is_terminal} {no_color:?}");
        }
    }
}
