//! Who may cancel, when, and how often. With everything that `config/base` installs, on a control plane of its own: a
//! policy holds for all namespaces.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::{ApiResource, Request};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use wfe_api::WorkflowExecution;
use wfe_testkit::{ControlPlane, Options, manifests, repository};

use super::objects::{Namespaced, Refusal, entering, expect, good, good_but, refusal, report};

const POLICY: &str = "cancellation.workflowexecutions.kubernaut.ai";
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// May write WorkflowExecutions and cancel them.
const JANE: &str = "jane";
/// May write WorkflowExecutions.
const BOB: &str = "bob";
/// May write WorkflowExecutions and cancel the one that is named `hers`.
const ANN: &str = "ann";
/// A program that may do what Jane may.
const ROBOT: &str = "system:serviceaccount:payment:robot";

static INSTALLED: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();

/// A namespace on a control plane where everything is installed, and the four in their roles.
struct Stage {
    namespaced: Namespaced,
    client: Client,
}

impl Stage {
    async fn new() -> Result<Self> {
        let control_plane =
            INSTALLED.get_or_init(|| async { install().await.map_err(|error| format!("{error:#}")) }).await;
        let control_plane = control_plane.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
        let stage = Self { namespaced: Namespaced::on(control_plane).await?, client: control_plane.client().await? };
        stage
            .grant(
                "writer",
                json!({"resources": ["workflowexecutions"], "verbs": ["get", "create", "patch"]}),
                &[JANE, BOB, ANN, ROBOT],
            )
            .await?;
        let cancel = json!({"resources": ["workflowexecutions/cancellation"], "verbs": ["update"]});
        stage.grant("canceller", cancel.clone(), &[JANE, ROBOT]).await?;
        let mut hers = cancel;
        hers["resourceNames"] = json!(["hers"]);
        stage.grant("canceller-of-one", hers, &[ANN]).await?;
        for (user, name) in [(JANE, "any"), (ROBOT, "any"), (ANN, "hers")] {
            stage.await_right(user, "update", "cancellation", name).await?;
        }
        stage.await_right(BOB, "patch", "", "any").await?;
        Ok(stage)
    }

    /// Gives `users` a role with one rule.
    async fn grant(&self, name: &str, mut may: Value, users: &[&str]) -> Result<()> {
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

    /// Waits until the authorizer knows of a right.
    async fn await_right(&self, user: &str, verb: &str, subresource: &str, name: &str) -> Result<()> {
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = serde_json::from_value(json!({"spec": {"user": user, "resourceAttributes": {
            "namespace": self.namespaced.namespace, "group": "kubernaut.ai", "resource": "workflowexecutions",
            "subresource": subresource, "name": name, "verb": verb,
        }}}))?;
        let deadline = Instant::now() + IN_FORCE_WITHIN;
        while !reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed) {
            ensure!(Instant::now() < deadline, "{user} may not {verb} {subresource} of {name}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Tries a merge patch as somebody.
    async fn patch_as(&self, user: &str, name: &str, patch: Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(&resource(), Some(&self.namespaced.namespace));
        let mut request = Request::new(url).patch(name, &PatchParams::default(), &Patch::Merge(patch))?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await)
    }

    /// Tries to cancel as somebody.
    async fn cancel_as(&self, user: &str, name: &str, requested_by: &str) -> Result<Refusal> {
        self.patch_as(user, name, cancelled(requested_by)).await
    }
}

fn resource() -> ApiResource {
    ApiResource::erase::<WorkflowExecution>(&())
}

fn cancelled(requested_by: &str) -> Value {
    json!({"spec": {"cancellation": {"reason": "wrong cluster", "requestedBy": requested_by}}})
}

/// Starts an API server, installs everything as the README says, and waits until the policy is in force.
async fn install() -> Result<ControlPlane> {
    let control_plane = ControlPlane::start(Options::BARE).await?;
    let base = repository().join("config/base");
    let base = base.to_string_lossy();
    control_plane.kubectl(&["apply", "--server-side", "-k", &base]).await?;
    let crd = "crd/workflowexecutions.kubernaut.ai";
    control_plane.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", crd]).await?;
    // A second time changes nothing.
    control_plane.kubectl(&["apply", "--server-side", "-k", &base]).await?;
    let canary = Namespaced::on(&control_plane).await?;
    let name = canary.create_in("").await?;
    let deadline = Instant::now() + IN_FORCE_WITHIN;
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    loop {
        let answer = canary.api.patch(&name, &dry_run, &Patch::Merge(cancelled("nobody"))).await;
        if refusal(answer)?.is_some() {
            return Ok(control_plane);
        }
        ensure!(Instant::now() < deadline, "the policy is not in force after {IN_FORCE_WITHIN:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn only_who_may_cancel_does_and_in_the_own_name() -> Result<()> {
    let stage = Stage::new().await?;
    let not_allowed = |user: &str| {
        let namespace = &stage.namespaced.namespace;
        [
            POLICY.to_owned(),
            format!("spec.cancellation: {user} may not cancel this WorkflowExecution; ask for the right to update"),
            format!("workflowexecutions/cancellation (group kubernaut.ai) in namespace {namespace}"),
        ]
    };
    let not_you = |user: &str| {
        let own = format!("spec.cancellation.requestedBy: must be your own user name, {user}");
        [POLICY.to_owned(), own.clone(), own]
    };
    let rows = [
        (BOB, "", BOB, Some(not_allowed(BOB))),
        (BOB, "", JANE, Some(not_allowed(BOB))),
        (ANN, "", ANN, Some(not_allowed(ANN))),
        (JANE, "", BOB, Some(not_you(JANE))),
        (JANE, "", "Jane", Some(not_you(JANE))),
        (JANE, "", "robot", Some(not_you(JANE))),
        (ROBOT, "", "robot", Some(not_you(ROBOT))),
        (ROBOT, "", JANE, Some(not_you(ROBOT))),
        (JANE, "", JANE, None),
        (JANE, "Pending", JANE, None),
        (JANE, "Running", JANE, None),
        (ROBOT, "Running", ROBOT, None),
        (BOB, "Running", BOB, Some(not_allowed(BOB))),
        (BOB, "Completed", BOB, Some(not_allowed(BOB))),
    ];
    let mut failures = Vec::new();
    for (user, phase, requested_by, words) in rows {
        let name = stage.namespaced.create_in(phase).await?;
        let words: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
        let answer = stage.cancel_as(user, &name, requested_by).await?;
        expect(&mut failures, &format!("{user} on {phase:?} as {requested_by}"), &words, answer);
    }
    report(&failures)
}

#[tokio::test]
async fn the_right_can_be_given_for_one_execution() -> Result<()> {
    let stage = Stage::new().await?;
    for name in ["hers", "his"] {
        let object = serde_json::from_value(good_but("/metadata/name", json!(name))?)?;
        stage.namespaced.api.create(&PostParams::default(), &object).await?;
    }
    let mut failures = Vec::new();
    expect(&mut failures, "hers", &[], stage.cancel_as(ANN, "hers", ANN).await?);
    expect(&mut failures, "his", &["ann may not cancel"], stage.cancel_as(ANN, "his", ANN).await?);
    report(&failures)
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled() -> Result<()> {
    let stage = Stage::new().await?;
    let mut failures = Vec::new();
    for phase in ["Completed", "Failed", "Skipped"] {
        let name = stage.namespaced.create_in(phase).await?;
        let words = [&*format!("spec.cancellation: may be set only while the execution goes on; this one is {phase}")];
        expect(&mut failures, phase, &words, stage.cancel_as(JANE, &name, JANE).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn a_cancellation_is_never_there_from_the_start() -> Result<()> {
    let stage = Stage::new().await?;
    let mut object = good();
    object["spec"]["cancellation"] = cancelled(JANE)["spec"]["cancellation"].clone();
    let mut failures = Vec::new();
    let words = ["spec.cancellation: may not be set when the object is created"];
    expect(&mut failures, "create", &words, stage.namespaced.try_create(object.clone()).await?);
    object["metadata"] = json!({"name": "applied"});
    let apply = PatchParams::apply("test").force();
    let answer = stage.namespaced.api.patch("applied", &apply, &Patch::Apply(&object)).await;
    expect(&mut failures, "apply", &words, refusal(answer)?);
    report(&failures)
}

#[tokio::test]
async fn a_cancellation_stays_as_it_is() -> Result<()> {
    let stage = Stage::new().await?;
    let stays: &[&str] = &["spec.cancellation: may not change or be removed once set"];
    let mut failures = Vec::new();
    for phase in ["", "Running", "Failed"] {
        let name = stage.namespaced.create_in(if phase == "Failed" { "Running" } else { phase }).await?;
        expect(&mut failures, "cancelled", &[], stage.cancel_as(JANE, &name, JANE).await?);
        if phase == "Failed" {
            // What the operator writes, with every right on the status and none on cancellations.
            stage.namespaced.must(&name, entering(phase)).await?;
        }
        for (user, change, words) in [
            (JANE, json!({"reason": "another"}), stays),
            (JANE, json!({"requestedBy": ROBOT}), stays),
            (ROBOT, json!({"requestedBy": ROBOT}), stays),
            (ROBOT, json!({"reason": "another", "requestedBy": ROBOT}), stays),
            (JANE, json!(null), stays),
            (JANE, json!({"requestedBy": null}), &["spec.cancellation.requestedBy: Required value"]),
            (JANE, json!({"reason": "wrong cluster"}), &[]),
            (BOB, json!({"reason": "wrong cluster", "requestedBy": JANE}), &[]),
        ] {
            let row = format!("{phase:?}, {user}: {change}");
            let answer = stage.patch_as(user, &name, json!({"spec": {"cancellation": change}})).await?;
            expect(&mut failures, &row, words, answer);
        }
        // The administrator, who may do everything else, and by another verb.
        let mut object = stage.namespaced.api.get(&name).await?;
        object.data["spec"].as_object_mut().context("no spec")?.remove("cancellation");
        let answer = stage.namespaced.api.replace(&name, &PostParams::default(), &object).await;
        expect(&mut failures, &format!("{phase:?}, replaced"), stays, refusal(answer)?);
        // The rest of the object is as free as before, and as fixed.
        let label = json!({"metadata": {"labels": {"team": "payment"}}});
        expect(&mut failures, "a label", &[], stage.patch_as(BOB, &name, label).await?);
        let answer = stage.patch_as(BOB, &name, json!({"spec": {"confidence": 0.6}})).await?;
        expect(&mut failures, "confidence", &["spec.confidence: is immutable once created"], answer);
    }
    report(&failures)
}

#[tokio::test]
async fn a_malformed_cancellation_is_refused_by_name() -> Result<()> {
    let stage = Stage::new().await?;
    let api = &stage.namespaced.api;
    let name = stage.namespaced.create_in("").await?;
    // The administrator's own name, as the policy will have it.
    let good = json!({"reason": "wrong cluster", "requestedBy": "admin"});
    let with = |field: &str, value: Value| {
        let mut cancellation = good.clone();
        cancellation[field] = value;
        cancellation
    };
    let rows = [
        (json!("stop"), &["spec.cancellation", "must be of type object"][..]),
        (json!(true), &["spec.cancellation", "must be of type object"]),
        (json!([]), &["spec.cancellation", "must be of type object"]),
        (json!({}), &["spec.cancellation.reason: Required value", "spec.cancellation.requestedBy: Required value"]),
        (with("reason", json!(null)), &["spec.cancellation.reason: Required value"]),
        (with("reason", json!("")), &["spec.cancellation.reason", "at least 1"]),
        (with("reason", json!(7)), &["spec.cancellation.reason", "must be of type string"]),
        (with("reason", json!("x".repeat(1025))), &["spec.cancellation.reason: Too long"]),
        (with("requestedBy", json!(null)), &["spec.cancellation.requestedBy: Required value"]),
        (with("requestedBy", json!("")), &["spec.cancellation.requestedBy", "at least 1"]),
        (with("requestedBy", json!("x".repeat(1025))), &["spec.cancellation.requestedBy: Too long"]),
        (with("requestedby", json!("admin")), &["unknown field \"spec.cancellation.requestedby\""]),
        (json!(null), &[]),
        (good.clone(), &[]),
        (with("reason", json!("x".repeat(1024))), &[]),
        (with("reason", json!("lines\nand \u{1f980}")), &[]),
    ];
    let strict =
        PatchParams { dry_run: true, field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let mut failures = Vec::new();
    for (cancellation, words) in rows {
        let row = format!("{:.80}", cancellation.to_string());
        let patch = Patch::Merge(json!({"spec": {"cancellation": cancellation}}));
        expect(&mut failures, &row, words, refusal(api.patch(&name, &strict, &patch).await)?);
    }
    report(&failures)
}

#[tokio::test]
async fn the_policy_fits_the_kind() -> Result<()> {
    let stage = Stage::new().await?;
    let shipped = manifests::read(&repository().join("config/admission/cancellation_policy.yaml"))?;
    let shipped = shipped.first().context("no policy")?.to_string();
    let warnings = warnings(&stage.client, "shipped", &shipped).await?;
    ensure!(warnings.is_empty(), "{warnings}");
    // And it would be seen if it did not.
    let misspelt = shipped.replace("object.spec.cancellation.requestedBy", "object.spec.cancellation.requestedby");
    let warnings = self::warnings(&stage.client, "misspelt", &misspelt).await?;
    ensure!(warnings.contains("undefined field 'requestedby'"), "{warnings}");
    Ok(())
}

/// Returns what the API server has against the expressions of a policy. It checks a policy once, at its creation or
/// change, against the kinds that are there by then: hence a copy, which nothing binds.
async fn warnings(client: &Client, name: &str, policy: &str) -> Result<String> {
    let mut policy: Value = serde_json::from_str(policy)?;
    policy["metadata"] = json!({"name": name});
    manifests::apply(client, &policy).await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let deadline = Instant::now() + IN_FORCE_WITHIN;
    loop {
        let policy = policies.get(name).await?;
        if let Some(checked) = policy.status.as_ref().and_then(|status| status.type_checking.as_ref()) {
            let warnings = checked.expression_warnings.iter().flatten().map(|one| one.warning.as_str());
            return Ok(warnings.collect::<Vec<_>>().join("\n"));
        }
        ensure!(Instant::now() < deadline, "nobody has checked the policy {name}: {policy:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
