//! Makes text from users safe to show on a terminal, in a log or on a page.
//!
//! A terminal obeys control characters, and a bidirectional override makes a line look like another one. A user who can
//! create objects chooses their texts, so no text is shown unchecked. A harmful character is shown as its number, so
//! that a person notices it.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns a text that fits into one line: a line break could start a second line that looks like one of ours.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, does_harm, in_text)
}

/// Returns our own text of several lines, whose parts went through [`line()`]. This is a second defence, in case a part
/// did not.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |it| it != '\n' && does_harm(it), in_text)
}

/// Returns JSON with the same meaning that is safe to look at.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // Outside its strings, JSON contains none of these characters except the line breaks of its layout.
    escape(text, |it| it != '\n' && does_harm(it), in_json)
}

/// Returns whether a terminal, or a person, could mistake the character for something else.
fn does_harm(character: char) -> bool {
    matches!(
        character,
        // Marks, embeddings, overrides and isolates of the bidirectional algorithm.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Line and paragraph separators.
        | '\u{2028}' | '\u{2029}'
        // Invisible characters, by which two names could differ and still look the same.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    ) || character.is_control()
}

fn escape(text: &str, is_hostile: impl Fn(char) -> bool, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_hostile) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut escaped = before.to_owned();
    for character in rest.chars() {
        if is_hostile(character) {
            write(&mut escaped, character);
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn in_text(to: &mut String, character: char) {
    to.extend(character.escape_default()); // as Rust writes it: \n, \u{1b}
}

fn in_json(to: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        let _ = write!(to, "\\u{unit:04x}"); // writing to a String cannot fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that clears the screen, rings the bell, moves the cursor up, reverses text, hides a space, and uses an
    /// 8-bit control character and a tag.
    const HOSTILE: &str = "a\u{1b}[2Jb\u{7}c\r\nd\u{202e}e\u{200b}f\u{9b}1Ag\u{e0041}h\u{7f}\ti";

    #[test]
    fn what_could_do_harm_is_shown_by_its_number() {
        assert_eq!(line(HOSTILE), r"a\u{1b}[2Jb\u{7}c\r\nd\u{202e}e\u{200b}f\u{9b}1Ag\u{e0041}h\u{7f}\ti");
        assert_eq!(lines("a\n\u{1b}b\n"), "a\n\\u{1b}b\n");
        assert_eq!(line(&line(HOSTILE)), line(HOSTILE), "twice is once");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in ["", "disk 97 % full: \\n, 日本語, عربى, ä, é, 🙂", "a b"] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text), "{text}");
            assert!(matches!(json(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, "\"\\"] });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = json(&text);
        assert!(!shown.chars().any(|it| it != '\n' && does_harm(it)), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
