//! What is set while its admission policy is away does not count, also when the policy is back before the operator has
//! seen that it was away (SPEC section 17, ADR 13).

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{AuditEntry, ControlPlane, Options, Outcome, Pipeline, World, manifests, repository, wfe};

use crate::expect::{condition, text};
use crate::history::assert_skipped;
use crate::kubectl_wfe::Caller;

const KINDS: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
const FILES: [&str; 4] = [
    "clearance_policy.yaml",
    "clearance_policy_binding.yaml",
    "cancellation_policy.yaml",
    "cancellation_policy_binding.yaml",
];
/// What somebody would set in the name of somebody else.
const JANE: &str = "jane@example.com";

/// The policies of what people set, in a cluster of their own.
struct Policies<'w> {
    world: &'w World,
    shipped: Vec<Value>,
}

impl<'w> Policies<'w> {
    async fn ship(world: &'w World) -> Result<Self> {
        let read = |file: &&str| manifests::read(&repository().join("config/admission").join(file));
        let shipped = FILES.iter().map(read).collect::<Result<Vec<_>>>()?.concat();
        let this = Self { world, shipped };
        this.apply().await?;
        Ok(this)
    }

    async fn apply(&self) -> Result<()> {
        manifests::apply_all(&self.world.client(), &self.shipped).await
    }

    /// Takes them away until somebody has set this on these executions in another's name, and puts them back.
    async fn away_while(&self, set: &[(&str, Value)]) -> Result<()> {
        for object in &self.shipped {
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            ensure!(KINDS.contains(&kind), "a {kind} among the policies");
            let group = "admissionregistration.k8s.io/v1";
            let api: Api<DynamicObject> = Api::all_with(self.world.client(), &manifests::resource(group, kind));
            api.delete(name, &DeleteParams::default()).await?;
        }
        for (name, spec) in set {
            self.await_set(name, spec, true).await?;
        }
        self.apply().await
    }

    /// Sets something, in another's name, or waits until that is refused.
    async fn await_set(&self, name: &str, spec: &Value, is_allowed: bool) -> Result<()> {
        let executions = self.world.api(&wfe::resource(), self.world.namespace());
        let params = PatchParams { dry_run: !is_allowed, ..PatchParams::default() };
        let what = format!("{spec} on {name}: allowed = {is_allowed}");
        let ask = async || anyhow::Ok(executions.patch(name, &params, &Patch::Merge(json!({"spec": spec}))).await);
        ask_until(DEADLINE, &what, ask, |answer| answer.is_ok() == is_allowed).await.map(drop)
    }
}

fn clearance() -> Value {
    json!({"clearance": {"reason": "it is fine", "clearedBy": JANE}})
}

fn cancellation() -> Value {
    json!({"cancellation": {"reason": "enough", "requestedBy": JANE}})
}

/// Waits until a status names the policies, and others than these.
async fn await_guard(world: &World, name: &str, other_than: &str) -> Result<String> {
    let is = |wfe: &Value| wfe["status"]["guard"].as_str().is_some_and(|mark| mark != other_than);
    let found = world.await_wfe(name, "names the policies", is).await?;
    Ok(text(&found["status"]["guard"]).to_owned())
}

#[tokio::test]
async fn what_is_set_while_its_policy_is_away_does_not_count_and_says_so() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let world = World::on(&control_plane, "unguarded").await?;
    let policies = Policies::ship(&world).await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let holds = world.push_pipeline("hold", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    // In the own namespace, so that the right to clear there is enough.
    let on = |name: &str| format!("{}/deployment/{name}", world.namespace());
    let start = || world.operator().arg("--policy-check-interval", "1s").start();
    let operator = start().await?;
    for name in ["cleared", "forged", "later"] {
        world.wfe(name).target(&on(name)).image(&fails).create().await?;
        world.await_phase(name, "Failed").await?;
    }
    for name in ["stopped", "goes-on"] {
        world.wfe(name).target(&on(name)).image(&holds).create().await?;
        world.await_phase(name, "Running").await?;
    }
    let mut mark = String::new();
    for name in ["cleared", "forged", "later", "stopped", "goes-on"] {
        mark = await_guard(&world, name, "").await?;
    }

    // Who has the right to it clears and cancels, as before.
    let jo = Caller::new(&world, "jo", &["wfe-explain", "wfe-clear", "wfe-cancel"]).await?;
    let said = jo.says(0, &["clear", &on("cleared"), "--reason", "looked", "--yes"]).await?;
    assert!(said.contains("has lifted the block"), "{said}");
    world.wfe("freed").target(&on("cleared")).workflow("other").image(&works).create().await?;
    let freed = world.await_phase("freed", "Completed").await?;
    assert_eq!(freed["status"]["guard"], mark, "{freed:#}");
    let audit = world.audit().await?;
    let writes = |name: &str| {
        let is_of_it =
            |entry: &&AuditEntry| entry.user == world.operator_user() && entry.is_write() && entry.name == name;
        audit.iter().filter(is_of_it).count()
    };
    assert_eq!(writes("freed"), 2, "its commit and its end name the policies, and nothing else does");

    // Nobody runs while the policies are away, and they are back before anybody does.
    assert!(operator.terminate().await?.success());
    policies.await_set("forged", &clearance(), false).await?;
    policies.away_while(&[("forged", clearance()), ("goes-on", cancellation())]).await?;
    policies.await_set("later", &clearance(), false).await?;
    let _operator = start().await?;

    let forged = world
        .await_wfe("forged", "is not cleared", |wfe| condition(wfe, "Unguarded") == "True ClearanceUnguarded")
        .await?;
    assert_eq!(forged["status"]["clearance"], Value::Null, "{forged:#}");
    assert_eq!(forged["status"]["guard"], mark, "what was named before stays: {forged:#}");
    let event = world.await_event("forged", "ClearanceUnguarded").await?;
    assert_eq!(event["type"], "Warning", "{event:#}");
    world.wfe("blocked").target(&on("forged")).workflow("other").image(&works).create().await?;
    assert_skipped(&world, "blocked", "PreviousExecutionFailed", "forged").await?;
    let said = jo.says(1, &["explain", "wfe/forged", "--namespace", world.namespace()]).await?;
    for words in ["has had no effect (Unguarded)", "until another workflow repairs it (recoveryOf: forged)"] {
        assert!(said.contains(words), "{said}");
    }
    let is_ignored = |wfe: &Value| condition(wfe, "Unguarded") == "True CancellationUnguarded";
    let goes_on = world.await_wfe("goes-on", "is not cancelled", is_ignored).await?;
    assert_eq!(goes_on["status"]["phase"], "Running");
    world.await_event("goes-on", "CancellationUnguarded").await?;

    // What blocks or runs and has nothing set names the policies that are in force now, and that counts again.
    await_guard(&world, "later", &mark).await?;
    await_guard(&world, "stopped", &mark).await?;
    let said = jo.says(0, &["clear", &on("later"), "--reason", "looked", "--yes"]).await?;
    assert!(said.contains("has lifted the block"), "{said}");
    let me = world.control_plane().kubectl(&["auth", "whoami", "--output", "jsonpath={.status.userInfo.username}"]);
    let mine = json!({"cancellation": {"reason": "enough", "requestedBy": me.await?}});
    policies.await_set("stopped", &mine, true).await?;
    let stopped = world.await_phase("stopped", "Failed").await?;
    assert_eq!(condition(&stopped, "Succeeded"), "False Cancelled", "{stopped:#}");

    // It ends by itself, and still says that it was not cancelled.
    world.set_outcome("kubernaut.ai/workflow-execution=goes-on", "ok").await?;
    let ended = world.await_phase("goes-on", "Completed").await?;
    assert_eq!(condition(&ended, "Unguarded"), "True CancellationUnguarded", "{ended:#}");
    world.close().await
}
