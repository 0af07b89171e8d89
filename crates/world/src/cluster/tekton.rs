//! Tekton's controller: begins a story for each run that is released, and plays it.
//!
//! A run's bundle says which story: `registry.test/<version>/<story>:<tag>`, or with a digest. Any other bundle is
//! missing from its registry. With several stories, as in `<story>.then.<story>`, each further run of an execution,
//! or of a schedule, plays the next. A recorded act of a person, such as a cancellation, is not played: from there on
//! the run waits until somebody stops it.
//!
//! A run that is resolved may be stopped, by its `spec.status` or by its time-out; it then ends as recorded runs that
//! were stopped. A run whose bundle cannot be resolved has no time-out: Tekton looks at that later.

mod play;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde_json::Value;
use wfe_api::labels::{ANNOTATION_UID, ANNOTATION_WORKFLOW_EXECUTION};
use wfe_core::Time;

use super::follow::{Follower, Seen, owners};
use super::hand::Hand;
use super::stories::{Story, THEN, VERSIONS, is_done, story, uid};
use play::Play;

/// The story of a run whose bundle names none.
const MISSING: &str = "missing-bundle";
/// How many digits the slot has in the name of a child.
const SLOT: usize = 10;

/// Tekton's controller.
#[derive(Debug)]
pub(super) struct Tekton {
    hand: Hand,
    seed: u64,
    /// All runs that have no owner, as they were seen last.
    runs: BTreeMap<String, Arc<Value>>,
    plays: BTreeMap<String, Play>,
    /// How many runs of each execution have begun.
    begun: BTreeMap<String, usize>,
    /// Since when it is down.
    down: Option<Time>,
}

impl Tekton {
    pub(super) fn new(hand: Hand, seed: u64) -> Self {
        Self { hand, seed, runs: BTreeMap::new(), plays: BTreeMap::new(), begun: BTreeMap::new(), down: None }
    }

    /// Takes in a change.
    pub(super) fn see(&mut self, seen: &Seen, now: Time) -> Result<()> {
        let Some(object) = seen.is.as_ref().or(seen.was.as_ref()) else { return Ok(()) };
        if object["kind"] != "PipelineRun" || owners(object).next().is_some() {
            return Ok(());
        }
        let uid = uid(object);
        match &seen.is {
            Some(run) if !run["metadata"]["deletionTimestamp"].is_string() => {
                self.runs.insert(uid.to_owned(), Arc::clone(run));
                if self.down.is_none() { self.reconcile(uid, now) } else { Ok(()) }
            }
            _ => {
                self.runs.remove(uid);
                self.plays.remove(uid);
                Ok(())
            }
        }
    }

    /// Stops Tekton, or starts it again: its stories go on where they were.
    pub(super) fn turn(&mut self, is_up: bool, now: Time) -> Result<()> {
        match (self.down, is_up) {
            (None, false) => self.down = Some(now),
            (Some(since), true) => {
                self.down = None;
                self.plays.values_mut().for_each(|play| play.shift(now - since));
                let runs: Vec<String> = self.runs.keys().cloned().collect();
                runs.iter().try_for_each(|uid| self.reconcile(uid, now))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins the story of a run, or stops it, where the run asks for that.
    fn reconcile(&mut self, uid: &str, now: Time) -> Result<()> {
        let Some(run) = self.runs.get(uid) else { return Ok(()) };
        let asked = run["spec"]["status"].as_str().unwrap_or_default();
        if asked == "PipelineRunPending" {
            return Ok(());
        }
        if !self.plays.contains_key(uid) {
            if is_done(run) {
                return Ok(());
            }
            let before = self.begun.entry(whose(run).to_owned()).or_default();
            let play = Play::begin(story_of(run, *before)?, run, self.seed, now);
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

    /// Returns when there is something to do.
    pub(super) fn wake(&self) -> Option<Time> {
        if self.down.is_some() {
            return None;
        }
        self.plays.values().filter_map(Play::wake).min()
    }

    /// Does what is due first.
    pub(super) fn act(&mut self, objects: &Follower, now: Time) -> Result<()> {
        let due = self.plays.iter_mut().filter_map(|(uid, play)| Some((play.wake()?, uid, play)));
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

/// Returns for whom runs are counted: a schedule, by the name of its child, else an execution.
fn whose(run: &Value) -> &str {
    let text = |key: &str| run["metadata"]["annotations"][key].as_str().unwrap_or_default();
    let is_slot = |slot: &str| slot.len() == SLOT && slot.bytes().all(|byte| byte.is_ascii_digit());
    match text(ANNOTATION_WORKFLOW_EXECUTION).rsplit_once('-') {
        Some((schedule, slot)) if is_slot(slot) => schedule,
        _ => text(ANNOTATION_UID),
    }
}

/// Returns the story that a run's bundle names, where so many runs of its execution have begun before.
fn story_of(run: &Value, before: usize) -> Result<&'static Story> {
    let params = run["spec"]["pipelineRef"]["params"].as_array().map_or(&[][..], Vec::as_slice);
    let bundle = params.iter().find(|param| param["name"] == "bundle").and_then(|param| param["value"].as_str());
    let named = bundle.and_then(|image| {
        let (version, rest) = image.strip_prefix("registry.test/")?.split_once('/')?;
        let names: Vec<&str> = rest.split([':', '@']).next()?.split(THEN).collect();
        Some((version, *names.get(before).or(names.last())?))
    });
    if let Some((version, name)) = named
        && let Some(story) = story(version, name)?
    {
        return Ok(story);
    }
    story(VERSIONS[0], MISSING)?.ok_or_else(|| anyhow!("there is no story {MISSING}"))
}
