//! The one way to talk to the API server: every request has a time-out, a label, and no hidden retry.
//!
//! kube's own defaults are neither safe nor bounded for us: no answer time-out at all, and up to fifteen silent retries
//! of writes within minutes. Retrying is the queue's business, which looks at the target again first.

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
use wfe_view::lean::LeanObject;
use wfe_view::source::{Pages, objects, place};

use crate::cluster::hearing::{Hearing, HearingLayer};
use crate::cluster::lane::Lane;
use crate::cluster::leadership::Leadership;
use crate::cluster::pace::Pace;
use crate::metrics::Metrics;
use crate::verb::Verb;

/// How long an answer may take. Longer than the ten seconds that the API server gives an admission webhook, so that a
/// webhook's time-out is seen as its own error and not as an unknown outcome.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The writes that tell how slow the API server is: nearly all that a crowd makes, and no webhook of another project
/// answers for most of them.
const PACED: [&str; 2] = [wfe_tekton::PLURAL, "workflowexecutions/status"];
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The API server, with the resources that the operator knows.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    execution_namespace: Arc<str>,
    leadership: Leadership,
    metrics: Metrics,
    pace: Pace,
    /// Where requests wait for a place, if they are for a namespace that asks.
    lane: Option<Lane>,
}

impl Cluster {
    /// Connects as `config` says, but with our own time-outs and without retries. It writes only while this process
    /// leads.
    ///
    /// # Errors
    /// When the configuration cannot be used, for example a certificate that cannot be read.
    pub fn connect(
        mut config: Config,
        execution_namespace: &str,
        leadership: Leadership,
        metrics: Metrics,
        hearing: Hearing,
    ) -> Result<Self, kube::Error> {
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // Watches are long: their own time-out (in `watch`) bounds them. Other requests are bounded by `call`.
        config.read_timeout = None;
        let client = ClientBuilder::try_from(config)?.with_layer(&HearingLayer::new(hearing)).build();
        Ok(Self {
            client,
            execution_namespace: execution_namespace.into(),
            leadership,
            metrics,
            pace: Pace::default(),
            lane: None,
        })
    }

    /// Talks to an API server that is a service in this process. As [`connect`](Self::connect), but for sockets and
    /// TLS.
    #[must_use]
    pub fn over<S, B>(
        service: S,
        execution_namespace: &str,
        leadership: Leadership,
        metrics: Metrics,
        hearing: Hearing,
    ) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let client = Client::new(HearingLayer::new(hearing).layer(service), "default");
        Self {
            client,
            execution_namespace: execution_namespace.into(),
            leadership,
            metrics,
            pace: Pace::default(),
            lane: None,
        }
    }

    /// Returns the same cluster with another execution namespace.
    #[must_use]
    pub fn with_execution_namespace(self, execution_namespace: &str) -> Self {
        Self { execution_namespace: execution_namespace.into(), ..self }
    }

    /// Returns the same cluster, whose requests wait for places of this lane.
    #[must_use]
    pub fn in_lane(self, lane: Lane) -> Self {
        Self { lane: Some(lane), ..self }
    }

    /// Returns how slow its answers are.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace.clone()
    }

    /// Returns the namespace of all runs.
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
    pub fn executions_in(&self, namespace: &str) -> Api<LeanObject> {
        objects(&self.client, Kind::Execution, Some(namespace))
    }

    /// Returns the `WorkflowSchedules` of one namespace, whole: a child is made from all of a template.
    #[must_use]
    pub fn schedules_in(&self, namespace: &str) -> Api<DynamicObject> {
        objects(&self.client, Kind::Schedule, Some(namespace))
    }

    /// Returns the `PipelineRuns` of the execution namespace.
    #[must_use]
    pub fn runs(&self) -> Api<LeanObject> {
        self.in_execution_namespace(Kind::Run)
    }

    /// Returns the descendants of runs of one kind.
    #[must_use]
    pub fn descendants(&self, kind: ResidueKind) -> Api<LeanObject> {
        self.in_execution_namespace(match kind {
            ResidueKind::TaskRun => Kind::TaskRun,
            ResidueKind::CustomRun => Kind::CustomRun,
            ResidueKind::PipelineRun => Kind::Run,
            ResidueKind::Pod => Kind::Pod,
        })
    }

    /// Returns what a watch of this kind watches, in one namespace or in all where it is about executions.
    #[must_use]
    pub fn watched<K>(&self, kind: Kind, watch_namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        objects(&self.client, kind, place(kind, &self.execution_namespace, watch_namespace))
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

    /// Returns the admission policies of the cluster, or their bindings, as whoever wrote them has them.
    #[must_use]
    pub fn admission(&self, half: Half) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", half.kind());
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, half.plural()))
    }

    /// Returns the CRDs of the cluster, as whoever wrote them has them.
    #[must_use]
    pub fn crds(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions"))
    }

    /// Asks for what the API server publishes of the schemas of our group. It lags behind a CRD by half a second.
    pub fn published_schemas(&self) -> impl Future<Output = kube::Result<Value>> {
        let client = self.client.clone();
        async move {
            let path = format!("/openapi/v3/apis/{}/{}", wfe_api::GROUP, wfe_api::VERSION);
            let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            client.request(request).await
        }
    }

    /// Returns what asks the API server about others, as `TokenReviews`.
    #[must_use]
    pub fn reviews<K: Resource<DynamicType = (), Scope = ClusterResourceScope>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// Returns the Leases of one namespace.
    #[must_use]
    pub fn leases_in(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes one request, bounded in time and counted, as soon as its lane has a place for it. A write goes out only
    /// while this process leads: that is asked directly before it is sent, and one that is still unanswered when the
    /// term ends is given up.
    ///
    /// # Errors
    /// Whatever the request brought instead of an answer.
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

    /// Makes one request, bounded by this time and counted, whoever leads.
    ///
    /// # Errors
    /// Whatever the request brought instead of an answer.
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
            self.pace.wrote(verb, resource, begun.elapsed());
        }
        self.metrics.api_request(verb, resource, result.as_ref().err().map_or(200, CallError::code));
        result
    }

    /// Lists all that a selection holds, page by page; each page is a request of its own.
    ///
    /// # Errors
    /// Whatever a request brought instead of an answer.
    pub async fn list(
        &self,
        resource: &'static str,
        objects: &Api<LeanObject>,
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

    /// One write of twenty meets a conflict or no connection, which is known at once; others go to kinds for which
    /// webhooks of other projects answer. All that the API server writes itself takes the same time.
    #[tokio::test(start_paused = true)]
    async fn what_is_refused_at_once_does_not_make_the_api_server_look_slow() {
        let service =
            tower::service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(BoxError::from("not asked")) });
        let metrics = Metrics::new().unwrap();
        let cluster = Cluster::over(service, "runs", Leadership::without_election(), metrics, Hearing::default());
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
        let slowdown = cluster.pace().slowdown();
        assert!((0.9..1.1).contains(&slowdown), "{slowdown}");
    }
}
