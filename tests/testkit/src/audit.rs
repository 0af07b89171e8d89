//! The API server's audit log: which user sent which request. The log does not depend on the operator.

use std::io::{self, ErrorKind, SeekFrom};
use std::path::Path;

use anyhow::{Context as _, Result};
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

/// One finished request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Such as `create`, `patch`, `list`, `watch`.
    pub verb: String,
    /// The user who sent the request.
    pub user: String,
    /// The user agent of the client program.
    pub user_agent: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, such as `pipelineruns`.
    pub resource: String,
    /// Such as `status`; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for requests across namespaces.
    pub namespace: String,
    /// Name; empty for lists, and for creates that are logged without bodies.
    pub name: String,
    /// HTTP status of the answer.
    pub code: i64,
    /// Whether the authorizer allowed the request. If so, an error status has another reason than a missing right.
    pub allowed: bool,
    /// Path and query of the request.
    pub uri: String,
    /// The resourceVersion of the object in the answer. It gives the order of writes, which the order of log entries
    /// does not.
    pub resource_version: Option<u64>,
    /// The body of the request, for writes of our kinds.
    pub request: Value,
    /// The body of the answer, for writes of our kinds.
    pub response: Value,
    /// When the request arrived (RFC 3339, microseconds).
    pub received_at: String,
    /// When the request was finished.
    pub finished_at: String,
}

impl AuditEntry {
    /// Returns whether the request changes something.
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

/// Parses those lines of a log that contain a text, from a byte offset on. The last line may be incomplete. A matching
/// line that is not JSON is an error.
pub(crate) async fn read(path: &Path, from: u64, with: &str) -> Result<Vec<AuditEntry>> {
    let log = match read_from(path, from).await {
        Ok(log) => log,
        // Nothing has been written yet.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let parse = |line| {
        let mut event: Value = serde_json::from_slice(line).context("a line of the audit log is not JSON")?;
        Ok(AuditEntry::of(&mut event))
    };
    lines(&log, with).map(parse).collect()
}

async fn read_from(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path).await?;
    file.seek(SeekFrom::Start(from)).await?;
    let mut log = Vec::new();
    file.read_to_end(&mut log).await?;
    Ok(log)
}

/// Returns the complete lines that contain a text. The function searches for the text instead of examining each line: a
/// log that many tests share has a hundred megabytes, and few lines concern one test.
fn lines<'a>(log: &'a [u8], with: &str) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = memrchr(b'\n', log).map_or(&[][..], |end| &log[..=end]);
    let finder = Finder::new(with).into_owned();
    std::iter::from_fn(move || {
        let hit = finder.find(rest).filter(|_| !rest.is_empty())?;
        let begin = memrchr(b'\n', &rest[..hit]).map_or(0, |end| end + 1);
        let end = hit + memchr(b'\n', &rest[hit..])?;
        let line = &rest[begin..end];
        rest = &rest[end + 1..];
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_lines_with_a_text_are_found() {
        let found = |log: &str, with| -> Vec<String> {
            lines(log.as_bytes(), with).map(|line| String::from_utf8_lossy(line).into_owned()).collect()
        };
        let log = "a world\nanother\n\nworld, world\nthe last world, half writ";
        assert_eq!(found(log, "world"), ["a world", "world, world"]);
        assert_eq!(found(log, ""), ["a world", "another", "", "world, world"]);
        assert_eq!(found("", ""), [""; 0]);
        assert_eq!(found("half", "half"), [""; 0]);
    }
}
