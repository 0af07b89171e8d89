//! The output for a person: one line for each thing that happens, with the seconds since the start.
//!
//! This module does not depend on the story. Only terminals that support colours get colours. A closed pipe is an
//! error, not a panic.

use std::io::{IsTerminal as _, Result, Stdout, Write as _};
use std::time::Instant;

/// The meaning of a word, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// Success.
    Good,
    /// Work in progress.
    Busy,
    /// Not allowed to run at present.
    Held,
    /// Failure.
    Bad,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "32",
            Self::Busy => "36",
            Self::Held => "33",
            Self::Bad => "31",
        }
    }
}

/// Standard output.
pub(super) struct Screen {
    output: Stdout,
    start: Instant,
    colour: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let output = std::io::stdout();
        let colour = output.is_terminal() && !set("NO_COLOR") && !dumb;
        Self { output, start: Instant::now(), colour }
    }

    /// Starts a part of the story.
    pub(super) fn title(&self, text: &str) -> Result<()> {
        self.write(&format!("\n{}\n", self.paint("1", text)))
    }

    /// Prints that something happened: to whom, what, and the details.
    pub(super) fn line(&self, who: &str, what: &str, tone: Tone, details: &str) -> Result<()> {
        let seconds = format!("{:5.1}s", self.start.elapsed().as_secs_f64());
        // The word is padded before it is coloured, because padding would count the colour codes as characters.
        let what = self.paint(tone.code(), &format!("{what:<10}"));
        let line = format!("{}  {who:<17} {what} {details}", self.paint("2", &seconds));
        self.write(&format!("{}\n", line.trim_end()))
    }

    /// Prints a further detail of the line before.
    pub(super) fn note(&self, text: &str) -> Result<()> {
        self.write(&format!("{:8}{}\n", "", self.paint("2", text)))
    }

    /// Prints text without a time and without colours.
    pub(super) fn plain(&self, text: &str) -> Result<()> {
        self.write(&format!("{}\n", text.trim_end()))
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut output = self.output.lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }
}
