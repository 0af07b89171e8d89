//! The API server's audit log: what was asked by whom, as a witness that is independent of the operator.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One finished request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Such as `create`, `patch`, `list`, `watch`.
    pub verb: String,
    /// Who asked.
    pub user: String,
    /// The client program's description of itself.
    pub user_agent: String,
    /// API group; empty for the core one.
    pub group: String,
    /// Plural, such as `pipelineruns`.
    pub resource: String,
    /// Such as `status`; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for requests across namespaces.
    pub namespace: String,
    /// Name; empty for lists, and for creates whose name stands in the object only.
    pub name: String,
    /// HTTP status of the answer.
    pub code: i64,
    /// Whether the authorizer let it pass. What refused it then, if anything, was not a missing right.
    pub allowed: bool,
    /// Path and query of the request.
    pub uri: String,
    /// The resourceVersion of the object that was answered. It orders writes; this log does not.
    pub resource_version: Option<u64>,
    /// What was sent, for writes of our kinds.
    pub request: Value,
    /// What was answered, for writes of our kinds.
    pub response: Value,
    /// When the request came (RFC 3339, microseconds).
    pub received_at: String,
    /// When it was finished.
    pub finished_at: String,
}

impl AuditEntry {
    /// Says whether the request changes something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    pub(crate) fn of(event: &mut Value) -> Self {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut entry = Self {
            verb: text("/verb"),
            user: text("/user/username"),
            user_agent: text("/userAgent"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: event.pointer("/responseStatus/code").and_then(Value::as_i64).unwrap_or_default(),
            allowed: text("/annotations/authorization.k8s.io~1decision") == "allow",
            uri: text("/requestURI"),
            resource_version: text("/responseObject/metadata/resourceVersion").parse().ok(),
            received_at: text("/requestReceivedTimestamp"),
            finished_at: text("/stageTimestamp"),
            ..Self::default()
        };
        entry.request = event["requestObject"].take();
        entry.response = event["responseObject"].take();
        if entry.name.is_empty() {
            let name = entry.response.pointer("/metadata/name").or_else(|| entry.request.pointer("/metadata/name"));
            entry.name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        }
        entry
    }
}

/// Parses the lines of a log in which a text stands. The last line may be half written; any other such line that is not
/// JSON is an error.
pub(crate) async fn read(path: &Path, with: &str) -> Result<Vec<AuditEntry>> {
    let text = match tokio::fs::read_to_string(path).await {
        Ok(text) => text,
        // Nothing was written yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter(|line| line.contains(with))
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).context("a line of the audit log is not JSON")?;
            Ok(AuditEntry::of(&mut event))
        })
        .collect()
}
