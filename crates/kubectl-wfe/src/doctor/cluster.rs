//! What the operator needs of a cluster: Kubernetes, Tekton, and the CRDs.

use serde_json::Value;
use wfe_api::crd::{EXECUTIONS_CRD, Lacking, SCHEDULES_CRD, in_short, lacking_in_schema};

use super::check::{Check, Group};
use super::look::{Answer, Cluster};

/// The oldest Kubernetes: `kubeVersion` of the chart.
const KUBERNETES: (u32, u32) = (1, 33);
/// The oldest and the newest Tekton that the tests run: `tests/controlplane`.
const TEKTON: [(u32, u32); 2] = [(1, 9), (1, 12)];
const INSTALL_TEKTON: &str = "https://tekton.dev/docs/installation/pipelines/";
const INSTALL_CRDS: &str = "kubectl apply --server-side -k config/base; with Helm, helm install or helm upgrade";

/// Checks the cluster itself.
pub(super) fn cluster(seen: &Cluster, checks: &mut Vec<Check>) {
    let mut group = Group::new("cluster", checks);
    let (major, minor) = KUBERNETES;
    let shown = seen.version["gitVersion"].as_str().unwrap_or("of an unknown version");
    match version(shown) {
        Some(version) if version < KUBERNETES => group.error(
            format!("Kubernetes {shown} is older than {major}.{minor}"),
            format!("upgrade the cluster to {major}.{minor} or later"),
        ),
        _ => group.ok(format!("Kubernetes {shown} (needs {major}.{minor})")),
    }
    tekton(seen, &mut group);
}

fn tekton(seen: &Cluster, group: &mut Group<'_>) {
    match &seen.tekton {
        Answer::Absent => return group.error("Tekton Pipelines is not installed", INSTALL_TEKTON),
        Answer::Denied(why) => return group.not_seen("Tekton", why),
        Answer::Found(_) => {}
    }
    let [oldest, newest] = TEKTON.map(|(major, minor)| format!("{major}.{minor}"));
    match data(&seen.tekton_info, "version") {
        Ok(Some(shown)) if version(shown).is_some_and(|it| it < TEKTON[0]) => group.warning(
            format!("Tekton {shown} is older than {oldest}, the oldest version that the tests of this project run"),
            INSTALL_TEKTON,
        ),
        Ok(Some(shown)) => group.ok(format!("Tekton {shown} (tested: {oldest} to {newest})")),
        Ok(None) => group.ok("Tekton serves tekton.dev/v1, and does not tell its version"),
        Err(why) => {
            group.ok("Tekton serves tekton.dev/v1");
            group.not_seen("its version", &why);
        }
    }
    match data(&seen.resolvers_flags, "enable-bundles-resolver") {
        Ok(Some("false")) => group.error(
            "Tekton's bundles resolver is off, so no workflow can be fetched",
            "kubectl patch configmap resolvers-feature-flags --namespace tekton-pipelines-resolvers --patch \
             '{\"data\": {\"enable-bundles-resolver\": \"true\"}}'",
        ),
        Ok(_) => group.ok("Tekton's bundles resolver is on"),
        Err(why) => group.not_seen("whether Tekton's bundles resolver is on", &why),
    }
    // With any other value, Tekton makes a pod that binds all pods of a run to one node. The operator does not know
    // this pod.
    match data(&seen.tekton_flags, "coschedule") {
        Ok(None | Some("workspaces" | "disabled")) => {}
        Ok(Some(value)) => group.error(
            format!("Tekton's coschedule is {value:?}, which this operator does not support"),
            "set coschedule of the ConfigMap tekton-pipelines/feature-flags to workspaces or disabled: docs/security.md",
        ),
        Err(why) => group.not_seen("Tekton's coschedule, which must be workspaces or disabled", &why),
    }
}

/// Checks whether the CRDs have the fields of this version. Before an installation they may be absent.
pub(super) fn crds(seen: &Cluster, before: bool, checks: &mut Vec<Check>) {
    let mut group = Group::new("crds", checks);
    let schemas = match &seen.schemas {
        Answer::Found(schemas) => &schemas["components"]["schemas"],
        Answer::Absent => &Value::Null,
        Answer::Denied(why) => return group.not_seen("the CRDs", why),
    };
    for (crd, kind) in [(EXECUTIONS_CRD, "WorkflowExecution"), (SCHEDULES_CRD, "WorkflowSchedule")] {
        let schemas = schemas.as_object().into_iter().flatten().map(|(_, schema)| schema);
        let is_ours = |schema: &&Value| schema["x-kubernetes-group-version-kind"][0]["kind"] == kind;
        let Some(schema) = schemas.into_iter().find(is_ours) else {
            if before {
                group.ok(format!("{crd} is not installed yet"));
            } else {
                group.error(format!("{crd} is not installed"), INSTALL_CRDS);
            }
            continue;
        };
        let Lacking { decisive, others } = lacking_in_schema(crd, schema);
        if !decisive.is_empty() {
            group.error(
                format!("{crd} lacks {}: the operator decides nothing", in_short(&decisive)),
                "another project's CRD may have this name; docs/runbooks/WorkflowExecutionCrdOutdated.md",
            );
        } else if !others.is_empty() {
            group.warning(
                format!("{crd} lacks {}, which the API server drops", in_short(&others)),
                "apply the CRD of this version; docs/runbooks/WorkflowExecutionCrdOutdated.md",
            );
        } else {
            group.ok(format!("{crd} has all fields of {}", env!("CARGO_PKG_VERSION")));
        }
    }
}

/// Checks whether the caller may install the operator.
pub(super) fn rights(denied: &[&str], checks: &mut Vec<Check>) {
    let mut group = Group::new("rights", checks);
    if denied.is_empty() {
        group.ok("you may create what an installation needs");
    }
    for resource in denied {
        group.error(format!("you may not create {resource}"), "let an administrator of the cluster install it");
    }
}

/// Returns a key of a `ConfigMap`, or why it is unknown.
fn data<'a>(read: &'a Answer, key: &str) -> Result<Option<&'a str>, String> {
    match read {
        Answer::Found(object) => Ok(object["data"][key].as_str()),
        Answer::Absent => Err("its ConfigMap is not where Tekton's own manifests put it".to_owned()),
        Answer::Denied(why) => Err(why.clone()),
    }
}

/// Reads major and minor version of a text such as `v1.33.2+k3s1`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.trim_end_matches('+').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::check::told;
    use super::*;

    fn config_map(key: &str, value: &str) -> Answer {
        Answer::Found(json!({"data": {key: value}}))
    }

    fn good() -> Cluster {
        let schema = |crd: &str| {
            let crd = wfe_api::crds().into_iter().find(|it| it.metadata.name.as_deref() == Some(crd)).unwrap();
            let mut schema =
                serde_json::to_value(crd).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
            let kind =
                if schema["properties"]["spec"]["properties"]["cron"].is_null() { "Execution" } else { "Schedule" };
            schema["x-kubernetes-group-version-kind"] = json!([{"kind": format!("Workflow{kind}")}]);
            schema
        };
        Cluster {
            version: json!({"gitVersion": "v1.36.3"}),
            tekton: Answer::Found(json!({})),
            tekton_info: config_map("version", "v1.12.0"),
            tekton_flags: config_map("coschedule", "workspaces"),
            resolvers_flags: config_map("enable-bundles-resolver", "true"),
            schemas: Answer::Found(json!({"components": {"schemas": {
                "a": schema(EXECUTIONS_CRD), "b": schema(SCHEDULES_CRD), "c": {"type": "object"},
            }}})),
        }
    }

    fn says(seen: &Cluster) -> String {
        let mut checks = Vec::new();
        cluster(seen, &mut checks);
        crds(seen, false, &mut checks);
        told(&checks)
    }

    #[test]
    fn a_good_cluster_is_told_line_by_line() {
        assert_eq!(
            says(&good()),
            "cluster     ok  Kubernetes v1.36.3 (needs 1.33)\n\
             \x20           ok  Tekton v1.12.0 (tested: 1.9 to 1.12)\n\
             \x20           ok  Tekton's bundles resolver is on\n\
             crds        ok  workflowexecutions.kubernaut.ai has all fields of 0.2.0\n\
             \x20           ok  workflowschedules.kubernaut.ai has all fields of 0.2.0\n\
             0 errors, 0 warnings\n"
        );
    }

    #[test]
    fn each_fault_is_told() {
        let denied = || Answer::Denied("forbidden".to_owned());
        for (change, expected) in [
            (
                (|it| it.version = json!({"gitVersion": "v1.32.9+k3s1"})) as fn(&mut Cluster),
                "x   Kubernetes v1.32.9+k3s1 is older than 1.33\n",
            ),
            (
                |it| it.tekton = Answer::Absent,
                "x   Tekton Pipelines is not installed\n                https://tekton.dev/",
            ),
            (|it| it.tekton_info = config_map("version", "v1.6.1"), "!   Tekton v1.6.1 is older than 1.9, the oldest"),
            (
                |it| it.resolvers_flags = config_map("enable-bundles-resolver", "false"),
                "x   Tekton's bundles resolver is off, so no workflow can be fetched\n",
            ),
            (
                |it| it.tekton_flags = config_map("coschedule", "pipelineruns"),
                "x   Tekton's coschedule is \"pipelineruns\", which this operator does not support\n",
            ),
            (|it| it.schemas = Answer::Absent, "x   workflowschedules.kubernaut.ai is not installed\n"),
            (
                |it| {
                    let Answer::Found(all) = &mut it.schemas else { return };
                    let spec = &mut all["components"]["schemas"]["a"]["properties"]["spec"]["properties"];
                    spec.as_object_mut().unwrap().remove("retry");
                },
                "!   workflowexecutions.kubernaut.ai lacks spec.retry, which the API server drops\n",
            ),
            (
                |it| {
                    let Answer::Found(all) = &mut it.schemas else { return };
                    all["components"]["schemas"]["a"]["properties"]["status"] = Value::Null;
                },
                "x   workflowexecutions.kubernaut.ai lacks status: the operator decides nothing\n",
            ),
        ] {
            let mut seen = good();
            change(&mut seen);
            let told = says(&seen);
            assert!(told.contains(expected), "{expected}\n{told}");
        }
        let mut seen = good();
        (seen.tekton_info, seen.resolvers_flags, seen.schemas) = (denied(), Answer::Absent, denied());
        let told = says(&seen);
        for expected in [
            "-   not seen: its version: forbidden\n",
            "-   not seen: whether Tekton's bundles resolver is on: its ConfigMap is not where",
            "crds        -   not seen: the CRDs: forbidden\n",
            "0 errors, 0 warnings, 3 not seen\n",
        ] {
            assert!(told.contains(expected), "{expected}\n{told}");
        }
    }

    #[test]
    fn before_an_installation_there_need_be_no_crds() {
        let (mut seen, mut checks) = (good(), Vec::new());
        seen.schemas = Answer::Absent;
        crds(&seen, true, &mut checks);
        rights(&["clusterroles"], &mut checks);
        let told = told(&checks);
        assert!(told.contains("ok  workflowexecutions.kubernaut.ai is not installed yet\n"), "{told}");
        assert!(told.contains("rights      x   you may not create clusterroles\n"), "{told}");
    }

    /// The numbers stand in other files, too.
    #[test]
    fn the_versions_are_those_of_the_chart_and_of_the_tests() {
        let read =
            |path: &str| std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (major, minor) = KUBERNETES;
        assert!(read("deploy/chart/Chart.yaml").contains(&format!("kubeVersion: \">={major}.{minor}.0-0\"")));
        for (folder, (major, minor)) in ["tekton-oldest", "tekton"].into_iter().zip(TEKTON) {
            let module = read(&format!("tests/controlplane/{folder}/go.mod"));
            assert!(module.contains(&format!("github.com/tektoncd/pipeline v{major}.{minor}.")), "{folder}");
        }
    }
}
