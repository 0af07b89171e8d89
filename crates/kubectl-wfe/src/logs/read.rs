//! Reads the log of one container, bounded in lines, bytes and time.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use wfe_view::call::{CallError, within};

use super::{Run, Step};
use crate::connection::{Connection, words};

/// How many bytes of a log are read: two hundred lines of five thousand characters, which no person reads through.
pub(super) const MOST_BYTES: u64 = 1 << 20;
/// How long one log may take. A megabyte takes well under a second, and a kubelet may be slow.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// A log, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Log {
    /// Its lines, and what they lack.
    Lines { lines: Vec<String>, note: Option<String> },
    /// The log cannot be read. The logs of other steps may be readable.
    None(String),
}

/// Reads the last lines of a step. Fails if the caller lacks the right.
pub(super) async fn read(connection: &Connection, run: &Run, step: &Step, tail: u32) -> Result<Log> {
    // One line more shows whether any is left out.
    let params = LogParams { tail_lines: Some(i64::from(tail) + 1), ..LogParams::default() };
    match bytes(connection, run, step, params).await {
        Ok(bytes) => Ok(last_lines(&bytes, tail)),
        Err(error) if matches!(error.code(), 401 | 403) => bail!("cannot read the log: {}", said(&error, run)),
        Err(error) => Ok(Log::None(format!("its log cannot be read: {}", words(&error)))),
    }
}

/// Reads the bytes of a log.
pub(super) async fn bytes(
    connection: &Connection,
    run: &Run,
    step: &Step,
    params: LogParams,
) -> Result<Vec<u8>, CallError> {
    let pods: Api<Pod> = Api::namespaced(connection.client.clone(), &run.namespace);
    let limit_bytes = i64::try_from(MOST_BYTES).ok();
    let params = LogParams { container: Some(step.step.container.clone()), limit_bytes, ..params };
    let reading = async {
        let mut bytes = Vec::new();
        let mut log = pin!(pods.log_stream(&step.pod, &params).await?.take(MOST_BYTES));
        log.read_to_end(&mut bytes).await.map_err(kube::Error::ReadEvents)?;
        Ok(bytes)
    };
    within(READ_WITHIN, reading).await
}

/// Keeps the last `tail` lines. One line more was requested.
fn last_lines(bytes: &[u8], tail: u32) -> Log {
    let tail = usize::try_from(tail).unwrap_or(usize::MAX);
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let note = if bytes.len() as u64 >= MOST_BYTES {
        Some("cut after 1 MiB; a smaller --tail shows the end".to_owned())
    } else if lines.len() > tail {
        lines.drain(..lines.len() - tail);
        Some(format!("these are the last {tail} lines; --tail shows more"))
    } else {
        None
    };
    Log::Lines { lines, note }
}

/// Describes an error, with the role that gives the right.
pub(super) fn said(error: &CallError, run: &Run) -> String {
    match error {
        CallError::Refused(status) if status.code == 403 => {
            format!("{}; ask for the Role wfe-oncall of {}", status.message, run.namespace)
        }
        other => words(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_cut_at_its_beginning_and_tells_so() {
        let lines = |log: &str, tail| match last_lines(log.as_bytes(), tail) {
            Log::Lines { lines, note } => (lines.join("|"), note),
            none @ Log::None(_) => panic!("{none:?}"),
        };
        assert_eq!(lines("", 2), (String::new(), None));
        assert_eq!(lines("a\nb\n", 2), ("a|b".to_owned(), None));
        let note = Some("these are the last 2 lines; --tail shows more".to_owned());
        assert_eq!(lines("a\nb\nc", 2), ("b|c".to_owned(), note));
        let (_, note) = lines(&"x".repeat(1 << 20), 2);
        assert_eq!(note.as_deref(), Some("cut after 1 MiB; a smaller --tail shows the end"));
        assert_eq!(last_lines(b"\xff\n", 2), Log::Lines { lines: vec!["\u{fffd}".to_owned()], note: None });
    }

    #[test]
    fn a_missing_right_names_the_role() {
        let run = Run { attempt: 1, namespace: "exec".to_owned(), name: "r-1".to_owned() };
        let refused = |code| {
            let message = "cannot get resource \"pods/log\"".to_owned();
            CallError::Refused(Box::new(kube::core::Status { code, message, ..Default::default() }))
        };
        assert_eq!(said(&refused(403), &run), "cannot get resource \"pods/log\"; ask for the Role wfe-oncall of exec");
        assert_eq!(said(&refused(500), &run), "cannot get resource \"pods/log\"");
    }
}
