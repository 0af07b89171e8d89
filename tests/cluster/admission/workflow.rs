//! Which workflows an execution may request, and under which accounts they may run. A `ConfigMap` contains the lists.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{manifests, repository};

use super::objects::{Refusal, expect, good, good_but, report, says};
use super::people::{OWN_LISTS, Stage, expect_no_warnings};

const POLICY: &str = "workflow.workflowexecutions.kubernaut.ai";
/// The `ConfigMap` with the shipped lists.
const SHIPPED: &str = "kubernaut-system/workflowexecution-admission: kubernaut-workflow-runner";
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);
const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Binds the shipped policy, only for the stage's own namespace, to a `ConfigMap` there. This replaces the shipped
/// binding.
pub(crate) async fn bind(stage: &Stage) -> Result<()> {
    let namespace = &stage.namespaced.namespace;
    let label =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {OWN_LISTS: ""}}});
    manifests::apply(stage.client(), &label).await?;
    let shipped = manifests::read(&repository().join("config/admission/workflow_policy_binding.yaml"))?;
    let mut binding = shipped.into_iter().next().context("no binding")?;
    binding["metadata"]["name"] = json!(format!("workflow-{namespace}"));
    binding["spec"]["paramRef"]["namespace"] = json!(namespace);
    binding["spec"]["matchResources"] =
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}});
    manifests::apply(stage.client(), &binding).await?;
    Ok(())
}

/// Sets the lists, and waits until they are in force. They are in force when a marker account, which only the new lists
/// contain, is allowed.
pub(crate) async fn allow(stage: &Stage, mut rules: Value) -> Result<()> {
    let namespace = &stage.namespaced.namespace;
    let marker = format!("marker-{}", rules.to_string().len());
    let accounts = rules["service-accounts"].as_str().unwrap_or("runner").to_owned();
    rules["service-accounts"] = json!(format!("{accounts}, {marker}"));
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "workflowexecution-admission", "namespace": namespace}, "data": rules,
    });
    manifests::apply(stage.client(), &config).await?;
    let ask = async || {
        let unknown = asks(stage, "unknown", None, None).await?;
        anyhow::Ok((unknown, asks(stage, &marker, None, None).await?))
    };
    let accounts_say = says("serviceAccountName");
    let is = |(unknown, known): &(Refusal, Refusal)| accounts_say(unknown) && !accounts_say(known);
    ask_until(IN_FORCE_WITHIN, "the lists are in force", ask, is).await.map(drop)
}

/// Tries to create an execution as a dry run.
async fn asks(stage: &Stage, account: &str, image: Option<&str>, digest: Option<&str>) -> Result<Refusal> {
    let mut wfe = good();
    if !account.is_empty() {
        wfe["spec"]["executionConfig"]["serviceAccountName"] = json!(account);
    } else if let Some(config) = wfe.pointer_mut("/spec/executionConfig").and_then(Value::as_object_mut) {
        config.remove("serviceAccountName");
    }
    if let Some(image) = image {
        wfe["spec"]["workflowRef"]["containerImage"] = json!(image);
    }
    match digest {
        Some(digest) => wfe["spec"]["workflowRef"]["containerDigest"] = json!(digest),
        None => {
            wfe["spec"]["workflowRef"].as_object_mut().context("no workflowRef")?.remove("containerDigest");
        }
    }
    stage.try_create(wfe).await
}

#[tokio::test]
async fn what_the_lists_do_not_allow_is_refused_with_the_list_that_says_so() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    bind(&stage).await?;
    let source = format!("ConfigMap {}/workflowexecution-admission", stage.namespaced.namespace);
    let (account, image) = ("spec.executionConfig.serviceAccountName: ", "spec.workflowRef.containerImage: ");
    let digest = "spec.workflowRef.containerDigest: is required by require-digest of ";
    let good_image = "registry.example/workflows/clean:1";
    let pinned = format!("{good_image}@{DIGEST}");
    let mirrored = format!("mirror.example/a/b@{DIGEST}");
    let mut failures = Vec::new();

    // Without the ConfigMap, the policy allows nothing.
    let missing = format!(
        "binding 'workflow-{}' denied request: failed to configure binding: no params",
        stage.namespaced.namespace
    );
    await_answer(&stage, "", Some(&missing)).await?;
    expect(&mut failures, "no lists", &[POLICY, &missing], asks(&stage, "", Some(good_image), None).await?);

    allow(&stage, json!({"service-accounts": "runner , cleaner", "image-registries": "registry.example/workflows,mirror.example/"})).await?;
    let none_of =
        format!("is from none of the image-registries of {source}: registry.example/workflows,mirror.example/");
    let not_among = format!("is not among the service-accounts of {source}: runner , cleaner");
    let ask = "; ask whoever runs the cluster to change that ConfigMap (values workflows of the chart)";
    for (who, from, words) in [
        ("", good_image, None),
        ("runner", good_image, None),
        ("cleaner", &mirrored, None),
        ("runne", good_image, Some([account, not_among.as_str()])),
        ("default", good_image, Some([account, not_among.as_str()])),
        ("runner", "registry.example/workflows-of-others/clean:1", Some([image, none_of.as_str()])),
        ("runner", "registry.example/other/clean:1", Some([image, none_of.as_str()])),
        ("runner", "registry.example/workflows", Some([image, none_of.as_str()])),
        ("", "clean:1", Some([image, none_of.as_str()])),
    ] {
        let words: Vec<&str> =
            words.iter().flatten().copied().chain(words.iter().flat_map(|_| [POLICY, ask])).collect();
        expect(&mut failures, &format!("{who} {from}"), &words, asks(&stage, who, Some(from), None).await?);
    }

    let any = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"service-accounts": "runner, *"},
        "metadata": {"name": "workflowexecution-admission", "namespace": stage.namespaced.namespace},
    });
    manifests::apply(stage.client(), &any).await?;
    await_answer(&stage, "anybody", None).await?;

    allow(&stage, json!({"require-digest": "true"})).await?;
    let required = [POLICY, digest, &source];
    expect(&mut failures, "a tag alone", &required, asks(&stage, "", Some(good_image), None).await?);
    expect(&mut failures, "a digest beside it", &[], asks(&stage, "", Some(good_image), Some(DIGEST)).await?);
    expect(&mut failures, "a digest in it", &[], asks(&stage, "", Some(&pinned), None).await?);

    allow(&stage, json!({"require-digest": "false", "image-registries": " , "})).await?;
    expect(&mut failures, "an empty list", &[image], asks(&stage, "", Some(good_image), None).await?);
    report(&failures)
}

/// The API server cannot know the scope of a custom kind. The administrator of the cluster lists such kinds.
#[tokio::test]
async fn a_listed_kind_without_a_namespace_is_refused_with_one() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    bind(&stage).await?;
    allow(&stage, json!({"service-accounts": "kubernaut-workflow-runner", "cluster-kinds": "ClusterIssuer, nodepools.karpenter.sh"}))
        .await?;
    let source = format!("ConfigMap {}/workflowexecution-admission", stage.namespaced.namespace);
    let mut failures = Vec::new();
    for (target, instead) in [
        ("payment/clusterissuer/ca", Some("write clusterissuer/ca")),
        ("payment/ClusterIssuer.cert-manager.io/ca", Some("write ClusterIssuer.cert-manager.io/ca")),
        ("payment/nodepools/spot", Some("write nodepools/spot")),
        ("clusterissuer/ca", None),
        ("nodepools.karpenter.sh/spot", None),
        ("payment/certificate.cert-manager.io/tls", None),
        ("payment/deployment/nodepools", None),
    ] {
        let among = format!("is among the cluster-kinds of {source}");
        let words = instead.map(|instead| [POLICY, "spec.targetResource: ", &among, instead]);
        let answer = stage.try_create(good_but("/spec/targetResource", json!(target))?).await?;
        expect(&mut failures, target, words.as_ref().map_or(&[], |words| words), answer);
    }
    report(&failures)
}

/// The defaults in `config/base`: the account of workflows, and bundles from any registry.
#[tokio::test]
async fn by_default_an_execution_runs_as_the_account_of_workflows_alone() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let words = [POLICY, "serviceAccountName: ", " is not among the service-accounts of ConfigMap ", SHIPPED];
    await_answer(&stage, "unknown", Some(SHIPPED)).await?;
    let mut failures = Vec::new();
    for (account, words) in
        [("", &[][..]), ("kubernaut-workflow-runner", &[]), ("default", &words), ("kubernaut-workflow-runner2", &words)]
    {
        let answer = asks(&stage, account, Some("elsewhere.example/x:1"), None).await?;
        expect(&mut failures, &format!("as {account:?}"), words, answer);
    }
    report(&failures)
}

/// Waits until an execution with this service account is refused with these words, or is allowed.
async fn await_answer(stage: &Stage, account: &str, words: Option<&str>) -> Result<()> {
    let ask = async || asks(stage, account, None, None).await;
    let is = |answer: &Refusal| words.map_or(answer.is_none(), |words| says(words)(answer));
    ask_until(IN_FORCE_WITHIN, &format!("{account:?} is answered {words:?}"), ask, is).await.map(drop)
}

/// This policy reads the specs of two kinds through `dyn`, so the API server cannot report a misspelt field.
#[tokio::test]
async fn the_policy_fits_the_kinds() -> Result<()> {
    expect_no_warnings("workflow").await
}
