//! Identifiers from the API server: opaque, compared and never interpreted.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The `metadata.uid` of an object; a re-created object has another one. Displayed as the string of the API.
///
/// UUIDs from the API server are stored as their sixteen bytes: tens of thousands of them need no allocation, and a
/// comparison reads no other memory. Their order is the order of their strings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Inner);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Inner {
    Uuid(Uuid),
    /// Any other string, or a UUID in an unusual spelling.
    Other(Arc<str>),
}

impl Uid {
    /// Reads the string of `metadata.uid`.
    #[must_use]
    pub fn new(uid: &str) -> Self {
        let is_spelled_so = |uuid: &Uuid| *uuid.as_hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]) == *uid;
        let read = Uuid::try_parse(uid).ok().filter(is_spelled_so);
        Self(read.map_or_else(|| Inner::Other(uid.into()), Inner::Uuid))
    }
}

impl Ord for Inner {
    /// UUIDs compare as numbers, which is fast: decisions search long histories by uid.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Uuid(one), Self::Uuid(other)) => one.as_u128().cmp(&other.as_u128()),
            (Self::Uuid(_), Self::Other(_)) => Ordering::Less,
            (Self::Other(_), Self::Uuid(_)) => Ordering::Greater,
            (Self::Other(one), Self::Other(other)) => one.cmp(other),
        }
    }
}

impl PartialOrd for Inner {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares a uid with the string of `metadata.uid`.
impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        *self == Self::new(other)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Uuid(uuid) => uuid.as_hyphenated().fmt(f),
            Inner::Other(text) => f.write_str(text),
        }
    }
}

/// The `metadata.resourceVersion` on which a decision was made, and which the write sends back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Box<str>);

impl Version {
    /// Wraps the string of `metadata.resourceVersion`.
    #[must_use]
    pub fn new(version: &str) -> Self {
        Self(version.into())
    }

    /// Returns the string of `metadata.resourceVersion`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Identifies one `WorkflowExecution` object by name and uid. The strings are shared, because a decision about
/// thousands of executions names their holder in each of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutionId {
    /// `metadata.uid`. It is compared first: two ids rarely belong to one object, and comparing strings takes longer.
    pub uid: Uid,
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Identifies one `WorkflowSchedule` object by name and uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScheduleId {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Uid,
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Identifies one run (a `PipelineRun` object in the execution namespace).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId {
    /// `metadata.uid`. It is compared first, as in `ExecutionId`.
    pub uid: Uid,
    /// `metadata.name`.
    pub name: Box<str>,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_shown_as_it_was_given_and_two_are_one_only_when_their_strings_are() {
        let usual = "0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11";
        let upper = usual.to_uppercase();
        let simple = usual.replace('-', "");
        let (braced, urn) = (format!("{{{usual}}}"), format!("urn:uuid:{usual}"));
        let spellings = [usual, &upper, &simple, &braced, &urn, "", "uid-1", "é"];
        for (place, one) in spellings.iter().enumerate() {
            assert_eq!(Uid::new(one).to_string(), *one);
            for (other_place, other) in spellings.iter().enumerate() {
                assert_eq!(Uid::new(one) == Uid::new(other), place == other_place, "{one:?} and {other:?}");
                assert_eq!(Uid::new(one) == **other, place == other_place, "{one:?} and {other:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn uuids_are_in_the_order_of_their_strings(one: u128, other: u128) {
            let [one, other] = [one, other].map(|it| Uuid::from_u128(it).to_string());
            proptest::prop_assert_eq!(Uid::new(&one).cmp(&Uid::new(&other)), one.cmp(&other));
        }
    }
}
