//! The auditor's input: changes from a watch, and requests from an audit log. This module only parses them.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ChangeType {
    /// The object existed before the recording began. Its past is unknown.
    #[serde(alias = "Existing")]
    Existing,
    /// The object was created.
    #[serde(alias = "Added")]
    Added,
    /// The object was changed.
    #[serde(alias = "Modified")]
    Modified,
    /// The object was deleted. [`Change::object`] is its last state.
    #[serde(alias = "Deleted")]
    Deleted,
}

/// One change to one object, which is one line in the recording of a watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Such as `PipelineRun`.
    pub kind: String,
    /// What happened.
    pub change: ChangeType,
    /// The position in the order of changes, across all kinds.
    pub resource_version: u64,
    /// When the recorder saw the change, in milliseconds since the recording began. This measures durations, but does
    /// not order changes.
    pub at_ms: u64,
    /// The object after the change.
    pub object: Value,
}

/// One finished request from the API server's audit log.
///
/// The fields have the names that the tests' own reader of the log uses. The entries of that reader can therefore be
/// converted with `serde`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Such as `create` or `patch`.
    pub verb: String,
    /// The user who sent the request.
    pub user: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, such as `pipelineruns`.
    pub resource: String,
    /// Such as `status`; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty if there is none.
    pub namespace: String,
    /// Name; empty if only the object contains it.
    pub name: String,
    /// HTTP status of the answer.
    pub code: i64,
    /// The resourceVersion of the object in the answer. It gives the order of writes, which the order of log entries
    /// does not.
    pub resource_version: Option<u64>,
    /// The body of the request; null if the log's policy omits bodies.
    pub request: Value,
    /// The body of the answer; null if the log's policy omits bodies.
    pub response: Value,
    /// When the request arrived (RFC 3339).
    pub received_at: String,
}

/// The reason why an input could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input could not be read further than this line.
    #[error("line {line} cannot be read")]
    Io {
        /// The number of the line, counted from 1.
        line: usize,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A line has the wrong format.
    #[error("line {line} is not {expected}")]
    Line {
        /// The number of the line, counted from 1.
        line: usize,
        /// The format that was expected.
        expected: &'static str,
        /// The error in the line.
        #[source]
        source: serde_json::Error,
    },
}

// === impl Request ===

impl Request {
    /// Returns whether the request asks for a change.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Returns whether the request succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Returns whether the log contains the body of the request or of the answer. If it contains only one of them, the
    /// other was empty.
    pub(crate) fn has_bodies(&self) -> bool {
        !self.request.is_null() || !self.response.is_null()
    }

    /// Converts an event of `audit.k8s.io/v1`; `None` for a stage before the answer.
    fn of_event(event: &mut Value) -> Option<Self> {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if matches!(text("/stage").as_str(), "RequestReceived" | "ResponseStarted") {
            return None;
        }
        let mut request = Self {
            verb: text("/verb"),
            user: text("/user/username"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: event.pointer("/responseStatus/code").and_then(Value::as_i64).unwrap_or_default(),
            resource_version: text("/responseObject/metadata/resourceVersion").parse().ok(),
            received_at: text("/requestReceivedTimestamp"),
            ..Self::default()
        };
        request.request = event["requestObject"].take();
        request.response = event["responseObject"].take();
        if request.name.is_empty() {
            let body = |body: &Value| body.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
            request.name = body(&request.response).or_else(|| body(&request.request)).unwrap_or_default();
        }
        Some(request)
    }
}

/// Reads the recording of a watch: JSON lines in any order.
pub fn read_changes(from: impl BufRead) -> Result<Vec<Change>, InputError> {
    let mut changes = Vec::new();
    for (line, text) in lines(from) {
        let text = text.map_err(|source| InputError::Io { line, source })?;
        if !text.trim().is_empty() {
            let expected = "a change (kind, change, resource_version, at_ms, object)";
            changes.push(serde_json::from_str(&text).map_err(|source| InputError::Line { line, expected, source })?);
        }
    }
    Ok(changes)
}

/// Reads an audit log: JSON lines in any order. The last line may be incomplete, because the API server may be writing
/// it.
pub fn read_requests(mut from: impl BufRead) -> Result<Vec<Request>, InputError> {
    let mut requests = Vec::new();
    let (mut text, mut line) = (String::new(), 0);
    loop {
        line += 1;
        text.clear();
        if from.read_line(&mut text).map_err(|source| InputError::Io { line, source })? == 0 {
            return Ok(requests);
        }
        if text.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(mut event) => requests.extend(Request::of_event(&mut event)),
            Err(_) if !text.ends_with('\n') => return Ok(requests),
            Err(source) => return Err(InputError::Line { line, expected: "an event of audit.k8s.io/v1", source }),
        }
    }
}

fn lines(from: impl BufRead) -> impl Iterator<Item = (usize, io::Result<String>)> {
    from.lines().enumerate().map(|(index, text)| (index + 1, text))
}
