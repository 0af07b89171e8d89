//! What may stand in `spec.targetResource`, and how it is put together from the object that an alert is about.
//!
//! The same as the admission rules of the field say, so that a program hears it before the API server does. Does not know
//! the canonical form: which spellings are one target is the operator's to say, and `status.target` shows it.

use crate::limits;

/// Why something is no target. The text says what is expected, with an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not two or three parts.
    #[error("must be namespace/kind/name or kind/name, e.g. payment/deployment/api or node/worker-1")]
    Parts,
    /// The namespace is not a DNS label.
    #[error(
        "the namespace must be a DNS label (at most 63 of a-z, 0-9 and -, no - at either end), e.g. payment; leave it out \
         for a cluster-scoped object"
    )]
    Namespace,
    /// The kind is not a DNS subdomain.
    #[error(
        "the kind must be a DNS subdomain (at most 253 characters, at most 63 between two dots), capitals allowed, e.g. \
         deployment, Deployment or deployments.apps"
    )]
    Kind,
    /// The name is not a path segment.
    #[error(
        "the name must be one path segment of at most 253 characters, without / and % and neither . nor .., e.g. payment-api"
    )]
    Name,
}

/// Writes the target of an execution: `namespace/kind/name`, or `kind/name` for a cluster-scoped object.
///
/// The parts stand in it as they are given; every spelling of a kind is the same target. An empty namespace is refused:
/// whoever knows none says `None`, since `deployment/api` and `payment/deployment/api` do not exclude each other.
///
/// ```
/// use wfe_api::{TargetError, target_resource};
///
/// assert_eq!(target_resource(Some("payment"), "deployment", "payment-api")?, "payment/deployment/payment-api");
/// assert_eq!(target_resource(None, "node", "worker-node-1")?, "node/worker-node-1");
/// assert_eq!(target_resource(Some(""), "deployment", "payment-api"), Err(TargetError::Namespace));
/// # Ok::<(), TargetError>(())
/// ```
pub fn target_resource(namespace: Option<&str>, kind: &str, name: &str) -> Result<String, TargetError> {
    if namespace.is_some_and(|namespace| !is_dns_label(namespace)) {
        return Err(TargetError::Namespace);
    }
    if kind.len() > limit(limits::NAME) || !kind.to_ascii_lowercase().split('.').all(is_dns_label) {
        return Err(TargetError::Kind);
    }
    let long = name.chars().count() > limit(limits::NAME);
    if name.is_empty() || long || name == "." || name == ".." || name.contains(['%', '/']) {
        return Err(TargetError::Name);
    }
    Ok(match namespace {
        Some(namespace) => format!("{namespace}/{kind}/{name}"),
        None => format!("{kind}/{name}"),
    })
}

/// Says what is wrong with a text that is to be a target.
pub(crate) fn check(text: &str) -> Result<(), TargetError> {
    let parts: Vec<&str> = text.split('/').collect();
    let (namespace, kind, name) = match parts[..] {
        [kind, name] => (None, kind, name),
        [namespace, kind, name] => (Some(namespace), kind, name),
        _ => return Err(TargetError::Parts),
    };
    target_resource(namespace, kind, name).map(drop)
}

/// Says whether `text` is a DNS label: at most 63 of a-z, 0-9 and `-`, no `-` at either end.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=limit(limits::NAMESPACE)).contains(&text.len())
        && text.bytes().all(legal)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn limit(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_as_they_were_given() {
        let long = "x".repeat(253);
        for (namespace, kind, name, target) in [
            (Some("payment"), "deployment", "payment-api", "payment/deployment/payment-api"),
            (Some("payment"), "Deployment", "payment-api", "payment/Deployment/payment-api"),
            (Some("payment"), "deployments.apps", "api", "payment/deployments.apps/api"),
            (None, "node", "worker-node-1", "node/worker-node-1"),
            (None, "ClusterRole", "system:Node", "ClusterRole/system:Node"),
            (None, "node", "..data", "node/..data"),
            (None, "node", &long, &format!("node/{long}")),
        ] {
            assert_eq!(target_resource(namespace, kind, name).as_deref(), Ok(target));
            assert_eq!(check(target), Ok(()), "{target}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        use TargetError::{Kind, Name, Namespace};
        let long = "x".repeat(254);
        for (namespace, kind, name, error) in [
            (Some(""), "deployment", "api", Namespace),
            (Some("Payment"), "deployment", "api", Namespace),
            (Some("pay.ment"), "deployment", "api", Namespace),
            (Some("-payment"), "deployment", "api", Namespace),
            (Some(&long[..64]), "deployment", "api", Namespace),
            (Some("payment"), "", "api", Kind),
            (Some("payment"), "deploy_ment", "api", Kind),
            (Some("payment"), "deployments.", "api", Kind),
            (Some("payment"), "a/b", "api", Kind),
            (None, &long[..64], "api", Kind),
            (None, "node", "", Name),
            (None, "node", ".", Name),
            (None, "node", "..", Name),
            (None, "node", "50%", Name),
            (None, "node", "a/b", Name),
            (None, "node", &long, Name),
        ] {
            assert_eq!(target_resource(namespace, kind, name), Err(error), "{namespace:?} {kind:?} {name:?}");
        }
        for text in ["", "node", "a/b/c/d"] {
            assert_eq!(check(text), Err(TargetError::Parts), "{text}");
        }
    }
}
