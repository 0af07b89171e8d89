//! Objects that an older CRD accepted. Each harms only itself, and none stops a watch.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use chrono::{TimeDelta, Utc};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{ControlPlane, Options, Outcome, Pipeline, WfeBuilder, World};

use crate::expect::text;
use crate::history::{assert_skipped, past, way_out};

/// The name of an execution, a word in its failure, and the change that makes it invalid.
type Poison = (&'static str, &'static str, fn(&mut Value));

/// How long the API server may take to apply a changed schema.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// Replaces the schema by one that accepts everything, as an old CRD might.
async fn take_anything(control_plane: &ControlPlane) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(control_plane.client().await?);
    let name = "workflowexecutions.kubernaut.ai";
    let mut crd = serde_json::to_value(crds.get(name).await?)?;
    let version = crd.pointer_mut("/spec/versions/0").context("a version")?;
    version["schema"] = json!({"openAPIV3Schema": {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }});
    version["selectableFields"] = Value::Null;
    version["additionalPrinterColumns"] = Value::Null;
    let patch = json!({"spec": crd["spec"]});
    crds.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// Creates an object that only the replaced schema accepts. The function retries, because a changed schema takes effect
/// after some time.
async fn create_once_taken(wfe: &WfeBuilder) -> Result<()> {
    let deadline = Instant::now() + IN_FORCE_WITHIN;
    while let Err(error) = wfe.create().await {
        let refused = matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 422);
        if !refused || Instant::now() > deadline {
            return Err(error.context("the schema that takes anything does not take this"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Invalid statuses, each with the reason why the next execution on the target is skipped, if it is. If a field is
/// missing or invalid, the operator assumes the value that allows fewer runs.
fn statuses() -> [(&'static str, Value, Option<&'static str>); 9] {
    let nothing_ran = |failed_at: Value| json!({"wasExecutionFailure": false, "failedAt": failed_at});
    let ago = |seconds| json!(past::time(Utc::now() - TimeDelta::seconds(seconds)));
    let (never, broken, waits) = ("9999-12-31T23:59:59Z", Some("PreviousExecutionFailed"), Some("RecentlyRemediated"));
    [
        ("untold", json!({"phase": "Failed", "consecutiveFailures": -3, "runSequence": -1}), broken),
        ("garbled", json!({"phase": "Failed", "failureDetails": "yes", "nextAllowedExecution": [1]}), broken),
        ("timeless", json!({"phase": "Completed", "completionTime": 5}), waits),
        ("endless", json!({"phase": "Completed", "completionTime": never}), waits),
        ("undated", json!({"phase": "Failed", "failureDetails": nothing_ran(Value::Null)}), waits),
        (
            "far",
            json!({"phase": "Failed", "failureDetails": nothing_ran(ago(60)), "nextAllowedExecution": never}),
            waits,
        ),
        (
            "negative",
            json!({"phase": "Failed", "failureDetails": nothing_ran(ago(10)), "consecutiveFailures": -3}),
            waits,
        ),
        ("over", json!({"phase": "Failed", "failureDetails": nothing_ran(ago(60)), "consecutiveFailures": -3}), None),
        ("of-another-version", json!({"phase": "Meditating"}), None),
    ]
}

/// Unusable specs. Some of them have no target, or a target that does not fit its kind.
fn poisons() -> [Poison; 16] {
    [
        ("huge-timeout", "too large", |w| w["spec"]["executionConfig"]["timeout"] = json!("99999999999999999999h")),
        ("odd-timeout", "executionConfig.timeout", |w| w["spec"]["executionConfig"]["timeout"] = json!("banana")),
        ("listed-parameters", "shape", |w| w["spec"]["parameters"] = json!(["A", "b"])),
        ("numeric-target", "shape", |w| w["spec"]["targetResource"] = json!(7)),
        ("four-parts", "spec.targetResource", |w| w["spec"]["targetResource"] = json!("a/b/c/d")),
        ("no-namespace", "must be namespace/deployment/api", |w| w["spec"]["targetResource"] = json!("Deploy/api")),
        ("namespaced-node", "must be node/n", |w| w["spec"]["targetResource"] = json!("payment/no.v1/n")),
        ("line-break", "must have a name", |w| w["spec"]["targetResource"] = json!("payment/deployment/api\n")),
        ("long-kind", "must have a kind", |w| w["spec"]["targetResource"] = json!(format!("{}/x", "k".repeat(64)))),
        ("no-workflow", "shape", |w| w["spec"]["workflowRef"] = Value::Null),
        ("reserved-parameter", "TARGET_RESOURCE", |w| w["spec"]["parameters"] = json!({"TARGET_RESOURCE": "x"})),
        ("two-digests", "containerDigest", |w| {
            w["spec"]["workflowRef"]["containerImage"] = json!("r/w@sha256:aa");
            w["spec"]["workflowRef"]["containerDigest"] = json!("sha256:bb");
        }),
        ("upper-image", "must be an image reference", |w| {
            w["spec"]["workflowRef"]["containerImage"] = json!("UPPER/x");
        }),
        // An API server accepts this time, but other programs cannot read it. To ignore `startBefore` would be unsafe.
        ("odd-offset", "spec.startBefore", |w| w["spec"]["startBefore"] = json!("2026-01-02T03:04:05+23:60")),
        ("numeric-time", "spec.startBefore", |w| w["spec"]["startBefore"] = json!(7)),
        ("negative-ttl", "ttlSecondsAfterFinished", |w| w["spec"]["ttlSecondsAfterFinished"] = json!(-1)),
    ]
}

#[tokio::test]
async fn what_an_older_crd_let_through_fails_alone_and_the_others_go_on() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    take_anything(&control_plane).await?;
    let world = World::on(&control_plane, "poison").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let poisons = poisons();
    for (name, _, poison) in &poisons {
        create_once_taken(&world.wfe(name).target(&format!("node/{name}")).image(&bundle).patch(poison)).await?;
    }
    let statuses = statuses();
    for (name, status, _) in &statuses {
        world.wfe(name).target(&format!("node/{name}")).image(&bundle).create().await?;
        past::write(&world, name, std::slice::from_ref(status)).await?;
    }
    let operator = world.operator().start().await?;
    world.wfe("good").target("node/good").image(&bundle).create().await?;
    world.await_phase("good", "Completed").await?;
    for (name, status, reason) in &statuses {
        let next = format!("after-{name}");
        world.wfe(&next).target(&format!("node/{name}")).image(&bundle).create().await?;
        let Some(reason) = reason else {
            world.await_phase(&next, "Completed").await?;
            continue;
        };
        let details = assert_skipped(&world, &next, reason, name).await?;
        for words in [&format!("{}/{name}", world.namespace()), way_out(reason)] {
            assert!(text(&details["message"]).contains(words), "{status}: {details:#}");
        }
    }
    for (name, word, _) in &poisons {
        let wfe = world.await_phase(name, "Failed").await?;
        let details = &wfe["status"]["failureDetails"];
        assert_eq!(details["reason"], "ConfigurationError", "{name}: {details:#}");
        assert!(text(&details["message"]).contains(word), "{name}: {details:#}");
        let event = world.await_event(name, "WorkflowFailed").await?;
        assert!(text(&event["note"]).contains(word), "{name}: {event:#}");
    }
    let told = world.events().await?.iter().filter(|event| event["reason"] == "WorkflowFailed").count();
    assert_eq!(told, poisons.len(), "each once, and nothing else");
    let ran = 1 + statuses.iter().filter(|(_, _, reason)| reason.is_none()).count();
    assert_eq!(world.runs().await?.len(), ran);
    assert!(operator.ready().await);
    world.close().await
}
