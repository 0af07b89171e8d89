//! Which targets users and programs may request, and what the operator's own account may do.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::client::Body;
use kube::core::Request;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use wfe_api::WorkflowExecution;
use wfe_testkit::awaits::ask_until;
use wfe_testkit::manifests;

use super::objects::{Namespaced, Refusal, expect, good_request, report, says};
use super::people::{JANE, Stage, expect_no_warnings, installed};

const TARGET: &str = "target.workflowexecutions.kubernaut.ai";
const KIND: &str = "kind.workflowexecutions.kubernaut.ai";
const OWN: &str = "operator.workflowexecutions.kubernaut.ai";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// Returns an execution on a target.
fn on(target: &str) -> Value {
    let mut object = good_request();
    object["spec"]["targetResource"] = json!(target);
    object
}

/// Tries to create an execution on a target as this user, as a dry run.
async fn asks(stage: &Stage, user: &str, target: &str) -> Result<Refusal> {
    stage.create_as(user, &on(target)).await
}

/// Binds a shipped role to a user, in one namespace or for the whole cluster.
pub(super) async fn bind(stage: &Stage, user: &str, role: &str, namespace: Option<&str>) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind,
        "metadata": {"name": format!("{role}-{user}"), "namespace": namespace},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
    });
    manifests::apply(stage.client(), &binding).await?;
    Ok(())
}

/// Waits until a user may request a target.
async fn await_allowed(stage: &Stage, user: &str, target: &str) -> Result<()> {
    let what = format!("{user} may have {target}");
    ask_until(IN_FORCE_WITHIN, &what, async || asks(stage, user, target).await, Option::is_none).await.map(drop)
}

/// Waits until a policy refuses a user.
async fn await_refused(stage: &Stage, user: &str, object: &Value, policy: &str) -> Result<()> {
    let what = format!("{policy} refuses {user}");
    ask_until(IN_FORCE_WITHIN, &what, async || stage.create_as(user, object).await, says(policy)).await.map(drop)
}

#[tokio::test]
async fn a_target_elsewhere_takes_the_right_to_name_it_there() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let other = Namespaced::on(installed().await?).await?.namespace;
    let own = stage.namespaced.namespace.clone();
    let (neighbour, orchestrator) = (format!("neighbour-{own}"), format!("orchestrator-{own}"));
    for user in [&neighbour, &orchestrator] {
        bind(&stage, user, "wfe-edit", Some(&own)).await?;
    }
    bind(&stage, &neighbour, "wfe-target", Some(&other)).await?;
    bind(&stage, &orchestrator, "wfe-target-any", None).await?;
    let (mine, theirs, node) = (format!("{own}/deployment/api"), format!("{other}/deployment/api"), "node/worker-1");
    await_refused(&stage, JANE, &on(&theirs), TARGET).await?;
    await_allowed(&stage, &neighbour, &theirs).await?;
    await_allowed(&stage, &orchestrator, node).await?;

    let there = format!(
        "spec.targetResource: jane may not let workflows act on {theirs}; ask for the right to create \
         workflowexecutions/target (group kubernaut.ai) in namespace {other}, which an administrator of that namespace \
         gives by the ClusterRole wfe-target"
    );
    let everywhere = "act on node/worker-1; ask for the right to create workflowexecutions/target (group kubernaut.ai) \
                      in the whole cluster, which an administrator of the cluster gives by the ClusterRole wfe-target-any";
    let rows: &[(&str, &str, &[&str])] = &[
        (JANE, &mine, &[]),
        (JANE, &theirs, &[TARGET, &there]),
        (JANE, node, &[TARGET, everywhere]),
        (&neighbour, &mine, &[]),
        (&neighbour, &theirs, &[]),
        (&neighbour, node, &[TARGET, everywhere]),
        (&neighbour, "kube-system/deployment/coredns", &[TARGET, "in namespace kube-system"]),
        (&orchestrator, &mine, &[]),
        (&orchestrator, &theirs, &[]),
        (&orchestrator, node, &[]),
    ];
    let mut failures = Vec::new();
    for (user, target, words) in rows {
        expect(&mut failures, &format!("{user} on {target}"), words, asks(&stage, user, target).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn a_kind_that_nobody_knows_is_taken_with_a_warning_that_says_how_it_was_read() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let unknown = |target: &str, read: &str| {
        format!(
            "spec.targetResource: {target} is read as {read}. That is no kind of Kubernetes itself: if it is the one that \
             you mean, write it with its group, "
        )
    };
    let rows = [
        ("payment/deploymnt/api", Some("api of the kind deploymnt in the namespace payment")),
        ("payment/api", Some("api of the kind payment, which has no namespace")),
        ("payment/Certificates/tls", Some("tls of the kind certificates in the namespace payment")),
        ("payment/certificate.cert-manager.io/tls", None),
        ("payment/Deploy/api", None),
        ("no/worker-1", None),
    ];
    let (first, read) = (rows[0].0, unknown(rows[0].0, rows[0].1.unwrap_or_default()));
    let ask = async || warnings(&stage, first).await;
    ask_until(IN_FORCE_WITHIN, "the policy warns", ask, |said| said.contains(&read)).await?;
    for (target, read) in rows {
        let said = warnings(&stage, target).await?;
        match read {
            Some(read) => ensure!(said.contains(KIND) && said.contains(&unknown(target, read)), "{target}: {said}"),
            None => ensure!(said.is_empty(), "{target}: {said}"),
        }
    }
    Ok(())
}

/// Returns the warnings that a user gets who creates an execution on a target.
async fn warnings(stage: &Stage, target: &str) -> Result<String> {
    let object = on(target);
    let url = DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&stage.namespaced.namespace));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let request = Request::new(url).create(&dry_run, serde_json::to_vec(&object)?)?;
    let answer = stage.client().send(request.map(Body::from)).await?;
    ensure!(answer.status().is_success(), "{target} is refused: {}", answer.status());
    let warnings = answer.headers().get_all("warning").iter().map(|value| Ok(value.to_str()?.to_owned()));
    Ok(warnings.collect::<Result<Vec<_>>>()?.join("\n"))
}

/// What a person with a stolen token of the operator can do.
#[tokio::test]
async fn the_operator_makes_only_what_is_of_a_schedule_and_deletes_only_what_is_over() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    await_refused(&stage, OPERATOR, &good_request(), OWN).await?;
    let mut child = good_request();
    child["spec"]["remediationRequestRef"] =
        json!({"apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": "nightly", "uid": "1"});
    let mut without = good_request();
    without["spec"].as_object_mut().map(|spec| spec.remove("remediationRequestRef"));
    let makes = [OWN, "spec.remediationRequestRef.kind: ", "may make executions of schedules alone"];
    let deletes = [OWN, "status.phase: ", "may delete only executions that are Completed, Failed or Skipped"];
    let mut failures = Vec::new();
    expect(&mut failures, "of a schedule", &[], stage.create_as(OPERATOR, &child).await?);
    expect(&mut failures, "of a request", &makes, stage.create_as(OPERATOR, &good_request()).await?);
    expect(&mut failures, "of nobody", &makes, stage.create_as(OPERATOR, &without).await?);
    for phase in ["", "Pending", "Running", "Completed", "Failed", "Skipped"] {
        let name = stage.namespaced.create_in(phase).await?;
        let words: &[&str] = if matches!(phase, "" | "Pending" | "Running") { &deletes } else { &[] };
        expect(&mut failures, &format!("deletes {phase:?}"), words, stage.delete_as(OPERATOR, &name).await?);
    }
    // A person may delete a running execution, which stops it.
    let object = stage.namespaced.api.create(&PostParams::default(), &serde_json::from_value(good_request())?).await?;
    expect(&mut failures, "the administrator", &[], stage.delete_as("admin", &object.name_any()).await?);
    report(&failures)
}

/// The API server would not report a misspelt field in a variable. In that case the rows above would fail.
#[tokio::test]
async fn the_policies_fit_the_kind() -> Result<()> {
    expect_no_warnings("target").await?;
    expect_no_warnings("kind").await?;
    expect_no_warnings("operator").await
}
