//! How many requests to the API server a WorkflowExecution costs, according to the audit log.

use std::collections::BTreeMap;

use anyhow::Result;
use wfe_testkit::{AuditEntry, Outcome, Pipeline, World};

use crate::expect::text;

/// Returns the requests that the operator sent for executions. Reads of CRDs are left out, because they belong to the
/// start of a watch. So are lists of schedules: an operator may be ready before it has listed them.
fn sent_by_operator<'a>(world: &World, audit: &'a [AuditEntry]) -> Vec<&'a AuditEntry> {
    let is_of_start = |entry: &AuditEntry| {
        entry.resource == "customresourcedefinitions"
            || (&*entry.verb, &*entry.resource) == ("list", "workflowschedules")
    };
    let is_counted = |entry: &&AuditEntry| entry.user == world.operator_user() && !is_of_start(entry);
    audit.iter().filter(is_counted).collect()
}

#[tokio::test]
async fn a_short_success_costs_four_writes_two_events_and_no_list() -> Result<()> {
    let world = World::new("budget").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let operator = world.operator().start().await?;
    let ready_at = chrono::Utc::now().to_rfc3339();
    world.wfe("cheap").image(&bundle).create().await?;
    let wfe = world.await_phase("cheap", "Completed").await?;
    world.await_event("cheap", "WorkflowCompleted").await?;
    assert!(operator.terminate().await?.success());

    let audit = world.audit().await?;
    let ours = sent_by_operator(&world, &audit);
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for entry in &ours {
        assert!((200..300).contains(&entry.code), "a request that failed: {entry:?}");
        let resource = format!("{} {}/{}", entry.verb, entry.resource, entry.subresource);
        *requests.entry(resource).or_default() += 1;
    }
    let count = |what: &str| requests.get(what).copied().unwrap_or_default();
    assert_eq!(count("create pipelineruns/"), 1, "{requests:?}");
    assert_eq!(count("patch workflowexecutions/status"), 2, "commit and terminal: {requests:?}");
    assert_eq!(count("patch pipelineruns/"), 1, "release: {requests:?}");
    assert_eq!(count("create events/"), 2, "{requests:?}");
    let writes = ours.iter().filter(|entry| entry.is_write()).count();
    assert_eq!(writes, 4 + 2, "{requests:?} for {}", text(&wfe["status"]["duration"]));
    let gets = ours.iter().filter(|entry| entry.verb == "get" && entry.received_at > ready_at).count();
    assert!(gets <= 1, "{requests:?}");
    let lists: Vec<_> = ours.iter().filter(|entry| entry.verb == "list" && entry.received_at > ready_at).collect();
    assert!(lists.is_empty(), "a list after start-up: {lists:?}");
    world.close().await
}

#[tokio::test]
async fn a_short_failure_costs_one_look_more() -> Result<()> {
    let world = World::new("budget-failure").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::ImagePull)).await?;
    let operator = world.operator().start().await?;
    let ready_at = chrono::Utc::now().to_rfc3339();
    world.wfe("broken").image(&bundle).create().await?;
    let wfe = world.await_phase("broken", "Failed").await?;
    world.await_event("broken", "WorkflowFailed").await?;
    assert!(operator.terminate().await?.success());

    let audit = world.audit().await?;
    let ours = sent_by_operator(&world, &audit).into_iter().filter(|entry| entry.received_at > ready_at);
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for entry in ours.filter(|entry| matches!(&*entry.verb, "get" | "list" | "create" | "patch")) {
        *requests.entry(format!("{} {}/{}", entry.verb, entry.resource, entry.subresource)).or_default() += 1;
    }
    let expected = [
        ("create events/", 2),
        ("create pipelineruns/", 1),
        ("get pipelineruns/", 1),
        ("list customruns/", 1),
        ("list pipelineruns/", 1),
        ("list pods/", 1),
        ("list taskruns/", 1),
        ("patch pipelineruns/", 1),
        ("patch workflowexecutions/status", 2),
    ];
    let expected = BTreeMap::from(expected.map(|(request, count)| (request.to_owned(), count)));
    assert_eq!(requests, expected, "{:#}", wfe["status"]);
    world.close().await
}
