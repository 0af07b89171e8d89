//! The builder of `wfe-api` and the API server accept and refuse the same texts in every field.

use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use wfe_api::{BuildError, RemediationRequestRef, WorkflowExecution, WorkflowExecutionBuilder, limits};

use wfe_core::target::{Scope, kind_spellings};

use super::objects::{Namespaced, Refusal, report};

/// A field: its path, its maximum length, and the builder's setter.
type Field = (&'static str, u32, fn(WorkflowExecutionBuilder, &str) -> WorkflowExecutionBuilder);

const FIELDS: [Field; 14] = [
    ("/spec/targetResource", limits::TARGET, |builder, text| builder.target(text)),
    ("/spec/workflowRef/workflowId", limits::NAME, |builder, text| builder.workflow(text, "1.0", "i")),
    ("/spec/workflowRef/version", limits::WORKFLOW_VERSION, |builder, text| builder.workflow("w", text, "i")),
    ("/spec/workflowRef/containerImage", limits::IMAGE, |builder, text| builder.workflow("w", "1.0", text)),
    ("/spec/workflowRef/containerDigest", limits::DIGEST, |builder, text| builder.digest(text)),
    ("/spec/parameters/A", limits::PARAMETER_VALUE, |builder, text| builder.parameter("A", text)),
    ("/spec/rationale", limits::RATIONALE, |builder, text| builder.rationale(text)),
    ("/spec/executionConfig/serviceAccountName", limits::NAME, |builder, text| builder.service_account(text)),
    ("/spec/recoveryOf", limits::NAME, |builder, text| builder.recovery_of(text)),
    ("/spec/remediationRequestRef/name", limits::NAME, |builder, text| {
        builder.requested_by(request(|it| it.name = text.to_owned()))
    }),
    ("/spec/remediationRequestRef/apiVersion", limits::API_VERSION, |builder, text| {
        builder.requested_by(request(|it| it.api_version = Some(text.to_owned())))
    }),
    ("/spec/remediationRequestRef/kind", limits::KIND, |builder, text| {
        builder.requested_by(request(|it| it.kind = Some(text.to_owned())))
    }),
    ("/spec/remediationRequestRef/namespace", limits::NAMESPACE, |builder, text| {
        builder.requested_by(request(|it| it.namespace = Some(text.to_owned())))
    }),
    ("/spec/remediationRequestRef/uid", limits::UID, |builder, text| {
        builder.requested_by(request(|it| it.uid = Some(text.to_owned())))
    }),
];

fn request(change: impl FnOnce(&mut RemediationRequestRef)) -> RemediationRequestRef {
    let mut reference = RemediationRequestRef { name: "rr-1".to_owned(), ..RemediationRequestRef::default() };
    change(&mut reference);
    reference
}

/// Texts that are valid in some fields but not in others.
fn texts() -> Vec<String> {
    let digest = format!("sha256:{}", "0f".repeat(32));
    let mut texts: Vec<String> = [
        "",
        "a",
        "A",
        "a-b",
        "-a",
        "a-",
        "a.b",
        "a..b",
        ".a",
        "a.",
        "A_B",
        "_A",
        "1A",
        "a b",
        "a\n",
        "\u{1f980}",
        "..",
        "%",
        "a/b",
        "TARGET_RESOURCE",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend([
        digest.to_uppercase(),
        format!("{digest}0"),
        digest[..70].to_owned(),
        format!("r/w@{digest}"),
        digest,
    ]);
    texts
}

/// Valid targets, and targets that are almost valid.
fn targets() -> Vec<String> {
    let mut texts: Vec<String> = [
        "/",
        "//",
        "a/b/c",
        "a/b/c/d",
        "/a/b",
        "a/b/",
        "a//c",
        "A/b/c",
        "a/B/c",
        "a/b/C",
        "a.b/c/d",
        "a/b.c/d",
        "a/b..c/d",
        "a/-b/c",
        "a-/b/c",
        "a/b/.",
        "a/b/..",
        "a/b/..c",
        "a/b/%",
        "a/b/c:d",
        "a b/c/d",
        "a/b c/d",
        "a/b/c d",
        "a/b/ä",
        "a/ä/b",
        "node/worker-1",
        "node/..",
        "payment/Deployments.apps/payment-api",
        "deployment/slow-api",
        "payment/nodes/worker-1",
    ]
    .map(str::to_owned)
    .to_vec();
    for (namespace, kind, name) in [(63, 63, 253), (64, 1, 1), (1, 254, 1), (1, 1, 254), (63, 64, 1)] {
        texts.push(["n".repeat(namespace), "k".repeat(kind), "x".repeat(name)].join("/"));
    }
    texts.push(["n".repeat(63), vec!["k".repeat(63); 3].join("."), "x".repeat(253)].join("/"));
    texts.extend(generated(&["payment", "Payment", "a.b", ""], 0x5eed, 150));
    texts
}

/// Spellings of targets, valid or almost valid, generated from a seed: kinds of both scopes in every form, with and
/// without a namespace. The builder must accept exactly those that the API server accepts.
fn generated(namespaces: &[&str], seed: u64, count: usize) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let kinds: Vec<&str> = [Scope::Namespaced, Scope::Cluster].into_iter().flat_map(kind_spellings).collect();
    let groups = ["", "", ".v1", ".apps", ".v1.apps", ".", ".-x"];
    let names = ["api", "system:Node", "a@b", "api ", "api\n", "-api", "a\u{212a}", "a_b.c"];
    let targets = std::iter::repeat_with(|| {
        let kind = if random.u8(..5) == 0 { "certificate" } else { kinds[random.usize(..kinds.len())] };
        let kind = match random.u8(..4) {
            0 => kind.to_uppercase(),
            1 => kind.replacen('k', "\u{212a}", 1), // a pattern that ignores case takes this for a k
            _ => kind.to_owned(),
        };
        let group = groups[random.usize(..groups.len())];
        let name = names[random.usize(..names.len())];
        let namespace = namespaces.get(random.usize(..namespaces.len() * 2));
        match (namespace, random.bool()) {
            (Some(namespace), _) => format!("{namespace}/{kind}{group}/{name}"),
            (None, true) => format!("payment/{kind}{group}/{name}"),
            (None, false) => format!("{kind}{group}/{name}"),
        }
    });
    targets.take(count).collect()
}

/// Valid image references, and references that are almost valid.
fn images() -> Vec<String> {
    let near = [
        "UPPER/x",
        "UPPER.example/x",
        "localhost/x",
        "localhost:5000/x:1",
        "host:5000/x",
        "host:port/x",
        "a.b/c_d__e/f---g",
        "a/b..c",
        "a/b___c",
        "a/b-",
        "a/b:",
        "a/b:-1",
        "a/b:V1.0_x",
        "a/b:c:d",
        "a//b",
        "https://a/b",
        "a/b@sha256:aa",
    ];
    let tags = [128, 129].map(|length| format!("r/w:{}", "t".repeat(length)));
    near.map(str::to_owned).into_iter().chain(tags).collect()
}

fn builder(name: &str) -> WorkflowExecutionBuilder {
    WorkflowExecution::builder(name).target("node/worker-1").workflow("w", "1.0", "i")
}

/// Returns the builder's initial object as JSON, with `value` at the pointer.
fn sent(name: &str, pointer: &str, value: Value) -> Value {
    let mut object = json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {"name": name},
        "spec": {
            "targetResource": "node/worker-1",
            "workflowRef": {"workflowId": "w", "version": "1.0", "containerImage": "i"},
        },
    });
    if pointer.starts_with("/spec/remediationRequestRef") {
        object["spec"]["remediationRequestRef"]["name"] = json!("rr-1");
    }
    let mut place = &mut object;
    for key in pointer.trim_start_matches('/').split('/') {
        place = &mut place[key];
    }
    *place = value;
    object
}

/// One input, in the form for the builder and in the form for the API server.
struct Case {
    row: String,
    built: Result<WorkflowExecution, BuildError>,
    sent: Value,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |pointer: &str, value: &Value, builder: WorkflowExecutionBuilder| {
        let row = format!("{pointer} = {:.70}", value.to_string());
        cases.push(Case { row, built: builder.build(), sent: sent("case", pointer, value.clone()) });
    };
    for (pointer, limit, set) in FIELDS {
        let lengths = [limit, limit + 1].map(|length| "x".repeat(length.try_into().expect("a limit")));
        let special = match pointer {
            "/spec/targetResource" => targets(),
            "/spec/workflowRef/containerImage" => images(),
            _ => Vec::new(),
        };
        for text in texts().into_iter().chain(lengths).chain(special) {
            case(pointer, &json!(text), set(builder("case"), &text));
        }
    }
    for text in texts() {
        case("/spec/parameters", &json!({&text: ""}), builder("case").parameter(&text, ""));
        case("/metadata/name", &json!(text), builder(&text));
    }
    for number in [-0.01, 0.0, 0.5, 1.0, 1.01] {
        case("/spec/confidence", &json!(number), builder("case").confidence(number));
    }
    for seconds in [0, 1, 59, 60, 3600, 86_399, 86_400, 86_401, 1_000_000] {
        let text = format!("{seconds}s");
        case("/spec/executionConfig/timeout", &json!(text), builder("case").timeout(Duration::from_secs(seconds)));
    }
    for text in [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "9998-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z",
    ] {
        let moment = serde_json::from_value(json!(text)).expect("a time");
        case("/spec/startBefore", &json!(text), builder("case").start_before(moment));
    }
    for count in [64, 65] {
        let keys = (0..count).map(|n| format!("KEY_{n}"));
        let map = Value::Object(keys.clone().map(|key| (key, json!(""))).collect());
        case("/spec/parameters", &map, keys.fold(builder("case"), |builder, key| builder.parameter(key, "")));
    }
    cases
}

#[tokio::test]
async fn the_builder_refuses_what_the_api_server_refuses() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let cases = cases();
    let judge = async |case: Case| -> Result<Option<String>> {
        let failure = disagreement(&case, &namespaced.try_create(case.sent.clone()).await?);
        // The builder formats a time-out differently from the test.
        let built = case.built.ok().map(serde_json::to_value).transpose()?.filter(|built| *built != case.sent);
        let Some(built) = built.filter(|_| failure.is_none()) else { return Ok(failure) };
        Ok(namespaced.try_create(built).await?.map(|refusal| format!("{}: built, but {refusal}", case.row)))
    };
    let count = cases.len();
    let failures: Vec<Option<String>> = stream::iter(cases).map(judge).buffer_unordered(16).try_collect().await?;
    assert!(count > 450, "only {count} cases");
    report(&failures.into_iter().flatten().collect::<Vec<_>>())
}

fn disagreement(case: &Case, refusal: &Refusal) -> Option<String> {
    match (&case.built, refusal) {
        (Ok(_), None) | (Err(_), Some(_)) => None,
        (Ok(_), Some(refusal)) => Some(format!("{}: built, but {refusal}", case.row)),
        (Err(error), None) => Some(format!("{}: accepted, but {error}", case.row)),
    }
}
