//! Identifiers as the API server gives them out: opaque strings that are compared, never read.

use std::fmt;
use std::sync::Arc;

/// The `metadata.uid` of an object: the only identity that a deletion and a re-creation do not share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Arc<str>);

impl Uid {
    /// Wraps the string of `metadata.uid`.
    #[must_use]
    pub fn new(uid: &str) -> Self {
        Self(uid.into())
    }

    /// Shows the string of `metadata.uid`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The `metadata.resourceVersion` that a decision rests on and that its write carries back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Box<str>);

impl Version {
    /// Wraps the string of `metadata.resourceVersion`.
    #[must_use]
    pub fn new(version: &str) -> Self {
        Self(version.into())
    }

    /// Shows the string of `metadata.resourceVersion`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names one `WorkflowExecution` object: where it is, and which of those that had this name over time. Shared, as a
/// decision on a storm names its holder thousands of times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutionId {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Uid,
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Names one run (a `PipelineRun` object in the execution namespace).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
