//! The commands about a single execution: its logs, its cancellation, waiting for its end, and where a pod comes from.

use std::time::Duration;

use anyhow::Result;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::proxy::{Passed, Request, Verb};
use wfe_testkit::{Fault, Outcome, Pipeline, Proxy, Refusal, World, look, wfe};

use super::{Caller, guard, has, outputs, pause, said};
use crate::cancelled::cancel;
use crate::expect::{condition, text};

const WATCHED_WITHIN: Duration = Duration::from_mins(1);
/// The name of a person who may read everything, including the logs of pods.
const READER: &str = "reader";

/// Runs a command that does not depend on the operator.
async fn says(caller: &Caller<'_>, code: i32, words: &[&str]) -> Result<String> {
    let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
    command.args(words).env("KUBECONFIG", &caller.kubeconfig);
    said(command, code).await
}

/// Grants a person the permission to read the logs of pods in the execution namespace.
async fn may_read_logs(world: &World, person: &str) -> Result<()> {
    let metadata = json!({"name": "reads-logs", "namespace": world.execution_namespace()});
    let group = "rbac.authorization.k8s.io";
    world
        .apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}],
        }))
        .await?;
    world
        .apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "reads-logs"},
            "subjects": [{"kind": "ServiceAccount", "name": person, "namespace": world.namespace()}],
        }))
        .await
}

/// Returns the log of a container in place of the API server's answer. No kubelet exists that could provide it.
fn log_of(request: &Request) -> Fault {
    if !request.is("get pods/log") {
        return Fault::Pass;
    }
    let log = if request.name.contains("-restart") {
        "evicting\nerror: PDB \u{1b}[2J\n".to_owned()
    } else {
        "cordoned\n".repeat(212)
    };
    Fault::Refuse(Refusal { plain: true, ..Refusal::new(200, "", &log) })
}

#[tokio::test]
async fn the_log_of_the_failed_step_is_shown_and_a_pod_is_traced() -> Result<()> {
    let world = World::new("plugin-logs").await?;
    let pipeline = Pipeline::new().task("drain", Outcome::Ok).task("restart", Outcome::Exit(3));
    let fails = world.push_pipeline("half-way", &pipeline).await?;
    let _operator = world.operator().start().await?;
    world.wfe("broken").image(&fails).create().await?;
    let broken = world.await_phase("broken", "Failed").await?;
    let run = text(&broken["status"]["pipelineRunRef"]["name"]).to_owned();
    let exec = world.execution_namespace();

    let blind = Caller::new(&world, "blind", &["wfe-explain"]).await?;
    let lacks = ["cannot get resource \"pods/log\"", &format!("ask for the Role wfe-oncall of {exec}")];
    has(&blind.says(2, &["logs", "broken"]).await?, &lacks);

    let direct = Caller::new(&world, READER, &["wfe-explain"]).await?;
    may_read_logs(&world, READER).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    proxy.on(log_of);
    let reader = Caller { world: &world, kubeconfig: world.person_at(READER, &proxy.url()).await? };
    let (stdout, _) = outputs(reader.command(&["logs", "broken"])?, &[0]).await?;
    assert_eq!(
        stdout,
        "[restart : run] evicting\n[restart : run] error: PDB \\u{1b}[2J\n[restart : run] exit code 3\n\
         left out, -a shows them:\n  [drain : run] ok, 212 lines\n"
    );
    let all = reader.says(0, &["logs", "broken", "--all", "--tail", "2"]).await?;
    has(&all, &["[drain : run] cordoned", "(these are the last 2 lines; --tail shows more)", "[drain : run] ok"]);
    has(&all, &["[restart : run] exit code 3"]);
    let (stdout, _) = outputs(reader.command(&["logs", "broken", "-o", "json"])?, &[0]).await?;
    let answer: Value = serde_json::from_str(&stdout)?;
    assert_eq!((&answer["kind"], &answer["end"]["outcome"]), (&json!("Logs"), &json!("FailedHalfWay")), "{answer:#}");
    assert_eq!(answer["steps"][0]["exitCode"], 3, "{answer:#}");
    // The execution has ended, so there is nothing to follow.
    let followed = reader.says(0, &["logs", "broken", "--follow"]).await?;
    has(&followed, &["[drain : run] ok", "[restart : run] exit code 3", "Failed half way"]);
    has(&reader.says(2, &["logs", "broken", "--attempt", "2"]).await?, &["has no attempt 2 with a run"]);
    has(&reader.says(2, &["logs", "nobody"]).await?, &["there is no WorkflowExecution nobody in the namespace"]);

    let pod = format!("{run}-restart-pod");
    let places = ["--execution-namespace", &exec];
    let traced = says(&direct, 0, &[&["trace", &format!("pod/{pod}")], &places[..]].concat()).await?;
    has(
        &traced,
        &[
            &format!("Pod                   {exec}/{pod}  (Failed)"),
            &format!("of TaskRun            {exec}/{run}-restart  (task restart)"),
            &format!("of PipelineRun        {exec}/{run}  (on payment/deployment/payment-api)"),
            &format!(
                "of WorkflowExecution  {}/broken  (restart on payment/deployment/payment-api, Failed)",
                world.namespace()
            ),
            "created               by the program ",
        ],
    );
    has(&says(&direct, 0, &["trace", "wfe/broken"]).await?, &["WorkflowExecution     ", "/broken"]);
    has(&says(&direct, 2, &[&["trace", "pod/nothing"], &places[..]].concat()).await?, &["there is no Pod nothing"]);

    let pods = world.api(&look::pods(), &exec);
    for pod in pods.list(&kube::api::ListParams::default()).await? {
        pods.delete(&pod.metadata.name.unwrap_or_default(), &DeleteParams::default().grace_period(0)).await?;
    }
    let gone = direct.says(1, &["logs", "broken"]).await?;
    has(&gone, &["the pods of its run", "are gone", "where        task restart, step run", "exit code    3"]);
    has(&gone, &["logs         were to be kept until ", "another program has deleted them"]);
    world.close().await
}

#[tokio::test]
async fn a_cancellation_tells_beforehand_what_it_does() -> Result<()> {
    let world = World::new("plugin-cancel").await?;
    let waits = Pipeline::new().task("apply", Outcome::Waiting("ContainerCreating"));
    let waits = world.push_pipeline("waiting", &waits).await?;
    let holds = world.push_pipeline("hold", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    for (name, image) in [("waits", &waits), ("holds", &holds)] {
        world.wfe(name).target(&format!("node/{name}")).image(image).create().await?;
    }
    let refused = json!({"spec": {"cancellation": {"reason": "why", "requestedBy": "nobody"}}});
    guard(&world, "cancellation", &wfe::resource(), "holds", refused).await?;
    let _operator = world.operator().start().await?;
    world.await_phase("waits", "Running").await?;
    world.await_wfe("holds", "has started", |wfe| condition(wfe, "Started").starts_with("True")).await?;
    let words = |name| ["cancel", name, "--reason", "wrong cluster", "--yes"];

    let viewer = Caller::new(&world, "viewer", &["wfe-view"]).await?;
    has(&says(&viewer, 2, &words("holds")).await?, &["cannot patch resource", "nothing was written", "wfe-cancel"]);
    // The role wfe-cancel does not include the permission to list.
    let jo = Caller::new(&world, "jo", &["wfe-cancel"]).await?;
    let user = world.user("jo");
    let unasked = says(&jo, 2, &words("holds")[..4]).await?;
    has(&unasked, &["It BLOCKS node/holds until somebody clears it.", "there is no terminal to ask on"]);
    let held = world.get_wfe("holds").await?;
    assert_eq!(held["spec"]["cancellation"], Value::Null, "{held:#}");

    let said = says(&jo, 0, &words("waits")).await?;
    has(
        &said,
        &["no step of it is known to have run", &format!("waits as {user}"), "nothing of it ran, and node/waits"],
    );
    let said = says(&jo, 0, &words("holds")).await?;
    has(
        &said,
        &["steps of it have run", &format!("holds as {user}"), "half way. Look at node/holds, then: kubectl wfe"],
    );
    let held = world.get_wfe("holds").await?;
    assert_eq!(held["spec"]["cancellation"], json!({"reason": "wrong cluster", "requestedBy": user}), "{held:#}");
    has(&says(&jo, 0, &words("holds")).await?, &["Failed half way", "Cancelled", "there is nothing to cancel"]);

    pause(&world, "upgrade").await?;
    world.wfe("early").target("node/early").image(&holds).create().await?;
    let said = says(&jo, 0, &words("early")).await?;
    has(&said, &["is not decided yet", "ends it as Failed, without a run", "nothing of it ran, and node/early"]);
    world.close().await
}

#[tokio::test]
async fn the_exit_code_of_a_wait_is_the_outcome() -> Result<()> {
    let world = World::new("plugin-wait").await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let holds = world.push_pipeline("hold", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    for (name, image) in [("works", &works), ("fails", &fails), ("holds", &holds), ("early", &works), ("late", &works)]
    {
        world.wfe(name).target(&format!("node/{name}")).image(image).create().await?;
    }
    cancel(&world, "early").await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let direct = Caller::new(&world, "viewer", &["wfe-view"]).await?;
    let viewer = Caller { world: &world, kubeconfig: world.person_at("viewer", &proxy.url()).await? };

    // `wait` starts before anything is decided. Two of three watches expire at once, and one read fails.
    let mut watches = 0_u32;
    let mut reads = 0_u32;
    proxy.on(move |request| match request.verb {
        Verb::Watch => {
            watches += 1;
            if watches.is_multiple_of(3) { Fault::Pass } else { Fault::Expire }
        }
        Verb::List if request.resource == "workflowexecutions" => {
            reads += 1;
            if reads == 4 { Fault::Refuse(Refusal::unavailable()) } else { Fault::Pass }
        }
        _ => Fault::Pass,
    });
    let waits = async { says(&viewer, 0, &["watch", "works"]).await };
    let works_on = async {
        let is_watched = |all: &Vec<Passed>| all.iter().any(|passed| passed.request.verb == Verb::Watch);
        let ask = async || anyhow::Ok(proxy.requests());
        ask_until(WATCHED_WITHIN, "the execution is watched", ask, is_watched).await?;
        let operator = world.operator().start().await?;
        proxy.cut_all();
        anyhow::Ok(operator)
    };
    let (told, operator) = tokio::join!(waits, works_on);
    let _operator = operator?;
    let told = told?;
    has(&told, &["created   restart on node/works", "runs      PipelineRun ", "works on node/works: Completed after "]);

    // If two executions are from the same second, chance decides which one is first.
    world.await_phase("holds", "Running").await?;
    world.wfe("busy").target("node/holds").image(&works).create().await?;
    for (name, code, expected) in [
        ("works", 0, "Completed"),
        ("early", 3, "Failed, and nothing of it ran: Cancelled: "),
        ("fails", 4, "Failed half way"),
        ("busy", 5, "Skipped: ResourceBusy"),
    ] {
        has(&says(&direct, code, &["wait", name]).await?, &[expected]);
    }
    has(&says(&direct, 6, &["wait", "holds", "--timeout", "1s"]).await?, &["has not ended within 1s: Running"]);
    has(&says(&direct, 2, &["wait", "nobody"]).await?, &["there is no WorkflowExecution nobody"]);
    let answer: Value = serde_json::from_str(&says(&direct, 0, &["wait", "works", "-o", "json"]).await?)?;
    assert_eq!((&answer["kind"], &answer["outcome"]), (&json!("Outcome"), &json!("Completed")), "{answer:#}");
    let (deleted, done) = tokio::join!(says(&direct, 2, &["wait", "holds"]), world.delete_wfe("holds"));
    done?;
    // The execution may be deleted before the first read of `wait`.
    let deleted = deleted?;
    assert!(deleted.contains("was deleted") || deleted.contains("there is no"), "{deleted}");
    world.close().await
}
