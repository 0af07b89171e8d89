//! The only module that writes to the terminal. It prevents text from other users from controlling the terminal.
//!
//! A part of a line passes through [`line()`] when the line is made, because a line break in it could imitate a line of
//! ours. Everything that is written is filtered again here.

use std::fmt;
use std::io::{self, ErrorKind, Stdout, Write, stderr, stdout};

use serde::Serialize;
use wfe_view::printable;

pub(crate) use wfe_view::printable::line;

/// Standard output. `write!` and `writeln!` write to it.
pub(crate) struct Output(Stdout);

/// Returns standard output.
pub(crate) fn output() -> Output {
    Output(stdout())
}

impl Output {
    /// Writes text for people.
    pub(crate) fn write_fmt(&mut self, said: fmt::Arguments<'_>) -> io::Result<()> {
        self.hand_over(&printable::lines(&said.to_string()))
    }

    /// Writes an answer for a program.
    pub(crate) fn json(&mut self, answer: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(answer)? + "\n";
        Ok(self.hand_over(&printable::json(&text))?)
    }

    /// Writes and flushes: a question follows on the same line.
    fn hand_over(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.flush()
    }
}

/// Returns whether the output was closed, as `head` does when it has enough. That is no error.
pub(crate) fn nobody_reads(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Prints an error, unless the output was closed.
pub(crate) fn complain(error: &anyhow::Error) {
    if !nobody_reads(error) {
        let _ = stderr().write_all(complaint(error).as_bytes()); // there is nowhere else to say it
    }
}

/// Shows an error. Its further lines may come from an API server, and are indented.
fn complaint(error: &anyhow::Error) -> String {
    let said = format!("{error:#}");
    format!("kubectl wfe: {}\n", printable::lines(said.trim_end()).replace('\n', "\n  | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_no_harm() {
        let error = anyhow::anyhow!("two things:\n* a\u{1b}[2J\nnode/n: would run now\r");
        assert_eq!(
            complaint(&error.context("cannot clear")),
            "kubectl wfe: cannot clear: two things:\n  | * a\\u{1b}[2J\n  | node/n: would run now\n"
        );
    }

    /// A write outside of this module could control the terminal.
    #[test]
    fn nothing_else_writes_to_the_terminal() {
        let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                seen += 1;
                if path.ends_with("output.rs") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for word in ["stdout().write", "stdout().lock", "= stdout()", "stderr", "println!", "print!("] {
                    assert!(!text.contains(word), "{word} in {}", path.display());
                }
            }
        }
        assert!(seen > 10, "{seen} files");
    }
}
