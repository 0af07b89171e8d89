//! What a request to the API server does.

use std::fmt;

/// What a request does, as its metric label says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads those that a label selects.
    List,
    /// Makes one.
    Create,
    /// Replaces one.
    Update,
    /// Changes one.
    Patch,
    /// Removes one.
    Delete,
}

impl Verb {
    /// Returns whether it changes something.
    #[must_use]
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}
