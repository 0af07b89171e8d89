//! Short names and plurals of the built-in kinds.
//!
//! A table, not discovery: what discovery answers changes under us, and with it the lock key (SPEC section 4). Kinds
//! of others are not listed; for them the spelling is the identity.

/// `(singular, plural, short names)` as `kubectl api-resources` shows them for Kubernetes 1.36.
const BUILT_IN: &[(&str, &str, &[&str])] = &[
    ("apiservice", "apiservices", &[]),
    ("certificatesigningrequest", "certificatesigningrequests", &["csr"]),
    ("clusterrole", "clusterroles", &[]),
    ("clusterrolebinding", "clusterrolebindings", &[]),
    ("configmap", "configmaps", &["cm"]),
    ("controllerrevision", "controllerrevisions", &[]),
    ("cronjob", "cronjobs", &["cj"]),
    ("csidriver", "csidrivers", &[]),
    ("csinode", "csinodes", &[]),
    ("csistoragecapacity", "csistoragecapacities", &[]),
    ("customresourcedefinition", "customresourcedefinitions", &["crd", "crds"]),
    ("daemonset", "daemonsets", &["ds"]),
    ("deployment", "deployments", &["deploy"]),
    ("deviceclass", "deviceclasses", &[]),
    ("endpoints", "endpoints", &["ep"]),
    ("endpointslice", "endpointslices", &[]),
    ("event", "events", &["ev"]),
    ("flowschema", "flowschemas", &[]),
    ("horizontalpodautoscaler", "horizontalpodautoscalers", &["hpa"]),
    ("ingress", "ingresses", &["ing"]),
    ("ingressclass", "ingressclasses", &[]),
    ("ipaddress", "ipaddresses", &["ip"]),
    ("job", "jobs", &[]),
    ("lease", "leases", &[]),
    ("limitrange", "limitranges", &["limits"]),
    ("mutatingadmissionpolicy", "mutatingadmissionpolicies", &[]),
    ("mutatingadmissionpolicybinding", "mutatingadmissionpolicybindings", &[]),
    ("mutatingwebhookconfiguration", "mutatingwebhookconfigurations", &[]),
    ("namespace", "namespaces", &["ns"]),
    ("networkpolicy", "networkpolicies", &["netpol"]),
    ("node", "nodes", &["no"]),
    ("persistentvolume", "persistentvolumes", &["pv"]),
    ("persistentvolumeclaim", "persistentvolumeclaims", &["pvc"]),
    ("pod", "pods", &["po"]),
    ("poddisruptionbudget", "poddisruptionbudgets", &["pdb"]),
    ("podtemplate", "podtemplates", &[]),
    ("priorityclass", "priorityclasses", &["pc"]),
    ("prioritylevelconfiguration", "prioritylevelconfigurations", &[]),
    ("replicaset", "replicasets", &["rs"]),
    ("replicationcontroller", "replicationcontrollers", &["rc"]),
    ("resourceclaim", "resourceclaims", &[]),
    ("resourceclaimtemplate", "resourceclaimtemplates", &[]),
    ("resourcequota", "resourcequotas", &["quota"]),
    ("resourceslice", "resourceslices", &[]),
    ("role", "roles", &[]),
    ("rolebinding", "rolebindings", &[]),
    ("runtimeclass", "runtimeclasses", &[]),
    ("secret", "secrets", &[]),
    ("service", "services", &["svc"]),
    ("serviceaccount", "serviceaccounts", &["sa"]),
    ("servicecidr", "servicecidrs", &[]),
    ("statefulset", "statefulsets", &["sts"]),
    ("storageclass", "storageclasses", &["sc"]),
    ("validatingadmissionpolicy", "validatingadmissionpolicies", &[]),
    ("validatingadmissionpolicybinding", "validatingadmissionpolicybindings", &[]),
    ("validatingwebhookconfiguration", "validatingwebhookconfigurations", &[]),
    ("volumeattachment", "volumeattachments", &[]),
    ("volumeattributesclass", "volumeattributesclasses", &["vac"]),
];

/// Returns the singular of a built-in kind's plural or short name, and anything else as it is. Takes lower case.
pub(super) fn singular(kind: &str) -> &str {
    BUILT_IN
        .iter()
        .find(|(singular, plural, short)| *singular == kind || *plural == kind || short.contains(&kind))
        .map_or(kind, |(singular, ..)| singular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_means_two_kinds() {
        let spellings = || {
            BUILT_IN.iter().flat_map(|(singular, plural, short)| {
                let plural = (singular != plural).then_some(plural);
                std::iter::once(singular).chain(plural).chain(short.iter())
            })
        };
        for spelling in spellings() {
            assert_eq!(spellings().filter(|other| *other == spelling).count(), 1, "{spelling}");
        }
    }
}
