use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt as _;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Response, Uri};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::*;
use crate::http;

const SOON: Duration = Duration::from_secs(5);
/// The tests treat an event as absent if it has not happened within this time.
const NEVER: Duration = Duration::from_millis(150);
const PATH: &str = "/apis/tekton.dev/v1/namespaces/exec/pipelineruns";

/// A server that answers each write with the number of writes so far, and streams to each watch what the test sends.
struct Stub {
    proxy: Proxy,
    seen: Arc<Mutex<Vec<String>>>,
    events: mpsc::UnboundedSender<&'static str>,
}

impl Stub {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let base = Uri::try_from(format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (events, feed) = mpsc::unbounded_channel();
        tokio::spawn(stub(listener, Arc::clone(&seen), Arc::new(tokio::sync::Mutex::new(feed))));
        Self { proxy: Proxy::before(Upstream::plain(base)).unwrap(), seen, events }
    }

    fn seen(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    async fn create(&self) -> anyhow::Result<http::Answer> {
        let body = json!({"metadata": {"name": "run-1"}}).to_string();
        http::request("POST", &self.proxy.address.to_string(), PATH, &[("authorization", "Bearer me")], body.into())
            .await
    }

    async fn text(&self) -> String {
        self.create().await.unwrap().text()
    }

    async fn watch(&self) -> BodyStream<Incoming> {
        let stream = TcpStream::connect(self.proxy.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request =
            hyper::Request::get(format!("{PATH}?watch=true")).header("host", "test").body(Full::<Bytes>::default());
        BodyStream::new(sender.send_request(request.unwrap()).await.unwrap().into_body())
    }
}

async fn stub(
    listener: TcpListener,
    seen: Arc<Mutex<Vec<String>>>,
    feed: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<&'static str>>>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (seen, feed) = (Arc::clone(&seen), Arc::clone(&feed));
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (seen, feed) = (Arc::clone(&seen), Arc::clone(&feed));
            async move {
                if request.uri().query() == Some("watch=true") {
                    let pieces = futures::stream::unfold(feed, |feed| async {
                        let piece = feed.lock().await.recv().await?;
                        Some((Ok::<_, hyper::Error>(Frame::data(Bytes::from(piece))), feed))
                    });
                    return Ok::<_, hyper::Error>(Response::new(StreamBody::new(pieces).boxed_unsync()));
                }
                let token = request.headers()["authorization"].to_str().unwrap().to_owned();
                let body = request.into_body().collect().await?.to_bytes();
                assert!(body.starts_with(b"{\"metadata\""), "the body is passed on");
                let count = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(token);
                    seen.len()
                };
                let answer = Full::new(Bytes::from(format!("write {count}"))).map_err(|never| match never {});
                Ok(Response::new(answer.boxed_unsync()))
            }
        });
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn next(watch: &mut BodyStream<Incoming>) -> Option<String> {
    let piece = tokio::time::timeout(SOON, watch.next()).await.unwrap()?.ok()?;
    Some(String::from_utf8(piece.into_data().unwrap().to_vec()).unwrap())
}

async fn is_silent<T>(work: impl Future<Output = T>) -> bool {
    tokio::time::timeout(NEVER, work).await.is_err()
}

async fn until(what: impl Fn() -> bool) {
    let wait = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.unwrap();
}

#[test]
fn a_request_is_read_from_its_path() {
    let named = br#"{"metadata":{"name":"fix.1.skipped"}}"#.as_slice();
    let cases = [
        ("GET", "/apis/tekton.dev/v1/namespaces/x/pipelineruns", "limit=500", "", "list pipelineruns", "x", ""),
        ("GET", "/apis/tekton.dev/v1/namespaces/x/pipelineruns", "a=b&watch=true", "", "watch pipelineruns", "x", ""),
        ("GET", "/apis/kubernaut.ai/v1alpha1/workflowexecutions", "", "", "list workflowexecutions", "", ""),
        ("GET", "/api/v1/namespaces/x/pods/p", "", "", "get pods", "x", "p"),
        ("GET", "/api/v1/namespaces/x", "", "", "get namespaces", "", "x"),
        ("PATCH", "/api/v1/namespaces/x/status", "", "", "patch namespaces/status", "", "x"),
        ("PATCH", "/apis/g/v1/namespaces/x/wfes/w/status", "", "", "patch wfes/status", "x", "w"),
        ("DELETE", "/apis/g/v1/namespaces/x/wfes/w", "", "", "delete wfes", "x", "w"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/x/events", "", "named", "create events", "x", "fix.1.skipped"),
        ("GET", "/readyz", "", "", "get ", "", ""),
    ];
    for (method, path, query, body, what, namespace, name) in cases {
        let body = if body.is_empty() { b"".as_slice() } else { named };
        let request = Request::read(&Method::try_from(method).unwrap(), path, query, body);
        assert_eq!(
            (request.what().as_str(), request.namespace.as_str(), request.name.as_str()),
            (what, namespace, name),
            "{method} {path}?{query}"
        );
    }
}

#[test]
fn the_busiest_second_is_found() {
    let start = Instant::now();
    let times = |at: &[u64]| at.iter().map(|ms| start + Duration::from_millis(*ms)).collect::<Vec<_>>();
    assert_eq!(shared::busiest_second(&[]), 0);
    assert_eq!(shared::busiest_second(&times(&[0, 900, 1000, 1100, 1899])), 4);
    assert_eq!(shared::busiest_second(&times(&[0, 1000, 2000])), 1);
}

#[tokio::test]
async fn what_passes_is_unchanged_and_noted() {
    let stub = Stub::start();
    assert_eq!(stub.text().await, "200 write 1");
    assert_eq!(stub.seen.lock().unwrap().as_slice(), ["Bearer me"]);
    let log = stub.proxy.requests();
    assert_eq!((log[0].request.number, log[0].request.write), (1, Some(1)));
    assert_eq!((log[0].applied, log[0].answered), (Some(200), Some(200)));
    assert_eq!((log[0].request.what().as_str(), log[0].request.name.as_str()), ("create pipelineruns", "run-1"));
    assert_eq!(*log[0].request.body, Value::Null);
    assert_eq!(stub.proxy.busiest_second(log[0].at), 1);
}

#[tokio::test]
async fn a_refusal_looks_as_the_api_servers() {
    let stub = Stub::start();
    stub.proxy.on(|_| Fault::Refuse(Refusal::throttled(3)));
    let answer = stub.create().await.unwrap();
    assert_eq!((answer.status, answer.headers["retry-after"].to_str().unwrap()), (429, "3"));
    let status: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(429)));
    assert_eq!(status["details"]["retryAfterSeconds"], 3);
    stub.proxy.on(|_| Fault::Refuse(Refusal::throttled_plainly(3)));
    assert!(stub.text().await.starts_with("429 Too many requests"));
    assert_eq!(stub.seen(), 0);
    stub.proxy.heal();
    assert_eq!(stub.text().await, "200 write 1");
}

#[tokio::test]
async fn faults_before_forwarding_reach_nobody() {
    let stub = Stub::start();
    stub.proxy.on(|_| Fault::Close);
    assert!(stub.create().await.is_err());
    stub.proxy.on(|_| Fault::Drop);
    assert!(is_silent(stub.create()).await);
    assert_eq!(stub.seen(), 0);
}

#[tokio::test]
async fn faults_after_forwarding_keep_the_answer_back() {
    let stub = Stub::start();
    stub.proxy.on(|_| Fault::LoseAnswer);
    assert!(stub.create().await.is_err());
    assert_eq!(stub.seen(), 1);
    stub.proxy.on(|_| Fault::NeverAnswer);
    assert!(is_silent(stub.create()).await);
    assert_eq!(stub.seen(), 2);
    let log = stub.proxy.requests();
    assert!(log.iter().all(|passed| (passed.applied, passed.answered) == (Some(200), None)), "{log:?}");
}

#[tokio::test]
async fn a_duplicate_arrives_twice() {
    let stub = Stub::start();
    stub.proxy.on(|_| Fault::Duplicate { pause: Duration::ZERO, answer: Answer::Second });
    assert_eq!(stub.text().await, "200 write 2");
    stub.proxy.on(|_| Fault::Duplicate { pause: NEVER, answer: Answer::First });
    assert_eq!(stub.text().await, "200 write 3");
    assert_eq!(stub.seen(), 3);
    until(|| stub.seen() == 4).await;
}

#[tokio::test]
async fn a_late_request_arrives_though_its_sender_is_gone() {
    let stub = Stub::start();
    stub.proxy.on(|_| Fault::late(NEVER * 2));
    assert!(is_silent(stub.create()).await);
    assert_eq!(stub.seen(), 0);
    until(|| stub.seen() == 1).await;
}

#[tokio::test]
async fn a_gate_holds_one_request() {
    let stub = Stub::start();
    let mut before = stub.proxy.hold_write(2, When::Before);
    let mut after = stub.proxy.hold(When::After, |request| request.is("create pipelineruns") && request.number == 3);
    assert_eq!(stub.text().await, "200 write 1");
    let (held, ()) = tokio::join!(stub.create(), async {
        assert_eq!(before.reached().await.unwrap().name, "run-1");
        assert_eq!(stub.seen(), 1);
        before.open();
    });
    assert_eq!(held.unwrap().text(), "200 write 2");
    let (held, ()) = tokio::join!(stub.create(), async {
        after.reached().await.unwrap();
        assert_eq!(stub.seen(), 3);
        after.abort();
    });
    assert!(held.is_err());
    let gate = stub.proxy.hold(When::Before, Request::is_write);
    drop(gate);
    assert!(stub.create().await.is_err(), "a dropped gate aborts");
    assert_eq!(stub.text().await, "200 write 4");
}

#[tokio::test]
async fn a_watch_is_streamed_frozen_and_cut() {
    let stub = Stub::start();
    let mut watch = stub.watch().await;
    stub.events.send("a").unwrap();
    assert_eq!(next(&mut watch).await.as_deref(), Some("a"));
    stub.proxy.freeze_watches(true);
    stub.events.send("b").unwrap();
    assert!(is_silent(watch.next()).await);
    assert_eq!(stub.text().await, "200 write 1");
    stub.proxy.freeze_watches(false);
    assert_eq!(next(&mut watch).await.as_deref(), Some("b"));
    stub.proxy.cut_all();
    assert_eq!(next(&mut watch).await, None);
    stub.proxy.on(|_| Fault::Expire);
    let event: Value = serde_json::from_str(&next(&mut stub.watch().await).await.unwrap()).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn a_partition_delays_all_that_was_on_its_way() {
    let stub = Stub::start();
    let mut watch = stub.watch().await;
    stub.proxy.partition(true);
    stub.events.send("a").unwrap();
    assert!(is_silent(async { tokio::join!(watch.next(), stub.create()) }).await);
    assert_eq!(stub.seen(), 0);
    stub.proxy.heal();
    assert_eq!(next(&mut watch).await.as_deref(), Some("a"));
    until(|| stub.seen() == 1).await;
    assert_eq!(stub.text().await, "200 write 2");
}

#[tokio::test]
async fn a_gate_that_opens_into_a_partition_lets_nothing_pass() {
    let stub = Stub::start();
    let mut gate = stub.proxy.hold_write(1, When::Before);
    let (held, ()) = tokio::join!(stub.create(), async {
        gate.reached().await.unwrap();
        stub.proxy.partition(true);
        gate.open();
        tokio::time::sleep(NEVER).await;
        assert_eq!(stub.seen(), 0);
        stub.proxy.partition(false);
    });
    assert_eq!(held.unwrap().text(), "200 write 1");
}
