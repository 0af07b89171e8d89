//! One `WorkflowExecution` by its name: reads it, follows it until it changes, and tells how it ended.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use futures::StreamExt;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};
use wfe_api::conditions::SUCCEEDED;
use wfe_core::Time;
use wfe_view::call::{CallError, within};
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::connection::{ANSWERS_WITHIN, Connection, advised};
use crate::object::condition;
use crate::output::note;
use crate::recorded::Recorded;

/// How long one watch lasts, in seconds: the connection gives up a silent one after [`ANSWERS_WITHIN`].
const WATCHED_FOR: u32 = 10;
/// The pause between two reads, if nothing can be watched. One request a second is a small load for an API server. A
/// second is a short wait for a person.
const PAUSE: Duration = Duration::from_secs(1);

/// An execution as it was read.
struct Read {
    object: DynamicObject,
    /// The version of the list that held it, to watch from. None if it may not be listed.
    listed_at: Option<String>,
}

/// Reads an execution in the selected namespace.
pub(crate) async fn get(connection: &Connection, name: &str) -> Result<DynamicObject> {
    Ok(found(connection, name, read(connection, name).await)?.object)
}

/// Lists this one execution, because a list has the version to watch from, and because the role wfe-explain permits
/// only lists. If the caller may not list, gets the execution instead.
async fn read(connection: &Connection, name: &str) -> Result<Option<Read>, CallError> {
    let executions = executions(connection);
    let params = ListParams::default().fields(&only(name));
    match within(ANSWERS_WITHIN, executions.list(&params)).await {
        Ok(list) => {
            let listed_at = list.metadata.resource_version;
            Ok(list.items.into_iter().next().map(|object| Read { object, listed_at }))
        }
        Err(error) if error.code() == 403 => {
            let object = within(ANSWERS_WITHIN, executions.get_opt(name)).await?;
            Ok(object.map(|object| Read { object, listed_at: None }))
        }
        Err(error) => Err(error),
    }
}

fn found(connection: &Connection, name: &str, read: Result<Option<Read>, CallError>) -> Result<Read> {
    let namespace = &connection.namespace;
    let read = read.map_err(|error| anyhow!("cannot read {namespace}/{name}: {}", said(&error)))?;
    read.ok_or_else(|| {
        anyhow!(
            "there is no WorkflowExecution {name} in the namespace {namespace}; choose another one with -n \
             (kubectl get wfe --all-namespaces)"
        )
    })
}

/// Describes an error, with advice.
pub(crate) fn said(error: &CallError) -> String {
    advised(error, "the ClusterRole wfe-view")
}

fn executions(connection: &Connection) -> Api<DynamicObject> {
    objects(&connection.client, Kind::Execution, Some(&connection.namespace))
}

fn only(name: &str) -> String {
    format!("metadata.name={name}")
}

/// Follows one execution. It survives watches that end, and an API server that is away for a while.
pub(crate) struct Following<'a> {
    connection: &'a Connection,
    name: String,
    seen: DynamicObject,
    listed_at: Option<String>,
    is_troubled: bool,
}

impl<'a> Following<'a> {
    /// Reads the execution for the first time.
    pub(crate) async fn begin(connection: &'a Connection, name: &str) -> Result<Self> {
        let Read { object, listed_at } = found(connection, name, read(connection, name).await)?;
        Ok(Self { connection, name: name.to_owned(), seen: object, listed_at, is_troubled: false })
    }

    /// Returns the execution as it was read last.
    pub(crate) fn seen(&self) -> &DynamicObject {
        &self.seen
    }

    /// Waits until the execution has changed, and returns whether it has. False: the deadline has passed.
    pub(crate) async fn changes(&mut self, deadline: Instant) -> Result<bool> {
        while Instant::now() < deadline {
            // The result of this wait does not matter: the execution is read again in any case.
            let _ = timeout_at(deadline, self.something_happens()).await;
            let read = read(self.connection, &self.name).await;
            if let Err(error) = &read
                && may_pass(error)
            {
                if !std::mem::replace(&mut self.is_troubled, true) {
                    note(&format!("{error}; trying again"));
                }
                sleep(PAUSE).await;
                continue;
            }
            self.is_troubled = false;
            let namespace = &self.connection.namespace;
            let gone = || anyhow!("{namespace}/{} was deleted, and what became of it is not recorded", self.name);
            let Read { object, listed_at } = match read {
                Ok(None) => return Err(gone()),
                read => found(self.connection, &self.name, read)?,
            };
            ensure!(object.metadata.uid == self.seen.metadata.uid, "{}: another one has its name now", gone());
            let has_changed = object.metadata.resource_version != self.seen.metadata.resource_version;
            (self.seen, self.listed_at) = (object, listed_at);
            if has_changed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for an event of the execution, or for a while.
    async fn something_happens(&mut self) {
        let Some(version) = &self.listed_at else { return sleep(PAUSE).await };
        let params = WatchParams::default().fields(&only(&self.name)).timeout(WATCHED_FOR);
        let executions = executions(self.connection);
        let Ok(events) = within(ANSWERS_WITHIN, executions.watch(&params, version)).await else {
            return sleep(PAUSE).await;
        };
        let mut events = pin!(events);
        loop {
            match events.next().await {
                Some(Ok(WatchEvent::Bookmark(_))) => {}
                Some(Ok(WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_))) => return,
                // The watch has ended or broken, perhaps at once.
                Some(Ok(WatchEvent::Error(_)) | Err(_)) | None => return sleep(PAUSE).await,
            }
        }
    }
}

/// Returns whether another try may succeed by itself.
fn may_pass(error: &CallError) -> bool {
    matches!(error.code(), 0 | 429 | 500..)
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Outcome {
    Completed,
    FailedNothingRan,
    FailedHalfWay,
    Skipped,
}

/// The end of an execution, from its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    /// Why it failed or was skipped, in one word.
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    /// How long it ran.
    pub(crate) duration: Option<String>,
}

impl End {
    /// Reads the end. None if the execution has not ended.
    pub(crate) fn of(object: &DynamicObject) -> Option<Self> {
        let status = &object.data["status"];
        let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let succeeded = || condition(object, SUCCEEDED).filter(|it| it["status"] == "False")?["reason"].as_str();
        let (outcome, details) = match status["phase"].as_str()? {
            "Completed" => (Outcome::Completed, "/none"),
            // Without the field it is unknown whether anything ran.
            "Failed" if status["failureDetails"]["wasExecutionFailure"] == false => {
                (Outcome::FailedNothingRan, "/failureDetails")
            }
            "Failed" => (Outcome::FailedHalfWay, "/failureDetails"),
            "Skipped" => (Outcome::Skipped, "/skipDetails"),
            _ => return None,
        };
        let reason = text(&format!("{details}/reason"));
        // `failureDetails` has no reason that means a cancellation, so the reason of the condition goes first.
        let reason = reason.map(|reason| succeeded().map_or(reason, str::to_owned));
        let message = text(&format!("{details}/message"));
        Some(Self { outcome, reason, message, duration: text("/duration") })
    }

    /// Describes the end, in words that finish a sentence.
    pub(crate) fn told(&self) -> String {
        let head = match self.outcome {
            Outcome::Completed => "Completed",
            Outcome::FailedNothingRan => "Failed, and nothing of it ran",
            Outcome::FailedHalfWay => "Failed half way",
            Outcome::Skipped => "Skipped",
        };
        let after = self.duration.as_ref().map(|it| format!(" after {it}")).unwrap_or_default();
        let why = [&self.reason, &self.message].into_iter().flatten();
        why.fold(format!("{head}{after}"), |said, why| format!("{said}: {why}"))
    }
}

/// Describes how far an unfinished execution is.
pub(crate) fn how_far(object: &DynamicObject, now: Time) -> String {
    let unfinished = condition(object, SUCCEEDED).filter(|it| it["status"] == "Unknown");
    let said = |it: &Value| format!("{}: {}", word(it, "reason"), word(it, "message"));
    if object.data["status"]["phase"] == "Running" {
        return unfinished.map_or_else(|| "Running".to_owned(), |it| format!("Running, {}", said(it)));
    }
    Recorded::of(object, now).map_or_else(|| "is not decided yet".to_owned(), |recorded| recorded.told())
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the target of an execution, in canonical form if the status has it.
pub(crate) fn target(object: &DynamicObject) -> &str {
    let text = |pointer| object.data.pointer(pointer).and_then(Value::as_str);
    text("/status/target").or_else(|| text("/spec/targetResource")).unwrap_or("its target")
}

/// Returns `namespace/name`.
pub(crate) fn full_name(object: &DynamicObject) -> String {
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    format!("{}/{}", part(&object.metadata.namespace), part(&object.metadata.name))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Makes an execution with this status.
    pub(crate) fn execution(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"targetResource": "Node/n", "workflowRef": {"workflowId": "drain"}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn an_end_has_its_outcome_and_its_reason() {
        let failed = |ran: Value| json!({"reason": "Unknown", "message": "exit 1", "wasExecutionFailure": ran});
        let cancelled = json!([{"type": "Succeeded", "status": "False", "reason": "Cancelled"}]);
        for (status, outcome, told) in [
            (json!({"phase": "Completed", "duration": "2s"}), Outcome::Completed, "Completed after 2s"),
            (
                json!({"phase": "Failed", "duration": "1m", "failureDetails": failed(json!(true))}),
                Outcome::FailedHalfWay,
                "Failed half way after 1m: Unknown: exit 1",
            ),
            (
                json!({"phase": "Failed", "failureDetails": failed(Value::Null)}),
                Outcome::FailedHalfWay,
                "Failed half way: Unknown: exit 1",
            ),
            (
                json!({"phase": "Failed", "failureDetails": failed(json!(false)), "conditions": cancelled}),
                Outcome::FailedNothingRan,
                "Failed, and nothing of it ran: Cancelled: exit 1",
            ),
            (
                json!({"phase": "Skipped", "skipDetails": {"reason": "ResourceBusy", "message": "b runs"}}),
                Outcome::Skipped,
                "Skipped: ResourceBusy: b runs",
            ),
        ] {
            let end = End::of(&execution(&status)).unwrap();
            assert_eq!((end.outcome, &*end.told()), (outcome, told), "{status}");
        }
        for status in [json!({}), json!({"phase": "Pending"}), json!({"phase": "Running"}), json!({"phase": "Later"})] {
            assert_eq!(End::of(&execution(&status)), None, "{status}");
        }
    }

    #[test]
    fn an_execution_that_goes_on_tells_how_far_it_is() {
        let now: Time = "2026-01-02T03:04:35Z".parse().unwrap();
        let starting = json!([{"type": "Succeeded", "status": "Unknown", "reason": "Starting", "message": "m"}]);
        let waiting = json!([{"type": "Waiting", "status": "True", "reason": "Turn", "message": "b goes first",
            "lastTransitionTime": "2026-01-02T03:04:15Z"}]);
        for (status, told) in [
            (json!({}), "is undecided for 30s"),
            (json!({"phase": "Pending", "conditions": waiting}), "waits for 20s, Turn: b goes first"),
            (json!({"phase": "Running"}), "Running"),
            (json!({"phase": "Running", "conditions": starting}), "Running, Starting: m"),
        ] {
            assert_eq!(how_far(&execution(&status), now), told, "{status}");
        }
        assert_eq!(
            (&*full_name(&execution(&json!({}))), target(&execution(&json!({"target": "node/n"})))),
            ("ns/a", "node/n")
        );
    }

    #[test]
    fn only_a_failure_that_may_pass_is_tried_again() {
        let refused = |code| CallError::Refused(Box::new(kube::core::Status { code, ..Default::default() }));
        for (code, expected) in [(401, false), (403, false), (404, false), (429, true), (500, true), (503, true)] {
            assert_eq!(may_pass(&refused(code)), expected, "{code}");
        }
        assert!(may_pass(&CallError::TimedOut(ANSWERS_WITHIN)));
    }
}
