//! Writes structured logs to standard error: one line per transition, with wfe, target and reason.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use tracing_subscriber::{EnvFilter, reload};
use wfe_settings::log::LogFormat;
use wfe_view::printable;

/// Changes the log level at run time. Cheap to clone.
#[derive(Clone)]
pub struct LogLevel(Arc<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Changes the level. `filter` comes from [`parse_level`](wfe_settings::log::parse_level).
    pub fn set(&self, filter: &str) {
        if let Err(error) = (self.0)(EnvFilter::new(filter)) {
            tracing::warn!(%error, "the log level stays as it is");
        }
    }
}

/// Returns whether lines have colours: only on a terminal, and not if the variable `NO_COLOR` has a value
/// (<https://no-color.org>).
fn has_colours(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// The escape sequences that tracing writes around a coloured part of a line. The same sequences in a shown field
/// cannot be distinguished, so they pass, too. They can neither hide text nor move the cursor.
const COLOURS: [&str; 10] = ["[0m", "[1m", "[2m", "[3m", "[31m", "[32m", "[33m", "[34m", "[35m", "[36m"];

/// Writes log lines in which foreign text can neither control a terminal nor imitate a line.
struct Printable<W> {
    to: W,
    show: fn(&str) -> String,
}

impl<W: Write> Write for Printable<W> {
    /// Writes one event. Tracing passes each event as a whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = (self.show)(text.strip_suffix('\n').unwrap_or(&text)) + "\n";
        self.to.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns the function that renders an event.
fn shown_as(format: LogFormat, has_colours: bool) -> fn(&str) -> String {
    match format {
        LogFormat::Json => |text| printable::json(text).into_owned(),
        LogFormat::Text if !has_colours => |text| printable::line(text).into_owned(),
        LogFormat::Text => |text| {
            let mut parts = text.split('\u{1b}');
            let first = printable::line(parts.next().unwrap_or_default()).into_owned();
            parts.fold(first, |shown, part| {
                let is_ours = COLOURS.iter().any(|colour| part.starts_with(colour));
                shown + if is_ours { "\u{1b}" } else { r"\u{1b}" } + &printable::line(part)
            })
        },
    }
}

/// Starts logging. `filter` comes from [`parse_level`](wfe_settings::log::parse_level).
#[must_use]
pub fn start(format: LogFormat, filter: &str) -> LogLevel {
    let has_colours = has_colours(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
    let show = shown_as(format, has_colours);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || Printable { to: io::stderr(), show });
    match format {
        LogFormat::Text => {
            let builder = builder.with_ansi(has_colours).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            LogLevel(Arc::new(move |filter| handle.reload(filter)))
        }
        LogFormat::Json => {
            // Tracing uses the word target for the module of a line. It is hidden, because target means something else
            // here.
            let builder = builder.json().with_target(false).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            LogLevel(Arc::new(move |filter| handle.reload(filter)))
        }
    }
}

#[cfg(test)]
mod tests {
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

    /// Returns the log at this level: lines of kube, among them the body of an answer that it could not read.
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

    /// A message and a field that clear the screen, begin a new line, and reverse the following text.
    #[test]
    fn a_text_of_others_stays_within_its_line_and_does_nothing() {
        const HOSTILE: &str = "a\u{1b}[2Jb\nERROR c\u{202e}d\u{9b}1A";
        for (format, has_colours) in [(LogFormat::Json, false), (LogFormat::Text, false), (LogFormat::Text, true)] {
            let lines = Lines::default();
            let (to, show) = (lines.clone(), shown_as(format, has_colours));
            let builder = tracing_subscriber::fmt()
                .with_ansi(has_colours)
                .with_writer(move || Printable { to: to.clone(), show });
            let say = || {
                tracing::warn!(field = HOSTILE, shown = %HOSTILE, "{HOSTILE}");
                tracing::warn!("second");
            };
            match format {
                LogFormat::Json => tracing::subscriber::with_default(builder.json().finish(), say),
                LogFormat::Text => tracing::subscriber::with_default(builder.finish(), say),
            }
            let bytes = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let said = String::from_utf8(bytes).unwrap();
            assert_eq!(said.lines().count(), 2, "{said:?}");
            let is_colour =
                |place: usize| has_colours && COLOURS.iter().any(|colour| said[place + 1..].starts_with(colour));
            for (place, character) in said.char_indices() {
                let is_harmless = printable::line(&character.to_string()).len() == character.len_utf8();
                assert!(
                    is_harmless || character == '\n' || (character == '\u{1b}' && is_colour(place)),
                    "{format:?} {said:?}"
                );
            }
        }
    }
}
