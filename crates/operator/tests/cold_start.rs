//! Tests how much memory a start takes when all objects have the largest possible size, and how a watch handles what it
//! cannot read. A real client reads the answers of a simulated API server.

// The whole file is test code. With this attribute, clippy allows helpers to panic as tests do.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use wfe_core::Time;
use wfe_operator::cluster::client::Cluster;
use wfe_operator::cluster::crds::Crds;
use wfe_operator::cluster::leadership::Leadership;
use wfe_operator::cluster::staleness::Staleness;
use wfe_operator::cluster::watch::Watch;
use wfe_operator::health::Health;
use wfe_operator::metrics::Metrics;
use wfe_view::index::{Delivery, Index, Kind};

/// The number of large executions.
const EXECUTIONS: u32 = 500;
/// The size of one execution in bytes, as sent: larger than any that the CRD accepts.
const OBJECT: usize = 545_000;
/// The total size of its parameters, in bytes.
const PARAMETERS: usize = 64_000;
/// The limit of memory that a start may add to the process, in kB. The operator itself needs some 20 MB, and the
/// chart's limit is 256 MB.
const MOST: u64 = 128_000;

fn uid(number: u32) -> String {
    format!("{number:08x}-7a0e-4b9f-000e-5d0a00000000")
}

fn execution(number: u32) -> Value {
    json!({
        "metadata": {"name": format!("e-{number}"), "namespace": "ops", "uid": uid(number), "resourceVersion": "7"},
        "spec": {
            "workflowRef": {"workflowId": "restart", "version": "1", "containerImage": "registry.example/restart:1"},
            "targetResource": "payment/deployment/payment-api",
        },
    })
}

/// Returns an execution of the largest size. A replica keeps only a small part of it.
fn large() -> Value {
    let mut object = execution(0);
    object["spec"]["parameters"] = json!({"TEXT": "x".repeat(PARAMETERS)});
    let rest = OBJECT - PARAMETERS - 3_000;
    object["metadata"]["managedFields"] = json!([{"fieldsV1": {"f:spec": "y".repeat(rest - 32_000)}}]);
    object["spec"]["rationale"] = "z".repeat(32_000).into();
    object
}

/// Reads one request and returns its path and query.
async fn asked(connection: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    Some(head.split(' ').nth(1).unwrap_or_default().to_owned())
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";

/// Answers a list with these objects, one after the other. The answer is never in memory as a whole.
async fn list(connection: &mut TcpStream, objects: impl Iterator<Item = String>) -> std::io::Result<()> {
    connection.write_all(HEAD).await?;
    connection.write_all(b"{\"apiVersion\":\"v1\",\"items\":[").await?;
    for (place, object) in objects.enumerate() {
        if place > 0 {
            connection.write_all(b",").await?;
        }
        connection.write_all(object.as_bytes()).await?;
    }
    connection.write_all(b"],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"9\"}}").await?;
    connection.shutdown().await
}

/// How the server answers each watch.
#[derive(Clone, Copy)]
enum Watching {
    /// Delivers these lines and stays open.
    Brings(&'static [&'static str]),
    /// Refuses the watch because its version is too old.
    Expired,
    /// Answers this many requests as if the kind did not exist. Then its CRD is installed, and a watch stays open.
    NotInstalled(u32),
}

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"no such kind\"}";

const GONE: &[u8] = b"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410,\"message\":\"too old\"}";

/// Simulates an API server. Each list contains the objects from `objects`, and each watch is answered according to
/// `watching`.
async fn play(listener: TcpListener, objects: fn() -> Box<dyn Iterator<Item = String> + Send>, watching: Watching) {
    let requests = Arc::new(AtomicU32::new(0));
    loop {
        let Ok((mut connection, _)) = listener.accept().await else { return };
        let requests = Arc::clone(&requests);
        tokio::spawn(async move {
            let Some(path) = asked(&mut connection).await else { return };
            if path.contains("customresourcedefinitions") {
                // Another test covers whether the CRD has all fields.
                connection.write_all(NOT_FOUND).await.unwrap();
                connection.shutdown().await.unwrap();
                return;
            }
            let before = requests.fetch_add(1, Ordering::Relaxed);
            if matches!(watching, Watching::NotInstalled(until) if before < until) {
                connection.write_all(NOT_FOUND).await.unwrap();
                connection.shutdown().await.unwrap();
                return;
            }
            if !path.contains("watch=true") {
                let _ = list(&mut connection, objects()).await; // a client that has seen enough closes the connection
                return;
            }
            match watching {
                Watching::Brings(_) | Watching::NotInstalled(_) => {
                    let changes = if let Watching::Brings(changes) = watching { changes } else { &[] };
                    connection.write_all(HEAD).await.unwrap();
                    for change in changes {
                        connection.write_all(format!("{change}\n").as_bytes()).await.unwrap();
                    }
                    connection.flush().await.unwrap();
                    // The watch stays open until the client closes the connection.
                    let _ = connection.read_u8().await;
                }
                Watching::Expired => {
                    connection.write_all(GONE).await.unwrap();
                    connection.shutdown().await.unwrap();
                }
            }
        });
    }
}

/// Follows the executions of a simulated API server.
async fn follow(
    objects: fn() -> Box<dyn Iterator<Item = String> + Send>,
    watching: Watching,
) -> (mpsc::Receiver<Delivery>, Metrics) {
    let (deliveries, metrics, _) = follow_kind(Kind::Execution, objects, watching).await;
    (deliveries, metrics)
}

/// Follows the objects of one kind of a simulated API server.
async fn follow_kind(
    kind: Kind,
    objects: fn() -> Box<dyn Iterator<Item = String> + Send>,
    watching: Watching,
) -> (mpsc::Receiver<Delivery>, Metrics, Health) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(play(listener, objects, watching));
    let (metrics, staleness) = (Metrics::new().unwrap(), Staleness::default());
    let config = kube::Config::new(url.parse().unwrap());
    let leadership = Leadership::without_election();
    let cluster = Cluster::connect(config, "runs", leadership, metrics.clone(), staleness.clone()).unwrap();
    let health = Health::new();
    let watch = Watch {
        kind,
        api: cluster.watched(kind, None),
        execution_namespace: "runs".to_owned(),
        max_staleness: Duration::from_mins(3),
        health: health.clone(),
        staleness,
        crds: Crds::new(cluster.clone(), health.clone(), metrics.clone()),
        metrics: metrics.clone(),
    };
    let (sender, deliveries) = mpsc::channel(1024);
    tokio::spawn(watch.follow(sender));
    (deliveries, metrics, health)
}

async fn next(deliveries: &mut mpsc::Receiver<Delivery>) -> Delivery {
    tokio::time::timeout(Duration::from_mins(2), deliveries.recv()).await.unwrap().unwrap()
}

/// Returns the peak memory of this process, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_start_with_five_hundred_of_the_largest_executions_stays_far_below_the_charts_limit() {
    let (mut deliveries, _) = follow(
        || {
            let object = serde_json::to_string(&large()).unwrap();
            Box::new((0..EXECUTIONS).map(move |number| object.replacen(&uid(0), &uid(number), 1)))
        },
        Watching::Brings(&[]),
    )
    .await;
    let before = peak();
    let mut index = Index::new(None);
    let mut executions = 0;
    loop {
        let delivery = next(&mut deliveries).await;
        executions += u32::from(matches!(delivery, Delivery::Execution(_)));
        let is_end = matches!(delivery, Delivery::ListEnds(_));
        index.apply(delivery, Time::UNIX_EPOCH);
        if is_end {
            break;
        }
    }
    assert_eq!((executions, index.len()), (EXECUTIONS, 1));
    let more = peak() - before;
    println!("{more} kB for {executions} executions of {OBJECT} bytes");
    assert!(more < MOST, "{more} kB more, of {MOST} at the most");
}

#[tokio::test]
async fn an_object_that_cannot_be_read_harms_no_other_and_a_change_that_cannot_be_read_is_a_gap() {
    let (mut deliveries, metrics) = follow(
        || {
            let one = |number| execution(number).to_string();
            let deep = format!(r#""spec":{{"free":{}1{},"#, "[".repeat(5000), "]".repeat(5000));
            Box::new([one(1), one(2).replacen(r#""spec":{"#, &deep, 1), one(3)].into_iter())
        },
        Watching::Brings(&[r#"{"type":"MODIFIED","object":{"metadata":{"name":7}}}"#]),
    )
    .await;
    for turn in 0..2 {
        assert!(matches!(next(&mut deliveries).await, Delivery::ListBegins(Kind::Execution)), "{turn}");
        for _ in 0..3 {
            let delivery = next(&mut deliveries).await;
            assert!(matches!(delivery, Delivery::Execution(_)), "{delivery:?}");
        }
        assert!(matches!(next(&mut deliveries).await, Delivery::ListEnds(Kind::Execution)), "{turn}");
    }
    let page = String::from_utf8(metrics.render().unwrap()).unwrap();
    let line = "workflowexecution_unread_objects_total{resource=\"workflowexecutions\"} 2";
    assert!(page.contains(line), "{page}");
}

#[tokio::test]
async fn a_watch_that_is_refused_as_its_version_is_too_old_begins_anew_with_a_list() {
    let one = || -> Box<dyn Iterator<Item = String> + Send> { Box::new([execution(1).to_string()].into_iter()) };
    let (mut deliveries, _) = follow(one, Watching::Expired).await;
    for turn in 0..3 {
        assert!(matches!(next(&mut deliveries).await, Delivery::ListBegins(Kind::Execution)), "{turn}");
        // No watch follows the list, so nothing marks it as complete.
        assert!(matches!(next(&mut deliveries).await, Delivery::Execution(_)), "{turn}");
    }
}

#[tokio::test]
async fn schedules_are_followed_as_soon_as_their_crd_is_installed_and_nothing_else_waits_for_that() {
    let one = || -> Box<dyn Iterator<Item = String> + Send> {
        Box::new([json!({"metadata": {"name": "s", "namespace": "ops", "uid": "s"}}).to_string()].into_iter())
    };
    let missing = 3;
    let (mut deliveries, _, health) = follow_kind(Kind::Schedule, one, Watching::NotInstalled(missing)).await;
    health.engine_alive(true, None);
    for turn in 0..=missing {
        assert!(matches!(next(&mut deliveries).await, Delivery::ListBegins(Kind::Schedule)), "{turn}");
        assert_eq!((health.ready(), health.failing()), (Ok(()), None), "{turn}");
        if turn > 0 {
            let why = health.failure(Kind::Schedule).unwrap();
            assert!(why.contains("no such kind; install the CRD"), "{turn}: {why}");
        }
    }
    assert!(matches!(next(&mut deliveries).await, Delivery::Schedule(_)));
    assert!(matches!(next(&mut deliveries).await, Delivery::ListEnds(Kind::Schedule)));
    assert_eq!(health.failure(Kind::Schedule), None);
}
