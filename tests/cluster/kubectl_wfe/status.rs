//! The first answers of the tool: what needs a person, what blocks a target, and what the operator itself has recorded.

use anyhow::Result;
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use wfe_testkit::{AuditEntry, World};

use super::{Caller, has};
use crate::history::past::{self, Past, past};

const HOUR: TimeDelta = TimeDelta::hours(1);

#[tokio::test]
async fn the_overview_names_the_target_that_needs_a_person_and_the_command() -> Result<()> {
    let world = World::new("status").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    has(&jo.says(0, &["status"]).await?, &["ok  operator   somebody leads", "nothing needs a person"]);
    past(&world, "broken", "node/n", "w1", 1, HOUR, Past::Ran).await?;
    let overview = jo.says(1, &["status"]).await?;
    let broken = format!("{}/broken", world.namespace());
    has(&overview, &["NEEDS A PERSON (1)\n  node/n  1h", &broken, "next       kubectl wfe status node/n"]);
    let card = jo.says(1, &["status", "node/n"]).await?;
    has(&card, &["node/n is BLOCKED for 1h", "nothing runs here until a person clears it", &broken]);
    has(&card, &["kubectl wfe logs broken -n", "kubectl wfe clear node/n --reason '...'"]);
    has(&jo.says(1, &["status", "broken"]).await?, &[&format!("{broken} failed on node/n"), "half way"]);
    has(&jo.says(0, &["status", "node/free"]).await?, &["a new execution on node/free: would run now"]);

    let json: Value = serde_json::from_str(&jo.says(1, &["status", "-o", "json"]).await?)?;
    assert_eq!((&json["kind"], &json["needsPerson"][0]["subject"]), (&json!("Status"), &json!("node/n")), "{json}");
    world.close().await
}

#[tokio::test]
async fn what_an_operator_has_recorded_is_never_contradicted() -> Result<()> {
    let world = World::new("recorded").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    world.wfe("forbidden").target("node/n").create().await?;
    let condition = json!({
        "type": "Waiting", "status": "True", "reason": "OperatorForbidden", "message": "give the operator this right",
        "lastTransitionTime": (Utc::now() - HOUR).to_rfc3339_opts(SecondsFormat::Secs, true),
    });
    past::write(&world, "forbidden", &[json!({"phase": "Pending", "conditions": [condition]})]).await?;
    let said = jo.says(1, &["explain", "forbidden"]).await?;
    has(&said, &["waits for 1h", "OperatorForbidden: give the operator this right\n"]);
    assert!(!said.contains("would run now"), "{said}");
    let overview = jo.says(1, &["status"]).await?;
    has(&overview, &["WAITING (1)\n  node/n", "forbidden: OperatorForbidden"]);
    let target = jo.says(1, &["explain", "node/n"]).await?;
    has(&target, &["  stuck too    ", "waits for 1h", "OperatorForbidden"]);
    world.close().await
}

#[tokio::test]
async fn a_kind_that_the_cluster_does_not_serve_is_told_first() -> Result<()> {
    let world = World::new("misspelt").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    let said = jo.says(1, &["explain", "payment/deployement/cart"]).await?;
    let first =
        "payment/deployement/cart: the cluster serves no kind deployement; did you mean payment/deployment/cart?\n";
    assert!(said.starts_with(first), "{said}");
    // A custom kind of the cluster, in both spellings.
    for kind in ["pipelinerun", "pipelineruns"] {
        has(&jo.says(0, &["explain", &format!("payment/{kind}/cart")]).await?, &["would run now"]);
    }
    world.close().await
}

#[tokio::test]
async fn a_question_about_one_target_or_execution_reads_no_executions_of_others() -> Result<()> {
    let world = World::new("alone").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    for (name, target) in [("broken", "node/n"), ("elsewhere", "node/m")] {
        world.wfe(name).target(target).workflow("w1").create().await?;
        past::write(&world, name, &[json!({"phase": "Pending", "target": target})]).await?;
        past::ended(&world, name, 1, HOUR, Past::Ran).await?;
    }
    world.wfe("undecided").target("node/n").workflow("w1").create().await?;
    let blocked = format!("{}/broken", world.namespace());
    for (code, words) in [
        (1, &["explain", "node/n"][..]),
        (1, &["explain", "undecided"]),
        (1, &["explain", "broken"]),
        (1, &["status", "node/n"]),
        (0, &["history", "node/n"]),
    ] {
        has(&jo.says(code, words).await?, &[&blocked]);
    }
    let lists = |audit: &[AuditEntry]| -> Vec<String> {
        let executions = audit.iter().filter(|it| (&*it.verb, &*it.resource) == ("list", "workflowexecutions"));
        executions.filter(|it| it.user.ends_with(":jo")).map(|it| it.uri.clone()).collect()
    };
    let asked = lists(&world.audit().await?);
    let selections = ["status.target%3D&", "status.target%3Dnode%2Fn&", "metadata.name%3D"];
    let of = |selection: &str| asked.iter().filter(|uri| uri.contains(&format!("fieldSelector={selection}"))).count();
    assert_eq!(selections.map(of), [5, 5, 2], "{asked:#?}");
    assert_eq!(asked.len(), 12, "{asked:#?}");
    world.close().await
}
