//! Which users may write our labels and annotations on objects in the execution namespace. The policy recognizes Tekton
//! and the operator by their permissions, not by their names.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource as _};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{Assets, ControlPlane, Options, Right, Tekton, World, look, manifests, repository};

use super::objects::{Refusal, expect, refusal, report, says};
use super::people::{expect_no_warnings, installed};
use crate::expect::condition;
use crate::history::short;

const POLICY: &str = "marks.pipelineruns.kubernaut.ai";
const RUNS: &str = "kubernaut-workflows";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";
/// Tekton's controller under the account of its own release, and under the account in `OpenShift` Pipelines.
const TEKTON: &str = "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller";
const OPENSHIFT: &str = "system:serviceaccount:openshift-pipelines:tekton-pipelines-controller";
/// An administrator of the whole cluster, and an administrator of the execution namespace only.
const CLUSTER_ADMIN: &str = "runs-cluster-admin";
const PERSON: &str = "runs-person";
const KUBELET: &str = "runs-kubelet";
/// All users who may write our labels and annotations.
const MARKERS: [&str; 4] = [TEKTON, OPENSHIFT, OPERATOR, CLUSTER_ADMIN];
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// Requests in a namespace that impersonate a user.
pub(crate) struct As<'a> {
    pub(crate) client: &'a Client,
    pub(crate) user: &'a str,
    pub(crate) namespace: &'a str,
}

impl As<'_> {
    async fn create(&self, resource: &ApiResource, object: &Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(resource, Some(self.namespace));
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        self.send(Request::new(url).create(&dry_run, serde_json::to_vec(object)?)?).await
    }

    /// Tries to patch an object, or its status, as a dry run.
    pub(crate) async fn patch(
        &self,
        resource: &ApiResource,
        name: &str,
        status: bool,
        patch: Value,
    ) -> Result<Refusal> {
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

/// Binds a cluster role to users in a namespace.
pub(crate) async fn give(client: &Client, namespace: &str, role: &str, users: &[&str]) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<_> = users.iter().map(|user| json!({"apiGroup": group, "kind": "User", "name": user})).collect();
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace}, "subjects": subjects,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
    });
    manifests::apply(client, &binding).await.map(drop)
}

/// Installs Tekton's kinds and the cluster roles of its release: the controller's own roles, and those that extend the
/// cluster's `edit` and `admin`. No webhook converts the kinds here.
async fn install_kinds(client: &Client) -> Result<()> {
    let assets = Assets::find(Tekton::Current)?;
    let mut objects = manifests::read(&assets.manifest("tekton/300-crds"))?;
    for kind in &mut objects {
        kind["spec"].as_object_mut().context("no spec")?.remove("conversion");
    }
    let released = manifests::read(&assets.manifest("tekton"))?;
    objects.extend(released.into_iter().filter(|object| object["kind"] == "ClusterRole"));
    manifests::apply_all(client, &objects).await
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
async fn only_who_has_the_rights_of_an_operator_or_of_tekton_writes_our_marks() -> Result<()> {
    let control_plane = installed().await?;
    let client = control_plane.client().await?;
    install_kinds(&client).await?;
    let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "marks-elsewhere"}});
    manifests::apply(&client, &elsewhere).await?;
    let kubelet = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "marks-kubelet"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status", "pods/binding"], "verbs": ["*"]}],
    });
    manifests::apply(&client, &kubelet).await?;
    give(&client, RUNS, "marks-kubelet", &[KUBELET]).await?;
    give(&client, RUNS, "cluster-admin", &[CLUSTER_ADMIN]).await?;
    // The operator's own Role does not allow the creation of pods. The role `admin` does, so only the policy can refuse
    // it.
    give(&client, RUNS, "admin", &[PERSON, OPERATOR]).await?;
    give(&client, "marks-elsewhere", "admin", &[PERSON]).await?;
    for role in ["tekton-pipelines-controller-cluster-access", "tekton-pipelines-controller-tenant-access"] {
        give(&client, RUNS, role, &[TEKTON, OPENSHIFT]).await?;
    }
    let marks = json!({"kubernaut.ai/workflow-execution": "one", "team": "payment"});
    let as_user = |user| As { client: &client, user, namespace: RUNS };
    let person = as_user(PERSON);
    let ask = async || {
        let denied = person.create(&look::pods(), &pod("p", &marks)).await?;
        // The cluster's `admin` role includes the rules that Tekton's release adds to it.
        let run = person.create(&look::pipeline_runs(), &run("r", &json!({}))).await?;
        let marked = as_user(OPENSHIFT).create(&look::pods(), &pod("p", &marks)).await?;
        anyhow::Ok((denied, run.or(marked).or(person.create(&look::pods(), &pod("p", &json!({}))).await?)))
    };
    let is = |(denied, given): &(Refusal, Refusal)| says(POLICY)(denied) && given.is_none();
    ask_until(IN_FORCE_WITHIN, "policy and roles are in force", ask, is).await?;

    // Objects as Tekton creates them.
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
    let no_label = [POLICY, &of_label, PERSON, "workflowexecutions/marks (group kubernaut.ai)"];
    let no_annotation = [POLICY, &of_annotation];
    let metadata = |what: &str, key: &str, value: Value| json!({"metadata": {what: {key: value}}});
    let mut failures = Vec::new();
    for (resource, object) in [(look::pods(), pod("new", &marks)), (look::pipeline_runs(), run("new", &marks))] {
        let kind = resource.kind.clone();
        let answer = person.create(&resource, &object).await?;
        expect(&mut failures, &format!("{PERSON} creates a {kind}"), &no_label, answer);
        for user in MARKERS {
            let answer = as_user(user).create(&resource, &object).await?;
            expect(&mut failures, &format!("{user} creates a {kind}"), &[], answer);
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
            for user in MARKERS {
                let answer = as_user(user).patch(&resource, "theirs", false, patch.clone()).await?;
                expect(&mut failures, &format!("{user} {row} of a {kind}"), &[], answer);
            }
        }
    }
    // Other ways to change the metadata of a pod.
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
    // The policy does not apply to other namespaces.
    let other = As { client: &client, user: PERSON, namespace: "marks-elsewhere" };
    expect(&mut failures, "elsewhere", &[], other.create(&look::pipeline_runs(), &run("new", &marks)).await?);
    report(&failures)
}

#[tokio::test]
async fn the_policy_on_marks_fits_the_kinds() -> Result<()> {
    install_kinds(&installed().await?.client().await?).await?;
    expect_no_warnings("marks").await
}

/// In `OpenShift` Pipelines, Tekton's controller has the roles of Tekton's release, but another account.
#[tokio::test]
async fn a_tekton_under_another_account_runs_a_workflow() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let world = World::on(&control_plane, "openshift").await?;
    let bundle = short(&world).await?;
    move_tekton(&world, "openshift-pipelines").await?;
    bind(&world).await?;
    let _operator = world.operator().start().await?;
    world.wfe("one").image(&bundle).create().await?;
    let wfe = world.await_terminal("one").await?;
    ensure!(wfe["status"]["phase"] == "Completed", "{wfe:#}");
    let made = world.audit().await?.into_iter().filter(|it| it.verb == "create" && it.resource == "pods");
    let by: Vec<String> = made.map(|it| it.user).collect();
    ensure!(!by.is_empty() && by.iter().all(|user| user == OPENSHIFT), "pods were made by {by:?}");
    world.close().await
}

/// Restarts Tekton's controller with a service account in another namespace. This account gets every role binding of
/// the original account.
async fn move_tekton(world: &World, namespace: &str) -> Result<()> {
    const ACCOUNT: &str = "tekton-pipelines-controller";
    let client = world.client();
    let name = json!({"name": ACCOUNT, "namespace": namespace});
    manifests::apply(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
        .await?;
    manifests::apply(&client, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name})).await?;
    let mut moved = 0;
    for mut object in manifests::read(&Assets::find(Tekton::Current)?.manifest("tekton"))? {
        let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
        let Some(subject) = subjects.and_then(|all| all.iter_mut().find(|one| one["name"] == ACCOUNT)) else {
            continue;
        };
        subject["namespace"] = json!(namespace);
        let of_release = object["metadata"]["name"].as_str().context("a binding without a name")?;
        object["metadata"]["name"] = json!(format!("{namespace}-{of_release}"));
        manifests::apply(&client, &object).await?;
        moved += 1;
    }
    ensure!(moved > 2, "the release of Tekton binds {moved} roles to its controller");
    let component = "tekton-controller";
    let kubeconfig = world.control_plane().component_kubeconfig(component);
    world.write_kubeconfig(namespace, ACCOUNT, &kubeconfig).await?;
    world.control_plane().component(component).restart().await
}

/// Shows that the operator waits if it lacks the permission by which the policy recognizes it. The test is in `rights`.
pub(crate) async fn an_operator_whose_marks_are_refused_waits(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    bind(&world).await?;
    let _operator = world.operator().start().await?;
    world.wfe("one").image(&bundle).create().await?;
    let waits = |wfe: &Value| condition(wfe, "Waiting") == "True OperatorRefused";
    world.await_wfe("one", "waits", waits).await?;
    world.give_back(&right).await?;
    let wfe = world.await_phase("one", "Completed").await?;
    assert_eq!(wfe["status"]["consecutiveFailures"].as_u64().unwrap_or_default(), 0, "{wfe:#}");
    world.close().await
}

/// Binds the shipped policy to the execution namespace of a world, and waits until it is in force.
async fn bind(world: &World) -> Result<()> {
    let execution = world.execution_namespace();
    world.apply(&manifests::read(&repository().join("config/admission/marks_policy.yaml"))?.remove(0)).await?;
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": execution}});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("marks-{execution}")},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}},
    });
    world.apply(&binding).await?;
    let client = world.client();
    let person = As { client: &client, user: "person-of-marks", namespace: &execution };
    give(&client, &execution, "edit", &[person.user]).await?;
    let marked = pod("marked", &json!({"kubernaut.ai/workflow-execution": "one"}));
    let ask = async || person.create(&look::pods(), &marked).await;
    ask_until(IN_FORCE_WITHIN, &format!("the policy is in force in {execution}"), ask, says(POLICY)).await.map(drop)
}
