//! The two small HTTP servers: one for metrics, one for the probes.

mod access;
mod connections;
mod tls;

use std::net::SocketAddr;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::cluster::leadership::Leadership;
use crate::config::Page;
use crate::health::Health;
use crate::metrics::Metrics;

pub use access::Access;
pub use tls::Certificates;

/// Opens a port.
///
/// # Errors
/// If the address is in use or unavailable. The error names the server and the address.
pub async fn listen(server: &'static str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        anyhow::anyhow!("cannot serve {server} on {address}: {error}; choose another address with --{server}-address")
    })?;
    tracing::info!(server, address = %listener.local_addr()?, "listening");
    Ok(listener)
}

/// Serves `/metrics` until the process ends. A certificate turns on TLS; `access` limits which clients are admitted.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Metrics,
    certificates: Option<Certificates>,
    access: Option<Access>,
) -> std::io::Result<()> {
    let handler = move |headers: HeaderMap| {
        let (metrics, access) = (metrics.clone(), access.clone());
        async move {
            let refused = match access {
                Some(access) => access.refuses(&headers).await,
                None => None,
            };
            refused.unwrap_or_else(|| render(&metrics))
        }
    };
    connections::serve(listener, Router::new().route("/metrics", get(handler)), certificates).await
}

/// Serves `/healthz`, `/readyz` and `/configz` until the process ends.
pub async fn serve_health(
    listener: TcpListener,
    health: Health,
    leadership: Leadership,
    config: Page,
) -> std::io::Result<()> {
    let alive = health.clone();
    let ready = move || {
        let standing = health.ready().and_then(|()| leadership.standing())?;
        let notes = health.notes().map(|said| format!("; {said}")).unwrap_or_default();
        Ok(format!("ok; {standing}{notes}"))
    };
    let router = Router::new()
        .route("/healthz", get(move || std::future::ready(answer(alive.alive().map(|()| "ok".to_owned())))))
        .route("/readyz", get(move || std::future::ready(answer(ready()))))
        .route("/configz", get(move || std::future::ready(config.to_string())));
    connections::serve(listener, router, None).await
}

fn render(metrics: &Metrics) -> Response {
    match metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn answer(result: Result<String, String>) -> Response {
    match result {
        Ok(said) => format!("{said}\n").into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}
