//! Calls the API server. Every request has a time-out, a label in the metrics, and no hidden retry.
//!
//! The defaults of kube do not fit. They set no time-out for an answer, and silently retry a write up to fifteen times
//! within minutes. Here the engine's queue retries, and reads the target again before each retry.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::client::{Body, ClientBuilder};
use kube::core::DynamicResourceScope;
use kube::{Api, Client, Config, Resource};
use serde_json::Value;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};
use wfe_core::residue::ResidueKind;
use wfe_settings::policies::Half;
use wfe_view::call::{CallError, within};
use wfe_view::index::Kind;
use wfe_view::partial::PartialObject;
use wfe_view::source::{Pages, namespace_of, objects};

use crate::cluster::concurrency_limit::ConcurrencyLimit;
use crate::cluster::lane::Lane;
use crate::cluster::leadership::Leadership;
use crate::cluster::staleness::{Staleness, StalenessLayer};
use crate::metrics::Metrics;
use crate::verb::Verb;

/// The time-out of a request. The API server gives an admission webhook ten seconds. With a longer time-out here, the
/// time-out of a webhook appears as its own error, and not as an unknown outcome.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The writes whose latency measures how busy the API server is. Nearly all writes of a burst are of these kinds, and
/// webhooks of other projects rarely apply to them.
const PACED: [&str; 2] = [wfe_tekton::PLURAL, "workflowexecutions/status"];
/// The time-out for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The API server, with the resources that the operator uses.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    execution_namespace: Arc<str>,
    leadership: Leadership,
    metrics: Metrics,
    concurrency_limit: ConcurrencyLimit,
    /// The lane that limits the requests of one namespace; `None` for the operator's own requests.
    lane: Option<Lane>,
}

impl Cluster {
    /// Connects with this configuration, but with the operator's own time-outs and without retries. Writes are sent
    /// only while this process leads.
    ///
    /// # Errors
    /// If the configuration cannot be used, for example because a certificate cannot be read.
    pub fn connect(
        mut config: Config,
        execution_namespace: &str,
        leadership: Leadership,
        metrics: Metrics,
        staleness: Staleness,
    ) -> Result<Self, kube::Error> {
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // A watch lasts long; `watch` sets its time-out. `call` limits the other requests.
        config.read_timeout = None;
        let client = ClientBuilder::try_from(config)?.with_layer(&StalenessLayer::new(staleness)).build();
        Ok(Self::of(client, execution_namespace, leadership, metrics))
    }

    /// Connects to an API server that runs as a service in this process, without sockets and TLS; otherwise like
    /// [`connect`](Self::connect).
    #[must_use]
    pub fn over<S, B>(
        service: S,
        execution_namespace: &str,
        leadership: Leadership,
        metrics: Metrics,
        staleness: Staleness,
    ) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let client = Client::new(StalenessLayer::new(staleness).layer(service), "default");
        Self::of(client, execution_namespace, leadership, metrics)
    }

    fn of(client: Client, execution_namespace: &str, leadership: Leadership, metrics: Metrics) -> Self {
        Self {
            client,
            execution_namespace: execution_namespace.into(),
            leadership,
            metrics,
            concurrency_limit: ConcurrencyLimit::default(),
            lane: None,
        }
    }

    /// Returns the same cluster with another execution namespace.
    #[must_use]
    pub fn with_execution_namespace(self, execution_namespace: &str) -> Self {
        Self { execution_namespace: execution_namespace.into(), ..self }
    }

    /// Returns the same cluster with this lane for its requests.
    #[must_use]
    pub fn in_lane(self, lane: Lane) -> Self {
        Self { lane: Some(lane), ..self }
    }

    /// Returns the measured latency of the API server.
    #[must_use]
    pub fn concurrency_limit(&self) -> ConcurrencyLimit {
        self.concurrency_limit.clone()
    }

    /// Returns the namespace of all `PipelineRuns`.
    #[must_use]
    pub fn execution_namespace(&self) -> &str {
        &self.execution_namespace
    }

    /// Returns the `ConfigMaps` of one namespace.
    #[must_use]
    pub fn config_maps_in(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Returns the `WorkflowExecutions` of one namespace.
    #[must_use]
    pub fn executions_in(&self, namespace: &str) -> Api<PartialObject> {
        objects(&self.client, Kind::Execution, Some(namespace))
    }

    /// Returns the `WorkflowSchedules` of one namespace as whole objects, because a child is created from the whole
    /// template.
    #[must_use]
    pub fn schedules_in(&self, namespace: &str) -> Api<DynamicObject> {
        objects(&self.client, Kind::Schedule, Some(namespace))
    }

    /// Returns the `PipelineRuns` of the execution namespace.
    #[must_use]
    pub fn runs(&self) -> Api<PartialObject> {
        self.in_execution_namespace(Kind::Run)
    }

    /// Returns the descendants of runs of one kind.
    #[must_use]
    pub fn descendants(&self, kind: ResidueKind) -> Api<PartialObject> {
        self.in_execution_namespace(match kind {
            ResidueKind::TaskRun => Kind::TaskRun,
            ResidueKind::CustomRun => Kind::CustomRun,
            ResidueKind::PipelineRun => Kind::Run,
            ResidueKind::Pod => Kind::Pod,
        })
    }

    /// Returns the resource of a watch. Executions and schedules are watched in `watch_namespace`, or in all namespaces
    /// if it is `None`.
    #[must_use]
    pub fn watched<K>(&self, kind: Kind, watch_namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        objects(&self.client, kind, namespace_of(kind, &self.execution_namespace, watch_namespace))
    }

    fn in_execution_namespace<K>(&self, kind: Kind) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        objects(&self.client, kind, Some(&self.execution_namespace))
    }

    /// Returns the events of one namespace.
    #[must_use]
    pub fn events_in(&self, namespace: &str) -> Api<k8s_openapi::api::events::v1::Event> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Returns the admission policies of the cluster, or their bindings, as stored.
    #[must_use]
    pub fn admission(&self, half: Half) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", half.kind());
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, half.plural()))
    }

    /// Returns the CRDs of the cluster, as stored.
    #[must_use]
    pub fn crds(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions"))
    }

    /// Reads the schemas that the API server publishes for our API group. They lag about half a second behind the CRD.
    pub fn published_schemas(&self) -> impl Future<Output = kube::Result<Value>> {
        let client = self.client.clone();
        async move {
            let path = format!("/openapi/v3/apis/{}/{}", wfe_api::GROUP, wfe_api::VERSION);
            let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            client.request(request).await
        }
    }

    /// Returns the resource for questions about other users, such as `TokenReviews`.
    #[must_use]
    pub fn reviews<K: Resource<DynamicType = (), Scope = ClusterResourceScope>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// Returns the Leases of one namespace.
    #[must_use]
    pub fn leases_in(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Sends one request with a time-out when its lane has room, and counts the request. A write is sent only while
    /// this process leads. Leadership is checked directly before, and an unanswered write is abandoned at the end of
    /// the term.
    ///
    /// # Errors
    /// The error of the request.
    pub async fn call<T>(
        &self,
        verb: Verb,
        resource: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        let _place = match &self.lane {
            Some(lane) => Some(lane.enter().await),
            None => None,
        };
        let answer = self.ask(verb, resource, REQUEST_TIMEOUT, request);
        if verb.is_write() {
            return self.leadership.guard(answer).await.unwrap_or(Err(CallError::NotLeading));
        }
        answer.await
    }

    /// Sends one request with this time-out, and counts the request. Leadership is not checked.
    ///
    /// # Errors
    /// The error of the request.
    pub async fn ask<T>(
        &self,
        verb: Verb,
        resource: &'static str,
        limit: Duration,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        let begun = Instant::now();
        let result = within(limit, request).await;
        if result.is_ok() && verb.is_write() && PACED.contains(&resource) {
            self.concurrency_limit.wrote(verb, resource, begun.elapsed());
        }
        self.metrics.api_request(verb, resource, result.as_ref().err().map_or(200, CallError::code));
        result
    }

    /// Lists all objects that match a selection, page by page. Each page is one request.
    ///
    /// # Errors
    /// The error of a request.
    pub async fn list(
        &self,
        resource: &'static str,
        objects: &Api<PartialObject>,
        selection: ListParams,
    ) -> Result<Vec<DynamicObject>, CallError> {
        let mut pages = Pages::of(selection);
        while let Some(params) = pages.next() {
            let page = self.call(Verb::List, resource, objects.list(params)).await?;
            pages.take_in(page, |_| true);
        }
        Ok(pages.into_objects())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    use crate::verb::Verb;

    /// One write in twenty fails at once, with a conflict or without a connection. Other writes are of kinds that
    /// foreign webhooks apply to. The API server's own work takes the same time for every write.
    #[tokio::test(start_paused = true)]
    async fn what_is_refused_at_once_does_not_make_the_api_server_look_slow() {
        let service =
            tower::service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(BoxError::from("not asked")) });
        let metrics = Metrics::new().unwrap();
        let cluster = Cluster::over(service, "runs", Leadership::without_election(), metrics, Staleness::default());
        let answer = async |verb, resource, milliseconds, result: kube::Result<()>| {
            let request = async {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                result
            };
            drop(cluster.call(verb, resource, request).await);
        };
        for number in 0..2_000 {
            let refused = match number % 40 {
                0 => Some(kube::Error::Api(Status { code: 409, ..Status::default() }.boxed())),
                20 => Some(kube::Error::Service("connection refused".into())),
                _ => None,
            };
            answer(
                Verb::Patch,
                "workflowexecutions/status",
                if refused.is_some() { 0 } else { 4 },
                refused.map_or(Ok(()), Err),
            )
            .await;
            answer(Verb::Create, "workflowexecutions", if number % 2 == 0 { 4 } else { 400 }, Ok(())).await;
        }
        let slowdown = cluster.concurrency_limit().slowdown();
        assert!((0.9..1.1).contains(&slowdown), "{slowdown}");
    }
}
