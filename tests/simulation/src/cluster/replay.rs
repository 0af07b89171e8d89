//! Applies the recorded changes of one run to another run, with that run's own names, namespace, uids, times, and
//! `kubernaut.ai/` labels and annotations.

use std::collections::BTreeMap;

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Map, Value};
use wfe_core::Time;

use super::scripts::{Story, as_time, name_of, since_begin, uid};

/// The prefix of the labels and annotations that are copied from a run to its dependents.
const OURS: &str = "kubernaut.ai/";

/// Texts and their replacements. All are replaced at the same time. If two texts begin at the same position, the first
/// pair applies.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    pub(super) fn new<const N: usize>(names: [(&str, &str); N]) -> Self {
        Self(
            names
                .map(|(old, new)| (old.to_owned(), new.to_owned()))
                .into_iter()
                .filter(|(old, _)| !old.is_empty())
                .collect(),
        )
    }

    pub(super) fn rename(&self, text: &str) -> String {
        let (mut renamed, mut rest) = (String::with_capacity(text.len()), text);
        loop {
            let found = self.0.iter().filter_map(|(old, new)| rest.find(old.as_str()).map(|at| (at, old, new)));
            // `min_by_key` returns the first of several minima.
            let Some((at, old, new)) = found.min_by_key(|(at, ..)| *at) else { return renamed + rest };
            renamed = renamed + &rest[..at] + new;
            rest = &rest[at + old.len()..];
        }
    }
}

/// Formats a time as Tekton does, in whole seconds.
pub(super) fn rendered(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Changes all texts of a value.
pub(super) fn change_texts(value: &mut Value, change: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(new) = change(text) {
                *text = new;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| change_texts(value, change)),
        Value::Object(all) => all.values_mut().for_each(|value| change_texts(value, change)),
        _ => {}
    }
}

/// How one story is applied to one run.
#[derive(Debug)]
pub(super) struct Replay {
    names: Names,
    namespace: Value,
    /// The time at which the recorded story begins.
    pub(super) begun: Time,
    /// The new value of each recorded time. A pause of Tekton delays the later times, but changes no time that was
    /// already written.
    told: BTreeMap<TimeDelta, Time>,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl Replay {
    /// Creates the replay of a story on a run that is released now.
    pub(super) fn new(story: &Story, run: &Value, now: Time) -> Self {
        let namespace = |run: &Value| run["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let (theirs, ours) = (namespace(&story.run), namespace(run));
        let names =
            [(name_of(&story.run), name_of(run)), (theirs.as_str(), ours.as_str()), (uid(&story.run), uid(run))];
        let of_ours = |field: &str| {
            let all = run["metadata"][field].as_object().into_iter().flatten();
            all.filter(|(key, _)| key.starts_with(OURS)).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        Self {
            names: Names::new(names),
            namespace: Value::String(ours.clone()),
            begun: now,
            told: BTreeMap::new(),
            labels: of_ours("labels"),
            annotations: of_ours("annotations"),
        }
    }

    /// Records the real uid of a recorded object.
    pub(super) fn identify(&mut self, recorded: &str, real: &str) {
        self.names.0.retain(|(old, _)| old != recorded);
        self.names.0.push((recorded.to_owned(), real.to_owned()));
    }

    /// Returns the real uid of a recorded object.
    pub(super) fn uid_of(&self, recorded: &str) -> Option<&str> {
        self.names.0.iter().find(|(old, _)| old == recorded).map(|(_, new)| new.as_str())
    }

    /// Returns the new name for a recorded name.
    pub(super) fn rename(&self, name: &str) -> String {
        self.names.rename(name)
    }

    /// Rewrites a recorded object or patch. Metadata that only a server sets is left out.
    pub(super) fn retell(&mut self, recorded: &Value) -> Value {
        let mut value = recorded.clone();
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"] {
                meta.remove(field);
            }
            meta.remove("deletionGracePeriodSeconds");
        }
        let Self { names, begun, told, .. } = self;
        change_texts(&mut value, &mut |text| match as_time(text) {
            Some(time) => {
                let after = since_begin(time);
                Some(rendered(*told.entry(after).or_insert(*begun + after)))
            }
            None => Some(names.rename(text)),
        });
        let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return value };
        if let Some(namespace) = meta.get_mut("namespace") {
            *namespace = self.namespace.clone();
        }
        for (field, ours) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            let Some(all) = meta.get_mut(field).and_then(Value::as_object_mut) else { continue };
            let count = all.len();
            all.retain(|key, _| !key.starts_with(OURS));
            if all.len() < count {
                all.extend(ours.clone());
            }
        }
        value
    }
}
