//! The bundle of an execution. Rule 2 needs to know whether two executions run the same bundle.

use std::num::NonZeroU64;

use sha2::{Digest, Sha256};

/// A bundle: the repository that holds it, and its digest if it is pinned. Both are stored as hashes, because the index
/// keeps tens of thousands of bundles. Two bundles with the same hash count as the same, which allows fewer runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    repository: u64,
    digest: Option<NonZeroU64>,
}

impl Bundle {
    /// Reads an image reference, and the separate digest if there is one. Never fails: a text that is no image
    /// reference counts as a repository of its own.
    #[must_use]
    pub fn new(image: &str, digest: Option<&str>) -> Self {
        let (named, inside) = image.split_once('@').map_or((image, None), |(named, inside)| (named, Some(inside)));
        // A colon before the last slash belongs to the host.
        let last = named.rfind('/').map_or(0, |slash| slash + 1);
        let end = named[last..].find(':').map_or(named.len(), |colon| last + colon);
        // Hosts are case-insensitive.
        let repository = named[..end].to_ascii_lowercase();
        Self {
            repository: hash(&repository),
            digest: digest.or(inside).and_then(|digest| NonZeroU64::new(hash(digest))),
        }
    }

    /// Returns whether two bundles are the same: by their digests if both have one, else by their repositories. The
    /// tags of a repository are versions of one workflow.
    #[must_use]
    pub fn is_same(self, other: Self) -> bool {
        match (self.digest, other.digest) {
            (Some(one), Some(other)) => one == other,
            _ => self.repository == other.repository,
        }
    }
}

fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_are_told_apart_by_digest_where_both_have_one_and_else_by_repository() {
        for (one, other, expected) in [
            (("r.example/restart:1", None), ("r.example/restart:2", None), true),
            (("r.example/restart", None), ("R.example/restart:2", None), true),
            (("r.example:5000/restart", None), ("r.example:5000/restart:2", None), true),
            (("r.example:5000/restart", None), ("r.example:5000/scale", None), false),
            (("r.example/restart:1", None), ("r.example/scale:1", None), false),
            (("r.example/w:1", Some("sha256:aa")), ("r.example/w:1", Some("sha256:bb")), false),
            (("r.example/w:1", Some("sha256:aa")), ("r.example/w:1@sha256:bb", None), false),
            (("r.example/w:1", Some("sha256:aa")), ("r.example/w:2", None), true),
            (("r.example/w:1", Some("sha256:aa")), ("mirror.example/w", Some("sha256:aa")), true),
            (("r.example/w@sha256:aa", None), ("r.example/w", Some("sha256:aa")), true),
            (("", None), ("", None), true),
        ] {
            let [one, other] = [one, other].map(|(image, digest)| Bundle::new(image, digest));
            assert_eq!((one.is_same(other), other.is_same(one)), (expected, expected), "{one:?} and {other:?}");
        }
    }
}
