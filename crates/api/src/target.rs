//! Builds `spec.targetResource` from the object that an alert is about.
//!
//! The module refuses the same targets as the admission rules of the field. A program thus learns of a mistake before
//! it asks the API server. The parts are returned as they are given; `status.target` shows the canonical form.

use wfe_core::target::{TargetError, TargetName};

/// Writes the target of an execution: `namespace/kind/name`, or `kind/name` for a cluster-scoped object.
///
/// The parts are written as they are given. All spellings of a kind name the same target. A built-in kind must have a
/// namespace if it is namespaced, and must have none if it is cluster-scoped. An empty namespace is refused.
///
/// ```
/// use wfe_api::{TargetError, target_resource};
///
/// assert_eq!(target_resource(Some("payment"), "deployment", "payment-api")?, "payment/deployment/payment-api");
/// assert_eq!(target_resource(None, "node", "worker-node-1")?, "node/worker-node-1");
/// assert_eq!(target_resource(Some(""), "deployment", "payment-api"), Err(TargetError::Namespace));
/// let error = target_resource(None, "deployment", "payment-api").unwrap_err();
/// assert!(error.to_string().starts_with("must be namespace/deployment/payment-api"));
/// # Ok::<(), TargetError>(())
/// ```
pub fn target_resource(namespace: Option<&str>, kind: &str, name: &str) -> Result<String, TargetError> {
    TargetName::of_parts(namespace, kind, name)?;
    Ok(match namespace {
        Some(namespace) => format!("{namespace}/{kind}/{name}"),
        None => format!("{kind}/{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_they_were_given() {
        let long = "x".repeat(253);
        for (namespace, kind, name, target) in [
            (Some("payment"), "deployment", "payment-api", "payment/deployment/payment-api"),
            (Some("payment"), "Deployment", "payment-api", "payment/Deployment/payment-api"),
            (Some("payment"), "deployments.apps", "api", "payment/deployments.apps/api"),
            (None, "node", "worker-node-1", "node/worker-node-1"),
            (None, "ClusterRole", "system:Node", "ClusterRole/system:Node"),
            (None, "node", &long, &format!("node/{long}")),
        ] {
            assert_eq!(target_resource(namespace, kind, name).as_deref(), Ok(target));
        }
    }

    #[test]
    fn parts_that_make_no_target_are_refused() {
        use TargetError::{Kind, Name, Namespace};
        for (namespace, kind, name, error) in [
            (Some(""), "deployment", "api", Namespace),
            (Some("a/b"), "deployment", "api", Namespace),
            (Some("payment"), "", "api", Kind),
            (Some("payment"), "a/b", "api", Kind),
            (None, "node", "", Name),
            (None, "node", "a/b", Name),
            (None, "node", "50%", Name),
        ] {
            assert_eq!(target_resource(namespace, kind, name), Err(error), "{namespace:?} {kind:?} {name:?}");
        }
    }
}
