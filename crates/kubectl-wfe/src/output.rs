//! The one place that writes to the terminal, and so the one that keeps what others have written from being obeyed
//! there.
//!
//! A part of a line goes through [`line()`] where the line is made, as a line break in it could make a second line that
//! looks like one of ours. Whatever is written goes through the second fence here.

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

    /// Writes, and hands over at once what is written: a question follows on the same line.
    fn hand_over(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.flush()
    }
}

/// Returns whether the output was closed, as `head` does when it has enough: that is no news to anybody.
pub(crate) fn nobody_reads(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Says what went wrong, unless nobody reads.
pub(crate) fn complain(error: &anyhow::Error) {
    if !nobody_reads(error) {
        let _ = stderr().write_all(complaint(error).as_bytes()); // there is nowhere else to say it
    }
}

/// Shows an error. Its further lines may be an API server's, and are set apart from ours.
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

    /// What writes past this module would write what a terminal obeys.
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
