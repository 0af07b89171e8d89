//! The people who change an existing execution, and what each of them may change. Everything in `config/base` is
//! installed on a separate control plane, because a policy applies to all namespaces.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, Request};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use wfe_api::WorkflowExecution;
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{ControlPlane, Options, manifests, repository};

use super::objects::{Namespaced, Refusal, good_but, refusal};

const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// The spec fields that a person sets later, each with its field for the person's name. To set the field requires
/// permission to update the virtual subresource of the same name.
const LATER: [(&str, &str); 2] = [("cancellation", "requestedBy"), ("clearance", "clearedBy")];

/// A user who may write WorkflowExecutions and set the later field.
pub(super) const JANE: &str = "jane";
/// A user who may only write WorkflowExecutions.
pub(super) const BOB: &str = "bob";
/// A user who may write WorkflowExecutions, but may set the later field only on the one named `hers`.
pub(super) const ANN: &str = "ann";
/// A program with the same permissions as Jane.
pub(super) const ROBOT: &str = "system:serviceaccount:payment:robot";

/// The label of a namespace whose workflow lists are not the shipped ones.
pub(super) const OWN_LISTS: &str = "test.kubernaut.ai/own-lists";

static INSTALLED: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();

/// A namespace on a control plane with everything installed, and the four users with their roles.
pub(crate) struct Stage {
    pub(crate) namespaced: Namespaced,
    client: Client,
}

impl Stage {
    /// Creates a stage for a virtual subresource, such as `cancellation`.
    pub(crate) async fn new(subresource: &str) -> Result<Self> {
        let control_plane = installed().await?;
        let stage = Self { namespaced: Namespaced::on(control_plane).await?, client: control_plane.client().await? };
        stage
            .grant(
                "writer",
                json!({"resources": ["workflowexecutions"], "verbs": ["get", "create", "patch"]}),
                &[JANE, BOB, ANN, ROBOT],
            )
            .await?;
        let all = json!({"resources": [format!("workflowexecutions/{subresource}")], "verbs": ["update"]});
        stage.grant("all", all.clone(), &[JANE, ROBOT]).await?;
        let mut hers = all;
        hers["resourceNames"] = json!(["hers"]);
        stage.grant("hers", hers, &[ANN]).await?;
        for (user, name) in [(JANE, "any"), (ROBOT, "any"), (ANN, "hers")] {
            stage.await_right(user, "update", subresource, name).await?;
        }
        stage.await_right(BOB, "patch", "", "any").await?;
        Ok(stage)
    }

    /// Grants a role with one rule to users.
    pub(super) async fn grant(&self, name: &str, mut may: Value, users: &[&str]) -> Result<()> {
        may["apiGroups"] = json!(["kubernaut.ai"]);
        let metadata = json!({"name": name, "namespace": self.namespaced.namespace});
        let (group, version) = ("rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1");
        let subjects: Vec<_> =
            users.iter().map(|user| json!({"apiGroup": group, "kind": "User", "name": user})).collect();
        let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [may]});
        manifests::apply(&self.client, &role).await?;
        let binding = json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "subjects": subjects,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        });
        manifests::apply(&self.client, &binding).await?;
        Ok(())
    }

    /// Waits until the authorizer grants this permission.
    pub(super) async fn await_right(&self, user: &str, verb: &str, subresource: &str, name: &str) -> Result<()> {
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = serde_json::from_value(json!({"spec": {"user": user, "resourceAttributes": {
            "namespace": self.namespaced.namespace, "group": "kubernaut.ai", "resource": "workflowexecutions",
            "subresource": subresource, "name": name, "verb": verb,
        }}}))?;
        let ask = async || anyhow::Ok(reviews.create(&PostParams::default(), &review).await?);
        let is = |answer: &SubjectAccessReview| answer.status.as_ref().is_some_and(|status| status.allowed);
        ask_until(IN_FORCE_WITHIN, &format!("{user} may {verb} {subresource} of {name}"), ask, is).await.map(drop)
    }

    /// Returns the administrator's client.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Tries to create an object as a dry run.
    pub(crate) async fn try_create(&self, object: Value) -> Result<Refusal> {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        refusal(self.namespaced.api.create(&dry_run, &serde_json::from_value(object)?).await)
    }

    /// Tries to create an object as this user, as a dry run.
    pub(super) async fn create_as(&self, user: &str, object: &Value) -> Result<Refusal> {
        let url =
            DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&self.namespaced.namespace));
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let mut request = Request::new(url).create(&dry_run, serde_json::to_vec(object)?)?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await)
    }

    /// Tries to delete an execution as this user. `admin` is the user who created the stage.
    pub(super) async fn delete_as(&self, user: &str, name: &str) -> Result<Refusal> {
        let url =
            DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&self.namespaced.namespace));
        let mut request = Request::new(url).delete(name, &DeleteParams::default())?;
        if user != "admin" {
            request.headers_mut().insert("Impersonate-User", user.parse()?);
        }
        refusal(self.client.request::<Value>(request).await)
    }

    /// Tries to delete an execution as this user, as a dry run.
    pub(super) async fn delete_dry_as(&self, user: &str, name: &str) -> Result<Refusal> {
        let url =
            DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&self.namespaced.namespace));
        let mut request = Request::new(url).delete(name, &DeleteParams { dry_run: true, ..DeleteParams::default() })?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<Value>(request).await)
    }

    /// Tries to delete all executions in the namespace with one request as this user, as a dry run.
    pub(super) async fn delete_all_dry_as(&self, user: &str) -> Result<Refusal> {
        let url =
            DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&self.namespaced.namespace));
        let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
        let mut request = Request::new(url).delete_collection(&dry_run, &ListParams::default())?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<Value>(request).await)
    }

    /// Tries to merge a patch as this user, as a dry run.
    pub(super) async fn dry_patch_as(&self, user: &str, name: &str, patch: Value) -> Result<Refusal> {
        let url =
            DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&self.namespaced.namespace));
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let mut request = Request::new(url).patch(name, &dry_run, &Patch::Merge(patch))?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await)
    }

    /// Tries to merge a patch as this user.
    pub(super) async fn patch_as(&self, user: &str, name: &str, patch: Value) -> Result<Refusal> {
        let url =
            DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&self.namespaced.namespace));
        let mut request = Request::new(url).patch(name, &PatchParams::default(), &Patch::Merge(patch))?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await)
    }
}

/// Returns the control plane with everything installed.
pub(crate) async fn installed() -> Result<&'static ControlPlane> {
    let control_plane = INSTALLED.get_or_init(|| async { install().await.map_err(|error| format!("{error:#}")) }).await;
    control_plane.as_ref().map_err(|why| anyhow::anyhow!("{why}"))
}

/// Starts an API server, installs everything as the README describes, and waits until the policies are in force.
async fn install() -> Result<ControlPlane> {
    let control_plane = ControlPlane::start(Options::BARE).await?;
    let base = repository().join("config/base");
    let base = base.to_string_lossy();
    control_plane.kubectl(&["apply", "--server-side", "-k", &base]).await?;
    let crds = ["crd/workflowexecutions.kubernaut.ai", "crd/workflowschedules.kubernaut.ai"];
    let wait = ["wait", "--for=condition=Established", "--timeout=30s"];
    control_plane.kubectl(&[&wait[..], &crds].concat()).await?;
    // A second application changes nothing.
    control_plane.kubectl(&["apply", "--server-side", "-k", &base]).await?;
    // A namespace with this label gets lists and a binding of its own (`workflow::bind`).
    let others = json!({"namespaceSelector": {"matchExpressions": [{"key": OWN_LISTS, "operator": "DoesNotExist"}]}});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "workflow.workflowexecutions.kubernaut.ai"}, "spec": {"matchResources": others},
    });
    manifests::apply(&control_plane.client().await?, &binding).await?;
    // The tests have targets in this namespace, and a clearance also requires the permission in the target's namespace.
    let targets = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "payment"}});
    manifests::apply(&control_plane.client().await?, &targets).await?;
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<_> =
        [JANE, ROBOT, ANN].map(|user| json!({"apiGroup": group, "kind": "User", "name": user})).to_vec();
    let clears = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "wfe-clear", "namespace": "payment"}, "subjects": subjects,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "wfe-clear"},
    });
    manifests::apply(&control_plane.client().await?, &clears).await?;
    let canary = Namespaced::on(&control_plane).await?;
    let name = canary.create_in("").await?;
    for (field, by) in LATER {
        await_policy(&canary, &name, &json!({"spec": {field: {"reason": "why", by: "nobody"}}})).await?;
    }
    let bad = good_but("/spec/retry", json!("3"))?;
    let ask = async || canary.try_create(bad.clone()).await;
    ask_until(IN_FORCE_WITHIN, "the policy on retries is in force", ask, Option::is_some).await?;
    Ok(control_plane)
}

/// Waits until a policy refuses a change that the rules of the CRD accept.
async fn await_policy(canary: &Namespaced, name: &str, patch: &Value) -> Result<()> {
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let ask = async || refusal(canary.api.patch(name, &dry_run, &Patch::Merge(patch)).await);
    ask_until(IN_FORCE_WITHIN, &format!("a policy refuses {patch}"), ask, Option::is_some).await.map(drop)
}

/// Checks that the API server accepts the expressions of the policy for `field`, and that it would report a misspelt
/// name. For this, the function misspells `by`, the field with the person's name.
pub(super) async fn expect_policy_fits(field: &str, by: &str) -> Result<()> {
    expect_shipped_fits(field, &format!("spec.{field}.{by}"), &by.to_lowercase()).await
}

/// Checks that the API server accepts the policy `name`, and that it would report a misspelt field. For this, the
/// function replaces the last part of `field` by `wrong`.
pub(super) async fn expect_shipped_fits(name: &str, field: &str, wrong: &str) -> Result<()> {
    // The permissions of the users are not used here.
    let stage = Stage::new("clearance").await?;
    let shipped = fitting(&stage, name).await?;
    let parent = field.rsplit_once('.').context("a field has a parent")?.0;
    let misspelt = shipped.replace(&format!("object.{field}"), &format!("object.{parent}.{wrong}"));
    let warnings = self::warnings(&stage.client, &format!("{name}-misspelt"), &misspelt).await?;
    ensure!(warnings.contains(&format!("undefined field '{wrong}'")), "{warnings}");
    Ok(())
}

/// Checks only that the API server accepts the policy `name`. The policy's field has no type, so that a misspelt name
/// would not be reported.
pub(crate) async fn expect_no_warnings(name: &str) -> Result<()> {
    fitting(&Stage::new("clearance").await?, name).await.map(drop)
}

/// Returns the text of a policy after the API server has accepted its expressions.
async fn fitting(stage: &Stage, name: &str) -> Result<String> {
    let shipped = manifests::read(&repository().join(format!("config/admission/{name}_policy.yaml")))?;
    let shipped = shipped.first().context("no policy")?.to_string();
    let warnings = warnings(&stage.client, &format!("{name}-shipped"), &shipped).await?;
    ensure!(warnings.is_empty(), "{warnings}");
    Ok(shipped)
}

/// Returns the API server's warnings about the expressions of a policy. The API server checks a policy only when it is
/// created or changed, against the kinds that then exist. The function therefore creates a copy without a binding.
async fn warnings(client: &Client, name: &str, policy: &str) -> Result<String> {
    let mut policy: Value = serde_json::from_str(policy)?;
    policy["metadata"] = json!({"name": name});
    manifests::apply(client, &policy).await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let ask = async || anyhow::Ok(policies.get(name).await?.status.unwrap_or_default());
    let what = format!("somebody has checked the policy {name}");
    let status = ask_until(IN_FORCE_WITHIN, &what, ask, |status| status.type_checking.is_some()).await?;
    let warnings = status.type_checking.iter().flat_map(|checked| checked.expression_warnings.iter().flatten());
    Ok(warnings.map(|one| one.warning.as_str()).collect::<Vec<_>>().join("\n"))
}
