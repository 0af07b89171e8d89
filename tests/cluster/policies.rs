//! The operator detects that a shipped admission policy or its binding is missing or changed, and that it is restored.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{ControlPlane, Operator, Options, Right, World, manifests, repository};

use crate::history::short;
use crate::kubectl_wfe::Caller;

const GROUP: &str = "admissionregistration.k8s.io/v1";
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
const CLEARANCE: &str = "clearance.workflowexecutions.kubernaut.ai";
const TARGET: &str = "target.workflowexecutions.kubernaut.ai";
const SAID_WITHIN: Duration = Duration::from_secs(30);

/// Waits until `/readyz` contains these words and the operator is ready, and until the metric names exactly these
/// policies.
async fn await_told(operator: &Operator, wrong: &[&str], words: &[&str]) -> Result<()> {
    let ask = async || {
        let (status, said) = operator.get("health", "/readyz").await?;
        assert_eq!(status, 200, "it stays ready: {said}");
        let metrics = operator.metrics().await?;
        let shown = metrics.samples().iter().filter(|it| it.name == "workflowexecution_policy_missing");
        let shown: Vec<_> = shown.map(|it| (it.labels.get("policy").cloned(), it.value)).collect();
        anyhow::Ok((said, shown))
    };
    ask_until(SAID_WITHIN, &format!("{wrong:?} are told, with {words:?}"), ask, |(said, shown)| {
        let named = shown.iter().filter(|(_, value)| *value > 0.0).filter_map(|(policy, _)| policy.as_deref());
        let is_told =
            words.iter().all(|word| said.contains(word)) && said.contains("do not protect") != wrong.is_empty();
        is_told && named.eq(wrong.iter().copied()) && !shown.is_empty()
    })
    .await
    .map(drop)
}

fn api(client: &kube::Client, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &manifests::resource(GROUP, kind))
}

#[tokio::test]
async fn a_policy_that_goes_or_changes_is_told_until_it_is_back() -> Result<()> {
    let control_plane = ControlPlane::start(Options { pods: false, ..Options::default() }).await?;
    let world = World::on(&control_plane, "policies").await?;
    let mut shipped = manifests::read(&repository().join("config/admission"))?;
    shipped.retain(|it| it["kind"] == POLICY || it["kind"] == BINDING);
    let client = control_plane.client().await?;
    manifests::apply_all(&client, &shipped).await?;
    let find = |kind: &str, name: &str| {
        let found = shipped.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.cloned().with_context(|| format!("config/admission has no {kind} {name}"))
    };
    let operator = world.operator().arg("--policy-check-interval", "1s").start().await?;
    await_told(&operator, &[], &["ok; leading"]).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let said = jo.says(0, &["explain", "node/any"]).await?;
    assert!(said.contains("policies     all 13 are as they ship"), "{said}");

    api(&client, BINDING).delete(CLEARANCE, &DeleteParams::default()).await?;
    await_told(&operator, &[CLEARANCE], &["1 of 13", CLEARANCE, "there is no ValidatingAdmissionPolicyBinding"])
        .await?;
    let is_told = |line: &Value| line["level"] == "WARN" && line["fields"]["policy"] == CLEARANCE;
    operator.await_line("names the policy", is_told).await?;
    let said = jo.says(0, &["explain", "node/any"]).await?;
    assert!(said.contains(&format!("{CLEARANCE}: there is no {BINDING}")), "{said}");
    manifests::apply(&client, &find(BINDING, CLEARANCE)?).await?;
    await_told(&operator, &[], &["ok; leading"]).await?;

    let audit = Patch::Merge(json!({"spec": {"validationActions": ["Audit"]}}));
    api(&client, BINDING).patch(CLEARANCE, &PatchParams::default(), &audit).await?;
    api(&client, POLICY).delete(TARGET, &DeleteParams::default()).await?;
    let words =
        ["2 of 13", "is not as it ships, at spec.validationActions[0]", "there is no ValidatingAdmissionPolicy"];
    await_told(&operator, &[CLEARANCE, TARGET], &words).await?;
    let put_back = Patch::Merge(find(BINDING, CLEARANCE)?);
    api(&client, BINDING).patch(CLEARANCE, &PatchParams::default(), &put_back).await?;
    manifests::apply(&client, &find(POLICY, TARGET)?).await?;
    await_told(&operator, &[], &["ok; leading"]).await?;
    drop(operator);
    world.close().await
}

/// Shows what happens if the operator may not read the policies. The test is in `rights`.
pub(crate) async fn what_protects_is_not_known(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().arg("--policy-check-interval", "1s").start().await?;
    let lacks = |line: &Value| line["fields"]["message"].as_str().is_some_and(|it| it.contains(&right.missing()));
    operator.await_line("names the right", lacks).await?;
    let is = |(status, said): &(u16, String)| *status == 200 && said.contains("do not protect");
    ask_until(SAID_WITHIN, "/readyz says what is missing", async || operator.get("health", "/readyz").await, is)
        .await?;
    world.wfe("goes-on").image(&bundle).create().await?;
    world.await_phase("goes-on", "Completed").await?;
    world.give_back(&right).await?;
    // The operator can read again, and finds that this cluster has none of the policies.
    let is_gone = |line: &Value| {
        line["fields"]["message"]
            .as_str()
            .is_some_and(|it| !it.contains(&right.missing()) && it.contains("there is no"))
    };
    operator.await_line("says that it is missing", is_gone).await?;
    world.close().await
}
