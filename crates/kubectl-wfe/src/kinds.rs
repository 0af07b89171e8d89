//! Whether the cluster serves the kind that a target names. A target of an unknown kind is locked and decided on like
//! any other, so nothing else would report a misspelt kind.

use std::collections::BTreeSet;

use kube::Client;
use kube::discovery::{ApiGroup, Discovery};
use wfe_core::target::{Scope, TargetName, kind_spellings};

use crate::connection::ANSWERS_WITHIN;
use crate::nearest::nearest;

/// Returns what is wrong with the kind of a target, if the cluster does not serve it. None also if discovery fails.
pub(crate) async fn unserved(client: &Client, target: &TargetName) -> Option<String> {
    let built_in = || [Scope::Namespaced, Scope::Cluster].into_iter().flat_map(kind_spellings);
    let kind = target.kind();
    if built_in().any(|served| served == kind) {
        return None;
    }
    let discovery = Discovery::new(client.clone()).run_aggregated();
    let discovery = tokio::time::timeout(ANSWERS_WITHIN, discovery).await.ok()?.ok()?;
    let resources = discovery.groups().flat_map(ApiGroup::recommended_resources);
    // A custom kind is identified by its spelling. Targets use the kind or the plural, so both are known.
    let custom = resources.flat_map(|(it, _)| [it.kind.to_ascii_lowercase(), it.plural]);
    advice(target, &custom.chain(built_in().map(str::to_owned)).collect())
}

fn advice(target: &TargetName, served: &BTreeSet<String>) -> Option<String> {
    let kind = target.kind();
    if served.contains(kind) {
        return None;
    }
    let else_ = match (nearest(kind, served.iter().map(String::as_str)), target.namespace()) {
        (Some(nearest), _) => format!("did you mean {}?", target.as_str().replacen(kind, nearest, 1)),
        (None, None) => "a target with a namespace is namespace/kind/name".to_owned(),
        (None, Some(_)) => "see: kubectl api-resources".to_owned(),
    };
    Some(format!("the cluster serves no kind {kind}; {else_}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_kind_is_told_with_the_nearest() {
        let served = ["deployment", "node", "pod", "widget"].map(str::to_owned).into();
        let advice = |target: &str| advice(&TargetName::parse(target).unwrap(), &served);
        assert_eq!(advice("payment/widget/cart"), None);
        for (target, said) in [
            (
                "payment/deployement/cart",
                "the cluster serves no kind deployement; did you mean payment/deployment/cart?",
            ),
            ("nods/worker", "the cluster serves no kind nods; did you mean node/worker?"),
            ("payment/cart", "the cluster serves no kind payment; a target with a namespace is namespace/kind/name"),
            ("a/database/cart", "the cluster serves no kind database; see: kubectl api-resources"),
        ] {
            assert_eq!(advice(target).as_deref(), Some(said));
        }
    }
}
