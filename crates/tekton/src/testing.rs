//! Recorded runs ("stories") for tests: what a watch delivered about each run on a real control plane
//! (`tests/fixtures/`), change by change.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use wfe_core::name::Uid;
use wfe_core::reason::FailureReason::{
    self, ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
};
use wfe_core::residue::ResidueKind;

use crate::evidence::{Evidence, Remains, Sighting};
use crate::object::Object;

/// An object of a test, with its kind.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) kind: ResidueKind,
    pub(crate) meta: ObjectMeta,
    pub(crate) data: Value,
}

impl Owned {
    pub(crate) fn new(object: &Value) -> Self {
        let kind = match object["kind"].as_str().unwrap_or_default() {
            "PipelineRun" => ResidueKind::PipelineRun,
            "TaskRun" => ResidueKind::TaskRun,
            "CustomRun" => ResidueKind::CustomRun,
            "Pod" => ResidueKind::Pod,
            other => panic!("{other}"),
        };
        Self { kind, meta: serde_json::from_value(object["metadata"].clone()).unwrap(), data: object.clone() }
    }

    pub(crate) fn view(&self) -> Object<'_> {
        Object { meta: &self.meta, data: &self.data }
    }
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) is_deletion: bool,
    pub(crate) object: Owned,
}

/// The recorded story of one run.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) run: Uid,
    pub(crate) events: Vec<Event>,
}

/// The versions of Tekton with recorded stories.
pub(crate) const VERSIONS: [&str; 2] = ["v1.12.0", "v1.9.0"];

/// All stories, by version and name.
static STORIES: LazyLock<BTreeMap<(&'static str, String), Story>> = LazyLock::new(|| {
    let stories_of = |version: &'static str| {
        let path = format!("{}/tests/fixtures/{version}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_dir(path).unwrap().map(move |story| {
            let path = story.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            ((version, name), read(&path.join("story.jsonl")))
        })
    };
    VERSIONS.into_iter().flat_map(stories_of).collect()
});

/// Reads a story. The first version of an object is complete, and later versions contain only the changes.
fn read(path: &Path) -> Story {
    let mut objects: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut events = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let change: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| change[key].as_str().unwrap().to_owned();
        let object = objects.entry((text("kind"), text("name"))).or_default();
        if change["object"].is_object() {
            *object = change["object"].clone();
        } else {
            merge(object, &change["patch"]);
        }
        events.push(Event { is_deletion: change["change"] == "DELETED", object: Owned::new(object) });
    }
    let run = Uid::new(events[0].object.meta.uid.as_deref().unwrap());
    Story { run, events }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(serde_json::Map::new());
    }
    for (key, change) in changes {
        if change.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut object[key], change);
        }
    }
}

/// Returns the names of all stories of a version.
pub(crate) fn stories_of(version: &str) -> Vec<&'static str> {
    STORIES.keys().filter(|(of, _)| *of == version).map(|(_, name)| name.as_str()).collect()
}

pub(crate) fn story_of(version: &'static str, name: &str) -> Story {
    STORIES.get(&(version, name.to_owned())).unwrap_or_else(|| panic!("no story {name} of {version}")).clone()
}

/// Returns the names of all stories of the newer version.
pub(crate) fn stories() -> Vec<&'static str> {
    stories_of(VERSIONS[0])
}

pub(crate) fn story(name: &str) -> Story {
    story_of(VERSIONS[0], name)
}

/// The expected result of each story. Each result contains whether anything ran (status and reason of the condition
/// `Started`). For a failed run it also contains the reason, the task to blame (`name@index/step=exit code`), whether
/// the run was cancelled, and how many tasks were done. Both versions of Tekton lead to the same result, except for an
/// eviction: the older one reports only `Failed`.
pub(crate) const OUTCOMES: &[(&str, &str, &str, Option<Failed>)] = &[
    ("all-tasks-skipped", "False", "NoTaskRun", None),
    ("bad-graph", "False", "NoTaskRun", Some((ConfigurationError, "", false, 0))),
    ("cancel-after", "True", "StepRunning", Some((Unknown, "apply@0", true, 1))),
    ("cancel-and-run-finally", "True", "StepRunning", Some((Unknown, "apply@0", true, 2))),
    ("cancel-before", "False", "OnlyWaited", Some((Unknown, "apply@0", true, 1))),
    ("cancel-while-resolving", "False", "NoTaskRun", Some((Unknown, "", true, 0))),
    ("container-config-error", "False", "OnlyWaited", Some((ConfigurationError, "check@0", false, 1))),
    ("custom-run", "Unknown", "Opaque", None),
    ("custom-run-cancelled", "Unknown", "Opaque", Some((Unknown, "approve@0", true, 1))),
    ("custom-run-fails", "Unknown", "Opaque", Some((Unknown, "approve@0", false, 1))),
    ("custom-run-times-out", "Unknown", "Opaque", Some((DeadlineExceeded, "approve@0", false, 1))),
    ("delete-after", "True", "StepRunning", None),
    ("delete-before", "Unknown", "TaskRunGone", None),
    ("delete-while-resolving", "Unknown", "RunGone", None),
    ("error-ignored-then-failure", "True", "StepRunning", Some((Unknown, "apply@1/run=2", false, 2))),
    ("error-of-step-ignored", "True", "StepRunning", None),
    ("error-of-task-ignored", "True", "StepRunning", None),
    ("evicted", "True", "StepRunning", Some((ResourceExhausted, "check@0/run=137", false, 1))),
    ("exit-first", "True", "StepRunning", Some((Unknown, "check@0/run=1", false, 1))),
    ("exit-second", "True", "StepRunning", Some((Unknown, "apply@1/run=42", false, 2))),
    ("finally-after-failure", "True", "StepRunning", Some((Unknown, "apply@0/run=1", false, 2))),
    ("finally-fails", "True", "StepRunning", Some((Unknown, "notify@1/run=1", false, 2))),
    ("finally-image-pull", "True", "StepRunning", Some((ImagePullBackOff, "notify@1/run", false, 2))),
    ("forbidden", "True", "StepRunning", Some((Forbidden, "apply@1/run=1", false, 2))),
    ("forbidden-as-result", "True", "StepRunning", Some((Forbidden, "apply@1/run=1", false, 2))),
    ("image-name-invalid", "False", "OnlyWaited", Some((ImagePullBackOff, "check@0/run", false, 1))),
    ("image-pull-first", "False", "OnlyWaited", Some((ImagePullBackOff, "check@0/run", false, 1))),
    ("image-pull-second", "True", "StepRunning", Some((ImagePullBackOff, "apply@1/run", false, 2))),
    ("invalid-pipeline", "False", "NoTaskRun", Some((ConfigurationError, "", false, 0))),
    ("matrix", "True", "StepRunning", None),
    ("matrix-one-fails", "True", "StepRunning", Some((Unknown, "apply@0/run=7", false, 1))),
    ("misleading-words", "True", "StepRunning", Some((Unknown, "apply@1/run=3", false, 2))),
    ("missing-bundle", "False", "NoTaskRun", None),
    ("missing-bundle-repaired", "False", "NoTaskRun", Some((ImagePullBackOff, "", false, 0))),
    ("missing-parameter", "False", "NoTaskRun", Some((ConfigurationError, "", false, 0))),
    ("nested", "Unknown", "Opaque", None),
    ("nested-fails", "Unknown", "Opaque", Some((Unknown, "inner@0", false, 1))),
    ("nested-image-pull", "Unknown", "Opaque", Some((Unknown, "inner@0", false, 1))),
    ("oom", "True", "StepRunning", Some((OomKilled, "apply@1/run=137", false, 2))),
    ("oom-of-second-step", "True", "StepRunning", Some((OomKilled, "apply@0/write=137", false, 1))),
    ("pod-deleted", "True", "StepRunning", None),
    ("pod-deleted-then-fails", "True", "StepRunning", Some((Unknown, "apply@0/run=1", false, 1))),
    ("pod-refused", "False", "OnlyWaited", Some((Forbidden, "check@0", false, 1))),
    ("quota-on-pods", "False", "OnlyWaited", Some((ResourceExhausted, "check@0", false, 1))),
    ("retries-after-image-pull", "False", "OnlyWaited", Some((ImagePullBackOff, "apply@0/run", false, 1))),
    ("retries-after-timeout", "True", "StepRunning", Some((DeadlineExceeded, "apply@0", false, 1))),
    ("retries-help", "True", "StepRunning", None),
    ("retries-in-vain", "True", "StepRunning", Some((Unknown, "apply@0/run=1", false, 1))),
    ("sidecar", "True", "StepRunning", None),
    ("sidecar-fails", "True", "StepRunning", Some((Unknown, "apply@0=1", false, 1))),
    ("sidecar-oom", "True", "StepRunning", Some((OomKilled, "apply@0=137", false, 1))),
    ("step-and-sidecar-fail", "True", "StepRunning", Some((OomKilled, "apply@0=137", false, 1))),
    ("step-fails", "True", "StepRunning", Some((Unknown, "apply@0/write=5", false, 1))),
    ("success", "True", "StepRunning", None),
    ("task-skipped", "True", "StepRunning", None),
    ("timeout-of-finally-after", "True", "StepRunning", Some((DeadlineExceeded, "notify@1", false, 2))),
    ("timeout-of-finally-before", "True", "StepRunning", Some((DeadlineExceeded, "notify@1", false, 2))),
    ("timeout-of-run-after", "True", "StepRunning", Some((DeadlineExceeded, "apply@0", false, 1))),
    ("timeout-of-run-before", "False", "OnlyWaited", Some((DeadlineExceeded, "apply@0", false, 1))),
    ("timeout-of-run-in-second", "True", "StepRunning", Some((DeadlineExceeded, "apply@1", false, 2))),
    ("timeout-of-task-after", "True", "StepRunning", Some((DeadlineExceeded, "apply@0", false, 1))),
    ("timeout-of-task-before", "False", "OnlyWaited", Some((DeadlineExceeded, "apply@0", false, 1))),
    ("timeout-while-image-is-pulled", "False", "OnlyWaited", Some((ImagePullBackOff, "apply@0", false, 1))),
    ("timeouts-finally", "True", "StepRunning", Some((DeadlineExceeded, "notify@1", false, 2))),
    ("timeouts-tasks", "True", "StepRunning", Some((DeadlineExceeded, "apply@0", false, 1))),
    ("two-fail", "True", "StepRunning", Some((Unknown, "check@0/run=1", false, 2))),
    ("unknown-result", "False", "NoTaskRun", Some((ConfigurationError, "", false, 0))),
    ("unknown-service-account", "False", "OnlyWaited", Some((ConfigurationError, "check@0", false, 1))),
    ("unknown-task", "False", "NoTaskRun", Some((ConfigurationError, "", false, 0))),
    ("unschedulable", "False", "OnlyWaited", Some((ResourceExhausted, "apply@0", false, 1))),
    ("wrong-name", "False", "NoTaskRun", None),
    ("wrong-name-repaired", "False", "NoTaskRun", Some((ConfigurationError, "", false, 0))),
];

pub(crate) type Failed = (FailureReason, &'static str, bool, u16);

/// The objects that exist at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<String, Owned>,
}

impl World {
    pub(crate) fn take_in(&mut self, event: &Event) {
        let uid = event.object.meta.uid.clone().unwrap();
        if event.is_deletion {
            self.objects.remove(&uid);
        } else {
            self.objects.insert(uid, event.object.clone());
        }
    }

    /// Calls a function with the objects that are left of a run.
    pub(crate) fn remains<T>(&self, run: &Uid, ask: impl FnOnce(Remains<'_>) -> T) -> T {
        let of = |kinds: &[ResidueKind]| -> Vec<Object<'_>> {
            let objects = self.objects.values().filter(|object| kinds.contains(&object.kind)).map(Owned::view);
            objects.filter(|object| object.run().as_ref() == Some(run)).collect()
        };
        let found = self.objects.get(&run.to_string()).map(Owned::view);
        let others = of(&[ResidueKind::CustomRun, ResidueKind::PipelineRun]);
        let (task_runs, pods) = (of(&[ResidueKind::TaskRun]), of(&[ResidueKind::Pod]));
        ask(Remains { run: found, task_runs: &task_runs, others: &others, pods: &pods })
    }
}

/// Adds an event to the evidence if it belongs to the run.
pub(crate) fn watch(evidence: &mut Evidence, run: &Uid, event: &Event) {
    let sighting = Sighting::of(event.object.kind, event.object.view());
    match sighting.filter(|sighting| sighting.run == *run) {
        Some(sighting) if event.is_deletion => evidence.observe_deletion(&sighting),
        Some(sighting) => evidence.observe(&sighting),
        None => {}
    }
}

impl Story {
    /// Follows the run from its first event to its last.
    pub(crate) fn follow(&self) -> (Evidence, World) {
        self.follow_from(0)
    }

    /// Follows the run as a process that starts after the first `start` events. It lists what exists then, and watches
    /// the rest.
    pub(crate) fn follow_from(&self, start: usize) -> (Evidence, World) {
        let (mut evidence, mut world) = (Evidence::default(), World::default());
        let (before, after) = self.events.split_at(start);
        for event in before {
            world.take_in(event);
        }
        if start > 0 {
            evidence.interrupt();
        }
        for object in world.objects.values() {
            watch(&mut evidence, &self.run, &Event { is_deletion: false, object: object.clone() });
        }
        for event in after {
            world.take_in(event);
            watch(&mut evidence, &self.run, event);
        }
        (evidence, world)
    }
}
