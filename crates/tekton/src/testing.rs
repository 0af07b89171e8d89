//! Stories for tests: what the watches delivered of runs on the test control plane (`fixtures/`), event by event.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use wfe_core::name::Uid;
use wfe_core::residue::ResidueKind;

use crate::evidence::{Evidence, Remains, Sighting};
use crate::object::Object;

/// An object as a test holds it.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) kind: ResidueKind,
    pub(crate) meta: ObjectMeta,
    pub(crate) data: Value,
}

impl Owned {
    pub(crate) fn new(object: &Value) -> Self {
        let kind = match object["kind"].as_str().unwrap() {
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

/// The story of one run.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) run: Uid,
    pub(crate) events: Vec<Event>,
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// All stories, by name.
static STORIES: LazyLock<BTreeMap<String, Story>> = LazyLock::new(|| {
    let files = std::fs::read_dir(FIXTURES).unwrap().map(|file| file.unwrap().path());
    let told = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    told.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), read(&path))).collect()
});

fn read(path: &Path) -> Story {
    let events: Vec<Event> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| Event { is_deletion: event["type"] == "DELETED", object: Owned::new(&event["object"]) })
        .collect();
    Story { run: Uid::new(events[0].object.meta.uid.as_deref().unwrap()), events }
}

pub(crate) fn stories() -> Vec<&'static str> {
    STORIES.keys().map(String::as_str).collect()
}

pub(crate) fn story(name: &str) -> Story {
    STORIES[name].clone()
}

/// What is there at some time.
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

    /// Calls with what is left of a run.
    pub(crate) fn remains<T>(&self, run: &Uid, ask: impl FnOnce(Remains<'_>) -> T) -> T {
        let of = |kinds: &[ResidueKind]| -> Vec<Object<'_>> {
            let objects = self.objects.values().filter(|object| kinds.contains(&object.kind)).map(Owned::view);
            objects.filter(|object| object.run().as_ref() == Some(run)).collect()
        };
        let found = self.objects.get(run.as_str()).map(Owned::view);
        let others = of(&[ResidueKind::CustomRun, ResidueKind::PipelineRun]);
        let (task_runs, pods) = (of(&[ResidueKind::TaskRun]), of(&[ResidueKind::Pod]));
        ask(Remains { run: found, task_runs: &task_runs, others: &others, pods: &pods })
    }
}

/// Takes in what belongs to the run.
pub(crate) fn watch(evidence: &mut Evidence, run: &Uid, event: &Event) {
    let sighting = Sighting::of(event.object.kind, event.object.view());
    match sighting.filter(|sighting| sighting.run == *run) {
        Some(sighting) if event.is_deletion => evidence.see_deleted(&sighting),
        Some(sighting) => evidence.see(&sighting),
        None => {}
    }
}

impl Story {
    /// Follows it from its first event to its last.
    pub(crate) fn follow(&self) -> (Evidence, World) {
        self.follow_from(0)
    }

    /// Follows it by a process that starts, with a list, when so many events have been.
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
