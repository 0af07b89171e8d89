//! Directives that are set while their admission policy is missing do not count until the policy is back. Their record
//! then says permanently that no policy has checked the name in them (section 17, ADR 13).

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{ControlPlane, Options, Outcome, Pipeline, World, manifests, repository, wfe};

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
/// The user whose name others try to use in directives.
const JANE: &str = "jane@example.com";

/// The policies for clearances and cancellations, in a cluster of their own.
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

    /// Deletes the policies.
    async fn take_away(&self) -> Result<()> {
        for object in &self.shipped {
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            ensure!(KINDS.contains(&kind), "a {kind} among the policies");
            let group = "admissionregistration.k8s.io/v1";
            let api: Api<DynamicObject> = Api::all_with(self.world.client(), &manifests::resource(group, kind));
            api.delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// Waits until a change with another user's name is accepted or, without `is_allowed`, refused.
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

#[tokio::test]
async fn what_is_set_while_its_policy_is_away_counts_when_it_is_back_and_says_so_for_ever() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let world = World::on(&control_plane, "unguarded").await?;
    let policies = Policies::ship(&world).await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let holds = world.push_pipeline("hold", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    // The targets are in the world's own namespace, where the permission to clear is enough.
    let on = |name: &str| format!("{}/deployment/{name}", world.namespace());
    let operator = world.operator().arg("--policy-check-interval", "1s").start().await?;
    for name in ["cleared", "forged"] {
        world.wfe(name).target(&on(name)).image(&fails).create().await?;
        world.await_phase(name, "Failed").await?;
    }
    for name in ["stopped", "goes-on", "outlives"] {
        world.wfe(name).target(&on(name)).image(&holds).create().await?;
        world.await_phase(name, "Running").await?;
    }

    // While the policies are in force, users with the permissions can clear and cancel, and no status mentions the
    // policies.
    policies.await_set("forged", &clearance(), false).await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain", "wfe-clear", "wfe-cancel"]).await?;
    let said = jo.says(0, &["clear", &on("cleared"), "--reason", "looked", "--yes"]).await?;
    assert!(said.contains("has lifted the block"), "{said}");
    let me = world.control_plane().kubectl(&["auth", "whoami", "--output", "jsonpath={.status.userInfo.username}"]);
    let mine = json!({"cancellation": {"reason": "enough", "requestedBy": me.await?}});
    policies.await_set("stopped", &mine, true).await?;
    let stopped = world.await_phase("stopped", "Failed").await?;
    assert_eq!(condition(&stopped, "Succeeded"), "False Cancelled", "{stopped:#}");
    for name in ["cleared", "stopped"] {
        let wfe = world.await_wfe(name, "is there", |_| true).await?;
        assert_eq!(condition(&wfe, "Unguarded"), "", "{wfe:#}");
    }

    // While the policies are missing, no directive counts, and the operator reports this in every place.
    policies.take_away().await?;
    let says =
        |line: &Value| line["fields"]["message"].as_str().is_some_and(|said| said.contains("do not count until"));
    operator.await_line("that clearances do not count", says).await?;
    for (name, spec) in [("forged", clearance()), ("goes-on", cancellation()), ("outlives", cancellation())] {
        policies.await_set(name, &spec, true).await?;
    }
    let forged = world
        .await_wfe("forged", "is not cleared", |wfe| condition(wfe, "Unguarded") == "True ClearanceUnguarded")
        .await?;
    assert_eq!(forged["status"]["clearance"], Value::Null, "{forged:#}");
    let event = world.await_event("forged", "ClearanceUnguarded").await?;
    assert_eq!(event["type"], "Warning", "{event:#}");
    world.wfe("blocked").target(&on("forged")).workflow("other").image(&works).create().await?;
    assert_skipped(&world, "blocked", "PreviousExecutionFailed", "forged").await?;
    let said = jo.says(1, &["explain", "wfe/forged", "--namespace", world.namespace()]).await?;
    for words in ["has no effect yet (Unguarded)", "until another workflow repairs it (recoveryOf: forged)"] {
        assert!(said.contains(words), "{said}");
    }
    let is_ignored = |wfe: &Value| condition(wfe, "Unguarded") == "True CancellationUnguarded";
    for name in ["goes-on", "outlives"] {
        let found = world.await_wfe(name, "is not cancelled", is_ignored).await?;
        assert_eq!(found["status"]["phase"], "Running");
    }
    world.await_event("goes-on", "CancellationUnguarded").await?;
    // An execution that ends meanwhile was not cancelled, and its status says so afterwards.
    world.set_outcome("kubernaut.ai/workflow-execution=outlives", "ok").await?;
    let ended = world.await_phase("outlives", "Completed").await?;
    assert_eq!(condition(&ended, "Unguarded"), "True CancellationUnguarded", "{ended:#}");

    // As soon as the policies are back, the directives count. The records say that no policy has checked their authors.
    policies.apply().await?;
    let cleared = world.await_wfe("forged", "is cleared", |wfe| wfe["status"]["clearance"].is_object()).await?;
    assert_eq!(condition(&cleared, "Unguarded"), "False ClearanceCounts", "{cleared:#}");
    let event = world.await_event("forged", "BlockCleared").await?;
    let unchecked = format!("{JANE} (no admission policy has checked that name)");
    assert!(event["note"].as_str().is_some_and(|note| note.contains(&unchecked)), "{event:#}");
    world.wfe("freed").target(&on("forged")).workflow("other").image(&works).create().await?;
    world.await_phase("freed", "Completed").await?;
    let stopped = world.await_phase("goes-on", "Failed").await?;
    assert_eq!(condition(&stopped, "Succeeded"), "False Cancelled", "{stopped:#}");
    assert_eq!(condition(&stopped, "Unguarded"), "False CancellationCounts", "{stopped:#}");
    assert!(text(&stopped["status"]["failureDetails"]["message"]).contains(&unchecked), "{stopped:#}");
    world.close().await
}
