//! Concludes whether anything of an ended run ran, from the collected evidence and from the objects that the run left.

use std::collections::{BTreeMap, BTreeSet};

use wfe_api::limits::{NAME, cut};
use wfe_core::evidence::{Absence, Doubt, Started};
use wfe_core::name::Uid;

use super::{Evidence, Remembered};
use crate::object::{Attempt, Object, Pod, TaskRun, list, text};

/// The objects that an ended run left, read live.
#[derive(Clone, Copy, Debug)]
pub struct Remains<'a> {
    /// The run; `None` if it is gone.
    pub run: Option<Object<'a>>,
    /// The TaskRuns of the run.
    pub task_runs: &'a [Object<'a>],
    /// The custom runs and child pipeline runs of the run.
    pub others: &'a [Object<'a>],
    /// The pods of the run's tasks.
    pub pods: &'a [Object<'a>],
}

/// The known pods of one task, by name.
#[derive(Default)]
struct Pods<'a> {
    remembered: BTreeMap<&'a str, &'a Remembered>,
    live: BTreeMap<&'a str, Pod<'a>>,
}

impl Evidence {
    /// Returns whether a step of the run ran. "Nothing ran" needs proof; for "something ran", one sign is sufficient.
    #[must_use]
    pub(crate) fn conclude(&self, remains: Remains<'_>) -> Started {
        let proof = || {
            let tasks = remains.task_runs.iter().find_map(|task_run| TaskRun(*task_run).proof());
            tasks.or_else(|| remains.pods.iter().find_map(|pod| Pod(*pod).proof()))
        };
        if let Some(proof) = self.proof.clone().or_else(proof) {
            return Started::Started(proof);
        }
        let doubts = self.doubts(remains);
        // A permanent doubt comes first, because another read cannot remove it.
        let doubt = doubts.iter().find(|doubt| !doubt.may_pass()).or(doubts.first());
        match doubt {
            Some(doubt) => Started::Unknown(doubt.clone()),
            None if remains.task_runs.is_empty() => Started::NotStarted(Absence::NoTaskRun),
            None => Started::NotStarted(Absence::OnlyWaited),
        }
    }

    fn doubts(&self, remains: Remains<'_>) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let known: BTreeSet<Uid> = remains.task_runs.iter().map(|task_run| task_run.uid()).collect();
        let names: BTreeSet<&str> = remains.task_runs.iter().map(|task_run| task_run.name()).collect();
        doubts.extend(self.opaque.clone().map(Doubt::Opaque));
        doubts.extend(remains.others.first().map(|other| Doubt::Opaque(short(other.name()))));
        doubts.extend(self.vanished.clone().map(Doubt::Vanished));
        let gone = self.children.iter().find(|(uid, child)| child.is_task_run && !known.contains(*uid));
        doubts.extend(gone.map(|(_, child)| Doubt::Vanished(child.name.clone())));
        doubts.extend(remains.run.is_none().then_some(Doubt::RunGone));
        for child in remains.run.into_iter().flat_map(|run| list(&run.data["status"], "childReferences")) {
            let name = text(child, "name").unwrap_or_default();
            if text(child, "kind") != Some("TaskRun") {
                doubts.push(Doubt::Opaque(short(name)));
            } else if !names.contains(name) {
                doubts.push(Doubt::Vanished(short(name)));
            }
        }
        doubts.extend(self.too_many.then_some(Doubt::TooMany));
        let mut pods = self.pods_by_task(remains);
        for task_run in remains.task_runs.iter().map(|object| TaskRun(*object)) {
            let pods = pods.remove(&task_run.0.uid()).unwrap_or_default();
            doubts.extend(self.doubts_of(task_run, &pods));
        }
        // The remaining pods belong to tasks that no longer exist.
        doubts.extend(
            pods.into_values()
                .flat_map(|pods| pods.live.into_values())
                .map(|pod| Doubt::Vanished(short(pod.task_run()))),
        );
        doubts
    }

    fn pods_by_task<'a>(&'a self, remains: Remains<'a>) -> BTreeMap<Uid, Pods<'a>> {
        let mut pods: BTreeMap<Uid, Pods<'a>> = BTreeMap::new();
        for ((task_run, name), pod) in &self.pods {
            pods.entry(task_run.clone()).or_default().remembered.insert(name, pod);
        }
        for pod in remains.pods.iter().map(|object| Pod(*object)) {
            pods.entry(pod.task_run_uid()).or_default().live.insert(pod.0.name(), pod);
        }
        pods
    }

    fn doubts_of(&self, task_run: TaskRun<'_>, pods: &Pods<'_>) -> Vec<Doubt> {
        let name = || short(task_run.0.name());
        let mut doubts = Vec::new();
        if task_run.is_ambiguous() {
            doubts.push(Doubt::Ambiguous(name()));
        }
        if !task_run.0.condition().is_done() {
            doubts.push(Doubt::Unfinished(name()));
        }
        let attempted = task_run.attempts().map(Attempt::pod).filter(|pod| !pod.is_empty());
        let all: BTreeSet<&str> =
            attempted.chain(pods.remembered.keys().copied()).chain(pods.live.keys().copied()).collect();
        for pod in all {
            let (remembered, live) = (pods.remembered.get(pod), pods.live.get(pod));
            let has_left = remembered.is_some_and(|pod| pod.has_ever_run) || live.is_some_and(|pod| pod.has_ever_run());
            let is_seen_to_the_end = remembered.is_some_and(|remembered| match live {
                Some(live) => live.0.uid() == remembered.uid,
                None => remembered.is_gone,
            });
            if has_left {
                doubts.push(Doubt::Ambiguous(name()));
            } else if self.interrupted {
                doubts.push(Doubt::Unfollowed(name()));
            } else if !is_seen_to_the_end {
                doubts.push(Doubt::Unseen(name()));
            }
        }
        doubts
    }
}

fn short(name: &str) -> Box<str> {
    cut(name, NAME).into()
}
