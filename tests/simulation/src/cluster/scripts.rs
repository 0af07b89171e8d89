//! The recorded stories: what Tekton wrote about a run, change by change, and when it wrote that.
//!
//! The stories are fixtures of `wfe-tekton`, whose README.md describes the format. This module depends neither on a
//! server nor on the runs of a simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use serde_json::Value;
use wfe_core::Time;

/// The recorded versions of Tekton, newest first: the names of their folders.
pub const VERSIONS: [&str; 2] = ["v1.12.0", "v1.9.0"];

/// Separates the stories in the name of a bundle: the n-th run of an execution plays the n-th story in the name.
pub const THEN: &str = ".then.";

/// The directory of the fixtures.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/tekton/tests/fixtures");

/// The time at which every recorded story begins: 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600;

/// The kinds of objects in a story, with the API version in which they were recorded.
const KINDS: [(&str, &str); 4] = [
    ("PipelineRun", "tekton.dev/v1"),
    ("TaskRun", "tekton.dev/v1"),
    ("CustomRun", "tekton.dev/v1beta1"),
    ("Pod", "v1"),
];

/// The reason why the stories cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoryError {
    /// A file or a folder cannot be read.
    #[error("{}: cannot be read", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A line does not have the recorder's format.
    #[error("{file}:{line}: unknown format, perhaps a fixture of another Tekton: {problem}")]
    Unknown {
        /// The file.
        file: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// The recorded story of one run.
#[derive(Debug)]
pub struct Story {
    /// The version of Tekton that was recorded.
    pub version: String,
    /// The name of the story, such as `success`.
    pub name: String,
    /// The run as it was created.
    pub(super) run: Value,
    /// The later changes, in order.
    pub(super) steps: Vec<Step>,
    /// The pods that were never assigned to a node.
    pub(super) without_node: BTreeSet<String>,
    /// The index of the step in which a user, not Tekton, stops or deletes the run.
    somebody: Option<usize>,
    completes: bool,
}

/// One recorded change.
#[derive(Debug)]
pub(super) struct Step {
    /// The time since the beginning of the story.
    pub(super) after: Duration,
    /// The `apiVersion` of the object.
    pub(super) version: &'static str,
    pub(super) kind: String,
    pub(super) name: String,
    /// The recorded uid of the object.
    pub(super) uid: String,
    pub(super) change: Change,
}

/// What changed.
#[derive(Debug)]
pub(super) enum Change {
    /// The object is created.
    Added(Value),
    /// The object changes by a merge patch.
    Changed(Value),
    Deleted,
}

/// The stories by version and name.
type Stories = BTreeMap<(String, String), Story>;

static STORIES: LazyLock<Result<Stories, StoryError>> = LazyLock::new(read_all);

/// Returns all stories.
pub fn stories() -> Result<impl Iterator<Item = &'static Story>, &'static StoryError> {
    Ok(STORIES.as_ref()?.values())
}

/// Returns the story of a version with this name.
pub fn story(version: &str, name: &str) -> Result<Option<&'static Story>, &'static StoryError> {
    Ok(STORIES.as_ref()?.get(&(version.to_owned(), name.to_owned())))
}

/// Returns the names of the stories of a version whose run ends by itself.
pub fn playable(version: &str) -> Result<Vec<&'static str>, &'static StoryError> {
    let ours = stories()?.filter(|story| story.version == version && story.ends_by_itself());
    Ok(ours.map(|story| story.name.as_str()).collect())
}

impl Story {
    /// Parses a story. Errors refer to it as `file`.
    pub fn parse(version: &str, name: &str, file: &str, text: &str) -> Result<Self, StoryError> {
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            let unknown = |problem| StoryError::Unknown { file: file.to_owned(), line: number + 1, problem };
            reader.read(line).map_err(unknown)?;
        }
        let no_run = || StoryError::Unknown { file: file.to_owned(), line: 1, problem: "no line".to_owned() };
        let run = reader.run.clone().ok_or_else(no_run)?;
        let somebody = reader.steps.iter().position(|step| step.uid == uid(&run) && acts(&step.change));
        let completes = reader.objects.get(&("PipelineRun".to_owned(), name_of(&run).to_owned())).is_some_and(is_done);
        let (version, name) = (version.to_owned(), name.to_owned());
        let (steps, without_node) = (reader.timed(), reader.without_node);
        Ok(Self { version, name, run, steps, without_node, somebody, completes })
    }

    /// Returns whether the run ends although no user stops or deletes it.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.completes && self.somebody.is_none()
    }

    /// Returns the changes that Tekton makes before a user stops or deletes the run.
    pub(super) fn undisturbed(&self) -> &[Step] {
        &self.steps[..self.somebody.unwrap_or(self.steps.len())]
    }

    /// Returns the steps of a stopped run, from the first change of a spec on.
    pub(super) fn stopped(&self) -> &[Step] {
        let is_first = |step: &Step| matches!(&step.change, Change::Changed(patch) if patch.get("spec").is_some());
        &self.steps[self.steps.iter().position(is_first).unwrap_or(self.steps.len())..]
    }
}

/// Returns whether a change of a run is made by a user: whether it is a deletion or a change of the spec.
fn acts(change: &Change) -> bool {
    match change {
        Change::Deleted => true,
        Change::Changed(patch) => patch.get("spec").is_some(),
        Change::Added(_) => false,
    }
}

/// Returns whether a run, or a child of a run, has succeeded or failed.
pub(super) fn is_done(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|condition| {
        condition["type"] == "Succeeded" && matches!(condition["status"].as_str(), Some("True" | "False"))
    })
}

/// Returns the name of an object.
pub(super) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the uid of an object.
pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Parses a text as a time; `None` if it is not a time.
pub(super) fn as_time(text: &str) -> Option<Time> {
    // Most texts are not times. This check costs less than parsing them.
    let may_be = text.len() >= 20 && text.as_bytes().get(10) == Some(&b'T');
    may_be.then(|| DateTime::parse_from_rfc3339(text).ok()).flatten().map(|time| time.to_utc())
}

/// Returns the time between the beginning of a story and a recorded time.
pub(super) fn since_begin(time: Time) -> TimeDelta {
    TimeDelta::milliseconds(time.timestamp_millis() - BEGIN * 1000)
}

/// The part of a story that has been read so far.
#[derive(Default)]
struct Reader {
    run: Option<Value>,
    steps: Vec<Step>,
    objects: BTreeMap<(String, String), Value>,
    without_node: BTreeSet<String>,
    /// For each step, the newest time in it.
    mentions: Vec<Option<TimeDelta>>,
}

impl Reader {
    fn read(&mut self, line: &str) -> Result<(), String> {
        let change: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let fields = change.as_object().ok_or("no object")?;
        for field in fields.keys() {
            if !["change", "kind", "name", "object", "patch"].contains(&field.as_str()) {
                return Err(format!("the field {field}"));
            }
        }
        let text = |field: &str| change[field].as_str().map(str::to_owned).ok_or_else(|| format!("no {field}"));
        let (what, kind, name) = (text("change")?, text("kind")?, text("name")?);
        let known = KINDS.into_iter().find(|(known, _)| *known == kind);
        let (_, version) = known.ok_or_else(|| format!("the kind {kind}"))?;
        let key = (kind.clone(), name.clone());
        let body = if change["object"].is_object() { &change["object"] } else { &change["patch"] };
        let change = match what.as_str() {
            "ADDED" => {
                if change["object"]["apiVersion"] != version {
                    return Err(format!("a {kind} of the version {}", change["object"]["apiVersion"]));
                }
                let new = change["object"].clone();
                if uid(&new).is_empty() || name_of(&new) != name {
                    return Err("an object without its name or uid".to_owned());
                }
                self.objects.insert(key.clone(), new.clone());
                Change::Added(new)
            }
            "MODIFIED" | "DELETED" => {
                if !change["patch"].is_object() {
                    return Err("no patch".to_owned());
                }
                let object = self.objects.get_mut(&key).ok_or("a change of an object that was not added")?;
                json_patch::merge(object, &change["patch"]);
                if what == "DELETED" { Change::Deleted } else { Change::Changed(change["patch"].clone()) }
            }
            _ => return Err(format!("the change {what}")),
        };
        if kind == "Pod" && body["metadata"]["deletionGracePeriodSeconds"] == 0 && what == "MODIFIED" {
            self.without_node.insert(name.clone());
        }
        let Some(run) = &self.run else {
            let Change::Added(run) = change else { return Err("a story begins with its run".to_owned()) };
            if kind != "PipelineRun" {
                return Err("a story begins with its run".to_owned());
            }
            if run["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
                return Err("a run without namespace".to_owned());
            }
            self.run = Some(run);
            return Ok(());
        };
        debug_assert!(!uid(run).is_empty());
        self.mentions.push(newest(body));
        let uid = uid(&self.objects[&key]).to_owned();
        self.steps.push(Step { after: Duration::ZERO, version, kind, name, uid, change });
        Ok(())
    }

    /// Sets the time of each step to the newest time in it. Watches of several kinds deliver concurrently, so these
    /// times may go back by a second. A step with an earlier time gets the time of the step before it.
    fn timed(&mut self) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.steps);
        let mut now = TimeDelta::zero();
        for (index, step) in steps.iter_mut().enumerate() {
            let mut mentioned = self.mentions[index];
            // A change of a spec contains no time. Its effects are written within the same second.
            if matches!(&step.change, Change::Changed(patch) if patch.get("spec").is_some()) {
                mentioned = mentioned.max(self.mentions[index + 1..].iter().flatten().next().copied());
            }
            now = now.max(mentioned.unwrap_or(now));
            step.after = now.to_std().unwrap_or_default();
        }
        steps
    }
}

/// Returns the newest time in an object or a patch, relative to the beginning of the story.
fn newest(body: &Value) -> Option<TimeDelta> {
    // `deletionTimestamp` is the end of the grace period, which lies in the future.
    let meta = &body["metadata"];
    let grace = TimeDelta::seconds(meta["deletionGracePeriodSeconds"].as_i64().unwrap_or_default());
    let marked = meta["deletionTimestamp"].as_str().and_then(as_time).map(|until| since_begin(until) - grace);
    let parts = body.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata");
    let created = mentioned(&meta["creationTimestamp"]);
    parts.map(|(_, part)| mentioned(part)).fold(marked.max(created), Option::max)
}

fn mentioned(value: &Value) -> Option<TimeDelta> {
    match value {
        Value::String(text) => as_time(text).map(since_begin),
        Value::Array(all) => all.iter().filter_map(mentioned).max(),
        Value::Object(all) => all.values().filter_map(mentioned).max(),
        _ => None,
    }
}

fn read_all() -> Result<Stories, StoryError> {
    let mut stories = BTreeMap::new();
    for version in VERSIONS {
        let folder = Path::new(FIXTURES).join(version);
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| StoryError::Unreadable { path, source }
        };
        for entry in std::fs::read_dir(&folder).map_err(unreadable(&folder))? {
            let entry = entry.map_err(unreadable(&folder))?;
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path().join("story.jsonl"));
            let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
            let story = Story::parse(version, &name, &path.display().to_string(), &text)?;
            stories.insert((version.to_owned(), name), story);
        }
    }
    Ok(stories)
}
