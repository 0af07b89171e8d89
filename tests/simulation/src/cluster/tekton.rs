//! Tekton's controller: it begins a story for each released run, and plays the story.
//!
//! The bundle of the run names the story:
//! - `registry.test/<version>/<story>:<tag>`, also with a digest. The host may be any host that ends with `.test`.
//! - Any other bundle does not exist. While a registry is down, none of its bundles can be fetched.
//! - With `<story>.says.<what>`, the result of the run is the verdict `<what>`.
//! - With several stories, as in `<story>.then.<story>`, each further run of an execution or a schedule plays the next
//!   one.
//!
//! If a story contains an act of a person, such as a cancellation, it is played only up to that act. The run then waits
//! until it is stopped.
//!
//! Tekton no longer reconciles a run that is being deleted but still has a finalizer. It creates no further tasks,
//! stops none, and never reports the run's end. Existing tasks continue by themselves.
//!
//! A resolved run may be stopped by its `spec.status` or by its time-out. Its end is then like that of a recorded run
//! that was stopped. Tekton does not check the time-out of a run whose bundle is not resolved.

mod play;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde_json::Value;
use wfe_api::labels::{ANNOTATION_UID, ANNOTATION_WORKFLOW_EXECUTION};
use wfe_core::Time;

use super::Weather;
use super::follow::{Follower, Seen, owners};
use super::hand::Hand;
use super::scripts::{Story, THEN, VERSIONS, is_done, story, uid};
use super::verdicts::{SAYS, verdict};
use play::Play;

/// The story of a run whose bundle does not name a story.
const MISSING: &str = "missing-bundle";
/// The story of a run whose bundle cannot be fetched. The run fails at once.
const UNREACHABLE: &str = "missing-bundle-repaired";
/// The suffix of the registry hosts that have stories.
const REGISTRIES: &str = ".test";
/// The number of digits of a slot in the name of a schedule's child.
const SLOT: usize = 10;

/// Tekton's controller.
#[derive(Debug)]
pub(super) struct Tekton {
    hand: Hand,
    seed: u64,
    /// The last state of each run that no other run owns.
    runs: BTreeMap<String, Arc<Value>>,
    plays: BTreeMap<String, Play>,
    /// How many runs of each execution or schedule have begun.
    begun: BTreeMap<String, usize>,
    /// The time since which Tekton has been down.
    down: Option<Time>,
    /// The registries from which nothing can be fetched.
    registries_down: BTreeSet<String>,
    /// Whether Tekton currently ignores requests to stop a run.
    loses_cancels: bool,
    /// The runs with an ignored request to stop, and the version of the run with that request.
    lost: BTreeMap<String, String>,
}

impl Tekton {
    pub(super) fn new(hand: Hand, seed: u64) -> Self {
        Self {
            hand,
            seed,
            runs: BTreeMap::new(),
            plays: BTreeMap::new(),
            begun: BTreeMap::new(),
            down: None,
            registries_down: BTreeSet::new(),
            loses_cancels: false,
            lost: BTreeMap::new(),
        }
    }

    /// Processes a change.
    pub(super) fn see(&mut self, seen: &Seen, now: Time) -> Result<()> {
        let Some(object) = seen.is.as_ref().or(seen.was.as_ref()) else { return Ok(()) };
        if object["kind"] != "PipelineRun" || owners(object).next().is_some() {
            return Ok(());
        }
        let uid = uid(object);
        match &seen.is {
            Some(run) if !is_leaving(run) => {
                self.runs.insert(uid.to_owned(), Arc::clone(run));
                if self.down.is_none() { self.reconcile(uid, now) } else { Ok(()) }
            }
            Some(run) if !is_done(run) && self.plays.contains_key(uid) => {
                self.runs.insert(uid.to_owned(), Arc::clone(run));
                self.lost.remove(uid);
                if let Some(play) = self.plays.get_mut(uid) {
                    play.leave();
                }
                Ok(())
            }
            _ => {
                self.runs.remove(uid);
                self.plays.remove(uid);
                self.lost.remove(uid);
                Ok(())
            }
        }
    }

    /// Sets which registries are down, and whether requests to stop are ignored.
    pub(super) fn learn(&mut self, weather: &Weather) {
        self.registries_down.clone_from(&weather.registries_down);
        self.loses_cancels = weather.cancels_are_lost;
    }

    /// Stops Tekton, or starts it again. After a start its stories continue.
    pub(super) fn turn(&mut self, is_down: bool, now: Time) -> Result<()> {
        match (self.down, is_down) {
            (None, true) => self.down = Some(now),
            (Some(since), false) => {
                self.down = None;
                self.plays.values_mut().for_each(|play| play.shift(now - since));
                let runs: Vec<String> = self.runs.keys().cloned().collect();
                runs.iter().try_for_each(|uid| self.reconcile(uid, now))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins a run's story, or stops the run, if its spec requires this.
    fn reconcile(&mut self, uid: &str, now: Time) -> Result<()> {
        let Some(run) = self.runs.get(uid).filter(|run| !is_leaving(run)) else { return Ok(()) };
        let asked = run["spec"]["status"].as_str().unwrap_or_default();
        if asked == "PipelineRunPending" {
            return Ok(());
        }
        let is_to_stop = matches!(asked, "Cancelled" | "CancelledRunFinally" | "StoppedRunFinally") && !is_done(run);
        let version = run["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        match self.lost.get(uid) {
            _ if is_to_stop && self.loses_cancels => {
                self.lost.insert(uid.to_owned(), version.to_owned());
                return Ok(());
            }
            Some(lost) if lost == version => return Ok(()),
            _ => drop(self.lost.remove(uid)),
        }
        if !self.plays.contains_key(uid) {
            if is_done(run) {
                return Ok(());
            }
            let before = self.begun.entry(whose(run).to_owned()).or_default();
            let (story, says) = told_by(run, *before, &self.registries_down)?;
            let play = Play::begin(story, says, run, self.seed, now);
            *before += 1;
            self.plays.insert(uid.to_owned(), play);
        }
        let Some(play) = self.plays.get_mut(uid) else { return Ok(()) };
        play.see(run);
        if is_done(run) {
            play.completed();
        } else if matches!(asked, "Cancelled" | "CancelledRunFinally" | "StoppedRunFinally") {
            play.stop(now);
        }
        if play.is_over() {
            self.plays.remove(uid);
        }
        Ok(())
    }

    /// Returns the time of the next step.
    pub(super) fn wake(&self) -> Option<Time> {
        if self.down.is_some() {
            return None;
        }
        self.plays.iter().filter(|(uid, _)| !self.lost.contains_key(*uid)).filter_map(|(_, play)| play.wake()).min()
    }

    /// Performs the next step.
    pub(super) fn act(&mut self, objects: &Follower, now: Time) -> Result<()> {
        let lost = &self.lost;
        let heard = self.plays.iter_mut().filter(|(uid, _)| !lost.contains_key(*uid));
        let due = heard.filter_map(|(uid, play)| Some((play.wake()?, uid, play)));
        let Some((_, uid, play)) = due.min_by_key(|(due, ..)| *due) else { return Ok(()) };
        let Some(run) = self.runs.get(uid) else { return Ok(()) };
        play.act(run, &self.hand, objects, now)?;
        if play.is_over() {
            let uid = uid.clone();
            self.plays.remove(&uid);
        }
        Ok(())
    }
}

/// Returns whether a run is being deleted.
fn is_leaving(run: &Value) -> bool {
    run["metadata"]["deletionTimestamp"].is_string()
}

/// Returns what a run is counted for: the schedule in the name of its execution, otherwise the execution.
fn whose(run: &Value) -> &str {
    let text = |key: &str| run["metadata"]["annotations"][key].as_str().unwrap_or_default();
    let is_slot = |slot: &str| slot.len() == SLOT && slot.bytes().all(|byte| byte.is_ascii_digit());
    match text(ANNOTATION_WORKFLOW_EXECUTION).rsplit_once('-') {
        Some((schedule, slot)) if is_slot(slot) => schedule,
        _ => text(ANNOTATION_UID),
    }
}

/// Returns the story that the bundle names for a run after `before` earlier runs, and the verdict that becomes the
/// run's result.
fn told_by(run: &Value, before: usize, down: &BTreeSet<String>) -> Result<(&'static Story, Option<&'static str>)> {
    let params = run["spec"]["pipelineRef"]["params"].as_array().map_or(&[][..], Vec::as_slice);
    let bundle = params.iter().find(|param| param["name"] == "bundle").and_then(|param| param["value"].as_str());
    let host = bundle.and_then(|image| image.split_once('/')).map(|(host, _)| host);
    let named = bundle.and_then(|image| {
        let (_, rest) = image.split_once('/').filter(|(host, _)| host.ends_with(REGISTRIES))?;
        let (version, rest) = rest.split_once('/')?;
        let names: Vec<&str> = rest.split([':', '@']).next()?.split(THEN).collect();
        Some((version, *names.get(before).or(names.last())?))
    });
    let known = |version: &str, name: &str| story(version, name)?.ok_or_else(|| anyhow!("there is no story {name}"));
    if host.is_some_and(|host| down.contains(host)) {
        let version = named.map(|(version, _)| version).filter(|version| VERSIONS.contains(version));
        return Ok((known(version.unwrap_or(VERSIONS[0]), UNREACHABLE)?, None));
    }
    let Some((version, name)) = named else { return Ok((known(VERSIONS[0], MISSING)?, None)) };
    let (name, says) = match name.split_once(SAYS) {
        Some((name, says)) => (name, verdict(says)),
        None => (name, None),
    };
    match story(version, name)? {
        Some(story) => Ok((story, says)),
        None => Ok((known(VERSIONS[0], MISSING)?, None)),
    }
}
