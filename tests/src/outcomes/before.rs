//! Runs of which nothing was ever started: nothing of them can be run as they were asked for.

use serde_json::json;
use wfe_testkit::{Outcome, Pipeline};

use super::play::{End, Play};

pub(super) fn plays() -> Vec<Play> {
    let two = || Pipeline::new().task("check", Outcome::Ok).task("apply", Outcome::Ok);
    let bad_graph = two().patch(|task| task["runAfter"] = json!(["nowhere"]));
    let unknown_result =
        two().patch(|task| task["params"] = json!([{"name": "FOUND", "value": "$(tasks.check.results.nothing)"}]));
    let invalid = two().patch(|task| task["name"] = json!("not a name"));
    vec![
        Play::of("missing-bundle", two()).bundle_missing().ends(End::Stuck),
        Play::of("missing-bundle-repaired", two()).bundle_missing().repaired(),
        Play::of("wrong-name", two()).pipeline_named("something-else").ends(End::Stuck),
        Play::of("wrong-name-repaired", two()).pipeline_named("something-else").repaired(),
        Play::of("missing-parameter", two().param("ZONE")),
        Play::of("bad-graph", bad_graph),
        Play::of("unknown-result", unknown_result),
        Play::of("invalid-pipeline", invalid),
        Play::of("unknown-service-account", two()).service_account("nobody"),
        Play::of("quota-on-runs", two()).quota("count/pipelineruns.tekton.dev", "0").ends(End::Refused),
        Play::of("quota-on-pods", two()).quota("pods", "0").timeout("10s"),
    ]
}
