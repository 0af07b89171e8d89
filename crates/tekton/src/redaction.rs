//! Removes the values of parameters from a text before the text leaves the object that contains them.
//!
//! A user who may read an execution may also read its parameters, so its own status quotes messages in full. Events,
//! logs, summaries and evidence reach other users, so they all pass through [`Redaction::apply`].

use std::cmp::Reverse;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use wfe_api::limits::cut;
use wfe_core::target::TargetName;

use crate::object::{list, text};
use crate::render::{Parameters, TARGET_PARAMETER};
use crate::words::MAX_MESSAGE;

/// The length from which a value is replaced, in bytes. A shorter value reveals nothing, and would match everywhere.
const SHORTEST: usize = 4;
/// The last character of a text that was cut to a limit.
const CUT: char = '…';

/// The parameter values of an object, which no text outside the object may quote. The target is not replaced, because
/// it is public.
#[derive(Clone, Default, PartialEq)]
pub struct Redaction {
    parameters: Arc<Parameters>,
    target: Option<TargetName>,
}

/// One form in which a text may show a value, with the name of the value's parameter.
struct Shown<'a> {
    name: &'a str,
    as_text: String,
}

impl Redaction {
    /// Makes the redaction of an execution.
    #[must_use]
    pub fn new(parameters: Arc<Parameters>, target: Option<TargetName>) -> Self {
        Self { parameters, target }
    }

    /// Reads the spec of an execution. A value that is not a text is never quoted.
    #[must_use]
    pub fn of_execution(spec: &Value) -> Self {
        let target = spec["targetResource"].as_str().and_then(|target| TargetName::parse_recorded(target).ok());
        Self::new(texts(&spec["parameters"]), target)
    }

    /// Reads a schedule: the parameters of its template, and the values with which a triage replaced them.
    #[must_use]
    pub fn of_schedule(schedule: &Value) -> Self {
        let template = Self::of_execution(&schedule["spec"]["template"]["spec"]);
        template.and(Self::new(texts(&schedule["status"]["adjust"]["parameters"]), None))
    }

    /// Reads the spec of one of our runs.
    #[must_use]
    pub fn of_run(spec: &Value) -> Self {
        let params = list(spec, "params").filter_map(|param| Some((text(param, "name")?, text(param, "value")?)));
        let (target, parameters): (Vec<_>, Vec<_>) = params.partition(|(name, _)| *name == TARGET_PARAMETER);
        let target = target.first().and_then(|(_, target)| TargetName::parse_recorded(target).ok());
        Self::new(parameters.into_iter().map(|(name, value)| (name.into(), value.into())).collect(), target)
    }

    /// Adds the values of another redaction.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let parameters = self.parameters.iter().chain(&*other.parameters).cloned().collect();
        Self { parameters, target: self.target.or(other.target) }
    }

    /// Replaces values with the names of their parameters, and cuts the result to [`MAX_MESSAGE`] characters.
    ///
    /// A value is replaced if it is a whole token, either raw or quoted as by Go's `%q` or JSON. A value of several
    /// lines is also replaced line by line. If several values begin at one position, the longest is replaced. Inserted
    /// names are not searched. The search ends when the result is full: at most 1,025 positions are compared with the
    /// forms of 64 kB of values.
    #[must_use]
    pub fn apply(&self, said: &str) -> String {
        let all = self.shown();
        let (said, was_cut) = said.strip_suffix(CUT).map_or((said, false), |said| (said, true));
        let (mut told, mut length, mut before, mut rest) = (String::new(), 0, None, said);
        // One character more than fits, so that `cut` notices that something is missing.
        while length <= MAX_MESSAGE as usize
            && let Some(next) = rest.chars().next()
        {
            let found = all.iter().find_map(|shown| Some((shown.name, shown.after(before, rest, was_cut)?)));
            if let Some((name, after)) = found {
                told.extend(["<", name, ">"]);
                length += name.chars().count() + 2;
                before = rest[..rest.len() - after.len()].chars().next_back();
                rest = after;
            } else {
                told.push(next);
                length += 1;
                before = Some(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        if was_cut {
            told.push(CUT);
        }
        cut(&told, MAX_MESSAGE)
    }

    /// Returns all forms of all values, the longest first.
    fn shown(&self) -> Vec<Shown<'_>> {
        let mut all = Vec::new();
        for (name, value) in &*self.parameters {
            let lines = value.lines().filter(|line| line.len() < value.len());
            for part in
                [&**value].into_iter().chain(lines).filter(|part| part.len() >= SHORTEST && !self.is_known(part))
            {
                let quoted = [as_go_quotes(part), as_json_quotes(part), as_go_marshals(part)];
                let quoted = quoted.into_iter().filter(|quoted| quoted != part);
                all.extend(quoted.chain([part.to_owned()]).map(|as_text| Shown { name, as_text }));
            }
        }
        all.sort_by_key(|shown| Reverse(shown.as_text.len()));
        all
    }

    /// Returns whether a value is the target, or a part of it.
    fn is_known(&self, value: &str) -> bool {
        let whole = self.target.as_ref().map_or("", TargetName::as_str);
        value == whole || whole.split('/').any(|part| part == value)
    }
}

impl Shown<'_> {
    /// Returns the rest after the value, if `rest` begins with the value as a whole token. At the end of a cut text,
    /// the value may be cut as well.
    fn after<'a>(&self, before: Option<char>, rest: &'a str, was_cut: bool) -> Option<&'a str> {
        let is_bound = |outside: Option<char>, inside: Option<char>| {
            !(outside.is_some_and(char::is_alphanumeric) && inside.is_some_and(char::is_alphanumeric))
        };
        if !is_bound(before, self.as_text.chars().next()) {
            return None;
        }
        if was_cut && rest.len() >= SHORTEST && self.as_text.starts_with(rest) {
            return Some("");
        }
        let after = rest.strip_prefix(&*self.as_text)?;
        is_bound(after.chars().next(), self.as_text.chars().next_back()).then_some(after)
    }
}

/// Shows only the names of the parameters.
impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.parameters.iter().map(|(name, _)| name)).finish()
    }
}

fn texts(parameters: &Value) -> Arc<Parameters> {
    let all = parameters.as_object().into_iter().flatten();
    all.filter_map(|(name, value)| Some((name.as_str().into(), value.as_str()?.into()))).collect()
}

/// Escapes a text as Go's `%q` does, without the quotes around it.
fn as_go_quotes(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len());
    for letter in value.chars() {
        let code = u32::from(letter);
        // Writing to a string never fails.
        let _ = match letter {
            '"' | '\\' => write!(quoted, "\\{letter}"),
            '\u{7}' => write!(quoted, "\\a"),
            '\u{8}' => write!(quoted, "\\b"),
            '\u{c}' => write!(quoted, "\\f"),
            '\n' => write!(quoted, "\\n"),
            '\r' => write!(quoted, "\\r"),
            '\t' => write!(quoted, "\\t"),
            '\u{b}' => write!(quoted, "\\v"),
            _ if code < 0x20 || code == 0x7f => write!(quoted, "\\x{code:02x}"),
            _ if !is_printed_by_go(letter) && code < 0x1_0000 => write!(quoted, "\\u{code:04x}"),
            _ if !is_printed_by_go(letter) => write!(quoted, "\\U{code:08x}"),
            _ => write!(quoted, "{letter}"),
        };
    }
    quoted
}

/// Returns whether Go prints a character unescaped. Go escapes control and format characters, and blanks other than the
/// space; Rust escapes nearly the same.
fn is_printed_by_go(letter: char) -> bool {
    matches!(letter, ' ' | '\'') || !letter.is_whitespace() && letter.escape_debug().count() == 1
}

/// Escapes a text as JSON does, without the quotes around it.
fn as_json_quotes(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// Escapes a text as Go's `encoding/json` does by default, which includes the special characters of HTML.
fn as_go_marshals(value: &str) -> String {
    let mut quoted = as_json_quotes(value);
    for special in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        quoted = quoted.replace(special, &format!("\\u{:04x}", u32::from(special)));
    }
    quoted
}

#[cfg(test)]
mod tests;
