//! Retry conditions on the results of real runs. They use every variable, also after failures, and run on both versions
//! of Tekton.

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};
use wfe_testkit::{ControlPlane, Options, Outcome, Pipeline, Tekton, World};

use super::{RETRYING, attempts, message, with_retry};
use crate::audited::audited;
use crate::expect::condition;
use crate::faults::all;

#[tokio::test]
async fn conditions_see_the_results_of_what_failed() -> Result<()> {
    ask_all(ControlPlane::shared().await?).await?;
    if all() {
        let options = Options { tekton: Tekton::Oldest, ..Options::default() };
        ask_all(&ControlPlane::start(options).await?).await?;
    }
    Ok(())
}

/// Formats results as a termination message, as Tekton's entrypoint does.
fn results(of: &[(&str, &str)]) -> String {
    let of: Vec<Value> = of.iter().map(|(key, value)| json!({"key": key, "value": value, "type": 1})).collect();
    Value::from(of).to_string()
}

/// Declares results of the last task.
fn declaring(pipeline: Pipeline, names: &[&str]) -> Pipeline {
    let declared: Vec<Value> = names.iter().map(|name| json!({"name": name, "type": "string"})).collect();
    pipeline.patch(|task| task["taskSpec"]["results"] = json!(declared))
}

/// Adds a task that has results and fails with this exit code.
fn fails(pipeline: Pipeline, code: u8, of_it: &[(&str, &str)]) -> Pipeline {
    let pipeline = pipeline.task("call", Outcome::Exit(code)).lasting("100ms").saying(&results(of_it));
    let names: Vec<&str> = of_it.iter().map(|(name, _)| *name).collect();
    declaring(pipeline, &names)
}

/// Pushes a pipeline of two tasks, each with results. The first succeeds and the second fails. The results of the first
/// are also the results of the run.
async fn two_tasks(world: &World) -> Result<String> {
    let plan = Pipeline::new().task("plan", Outcome::Ok).lasting("100ms");
    let plan = declaring(plan.saying(&results(&[("ticket", "T-1"), ("statusCode", "200")])), &["ticket", "statusCode"]);
    let call = [("statusCode", "503"), ("data", r#"{"retry": true, "after": 2}"#), ("state", "half")];
    let mut pipeline = fails(plan, 75, &call).render("workflow");
    let of_run = |name| json!({"name": name, "value": format!("$(tasks.plan.results.{name})")});
    pipeline["spec"]["results"] = json!(["ticket", "statusCode"].map(of_run));
    Ok(world.push_objects("two-tasks", &[pipeline]).await?.image)
}

/// A condition, used as `retryWhen` with a single attempt, and the reason why there is no further attempt. The reason
/// is `Exhausted` if the condition is true.
type Row = (&'static str, &'static str);

/// Conditions after a step with results that has exited with 75.
const OF_A_STEP: [Row; 14] = [
    ("attempt == 1 && maxAttempts == 1", "Exhausted"),
    ("reason == 'Unknown' && error.contains('75')", "Exhausted"),
    ("exitCode == 75 && wasExecutionFailure && !success", "Exhausted"),
    ("nodeId == 'call' && size(executionId) == 36", "Exhausted"),
    ("statusCode == 503", "Exhausted"),
    ("type(data) == map && data.retry && data.after == 2", "Exhausted"),
    ("result['ticket'] == 'T-1'", "Exhausted"),
    ("result['state'] == 'half' && result['statusCode'] == '503'", "Exhausted"),
    ("statusCode in [502, 504] || error == ''", "RetryWhen"),
    ("success || exitCode != 75", "RetryWhen"),
    ("result['absent'] == ''", "ConditionError"),
    ("1 / (statusCode - 503) == 0", "ConditionError"),
    ("data.absent == 1", "ConditionError"),
    ("int(result['state']) == 1", "ConditionError"),
];
/// Conditions after a step with results that are neither JSON nor a number.
const OF_ODD_RESULTS: [Row; 3] = [
    ("data == 'not JSON' && statusCode == 404", "Exhausted"),
    ("data.field == 1", "ConditionError"),
    ("result['status_code'] == '404\\n'", "Exhausted"),
];
/// Conditions after a task that never got its image.
const OF_NOTHING: [Row; 3] = [
    ("reason == 'ImagePullBackOff' && exitCode == -1 && !wasExecutionFailure && nodeId == 'apply'", "Exhausted"),
    ("statusCode == 0 && data == null && size(result) == 0", "Exhausted"),
    ("statusCode >= 500 || error != ''", "Exhausted"),
];

async fn ask_all(control_plane: &ControlPlane) -> Result<()> {
    let world = World::on(control_plane, "conditions").await?;
    let recording = world.record_all().await?;
    let step = two_tasks(&world).await?;
    let odd = fails(Pipeline::new(), 1, &[("status_code", "404\n"), ("data", "not JSON")]);
    let odd = world.push_pipeline("odd", &odd).await?;
    let nothing = super::unpullable(&world).await?;
    let _operator = world.operator().start().await?;

    let rows = OF_A_STEP.iter().map(|row| (&step, row));
    let rows = rows.chain(OF_ODD_RESULTS.iter().map(|row| (&odd, row)));
    let rows = rows.chain(OF_NOTHING.iter().map(|row| (&nothing, row)));
    let asked = rows.enumerate().map(|(n, (bundle, (retry_when, stop)))| {
        let policy = json!({"maxAttempts": 1, "retryExecutionFailures": true, "retryWhen": retry_when});
        ask(&world, format!("asks-{n}"), bundle, policy, stop)
    });
    try_join_all(asked).await?;
    again(&world, &step).await?;
    audited(&world, recording).await?;
    world.close().await
}

/// Runs an execution until it ends, and checks that there was no further attempt for this reason.
async fn ask(world: &World, name: String, bundle: &str, policy: Value, stop: &str) -> Result<()> {
    let target = format!("node/{name}");
    with_retry(world.wfe(&name).target(&target).image(bundle), &policy).create().await?;
    let failed = world.await_phase(&name, "Failed").await?;
    println!("{policy}: {} ({})", condition(&failed, RETRYING), message(&failed, RETRYING));
    assert_eq!(condition(&failed, RETRYING), format!("False {stop}"), "{policy}: {failed:#}");
    for value in ["half", "T-1", "not JSON"] {
        assert!(!message(&failed, RETRYING).contains(value), "it quotes a value: {failed:#}");
    }
    Ok(())
}

/// Checks that a second attempt has its own variables.
async fn again(world: &World, step: &str) -> Result<()> {
    let policy = json!({
        "maxAttempts": 4,
        "initialDelay": "0s",
        "retryExecutionFailures": true,
        "retryWhen": "statusCode == 503 && result['ticket'] == 'T-1'",
        "stopWhen": "attempt == 2 && maxAttempts == 4 && exitCode == 75",
    });
    ask(world, "again".to_owned(), step, policy, "StopWhen").await?;
    let failed = world.get_wfe("again").await?;
    assert_eq!(attempts(&failed).len(), 2, "{failed:#}");
    Ok(())
}
