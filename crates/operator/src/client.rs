//! The one way to talk to the API server: every request has a time-out, a label, and no hidden retry.
//!
//! kube's own defaults are neither safe nor bounded for us: no answer time-out at all, and up to fifteen silent retries
//! of writes within minutes. Retrying is the queue's business, which looks at the target again first.

mod denial;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::client::{Body, ClientBuilder};
use kube::core::{DynamicResourceScope, GroupVersionKind};
use kube::{Api, Client, Config, Resource};
use tower::{BoxError, Layer, Service};

use wfe_core::residue::ResidueKind;

use denial::lacks_right;

use crate::causes::with_causes;
use crate::hearing::{Hearing, HearingLayer};
use crate::index::Kind;
use crate::lean::LeanObject;
use crate::lease::Leadership;
use crate::metrics::Metrics;

/// How long an answer may take. Longer than the ten seconds that the API server gives an admission webhook, so that a
/// webhook's time-out is seen as its own error and not as an unknown outcome.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a request is held back at the most because the API server, or whoever answers in its place, asked for it:
/// as long as this operator waits by itself after many failures. Whoever is still busy then asks again; nobody who asks
/// for a day stops a target for a day.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How many objects a page of a list holds: a few megabytes at the most, as the API server's own clients do.
pub(crate) const PAGE: u32 = 500;

/// Why a request brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer within this time; the outcome of a write is unknown.
    #[error("no answer within {} s", .0.as_secs().max(1))]
    TimedOut(Duration),
    /// The API server refused.
    #[error("{}{}", .0.message, advice(.0))]
    Refused(Box<kube::core::Status>),
    /// The connection failed, or the answer could not be read; the outcome of a write is unknown.
    #[error("{}", with_causes(.0.as_ref()))]
    Transport(Box<kube::Error>),
    /// Another replica may lead by now. The write was not sent, or its outcome is unknown.
    #[error("this replica does not lead")]
    NotLeading,
}

impl CallError {
    /// Returns the HTTP code of a refusal; 0 where there was no answer.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused(status) => status.code,
            Self::TimedOut(_) | Self::Transport(_) | Self::NotLeading => 0,
        }
    }

    /// Says whether a write that brought this may have happened all the same. The end of a term is no doubt: whoever
    /// leads next tells of what happened.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::TimedOut(_) | Self::Transport(_) => true,
            // The API server gave up, or its store did not answer it.
            Self::Refused(status) => status.code >= 500,
            Self::NotLeading => false,
        }
    }

    /// Says whether the operator's own account lacks the right to ask for this.
    #[must_use]
    pub fn lacks_right(&self) -> bool {
        matches!(self, Self::Refused(status) if lacks_right(status))
    }

    /// Says whether the cluster does not serve objects of this kind.
    #[must_use]
    pub fn is_kind_missing(&self) -> bool {
        matches!(self, Self::Refused(status) if denial::is_kind_missing(status))
    }

    /// Returns how long the API server asks to wait (`Retry-After`), where it does, up to a limit.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(status) => status
                .details
                .as_ref()
                .map(|details| u64::from(details.retry_after_seconds))
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER)),
            Self::TimedOut(_) | Self::Transport(_) | Self::NotLeading => None,
        }
    }
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Transport(Box::new(other)),
        }
    }
}

/// Says what a person can do about a refusal.
fn advice(status: &kube::core::Status) -> &'static str {
    if lacks_right(status) { "; give the operator this right, it is in config/rbac" } else { "" }
}

/// What a request does, as its metric label says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads those that a label selects.
    List,
    /// Makes one.
    Create,
    /// Replaces one.
    Update,
    /// Changes one.
    Patch,
    /// Removes one.
    Delete,
}

impl Verb {
    /// Says whether it changes something.
    fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}

/// The API server, with the resources that the operator knows.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    execution_namespace: Arc<str>,
    leadership: Leadership,
    metrics: Metrics,
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
        Ok(Self { client, execution_namespace: execution_namespace.into(), leadership, metrics })
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
        Self { client, execution_namespace: execution_namespace.into(), leadership, metrics }
    }

    /// Returns the same cluster with another execution namespace.
    #[must_use]
    pub fn with_execution_namespace(self, execution_namespace: &str) -> Self {
        Self { execution_namespace: execution_namespace.into(), ..self }
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
        Api::namespaced_with(self.client.clone(), namespace, &resource(Kind::Execution))
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
        match (kind, watch_namespace) {
            (Kind::Execution, Some(namespace)) => Api::namespaced_with(self.client.clone(), namespace, &resource(kind)),
            (Kind::Execution, None) | (Kind::Namespace, _) => Api::all_with(self.client.clone(), &resource(kind)),
            (Kind::Run | Kind::TaskRun | Kind::CustomRun | Kind::Pod, _) => self.in_execution_namespace(kind),
        }
    }

    fn in_execution_namespace<K>(&self, kind: Kind) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        Api::namespaced_with(self.client.clone(), &self.execution_namespace, &resource(kind))
    }

    /// Returns the events of one namespace.
    #[must_use]
    pub fn events_in(&self, namespace: &str) -> Api<k8s_openapi::api::events::v1::Event> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Returns the Leases of one namespace.
    #[must_use]
    pub fn leases_in(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes one request, bounded in time and counted. A write goes out only while this process leads: that is asked
    /// directly before it is sent, and one that is still unanswered when the term ends is given up.
    ///
    /// # Errors
    /// Whatever the request brought instead of an answer.
    pub async fn call<T>(
        &self,
        verb: Verb,
        resource: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
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
        within: Duration,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        let result = match tokio::time::timeout(within, request).await {
            Ok(answer) => answer.map_err(CallError::from),
            Err(_) => Err(CallError::TimedOut(within)),
        };
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
        let mut params = selection.limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page = self.call(Verb::List, resource, objects.list(&params)).await?;
            all.extend(page.items.into_iter().map(|LeanObject { object, .. }| object));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(all),
            }
        }
    }
}

fn resource(kind: Kind) -> ApiResource {
    let (group, version, name) = match kind {
        Kind::Execution => (wfe_api::GROUP, wfe_api::VERSION, "WorkflowExecution"),
        Kind::Run => (wfe_tekton::GROUP, wfe_tekton::VERSION, wfe_tekton::KIND),
        Kind::TaskRun => (wfe_tekton::GROUP, wfe_tekton::VERSION, "TaskRun"),
        // The one kind of Tekton's that never came to v1.
        Kind::CustomRun => (wfe_tekton::GROUP, "v1beta1", "CustomRun"),
        Kind::Pod => ("", "v1", "Pod"),
        Kind::Namespace => ("", "v1", "Namespace"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), kind.label())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_that_asks_to_wait_for_days_is_asked_again_after_half_a_minute() {
        for (asked, waits) in [(0, None), (1, Some(1)), (30, Some(30)), (31, Some(30)), (u32::MAX, Some(30))] {
            let details = serde_json::from_value(serde_json::json!({"retryAfterSeconds": asked})).unwrap();
            let status = kube::core::Status { code: 429, details: Some(details), ..Default::default() };
            let error = CallError::Refused(Box::new(status));
            assert_eq!(error.retry_after(), waits.map(Duration::from_secs), "{asked}");
        }
    }

    #[test]
    fn a_missing_right_is_said_together_with_what_to_do() {
        let message =
            "pods \"x\" is forbidden: User \"u\" cannot get resource \"pods\" in API group \"\" in the namespace \"n\"";
        let status = serde_json::json!({
            "code": 403, "reason": "Forbidden", "message": message, "details": {"kind": "pods", "name": "x"},
        });
        let lacking = CallError::Refused(serde_json::from_value(status).unwrap());
        assert!(lacking.lacks_right());
        assert!(
            lacking.to_string().ends_with("in the namespace \"n\"; give the operator this right, it is in config/rbac")
        );
        let quota = kube::core::Status { code: 403, message: "exceeded quota".to_owned(), ..Default::default() };
        let other = CallError::Refused(Box::new(quota));
        assert!(!other.lacks_right() && !other.to_string().contains("config/rbac"), "{other}");
    }
}
