//! The counters of the API server: its requests, its refusals, and whether it was restarted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kube::Client;
use tokio::task::JoinHandle;
use wfe_testkit::Metrics;

use crate::api;
use crate::numbers::{median, millis};

/// A kind of request, such as `patch workflowexecutions/status`.
pub(crate) type Request = String;

/// The collections that the API server lists for itself now and then. Operator and floor have no permission to list
/// them.
const LISTED_BY_API_SERVER: [&str; 2] = ["services", "limitranges"];

/// The counters of the API server at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    requests: BTreeMap<Request, f64>,
    /// The number of answers with the status 429, 500 or higher.
    refused: f64,
    started_at: f64,
}

/// The difference between two readings of the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// The number of requests of each kind. Kinds without requests are left out.
    pub(crate) requests: BTreeMap<Request, f64>,
    /// What disturbed the measurement, as text.
    pub(crate) disturbed: Vec<String>,
}

impl Counters {
    /// Reads the counters.
    pub(crate) async fn read(client: &Client) -> Result<Self> {
        let answer = api::get(client, "/metrics").await.context("the API server's metrics")?;
        let text = String::from_utf8_lossy(&answer.body);
        let wanted = ["apiserver_request_total{", "process_start_time_seconds "];
        let lines: Vec<&str> =
            text.lines().filter(|line| wanted.iter().any(|wanted| line.starts_with(wanted))).collect();
        let metrics = Metrics::parse(&lines.join("\n"))?;
        let mut counters = Self::default();
        for sample in metrics.samples() {
            let label = |name: &str| sample.labels.get(name).map(String::as_str).unwrap_or_default();
            if sample.name == "process_start_time_seconds" {
                counters.started_at = sample.value;
                continue;
            }
            if label("code") == "429" || label("code").starts_with('5') {
                counters.refused += sample.value;
            }
            let verb = match label("verb") {
                "POST" => "create".to_owned(),
                "PUT" => "update".to_owned(),
                "APPLY" => "patch".to_owned(),
                other => other.to_lowercase(),
            };
            let (resource, subresource) = (label("resource"), label("subresource"));
            if verb == "list" && LISTED_BY_API_SERVER.contains(&resource) {
                continue;
            }
            let slash = if subresource.is_empty() { "" } else { "/" };
            *counters.requests.entry(format!("{verb} {resource}{slash}{subresource}")).or_default() += sample.value;
        }
        Ok(counters)
    }

    /// Returns the difference to these counters now.
    pub(crate) async fn since(&self, client: &Client) -> Result<Counted> {
        let now = Self::read(client).await?;
        let mut counted = Counted::default();
        if now.started_at > self.started_at {
            counted.disturbed.push("the API server was restarted".to_owned());
            return Ok(counted);
        }
        for (request, count) in now.requests {
            let more = count - self.requests.get(&request).copied().unwrap_or_default();
            if more > 0.0 {
                counted.requests.insert(request, more);
            }
        }
        if now.refused > self.refused {
            counted.disturbed.push(format!("the API server refused {} requests", now.refused - self.refused));
        }
        Ok(counted)
    }
}

/// Sends a trivial request again and again. Its duration shows whether the API server is slow for all clients.
#[derive(Debug)]
pub(crate) struct Probe {
    took: Arc<Mutex<Vec<f64>>>,
    task: JoinHandle<()>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Probe {
    /// The pause between two requests.
    const EVERY: Duration = Duration::from_millis(100);
    /// The duration in milliseconds from which an answer is slow. An API server on two busy cores needs some tens of
    /// milliseconds.
    const SLOW: f64 = 150.0;

    /// Starts to send requests.
    pub(crate) fn start(client: Client) -> Self {
        let took: Arc<Mutex<Vec<f64>>> = Arc::default();
        let to = Arc::clone(&took);
        let task = tokio::spawn(async move {
            loop {
                let begun = Instant::now();
                // A refusal is an answer too. A request without an answer took long, and its duration counts.
                drop(api::get(&client, "/livez").await);
                to.lock().unwrap_or_else(PoisonError::into_inner).push(millis(begun.elapsed()));
                tokio::time::sleep(Self::EVERY).await;
            }
        });
        Self { took, task }
    }

    /// Returns a description if the answers took too long.
    pub(crate) fn slow(&self) -> Option<String> {
        let took = median(&self.took.lock().unwrap_or_else(PoisonError::into_inner));
        (took > Self::SLOW).then(|| format!("an answer of the API server took {took:.0} ms"))
    }
}
