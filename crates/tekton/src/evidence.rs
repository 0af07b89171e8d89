//! Collects evidence about a run's tasks and pods while it runs, because Tekton overwrites and deletes that information
//! later (section 9).
//!
//! One [`Evidence`] belongs to one run. It reads each version of a TaskRun or pod that a watch delivers. It keeps the
//! first proof that a step ran. Without a proof, it keeps which pods have only waited.

mod sighting;
mod verdict;

use std::collections::BTreeMap;

use wfe_core::evidence::Proof;
use wfe_core::findings::Wait;
use wfe_core::name::Uid;
use wfe_core::run::Seen;
use wfe_core::uid_map::UidMap;

use crate::reasons::{Meaning, RunReason};
pub use sighting::Sighting;
use sighting::{Child, Pod, Shows, Waiting};
pub use verdict::Remains;

/// The limit of observed tasks of a run. Tekton allows a matrix of 256 tasks. Nothing can prove that no step ran if a
/// run has more tasks than `MAX_CHILDREN`.
const MAX_CHILDREN: usize = 1024;
/// The limit of remembered pods of a run.
const MAX_PODS: usize = 1024;

/// The evidence about one run: one or two hundred bytes, and more for each task that is unfinished or not proven to
/// have run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    proof: Option<Proof>,
    replayed: Option<Box<str>>,
    /// Whether versions may have been missed while something could run.
    interrupted: bool,
    /// The name of an object that may have run anything, because only its own controller understands it.
    opaque: Option<Box<str>>,
    /// The name of a deleted task.
    vanished: Option<Box<str>>,
    too_many: bool,
    has_started_anything: bool,
    children: UidMap<Known>,
    /// The remembered pods, by the uid of their TaskRun and their name.
    pods: BTreeMap<(Uid, Box<str>), Remembered>,
    waiting: Option<Waiting>,
}

/// The last observed state of a task.
#[derive(Clone, Debug)]
struct Known {
    name: Box<str>,
    task: Box<str>,
    is_task_run: bool,
    is_done: bool,
    /// The name of the pod in which the first step was seen running, and since when that step runs.
    running: Option<(Box<str>, Box<str>)>,
}

/// The last observed state of a pod.
#[derive(Clone, Debug)]
struct Remembered {
    uid: Uid,
    has_ever_run: bool,
    is_gone: bool,
}

impl Evidence {
    /// Records a version of a task or pod. The versions of one object arrive in order.
    pub fn observe(&mut self, sighting: &Sighting) {
        match &sighting.shows {
            Shows::Child(uid, child) => self.observe_task(uid, child),
            Shows::Pod(pod) => self.observe_pod(pod),
        }
    }

    /// Records the deletion of a task or pod; `sighting` is from its last version.
    pub fn observe_deletion(&mut self, sighting: &Sighting) {
        self.observe(sighting);
        match &sighting.shows {
            Shows::Child(_, child) => {
                self.vanished.get_or_insert_with(|| child.name.clone());
            }
            Shows::Pod(pod) => {
                if let Some(known) = self.pods.get_mut(&pod.key()).filter(|known| known.uid == pod.uid) {
                    known.is_gone = true;
                }
            }
        }
    }

    /// Records that versions may have been missed. A pod that was last seen waiting may have run since.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Records the reason of the run's condition `Succeeded`.
    pub fn observe_reason(&mut self, reason: &str) {
        match RunReason::parse(reason).map(RunReason::means) {
            Some(Meaning::Waits(wait)) => self.waiting = Some(Waiting { wait, step: None }),
            // Any other reason shows that the bundle was fetched.
            Some(_) => drop(self.waiting.take_if(|waiting| waiting.wait == Wait::Bundle)),
            None => {}
        }
    }

    /// Returns the evidence that decisions need.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen {
            has_started_anything: self.has_started_anything || self.proof.is_some() || self.opaque.is_some(),
            proof: self.proof.clone(),
            opaque: self.opaque.clone(),
            replayed: self.replayed.clone(),
            replay_told: false,
            is_over: false,
            waits: self.waiting.as_ref().map(|waiting| waiting.wait),
            completed_tasks: completed_tasks(self.children.values().map(|child| (&*child.task, child.is_done))),
        }
    }

    /// Returns what the run was waiting for when last seen, and which step was waiting.
    pub(crate) fn waiting(&self) -> Option<(Wait, Option<&str>)> {
        self.waiting.as_ref().map(|waiting| (waiting.wait, waiting.step.as_deref()))
    }

    fn observe_task(&mut self, uid: &Uid, child: &Child) {
        if child.is_task_run {
            self.has_started_anything |= child.is_done;
        } else {
            self.opaque.get_or_insert_with(|| child.name.clone());
        }
        if let Some(proof) = &child.proof {
            self.proof.get_or_insert_with(|| proof.clone());
        }
        if let Some(waiting) = &child.waiting {
            self.waiting = Some(waiting.clone());
        }
        if self.children.len() >= MAX_CHILDREN && !self.children.contains_key(uid) {
            self.too_many = true;
            return;
        }
        let known = self.children.get_or_insert_with(uid, || Known {
            name: child.name.clone(),
            task: child.task.clone(),
            is_task_run: child.is_task_run,
            is_done: false,
            running: None,
        });
        known.is_done = child.is_done;
        // If the step started at another time, this is another pod of the same name.
        let runs_again =
            known.running.as_ref().zip(child.running.as_ref()).is_some_and(|(a, b)| a.0 == b.0 && a.1 != b.1);
        if child.running.is_some() || child.is_done {
            known.running.clone_from(&child.running);
        }
        if runs_again {
            self.record_rerun(&child.name);
        }
        if child.is_done {
            self.forget_pods(uid);
        }
    }

    fn observe_pod(&mut self, pod: &Pod) {
        self.has_started_anything |= pod.has_left_waiting;
        if let Some(proof) = &pod.proof {
            self.proof.get_or_insert_with(|| proof.clone());
        }
        let Some(known) = self.pods.get_mut(&pod.key()) else {
            self.remember(pod);
            return;
        };
        if known.uid == pod.uid {
            known.has_ever_run |= pod.has_left_waiting;
            return;
        }
        // If the old pod only waited, its replacement runs no step a second time.
        let ran_before = known.has_ever_run;
        (known.uid, known.has_ever_run, known.is_gone) = (pod.uid.clone(), pod.has_left_waiting, false);
        if ran_before {
            self.record_rerun(&pod.task_run);
        }
    }

    fn remember(&mut self, pod: &Pod) {
        let is_finished = self.children.get(&pod.task_run_uid).is_some_and(|child| child.is_done);
        if self.proof.is_some() && is_finished {
            return; // the pod is no longer needed
        }
        if self.pods.len() >= MAX_PODS {
            self.too_many = true;
            return;
        }
        let uid = pod.uid.clone();
        self.pods.insert(pod.key(), Remembered { uid, has_ever_run: pod.has_left_waiting, is_gone: false });
    }

    fn record_rerun(&mut self, task_run: &str) {
        self.replayed.get_or_insert_with(|| task_run.into());
        self.proof.get_or_insert_with(|| Proof::replaced(task_run));
    }

    /// Removes the pods of a finished task after a step is proven to have run. From then on, pods only show whether
    /// they are replaced while their task is unfinished.
    fn forget_pods(&mut self, task_run: &Uid) {
        if self.proof.is_some() {
            self.pods.retain(|(owner, _), _| owner != task_run);
        }
    }
}

/// Counts the completed tasks of the pipeline. `made` gives for each object its task and whether the object is done. A
/// task is completed when all its objects are done.
pub(crate) fn completed_tasks<'a>(made: impl Iterator<Item = (&'a str, bool)>) -> u16 {
    let mut done: BTreeMap<&str, bool> = BTreeMap::new();
    for (task, is_done) in made {
        *done.entry(task).or_insert(true) &= is_done;
    }
    u16::try_from(done.values().filter(|is_done| **is_done).count()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
