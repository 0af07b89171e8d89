//! Short names, plurals and scopes of the built-in kinds.
//!
//! This is a fixed table. The results of API discovery can change, and the lock key would change with them (section 4).
//! Custom kinds are not listed; for them the spelling is the identity.

use Scope::{Cluster, Namespaced};

/// Whether the objects of a kind have a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The objects have a namespace.
    Namespaced,
    /// The objects have no namespace.
    Cluster,
}

/// `(singular, plural, short names, scope)` as `kubectl api-resources` shows them for Kubernetes 1.36.
const BUILT_IN: &[(&str, &str, &[&str], Scope)] = &[
    ("apiservice", "apiservices", &[], Cluster),
    ("certificatesigningrequest", "certificatesigningrequests", &["csr"], Cluster),
    ("clusterrole", "clusterroles", &[], Cluster),
    ("clusterrolebinding", "clusterrolebindings", &[], Cluster),
    ("configmap", "configmaps", &["cm"], Namespaced),
    ("controllerrevision", "controllerrevisions", &[], Namespaced),
    ("cronjob", "cronjobs", &["cj"], Namespaced),
    ("csidriver", "csidrivers", &[], Cluster),
    ("csinode", "csinodes", &[], Cluster),
    ("csistoragecapacity", "csistoragecapacities", &[], Namespaced),
    ("customresourcedefinition", "customresourcedefinitions", &["crd", "crds"], Cluster),
    ("daemonset", "daemonsets", &["ds"], Namespaced),
    ("deployment", "deployments", &["deploy"], Namespaced),
    ("deviceclass", "deviceclasses", &[], Cluster),
    ("endpoints", "endpoints", &["ep"], Namespaced),
    ("endpointslice", "endpointslices", &[], Namespaced),
    ("event", "events", &["ev"], Namespaced),
    ("flowschema", "flowschemas", &[], Cluster),
    ("horizontalpodautoscaler", "horizontalpodautoscalers", &["hpa"], Namespaced),
    ("ingress", "ingresses", &["ing"], Namespaced),
    ("ingressclass", "ingressclasses", &[], Cluster),
    ("ipaddress", "ipaddresses", &["ip"], Cluster),
    ("job", "jobs", &[], Namespaced),
    ("lease", "leases", &[], Namespaced),
    ("limitrange", "limitranges", &["limits"], Namespaced),
    ("mutatingadmissionpolicy", "mutatingadmissionpolicies", &[], Cluster),
    ("mutatingadmissionpolicybinding", "mutatingadmissionpolicybindings", &[], Cluster),
    ("mutatingwebhookconfiguration", "mutatingwebhookconfigurations", &[], Cluster),
    ("namespace", "namespaces", &["ns"], Cluster),
    ("networkpolicy", "networkpolicies", &["netpol"], Namespaced),
    ("node", "nodes", &["no"], Cluster),
    ("persistentvolume", "persistentvolumes", &["pv"], Cluster),
    ("persistentvolumeclaim", "persistentvolumeclaims", &["pvc"], Namespaced),
    ("pod", "pods", &["po"], Namespaced),
    ("poddisruptionbudget", "poddisruptionbudgets", &["pdb"], Namespaced),
    ("podtemplate", "podtemplates", &[], Namespaced),
    ("priorityclass", "priorityclasses", &["pc"], Cluster),
    ("prioritylevelconfiguration", "prioritylevelconfigurations", &[], Cluster),
    ("replicaset", "replicasets", &["rs"], Namespaced),
    ("replicationcontroller", "replicationcontrollers", &["rc"], Namespaced),
    ("resourceclaim", "resourceclaims", &[], Namespaced),
    ("resourceclaimtemplate", "resourceclaimtemplates", &[], Namespaced),
    ("resourcequota", "resourcequotas", &["quota"], Namespaced),
    ("resourceslice", "resourceslices", &[], Cluster),
    ("role", "roles", &[], Namespaced),
    ("rolebinding", "rolebindings", &[], Namespaced),
    ("runtimeclass", "runtimeclasses", &[], Cluster),
    ("secret", "secrets", &[], Namespaced),
    ("service", "services", &["svc"], Namespaced),
    ("serviceaccount", "serviceaccounts", &["sa"], Namespaced),
    ("servicecidr", "servicecidrs", &[], Cluster),
    ("statefulset", "statefulsets", &["sts"], Namespaced),
    ("storageclass", "storageclasses", &["sc"], Cluster),
    ("validatingadmissionpolicy", "validatingadmissionpolicies", &[], Cluster),
    ("validatingadmissionpolicybinding", "validatingadmissionpolicybindings", &[], Cluster),
    ("validatingwebhookconfiguration", "validatingwebhookconfigurations", &[], Cluster),
    ("volumeattachment", "volumeattachments", &[], Cluster),
    ("volumeattributesclass", "volumeattributesclasses", &["vac"], Cluster),
];

/// Returns the singular and the scope of a built-in kind, by its singular, plural or short name in lower case.
pub(super) fn built_in(kind: &str) -> Option<(&'static str, Scope)> {
    BUILT_IN
        .iter()
        .find(|(singular, plural, short, _)| *singular == kind || *plural == kind || short.contains(&kind))
        .map(|(singular, _, _, scope)| (*singular, *scope))
}

/// Lists every spelling of the built-in kinds of a scope, in lower case: singulars, plurals and short names.
pub fn kind_spellings(scope: Scope) -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().filter(move |(.., its)| *its == scope).flat_map(|(singular, plural, short, _)| {
        let plural = (singular != plural).then_some(*plural);
        std::iter::once(*singular).chain(plural).chain(short.iter().copied())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_means_two_kinds() {
        let spellings: Vec<&str> = [Namespaced, Cluster].into_iter().flat_map(kind_spellings).collect();
        assert!(spellings.len() > 2 * BUILT_IN.len(), "{spellings:?}");
        for spelling in &spellings {
            assert_eq!(spellings.iter().filter(|other| *other == spelling).count(), 1, "{spelling}");
        }
    }
}
