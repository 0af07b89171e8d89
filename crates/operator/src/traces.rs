//! Sends the trace of each execution that ends to a collector, if the standard variables of OpenTelemetry ask for it.
//!
//! The spans come from the object that the API server stored, so a crash during an execution leaves no gap in its
//! trace. The queue is bounded: if it is full, spans are dropped. An unavailable collector therefore delays no
//! decision.

mod client;
mod environment;

use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor};
use serde_json::json;
use wfe_core::name::Uid;
use wfe_view::error_chain::with_causes;
use wfe_view::spans::{Span, attempt_id, drain_of, spans_of, trace_id};

use client::client;
use environment::{Environment, Wanted};

/// The name of the service, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` has one.
const SERVICE: &str = "wfe-operator";
/// How long the last spans may take to be sent when the process stops: the same as for the last events.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// What a write has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The execution.
    Execution,
    /// The drain of its run.
    Drain,
}

/// Sends traces; by default it sends none and costs nothing. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<BatchSpanProcessor>>);

impl Traces {
    /// Reads the variables of the process. Unusable variables turn traces off with a warning, because executions must
    /// not depend on traces. Must be called within a runtime.
    #[must_use]
    pub fn of_process() -> Self {
        match Environment(|name: &str| std::env::var(name).ok()).wanted() {
            Ok(None) => Self::default(),
            Ok(Some(wanted)) => Self::begin(&wanted).unwrap_or_else(|error| {
                tracing::warn!(error = with_causes(error.as_ref()), "no traces are sent");
                Self::default()
            }),
            Err(why) => {
                tracing::warn!("no traces are sent: {why}");
                Self::default()
            }
        }
    }

    fn begin(wanted: &Wanted) -> anyhow::Result<Self> {
        let exporter = SpanExporter::builder().with_http().with_http_client(client(wanted)?).build()?;
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource());
        tracing::info!(endpoint = wanted.endpoint, "the trace of each execution that ends is sent");
        Ok(Self(Some(Arc::new(processor))))
    }

    /// Sends the spans that end with a write, from the object that the API server has stored.
    pub fn send(&self, ended: Ended, stored: &DynamicObject) {
        let (Some(processor), Some(uid)) = (&self.0, &stored.metadata.uid) else { return };
        let spans = match ended {
            Ended::Execution => spans_of(stored),
            Ended::Drain => drain_of(stored).into_iter().collect(),
        };
        for span in spans {
            processor.on_end(exported(uid, span));
        }
    }

    /// Returns the trace context of an attempt, as Tekton reads it from an annotation of the run; `None` if traces are
    /// off.
    #[must_use]
    pub fn context_of(&self, execution: &Uid, attempt: u32) -> Option<String> {
        self.0.as_ref()?;
        let uid = execution.to_string();
        let (trace, span) = (TraceId::from_bytes(trace_id(&uid)), SpanId::from_bytes(attempt_id(&uid, attempt)));
        Some(json!({"traceparent": format!("00-{trace}-{span}-01")}).to_string())
    }

    /// Sends the last spans, and stops.
    pub async fn stop(self) {
        let Some(processor) = self.0 else { return };
        // The shutdown blocks its thread until the collector has answered.
        let stopped = tokio::task::spawn_blocking(move || processor.shutdown_with_timeout(LAST_SPANS)).await;
        if !matches!(stopped, Ok(Ok(()))) {
            tracing::warn!("stopped with traces unsent");
        }
    }
}

/// Returns the attributes of this process: those in the variables, and a service name if the variables have none.
fn resource() -> Resource {
    let named = Resource::builder().build();
    let has_name = named.iter().any(|(key, value)| {
        key.as_str() == "service.name" && !value.as_str().is_empty() && !value.as_str().starts_with("unknown_service")
    });
    if has_name { named } else { Resource::builder().with_service_name(SERVICE).build() }
}

/// Returns a span as the SDK queues it.
fn exported(uid: &str, span: Span) -> SpanData {
    let (trace_id, span_id) = (TraceId::from_bytes(trace_id(uid)), SpanId::from_bytes(span.id));
    SpanData {
        span_context: SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: span.name.into(),
        start_time: span.start.into(),
        end_time: span.end.into(),
        attributes: span.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: span.failed.map_or(Status::Unset, |reason| Status::error(reason.to_string())),
        instrumentation_scope: InstrumentationScope::builder(SERVICE).with_version(env!("CARGO_PKG_VERSION")).build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_that_are_off_name_no_context_and_send_nothing() {
        let off = Traces::default();
        assert_eq!(off.context_of(&Uid::new("0f8fad5b-d9cb-469f-a165-70867728950e"), 1), None);
        off.send(
            Ended::Execution,
            &DynamicObject { types: None, metadata: kube::core::ObjectMeta::default(), data: json!({}) },
        );
    }

    #[tokio::test]
    async fn the_context_of_an_attempt_is_a_traceparent() {
        let wanted = Wanted {
            endpoint: "http://127.0.0.1:9/v1/traces".to_owned(),
            timeout: Duration::from_secs(1),
            certificate: None,
        };
        let on = Traces::begin(&wanted).unwrap();
        let context = on.context_of(&Uid::new("0f8fad5b-d9cb-469f-a165-70867728950e"), 2).unwrap();
        let span = SpanId::from_bytes(attempt_id("0f8fad5b-d9cb-469f-a165-70867728950e", 2));
        let expected = format!(r#"{{"traceparent":"00-0f8fad5bd9cb469fa16570867728950e-{span}-01"}}"#);
        assert_eq!(context, expected);
        on.stop().await;
    }
}
