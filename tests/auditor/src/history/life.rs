//! The life of one object of any kind, from creation to deletion, and the gaps in its recording.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wfe_api::Phase;
use wfe_api::labels::{ANNOTATION_UID, LABEL_RUN_SEQUENCE};

use super::{object_ref, text};
use crate::input::{Change, ChangeType};
use crate::report::{Moment, ObjectRef};

/// The label in which Tekton records the uid of the run to which an object belongs.
const LABEL_RUN_UID: &str = "tekton.dev/pipelineRunUID";

/// One object over time.
#[derive(Debug)]
pub(super) struct Life<'a> {
    pub(super) uid: &'a str,
    pub(super) kind: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// The states of the object, without the copy of the last state in the deletion.
    pub(super) states: Vec<(Moment, &'a Value)>,
    pub(super) gone: Option<Moment>,
    changes: Vec<&'a Change>,
}

/// Groups changes by object, and sorts each group. The lines may be in any order. Also returns the number of changes
/// without a uid.
pub(super) fn group(changes: &[Change]) -> (BTreeMap<&str, Life<'_>>, usize) {
    let mut nameless = 0;
    let mut by_uid: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in changes {
        match text(&change.object, "/metadata/uid") {
            Some(uid) => by_uid.entry(uid).or_default().push(change),
            None => nameless += 1,
        }
    }
    let lives = by_uid.into_iter().filter_map(|(uid, changes)| Some((uid, Life::of(uid, changes)?))).collect();
    (lives, nameless)
}

/// Finds objects that were created while another object had the same name. The deletion of the other object is missing.
pub(super) fn names_taken_twice(lives: &[&Life<'_>]) -> Vec<String> {
    let mut by_name: BTreeMap<(&str, &str, &str), Vec<&Life<'_>>> = BTreeMap::new();
    for life in lives {
        by_name.entry((life.kind, life.namespace, life.name)).or_default().push(life);
    }
    let mut found = Vec::new();
    for same in by_name.values_mut() {
        same.sort_by_key(|life| life.begun());
        for pair in same.windows(2) {
            if let [earlier, later] = pair
                && earlier.gone.is_none_or(|gone| gone > later.begun())
            {
                found.push(format!("{} was created again, and its deletion before that is missing", later.object()));
            }
        }
    }
    found
}

impl<'a> Life<'a> {
    fn of(uid: &'a str, mut changes: Vec<&'a Change>) -> Option<Self> {
        changes.sort_by_key(|change| (change.resource_version, change.change, change.at_ms));
        // A watch that is restarted may repeat changes.
        changes.dedup_by_key(|change| (change.resource_version, change.change));
        let first = changes.first()?;
        let moment = |change: &Change| Moment { resource_version: change.resource_version, at_ms: change.at_ms };
        let is_end = |change: &&Change| change.change == ChangeType::Deleted;
        Some(Self {
            uid,
            kind: &first.kind,
            namespace: text(&first.object, "/metadata/namespace").unwrap_or_default(),
            name: text(&first.object, "/metadata/name").unwrap_or_default(),
            states: changes
                .iter()
                .filter(|change| !is_end(change) || changes.len() == 1)
                .map(|change| (moment(change), &change.object))
                .collect(),
            gone: changes.iter().copied().find(is_end).map(moment),
            changes,
        })
    }

    /// Returns when the object was created or first recorded.
    pub(super) fn begun(&self) -> Moment {
        self.states.first().map(|(at, _)| *at).or(self.gone).unwrap_or(Moment { resource_version: 0, at_ms: 0 })
    }

    /// Returns the first recorded state.
    pub(super) fn first(&self) -> &'a Value {
        self.states.first().map_or(&Value::Null, |(_, object)| object)
    }

    pub(super) fn object(&self) -> ObjectRef {
        object_ref(self.kind, self.namespace, self.name, self.uid)
    }

    pub(super) fn versions(&self) -> BTreeSet<u64> {
        self.changes.iter().map(|change| change.resource_version).collect()
    }

    /// Returns the first value of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.entry("annotations", key)
    }

    /// Returns the first value of a label.
    pub(super) fn label(&self, key: &str) -> Option<&'a str> {
        self.entry("labels", key)
    }

    fn entry(&self, map: &str, key: &str) -> Option<&'a str> {
        let entry = |object: &'a Value| object["metadata"][map][key].as_str().filter(|value| !value.is_empty());
        self.states.iter().find_map(|(_, object)| entry(object))
    }

    /// Returns whether the object has the labels or annotations that our runs pass on to the objects made for them.
    pub(super) fn is_labelled(&self) -> bool {
        self.label(LABEL_RUN_SEQUENCE).is_some() || self.annotation(ANNOTATION_UID).is_some()
    }

    /// Returns the uid of the object's controller.
    pub(super) fn controller(&self) -> Option<&'a str> {
        let owners = self.first()["metadata"]["ownerReferences"].as_array()?;
        owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
    }

    /// Lists the uids of the objects to which this object may belong.
    pub(super) fn parents(&self) -> impl Iterator<Item = &'a str> {
        let own = self.uid;
        [self.label(LABEL_RUN_UID), self.controller()].into_iter().flatten().filter(move |uid| *uid != own)
    }

    /// Lists the gaps in the recorded life.
    pub(super) fn gaps(&self) -> Vec<String> {
        let object = self.object();
        let mut gaps = Vec::new();
        match self.changes.first().map(|first| first.change) {
            Some(ChangeType::Added) | None => {}
            Some(ChangeType::Existing) => gaps.push(format!("{object} was there before the recording began")),
            Some(_) => gaps.push(format!("{object} was never seen to be created")),
        }
        if self.changes.iter().skip(1).any(|change| matches!(change.change, ChangeType::Added | ChangeType::Existing)) {
            gaps.push(format!("{object} was seen to be created twice"));
        }
        if self.gone.is_some_and(|gone| self.states.last().is_some_and(|(last, _)| *last > gone)) {
            gaps.push(format!("{object} was seen to change after its deletion"));
        }
        // The API server increments the generation with every change to the spec.
        let generation = |object: &Value| object.pointer("/metadata/generation").and_then(Value::as_i64);
        for pair in self.states.windows(2) {
            if let [(_, before), (at, after)] = pair
                && let (Some(before), Some(after)) = (generation(before), generation(after))
                && after > before + 1
            {
                let version = at.resource_version;
                gaps.push(format!("{object} has changed unseen before resourceVersion {version}"));
            }
        }
        gaps
    }
}

/// A status, and when it was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) at: Moment,
    pub(crate) status: &'a Value,
}

impl Written<'_> {
    pub(crate) fn phase(&self) -> Option<Phase> {
        phase(self.status)
    }
}

/// Returns the phase in a status; `None` if it is absent or unknown.
pub(crate) fn phase(status: &Value) -> Option<Phase> {
    let word = status["phase"].as_str()?;
    Phase::ALL.into_iter().find(|phase| phase.as_str() == word)
}
