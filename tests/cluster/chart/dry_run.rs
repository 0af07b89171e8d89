//! A dry run of the policies: they only warn of the requests that they would refuse.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DynamicObject, PostParams};
use kube::client::Body;
use kube::core::Request;
use kube::{Client, Resource as _};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{Assets, Tekton, World, manifests, repository, wfe};

use super::installed::copy;
use super::{Helm, NAMESPACE, RELEASE, chart};

const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// Bindings that only warn in a dry run. The second list has the bindings that still refuse.
const WARNED: [&str; 7] = [
    "author.workflowschedules.kubernaut.ai",
    "deletion.workflowexecutions.kubernaut.ai",
    "owner.workflowexecutions.kubernaut.ai",
    "recovery.workflowexecutions.kubernaut.ai",
    "target.workflowexecutions.kubernaut.ai",
    "marks.pipelineruns.kubernaut.ai",
    "workflow.workflowexecutions.kubernaut.ai",
];
const REFUSED: [&str; 4] = [
    "cancellation.workflowexecutions.kubernaut.ai",
    "child.workflowexecutions.kubernaut.ai",
    "clearance.workflowexecutions.kubernaut.ai",
    "operator.workflowexecutions.kubernaut.ai",
];

/// What the API server says to `wfe-edit`, a user with the role of the same name.
const MISSING: &str = "wfe-edit may not let workflows act on node/theirs; ask for the right to create";

/// Checks that the policies refuse what they should.
pub(super) async fn the_policies_refuse(world: &World) -> Result<()> {
    await_answer(world, 403, MISSING).await
}

/// Checks that in a dry run the policies warn of the same request, except for those policies that still refuse.
pub(super) async fn the_policies_warn(world: &World) -> Result<()> {
    await_answer(world, 201, MISSING).await?;
    for (names, expected) in [(&WARNED[..], r#"["Audit","Warn"]"#), (&REFUSED, r#"["Deny"]"#)] {
        for name in names {
            assert_eq!(actions(world, name).await?, expected, "{name}");
        }
    }
    Ok(())
}

async fn actions(world: &World, binding: &str) -> Result<String> {
    let binding = format!("validatingadmissionpolicybinding/{binding}");
    world.control_plane().kubectl(&["get", &binding, "--output", "jsonpath={.spec.validationActions}"]).await
}

/// Waits until a request for a target in another namespace gets this code, with these words in the refusal or in a
/// warning.
async fn await_answer(world: &World, code: u16, words: &str) -> Result<()> {
    let client = world.client();
    let what = format!("the answer is {code} with {words:?}");
    let is = |(answered, said): &(u16, String)| *answered == code && said.contains(words);
    ask_until(IN_FORCE_WITHIN, &what, async || ask(&client, world).await, is).await.map(drop)
}

async fn ask(client: &Client, world: &World) -> Result<(u16, String)> {
    let object: Value = json!(world.wfe("dry").target("node/theirs").json());
    let url = DynamicObject::url_path(&wfe::resource(), Some(world.namespace()));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut request = Request::new(url).create(&dry_run, serde_json::to_vec(&object)?)?;
    request.headers_mut().insert("Impersonate-User", "wfe-edit".parse()?);
    let answer = client.send(request.map(Body::from)).await?;
    let code = answer.status().as_u16();
    let warnings = answer.headers().get_all("warning").iter().map(|value| value.to_str().map(str::to_owned));
    let warnings = warnings.collect::<std::result::Result<Vec<_>, _>>().context("a warning is no text")?.join("\n");
    let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
    let body: Value = serde_json::from_slice(&body)?;
    Ok((code, format!("{warnings}{}", body["message"].as_str().unwrap_or_default())))
}

/// Returns the actions of each policy's binding.
fn bindings(manifest: &str) -> Result<BTreeMap<String, Value>> {
    let mut objects = manifests::parse(manifest)?;
    objects.retain(|object| object["kind"] == "ValidatingAdmissionPolicyBinding");
    let named =
        objects.iter().map(|one| (one["metadata"]["name"].to_string(), one["spec"]["validationActions"].clone()));
    Ok(named.collect())
}

/// For users of kustomize, a patch in `docs/upgrading.md` has the effect of the value.
#[test]
fn the_documented_patch_does_what_the_value_does() -> Result<()> {
    let helm = Helm::new("dry-run")?;
    let page = fs::read_to_string(repository().join("docs/upgrading.md"))?;
    let (_, patch) = page.split_once("```yaml\npatches:").context("no patch on the page")?;
    let (patch, _) = patch.split_once("```").context("a patch without an end")?;
    for directory in ["config", "crds"] {
        copy(&repository().join(directory), &helm.home().join(directory))?;
    }
    let overlay = helm.home().join("overlay");
    fs::create_dir_all(&overlay)?;
    fs::write(overlay.join("kustomization.yaml"), format!("resources: [../config/base]\npatches:{patch}"))?;
    let kubectl = Assets::find(Tekton::Current)?.program("kubectl");
    let built = Command::new(kubectl).arg("kustomize").arg(&overlay).output()?;
    ensure!(built.status.success(), "kubectl kustomize: {}", String::from_utf8_lossy(&built.stderr));
    let built = bindings(&String::from_utf8(built.stdout)?)?;
    let set = ["--set", "admissionPolicies.dryRun=true"];
    let rendered = helm.run(&[&["template", RELEASE, &chart(), "--namespace", NAMESPACE], &set[..]].concat())?;
    assert_eq!(built, bindings(&rendered)?);
    ensure!(built.values().any(|actions| *actions == json!(["Audit", "Warn"])), "none warns: {built:?}");
    Ok(())
}
