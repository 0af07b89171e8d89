//! The roles for people grant exactly the permissions that the tool needs.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{World, manifests, repository, rights_of_people};

use super::{Caller, ROLES, guard_clearances, has, said};
use crate::history::past::{Past, past};

const EXPLAIN: [&str; 2] = ["explain", "node/n"];
const CLEAR: [&str; 5] = ["clear", "node/n", "--yes", "--reason", "looked"];

#[tokio::test]
async fn without_any_of_its_rights_it_says_which_one_is_lacking() -> Result<()> {
    let world = World::new("people").await?;
    past(&world, "broken", "node/n", "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    guard_clearances(&world, "broken").await?;
    for (nth, right) in rights_of_people("wfe-explain")?.iter().enumerate() {
        let kubeconfig = world.person(&format!("explainer-{nth}"), &["wfe-explain"], Some(right)).await?;
        let explainer = Caller { world: &world, kubeconfig };
        if right.resource == "workflowschedules" {
            // Executions can be explained without the permission to read schedules.
            has(&explainer.says(1, &EXPLAIN).await?, &["would be skipped, PreviousExecutionFailed"]);
            let words = ["schedule", "explain", "nightly"];
            has(&explainer.says(2, &words).await?, &["resource \"workflowschedules\"", "wfe-explain"]);
        } else if right.group == "admissionregistration.k8s.io" {
            let said = explainer.says(1, &EXPLAIN).await?;
            has(&said, &["would be skipped, PreviousExecutionFailed", "as you may not get all of them", "wfe-explain"]);
        } else if right.verb == "get" {
            // Without this permission, the tool must assume the settings of the operator, and says so.
            let said = explainer.says(1, &EXPLAIN).await?;
            let role = format!("the Role wfe-explain of {} gives the right", world.system_namespace());
            has(&said, &["would be skipped, PreviousExecutionFailed", "as you may not get the", &role]);
        } else {
            has(&explainer.says(2, &EXPLAIN).await?, &[&right.missing(), "wfe-explain"]);
        }
    }
    let explainer = Caller::new(&world, "explainer", &["wfe-explain"]).await?;
    has(&explainer.says(1, &EXPLAIN).await?, &["would be skipped, PreviousExecutionFailed"]);
    has(&explainer.says(2, &CLEAR).await?, &["cannot patch resource \"workflowexecutions\"", "wfe-clear"]);

    let rights = rights_of_people("wfe-clear")?;
    let lacking = |right: &str| {
        let found = rights.iter().find(|one| one.to_string() == right);
        found.unwrap_or_else(|| panic!("the role wfe-clear does not give: {right}"))
    };
    let only = lacking("update kubernaut.ai/workflowexecutions/clearance");
    let writer = Caller { world: &world, kubeconfig: world.person("writer", &ROLES, Some(only)).await? };
    let said = writer.says(2, &CLEAR).await?;
    let right = "ask for the right to update workflowexecutions/clearance";
    has(&said, &["may not clear this WorkflowExecution", right, "nothing was written", "wfe-clear"]);
    assert_eq!(world.get_wfe("broken").await?["spec"]["clearance"], Value::Null);

    // Acting as another user requires the permission to impersonate. No option sets another name.
    let jo = Caller::new(&world, "jo", &ROLES).await?;
    let as_another = [&CLEAR[..], &["--as", "ann@example.com"]].concat();
    has(&jo.says(2, &as_another).await?, &["cannot impersonate", "leave --as out"]);
    has(&jo.says(2, &[&CLEAR[..], &["--cleared-by", "ann"]].concat()).await?, &["unexpected argument"]);
    assert_eq!(world.get_wfe("broken").await?["spec"]["clearance"], Value::Null);

    let seen = lacking("get kubernaut.ai/workflowexecutions");
    let blind = Caller { world: &world, kubeconfig: world.person("blind", &ROLES, Some(seen)).await? };
    let missing = seen.missing();
    has(&blind.says(0, &CLEAR).await?, &["Cleared", "stands; what it has done cannot be seen", &missing]);
    let clearance = json!({"reason": "looked", "clearedBy": world.user("blind")});
    assert_eq!(world.get_wfe("broken").await?["spec"]["clearance"], clearance);
    let on_executions = rights.iter().filter(|right| right.resource.starts_with("workflowexecutions"));
    assert_eq!(on_executions.count(), 4, "each is lacked above, but that to recover, which is for another command");
    world.close().await
}

/// A developer who has `wfe-edit` in their own namespace, and no permission elsewhere, can read the results of their
/// executions.
#[tokio::test]
async fn a_decided_execution_is_explained_to_whoever_may_read_it() -> Result<()> {
    let world = World::new("own").await?;
    past(&world, "broken", "node/n", "w1", 1, TimeDelta::hours(1), Past::Ran).await?;
    past(&world, "done", "node/m", "w1", 2, TimeDelta::hours(1), Past::Completed).await?;
    world.wfe("waits").target("node/n").create().await?;
    let developer = Caller { world: &world, kubeconfig: developer(&world).await? };
    // The operator watches all namespaces, or only the developer's. The developer may not read the runs in either case.
    for watched in [false, true] {
        let explains = async |code: i32, words: &[&str]| {
            let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
            let places = developer.places();
            let places = if watched { &places[..] } else { &places[1..] };
            command.arg("explain").args(words).args(places).env("KUBECONFIG", &developer.kubeconfig);
            said(command, code).await
        };
        let broken = explains(1, &["broken"]).await?;
        has(
            &broken,
            &["/broken on node/n: is Failed", "  why          in the past", "  not seen     other executions"],
        );
        has(&broken, &["cannot list", "ask for the", "wfe-explain"]);
        has(&explains(0, &["done"]).await?, &["/done on node/m: is Completed", "  not seen     "]);
        has(
            &explains(1, &["broken", "-o", "json"]).await?,
            &["\"verdict\": \"Decided\"", "\"notSeen\": \"cannot list"],
        );
        has(&explains(2, &["waits"]).await?, &["/waits is not decided yet", "cannot list", "wfe-explain"]);
        has(&explains(2, &["unheard-of"]).await?, &["there is no WorkflowExecution unheard-of in the namespace"]);
        has(&explains(2, &["node/n"]).await?, &["cannot list", "wfe-explain"]);
    }
    world.close().await
}

/// Grants an account the rules of `wfe-edit` in the namespace of a world, and returns the account's kubeconfig.
async fn developer(world: &World) -> Result<PathBuf> {
    let shipped = manifests::read(&repository().join("config/rbac/people/edit_cluster_role.yaml"))?;
    let (group, name) = ("rbac.authorization.k8s.io", json!({"name": "developer"}));
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name}),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": name, "rules": shipped[0]["rules"],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": name,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "developer"},
            "subjects": [{"kind": "ServiceAccount", "name": "developer"}],
        }),
    ];
    let dir = world.control_plane().dir().join("worlds").join(world.namespace());
    fs::create_dir_all(&dir)?;
    let file = dir.join("developer.yaml");
    fs::write(&file, objects.map(|object| object.to_string()).join("\n---\n"))?;
    world.grant(&file).await
}
