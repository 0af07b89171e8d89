//! The story of a run while Tekton plays it.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Result, anyhow};
use chrono::TimeDelta;
use fastrand::Rng;
use serde_json::{Value, json};
use wfe_core::{Time, duration};

use crate::cluster::ending::{Stop, ended, stopped_child};
use crate::cluster::follow::{Follower, owners};
use crate::cluster::hand::{Created, Hand};
use crate::cluster::replay::Replay;
use crate::cluster::scripts::{Change, Step, Story, is_done, uid};
use crate::cluster::verdicts::RESULT;
use crate::cluster::{delay, random_for};

/// How much later than in the recording a step may happen.
const JITTER: Duration = Duration::from_millis(300);
/// How long a stopped TaskRun may take until it ends and its pod is deleted.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);
/// After how long Tekton retries a create whose name belongs to another object.
const AGAIN: TimeDelta = TimeDelta::seconds(5);
/// The time-out of runs that set none.
const DEFAULT_TIMEOUT: Duration = Duration::from_hours(1);

/// A story and its progress.
#[derive(Debug)]
pub(super) struct Play {
    story: &'static Story,
    /// The verdict that becomes the run's result.
    says: Option<&'static str>,
    retelling: Replay,
    acts: VecDeque<(Time, Act)>,
    /// When the run times out; `None` if it has no time-out, has ended or is being stopped.
    deadline: Option<Time>,
    /// Whether Tekton has resolved the pipeline. It checks the time-out only afterwards.
    is_resolved: bool,
    random: Rng,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Stopping(Stop),
    /// The run is done, but its dependents may continue.
    Completed,
    /// The run is being deleted before it is done. Tekton ignores the run, but its dependents continue.
    Leaving,
}

#[derive(Clone, Debug)]
enum Act {
    /// Play a step of the story, given by its index.
    Tell(usize),
    /// Stop the run and all its children.
    Stop(Stop),
    /// End a stopped child.
    End(Stop, String),
}

impl Play {
    /// Begins the story of a run that has just been released.
    pub(super) fn begin(story: &'static Story, says: Option<&'static str>, run: &Value, seed: u64, now: Time) -> Self {
        let mut random = random_for(seed, "tekton", run);
        let mut last = now;
        let acts = story.undisturbed().iter().enumerate().map(|(index, step)| {
            last = last.max(now + step.after + delay(&mut random, JITTER));
            (last, Act::Tell(index))
        });
        let acts = acts.collect();
        let timeout = run["spec"]["timeouts"]["pipeline"].as_str().map_or(Ok(DEFAULT_TIMEOUT), duration::parse);
        let timeout = timeout.ok().filter(|timeout| !timeout.is_zero());
        let deadline = timeout.and_then(|timeout| now.checked_add_signed(TimeDelta::from_std(timeout).ok()?));
        let retelling = Replay::new(story, run, now);
        Self { story, says, retelling, acts, deadline, is_resolved: false, random, state: State::Running }
    }

    /// Records whether the run is resolved.
    pub(super) fn see(&mut self, run: &Value) {
        self.is_resolved = run["status"]["pipelineSpec"].is_object();
    }

    /// Records that the run is done.
    pub(super) fn completed(&mut self) {
        self.state = State::Completed;
        self.deadline = None;
    }

    /// Records that the run is being deleted before it is done.
    pub(super) fn leave(&mut self) {
        self.state = State::Leaving;
        self.deadline = None;
        self.acts.retain(|(_, act)| !matches!(act, Act::Stop(_)));
    }

    /// Stops the run because a user has requested it.
    pub(super) fn stop(&mut self, now: Time) {
        if self.state == State::Running {
            let due = now + delay(&mut self.random, JITTER);
            self.stop_at(due, Stop::Asked);
        }
    }

    fn stop_at(&mut self, due: Time, stop: Stop) {
        self.state = State::Stopping(stop);
        self.deadline = None;
        self.acts = [(due, Act::Stop(stop))].into();
    }

    /// Returns whether no further step is possible.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Completed | State::Leaving) && self.acts.is_empty()
    }

    /// Delays the remaining steps, but not the time-out.
    pub(super) fn shift(&mut self, by: TimeDelta) {
        self.retelling.begun += by;
        self.acts.iter_mut().for_each(|(due, _)| *due += by);
    }

    pub(super) fn wake(&self) -> Option<Time> {
        let due = self.acts.front().map(|(due, _)| *due);
        [due, self.deadline.filter(|_| self.is_resolved)].into_iter().flatten().min()
    }

    /// Performs the next step.
    pub(super) fn act(&mut self, run: &Value, hand: &Hand, objects: &Follower, now: Time) -> Result<()> {
        if self.is_resolved && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.stop_at(now, Stop::TimedOut);
            return Ok(());
        }
        match self.acts.pop_front() {
            Some((_, Act::Tell(index))) => {
                let story = self.story;
                if self.is_of_the_run(&story.steps[index]) {
                    return Ok(());
                }
                if self.tell(&story.steps[index], run, hand, objects)? {
                    return Ok(());
                }
                self.acts.iter_mut().for_each(|(due, _)| *due += AGAIN);
                self.retelling.begun += AGAIN;
                self.acts.push_front((now + AGAIN, Act::Tell(index)));
                Ok(())
            }
            Some((_, Act::Stop(stop))) => self.stop_all(stop, run, hand, objects, now),
            Some((_, Act::End(stop, child))) => self.end(stop, &child, hand, objects, now),
            None => Ok(()),
        }
    }

    /// Returns whether Tekton skips this step because the run is being deleted. It skips the steps that write the run's
    /// status or create its tasks. A task that exists still creates its pod.
    fn is_of_the_run(&self, step: &Step) -> bool {
        let made_by = |recorded: &Value| {
            let owner = recorded["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
            self.retelling.uid_of(owner).is_some()
        };
        self.state == State::Leaving
            && match &step.change {
                Change::Added(recorded) => step.kind != "Pod" || !made_by(recorded),
                Change::Changed(_) | Change::Deleted => step.kind == "PipelineRun",
            }
    }

    /// Plays a step. Returns `false` if the step must be repeated later.
    fn tell(&mut self, step: &Step, run: &Value, hand: &Hand, objects: &Follower) -> Result<bool> {
        if let Change::Added(recorded) = &step.change {
            return self.create(step, recorded, run, hand, objects);
        }
        let Some(object) = self.place(step, run) else { return Ok(true) };
        match &step.change {
            Change::Changed(patch) => {
                let mut told = with_content(self.retelling.retell(patch));
                if let Some(says) = self.says.filter(|_| step.kind == "PipelineRun" && is_done(&told)) {
                    told["status"]["results"] = json!([{"name": RESULT, "value": says}]);
                }
                hand.merge(&object, &told)?;
                if patch["metadata"]["deletionTimestamp"].is_string() {
                    hand.delete(&object, None)?;
                }
            }
            Change::Added(_) | Change::Deleted => hand.delete(&object, (step.kind == "Pod").then_some(0))?,
        }
        Ok(true)
    }

    fn create(&mut self, step: &Step, recorded: &Value, run: &Value, hand: &Hand, objects: &Follower) -> Result<bool> {
        let mut object = self.retelling.retell(recorded);
        if step.kind == "Pod" && !self.story.without_node.contains(&step.name) {
            // Recorded pods have no spec. Only a pod with a node is deleted with a grace period.
            object["spec"]["nodeName"] = json!("node-1");
        }
        let made = match hand.create(&object)? {
            Created::Yes(made) => uid(&made).to_owned(),
            Created::Nowhere => return Ok(true),
            Created::Taken => {
                let is_same = |other: &&std::sync::Arc<Value>| {
                    other["kind"] == object["kind"]
                        && other["metadata"]["name"] == object["metadata"]["name"]
                        && other["metadata"]["namespace"] == object["metadata"]["namespace"]
                };
                // After a restore of the server, the existing object may be one that this play has created.
                let of_run = owners(&object).chain([uid(run)]);
                let mut ours = of_run.flat_map(|owner| objects.owned_by(owner));
                match ours.find(is_same) {
                    Some(other) => uid(other).to_owned(),
                    None => return Ok(false),
                }
            }
        };
        self.retelling.identify(&step.uid, &made);
        if let Some(status) = object.get("status") {
            hand.merge(&object, &json!({"status": status}))?;
        }
        Ok(true)
    }

    /// Returns the identity of a step's object for a write. `None` if the object could not be created.
    fn place(&self, step: &Step, run: &Value) -> Option<Value> {
        let uid = self.retelling.uid_of(&step.uid)?;
        let namespace = &run["metadata"]["namespace"];
        let metadata = json!({"name": self.retelling.rename(&step.name), "namespace": namespace, "uid": uid});
        Some(json!({"apiVersion": step.version, "kind": step.kind, "metadata": metadata}))
    }

    /// Stops the run: it asks its children to stop, and is done. The children end a little later.
    fn stop_all(&mut self, stop: Stop, run: &Value, hand: &Hand, objects: &Follower, now: Time) -> Result<()> {
        let version = &self.story.version;
        let mut ends = Vec::new();
        for child in unfinished(uid(run), objects) {
            let patch = stopped_child(version, stop, child).map_err(|error| anyhow!("{error}"))?;
            if patch.is_object() {
                hand.merge(child, &patch)?;
            }
            ends.push((now + delay(&mut self.random, STOPPED_WITHIN), Act::End(stop, uid(child).to_owned())));
        }
        ends.sort_by_key(|(due, _)| *due);
        self.acts = ends.into();
        let patch = ended(version, stop, run, now).map_err(|error| anyhow!("{error}"))?;
        hand.merge(run, &patch)
    }

    /// Ends a stopped child, and deletes the child's pods.
    fn end(&mut self, stop: Stop, child: &str, hand: &Hand, objects: &Follower, now: Time) -> Result<()> {
        let Some(child) = objects.get(child).filter(|child| !is_done(child)) else { return Ok(()) };
        for pod in objects.owned_by(uid(child)).filter(|object| object["kind"] == "Pod") {
            let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            if !is_over && !pod["metadata"]["deletionTimestamp"].is_string() {
                hand.delete(pod, None)?;
            }
        }
        let patch = ended(&self.story.version, stop, child, now).map_err(|error| anyhow!("{error}"))?;
        hand.merge(child, &patch)
    }
}

/// Removes metadata from a patch if it is empty.
fn with_content(mut patch: Value) -> Value {
    if patch["metadata"].as_object().is_some_and(serde_json::Map::is_empty) {
        patch.as_object_mut().map(|patch| patch.remove("metadata"));
    }
    patch
}

/// Returns the unfinished children of a run, and their children, sorted by kind and name.
fn unfinished<'a>(run: &str, objects: &'a Follower) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = Vec::new();
    let mut owners = vec![run.to_owned()];
    while let Some(owner) = owners.pop() {
        for object in objects.owned_by(&owner).filter(|object| object["kind"] != "Pod" && !is_done(object)) {
            owners.push(uid(object).to_owned());
            all.push(object);
        }
    }
    all.sort_by_key(|object| (object["kind"].to_string(), object["metadata"]["name"].to_string()));
    all
}
