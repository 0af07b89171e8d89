//! Writing the events: how many wait, how many are written at once, and how often one is tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use tokio::sync::mpsc;
use wfe_core::backoff::Backoff;
use wfe_view::call::CallError;

use super::Announcement;
use crate::client::Cluster;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::verb::Verb;

/// How many events may wait to be written: more than a storm of ten thousand skips makes, which lost a quarter of its
/// events when four thousand could wait; some 8 MB. Beyond it events are dropped and counted, as decisions must not
/// wait for them.
const WAITING: usize = 16_384;
/// How many are written at once.
const PARALLEL: usize = 4;
/// The API server refuses a longer `reportingInstance`.
const MAX_INSTANCE: usize = 128;
/// How often and how fast an event is tried.
const TRIES: u32 = 4;
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(250), Duration::from_secs(5), 5);

/// Where events are handed in. Cheap to clone; never waits.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<Announcement>,
    metrics: Metrics,
}

impl Events {
    /// Hands an event in. When too many wait already it is dropped and counted.
    pub fn announce(&self, announcement: Announcement) {
        if self.sender.try_send(announcement).is_err() {
            self.metrics.event_lost();
        }
    }
}

/// Writes the events that are handed in, until all senders are gone.
pub struct EventWriter {
    receiver: mpsc::Receiver<Announcement>,
    cluster: Cluster,
    metrics: Metrics,
    instance: Arc<str>,
    run_namespace: Arc<str>,
    clock: Clock,
}

/// Makes the two ends. `instance` is what `reportingInstance` shows: the name of the pod or host.
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
    /// Writes until all senders are gone and nothing waits any more.
    pub async fn run(self) {
        let Self { receiver, cluster, metrics, instance, run_namespace, clock } = self;
        let forbidden = AtomicBool::new(false);
        futures::stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|next| (next, receiver)) })
            .for_each_concurrent(PARALLEL, |announcement| {
                let event = announcement.render(&instance, &run_namespace, clock.timestamp());
                write(&cluster, &metrics, &forbidden, event)
            })
            .await;
    }
}

async fn write(cluster: &Cluster, metrics: &Metrics, forbidden: &AtomicBool, event: Event) {
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let name = event.metadata.name.clone().unwrap_or_default();
    let api = cluster.events_in(&namespace);
    let params = PostParams::default();
    for attempt in 1..=TRIES {
        match cluster.call(Verb::Create, "events", api.create(&params, &event)).await {
            Ok(_) => {
                forbidden.store(false, Ordering::Relaxed);
                return;
            }
            Err(error @ CallError::Refused(_)) => match error.code() {
                409 => return, // written before a crash, or its answer was lost
                429 | 500.. => tokio::time::sleep(error.retry_after().unwrap_or(RETRY.after(attempt))).await,
                // Once in a row: a storm of skips would say it a thousand times.
                _ if error.lacks_right() && !forbidden.swap(true, Ordering::Relaxed) => {
                    tracing::warn!(event = name, %error, "events are refused, and lost; all else goes on");
                    break;
                }
                _ => {
                    // Also a namespace that is being deleted: there is nobody left to tell.
                    tracing::debug!(event = name, %error, "event refused");
                    break;
                }
            },
            // Whoever leads next has nothing to tell of it.
            Err(CallError::NotLeading) => break,
            Err(_) => tokio::time::sleep(RETRY.after(attempt)).await,
        }
    }
    metrics.event_lost();
}
