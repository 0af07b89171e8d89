//! Which users may write a schedule, suspend it, and create its executions.

use anyhow::{Context as _, Result};
use kube::api::ApiResource;
use serde_json::{Value, json};
use wfe_api::WorkflowExecution;
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{World, manifests, repository, rights};

use super::cast::{ADVISOR, ASKER, AUTHOR, CHILD, Cast, HALF, IN_FORCE_WITHIN, TARGET, WRITER, may, reference};
use super::objects::{Schedules, but, create_as, good};
use super::{await_children, await_outcome, await_schedule, create, hurry};
use crate::admission::objects::{expect, good as good_execution, report, says};
use crate::admission::people::{Stage, expect_no_warnings};
use crate::admission::{retry, workflow};
use crate::history::short;

const WORKFLOW: &str = "workflow.workflowexecutions.kubernaut.ai";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";

#[tokio::test]
async fn whoever_writes_a_schedule_has_what_its_executions_take() -> Result<()> {
    let stage = Cast::new().await?;
    let (own, other) = (stage.namespace(), &stage.other);
    let no_executions = format!("right to create workflowexecutions (group kubernaut.ai) in namespace {own}");
    let no_targets =
        format!("workflowexecutions/target (group kubernaut.ai) in namespace {other}, which an administrator of");
    let no_nodes = "workflowexecutions/target (group kubernaut.ai) in the whole cluster, which an administrator of the cluster \
                    gives by the ClusterRole wfe-target-any";
    let told = "spec.template.spec.targetResource: ";
    let (mine, theirs, node) =
        (format!("{own}/deployment/api"), format!("{other}/deployment/api"), "node/worker-1".to_owned());
    let (neighbour, everywhere) = (stage.neighbour.as_str(), stage.everywhere.as_str());
    let rbac: &[&str] = &["cannot create resource \"workflowschedules\""];
    let executions: &[&str] = &[AUTHOR, "spec.template: half may not write this schedule", &no_executions];
    let rows: &[(&str, &str, &[&str])] = &[
        (WRITER, &mine, &[]),
        (WRITER, &theirs, &[AUTHOR, told, "writer may not let workflows act on", &no_targets]),
        (WRITER, &node, &[AUTHOR, told, "writer may not let workflows act on node/worker-1", no_nodes]),
        (HALF, &mine, executions),
        (HALF, &theirs, executions),
        (ASKER, &mine, rbac),
        (ADVISOR, &mine, rbac),
        (neighbour, &mine, &[]),
        (neighbour, &theirs, &[]),
        (neighbour, &node, &[AUTHOR, no_nodes]),
        (everywhere, &mine, &[]),
        (everywhere, &theirs, &[]),
        (everywhere, &node, &[]),
    ];
    let mut failures = Vec::new();
    for (user, target, words) in rows {
        let refusal = stage.schedules.try_create_as(user, but(good(), &[(TARGET, json!(target))])?).await?;
        expect(&mut failures, &format!("{user} on {target}"), words, refusal);
    }
    report(&failures)
}

#[tokio::test]
async fn every_change_but_a_suspension_or_a_hint_is_one_of_an_author() -> Result<()> {
    let stage = Cast::new().await?;
    let name = stage.schedules.create(stage.on("deployment/api")?).await?;
    let refused = [AUTHOR, "spec.template: advisor may not write this schedule"];
    let hint = json!({"interval": "30m", "nextRunAt": null, "expiresAt": "2099-01-01T00:00:00Z"});
    let free = [
        json!({"suspend": true}),
        json!({"suspend": false}),
        json!({"suspend": null}),
        json!({"hint": hint}),
        json!({"hint": {"reason": "another"}, "suspend": true}),
        json!({"hint": null}),
        json!({"interval": "1h"}), // unchanged
    ];
    let others = [
        json!({"interval": "2h"}),
        json!({"interval": null, "cron": "0 2 * * *", "spread": null, "triage": {"allowAdjust": null}}),
        json!({"interval": "2h", "suspend": false}),
        json!({"spread": "2m"}),
        json!({"spread": null}),
        json!({"minInterval": "6m"}),
        json!({"maxInterval": null}),
        json!({"startingDeadlineSeconds": 60}),
        json!({"startingDeadlineSeconds": null}),
        json!({"history": {"failed": 1}}),
        json!({"history": null}),
        json!({"triage": {"after": 5}}),
        json!({"triage": {"allowAdjust": ["interval"]}}),
        json!({"triage": null}),
        json!({"template": {"metadata": {"labels": {"team": "other"}}}}),
        json!({"template": {"spec": {"targetResource": "node/worker-1"}}}),
        json!({"template": {"spec": {"parameters": {"MORE": "1"}}}}),
        json!({"template": {"spec": {"retry": {"maxAttempts": 4}}}}),
        json!({"template": {"spec": {"retry": null}}}),
        // The lists of the workflow policy would refuse this account.
        json!({"template": {"spec": {"executionConfig": {"serviceAccountName": null}}}}),
    ];
    let mut failures = Vec::new();
    for (changes, words) in [(&free[..], &[][..]), (&others, &refused)] {
        for change in changes {
            let answer = stage.schedules.patch_as(ADVISOR, &name, json!({"spec": change})).await?;
            expect(&mut failures, &format!("advisor: {change}"), words, answer);
        }
    }
    let label = json!({"metadata": {"labels": {"seen": "yes"}}});
    expect(&mut failures, "a label", &[], stage.schedules.patch_as(ADVISOR, &name, label).await?);
    // A user with the permission may edit the schedule, but may not move it to a target in another namespace.
    for change in
        others.iter().filter(|it| it["cron"].is_null() && it.pointer("/template/spec/targetResource").is_none())
    {
        let answer = stage.schedules.patch_as(WRITER, &name, json!({"spec": change})).await?;
        expect(&mut failures, &format!("writer: {change}"), &[], answer);
    }
    let moved = json!({"spec": {"template": {"spec": {"targetResource": "node/worker-1"}}}});
    let words = [AUTHOR, "spec.template.spec.targetResource: writer may not let workflows act on node/worker-1"];
    expect(&mut failures, "moved", &words, stage.schedules.patch_as(WRITER, &name, moved).await?);
    report(&failures)
}

/// As with a `CronJob`, a schedule continues if its author loses a permission. A user can always stop what a schedule
/// does.
#[tokio::test]
async fn a_schedule_of_somebody_with_more_rights_can_be_suspended_and_not_changed() -> Result<()> {
    let stage = Cast::new().await?;
    let name = stage.schedules.create(but(good(), &[(TARGET, json!("node/worker-1"))])?).await?;
    let mut failures = Vec::new();
    let suspended = json!({"spec": {"suspend": true}});
    expect(&mut failures, "suspend", &[], stage.schedules.patch_as(WRITER, &name, suspended).await?);
    let faster = json!({"spec": {"interval": "2h"}});
    let words = [AUTHOR, "writer may not let workflows act on node/worker-1"];
    expect(&mut failures, "change", &words, stage.schedules.patch_as(WRITER, &name, faster.clone()).await?);
    expect(&mut failures, "by another", &[], stage.schedules.patch_as(&stage.everywhere, &name, faster).await?);
    report(&failures)
}

#[tokio::test]
async fn nobody_but_the_operator_makes_the_execution_of_a_schedule() -> Result<()> {
    let stage = Cast::new().await?;
    let forged = format!(
        "spec.remediationRequestRef.kind: asker may not make an execution of a WorkflowSchedule, as the operator makes \
         them; leave the field out or, to run the schedule now, set its spec.hint. The right is to create \
         workflowschedules/child (group kubernaut.ai) in namespace {}",
        stage.namespace()
    );
    let without_version = json!({"kind": "WorkflowSchedule", "name": "nightly"});
    let mut of_another_group = reference("WorkflowSchedule");
    of_another_group["apiVersion"] = json!("example.com/v1");
    let granted = format!("granted-{}", stage.namespace());
    let namespace = Some(stage.namespace());
    stage.grant(&granted, "executions", &may("workflowexecutions", &["create"]), namespace).await?;
    stage.grant(&granted, "children", &may("workflowschedules/child", &["create"]), namespace).await?;
    let refused: &[&str] = &[CHILD, &forged];
    let mut failures = Vec::new();
    for (user, reference, words) in [
        (ASKER, reference("WorkflowSchedule"), refused),
        (ASKER, without_version, refused),
        (ASKER, of_another_group, refused),
        (WRITER, reference("WorkflowSchedule"), &[CHILD]),
        (ASKER, reference("RemediationRequest"), &[]),
        (ASKER, json!({"name": "nightly"}), &[]),
        // The role in config/base allows this.
        (OPERATOR, reference("WorkflowSchedule"), &[]),
    ] {
        let answer = stage.forge(user, &reference).await?;
        expect(&mut failures, &format!("{user}: {reference}"), words, answer);
    }
    let ask = async || stage.forge(&granted, &reference("WorkflowSchedule")).await;
    ask_until(IN_FORCE_WITHIN, "who has the right may", ask, Option::is_none).await?;
    report(&failures)
}

#[tokio::test]
async fn the_operator_writes_the_status_of_a_schedule_and_nothing_else_of_it() -> Result<()> {
    let stage = Cast::new().await?;
    let name = stage.schedules.create(stage.on("deployment/api")?).await?;
    let words = ["cannot patch resource \"workflowschedules\""];
    let mut failures = Vec::new();
    for spec in [json!({"suspend": true}), json!({"interval": "2h"})] {
        let answer = stage.schedules.patch_as(OPERATOR, &name, json!({"spec": spec})).await?;
        expect(&mut failures, "spec", &words, answer);
    }
    let status = json!({"failureCount": 1});
    expect(&mut failures, "status", &[], stage.schedules.patch_status_as(OPERATOR, &name, &status).await?);
    let words = ["cannot patch resource \"workflowschedules/status\""];
    expect(&mut failures, "writer", &words, stage.schedules.patch_status_as(WRITER, &name, &status).await?);
    report(&failures)
}

#[tokio::test]
async fn the_lists_of_workflows_bind_a_template() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    workflow::bind(&stage).await?;
    let lists = json!({
        "service-accounts": "kubernaut-workflow-runner", "image-registries": "registry.example/workflows",
        "require-digest": "true",
    });
    workflow::allow(&stage, lists).await?;
    let schedules = Schedules::of(&stage.namespaced).await?;
    let source = format!("ConfigMap {}/workflowexecution-admission", schedules.namespace);
    let rows: &[(&[(&str, Value)], &str)] = &[
        (
            &[("template/spec/executionConfig/serviceAccountName", json!("other"))],
            "spec.template.spec.executionConfig.serviceAccountName: other is not among the service-accounts of",
        ),
        (
            &[("template/spec/workflowRef/containerImage", json!("elsewhere.example/x:1"))],
            "spec.template.spec.workflowRef.containerImage: elsewhere.example/x:1 is from none of the image-registries of",
        ),
        (
            &[("template/spec/workflowRef/containerDigest", json!(null))],
            "spec.template.spec.workflowRef.containerDigest: is required by require-digest of",
        ),
        (
            &[("triage/serviceAccountName", json!("other"))],
            "spec.triage.serviceAccountName: other is not among the service-accounts of",
        ),
        (
            &[("triage/workflowRef/containerImage", json!("elsewhere.example/x:1"))],
            "spec.triage.workflowRef.containerImage: elsewhere.example/x:1 is from none of the image-registries of",
        ),
        (
            &[("triage/workflowRef/containerDigest", json!(null))],
            "spec.triage.workflowRef.containerDigest: is required by require-digest of",
        ),
        // If several targets are affected, the message names the first one.
        (
            &[
                ("triage/workflowRef/containerImage", json!("elsewhere.example/x:1")),
                ("template/spec/workflowRef/containerImage", json!("elsewhere.example/y:1")),
            ],
            "spec.template.spec.workflowRef.containerImage: elsewhere.example/y:1 is from none of the image-registries of",
        ),
    ];
    let mut failures = Vec::new();
    expect(&mut failures, "good", &[], schedules.try_create(good()).await?);
    let built_in = but(good(), &[("triage", json!({"analyst": "BuiltIn"}))])?;
    expect(&mut failures, "no analyst", &[], schedules.try_create(built_in).await?);
    expect(&mut failures, "no triage", &[], schedules.try_create(but(good(), &[("triage", json!(null))])?).await?);
    for (changes, words) in rows {
        let refusal = schedules.try_create(but(good(), changes)?).await?;
        expect(&mut failures, words, &[WORKFLOW, words, &source], refusal);
    }
    // A schedule that was created before a list can be suspended, but no other field can be changed.
    let name = schedules.create(good()).await?;
    workflow::allow(&stage, json!({"service-accounts": "somebody"})).await?;
    for (spec, words) in [
        (json!({"suspend": true}), &[][..]),
        (json!({"hint": null}), &[]),
        (
            json!({"interval": "2h"}),
            &[
                WORKFLOW,
                "spec.template.spec.executionConfig.serviceAccountName: kubernaut-workflow-runner is not among",
            ],
        ),
        (
            json!({"template": {"spec": {"executionConfig": {"serviceAccountName": "somebody"}}}}),
            &[WORKFLOW, "spec.triage.serviceAccountName: kubernaut-workflow-runner is not among"],
        ),
        (
            json!({
                "template": {"spec": {"executionConfig": {"serviceAccountName": "somebody"}}},
                "triage": {"serviceAccountName": "somebody"},
            }),
            &[],
        ),
        (json!({"interval": "2h"}), &[]),
    ] {
        expect(&mut failures, &spec.to_string(), words, schedules.try_spec(&name, spec.clone()).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn what_is_no_retry_policy_is_refused_by_its_field_in_a_template() -> Result<()> {
    let stage = Cast::new().await?;
    let with = |retry: &Value| -> Result<Value> {
        let mut object = but(good(), &[("template/spec/retry", json!(null))])?;
        object["spec"]["template"]["spec"]["retry"] = retry.clone();
        Ok(object)
    };
    let mut failures = Vec::new();
    for (retry, words) in retry::bad_policies() {
        let row = format!("{:.80}", retry.to_string());
        let words: Vec<String> =
            words.iter().map(|word| word.replace("spec.retry", "spec.template.spec.retry")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        expect(&mut failures, &row, &words, stage.schedules.try_create(with(&retry)?).await?);
    }
    for retry in retry::good_policies().into_iter().chain([json!(null)]) {
        expect(&mut failures, &retry.to_string(), &[], stage.schedules.try_create(with(&retry)?).await?);
    }
    // The same applies to a change.
    let name = stage.schedules.create(good()).await?;
    let change = json!({"template": {"spec": {"retry": {"jitters": true}}}});
    let words = ["spec.template.spec.retry.jitters: is not known"];
    expect(&mut failures, "a change", &words, stage.schedules.try_spec(&name, change).await?);
    report(&failures)
}

#[tokio::test]
async fn the_policies_fit_the_kinds() -> Result<()> {
    for policy in ["author", "child"] {
        expect_no_warnings(policy).await?;
    }
    Ok(())
}

/// A policy checks the operator's permission to create children, which is not a permission for a real resource. A
/// refusal by this policy does not count as a failure.
#[tokio::test]
async fn an_operator_that_may_not_make_children_says_so_and_waits() -> Result<()> {
    let world = World::new("no-child-right").await?;
    let bundle = short(&world).await?;
    let right = rights::shipped()?.into_iter().find(|right| right.resource == "workflowschedules/child");
    let right = right.context("config/rbac does not give the right")?;
    world.take_away(&right).await?;
    bind_child_policy(&world).await?;
    let operator = world.operator().start().await?;
    create(&world, "childless", "node/childless", &bundle, &json!({"interval": "1h"})).await?;
    hurry(&world, "childless").await?;
    let says = |line: &Value| {
        let said = line["fields"].to_string();
        let parts = ["create workflowschedules/child", "bind the ClusterRole wfe-operator of config/rbac"];
        let is_told = line["level"] == "WARN" && parts.iter().all(|part| said.contains(part));
        is_told && !said.contains("give the operator this right")
    };
    operator.await_line("says that it lacks the right to make children", says).await?;
    let waiting = await_schedule(&world, "childless", "is there", |_| true).await?;
    assert_eq!(waiting["status"]["failureCount"], 0, "{waiting:#}");
    await_children(&world, "childless", 0).await?;
    world.give_back(&right).await?;
    let done = await_outcome(&world, "childless", "Completed").await?;
    assert_eq!(done["status"]["failureCount"], 0, "{done:#}");
    await_children(&world, "childless", 1).await?;
    world.close().await
}

/// Binds the shipped policy for children in the namespace of a world, and waits until it is in force.
async fn bind_child_policy(world: &World) -> Result<()> {
    let policy = manifests::read(&repository().join("config/admission/child_policy.yaml"))?;
    for object in &policy {
        manifests::apply(&world.client(), object).await?;
    }
    let name = world.namespace();
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("child-{name}")},
        "spec": {
            "policyName": CHILD,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
        },
    });
    world.apply(&binding).await?;
    let mut execution = good_execution();
    execution["spec"]["remediationRequestRef"] = reference("WorkflowSchedule");
    let kind = ApiResource::erase::<WorkflowExecution>(&());
    let user = world.operator_user();
    let what = format!("the policy of children is in force in {name}");
    let ask = async || create_as(&world.client(), &user, &kind, name, &execution).await;
    ask_until(IN_FORCE_WITHIN, &what, ask, says(CHILD)).await.map(drop)
}
