//! Checks what must never happen under any fault: violations that the auditor finds, and writes that were accepted
//! twice.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;
use wfe_testkit::{AuditEntry, Observed, Recording, World};

use crate::audited::audited;
use crate::expect::text;

/// The recording and the audit log of a world.
pub(crate) struct History {
    changes: Vec<Observed>,
    entries: Vec<AuditEntry>,
}

/// One PipelineRun in the recording.
#[derive(Default)]
struct Run {
    owner: String,
    released: bool,
}

impl History {
    /// Ends a recording. Fails if the auditor finds a violation, if anything is unfinished, or if a write was accepted
    /// twice.
    pub(crate) async fn judged(world: &World, recording: Recording) -> Result<Self> {
        let changes = audited(world, recording).await?;
        let history = Self { changes, entries: world.audit().await? };
        let repeated = history.repeated_writes();
        assert!(repeated.is_empty(), "{repeated:#?}");
        Ok(history)
    }

    /// Returns the number of PipelineRuns that were created for an execution.
    pub(crate) fn created_for(&self, wfe: &Value) -> usize {
        self.runs().values().filter(|run| run.owner == text(&wfe["metadata"]["uid"])).count()
    }

    /// Returns the number of PipelineRuns that were released.
    pub(crate) fn released(&self) -> usize {
        self.runs().values().filter(|run| run.released).count()
    }

    /// Returns the requests of this kind in the audit log that the API server accepted.
    pub(crate) fn accepted(&self, verb: &str, resource: &str) -> impl Iterator<Item = &AuditEntry> {
        let (verb, resource) = (verb.to_owned(), resource.to_owned());
        self.entries
            .iter()
            .filter(move |entry| entry.verb == verb && entry.resource == resource && (200..300).contains(&entry.code))
    }

    fn runs(&self) -> BTreeMap<&str, Run> {
        let mut runs: BTreeMap<&str, Run> = BTreeMap::new();
        for change in self.changes.iter().filter(|change| change.kind == "PipelineRun") {
            let object = &change.object;
            let run = runs.entry(text(&object["metadata"]["uid"])).or_default();
            text(&object["metadata"]["annotations"]["kubernaut.ai/workflow-execution-uid"]).clone_into(&mut run.owner);
            run.released |= object["spec"]["status"] != "PipelineRunPending";
        }
        runs
    }

    /// Returns the creates, releases and events that the API server accepted twice.
    fn repeated_writes(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for entry in self.accepted("create", "events") {
            *counts.entry(format!("event {} created", entry.name)).or_default() += 1;
        }
        for entry in self.accepted("patch", "pipelineruns") {
            if entry.request.to_string().contains("remove") {
                *counts.entry(format!("run {} released", text(&entry.response["metadata"]["uid"]))).or_default() += 1;
            }
        }
        counts
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .map(|(what, count)| format!("{what} {count} times"))
            .collect()
    }
}

/// Asserts that all these executions are Completed.
#[track_caller]
pub(crate) fn assert_completed<'a>(wfes: impl IntoIterator<Item = &'a Value>) {
    for wfe in wfes {
        assert_eq!(wfe["status"]["phase"], "Completed", "{wfe:#}");
    }
}
