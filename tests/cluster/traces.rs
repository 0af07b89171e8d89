//! The traces of executions, at a receiver of OTLP over HTTP that decodes what arrives.
//!
//! Only with `WFE_TEST_ALL=1`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{Operator, World};

use crate::expect::text;
use crate::faults::{all, await_task, finish, held, short};
use crate::retries::unpullable;

/// How long a trace may take: the SDK waits for more spans first, as long as [`SCHEDULE`] says.
const ARRIVES_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);
const SCHEDULE: &str = "100";
/// The value of a parameter, which no span may have.
const SECRET: &str = "s3cret-of-a-parameter";

/// The spans that have arrived, with the name of the service that sent each.
type Arrived = Arc<Mutex<Vec<(String, Span)>>>;

/// A receiver of traces.
struct Receiver {
    address: String,
    arrived: Arrived,
    server: JoinHandle<()>,
}

impl Receiver {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let arrived = Arrived::default();
        let app = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&arrived));
        let server = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the receiver serves");
        });
        Ok(Self { address, arrived, server })
    }

    /// Waits for a trace with this many spans, and returns its spans by name.
    async fn await_trace(&self, wfe: &Value, spans: usize) -> Result<BTreeMap<String, Span>> {
        let id = text(&wfe["metadata"]["uid"]).replace('-', "");
        let what = format!("{spans} spans of trace {id} have arrived");
        let of_trace = async || {
            let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Ok(arrived.into_iter().filter(|(_, span)| hex(&span.trace_id) == id).collect::<Vec<_>>())
        };
        let found = ask_until(ARRIVES_WITHIN, &what, of_trace, |found| found.len() >= spans).await?;
        assert!(found.iter().all(|(service, _)| service == "wfe-operator"), "{found:#?}");
        let count = found.len();
        let by_name: BTreeMap<_, _> = found.into_iter().map(|(_, span)| (span.name.clone(), span)).collect();
        assert_eq!(by_name.len(), count, "no span is sent twice");
        Ok(by_name)
    }
}

async fn take(State(arrived): State<Arrived>, body: Bytes) -> StatusCode {
    assert!(!String::from_utf8_lossy(&body).contains(SECRET), "a span has the value of a parameter");
    let Ok(request) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
    let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
    for sent in request.resource_spans {
        let attributes = sent.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service = attributes.iter().find(|it| it.key == "service.name").map(|it| format!("{:?}", it.value));
        let service = if service.is_some_and(|it| it.contains("\"wfe-operator\"")) { "wfe-operator" } else { "" };
        for span in sent.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            arrived.push((service.to_owned(), span));
        }
    }
    StatusCode::OK
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Checks that the spans are one tree: an execution, and its parts.
fn assert_tree(spans: &BTreeMap<String, Span>, names: &[&str]) {
    assert_eq!(spans.keys().map(String::as_str).collect::<Vec<_>>(), names);
    let root = &spans["execution"];
    for (name, span) in spans {
        let expected = if name == "execution" { "" } else { &*hex(&root.span_id) };
        assert_eq!(hex(&span.parent_span_id), expected, "{name}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{name}");
        assert!(root.start_time_unix_nano <= span.start_time_unix_nano, "{name}");
    }
}

async fn traced(world: &World, receiver: &Receiver) -> Result<Operator> {
    let operator = world.operator().env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}", receiver.address));
    operator.env("OTEL_BSP_SCHEDULE_DELAY", SCHEDULE).start().await
}

fn is_away(line: &Value) -> bool {
    text(&line["fields"]["message"]).starts_with("traces cannot be sent")
}

#[tokio::test]
async fn a_trace_is_whole_though_the_operator_was_killed_while_the_execution_ran() -> Result<()> {
    if !all() {
        return Ok(());
    }
    let world = World::new("traces").await?;
    let receiver = Receiver::start().await?;
    let killed = traced(&world, &receiver).await?;
    let (held, unpullable, short) = (held(&world).await?, unpullable(&world).await?, short(&world).await?);

    world.wfe("killed").target("node/killed").image(&held).create().await?;
    await_task(&world, "killed").await?;
    killed.kill().await?;
    let operator = traced(&world, &receiver).await?;
    finish(&world, "killed").await?;
    let wfe = world.await_phase("killed", "Completed").await?;
    let spans = receiver.await_trace(&wfe, 3).await?;
    assert_tree(&spans, &["attempt 1", "execution", "wait"]);

    // Tekton's own spans become part of the attempt.
    let run = text(&wfe["status"]["pipelineRunRef"]["name"]).to_owned();
    let run = world.await_run("of the execution", |it| it["metadata"]["name"] == *run).await?;
    let context = text(&run["metadata"]["annotations"]["tekton.dev/pipelinerunSpanContext"]);
    let context: Value = serde_json::from_str(context).context("the run has no context")?;
    let attempt = &spans["attempt 1"];
    assert_eq!(context["traceparent"], format!("00-{}-{}-01", hex(&attempt.trace_id), hex(&attempt.span_id)));

    let wfe = world.wfe("retried").target("node/retried").image(&unpullable).parameter("TOKEN", SECRET);
    let policy = json!({"maxAttempts": 2, "initialDelay": "1s"});
    wfe.patch(|wfe| wfe["spec"]["retry"] = policy).create().await?;
    let wfe = world.await_phase("retried", "Failed").await?;
    let spans = receiver.await_trace(&wfe, 5).await?;
    assert_tree(&spans, &["attempt 1", "attempt 2", "execution", "wait", "wait 2"]);
    for (name, span) in &spans {
        let code = span.status.as_ref().map_or(SpanStatus::Unset, Status::code);
        assert_eq!(code == SpanStatus::Error, !name.starts_with("wait"), "{name}: {:?}", span.status);
    }

    // A collector that cannot be reached delays nothing, and is reported once.
    receiver.server.abort();
    for name in ["unseen-1", "unseen-2"] {
        world.wfe(name).target(&format!("node/{name}")).image(&short).create().await?;
        world.await_phase(name, "Completed").await?;
        operator.await_line("tells that the collector is away", is_away).await?;
    }
    let log = operator.log().await;
    assert_eq!(log.iter().filter(|line| is_away(line)).count(), 1);
    operator.terminate().await?;
    world.close().await
}
