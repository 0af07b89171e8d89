//! The documents of a file, with the line of each field. This module knows YAML, which includes JSON. It does not know
//! any kind of object.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// One document of a file.
#[derive(Debug)]
pub(super) struct Document(Tree);

/// A value, and the line where it begins. The value of a field has the line of the field's name.
#[derive(Debug)]
struct Tree {
    line: u64,
    node: Node,
}

#[derive(Debug)]
enum Node {
    Leaf(Value),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// Why a file has no documents.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) line: Option<u64>,
    pub(super) why: String,
}

impl Document {
    /// Reads the documents of a file, without the empty ones.
    pub(super) fn all_in(text: &str) -> Result<Vec<Self>, Unreadable> {
        let parsed: Result<Vec<Spanned<Node>>, _> = serde_saphyr::from_multiple(text);
        // The parser would quote the lines around the fault, which may hold the value of a parameter.
        let documents = parsed.map_err(|error| Unreadable {
            line: error.location().map(|at| at.line()),
            why: format!("it is not YAML: {}", reason(&error.without_snippet().to_string())),
        })?;
        let trees = documents.into_iter().map(Tree::of);
        Ok(trees.filter(|tree| !matches!(tree.node, Node::Leaf(Value::Null))).map(Self).collect())
    }

    /// Returns the document without lines.
    pub(super) fn value(&self) -> Value {
        self.0.value()
    }

    /// Returns the line of a field, such as `spec.tasks[1].name`; if the field is absent, that of the nearest field
    /// above it.
    pub(super) fn line_of(&self, field: &str) -> u64 {
        let (mut tree, mut rest) = (&self.0, field);
        loop {
            let next = match &tree.node {
                Node::Map(fields) => fields.iter().filter_map(|(name, below)| Some((below, after(rest, name)?))),
                Node::List(items) => match element(rest) {
                    Some((place, after)) if place < items.len() => {
                        (tree, rest) = (&items[place], after);
                        continue;
                    }
                    _ => return tree.line,
                },
                Node::Leaf(_) => return tree.line,
            };
            // A name may contain dots, so the longest name that fits is taken.
            match next.min_by_key(|(_, after)| after.len()) {
                Some(next) => (tree, rest) = next,
                None => return tree.line,
            }
        }
    }
}

/// Returns the parser's reason without its advice for programs, and without the place, which is shown before it.
fn reason(error: &str) -> &str {
    let end = [", set ", " at line "].iter().filter_map(|end| error.find(end)).min();
    &error[..end.unwrap_or(error.len())]
}

impl Tree {
    fn of(spanned: Spanned<Node>) -> Self {
        Self { line: spanned.referenced.line(), node: spanned.value }
    }

    fn value(&self) -> Value {
        match &self.node {
            Node::Leaf(value) => value.clone(),
            Node::List(items) => items.iter().map(Self::value).collect(),
            Node::Map(fields) => fields.iter().map(|(name, below)| (name.clone(), below.value())).collect(),
        }
    }
}

/// Returns what follows a name at the beginning of a path.
fn after<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    match rest.strip_prefix('.') {
        Some(rest) => Some(rest),
        None => (rest.is_empty() || rest.starts_with('[')).then_some(rest),
    }
}

/// Returns the place in a list, and what follows it.
fn element(path: &str) -> Option<(usize, &str)> {
    let (place, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((place.parse().ok()?, rest.strip_prefix('.').unwrap_or(rest)))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Node, E> {
        Ok(Node::Leaf(truth.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Leaf(text.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(Tree::of(item));
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(name) = fields.next_key::<Spanned<String>>()? {
            let node = fields.next_value()?;
            map.push((name.value, Tree { line: name.referenced.line(), node }));
        }
        Ok(Node::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = "\
# a comment
a: 1
---
metadata:
  name: x
  annotations:
    example.com/a.b: \"1\"
list:
  - one: 1.5
    two: true
  - three:
---
---
{\"json\": [1,
  {\"a\": -2}]}
";

    #[test]
    fn each_field_has_its_line() {
        let documents = Document::all_in(FILE).unwrap();
        let values: Vec<Value> = documents.iter().map(Document::value).collect();
        assert_eq!(
            values,
            [
                json!({"a": 1}),
                json!({
                    "metadata": {"name": "x", "annotations": {"example.com/a.b": "1"}},
                    "list": [{"one": 1.5, "two": true}, {"three": null}],
                }),
                json!({"json": [1, {"a": -2}]}),
            ]
        );
        for (document, field, line) in [
            (0, "a", 2),
            (1, "", 4),
            (1, "metadata.name", 5),
            (1, "metadata.namespace", 4),
            (1, "metadata.annotations.example.com/a.b", 7),
            (1, "list", 8),
            (1, "list[0]", 9),
            (1, "list[0].two", 10),
            (1, "list[1].three.four", 11),
            (1, "list[9].two", 8),
            (1, "spec.tasks[0]", 4),
            (2, "json[1].a", 15),
        ] {
            assert_eq!(documents[document].line_of(field), line, "{field}");
        }
    }

    #[test]
    fn a_fault_has_a_line_and_quotes_no_value() {
        for (text, line) in [("a: [1, 2\nb: secret\n", 2), ("a: b\n  c: secret: d\n", 2), ("a: secret\na: b\n", 2)] {
            let fault = Document::all_in(text).unwrap_err();
            assert_eq!(fault.line, Some(line), "{fault:?}");
            assert!(fault.why.starts_with("it is not YAML: ") && !fault.why.contains("secret"), "{fault:?}");
            assert!(!["\n", "Options", "at line"].iter().any(|word| fault.why.contains(word)), "{fault:?}");
        }
    }
}
