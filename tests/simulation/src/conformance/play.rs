//! Sends the requests of a plan to a real or a fake server.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::names::{Memory, refusal};
use super::{Call, Place, Plan};

/// How long a watch may take to deliver the existing objects.
const PATIENCE: Duration = Duration::from_secs(30);
/// A part of the name of each object that is created last. When a watch delivers such an object, it has delivered all
/// others.
const LAST: &str = "zz-last";

/// A request and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The request.
    pub title: String,
    /// The answer, in which all values that differ between servers are renamed.
    pub said: Value,
}

/// Sends the requests of a plan, and then watches everything that they have changed, with and without a selector.
///
/// # Errors
/// Returns an error if a request gets no answer, or if a watch ends early.
pub async fn play(client: &Client, plan: &Plan) -> Result<Vec<Line>> {
    let mut memory = Memory::of(&plan.namespace);
    let mut lines = Vec::new();
    let mut begins = Vec::new();
    for place in Place::ALL {
        let (_, list) = ask(client, &Call::list(place, "limit=1"), &memory).await?;
        begins.push((place, list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()));
    }
    for call in &plan.calls {
        let (code, body) = ask(client, call, &memory).await?;
        lines.push(Line { title: call.to_string(), said: told(&mut memory, code, &body) });
    }
    let mut watches = 0;
    for (place, version) in begins {
        for (selector, labels) in [("", json!({})), ("team%3Da", json!({"team": "a"})), ("!team", json!({}))] {
            watches += 1;
            let last = last(client, place, plan, watches, labels).await?;
            let events = watch(client, place, &plan.namespace, &version, selector, &last).await?;
            for (index, event) in events.iter().enumerate() {
                let said = json!({"type": event["type"], "object": memory.rename(&event["object"])});
                lines.push(Line { title: format!("watch of {place:?} ({selector}), event {index}"), said });
            }
        }
    }
    Ok(lines)
}

fn told(memory: &mut Memory, code: u16, body: &Value) -> Value {
    if code >= 300 {
        return refusal(code, body);
    }
    memory.note(body);
    let mut object = memory.rename(body);
    if let Some(uid) = body["details"]["uid"].as_str() {
        object["details"]["uid"] = memory.rename(&json!({"metadata": {"uid": uid}}))["metadata"]["uid"].clone();
    }
    json!({"code": code, "object": object})
}

async fn ask(client: &Client, call: &Call, memory: &Memory) -> Result<(u16, Value)> {
    let answer = client.send(call.render(memory)?).await.with_context(|| call.to_string())?;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)))))
}

/// Creates the object that a watch delivers last, and returns the object's version.
async fn last(client: &Client, place: Place, plan: &Plan, number: u32, labels: Value) -> Result<String> {
    let name = format!("{}-{LAST}-{number}", plan.namespace);
    let mut body = super::generate::valid(place);
    body["metadata"] = json!({"labels": labels});
    let call = Call::create(place, &name, body);
    let (code, body) = ask(client, &call, &Memory::of(&plan.namespace)).await?;
    ensure!(code == 201, "{call}: {body}");
    let version = body["metadata"]["resourceVersion"].as_str().context("what was created has no version")?;
    Ok(version.to_owned())
}

/// Returns the events of a watch up to the object that is delivered last.
async fn watch(
    client: &Client,
    place: Place,
    namespace: &str,
    from: &str,
    selector: &str,
    last: &str,
) -> Result<Vec<Value>> {
    let path = place.path(namespace);
    let uri = format!("{path}?watch=true&resourceVersion={from}&timeoutSeconds=20&labelSelector={selector}");
    let request = Request::get(uri).body(Body::empty())?;
    let answer = client.send(request).await?;
    ensure!(answer.status().is_success(), "a watch of {place:?} was refused: {}", answer.status());
    let mut frames = answer.into_body().into_data_stream();
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    let last: u64 = last.parse()?;
    let read = async {
        while let Some(frame) = frames.next().await {
            bytes.extend_from_slice(&frame?);
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let event: Value = serde_json::from_slice(&bytes[..end])?;
                bytes.drain(..=end);
                let object = &event["object"];
                let version = object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
                if version.is_none_or(|version: u64| version >= last) {
                    return Ok(events);
                }
                // Other plans run at the same time in other namespaces. The last object of an earlier watch is not part
                // of the answer.
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let is_of_plan =
                    || name.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
                if !name.contains(LAST) && (place != Place::Namespaces || is_of_plan()) {
                    events.push(event);
                }
            }
        }
        bail!("a watch of {place:?} ended early, after {} events", events.len())
    };
    tokio::time::timeout(PATIENCE, read)
        .await
        .with_context(|| format!("a watch of {place:?} ({selector}) is silent"))?
}

/// Creates the namespace of a plan.
///
/// # Errors
/// Returns an error if the namespace cannot be created.
pub async fn prepare(client: &Client, plan: &Plan) -> Result<()> {
    let call = Call::create(Place::Namespaces, &plan.namespace, json!({}));
    let (code, body) = ask(client, &call, &Memory::of(&plan.namespace)).await?;
    ensure!(code == 201, "{call}: {body}");
    Ok(())
}
