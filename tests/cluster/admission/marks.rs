//! Who may write our labels and annotations on what runs in the execution namespace. The people here may do everything
//! there by RBAC.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource as _};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{Assets, Tekton, World, look, manifests, repository};

use super::objects::{Refusal, expect, refusal, report, says};
use super::people::{expect_no_warnings, installed};
use crate::expect::condition;
use crate::history::short;

const POLICY: &str = "marks.pipelineruns.kubernaut.ai";
const RUNS: &str = "kubernaut-workflows";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";
const TEKTON: &str = "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller";
/// May do everything in the execution namespace, and the one after in another.
const PERSON: &str = "runs-person";
const KUBELET: &str = "runs-kubelet";
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// A namespace as somebody.
struct As<'a> {
    client: &'a Client,
    user: &'a str,
    namespace: &'a str,
}

impl As<'_> {
    async fn create(&self, resource: &ApiResource, object: &Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(resource, Some(self.namespace));
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        self.send(Request::new(url).create(&dry_run, serde_json::to_vec(object)?)?).await
    }

    /// Patches an object, or its status.
    async fn patch(&self, resource: &ApiResource, name: &str, status: bool, patch: Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(resource, Some(self.namespace));
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let (request, patch) = (Request::new(url), Patch::Merge(patch));
        self.send(if status {
            request.patch_subresource("status", name, &dry_run, &patch)?
        } else {
            request.patch(name, &dry_run, &patch)?
        })
        .await
    }

    async fn bind(&self, pod: &str, annotations: Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(&look::pods(), Some(self.namespace));
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "annotations": annotations},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
        });
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let request = Request::new(url).create_subresource("binding", pod, &dry_run, serde_json::to_vec(&binding)?)?;
        self.send(request).await
    }

    async fn send(&self, mut request: http::Request<Vec<u8>>) -> Result<Refusal> {
        request.headers_mut().insert("Impersonate-User", self.user.parse()?);
        refusal(self.client.request::<Value>(request).await)
    }
}

/// Lets users do everything in a namespace.
async fn give_all(client: &Client, namespace: &str, users: &[&str]) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<_> = users.iter().map(|user| json!({"apiGroup": group, "kind": "User", "name": user})).collect();
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "all", "namespace": namespace}, "subjects": subjects,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
    });
    manifests::apply(client, &binding).await.map(drop)
}

/// Installs Tekton's kinds. Nobody is there to convert them.
async fn install_kinds(client: &Client) -> Result<()> {
    let mut kinds = manifests::read(&Assets::find(Tekton::Current)?.manifest("tekton/300-crds"))?;
    for kind in &mut kinds {
        kind["spec"].as_object_mut().context("no spec")?.remove("conversion");
    }
    manifests::apply_all(client, &kinds).await
}

fn pod(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.example/x:1"}], "automountServiceAccountToken": false},
    })
}

fn run(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": {"name": name, "labels": labels},
        "spec": {"pipelineRef": {"name": "some"}},
    })
}

#[tokio::test]
async fn only_operator_and_tekton_write_our_marks_in_the_execution_namespace() -> Result<()> {
    let control_plane = installed().await?;
    let client = control_plane.client().await?;
    install_kinds(&client).await?;
    let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "marks-elsewhere"}});
    manifests::apply(&client, &elsewhere).await?;
    give_all(&client, RUNS, &[PERSON, KUBELET, OPERATOR, TEKTON]).await?;
    give_all(&client, "marks-elsewhere", &[PERSON]).await?;
    let marks = json!({"kubernaut.ai/workflow-execution": "one", "team": "payment"});
    let as_user = |user| As { client: &client, user, namespace: RUNS };
    let person = as_user(PERSON);
    let ask = async || {
        let denied = person.create(&look::pods(), &pod("p", &marks)).await?;
        anyhow::Ok((denied, person.create(&look::pods(), &pod("p", &json!({}))).await?))
    };
    let is = |(denied, given): &(Refusal, Refusal)| says(POLICY)(denied) && given.is_none();
    ask_until(IN_FORCE_WITHIN, "policy and roles are in force", ask, is).await?;

    // As Tekton makes them.
    let tekton = As { client: &client, user: TEKTON, namespace: RUNS };
    for (resource, object) in [(look::pods(), pod("theirs", &marks)), (look::pipeline_runs(), run("theirs", &marks))] {
        let url = DynamicObject::url_path(&resource, Some(RUNS));
        let mut annotated = object;
        annotated["metadata"]["annotations"] = json!({"kubernaut.ai/workflow-execution-uid": "u"});
        let created = tekton.send(Request::new(url).create(&PostParams::default(), serde_json::to_vec(&annotated)?)?);
        ensure!(created.await?.is_none(), "Tekton may not make {annotated:#}");
    }

    let words = |mark: &str| format!("may not set, change or remove {mark} in namespace {RUNS}: ");
    let (label, annotation) = ("kubernaut.ai/workflow-execution", "kubernaut.ai/workflow-execution-uid");
    let (of_label, of_annotation) = (words(label), words(annotation));
    let no_label = [POLICY, &of_label, PERSON, "admissionPolicies.markers"];
    let no_annotation = [POLICY, &of_annotation];
    let metadata = |what: &str, key: &str, value: Value| json!({"metadata": {what: {key: value}}});
    let mut failures = Vec::new();
    for (resource, object) in [(look::pods(), pod("new", &marks)), (look::pipeline_runs(), run("new", &marks))] {
        let kind = resource.kind.clone();
        for (user, words) in [(PERSON, &no_label[..]), (TEKTON, &[]), (OPERATOR, &[])] {
            let answer = as_user(user).create(&resource, &object).await?;
            expect(&mut failures, &format!("{user} creates a {kind}"), words, answer);
        }
        for (row, patch, words) in [
            ("changes a label", metadata("labels", label, json!("two")), &no_label[..]),
            ("removes a label", metadata("labels", label, json!(null)), &no_label),
            ("changes an annotation", metadata("annotations", annotation, json!("v")), &no_annotation),
            ("removes all annotations", json!({"metadata": {"annotations": null}}), &no_annotation),
            (
                "adds an annotation",
                metadata("annotations", "kubernaut.ai/released-at", json!("now")),
                &[POLICY, "remove kubernaut.ai/released-at"],
            ),
            ("writes the same", metadata("labels", label, json!("one")), &[]),
            ("changes another label", metadata("labels", "team", json!("shop")), &[]),
            ("adds one of a like name", metadata("labels", "test.kubernaut.ai/x", json!("y")), &[]),
        ] {
            let answer = person.patch(&resource, "theirs", false, patch.clone()).await?;
            expect(&mut failures, &format!("{PERSON} {row} of a {kind}"), words, answer);
            for user in [TEKTON, OPERATOR] {
                let answer = as_user(user).patch(&resource, "theirs", false, patch.clone()).await?;
                expect(&mut failures, &format!("{user} {row} of a {kind}"), &[], answer);
            }
        }
    }
    // The other ways to a pod's metadata.
    let kubelet = As { client: &client, user: KUBELET, namespace: RUNS };
    let status = json!({"status": {"message": "runs"}});
    expect(&mut failures, "a status", &[], kubelet.patch(&look::pods(), "theirs", true, status).await?);
    let by_status = metadata("labels", label, json!(null));
    expect(
        &mut failures,
        "by its status",
        &[POLICY, &of_label],
        kubelet.patch(&look::pods(), "theirs", true, by_status).await?,
    );
    expect(&mut failures, "binds", &[], kubelet.bind("theirs", json!({"other.example/x": "y"})).await?);
    expect(
        &mut failures,
        "by its binding",
        &[POLICY, &of_annotation],
        kubelet.bind("theirs", json!({annotation: "v"})).await?,
    );
    // What is in other namespaces is nobody's business.
    let other = As { client: &client, user: PERSON, namespace: "marks-elsewhere" };
    expect(&mut failures, "elsewhere", &[], other.create(&look::pipeline_runs(), &run("new", &marks)).await?);
    report(&failures)
}

#[tokio::test]
async fn the_policy_on_marks_fits_the_kinds() -> Result<()> {
    install_kinds(&installed().await?.client().await?).await?;
    expect_no_warnings("marks").await
}

/// As that of a second release which shares the execution namespace: its executions wait, and count for nobody.
#[tokio::test]
async fn an_operator_that_the_policy_does_not_know_waits_until_it_is_named() -> Result<()> {
    let world = World::new("unnamed").await?;
    let bundle = short(&world).await?;
    bind(&world, &[]).await?;
    let _operator = world.operator().start().await?;
    world.wfe("one").image(&bundle).create().await?;
    let waits = |wfe: &Value| condition(wfe, "Waiting") == "True OperatorForbidden";
    world.await_wfe("one", "waits", waits).await?;
    bind(&world, &[&world.operator_user()]).await?;
    let wfe = world.await_phase("one", "Completed").await?;
    assert_eq!(wfe["status"]["consecutiveFailures"].as_u64().unwrap_or_default(), 0, "{wfe:#}");
    world.close().await
}

/// Puts the shipped policy into force in the execution namespace of a world, with more accounts than it names, and
/// waits until it is.
async fn bind(world: &World, more: &[&str]) -> Result<()> {
    let execution = world.execution_namespace();
    let mut policy = manifests::read(&repository().join("config/admission/marks_policy.yaml"))?.remove(0);
    let condition = &mut policy["spec"]["matchConditions"][0]["expression"];
    let shipped = condition.as_str().context("no condition")?;
    let named = more.iter().fold(shipped.to_owned(), |text, account| text.replace("'])", &format!("', '{account}'])")));
    *condition = json!(named);
    world.apply(&policy).await?;
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": execution}});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("marks-{execution}")},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}},
    });
    world.apply(&binding).await?;
    let client = world.client();
    let admin = As { client: &client, user: "admin-of-marks", namespace: &execution };
    give_all(&client, &execution, &[admin.user]).await?;
    let marked = pod("marked", &json!({"kubernaut.ai/workflow-execution": "one"}));
    let ask = async || admin.create(&look::pods(), &marked).await;
    ask_until(IN_FORCE_WITHIN, &format!("the policy is in force in {execution}"), ask, says(POLICY)).await.map(drop)
}
