//! Each test takes a permission of config/rbac from the operator. The operator must report that the permission is
//! missing. Work that does not need it continues, and the other work continues when the permission is back.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{Metrics, Operator, Outcome, Pipeline, Right, World, is_terminal, manifests, rights};

use crate::admission::marks::an_operator_whose_marks_are_refused_waits;
use crate::configuration;
use crate::expect::{condition, text, unwritten};
use crate::leader;
use crate::policies::what_protects_is_not_known;
use crate::refused::await_unready;
use crate::schedules;
use crate::ttl::await_later_second;

/// Defines one test for each permission. A test fails if a shipped permission is missing in the list.
macro_rules! taken_away {
    ($($name:ident: $right:literal => $case:expr;)*) => {
        const TAKEN_AWAY: &[&str] = &[$($right),*];
        $(
            #[tokio::test]
            async fn $name() -> Result<()> {
                let right = shipped($right)?;
                take_away(&right, $case).await
            }
        )*
    };
}

taken_away! {
    without_list_workflowexecutions: "list kubernaut.ai/workflowexecutions" => it_sees_nothing_and_decides_nothing;
    without_watch_workflowexecutions: "watch kubernaut.ai/workflowexecutions" => it_sees_nothing_and_decides_nothing;
    without_list_pipelineruns: "list tekton.dev/pipelineruns" => it_sees_nothing_and_decides_nothing;
    without_watch_pipelineruns: "watch tekton.dev/pipelineruns" => it_sees_nothing_and_decides_nothing;
    without_list_taskruns: "list tekton.dev/taskruns" => it_sees_nothing_and_decides_nothing;
    without_watch_taskruns: "watch tekton.dev/taskruns" => it_sees_nothing_and_decides_nothing;
    without_list_customruns: "list tekton.dev/customruns" => it_sees_nothing_and_decides_nothing;
    without_watch_customruns: "watch tekton.dev/customruns" => it_sees_nothing_and_decides_nothing;
    without_list_pods: "list pods" => it_sees_nothing_and_decides_nothing;
    without_watch_pods: "watch pods" => it_sees_nothing_and_decides_nothing_and_the_status_says_so;
    without_list_namespaces: "list namespaces" => it_sees_nothing_and_decides_nothing;
    without_watch_namespaces: "watch namespaces" => it_sees_nothing_and_decides_nothing;
    without_get_workflowexecutions: "get kubernaut.ai/workflowexecutions" => the_run_of_a_deleted_execution_goes_on;
    without_get_pipelineruns: "get tekton.dev/pipelineruns" => a_rival_waits_for_the_live_read_of_the_holder;
    without_get_taskruns: "get tekton.dev/taskruns" => a_rival_waits_for_the_live_read_of_what_is_left;
    without_get_customruns: "get tekton.dev/customruns" => a_rival_waits_for_the_live_read_of_what_is_left;
    without_get_pods: "get pods" => a_rival_waits_for_the_live_read_of_what_is_left;
    without_create_pipelineruns: "create tekton.dev/pipelineruns" => nothing_new_starts_and_what_runs_ends;
    without_patch_pipelineruns: "patch tekton.dev/pipelineruns" => a_committed_run_is_not_released;
    without_delete_pipelineruns: "delete tekton.dev/pipelineruns" => what_has_expired_stays_and_its_target_is_free;
    without_delete_workflowexecutions: "delete kubernaut.ai/workflowexecutions" => what_is_over_stays_and_others_go_on;
    without_patch_status: "patch kubernaut.ai/workflowexecutions/status" => a_pending_run_is_not_committed;
    without_list_configmaps: "list configmaps" => it_does_not_start;
    without_watch_configmaps: "watch configmaps" => what_was_read_at_the_start_stays_in_force;
    without_create_events: "create events.k8s.io/events" => all_goes_on_untold;
    without_get_leases: "get coordination.k8s.io/leases" => nobody_leads;
    without_create_leases: "create coordination.k8s.io/leases" => nobody_leads;
    without_list_workflowschedules: "list kubernaut.ai/workflowschedules" => schedules_wait_and_executions_go_on;
    without_watch_workflowschedules: "watch kubernaut.ai/workflowschedules" => schedules_wait_and_executions_go_on;
    without_get_workflowschedules: "get kubernaut.ai/workflowschedules" => no_child_is_made;
    without_create_workflowexecutions: "create kubernaut.ai/workflowexecutions" => no_child_is_made;
    without_patch_schedule_status: "patch kubernaut.ai/workflowschedules/status" => nothing_is_planned;
    without_create_target: "create kubernaut.ai/workflowexecutions/target" => another_target_goes_on;
    without_create_marks: "create kubernaut.ai/workflowexecutions/marks" => an_operator_whose_marks_are_refused_waits;
    without_create_child: "create kubernaut.ai/workflowschedules/child" => another_target_goes_on;
    without_get_policies: "get admissionregistration.k8s.io/validatingadmissionpolicies" => what_protects_is_not_known;
    without_get_crds: "get apiextensions.k8s.io/customresourcedefinitions" => published_schemas_are_read_instead;
    without_get_bindings: "get admissionregistration.k8s.io/validatingadmissionpolicybindings" => what_protects_is_not_known;
    without_update_leases: "update coordination.k8s.io/leases" => nobody_leads;
}

#[test]
fn every_right_that_is_shipped_is_taken_away_by_a_test() -> Result<()> {
    let shipped: Vec<String> = rights::shipped()?.iter().map(ToString::to_string).collect();
    let mut taken_away = TAKEN_AWAY.to_vec();
    taken_away.sort_unstable();
    let mut expected = shipped;
    expected.sort_unstable();
    assert_eq!(taken_away, expected, "config/rbac and what is taken away here");
    Ok(())
}

fn shipped(right: &str) -> Result<Right> {
    let found = rights::shipped()?.into_iter().find(|shipped| shipped.to_string() == right);
    found.with_context(|| format!("config/rbac does not give: {right}"))
}

async fn take_away<C, F>(right: &Right, case: C) -> Result<()>
where
    C: FnOnce(World, Right) -> F,
    F: Future<Output = Result<()>>,
{
    let name = format!("no-{}-{}", right.verb, right.resource.replace('/', "-"));
    case(World::new(&name).await?, right.clone()).await
}

// Tests of the permissions for watches.

async fn it_sees_nothing_and_decides_nothing(world: World, right: Right) -> Result<()> {
    unseen(world, right, false).await
}

async fn it_sees_nothing_and_decides_nothing_and_the_status_says_so(world: World, right: Right) -> Result<()> {
    unseen(world, right, true).await
}

async fn unseen(world: World, right: Right, told_in_the_status: bool) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    world.wfe("patient").image(&bundle).create().await?;
    let mut operator = world.operator().spawn().await?;
    let said = await_unready(&operator, &right.resource).await;
    assert!(said.contains(&right.missing()) && said.contains("give the operator the"), "{said}");
    // The operator keeps trying, and reports the missing permission from the second try on.
    await_warning(&operator, &right).await?;
    assert_eq!(operator.get("health", "/healthz").await?.0, 200, "it lives, and waits");
    if told_in_the_status {
        let waits = |wfe: &Value| condition(wfe, "Waiting") == "True CacheNotSynced";
        let wfe = world.await_wfe("patient", "says that it waits", waits).await?;
        check_waiting(&wfe, &right);
    }
    let before = Utc::now();
    world.give_back(&right).await?;
    operator.await_ready().await?;
    world.await_phase("patient", "Completed").await?;
    for write in world.audit().await?.iter().filter(|entry| entry.user == world.operator_user() && entry.is_write()) {
        let blind = DateTime::parse_from_rfc3339(&write.received_at)? < before;
        assert!(!blind || write.request["status"]["phase"] == "Pending", "{write:#?}");
    }
    world.close().await
}

// Tests of the permissions for the configuration.

async fn it_does_not_start(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let mut operator = world.operator().spawn().await?;
    assert!(!operator.wait().await?.success(), "it would run by other values than somebody has set");
    let log = std::fs::read_to_string(operator.log_path())?;
    let last = log.lines().last().unwrap_or_default();
    assert!(last.starts_with("wfe-operator: cannot read ConfigMap "), "{last}");
    assert!(last.contains(&right.missing()) && last.contains("give the operator this right"), "{last}");
    world.give_back(&right).await?;
    let _operator = world.operator().start().await?;
    another_target_works(&world, &bundle).await?;
    world.close().await
}

async fn what_was_read_at_the_start_stays_in_force(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let first = configuration::set(&world, &[("cooldown-period", "0")]).await?;
    let operator = world.operator().start().await?;
    configuration::await_in_force(&operator, &first).await?;
    await_warning(&operator, &right).await?;
    another_target_works(&world, &bundle).await?;
    let second = configuration::set(&world, &[("cooldown-period", "1m")]).await?;
    let (_, page) = operator.get("health", "/configz").await?;
    assert!(page.contains("it cannot be followed") && page.contains(&right.missing()), "{page}");
    assert!(page.contains(&format!("version {first} is in force")), "{page}");
    world.give_back(&right).await?;
    configuration::await_in_force(&operator, &second).await?;
    world.close().await
}

// Tests of the permissions for live reads.

async fn the_run_of_a_deleted_execution_goes_on(world: World, right: Right) -> Result<()> {
    let (held, bundle) = (held(&world).await?, short(&world).await?);
    let first = world.operator().start().await?;
    world.wfe("deleted").image(&held).create().await?;
    world.await_running_step().await?;
    // The execution is deleted while no operator watches, so only a live read can show its deletion.
    first.kill().await?;
    world.delete_wfe("deleted").await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    await_warning(&operator, &right).await?;
    another_target_works(&world, &bundle).await?;
    let of_deleted = |run: &Value| run["metadata"]["labels"]["kubernaut.ai/workflow-execution"] == "deleted";
    let runs = world.runs().await?;
    assert!(runs.iter().any(|run| of_deleted(run) && run["spec"]["status"].is_null()), "not cancelled: {runs:#?}");
    world.give_back(&right).await?;
    world.await_run("is cancelled", |run| of_deleted(run) && run["spec"]["status"] == "Cancelled").await?;
    world.close().await
}

async fn a_rival_waits_for_the_live_read_of_the_holder(world: World, right: Right) -> Result<()> {
    let (held, bundle) = (held(&world).await?, short(&world).await?);
    let operator = world.operator().start().await?;
    world.wfe("holder").image(&held).create().await?;
    world.await_running_step().await?;
    world.take_away(&right).await?;
    world.wfe("rival").image(&held).create().await?;
    await_warning(&operator, &right).await?;
    another_target_works(&world, &bundle).await?;
    let waits = |wfe: &Value| condition(wfe, "Waiting") == "True OperatorForbidden";
    check_waiting(&world.await_wfe("rival", "says that it waits", waits).await?, &right);
    world.give_back(&right).await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert_eq!(rival["status"]["skipDetails"]["conflictingWorkflow"]["name"], "holder", "{rival:#}");
    world.close().await
}

async fn a_rival_waits_for_the_live_read_of_what_is_left(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    leave(&world, &right.resource).await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    world.wfe("rival").image(&bundle).create().await?;
    await_warning(&operator, &right).await?;
    another_target_works(&world, &bundle).await?;
    assert_eq!(world.get_wfe("rival").await?["status"], unwritten(), "it is not skipped unread");
    world.give_back(&right).await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert!(text(&rival["status"]["skipDetails"]["message"]).contains("still stopping"), "{rival:#}");
    world.close().await
}

/// Creates an unfinished object of a run on the usual target. The execution of the run no longer exists.
async fn leave(world: &World, resource: &str) -> Result<()> {
    let (api_version, kind, spec) = match resource {
        // The task waits, because it requests a resolver that does not run.
        "taskruns" => ("tekton.dev/v1", "TaskRun", json!({"taskRef": {"resolver": "nobody"}})),
        "customruns" => ("tekton.dev/v1beta1", "CustomRun", json!({"customRef": {"apiVersion": "x/v1", "kind": "X"}})),
        // The pod is never scheduled to a node.
        "pods" => {
            let container = json!({"name": "step", "image": "none"});
            ("v1", "Pod", json!({"nodeSelector": {"none": "none"}, "containers": [container]}))
        }
        other => anyhow::bail!("nothing of {other} can be left"),
    };
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": "left",
            "labels": {"kubernaut.ai/workflow-execution": "gone"},
            "annotations": {
                "kubernaut.ai/target-resource": "payment/deployment/payment-api",
                "kubernaut.ai/workflow-execution": format!("{}/gone", world.namespace()),
                "kubernaut.ai/workflow-execution-uid": "gone",
            },
        },
        "spec": spec,
    }))?;
    let api = world.api(&manifests::resource(api_version, kind), &world.execution_namespace());
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

// Tests of the permissions for writes.

async fn what_is_over_stays_and_others_go_on(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().arg("--cooldown-period", "0").start().await?;
    for name in ["first", "second"] {
        world.wfe(name).image(&bundle).patch(|wfe| wfe["spec"]["ttlSecondsAfterFinished"] = json!(0)).create().await?;
        world.await_phase(name, "Completed").await?;
        await_later_second(&world, name).await?;
    }
    await_warning(&operator, &right).await?;
    world.wfe("third").image(&bundle).create().await?;
    world.await_phase("third", "Completed").await?;
    world.give_back(&right).await?;
    world.await_wfes("what is over gone", |all| all.keys().eq(["third"])).await?;
    world.close().await
}

async fn nothing_new_starts_and_what_runs_ends(world: World, right: Right) -> Result<()> {
    let (held, bundle) = (held(&world).await?, short(&world).await?);
    let mut operator = world.operator().arg("--start-deadline", "12s").start().await?;
    world.wfe("running").target("node/running").image(&held).create().await?;
    world.await_running_step().await?;
    world.take_away(&right).await?;
    // If these executions failed, they would exhaust the target.
    let waiting: Vec<String> = (0..6).map(|n| format!("waiting-{n}")).collect();
    for name in &waiting {
        world.wfe(name).workflow(name).image(&bundle).create().await?;
    }
    let lacks_right = |wfe: &Value| condition(wfe, "Waiting") == "True OperatorForbidden";
    let is_told = |all: &BTreeMap<String, Value>| all.values().any(lacks_right);
    check_waiting(
        world.await_wfes("says that it waits", is_told).await?.values().find(|it| lacks_right(it)).expect("one"),
        &right,
    );
    operator.await_value("workflowexecution_operator_trouble_targets", 1.0).await?;
    // The eighth try is due 12.7 s after the first, which is after the start deadline. No execution may fail because
    // the operator lacks a permission.
    let refused = [("verb", "create"), ("resource", "pipelineruns"), ("code", "403")];
    let is_over = |metrics: &Metrics| metrics.value("workflowexecution_api_requests_total", &refused) >= 8.0;
    operator.await_metrics("a try after the start deadline", is_over).await?;
    let says_it = |said: &str| said.contains("the operator itself lacks a right") && said.contains(&right.missing());
    leader::await_standing(&operator, |status, said| status == 503 && says_it(said)).await?;
    world.set_outcome("", "ok").await?;
    world.await_phase("running", "Completed").await?;
    let failed = operator.metrics().await?.value("workflowexecution_total", &[("outcome", "Failed")]);
    assert!(failed.abs() < f64::EPSILON, "{failed} failed");
    world.give_back(&right).await?;
    let ended = world.await_wfes("all ended", |all| waiting.iter().all(|name| is_terminal(&all[name]))).await?;
    for name in &waiting {
        let status = &ended[name]["status"];
        assert!(
            status["phase"] != "Failed" && status["consecutiveFailures"].as_u64().unwrap_or_default() == 0,
            "{status:#}"
        );
    }
    assert!(waiting.iter().any(|name| ended[name]["status"]["phase"] == "Completed"), "{ended:#?}");
    operator.await_ready().await?;
    operator.await_value("workflowexecution_operator_trouble_targets", 0.0).await?;
    world.close().await
}

async fn schedules_wait_and_executions_go_on(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    // The operator is ready, although it cannot watch schedules.
    let _operator = world.operator().start().await?;
    schedules::create(&world, "unseen", "node/unseen", &bundle, &json!({"interval": "1h"})).await?;
    another_target_works(&world, &bundle).await?;
    let unseen = schedules::await_schedule(&world, "unseen", "is there", |_| true).await?;
    assert_eq!(unseen["status"], Value::Null, "{unseen:#}");
    world.give_back(&right).await?;
    schedules::await_schedule(&world, "unseen", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    world.close().await
}

async fn no_child_is_made(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    let operator = world.operator().start().await?;
    schedules::create(&world, "childless", "node/childless", &bundle, &json!({"interval": "1h"})).await?;
    schedules::await_schedule(&world, "childless", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    world.take_away(&right).await?;
    schedules::hurry(&world, "childless").await?;
    await_warning(&operator, &right).await?;
    another_target_works(&world, &bundle).await?;
    schedules::await_children(&world, "childless", 0).await?;
    world.give_back(&right).await?;
    let done = schedules::await_outcome(&world, "childless", "Completed").await?;
    assert_eq!(done["status"]["failureCount"], 0, "what the operator lacks counts for nobody: {done:#}");
    schedules::await_children(&world, "childless", 1).await?;
    world.close().await
}

/// No policy of this world checks this permission. `schedules::policies` tests the policies that do.
async fn another_target_goes_on(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let _operator = world.operator().start().await?;
    another_target_works(&world, &bundle).await?;
    world.close().await
}

/// The schemas that the API server publishes contain the same information as the CRD.
async fn published_schemas_are_read_instead(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    another_target_works(&world, &bundle).await?;
    let asked = [("resource", "openapi"), ("code", "200")];
    let has_asked = |metrics: &Metrics| metrics.value("workflowexecution_api_requests_total", &asked) >= 1.0;
    operator.await_metrics("a read of the published schemas", has_asked).await?;
    world.close().await
}

async fn nothing_is_planned(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    schedules::create(&world, "unplanned", "node/unplanned", &bundle, &json!({"interval": "1h"})).await?;
    await_warning(&operator, &right).await?;
    another_target_works(&world, &bundle).await?;
    world.give_back(&right).await?;
    schedules::await_schedule(&world, "unplanned", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    world.close().await
}

async fn a_committed_run_is_not_released(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    world.wfe("held-up").image(&bundle).create().await?;
    world.await_phase("held-up", "Running").await?;
    await_warning(&operator, &right).await?;
    world.wfe("rival").image(&bundle).create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert_eq!(rival["status"]["skipDetails"]["conflictingWorkflow"]["name"], "held-up", "{rival:#}");
    let runs = world.runs().await?;
    assert!(matches!(&runs[..], [run] if run["spec"]["status"] == "PipelineRunPending"), "{runs:#?}");
    world.give_back(&right).await?;
    world.await_phase("held-up", "Completed").await?;
    world.close().await
}

async fn what_has_expired_stays_and_its_target_is_free(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().arg("--pipelinerun-retention", "1s").start().await?;
    world.wfe("first").image(&bundle).create().await?;
    world.await_phase("first", "Completed").await?;
    // After so many failed tries, the next one is far away. An execution that waited for it would be noticeably late.
    let often = |line: &Value| lacks(line, &right) && text(&line["fields"]["retry_in"]) == "6.4s";
    operator.await_line(&format!("says that it lacks {right}, again and again"), often).await?;
    world.wfe("second").workflow("other").image(&bundle).create().await?;
    let soon = Duration::from_secs(20);
    world.await_wfe_within(soon, "second", "has completed", |wfe| wfe["status"]["phase"] == "Completed").await?;
    assert_eq!(world.runs().await?.len(), 2, "both are left");
    world.give_back(&right).await?;
    world.await_runs("none", std::collections::BTreeMap::is_empty).await?;
    world.close().await
}

async fn a_pending_run_is_not_committed(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    world.wfe("patient").image(&bundle).create().await?;
    await_warning(&operator, &right).await?;
    assert_eq!(world.get_wfe("patient").await?["status"], unwritten());
    let runs = world.runs().await?;
    assert!(matches!(&runs[..], [run] if run["spec"]["status"] == "PipelineRunPending"), "{runs:#?}");
    let says_it = |said: &str| said.contains("the operator itself lacks a right") && said.contains(&right.missing());
    leader::await_standing(&operator, |status, said| status == 503 && says_it(said)).await?;
    world.give_back(&right).await?;
    let wfe = world.await_phase("patient", "Completed").await?;
    assert_eq!(wfe["status"]["runSequence"], 1);
    world.close().await
}

async fn all_goes_on_untold(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = world.operator().start().await?;
    world.wfe("untold").image(&bundle).create().await?;
    world.await_phase("untold", "Completed").await?;
    await_warning(&operator, &right).await?;
    operator.await_value("workflowexecution_events_lost_total", 2.0).await?;
    let warnings = operator.log().await.iter().filter(|line| lacks(line, &right)).count();
    assert_eq!(warnings, 1, "said once, not for each event");
    world.give_back(&right).await?;
    world.wfe("told").workflow("other").image(&bundle).create().await?;
    world.await_event("told", "WorkflowCompleted").await?;
    world.close().await
}

// Tests of the permissions for the leader election.

async fn nobody_leads(world: World, right: Right) -> Result<()> {
    let bundle = short(&world).await?;
    world.take_away(&right).await?;
    let operator = leader::quick(world.operator().replica("only")).spawn().await?;
    await_warning(&operator, &right).await?;
    // The operator may have led for a moment if it can create the Lease, but cannot update it.
    let says_it = |said: &str| said.contains("cannot use Lease wfe-operator") && said.contains(&right.missing());
    leader::await_standing(&operator, |status, said| status == 503 && says_it(said)).await?;
    world.wfe("patient").image(&bundle).create().await?;
    let deliveries = "workflowexecution_watch_deliveries_total";
    let has_seen = |metrics: &Metrics| metrics.value(deliveries, &[("resource", "workflowexecutions")]) >= 1.0;
    operator.await_metrics("the execution seen", has_seen).await?;
    assert_eq!(world.get_wfe("patient").await?["status"], unwritten());
    assert_eq!(world.runs().await?.len(), 0);
    world.give_back(&right).await?;
    world.await_phase("patient", "Completed").await?;
    leader::await_standing(&operator, |status, said| status == 200 && said.contains("leading")).await?;
    world.close().await
}

// Helpers that several tests share.

/// Waits until the log warns of the missing permission. The line must also say what to do.
async fn await_warning(operator: &Operator, right: &Right) -> Result<()> {
    operator.await_line(&format!("says that it lacks {right}"), |line| lacks(line, right)).await?;
    Ok(())
}

fn lacks(line: &Value, right: &Right) -> bool {
    let said = line["fields"].to_string().replace("\\\"", "\"");
    line["level"] == "WARN" && said.contains(&right.missing()) && said.contains("give the operator")
}

/// Checks that the condition `Waiting` names the missing permission, and says what to do.
fn check_waiting(wfe: &Value, right: &Right) {
    let conditions = wfe["status"]["conditions"].as_array().into_iter().flatten();
    let said = conditions.filter(|condition| condition["type"] == "Waiting").map(|it| text(&it["message"]));
    let said: String = said.collect();
    assert!(said.contains(&right.missing()) && said.contains("give the operator"), "{wfe:#}");
}

/// Runs an execution on another target until it has completed.
async fn another_target_works(world: &World, bundle: &str) -> Result<()> {
    world.wfe("elsewhere").target("node/elsewhere").image(bundle).create().await?;
    world.await_phase("elsewhere", "Completed").await?;
    Ok(())
}

async fn short(world: &World) -> Result<String> {
    world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await
}

async fn held(world: &World) -> Result<String> {
    world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await
}
