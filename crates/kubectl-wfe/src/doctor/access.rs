//! What workflows and people may do, and whether alerts reach a person.

use serde_json::Value;

use super::check::{Check, Group};
use super::look::{Answer, Binding, Installed, runner_of};

/// Roles that let a person ask why nothing runs. One bound role is enough.
const READING: [&str; 2] = ["wfe-explain", "wfe-oncall"];
/// The role by which a person can clear a target.
const CLEARING: &str = "wfe-clear";
/// The limit of namespaces that are named.
const NAMED: usize = 3;

/// Checks the execution namespace and the service account of workflows.
pub(super) fn workflows(seen: &Installed, checks: &mut Vec<Check>) {
    let mut group = Group::new("workflows", checks);
    let (runs, runner) = (&*seen.installation.execution_namespace, runner_of(&seen.installation));
    match &seen.execution_namespace {
        Answer::Absent => {
            return group.error(
                format!("there is no namespace {runs}, in which the operator makes all runs"),
                "kubectl apply --server-side -k config/base; with Helm, helm upgrade",
            );
        }
        Answer::Denied(why) => group.not_seen(&format!("the namespace {runs}"), why),
        Answer::Found(namespace) => {
            let level = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
            match level.as_str() {
                Some(level @ ("baseline" | "restricted")) => group.ok(format!("{runs} enforces Pod Security: {level}")),
                _ => group.warning(
                    format!("{runs} does not enforce a Pod Security level: a workflow can take over its node"),
                    format!("kubectl label namespace {runs} pod-security.kubernetes.io/enforce=baseline"),
                ),
            }
        }
    }
    match (&seen.runner, &seen.bindings) {
        (Answer::Absent, _) => group.error(
            format!("there is no service account {runs}/{runner}: no pod of a workflow can start"),
            format!("kubectl create serviceaccount {runner} --namespace {runs}"),
        ),
        (_, Answer::Found(bindings)) => rights_of_runner(bindings, runs, runner, &mut group),
        (_, Answer::Denied(why)) => group.not_seen(&format!("what {runs}/{runner} may do"), why),
        (_, Answer::Absent) => group.not_seen(&format!("what {runs}/{runner} may do"), "the cluster has no RBAC"),
    }
}

fn rights_of_runner(bindings: &[Binding], runs: &str, runner: &str, group: &mut Group<'_>) {
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{runs}")];
    let is_runner = |binding: &&Binding| {
        binding.subjects.iter().any(|it| match &*it.kind {
            "ServiceAccount" => it.name == runner && it.namespace.as_deref() == Some(runs),
            "User" => it.name == format!("system:serviceaccount:{runs}:{runner}"),
            "Group" => it.name == groups[1] || it.name == groups[0] && !is_of_every_cluster(binding),
            _ => false,
        })
    };
    let held: Vec<&Binding> = bindings.iter().filter(is_runner).collect();
    if held.iter().any(|it| it.namespace.is_none() && it.role.name == "cluster-admin") {
        return group.warning(
            format!("{runs}/{runner} is cluster-admin: every user who can create an execution can do everything"),
            "bind it, in the namespaces that workflows are to touch, to what they need there",
        );
    }
    let mut places: Vec<&str> = held.iter().map(|it| it.namespace.as_deref().unwrap_or("the whole cluster")).collect();
    places.sort_unstable();
    places.dedup();
    if places.is_empty() {
        return group.warning(
            format!("{runs}/{runner} may do nothing in any namespace"),
            format!(
                "kubectl create rolebinding workflows --namespace NAMESPACE --clusterrole ROLE --serviceaccount \
                 {runs}:{runner}"
            ),
        );
    }
    let more = places.len().saturating_sub(NAMED);
    places.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    group.ok(format!("{runs}/{runner} has roles in {}{more}", places.join(", ")));
}

/// Returns whether a binding is to a role of Kubernetes itself, as for API discovery. Every cluster has such bindings.
fn is_of_every_cluster(binding: &Binding) -> bool {
    binding.role.name.starts_with("system:")
}

/// Checks whether the roles for people are bound.
pub(super) fn people(seen: &Installed, checks: &mut Vec<Check>) {
    let mut group = Group::new("people", checks);
    let bindings = match &seen.bindings {
        Answer::Found(bindings) => bindings,
        Answer::Denied(why) => return group.not_seen("who has the roles for people", why),
        Answer::Absent => return group.not_seen("who has the roles for people", "the cluster has no RBAC"),
    };
    let is_bound = |role: &str| bindings.iter().any(|it| it.role.name == role && !it.subjects.is_empty());
    let bind = |role: &str| format!("kubectl create clusterrolebinding {role} --clusterrole {role} --group GROUP");
    if let Some(role) = READING.into_iter().find(|role| is_bound(role)) {
        group.ok(format!("{role} is bound"));
    } else {
        group.warning(
            format!("{} is bound to nobody: only administrators can ask why nothing runs", READING[0]),
            bind(READING[0]) + "; all bindings: docs/kubectl-wfe.md#roles",
        );
    }
    if is_bound(CLEARING) {
        group.ok(format!("{CLEARING} is bound"));
    } else {
        group.warning(format!("{CLEARING} is bound to nobody: only administrators can clear a target"), bind(CLEARING));
    }
}

/// Checks whether a `PrometheusRule` contains the operator's alerts.
pub(super) fn alerts(seen: &Installed, checks: &mut Vec<Check>) {
    let mut group = Group::new("alerts", checks);
    let namespace = &seen.operator.namespace;
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match &seen.alerts {
        Answer::Denied(why) => group.not_seen(&format!("the PrometheusRules of {namespace}"), why),
        Answer::Absent => group.warning(
            "the cluster has no PrometheusRules: the Prometheus Operator is not installed",
            "give your Prometheus the alerts another way: docs/monitoring.md",
        ),
        Answer::Found(list) => {
            let groups = all(&list["items"]).into_iter().flat_map(|rule| all(&rule["spec"]["groups"]));
            let rules = groups.flat_map(|group| all(&group["rules"]));
            let is_ours = |rule: &Value| rule["alert"].as_str().is_some_and(|name| name.starts_with("Workflow"));
            match rules.filter(is_ours).count() {
                0 => group.warning(
                    format!("no PrometheusRule of {namespace} has the alerts of this operator"),
                    "with Helm, set prometheusRule.enabled=true; else docs/monitoring.md",
                ),
                count => group.ok(format!("a PrometheusRule of {namespace} has {count} alerts")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1::{RoleRef, Subject};
    use serde_json::json;

    use super::super::check::told;
    use super::super::testing::installed;
    use super::*;

    fn binding(namespace: Option<&str>, role: &str, kind: &str, name: &str) -> Binding {
        Binding {
            namespace: namespace.map(str::to_owned),
            role: RoleRef { name: role.to_owned(), ..RoleRef::default() },
            subjects: vec![Subject {
                kind: kind.to_owned(),
                name: name.to_owned(),
                namespace: (kind == "ServiceAccount").then(|| "runs".to_owned()),
                ..Subject::default()
            }],
        }
    }

    fn says(seen: &Installed) -> String {
        let mut checks = Vec::new();
        workflows(seen, &mut checks);
        people(seen, &mut checks);
        alerts(seen, &mut checks);
        told(&checks)
    }

    #[test]
    fn good_access_is_told_line_by_line() {
        let mut seen = installed();
        let runner = |namespace| binding(Some(namespace), "restart", "ServiceAccount", "kubernaut-workflow-runner");
        let discovery = binding(None, "system:service-account-issuer-discovery", "Group", "system:serviceaccounts");
        let people =
            [("wfe-oncall", "sre"), ("wfe-clear", "sre")].map(|(role, name)| binding(None, role, "Group", name));
        let of_runner = ["shop", "payment", "a", "b", "b"].map(runner);
        seen.bindings = Answer::Found([&[discovery][..], &people, &of_runner].concat());
        assert_eq!(
            says(&seen),
            "workflows   ok  runs enforces Pod Security: baseline\n\
             \x20           ok  runs/kubernaut-workflow-runner has roles in a, b, payment and 1 more\n\
             people      ok  wfe-oncall is bound\n\
             \x20           ok  wfe-clear is bound\n\
             alerts      ok  a PrometheusRule of ops has 1 alerts\n\
             0 errors, 0 warnings\n"
        );
    }

    #[test]
    fn each_fault_is_told() {
        for (change, expected) in [
            (
                (|_| ()) as fn(&mut Installed),
                "!   runs/kubernaut-workflow-runner may do nothing in any namespace\n                kubectl create rolebinding",
            ),
            (|_| (), "people      !   wfe-explain is bound to nobody: only administrators can ask why nothing runs\n"),
            (|_| (), "!   wfe-clear is bound to nobody: only administrators can clear a target\n"),
            (
                |it| {
                    it.bindings =
                        Answer::Found(vec![binding(None, "cluster-admin", "Group", "system:serviceaccounts:runs")]);
                },
                "!   runs/kubernaut-workflow-runner is cluster-admin: every user",
            ),
            (|it| it.execution_namespace = Answer::Absent, "workflows   x   there is no namespace runs, in which"),
            (
                |it| it.execution_namespace = Answer::Found(json!({})),
                "!   runs does not enforce a Pod Security level: a workflow can take over its node\n",
            ),
            (|it| it.runner = Answer::Absent, "x   there is no service account runs/kubernaut-workflow-runner: no pod"),
            (|it| it.alerts = Answer::Absent, "alerts      !   the cluster has no PrometheusRules"),
            (|it| it.alerts = Answer::Found(json!({"items": []})), "!   no PrometheusRule of ops has the alerts"),
        ] {
            let mut seen = installed();
            change(&mut seen);
            let told = says(&seen);
            assert!(told.contains(expected), "{expected}\n{told}");
        }
        let mut seen = installed();
        seen.bindings = Answer::Denied("forbidden".to_owned());
        let told = says(&seen);
        assert!(told.contains("-   not seen: what runs/kubernaut-workflow-runner may do: forbidden\n"), "{told}");
        assert!(told.contains("people      -   not seen: who has the roles for people: forbidden\n"), "{told}");
    }
}
