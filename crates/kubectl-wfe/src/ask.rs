//! Asks a person a question, if a person can see and answer it.

use std::io::{BufRead, IsTerminal, Read, Result, stdin, stdout};

use crate::output::output;

/// The longest line that a terminal delivers, in bytes.
const LONGEST: u64 = 4096;

/// Returns whether a person can be asked: output goes to a terminal, and input comes from one.
pub(crate) fn somebody_is_there() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Asks on the terminal.
pub(crate) fn ask(question: &str) -> Result<bool> {
    write!(output(), "{question} [y/N] ")?;
    let answer = confirm(&mut stdin().lock())?;
    if answer.is_none() {
        writeln!(output())?; // the input ended without a line break
    }
    Ok(answer.unwrap_or_default())
}

/// Reads an answer; none at the end of the input. Every answer but a clear yes is a no.
fn confirm(input: &mut impl BufRead) -> Result<Option<bool>> {
    let mut answer = String::new();
    if input.take(LONGEST).read_line(&mut answer)? == 0 {
        return Ok(None);
    }
    Ok(Some(["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, expected) in [
            ("y\n", Some(true)),
            ("Yes\n", Some(true)),
            (" YES ", Some(true)),
            ("n\n", Some(false)),
            ("\n", Some(false)),
            ("", None),
            ("yeah\n", Some(false)),
            ("n\ny\n", Some(false)),
        ] {
            assert_eq!(confirm(&mut answer.as_bytes()).unwrap(), expected, "{answer:?}");
        }
    }
}
