//! Plain requests of the floor client and of the benchmark itself. They read only the fields that are needed.

use anyhow::{Context as _, Result, bail};
use futures::io::AsyncBufRead;
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::path::Path;

/// The number of objects on a page of a list, which is the same as in the operator's lists.
pub(crate) const PAGE: usize = 500;
/// The user agent of the floor client in the audit log.
pub(crate) const AGENT: &str = "wfe-bench";
/// The duration of a watch, which is longer than any part of a benchmark.
const WATCH_SECONDS: u32 = 3600;

/// The identity of an object, and the parts of its spec and status that show its progress.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Object {
    #[serde(default)]
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: Spec,
    #[serde(default)]
    pub(crate) status: Status,
}

/// The metadata that the benchmark reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) labels: Labels,
}

/// The label that names the execution of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Labels {
    #[serde(rename = "kubernaut.ai/workflow-execution")]
    pub(crate) owner: String,
}

/// The part of a run's spec that the benchmark reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    /// The value is `PipelineRunPending` until the release.
    pub(crate) status: String,
}

/// The part of a status that the benchmark reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) phase: String,
    pub(crate) completion_time: String,
}

/// An event of a watch.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) object: Object,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) metadata: PageMetadata,
    pub(crate) items: Vec<T>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    pub(crate) resource_version: String,
    #[serde(default)]
    pub(crate) r#continue: String,
}

/// The answer of the API server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns the object in the answer if the request succeeded.
    pub(crate) fn object(&self) -> Result<Object> {
        if !(200..300).contains(&self.code) {
            bail!("the API server answered {}: {}", self.code, String::from_utf8_lossy(&self.body));
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

/// Creates a client that is like the operator's: it does not retry requests on its own.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    config.read_timeout = None;
    Ok(Client::try_from(config)?)
}

/// Sends one request and reads the whole answer.
pub(crate) async fn send(client: &Client, method: &str, uri: &str, content: &str, body: String) -> Result<Answer> {
    let mut request = Request::builder().method(method).uri(uri).header("user-agent", AGENT);
    if !content.is_empty() {
        request = request.header("content-type", content);
    }
    let answer = client.send(request.body(Body::from(body.into_bytes()))?).await.context("no answer")?;
    let code = answer.status().as_u16();
    Ok(Answer { code, body: answer.into_body().collect().await?.to_bytes().to_vec() })
}

/// Reads a resource.
pub(crate) async fn get(client: &Client, uri: &str) -> Result<Answer> {
    send(client, "GET", uri, "", String::new()).await
}

/// Returns the six collections that an operator in one namespace watches.
pub(crate) fn watched(namespace: &str, execution_namespace: &str) -> [Collection; 6] {
    let of_runs = |group: &str, resource: &str| Collection {
        path: format!("{group}/namespaces/{execution_namespace}/{resource}"),
        query: "labelSelector=kubernaut.ai/workflow-execution".to_owned(),
    };
    [
        executions(namespace),
        of_runs("/apis/tekton.dev/v1", "pipelineruns"),
        of_runs("/apis/tekton.dev/v1", "taskruns"),
        of_runs("/apis/tekton.dev/v1beta1", "customruns"),
        of_runs("/api/v1", "pods"),
        Collection { path: "/api/v1/namespaces".to_owned(), query: format!("fieldSelector=metadata.name={namespace}") },
    ]
}

/// Returns the executions of a namespace.
pub(crate) fn executions(namespace: &str) -> Collection {
    Collection {
        path: format!("/apis/kubernaut.ai/v1alpha1/namespaces/{namespace}/workflowexecutions"),
        query: String::new(),
    }
}

/// Returns the runs of a namespace.
pub(crate) fn runs(execution_namespace: &str) -> Collection {
    Collection {
        path: format!("/apis/tekton.dev/v1/namespaces/{execution_namespace}/pipelineruns"),
        query: String::new(),
    }
}

/// A collection for a list or a watch.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    /// The path, such as `/apis/tekton.dev/v1/namespaces/x/pipelineruns`.
    pub(crate) path: String,
    /// The query, such as `labelSelector=...`; may be empty.
    pub(crate) query: String,
}

impl Collection {
    /// Lists the collection page by page, and returns the version of the list. `take` gets the objects of each page.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        client: &Client,
        mut take: impl FnMut(Vec<T>),
    ) -> Result<String> {
        let mut next = String::new();
        loop {
            let uri = format!("{}?limit={PAGE}&{}&continue={next}", self.path, self.query);
            let answer = get(client, &uri).await?;
            if answer.code != 200 {
                bail!("{uri}: {} {}", answer.code, String::from_utf8_lossy(&answer.body));
            }
            let page: Page<T> = parse(&answer.body)?;
            take(page.items);
            next = page.metadata.r#continue;
            if next.is_empty() {
                return Ok(page.metadata.resource_version);
            }
        }
    }

    /// Lists the collection without keeping the objects.
    pub(crate) async fn list_bare(&self, client: &Client) -> Result<String> {
        self.list(client, |_: Vec<IgnoredAny>| {}).await
    }

    /// Opens a watch from this version.
    pub(crate) async fn watch(&self, client: &Client, version: &str) -> Result<impl AsyncBufRead + use<>> {
        let Self { path, query } = self;
        let uri = format!(
            "{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}&{query}"
        );
        let request = Request::builder().uri(uri).body(Vec::new())?;
        Ok(client.request_stream(request).await?)
    }
}

/// Returns the events of a watch without bookmarks.
pub(crate) fn changes(stream: impl AsyncBufRead) -> impl Stream<Item = Result<Change>> {
    stream.lines().filter_map(async |line| {
        let change = line.map_err(Into::into).and_then(|line| parse::<Change>(line.as_bytes()));
        change.map(|change| (change.kind != "BOOKMARK").then_some(change)).transpose()
    })
}

/// Reads a watch until its end without keeping the events.
pub(crate) async fn drain(stream: impl AsyncBufRead) -> Result<()> {
    let mut lines = std::pin::pin!(stream.lines());
    while let Some(line) = lines.next().await {
        line?;
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).with_context(|| format!("not as expected: {}", String::from_utf8_lossy(bytes)))
}
