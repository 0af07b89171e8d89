//! Tekton in a play: how runs begin, end and drain, by the script of their workflow.

use std::collections::HashMap;
use std::time::Duration;

use kube::api::ObjectMeta;
use serde_json::json;
use wfe_core::Time;
use wfe_core::chain::{ChainName, RunNumber};
use wfe_core::evidence::{Absence, Proof, Started};
use wfe_core::execution::Execution;
use wfe_core::findings::{Cause, FailedTask, Findings, Waited};
use wfe_core::name::{RunId, Uid, Version};
use wfe_core::reason::FailureReason;
use wfe_core::residue::{Residue, ResidueId, ResidueKind};
use wfe_core::run::{CancelReason, Order, Outcome, Owner, Presence, Progress, Run, RunMemory, Stays, StopRequest};
use wfe_tekton::{Descendant, Object, RUN_UID_LABEL, Sighting};
use wfe_view::index::{Delivery, Key, Kind};

use super::{Happening, Play};
use crate::simulate::scenario::{Failing, uid};

/// The one task and step of each workflow.
const WORK: &str = "work";

/// Counts of runs and executions.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Workload {
    runs: u64,
    /// How many runs of each workflow were released.
    released: HashMap<String, u64>,
    /// How many executions there are of each name without its number.
    names: HashMap<String, u64>,
}

/// A run that exists.
#[derive(Debug)]
pub(in crate::simulate) struct InProgress {
    key: Key,
    chain: ChainName,
    drains: Duration,
    /// Why it fails; none if it succeeds.
    failure: Option<Failing>,
    /// When the one step of the run began; none if it never does.
    began: Option<Time>,
    /// Whether Tekton cancels it before its end.
    cancelled: Option<CancelReason>,
}

impl InProgress {
    /// Returns the results that a condition can ask about.
    pub(in crate::simulate) fn results(&self) -> std::collections::BTreeMap<String, String> {
        self.failure.as_ref().map(|failure| failure.results.clone()).unwrap_or_default()
    }

    /// Returns what an examination of the failed run finds.
    pub(in crate::simulate) fn findings(&self) -> Findings {
        let step = self.began.map(|at| Proof::ended("work", WORK, "containerd://1", Some(at)));
        let started = step.map_or(Started::NotStarted(Absence::OnlyWaited), Started::Started);
        let failure = self.failure.as_ref().filter(|_| self.cancelled != Some(CancelReason::Requested));
        let reason = failure.map_or(FailureReason::Unknown, |it| it.reason);
        let words = failure.map_or("its run was cancelled", |it| &it.says);
        let task = FailedTask {
            name: WORK.into(),
            index: 0,
            step: Some(WORK.into()),
            exit_code: failure.and_then(|it| it.exit_code),
            registry: None,
        };
        // If nothing ran, no task shows that the workflow is at fault.
        let task = self.began.map(|_| task);
        Findings {
            started,
            cause: Cause { reason, message: words.into(), task },
            waited: failure.map(|it| Waited { reason: it.reason, words: it.says.as_str().into() }),
            unresolved: false,
            was_cancelled: self.cancelled.is_some(),
            completed_tasks: 0,
        }
    }
}

impl Workload {
    /// Returns the name of the next execution: this name and a number.
    pub(in crate::simulate) fn next_name(&mut self, namespace: &str, name: &str) -> String {
        let count = self.names.entry(format!("{namespace}/{name}")).or_default();
        *count += 1;
        format!("{name}-{count}")
    }
}

impl Play<'_> {
    /// Creates a pending run.
    pub(in crate::simulate) fn create_run(
        &mut self,
        key: &Key,
        execution: &Uid,
        number: RunNumber,
        at_most: Option<Duration>,
    ) {
        let Key::Chain(chain) = *key else { return };
        let Some(owner) = self.execution(key, execution).cloned() else { return };
        self.workload.runs += 1;
        let own = Uid::new(&uid(3, self.workload.runs));
        let timeout = owner.timeout.unwrap_or(self.policy.default_timeout);
        let run = Run {
            id: RunId { uid: own.clone(), name: chain.run(number).into() },
            number,
            version: Version::new("1"),
            created: self.now,
            order: Order(0), // the index sets it
            owner: Owner::Execution {
                id: owner.id.clone(),
                workflow_id: (*owner.workflow_id).into(),
                presence: Presence::Watched,
            },
            stays: if owner.child.is_some() { Stays::WithItsExecution } else { Stays::ForItsRetention },
            progress: Progress::Pending,
            cancelled: false,
            cancel_reason: None,
            stopped: false,
            doing: "".into(),
            total_tasks: None,
            skipped_tasks: 0,
            undeclared: Box::default(),
            timeout: Some(at_most.map_or(timeout, |most| timeout.min(most))),
            released_at: None,
            deleting: false,
            stop: None,
            memory: RunMemory::default(),
        };
        let drains = self.scenario.workflow(&owner.workflow_id).drains;
        let in_progress = InProgress { key: key.clone(), chain, drains, failure: None, began: None, cancelled: None };
        self.runs.insert(own, in_progress);
        self.index.apply(Delivery::Run(chain, Box::new(run)), self.now);
    }

    /// Releases a run: Tekton starts it, and the play sets when it ends.
    pub(in crate::simulate) fn release(&mut self, key: &Key, run: &RunId) {
        let Some(released) = self.run(key, &run.uid) else { return };
        let timeout = released.timeout.unwrap_or(Duration::MAX);
        let owner = released.owner.execution().and_then(|id| self.execution(key, &id.uid));
        let Some(owner) = owner.cloned() else { return };
        let attempt = owner.retry.as_ref().map_or(1, |retry| retry.current());
        let (failure, lasts) = self.end_of(&owner.workflow_id, attempt, timeout);
        let began = failure.as_ref().is_none_or(|it| it.ran).then_some(self.now);
        self.story.runs(self.now, key, &owner, lasts);
        if let Some(in_progress) = self.runs.get_mut(&run.uid) {
            (in_progress.failure, in_progress.began) = (failure, began);
        }
        let now = self.now;
        self.change_run(key, &run.uid, |it| {
            (it.progress, it.released_at, it.doing) = (Progress::Released, Some(now), "Running".into());
        });
        if began.is_some() {
            self.show_task(key, &run.uid, true);
        }
        self.expect(lasts, Happening::RunEnds(run.uid.clone()));
    }

    /// Takes over a run that exists at the start. Returns when it ends, if it runs.
    pub(super) fn take_over(&mut self, key: &Key, chain: ChainName, run: &Run) -> Option<Duration> {
        let uid = &run.id.uid;
        let (failure, began, cancelled) = (None, None, None);
        let mut known = InProgress { key: key.clone(), chain, drains: Duration::ZERO, failure, began, cancelled };
        // A run that has lost its owner belongs to no workflow.
        let (owner, workflow_id) = match &run.owner {
            Owner::Execution { id, workflow_id, .. } => (self.execution(key, &id.uid), &**workflow_id),
            Owner::Nobody => (None, ""),
        };
        let attempt = owner.and_then(|it| it.retry.as_ref()).map_or(1, |retry| retry.current());
        if !matches!(run.progress, Progress::Released) {
            self.runs.insert(uid.clone(), known);
            return None;
        }
        let (failure, lasts) = self.end_of(workflow_id, attempt, run.timeout.unwrap_or(Duration::MAX));
        let since = run.released_at.unwrap_or(run.created);
        known.began = failure.as_ref().is_none_or(|it| it.ran).then_some(since);
        known.failure = failure;
        known.cancelled = run.cancelled.then(|| run.cancel_reason.unwrap_or(CancelReason::Requested));
        let (is_stopping, has_begun) = (known.cancelled.is_some(), known.began.is_some());
        self.runs.insert(uid.clone(), known);
        if has_begun {
            self.show_task(key, uid, true);
        }
        let ran = (self.now - since).to_std().unwrap_or_default();
        let ends = if is_stopping { Duration::ZERO } else { lasts.saturating_sub(ran) };
        self.expect(ends, Happening::RunEnds(uid.clone()));
        Some(ends)
    }

    /// Returns how the next run of a workflow ends: why it fails, if it does, and how long it lasts.
    pub(super) fn end_of(&mut self, workflow: &str, attempt: u32, timeout: Duration) -> (Option<Failing>, Duration) {
        let script = self.scenario.workflow(workflow);
        let nth = self.workload.released.entry(workflow.to_owned()).or_default();
        *nth += 1;
        let since_start = (self.now - self.scenario.start).to_std().unwrap_or_default();
        let matches = |it: &&Failing| it.matches(since_start, *nth, u64::from(attempt));
        let failure = script.fails.iter().find(matches).cloned();
        let at_once = failure.as_ref().is_some_and(|it| !it.ran);
        let default = if at_once { Duration::ZERO } else { script.takes };
        let lasts = failure.as_ref().map_or(script.takes, |it| it.after.unwrap_or(default));
        if lasts > timeout {
            // If the run would fail before anything starts, nothing has started by its time-out either.
            let ran = failure.as_ref().is_none_or(|it| it.ran);
            return (Some(Failing::timed_out(ran)), timeout);
        }
        (failure, lasts)
    }

    /// Cancels a run: Tekton ends it at once.
    pub(in crate::simulate) fn cancel_run(&mut self, key: &Key, run: &RunId, why: CancelReason) {
        let now = self.now;
        if let Some(in_progress) = self.runs.get_mut(&run.uid) {
            in_progress.cancelled = Some(why);
        }
        self.change_run(key, &run.uid, |it| {
            (it.cancelled, it.cancel_reason) = (true, Some(why));
            it.stop = Some(Box::new(StopRequest { since: Some(now), ..StopRequest::default() }));
        });
        self.expect(Duration::ZERO, Happening::RunEnds(run.uid.clone()));
    }

    pub(in crate::simulate) fn delete_run(&mut self, key: &Key, run: &RunId) {
        let last = self.run(key, &run.uid).cloned().map(Box::new);
        self.runs.remove(&run.uid);
        self.index.apply(Delivery::RunDeleted(run.uid.clone(), last), self.now);
    }

    pub(in crate::simulate) fn end_run(&mut self, run: &Uid) {
        let Some(in_progress) = self.runs.get(run) else { return };
        let (key, drains) = (in_progress.key.clone(), in_progress.drains);
        let succeeded = in_progress.failure.is_none() && in_progress.cancelled.is_none();
        let (reason, message) = match (&in_progress.failure, in_progress.cancelled) {
            (_, Some(_)) => ("Cancelled", "PipelineRun was cancelled"),
            (None, None) => ("Succeeded", "Tasks Completed: 1"),
            (Some(failure), None) => ("Failed", failure.says.as_str()),
        };
        let (reason, message) = (reason.into(), message.into());
        // A run that was cancelled has ended already.
        if self.run(&key, run).is_none_or(|it| matches!(it.progress, Progress::Done(_))) {
            return;
        }
        if drains.is_zero() {
            self.drain(run);
        } else {
            self.expect(drains, Happening::Drained(run.clone()));
        }
        let completed_at = Some(self.now);
        self.change_run(&key, run, |it| {
            (it.progress, it.stop) = (Progress::Done(Outcome { succeeded, reason, message, completed_at }), None);
        });
    }

    /// The task of a run ends.
    pub(in crate::simulate) fn drain(&mut self, run: &Uid) {
        let began = self.runs.get(run).filter(|it| it.began.is_some());
        if let Some(key) = began.map(|it| it.key.clone()) {
            self.show_task(&key, run, false);
        }
    }

    /// Delivers the one task of a run, whose step runs or has ended.
    fn show_task(&mut self, key: &Key, run: &Uid, unfinished: bool) {
        let owner = self.run(key, run).map(|it| it.owner.clone());
        let (Some(in_progress), Some(owner)) = (self.runs.get(run), owner) else { return };
        let task = format!("task-{run}");
        let meta = ObjectMeta {
            name: Some(WORK.to_owned()),
            uid: Some(task.clone()),
            labels: Some([(RUN_UID_LABEL.to_owned(), run.to_string())].into()),
            ..ObjectMeta::default()
        };
        let running = json!({"running": {"startedAt": wfe_tekton::rfc3339(in_progress.began.unwrap_or(self.now))}});
        let ended = json!({"terminated": {"containerID": "containerd://1", "exitCode": 0}});
        let mut step = if unfinished { running } else { ended };
        step["name"] = json!(WORK);
        let (status, reason) = if unfinished { ("Unknown", "Running") } else { ("True", "Succeeded") };
        let condition = json!({"type": "Succeeded", "status": status, "reason": reason});
        let data = json!({"status": {"conditions": [condition], "steps": [step]}});
        let descendant = Descendant {
            chain: in_progress.chain,
            residue: Residue {
                id: ResidueId { kind: ResidueKind::TaskRun, name: WORK.into(), uid: Uid::new(&task) },
                owner,
                created: self.now,
            },
            unfinished,
            sighting: Sighting::of(ResidueKind::TaskRun, Object { meta: &meta, data: &data }),
        };
        self.index.apply(Delivery::Descendant(Kind::TaskRun, Box::new(descendant)), self.now);
    }

    /// Changes a run, and delivers it.
    fn change_run(&mut self, key: &Key, run: &Uid, change: impl FnOnce(&mut Run)) {
        let (&Key::Chain(chain), Some(mut run)) = (key, self.run(key, run).cloned()) else { return };
        change(&mut run);
        self.index.apply(Delivery::Run(chain, Box::new(run)), self.now);
    }

    fn run(&self, key: &Key, run: &Uid) -> Option<&Run> {
        self.index.entry(key)?.target.runs.get(run)
    }

    /// Returns an execution.
    pub(in crate::simulate) fn execution(&self, key: &Key, uid: &Uid) -> Option<&Execution> {
        self.index.entry(key)?.target.executions.get(uid)
    }
}
