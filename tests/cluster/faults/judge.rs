//! What may never be seen from outside, whatever the faults: read from a recording and the audit log.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;
use wfe_testkit::{AuditEntry, Change, Observed, Recording, World, is_terminal};

use crate::expect::text;

/// All that happened in a world.
pub(crate) struct History {
    changes: Vec<Observed>,
    audit: Vec<AuditEntry>,
}

/// One PipelineRun as the recording shows it.
#[derive(Default)]
struct Run {
    owner: String,
    releases: usize,
    gone: bool,
    pending: bool,
}

impl History {
    /// Ends a recording and reads the audit log.
    pub(crate) async fn of(world: &World, recording: Recording) -> Result<Self> {
        let changes = recording.stop().await?;
        Ok(Self { changes, audit: world.audit().await? })
    }

    /// Fails if two ran at once on a target, an execution ran twice, or one ran that was skipped; if a phase moved
    /// backwards; or if at the end something is undecided or left over.
    #[track_caller]
    pub(crate) fn check(&self) {
        let mut wrong = self.overlaps();
        let runs = self.runs();
        let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
        for (uid, run) in &runs {
            if run.releases > 0 {
                *ran.entry(&run.owner).or_default() += 1;
            }
            if run.releases > 1 {
                wrong.push(format!("run {uid} was released {} times", run.releases));
            }
            if run.pending && !run.gone {
                wrong.push(format!("run {uid} of {} is left, pending", run.owner));
            }
        }
        wrong
            .extend(ran.iter().filter(|(_, count)| **count > 1).map(|(wfe, count)| format!("{wfe} ran {count} times")));
        for (uid, phases) in self.phases() {
            let name = format!("WorkflowExecution {uid} ({})", phases.join(" > "));
            let has_run = ran.contains_key(uid.as_str());
            match phases.last().map(String::as_str) {
                Some("Skipped") if has_run => wrong.push(format!("{name} ran")),
                Some("Completed") if !has_run => wrong.push(format!("{name} never ran")),
                Some("Completed" | "Failed" | "Skipped") => {}
                _ => wrong.push(format!("{name} is not terminal")),
            }
            if phases.iter().rev().skip(1).any(|phase| matches!(phase.as_str(), "Completed" | "Failed" | "Skipped")) {
                wrong.push(format!("{name} left a terminal phase"));
            }
        }
        wrong.extend(self.repeated_writes());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns how many PipelineRuns were ever created for an execution.
    pub(crate) fn created_for(&self, wfe: &Value) -> usize {
        self.runs().values().filter(|run| run.owner == text(&wfe["metadata"]["uid"])).count()
    }

    /// Returns how many released PipelineRuns there were.
    pub(crate) fn released(&self) -> usize {
        self.runs().values().filter(|run| run.releases > 0).count()
    }

    /// Returns the audit log's entries of this kind that were not refused.
    pub(crate) fn accepted(&self, verb: &str, resource: &str) -> impl Iterator<Item = &AuditEntry> {
        let (verb, resource) = (verb.to_owned(), resource.to_owned());
        self.audit
            .iter()
            .filter(move |entry| entry.verb == verb && entry.resource == resource && (200..300).contains(&entry.code))
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Observed> {
        self.changes.iter().filter(move |change| change.kind == kind)
    }

    /// Mutual exclusion, in the order of the API server.
    fn overlaps(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut active: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for change in self.of_kind("PipelineRun") {
            let object = &change.object;
            let name = text(&object["metadata"]["name"]);
            let chain = name.rsplit_once('-').map_or(name, |(chain, _)| chain);
            let on_target = active.entry(chain).or_default();
            if change.change != Change::Deleted && !is_pending(object) && !is_done(object) {
                on_target.insert(text(&object["metadata"]["uid"]));
                if on_target.len() > 1 {
                    wrong.push(format!("at {} these run at once: {on_target:?}", change.resource_version));
                }
            } else {
                on_target.remove(text(&object["metadata"]["uid"]));
            }
        }
        wrong
    }

    fn runs(&self) -> BTreeMap<&str, Run> {
        let mut runs: BTreeMap<&str, Run> = BTreeMap::new();
        for change in self.of_kind("PipelineRun") {
            let object = &change.object;
            let is_first = !runs.contains_key(text(&object["metadata"]["uid"]));
            let run = runs.entry(text(&object["metadata"]["uid"])).or_default();
            text(&object["metadata"]["annotations"]["kubernaut.ai/workflow-execution-uid"]).clone_into(&mut run.owner);
            let pending = is_pending(object);
            run.releases += usize::from(!pending && (is_first || run.pending));
            run.pending = pending;
            run.gone = change.change == Change::Deleted;
        }
        runs
    }

    fn phases(&self) -> BTreeMap<String, Vec<String>> {
        let mut phases: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for change in self.of_kind("WorkflowExecution").filter(|change| change.change != Change::Deleted) {
            let seen = phases.entry(text(&change.object["metadata"]["uid"]).to_owned()).or_default();
            let phase = text(&change.object["status"]["phase"]);
            if seen.last().is_none_or(|last| last != phase) {
                seen.push(phase.to_owned());
            }
        }
        phases
    }

    /// A create, a release or an event that the API server has accepted twice.
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

/// Fails unless all these are Completed.
#[track_caller]
pub(crate) fn assert_completed<'a>(wfes: impl IntoIterator<Item = &'a Value>) {
    for wfe in wfes {
        assert!(is_terminal(wfe));
        assert_eq!(wfe["status"]["phase"], "Completed", "{wfe:#}");
    }
}

fn is_pending(run: &Value) -> bool {
    run["spec"]["status"] == "PipelineRunPending"
}

fn is_done(run: &Value) -> bool {
    let conditions = run["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == "Succeeded")
        .any(|condition| matches!(condition["status"].as_str(), Some("True" | "False")))
}
