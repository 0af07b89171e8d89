//! The object or collection that a request addresses, from the path and the query of its URL.

use super::kind::Kind;
use super::store::Key;

/// The part of an object that a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Object,
    Status,
    /// A subresource that the kind does not have.
    Missing,
}

/// The object or collection that a request addresses.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The index of the kind in the server's list.
    pub(super) kind: usize,
    /// Absent for cluster-scoped objects, and for collections over all namespaces.
    pub(super) namespace: Option<String>,
    /// Absent for a collection.
    pub(super) name: Option<String>,
    pub(super) part: Part,
}

impl Target {
    /// Parses a path; `None` if the path is unknown.
    pub(super) fn parse(kinds: &[Kind], path: &str) -> Option<Self> {
        let segments: Vec<String> = path.trim_start_matches('/').split('/').map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let find = |plural: &str| {
            kinds.iter().position(|kind| kind.group == group && kind.version == version && kind.plural == plural)
        };
        let (namespace, plural, rest) = match rest {
            ["namespaces", namespace, plural, rest @ ..] if find(plural).is_some() => {
                (Some((*namespace).to_owned()), *plural, rest)
            }
            [plural, rest @ ..] => (None, *plural, rest),
            [] => return None,
        };
        let kind = find(plural)?;
        if namespace.is_some() != kinds[kind].namespaced && !rest.is_empty() {
            return None;
        }
        let (name, part) = match rest {
            [] => (None, Part::Object),
            [name] => (Some((*name).to_owned()), Part::Object),
            [name, "status"] if kinds[kind].traits.status => (Some((*name).to_owned()), Part::Status),
            [name, ..] => (Some((*name).to_owned()), Part::Missing),
        };
        Some(Self { kind, namespace, name, part })
    }

    pub(super) fn key(&self, name: &str) -> Key {
        Key::new(self.kind, self.namespace.as_deref().unwrap_or_default(), name)
    }
}

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect(),
        )
    }

    /// Returns the value of a parameter if it is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value == "true" || value == "1")
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

/// Decodes percent escapes in a part of a URL.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'+' => Some(b' '),
            b'%' => {
                let ahead = rest.clone().take(2).map(char::from).collect::<String>();
                let decoded = u8::from_str_radix(&ahead, 16).ok();
                if decoded.is_some() {
                    rest.nth(1);
                }
                decoded
            }
            other => Some(other),
        };
        bytes.push(decoded.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
