//! Asking a person, who must be able to see the question and to answer it.

use std::io::{BufRead, IsTerminal, Read, Result, Write, stdin, stdout};

/// More than anybody types: the longest line that a terminal hands over, in bytes.
const LONGEST: u64 = 4096;

/// Tells whether there is a person to ask: what is shown goes to a terminal, and what is answered comes from one.
pub(crate) fn somebody_is_there() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Asks on the terminal.
pub(crate) fn ask(question: &str) -> Result<bool> {
    confirm(question, &mut stdin().lock(), &mut stdout().lock())
}

/// Asks once. Whatever is not a clear yes, an input that ends too, is a no.
fn confirm(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> Result<bool> {
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    if input.take(LONGEST).read_line(&mut answer)? == 0 {
        writeln!(output)?; // nobody has ended the line
    }
    Ok(["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, expected) in [
            ("y\n", true),
            ("Yes\n", true),
            (" YES ", true),
            ("n\n", false),
            ("\n", false),
            ("", false),
            ("yeah\n", false),
            ("n\ny\n", false),
        ] {
            let mut asked = Vec::new();
            assert_eq!(confirm("Clear it?", &mut answer.as_bytes(), &mut asked).unwrap(), expected, "{answer:?}");
            assert!(asked.starts_with(b"Clear it? [y/N] "));
        }
    }
}
