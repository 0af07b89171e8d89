//! Writes the events: limits how many wait and how many are written in parallel, and retries failed writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use tokio::sync::mpsc;
use wfe_core::backoff::Backoff;
use wfe_view::call::CallError;
use wfe_view::index::EndShown;

use super::NewEvent;
use crate::clock::Clock;
use crate::cluster::client::Cluster;
use crate::metrics::Metrics;
use crate::verb::Verb;

/// How many events may wait to be written. A storm of ten thousand skips lost a quarter of its events with a limit of
/// four thousand. A full queue takes some 8 MB. Beyond the limit events are dropped and counted, because decisions must
/// not wait for them.
const WAITING: usize = 16_384;
/// How many events are written in parallel.
const PARALLEL: usize = 4;
/// The limit of a `reportingInstance`: the API server refuses a longer one.
const MAX_INSTANCE: usize = 128;
/// How many times an event is tried, and the delays between the tries.
const TRIES: u32 = 4;
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(250), Duration::from_secs(5), 5);

/// Accepts events without waiting. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<NewEvent>,
    metrics: Metrics,
}

impl Events {
    /// Adds an event. If too many events wait already, the new event is dropped and counted.
    pub fn announce(&self, announcement: NewEvent) {
        if self.sender.try_send(announcement).is_err() {
            self.metrics.event_lost();
        }
    }
}

/// Writes the added events until all senders are dropped.
pub struct EventWriter {
    receiver: mpsc::Receiver<NewEvent>,
    cluster: Cluster,
    metrics: Metrics,
    instance: Arc<str>,
    run_namespace: Arc<str>,
    clock: Clock,
}

/// Makes the sender of events and their writer. `instance` is the `reportingInstance`: the name of the pod or host.
#[must_use]
pub fn channel(
    cluster: Cluster,
    metrics: Metrics,
    clock: Clock,
    instance: &str,
    run_namespace: &str,
) -> (Events, EventWriter) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let writer = EventWriter {
        receiver,
        cluster,
        metrics: metrics.clone(),
        instance: instance[..instance.floor_char_boundary(MAX_INSTANCE)].into(),
        run_namespace: run_namespace.into(),
        clock,
    };
    (Events { sender, metrics }, writer)
}

impl EventWriter {
    /// Writes events until all senders are dropped and no event waits.
    pub async fn run(self) {
        let Self { receiver, cluster, metrics, instance, run_namespace, clock } = self;
        let forbidden = AtomicBool::new(false);
        futures::stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|next| (next, receiver)) })
            .for_each_concurrent(PARALLEL, |announcement| {
                let event = announcement.render(&instance, &run_namespace, clock.timestamp());
                write(&cluster, &metrics, &forbidden, event, announcement.end)
            })
            .await;
    }
}

async fn write(cluster: &Cluster, metrics: &Metrics, forbidden: &AtomicBool, event: Event, end: Option<Box<EndShown>>) {
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let name = event.metadata.name.clone().unwrap_or_default();
    let api = cluster.events_in(&namespace);
    let params = PostParams::default();
    for attempt in 1..=TRIES {
        match cluster.call(Verb::Create, "events", api.create(&params, &event)).await {
            Ok(_) => {
                forbidden.store(false, Ordering::Relaxed);
                if let Some(end) = end {
                    metrics.end_shown(&end);
                    tracing::info!(event = name, "told of an end that whoever wrote it had not told of");
                }
                return;
            }
            Err(error @ CallError::Refused(_)) => match error.code() {
                409 => return, // written before a crash, or the answer was lost
                429 | 500.. => tokio::time::sleep(error.retry_after().unwrap_or(RETRY.after(attempt))).await,
                // Logged once, and again only after a success: a storm of skips would otherwise log it a thousand
                // times.
                _ if error.lacks_right() && !forbidden.swap(true, Ordering::Relaxed) => {
                    tracing::warn!(event = name, %error, "events are refused, and lost; all else goes on");
                    break;
                }
                _ => {
                    // For example in a namespace that is being deleted, whose events nobody reads.
                    tracing::debug!(event = name, %error, "event refused");
                    break;
                }
            },
            // The next leader announces ends, but no other events.
            Err(CallError::NotLeading) => break,
            Err(_) => tokio::time::sleep(RETRY.after(attempt)).await,
        }
    }
    metrics.event_lost();
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use chrono::DateTime;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use wfe_api::SkipReason;
    use wfe_core::name::{ExecutionId, Uid};
    use wfe_view::index::EndPhase;

    use super::*;
    use crate::cluster::leadership::Leadership;
    use crate::cluster::staleness::Staleness;

    /// Announces an end that another process wrote. Returns the page of metrics after the API server has answered with
    /// this code.
    async fn told(phase: EndPhase, code: u16) -> String {
        let body = if code == 201 {
            r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"eventTime":null}"#
        } else {
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409,"message":""}"#
        };
        let service = tower::service_fn(move |_: Request<Body>| async move {
            Ok::<_, Infallible>(Response::builder().status(code).body(Full::new(bytes::Bytes::from(body))).unwrap())
        });
        let metrics = Metrics::new().unwrap();
        let leadership = Leadership::without_election();
        let cluster = Cluster::over(service, "runs", leadership, metrics.clone(), Staleness::default());
        let (events, writer) = channel(cluster, metrics.clone(), Clock::system(), "test", "runs");
        let execution = ExecutionId { namespace: "ops".into(), name: "fix".into(), uid: Uid::new("u") };
        let (reason, message) = ("Reason".into(), "message".into());
        let end = EndShown { at: DateTime::UNIX_EPOCH, phase, reason, message, ran_for: Some(Duration::from_secs(3)) };
        events.announce(NewEvent::end_shown(&execution, end));
        drop(events);
        writer.run().await;
        String::from_utf8(metrics.render().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn an_end_that_another_process_wrote_is_counted_where_its_event_was_not_there() {
        let early = |backs_off| EndPhase::Skipped { reason: SkipReason::RecentlyRemediated, backs_off };
        for (phase, lines) in [
            (EndPhase::Completed, vec![r#"workflowexecution_total{outcome="Completed"} 1"#]),
            (EndPhase::Failed, vec![r#"workflowexecution_total{outcome="Failed"} 1"#]),
            (early(false), vec![r#"workflowexecution_skip_total{reason="RecentlyRemediated"} 1"#]),
            (
                early(true),
                vec![
                    r#"workflowexecution_total{outcome="Skipped"} 1"#,
                    r#"workflowexecution_backoff_skip_total{reason="RecentlyRemediated"} 1"#,
                ],
            ),
        ] {
            let (created, known) = (told(phase, 201).await, told(phase, 409).await);
            for line in lines {
                assert!(created.contains(line), "{line} is missing:\n{created}");
                assert!(!known.contains(line), "{phase:?} was told before");
            }
            assert!(known.contains("workflowexecution_events_lost_total 0"), "{known}");
        }
    }
}
