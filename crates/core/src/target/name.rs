//! The canonical form of a target, and the names of its runs (sections 4 and 5).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::kinds::{self, Scope};
use crate::chain::ChainName;

/// The longest DNS label, which Kubernetes requires for namespaces.
const MAX_LABEL: usize = 63;
/// The longest DNS subdomain, which Kubernetes requires for kinds and for the names of most objects.
const MAX_SUBDOMAIN: usize = 253;

/// Why a text does not name a target. The text completes "spec.targetResource: ", with the expected form and an
/// example.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text does not have two or three parts.
    #[error("must be namespace/kind/name or kind/name, e.g. payment/deployment/api or node/worker-1")]
    Parts,
    /// The namespace is not a DNS label.
    #[error(
        "must have a namespace that is a DNS label (at most 63 of a-z, 0-9 and -, no - at either end), e.g. payment; a \
         cluster-scoped object has none"
    )]
    Namespace,
    /// The kind is not a DNS subdomain.
    #[error(
        "must have a kind that is a DNS subdomain (at most 253 characters, at most 63 between two dots), capitals \
         allowed, e.g. deployment, Deployment or deployments.apps"
    )]
    Kind,
    /// The name has characters that names of objects cannot have.
    #[error(
        "must have a name of at most 253 letters, digits and . _ : @ -, with a letter or digit at either end, e.g. \
         payment-api"
    )]
    Name,
    /// The kind is namespaced, but there is no namespace.
    #[error("must be namespace/{kind}/{name} with the namespace of the object, as a {kind} has one")]
    NamespaceMissing {
        /// The kind in canonical form.
        kind: &'static str,
        /// The name, as written.
        name: Box<str>,
    },
    /// The first of three parts is a built-in kind, and the second may be a namespace.
    #[error(
        "must be {second}/{first}/{name}, with the namespace first; where the namespace is called {first}, write the \
         kind with its group, e.g. {first}/{second}.example.com/{name}"
    )]
    KindFirst {
        /// The first part, as written.
        first: Box<str>,
        /// The second part, as written.
        second: Box<str>,
        /// The name, as written.
        name: Box<str>,
    },
    /// The kind is cluster-scoped, but there is a namespace.
    #[error("must be {kind}/{name} without a namespace, as a {kind} has none")]
    NamespaceRefused {
        /// The kind in canonical form.
        kind: &'static str,
        /// The name, as written.
        name: Box<str>,
    },
}

/// A target in canonical form: all spellings of one object are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName(Arc<str>);

impl TargetName {
    /// Reads `namespace/kind/name` or `kind/name` and converts it to canonical form: the kind in lower case, singular
    /// and without group; the rest as written.
    ///
    /// # Errors
    /// Describes what is wrong with a text that does not name a target.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (namespace, kind, name) = split(text)?;
        Self::of_parts(namespace, kind, name)
    }

    /// Creates a target from its parts, as [`parse`](Self::parse) does.
    ///
    /// # Errors
    /// Describes what is wrong with parts that do not name a target.
    pub fn of_parts(namespace: Option<&str>, kind: &str, name: &str) -> Result<Self, TargetError> {
        if let Some(first) = namespace.filter(|first| is_kind_first(first, kind)) {
            return Err(TargetError::KindFirst { first: first.into(), second: kind.into(), name: name.into() });
        }
        let target = Self::canonical(namespace, kind, name)?;
        if !is_name(name) {
            return Err(TargetError::Name);
        }
        match kinds::built_in(&without_group(kind)) {
            Some((kind, Scope::Namespaced)) if namespace.is_none() => {
                Err(TargetError::NamespaceMissing { kind, name: name.into() })
            }
            Some((kind, Scope::Cluster)) if namespace.is_some() => {
                Err(TargetError::NamespaceRefused { kind, name: name.into() })
            }
            _ => Ok(target),
        }
    }

    /// Reads the target of an existing run, or of a decided execution. Earlier versions accepted more names and ignored
    /// scopes, and the runs that they started still hold such a target.
    ///
    /// # Errors
    /// Describes what is wrong with a text that no version has accepted as a target.
    pub fn parse_recorded(text: &str) -> Result<Self, TargetError> {
        let (namespace, kind, name) = split(text)?;
        if name.is_empty() {
            return Err(TargetError::Name);
        }
        Self::canonical(namespace, kind, name)
    }

    fn canonical(namespace: Option<&str>, kind: &str, name: &str) -> Result<Self, TargetError> {
        if namespace.is_some_and(|namespace| !is_dns_label(namespace)) {
            return Err(TargetError::Namespace);
        }
        let (kind, _) = canonical_kind(kind).ok_or(TargetError::Kind)?;
        Ok(Self(match namespace {
            Some(namespace) => format!("{namespace}/{kind}/{name}").into(),
            None => format!("{kind}/{name}").into(),
        }))
    }

    /// Returns the canonical form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the namespace of the target; `None` for a cluster-scoped target.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let (first, rest) = self.0.split_once('/')?;
        rest.contains('/').then_some(first)
    }

    /// Returns the kind of the target, in canonical form.
    #[must_use]
    pub fn kind(&self) -> &str {
        let rest = self.namespace().map_or(self.as_str(), |namespace| &self.0[namespace.len() + 1..]);
        rest.split_once('/').map_or(rest, |(kind, _)| kind)
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

fn split(text: &str) -> Result<(Option<&str>, &str, &str), TargetError> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [kind, name] => Ok((None, kind, name)),
        [namespace, kind, name] => Ok((Some(namespace), kind, name)),
        _ => Err(TargetError::Parts),
    }
}

/// Returns whether the first of three parts is a built-in kind, and the second is neither a kind nor has a group.
/// Earlier versions read such a text as an object of an unknown kind in a namespace of that name. That created a second
/// lock for the intended object.
fn is_kind_first(first: &str, second: &str) -> bool {
    let (first, second) = (first.to_ascii_lowercase(), second.to_ascii_lowercase());
    is_dns_label(&second) && kinds::built_in(&first).is_some() && kinds::built_in(&second).is_none()
}

/// Returns a kind in lower case without its version and group.
fn without_group(kind: &str) -> String {
    kind.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

/// Returns whether a text can be the name of an object. DNS subdomains are not enough, because the names of RBAC
/// objects have colons and capitals. A space or a line break in a name would create a second lock for one object.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() <= MAX_SUBDOMAIN
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._:@-".contains(byte))
}

/// Returns the canonical form of a kind, and its scope if it is built in. `None` if a target cannot have this kind.
#[must_use]
pub fn canonical_kind(text: &str) -> Option<(Cow<'static, str>, Option<Scope>)> {
    if text.len() > MAX_SUBDOMAIN || !text.to_ascii_lowercase().split('.').all(is_dns_label) {
        return None;
    }
    let kind = without_group(text);
    Some(match kinds::built_in(&kind) {
        Some((singular, scope)) => (singular.into(), Some(scope)),
        None => (kind.into(), None),
    })
}

/// Returns whether a text is a DNS label: at most 63 of a-z, 0-9 and `-`, no `-` at either end.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
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
            ("", Parts),
            ("api", Parts),
            ("a/b/c/d", Parts),
            ("/deployment/api", Namespace),
            ("Payment/deployment/api", Namespace),
            ("pay_ment/deployment/api", Namespace),
            ("pay.ment/deployment/api", Namespace),
            ("-payment/deployment/api", Namespace),
            (&format!("{}/deployment/api", &long[..64]), Namespace),
            ("payment//api", Kind),
            ("payment/-deploy/api", Kind),
            ("payment/deploy..apps/api", Kind),
            ("payment/deploy_ment/api", Kind),
            (&format!("{}/api", &long[..64]), Kind),
            ("payment/deployment/", Name),
            ("payment/deployment/.", Name),
            ("payment/deployment/..", Name),
            ("payment/deployment/a%2fb", Name),
            ("payment/deployment/api\n", Name),
            ("payment/deployment/a b", Name),
            ("payment/deployment/a\u{7f}b", Name),
            ("payment/deployment/\u{e4}pi", Name),
            ("payment/deployment/-api", Name),
            ("payment/deployment/api.", Name),
            (&format!("node/{long}"), Name),
        ] {
            assert_eq!(TargetName::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_built_in_kind_has_a_namespace_exactly_where_its_scope_says_so() {
        for (text, form) in [
            ("deployment/slow-api", "namespace/deployment/slow-api"),
            ("deploy/slow-api", "namespace/deployment/slow-api"),
            ("DEPLOYMENTS/slow-api", "namespace/deployment/slow-api"),
            ("Deployment.v1.apps/slow-api", "namespace/deployment/slow-api"),
            ("po/x", "namespace/pod/x"),
            ("payment/node/x", "node/x"),
            ("payment/Nodes/x", "node/x"),
            ("payment/no/x", "node/x"),
            ("payment/no.v1/x", "node/x"),
            ("payment/CRDs/x", "customresourcedefinition/x"),
        ] {
            let error = TargetName::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("must be {form} ")), "{text}: {error}");
        }
        for text in ["no.v1/x", "NODES/x", "payment/po.v1/x", "payment/certificate/x", "certificate/x"] {
            assert!(TargetName::parse(text).is_ok(), "{text}");
        }
        for scope in [Scope::Namespaced, Scope::Cluster] {
            for kind in kinds::kind_spellings(scope) {
                for spelling in [kind.to_owned(), kind.to_uppercase(), format!("{kind}.v1"), format!("{kind}.apps")] {
                    let with = TargetName::parse(&format!("payment/{spelling}/x"));
                    let without = TargetName::parse(&format!("{spelling}/x"));
                    let is_namespaced = scope == Scope::Namespaced;
                    assert_eq!((with.is_ok(), without.is_ok()), (is_namespaced, !is_namespaced), "{spelling}");
                }
            }
        }
    }

    #[test]
    fn a_kind_in_the_place_of_the_namespace_is_refused_with_both_remedies() {
        for (text, remedies) in [
            (
                "deployment/payment/api",
                "must be payment/deployment/api, with the namespace first; where the namespace is called deployment, \
                 write the kind with its group, e.g. deployment/payment.example.com/api",
            ),
            ("Deployment/payment/api", "must be payment/Deployment/api, with the namespace first"),
            ("node/payment/worker-1", "must be payment/node/worker-1, with the namespace first"),
            ("jobs/certificate/tls", "write the kind with its group, e.g. jobs/certificate.example.com/tls"),
        ] {
            let error = TargetName::parse(text).unwrap_err().to_string();
            assert!(error.contains(remedies), "{text}: {error}");
        }
        // A namespace may have the name of a kind.
        for (text, target) in [
            ("jobs/deployment/api", "jobs/deployment/api"),
            ("jobs/Pod/api-0", "jobs/pod/api-0"),
            ("jobs/certificate.cert-manager.io/tls", "jobs/certificate/tls"),
        ] {
            assert_eq!(canonical(text), target);
            assert_eq!(TargetName::parse_recorded(target).unwrap().as_str(), target);
        }
    }

    #[test]
    fn what_an_earlier_version_has_started_keeps_its_target() {
        for (text, recorded) in [
            ("Deployment/slow-api", "deployment/slow-api"),
            ("payment/no/x", "payment/node/x"),
            ("deployment/payment/api", "deployment/payment/api"),
            ("payment/deploy/api\n", "payment/deployment/api\n"),
        ] {
            assert!(TargetName::parse(text).is_err(), "{text}");
            assert_eq!(TargetName::parse_recorded(text).unwrap().as_str(), recorded);
        }
        assert_eq!(TargetName::parse_recorded("payment/deployment/"), Err(TargetError::Name));
        assert_eq!(TargetName::parse_recorded("api"), Err(TargetError::Parts));
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
        fn parsing_never_panics_and_is_idempotent(text in "([a-z]{1,4}/)?(no|Pods|[a-zA-Z0-9./%:-]{0,20})/[a-zA-Z0-9./%:@ _-]{0,20}") {
            if let Ok(name) = TargetName::parse(&text) {
                prop_assert_eq!(TargetName::parse(name.as_str()), Ok(name.clone()));
                prop_assert_eq!(TargetName::parse_recorded(&text), Ok(name));
            }
        }
    }
}
