//! Records when each watch last delivered a change or a bookmark, and when it was accepted.
//!
//! A layer of the client records that a watch was accepted, and that its bytes arrive. The operator trusts neither a
//! view whose watch has long been silent (section 5.10), nor a list without a watch after it. Acceptance alone proves
//! nothing: an API server with a stalled cache accepts one watch after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::{Layer, Service};
use wfe_view::index::Kind;

/// The shared record of all watches. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Staleness {
    heard: Arc<Mutex<HashMap<Kind, Instant>>>,
    /// In the order of `Kind::ALL`.
    accepted: Arc<[watch::Sender<()>; Kind::ALL.len()]>,
}

impl Default for Staleness {
    fn default() -> Self {
        Self { heard: Arc::default(), accepted: Arc::new(Kind::ALL.map(|_| watch::Sender::default())) }
    }
}

impl Staleness {
    /// Records that a watch, or the list that renews it, has just delivered something.
    pub fn heard(&self, kind: Kind) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, Instant::now());
    }

    /// Records that the API server accepted a watch.
    pub fn accepted(&self, kind: Kind) {
        self.accepted[kind as usize].send_replace(());
    }

    /// Returns a receiver that is notified when a watch is accepted from now on.
    #[must_use]
    pub fn acceptance(&self, kind: Kind) -> watch::Receiver<()> {
        self.accepted[kind as usize].subscribe()
    }

    /// Returns for how long a watch has been silent; zero before its first delivery.
    #[must_use]
    pub fn silence(&self, kind: Kind) -> Duration {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get(&kind).map(Instant::elapsed).unwrap_or_default()
    }

    /// Returns whether a watch delivered something after this moment.
    #[must_use]
    pub fn is_heard_since(&self, kind: Kind, moment: Instant) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get(&kind).is_some_and(|heard| *heard > moment)
    }

    /// Returns the watch with the longest silence among those that every target needs, and that silence.
    #[must_use]
    pub fn longest_silence(&self) -> (Kind, Duration) {
        let silences = Kind::NEEDED.map(|kind| (kind, self.silence(kind)));
        silences.into_iter().max_by_key(|(_, silence)| *silence).unwrap_or((Kind::Execution, Duration::ZERO))
    }
}

/// The layer that adds the recording service to the client.
#[derive(Clone, Debug)]
pub struct StalenessLayer(Staleness);

impl StalenessLayer {
    /// Makes the layer.
    #[must_use]
    pub fn new(staleness: Staleness) -> Self {
        Self(staleness)
    }
}

impl<S> Layer<S> for StalenessLayer {
    type Service = Listening<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Listening { inner, staleness: self.0.clone() }
    }
}

/// Records acceptance and bytes of watches.
#[derive(Clone, Debug)]
pub struct Listening<S> {
    inner: S,
    staleness: Staleness,
}

impl<S, B> Service<Request<Body>> for Listening<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<UnsyncBoxBody<bytes::Bytes, B::Error>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let watched = watched_kind(request.uri());
        let staleness = self.staleness.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if let Some(kind) = watched.filter(|_| answer.status().is_success()) {
                staleness.accepted(kind);
            }
            Ok(answer.map(|body| match watched {
                Some(kind) => body
                    .map_frame(move |frame| {
                        staleness.heard(kind);
                        frame
                    })
                    .boxed_unsync(),
                None => body.boxed_unsync(),
            }))
        })
    }
}

/// Returns the kind of object that a watch request asks for; `None` for any other request.
fn watched_kind(uri: &http::Uri) -> Option<Kind> {
    uri.query()?.split('&').find(|pair| *pair == "watch=true")?;
    let plural = uri.path().rsplit('/').next()?;
    Kind::ALL.into_iter().find(|kind| kind.label() == plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watches_are_listened_to() {
        let kind = |uri: &str| watched_kind(&uri.parse().unwrap());
        assert_eq!(kind("/apis/tekton.dev/v1/namespaces/x/pipelineruns?watch=true&timeoutSeconds=9"), Some(Kind::Run));
        assert_eq!(kind("/api/v1/namespaces/x/pods?labelSelector=a&watch=true"), Some(Kind::Pod));
        assert_eq!(kind("/api/v1/namespaces?watch=true"), Some(Kind::Namespace));
        assert_eq!(kind("/apis/kubernaut.ai/v1alpha1/workflowschedules?watch=true"), Some(Kind::Schedule));
        assert_eq!(kind("/apis/tekton.dev/v1/namespaces/x/pipelineruns?limit=500"), None);
        assert_eq!(kind("/apis/tekton.dev/v1/namespaces/x/pipelineruns/name"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_when_a_watch_was_last_heard_of() {
        let staleness = Staleness::default();
        let begun = Instant::now();
        assert_eq!(staleness.silence(Kind::Run), Duration::ZERO);
        assert!(!staleness.is_heard_since(Kind::Run, begun), "it was never heard of");
        staleness.heard(Kind::Run);
        staleness.heard(Kind::Pod);
        tokio::time::advance(Duration::from_secs(5)).await;
        staleness.heard(Kind::Pod);
        assert_eq!(staleness.longest_silence(), (Kind::Run, Duration::from_secs(5)));
        assert!(staleness.is_heard_since(Kind::Pod, begun) && !staleness.is_heard_since(Kind::Run, begun));
        staleness.heard(Kind::Schedule);
        staleness.heard(Kind::Run);
        staleness.heard(Kind::Pod);
        tokio::time::advance(Duration::from_secs(1)).await;
        staleness.heard(Kind::Run);
        staleness.heard(Kind::Pod);
        assert_eq!(staleness.silence(Kind::Schedule), Duration::from_secs(1));
        assert_eq!(staleness.longest_silence().1, Duration::ZERO, "schedules are needed for schedules alone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_accepted_has_not_been_heard_of() {
        let staleness = Staleness::default();
        staleness.heard(Kind::Run);
        tokio::time::advance(Duration::from_secs(125)).await;
        staleness.accepted(Kind::Run);
        assert_eq!(staleness.silence(Kind::Run), Duration::from_secs(125));
    }

    #[tokio::test]
    async fn a_watch_is_accepted_anew_each_time_and_for_its_kind_alone() {
        let staleness = Staleness::default();
        staleness.accepted(Kind::Run);
        let mut runs = staleness.acceptance(Kind::Run);
        assert!(!runs.has_changed().unwrap(), "what was before does not count");
        staleness.accepted(Kind::Pod);
        assert!(!runs.has_changed().unwrap());
        staleness.accepted(Kind::Run);
        assert!(runs.changed().await.is_ok());
    }
}
