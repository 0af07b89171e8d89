//! Which users may create an execution as the recovery of another one, and which may delete a failure that has a
//! recovery.

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;

use super::deletion::{BEFORE, IN_FORCE_WITHIN, POLICY as DELETION, failed};
use super::objects::{Refusal, expect, good_request, report, says};
use super::people::{Stage, expect_no_warnings};
use super::target::bind;

const RECOVERY: &str = "recovery.workflowexecutions.kubernaut.ai";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// Returns an execution that is the recovery of another one on a target.
fn recovery(target: &str) -> Value {
    let mut object = good_request();
    object["spec"]["targetResource"] = json!(target);
    object["spec"]["recoveryOf"] = json!("broken");
    object
}

#[tokio::test]
async fn a_recovery_takes_a_right_of_its_own_here_and_at_the_target() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let user = |role: &str| format!("{role}-{own}");
    let (writer, there, here, both, any) = (user("writer"), user("there"), user("here"), user("both"), user("any"));
    for user in [&writer, &there, &here, &both, &any] {
        bind(&stage, user, "wfe-edit", Some(&own)).await?;
    }
    for user in [&there, &here, &both] {
        bind(&stage, user, "wfe-target", Some("payment")).await?;
    }
    for (user, namespaces) in [(&there, &["payment"][..]), (&here, &[&own]), (&both, &[&own, "payment"])] {
        for namespace in namespaces {
            bind(&stage, user, "wfe-clear", Some(namespace)).await?;
        }
    }
    bind(&stage, &any, "wfe-target-any", None).await?;
    let (mine, theirs, node) = (format!("{own}/deployment/api"), "payment/deployment/api", "node/worker-1");
    // The bindings of these three users were created last. When they are in force, all other bindings and policies are
    // too.
    let ask = async || {
        let denied = stage.create_as(&writer, &recovery(&mine)).await?;
        anyhow::Ok((
            denied,
            stage.create_as(&both, &recovery(theirs)).await?,
            stage.create_as(&any, &recovery(node)).await?,
        ))
    };
    let is =
        |(denied, both, any): &(Refusal, Refusal, Refusal)| says(RECOVERY)(denied) && both.is_none() && any.is_none();
    ask_until(IN_FORCE_WITHIN, "policies and roles are in force", ask, is).await?;

    let right = "ask for the right to create workflowexecutions/recovery (group kubernaut.ai)";
    let gives = "which an administrator of the cluster gives by the ClusterRole wfe-clear";
    let in_own =
        |user: &str| format!("spec.recoveryOf: {user} may not create a recovery; {right} in namespace {own}, {gives}");
    let in_payment =
        format!("spec.recoveryOf: {here} may not create a recovery on {theirs}; {right} in namespace payment, {gives}");
    let (asks_here, elsewhere) = (in_own(&writer), in_own(&there));
    let rows: &[(&str, &str, &[&str])] = &[
        (&writer, &mine, &[RECOVERY, &asks_here]),
        (&there, theirs, &[RECOVERY, &elsewhere]),
        (&here, &mine, &[]),
        (&here, theirs, &[RECOVERY, &in_payment]),
        (&both, &mine, &[]),
        (&both, theirs, &[]),
        (&any, &mine, &[]),
        (&any, theirs, &[]),
        (&any, node, &[]),
    ];
    let mut failures = Vec::new();
    for (user, target, words) in rows {
        expect(&mut failures, &format!("{user} on {target}"), words, stage.create_as(user, &recovery(target)).await?);
    }
    // An execution that is not a recovery requires no additional permission.
    let mut plain = recovery(&mine);
    if let Some(spec) = plain["spec"].as_object_mut() {
        spec.remove("recoveryOf");
    }
    expect(&mut failures, "no recovery", &[], stage.create_as(&writer, &plain).await?);
    report(&failures)
}

/// A recovery may be deleted like any other ended execution. The failure then blocks again. To delete the failure first
/// would avoid this block, and therefore requires permission to clear.
#[tokio::test]
async fn a_failure_that_its_recovery_has_repaired_is_deleted_by_who_may_clear() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let (writer, clearer) = (format!("writer-{own}"), format!("clearer-{own}"));
    for user in [&writer, &clearer] {
        bind(&stage, user, "wfe-edit", Some(&own)).await?;
    }
    bind(&stage, &clearer, "wfe-clear", Some(&own)).await?;
    let target = format!("{own}/deployment/api");
    for (name, reason) in [("recovered", "Recovered"), ("lifted", "Lifted")] {
        failed(&stage, name, &target, false).await?;
        let condition = json!({
            "type": "Blocked", "status": "False", "reason": reason, "message": "", "lastTransitionTime": BEFORE,
        });
        stage.namespaced.must(name, json!({"conditions": [condition]})).await?;
    }
    let ask = async || {
        anyhow::Ok((
            stage.delete_dry_as(&writer, "recovered").await?,
            stage.delete_dry_as(&clearer, "recovered").await?,
        ))
    };
    let is = |(denied, given): &(Refusal, Refusal)| says(DELETION)(denied) && given.is_none();
    ask_until(IN_FORCE_WITHIN, "policies and roles are in force", ask, is).await?;

    let refused = format!(
        "{writer} may not delete WorkflowExecution recovered, whose recovery has ended its block of {target}; ask for the \
         right to update workflowexecutions/clearance (group kubernaut.ai) in namespace {own}"
    );
    let collector =
        "the garbage collector may not delete WorkflowExecution recovered, whose recovery has ended its block of";
    let remedy = "Delete the execution, or remove metadata.ownerReferences from it. To delete it takes the right to";
    let rows: &[(&str, &str, &[&str])] = &[
        (&writer, "recovered", &[DELETION, &refused]),
        (&writer, "lifted", &[]),
        (&clearer, "recovered", &[]),
        (COLLECTOR, "recovered", &[DELETION, collector, remedy]),
    ];
    let mut failures = Vec::new();
    for (user, name, words) in rows {
        expect(&mut failures, &format!("{user} deletes {name}"), words, stage.delete_dry_as(user, name).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn the_policy_on_recoveries_fits_the_kind() -> Result<()> {
    expect_no_warnings("recovery").await
}
