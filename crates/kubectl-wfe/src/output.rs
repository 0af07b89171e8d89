//! The only module that writes to the terminal. It prevents text from other users from controlling the terminal.
//!
//! A part of a line passes through [`line()`] when the line is made, because a line break in it could imitate a line of
//! ours. Everything that is written is filtered again here.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Stdout, Write, stderr, stdout};

use serde::Serialize;
use terminal_size::Width;
use textwrap::{WordSeparator, WordSplitter};
use wfe_view::printable;

use crate::paint::painted;

pub(crate) use wfe_view::printable::line;

/// The version of the answers for programs. Within a version, keys are only added.
const API_VERSION: &str = "cli.kubernaut.ai/v1alpha1";

/// An answer for a program.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    answer: &'a T,
}

/// The narrowest terminal on which lines are broken, in columns: below it, every way to show them is bad.
const NARROWEST: usize = 40;

/// A word that may be completed, and what helps to choose it.
pub(crate) type Candidate = (String, String);

/// Standard output. `write!` and `writeln!` write to it.
pub(crate) struct Output(Stdout);

/// Returns standard output.
pub(crate) fn output() -> Output {
    Output(stdout())
}

impl Output {
    /// Writes text for people. On a terminal, lines break at words.
    pub(crate) fn write_fmt(&mut self, said: fmt::Arguments<'_>) -> io::Result<()> {
        let said = said.to_string();
        let text = printable::lines(&said);
        let text = match terminal_size::terminal_size_of(&self.0) {
            Some((Width(width), _)) => wrapped(&text, width.into()).into(),
            None => text,
        };
        self.hand_over(&if has_colours(&self.0) { painted(&text).into() } else { text })
    }

    /// Writes an answer for a program, an object of this kind.
    pub(crate) fn json(&mut self, kind: &'static str, answer: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&Document { api_version: API_VERSION, kind, answer })? + "\n";
        Ok(self.hand_over(&printable::json(&text))?)
    }

    /// Writes the same in YAML.
    pub(crate) fn yaml(&mut self, kind: &'static str, answer: &impl Serialize) -> anyhow::Result<()> {
        // The detour keeps both formats alike: what JSON leaves out, YAML leaves out too.
        let document = serde_json::to_value(Document { api_version: API_VERSION, kind, answer })?;
        let text = serde_saphyr::to_string(&document)?;
        Ok(self.hand_over(&printable::lines(&text))?)
    }

    /// Writes a script of ours for a shell. It has no text of other users.
    pub(crate) fn script(&mut self, text: &str) -> io::Result<()> {
        self.hand_over(text)
    }

    /// Answers kubectl: a candidate for each line, and a directive for the shell.
    pub(crate) fn candidates(&mut self, all: impl Iterator<Item = Candidate>, directive: u8) -> io::Result<()> {
        let told = |(word, what): Candidate| match &*line(&what) {
            "" => format!("{}\n", line(&word)),
            what => format!("{}\t{what}\n", line(&word)),
        };
        self.hand_over(&format!("{}:{directive}\n", all.map(told).collect::<String>()))
    }

    /// Writes a page. Its lines do not break at the width of a terminal.
    pub(crate) fn page(&mut self, page: &str) -> io::Result<()> {
        self.hand_over(&printable::lines(page))
    }

    /// Writes and flushes: a question follows on the same line. An output that was closed, as by `head` when it has
    /// enough, is no error: what the command does, and its exit code, stay the same.
    fn hand_over(&mut self, text: &str) -> io::Result<()> {
        match self.0.write_all(text.as_bytes()).and_then(|()| self.0.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// Returns whether a terminal shows colours, and the user wants them: `NO_COLOR`, `CLICOLOR` and `TERM` count.
fn has_colours(stdout: &Stdout) -> bool {
    stdout.is_terminal() && anstream::AutoStream::choice(stdout) != anstream::ColorChoice::Never
}

/// Breaks lines at words. Further lines are indented as far as the text behind a label, or by two spaces more than the
/// first line.
fn wrapped(text: &str, width: usize) -> String {
    let indent = |line: &str| {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        let label = line.get(spaces..).and_then(|rest| Some(rest.find("  ")? + rest.len() - rest.trim_start().len()));
        let behind = label.and_then(|end| Some(spaces + end + line.get(spaces + end..)?.find(|it| it != ' ')?));
        behind.filter(|behind| spaces > 0 && *behind < width / 2).unwrap_or(spaces + 2)
    };
    let mut broken = String::new();
    for line in text.split_inclusive('\n') {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
        if body.chars().count() <= width || width < NARROWEST {
            broken.push_str(line);
            continue;
        }
        let further = " ".repeat(indent(body));
        // Names and times have hyphens, and are pasted whole.
        let options = textwrap::Options::new(width)
            .subsequent_indent(&further)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        broken.push_str(&textwrap::fill(body, options));
        broken.push_str(end);
    }
    broken
}

/// Tells on standard error what takes a while, and why.
pub(crate) fn note(said: &str) {
    let _ = stderr().write_all(format!("kubectl wfe: {}\n", line(said)).as_bytes()); // there is nowhere else to say it
}

/// Prints an error.
pub(crate) fn complain(error: &anyhow::Error) {
    let _ = stderr().write_all(complaint(error).as_bytes()); // there is nowhere else to say it
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

    #[test]
    fn lines_break_at_words_and_stay_behind_their_label() {
        let text = "node/n: would be skipped, because another one holds it\n  why          one two three four five six seven\n";
        assert_eq!(
            wrapped(text, 40),
            "node/n: would be skipped, because\n  another one holds it\n  why          one two three four five\n\
             \x20              six seven\n"
        );
        assert_eq!(wrapped("short\n\nlines\n", 80), "short\n\nlines\n");
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
