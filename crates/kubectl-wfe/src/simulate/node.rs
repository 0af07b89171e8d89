//! YAML with the line of each value, so that an error names the place in the file.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use wfe_core::duration;

use crate::nearest::nearest;

/// A mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The line, from 1.
    pub(super) line: u64,
    /// What is wrong, and what to write instead.
    pub(super) what: String,
}

/// A value of a file, with its line.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The line, from 1.
    pub(super) line: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(String, u64, Node)>),
}

impl Node {
    /// Parses a file.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet();
            let line = error.location().map_or(1, |location| location.line());
            let said = error.to_string();
            Fault { line, what: format!("it is not YAML: {}", said.lines().next().unwrap_or_default()) }
        })
    }

    /// Reports that something is wrong with this value.
    pub(super) fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { line: self.line, what: what.into() })
    }

    /// Returns the entries of a list. A missing value (`arrive:` without anything) counts as an empty list.
    pub(super) fn list(&self, path: &str) -> Result<&[Self], Fault> {
        match &self.content {
            Content::List(entries) => Ok(entries),
            Content::Scalar(Value::Null) => Ok(&[]),
            _ => self.fault(format!("{path} must be a list: begin each entry with -")),
        }
    }

    /// Returns the entries of a map, in the order of the file.
    pub(super) fn map(&self, path: &str) -> Result<&[(String, u64, Self)], Fault> {
        match &self.content {
            Content::Map(entries) => Ok(entries),
            Content::Scalar(Value::Null) => Ok(&[]),
            _ => self.fault(format!("{path} must be a map of keys to values")),
        }
    }

    /// Returns a scalar as the text that a person wrote.
    pub(super) fn text(&self, path: &str) -> Result<String, Fault> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Ok(text.clone()),
            Content::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value.to_string()),
            _ => self.fault(format!("{path} must be a text")),
        }
    }

    /// Reads a duration in whole seconds.
    pub(super) fn duration(&self, path: &str) -> Result<std::time::Duration, Fault> {
        let text = self.text(path)?;
        match duration::parse(&text) {
            Ok(duration) if duration.subsec_nanos() == 0 => Ok(duration),
            Ok(_) => self.fault(format!("{path}: \"{text}\" must be in whole seconds")),
            Err(error) => self.fault(format!("{path}: \"{text}\" {error}")),
        }
    }

    /// Reads a number of at least 1.
    pub(super) fn count(&self, path: &str) -> Result<u64, Fault> {
        let Content::Scalar(value) = &self.content else { return self.fault(format!("{path} must be a number")) };
        match value.as_u64().filter(|count| *count > 0) {
            Some(count) => Ok(count),
            None => self.fault(format!("{path} must be a whole number from 1 on")),
        }
    }

    /// Returns the value without its lines.
    pub(super) fn json(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(entries) => entries.iter().map(Self::json).collect(),
            Content::Map(entries) => entries.iter().map(|(key, _, value)| (key.clone(), value.json())).collect(),
        }
    }

    /// Reads a map with these keys and no others.
    pub(super) fn fields<'a>(&'a self, path: &str, known: &[&str]) -> Result<Fields<'a>, Fault> {
        let entries = self.map(if path.is_empty() { "the file" } else { path })?;
        if let Some((key, line, _)) = entries.iter().find(|(key, ..)| !known.contains(&key.as_str())) {
            let place = if path.is_empty() { String::new() } else { format!(" in {path}") };
            return Err(Fault { line: *line, what: unknown(key, &place, known) });
        }
        Ok(Fields { path: path.to_owned(), node: self, entries })
    }
}

/// Describes an unknown word, with the nearest known word or all of them.
pub(super) fn unknown(word: &str, place: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("\"{word}\" is unknown{place}: did you mean \"{near}\"?"),
        None => format!("\"{word}\" is unknown{place}: there is {}", known.join(", ")),
    }
}

/// A map whose keys are all known.
pub(super) struct Fields<'a> {
    path: String,
    /// The map.
    pub(super) node: &'a Node,
    entries: &'a [(String, u64, Node)],
}

impl<'a> Fields<'a> {
    /// Returns a value.
    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(it, ..)| it == key).map(|(.., value)| value)
    }

    /// Returns the path of a key, for messages.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reads a value, if it is set.
    pub(super) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Node, &str) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.get(key).map(|node| read(node, &self.path(key))).transpose()
    }

    /// Returns a value that must be set.
    pub(super) fn need(&self, key: &str) -> Result<&'a Node, Fault> {
        self.get(key).map_or_else(|| self.node.fault(format!("{} lacks \"{key}\"", self.path)), Ok)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { line: referenced.line(), content: value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            map.push((key.value, key.referenced.line(), entries.next_value()?));
        }
        Ok(Content::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_line_in_every_style() {
        let node = Node::parse("a:\n  b: {c: 1,\n      on: [x,\n z]}\n# a comment\nd: later\n").unwrap();
        let (a, d) = (&node.map("").unwrap()[0], &node.map("").unwrap()[1]);
        assert_eq!((a.1, d.1, d.2.line, d.2.text("d").unwrap().as_str()), (1, 6, 6, "later"));
        let b = &a.2.map("a").unwrap()[0].2;
        let (c, on) = (&b.map("b").unwrap()[0], &b.map("b").unwrap()[1]);
        assert_eq!((c.1, on.0.as_str(), on.1), (2, "on", 3));
        assert_eq!(on.2.list("on").unwrap().iter().map(|it| it.line).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(node.json().to_string(), r#"{"a":{"b":{"c":1,"on":["x","z"]}},"d":"later"}"#);
    }

    #[test]
    fn a_typo_is_told_with_the_nearest_key_and_a_strange_key_with_all() {
        let fault = |text: &str| Node::parse(text).unwrap().fields("w", &["takes", "fails"]).err().unwrap();
        assert_eq!(
            fault("takes: 1m\nfail: []"),
            Fault { line: 2, what: "\"fail\" is unknown in w: did you mean \"fails\"?".into() }
        );
        assert_eq!(fault("colour: red").what, "\"colour\" is unknown in w: there is takes, fails");
    }

    #[test]
    fn what_is_not_yaml_is_told_with_its_line() {
        let fault = Node::parse("a: 1\nb: [1\nc: 2\n").unwrap_err();
        assert!(fault.what.starts_with("it is not YAML: ") && fault.line > 1, "{fault:?}");
    }
}
