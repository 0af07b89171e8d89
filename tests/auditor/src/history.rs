//! The history of each object: changes are ordered, and grouped into the lives of executions, runs and Tekton's
//! objects.
//!
//! This module parses the objects, and recognizes the operator's own. It does not judge them, but finds gaps in the
//! recording.

mod attempt;
mod execution;
mod life;
mod piece;
mod run;
mod schedule;

pub(crate) use attempt::{Attempt, listed, waits};
pub(crate) use execution::{Commit, Execution};
pub(crate) use life::{Written, phase};
pub(crate) use piece::Piece;
pub(crate) use run::{Chain, Run};
pub(crate) use schedule::{ANALYST, ChildOf, LastRun, Schedule, failure_count, planned_from};

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::input::{Change, Request};
use crate::report::{Moment, ObjectRef};
use life::Life;

/// The greatest distance between a pod and its run, with a reserve. Between them are a TaskRun and a child run.
const MAX_DEPTH: usize = 8;

/// Everything that the recording shows.
#[derive(Debug)]
pub(crate) struct History<'a> {
    /// The executions, by uid.
    pub(crate) executions: BTreeMap<&'a str, Execution<'a>>,
    /// The runs with the annotation of an execution's uid, by their own uid.
    pub(crate) runs: BTreeMap<&'a str, Run<'a>>,
    /// The schedules, by uid.
    pub(crate) schedules: BTreeMap<&'a str, Schedule<'a>>,
    /// The namespaces, by name.
    pub(crate) namespaces: BTreeMap<&'a str, Vec<(Moment, &'a Value)>>,
    /// The objects that Tekton has made for these runs, by the run's uid.
    pieces: BTreeMap<&'a str, Vec<Piece<'a>>>,
    /// The uids of PipelineRuns that belong to no execution, directly or through another run.
    pub(crate) strangers: BTreeSet<&'a str>,
    /// Whether the recording contains any TaskRuns or pods.
    pub(crate) shows_pieces: bool,
    /// Changes that the recording should contain but does not.
    pub(crate) gaps: Vec<String>,
    versions: BTreeMap<&'a str, BTreeSet<u64>>,
    /// The last recorded version, by kind and namespace.
    last: BTreeMap<(&'a str, &'a str), u64>,
}

impl<'a> History<'a> {
    /// Reads changes, which may be in any order.
    pub(crate) fn read(changes: &'a [Change]) -> Self {
        let (lives, nameless) = life::group(changes);
        let mut history = Self {
            executions: BTreeMap::new(),
            runs: BTreeMap::new(),
            schedules: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            pieces: BTreeMap::new(),
            strangers: BTreeSet::new(),
            shows_pieces: lives.values().any(|life| matches!(life.kind, "TaskRun" | "Pod")),
            gaps: (0..nameless).map(|_| "a change of an object without a uid".to_owned()).collect(),
            versions: lives.iter().map(|(uid, life)| (*uid, life.versions())).collect(),
            last: last_versions(changes),
        };
        let mut pieces = Vec::new();
        for (uid, life) in &lives {
            match life.kind {
                "WorkflowExecution" => {
                    history.executions.insert(uid, Execution::read(life));
                }
                "WorkflowSchedule" => {
                    history.schedules.insert(uid, Schedule::read(life));
                }
                "Namespace" => {
                    history.namespaces.insert(life.name, life.states.clone());
                }
                "PipelineRun" if life.controller().is_none() => match Run::read(life) {
                    Some(run) => {
                        history.runs.insert(uid, run);
                    }
                    None => {
                        history.strangers.insert(uid);
                    }
                },
                "PipelineRun" | "TaskRun" | "CustomRun" | "Pod" => pieces.push(life),
                _ => {}
            }
        }
        for life in pieces {
            history.place(&lives, life);
        }
        history.find_gaps(&lives);
        history
    }

    /// Assigns an object to the run for which Tekton has made it.
    fn place(&mut self, lives: &BTreeMap<&'a str, Life<'a>>, life: &Life<'a>) {
        match self.root(lives, life, MAX_DEPTH) {
            Some(root) => {
                let piece = Piece::read(life);
                if let Some(run) = self.runs.get_mut(root) {
                    run.note_piece(&piece);
                }
                self.pieces.entry(root).or_default().push(piece);
            }
            None if life.is_labelled() && !self.is_strangers(lives, life, MAX_DEPTH) => {
                self.gaps.push(format!("{} was made from a run that the recording does not have", life.object()));
            }
            None => {}
        }
    }

    fn root(&self, lives: &BTreeMap<&'a str, Life<'a>>, life: &Life<'a>, depth: usize) -> Option<&'a str> {
        life.parents().find_map(|parent| match self.runs.get_key_value(parent) {
            Some((uid, _)) => Some(*uid),
            None if depth > 0 => self.root(lives, lives.get(parent)?, depth - 1),
            None => None,
        })
    }

    fn is_strangers(&self, lives: &BTreeMap<&'a str, Life<'a>>, life: &Life<'a>, depth: usize) -> bool {
        life.parents().any(|parent| {
            self.strangers.contains(parent)
                || (depth > 0 && lives.get(parent).is_some_and(|life| self.is_strangers(lives, life, depth - 1)))
        })
    }

    fn find_gaps(&mut self, lives: &BTreeMap<&'a str, Life<'a>>) {
        let pieces: BTreeSet<&str> = self.pieces.values().flatten().map(|piece| piece.object.uid.as_str()).collect();
        let ours = |uid: &str| {
            let is_known = self.executions.contains_key(uid) || self.schedules.contains_key(uid);
            is_known || self.runs.contains_key(uid) || pieces.contains(uid)
        };
        let ours: Vec<&Life<'_>> = lives.values().filter(|life| ours(life.uid)).collect();
        self.gaps.extend(ours.iter().flat_map(|life| life.gaps()));
        self.gaps.extend(life::names_taken_twice(&ours));
    }

    /// Finds writes that succeeded according to the audit log, but that are missing in the watch.
    pub(crate) fn compare(&mut self, requests: &[Request]) {
        for request in requests.iter().filter(|request| request.is_write() && request.succeeded()) {
            let (Some(version), Some(uid)) = (request.resource_version, text(&request.response, "/metadata/uid"))
            else {
                continue;
            };
            let kind = match request.resource.as_str() {
                "workflowexecutions" => "WorkflowExecution",
                "workflowschedules" => "WorkflowSchedule",
                "pipelineruns" => "PipelineRun",
                _ => continue,
            };
            // The answer to a deletion has a version of its own. A version after the last recorded one is not missing.
            let last = self.last.get(&(kind, request.namespace.as_str()));
            if request.verb.starts_with("delete") || last.is_none_or(|last| version > *last) {
                continue;
            }
            if self.versions.get(uid).is_none_or(|versions| !versions.contains(&version)) {
                self.gaps.push(format!(
                    "{} {}/{} had resourceVersion {version} by a {} of {}, which the watch does not show",
                    request.resource, request.namespace, request.name, request.verb, request.user
                ));
            }
        }
    }

    /// Returns the execution that owns a run, if the recording contains the execution.
    pub(crate) fn owner(&self, run: &Run<'_>) -> Option<&Execution<'a>> {
        self.executions.get(run.owner)
    }

    /// Returns the write by which a run's owner has committed to the run.
    pub(crate) fn commit_to(&self, run: &Run<'_>) -> Option<&Commit<'a>> {
        self.owner(run)?.commits.iter().find(|commit| commit.run == run.object.uid)
    }

    /// Returns whether the recording contains the executions in the namespace of a run's owner. If so, an owner that is
    /// not recorded does not exist.
    pub(crate) fn covers_owner_of(&self, run: &Run<'_>) -> bool {
        run.owner_name
            .and_then(|name| name.split_once('/'))
            .is_some_and(|(namespace, _)| self.executions.values().any(|one| one.object.namespace == namespace))
    }

    /// Lists the objects that Tekton has made for a run.
    pub(crate) fn pieces_of(&self, run: &Run<'_>) -> impl Iterator<Item = &Piece<'a>> {
        self.pieces.get(run.object.uid.as_str()).into_iter().flatten()
    }

    /// Lists the runs of each chain, in the order of their creation.
    pub(crate) fn chains(&self) -> BTreeMap<&Chain<'a>, Vec<&Run<'a>>> {
        let mut chains: BTreeMap<&Chain<'_>, Vec<&Run<'_>>> = BTreeMap::new();
        for run in self.runs.values() {
            chains.entry(&run.chain).or_default().push(run);
        }
        for runs in chains.values_mut() {
            runs.sort_by_key(|run| run.created);
        }
        chains
    }

    /// Returns the target of a run: from the run's annotation, otherwise from its owner, otherwise described by the
    /// run's name.
    pub(crate) fn target_of(&self, run: &Run<'_>) -> String {
        let by_owner = || self.owner(run).map(Execution::shown_target);
        run.target.map(str::to_owned).or_else(by_owner).unwrap_or_else(|| format!("the target of {}", run.object.name))
    }
}

fn last_versions(changes: &[Change]) -> BTreeMap<(&str, &str), u64> {
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for change in changes {
        let namespace = text(&change.object, "/metadata/namespace").unwrap_or_default();
        let last = all.entry((&change.kind, namespace)).or_default();
        *last = change.resource_version.max(*last);
    }
    all
}

/// Returns the string at a pointer if it is not empty.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(crate) fn object_ref(kind: &str, namespace: &str, name: &str, uid: &str) -> ObjectRef {
    ObjectRef { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() }
}
