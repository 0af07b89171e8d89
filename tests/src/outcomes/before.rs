//! Runs that start no step, because they cannot be run as requested.

use serde_json::json;
use wfe_testkit::{Outcome, Pipeline};

use super::play::{End, Full, Play};

pub(super) fn plays() -> Vec<Play> {
    let two = || Pipeline::new().task("check", Outcome::Ok).task("apply", Outcome::Ok);
    let bad_graph = two().patch(|task| task["runAfter"] = json!(["nowhere"]));
    let unknown_result =
        two().patch(|task| task["params"] = json!([{"name": "FOUND", "value": "$(tasks.check.results.nothing)"}]));
    let unknown_task = two().patch(|task| *task = json!({"name": "apply", "taskRef": {"name": "nobody-made-this"}}));
    let invalid = two().patch(|task| task["name"] = json!("not a name"));
    let too_large = Pipeline::new().task("apply", Outcome::Ok).patch(|task| {
        task["taskSpec"]["steps"][0]["computeResources"] = json!({"requests": {"cpu": "100000"}});
    });
    vec![
        Play::of("missing-bundle", "The bundle is not in the registry. Tekton as shipped never says so.", two())
            .bundle_missing()
            .ends(End::Stuck),
        Play::of("missing-bundle-repaired", "The bundle is not in the registry, and Tekton can say so.", two())
            .bundle_missing()
            .repaired(),
        Play::of(
            "wrong-name",
            "No pipeline in the bundle is named `workflow`. Tekton as shipped never says so.",
            two(),
        )
        .pipeline_named("something-else")
        .ends(End::Stuck),
        Play::of("wrong-name-repaired", "No pipeline in the bundle is named `workflow`, and Tekton can say so.", two())
            .pipeline_named("something-else")
            .repaired(),
        Play::of("missing-parameter", "The pipeline asks for a parameter that was not given.", two().param("ZONE")),
        Play::of("bad-graph", "A task runs after one that does not exist.", bad_graph),
        Play::of("unknown-task", "A task refers to a Task that does not exist.", unknown_task),
        Play::of("unknown-result", "A task uses a result that no task has.", unknown_result),
        Play::of("invalid-pipeline", "A task has a name that Kubernetes does not take.", invalid),
        Play::of("unknown-service-account", "The service account does not exist.", two()).service_account("nobody"),
        Play::of("quota-on-runs", "A quota leaves no room for a PipelineRun.", two())
            .quota(Full::Runs)
            .ends(End::Refused),
        Play::of("quota-on-pods", "A quota leaves no room for a pod.", two()).quota(Full::Pods).timeout("20s"),
        Play::of("unschedulable", "No node has room for the pod.", too_large).timeout("20s"),
        Play::of("pod-refused", "The namespace takes only pods that are harmless.", two()).restricted(),
    ]
}
