//! The canonical form of a target, and the names of its chain (SPEC sections 4 and 5).

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::kinds;

/// The number of a run in its chain, from 1.
pub type RunNumber = u64;

/// The longest DNS label, as Kubernetes has it (namespaces).
const MAX_LABEL: usize = 63;
/// The longest DNS subdomain, as Kubernetes has it (kinds, and the names of most objects).
const MAX_SUBDOMAIN: usize = 253;

/// Why a text names no target. The text says what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not two or three parts.
    #[error("has {0} part(s) where namespace/kind/name or kind/name is expected")]
    Parts(usize),
    /// The namespace is not a DNS label.
    #[error("has a namespace that is not a DNS label (lower-case letters, digits and -, at most 63)")]
    Namespace,
    /// The kind is not a DNS subdomain.
    #[error("has a kind that is not a DNS subdomain (such as deployment or certificate.cert-manager.io)")]
    Kind,
    /// The name is not a path segment.
    #[error("has a name that is empty, longer than 253, '.' or '..', or has a % in it")]
    Name,
}

/// A target in canonical form: two spellings of one object are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName(Arc<str>);

impl TargetName {
    /// Reads `namespace/kind/name` or `kind/name` and brings it to canonical form: the kind in lower case, singular,
    /// without group; the rest as written.
    ///
    /// # Errors
    /// What is wrong with the text, where it names no target.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [kind, name] => (None, kind, name),
            [namespace, kind, name] => (Some(namespace), kind, name),
            _ => return Err(TargetError::Parts(parts.len())),
        };
        if namespace.is_some_and(|namespace| !is_dns_label(namespace)) {
            return Err(TargetError::Namespace);
        }
        let kind = kind.to_ascii_lowercase();
        if kind.len() > MAX_SUBDOMAIN || !kind.split('.').all(is_dns_label) {
            return Err(TargetError::Kind);
        }
        if name.is_empty() || name.chars().count() > MAX_SUBDOMAIN || name == "." || name == ".." || name.contains('%')
        {
            return Err(TargetError::Name);
        }
        let kind = kinds::singular(kind.split('.').next().unwrap_or_default());
        Ok(Self(match namespace {
            Some(namespace) => format!("{namespace}/{kind}/{name}").into(),
            None => format!("{kind}/{name}").into(),
        }))
    }

    /// Shows the canonical form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the namespace of the target; `None` for a cluster-scoped one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let (first, rest) = self.0.split_once('/')?;
        rest.contains('/').then_some(first)
    }

    /// Returns the name of this target's chain of runs.
    #[must_use]
    pub fn chain(&self) -> ChainName {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        ChainName(u64::from_be_bytes(first))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A DNS-1123 label: lower-case letters, digits and `-`, neither first nor last a `-`.
fn is_dns_label(text: &str) -> bool {
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The name of a target's chain: the first 16 hexadecimal digits of the sha256 of the canonical target.
///
/// Two targets that shared one would share a lock, which is too coarse and safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainName(u64);

impl ChainName {
    /// Returns the name of the chain's n-th run.
    #[must_use]
    pub fn run(self, number: RunNumber) -> String {
        format!("wfe-{self}-{number}")
    }

    /// Reads the name of a run back; `None` where it is not the name of a chain's run.
    #[must_use]
    pub fn of_run(name: &str) -> Option<(Self, RunNumber)> {
        let (hash, number) = name.strip_prefix("wfe-")?.split_once('-')?;
        let chain = Self(u64::from_str_radix(hash, 16).ok()?);
        let number: RunNumber = number.parse().ok()?;
        // Only the one spelling that `run` writes: no sign, no leading zero, no upper case.
        (number > 0 && chain.run(number) == name).then_some((chain, number))
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        TargetName::parse(text).unwrap().to_string()
    }

    #[test]
    fn every_spelling_of_one_object_is_one_target() {
        for text in [
            "payment/Deployment/api",
            "payment/deployments/api",
            "payment/deployments.apps/api",
            "payment/deployment.apps/api",
            "payment/Deployment.v1.apps/api",
            "payment/deploy/api",
            "payment/DEPLOY/api",
        ] {
            assert_eq!(canonical(text), "payment/deployment/api", "{text}");
        }
        assert_eq!(canonical("no/worker-1"), "node/worker-1");
        assert_eq!(canonical("Nodes/worker-1"), "node/worker-1");
        assert_eq!(canonical("ing-ns/ing/web"), "ing-ns/ingress/web");
    }

    #[test]
    fn kinds_of_others_keep_their_spelling_but_for_case_and_group() {
        assert_eq!(canonical("web/Certificate.cert-manager.io/tls"), "web/certificate/tls");
        assert_eq!(canonical("web/certificates/tls"), "web/certificates/tls");
    }

    #[test]
    fn names_keep_their_case_and_their_colons() {
        assert_eq!(canonical("ClusterRole/system:Node"), "clusterrole/system:Node");
    }

    #[test]
    fn refuses_what_is_no_target() {
        use TargetError::{Kind, Name, Namespace, Parts};
        let long = "x".repeat(254);
        for (text, error) in [
            ("", Parts(1)),
            ("api", Parts(1)),
            ("a/b/c/d", Parts(4)),
            ("/deployment/api", Namespace),
            ("Payment/deployment/api", Namespace),
            ("pay_ment/deployment/api", Namespace),
            ("payment//api", Kind),
            ("payment/-deploy/api", Kind),
            ("payment/deploy..apps/api", Kind),
            ("payment/deployment/", Name),
            ("payment/deployment/..", Name),
            ("payment/deployment/a%2fb", Name),
            (&format!("node/{long}"), Name),
        ] {
            assert_eq!(TargetName::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn chains_have_the_known_hashes() {
        for (target, hash) in
            [("payment/deployment/payment-api", "cf0cc089293b1165"), ("node/worker-node-1", "ac45b7d6911e97a5")]
        {
            assert_eq!(TargetName::parse(target).unwrap().chain().to_string(), hash);
        }
    }

    #[test]
    fn only_the_exact_name_of_a_run_is_read_back() {
        let chain = TargetName::parse("node/worker-node-1").unwrap().chain();
        assert_eq!(ChainName::of_run("wfe-ac45b7d6911e97a5-12"), Some((chain, 12)));
        for name in [
            "wfe-ac45b7d6911e97a5",
            "wfe-ac45b7d6911e97a5-",
            "wfe-ac45b7d6911e97a5-0",
            "wfe-ac45b7d6911e97a5-01",
            "wfe-ac45b7d6911e97a5-+1",
            "wfe-AC45b7d6911e97a5-1",
            "wfe-+c45b7d6911e97a5-1",
            "wfe-45b7d6911e97a5-1",
            "wfe-ac45b7d6911e97a5-1-check",
            "other",
        ] {
            assert_eq!(ChainName::of_run(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_is_idempotent(text in "[a-zA-Z0-9./%:-]{0,40}") {
            if let Ok(name) = TargetName::parse(&text) {
                prop_assert_eq!(TargetName::parse(name.as_str()), Ok(name));
            }
        }
    }
}
