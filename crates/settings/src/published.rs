//! The settings that the leader has in force, as it publishes them in an annotation of its Lease. By them `kubectl wfe`
//! predicts what the operator decides, also while the newest `ConfigMap` is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::{Document, Flags, InForce, NO_VERSION, Place, Source};
use crate::table::keys;

/// The settings of the leader. A setting that has its default is left out. No setting is a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Published {
    /// The name of the `ConfigMap`, in the operator's own namespace.
    pub config_map: String,
    /// The resourceVersion of the `ConfigMap` in force, or [`NO_VERSION`].
    pub version: String,
    /// The resourceVersion of the newest `ConfigMap`, if the operator refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The only namespace that the operator watches; none if it watches all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_namespace: Option<String>,
    /// The values that flags and environment variables give, by key.
    pub flags: BTreeMap<String, String>,
    /// The values that the `ConfigMap` gives, by key.
    pub values: BTreeMap<String, String>,
}

impl Published {
    /// Returns what a leader publishes.
    #[must_use]
    pub fn of(in_force: &InForce, place: &Place, refused: Option<&str>, watch_namespace: Option<&str>) -> Self {
        let given = |sources: &[Source]| {
            let given = in_force.settings.iter().filter(|setting| sources.contains(&setting.source));
            given.map(|setting| (setting.key.to_owned(), setting.value.clone())).collect()
        };
        Self {
            config_map: place.name.clone(),
            version: in_force.version.clone(),
            refused: refused.map(str::to_owned),
            watch_namespace: watch_namespace.map(str::to_owned),
            flags: given(&[Source::Flag, Source::Environment]),
            values: given(&[Source::ConfigMap]),
        }
    }

    /// Returns the flags of the leader, without those that this version does not know.
    #[must_use]
    pub fn flags(&self, namespace: &str) -> Flags {
        let known = self.flags.iter().filter(|(key, _)| is_known(key)).map(|(key, value)| format!("--{key}={value}"));
        Flags::of_run(std::iter::once(format!("--namespace={namespace}")).chain(known))
    }

    /// Returns the content of the `ConfigMap` in force; `None` without one.
    #[must_use]
    pub fn document(&self) -> Option<Document> {
        let values = self.values.iter().map(|(key, value)| (key.clone(), Ok(value.clone()))).collect();
        (self.version != NO_VERSION).then(|| Document { version: self.version.clone(), values, ..Document::default() })
    }

    /// Returns the keys that this version does not know: the leader is a later version.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.flags.keys().chain(self.values.keys()).map(String::as_str).filter(|key| !is_known(key))
    }
}

fn is_known(key: &str) -> bool {
    keys().any(|known| known == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_leader_publishes_gives_the_same_settings_again() {
        let flags =
            Flags::of_run(["--namespace=ops", "--cooldown-period=7m", "--start-deadline=2m"].map(str::to_owned));
        let place = Place { namespace: "ops".to_owned(), name: "c".to_owned() };
        let limits = "- name: drains\n  kind: Node\n  maxRunning: 3\n";
        let values = [("cooldown-period", "8m"), ("paused", "true"), ("limits", limits)];
        let values = values.map(|(key, value)| (key.to_owned(), Ok(value.to_owned()))).into();
        let document = Document { version: "7".to_owned(), values, ..Document::default() };
        for document in [Some(&document), None] {
            let in_force = flags.under(&place, document).unwrap();
            let sent = serde_json::to_string(&Published::of(&in_force, &place, Some("8"), Some("payment"))).unwrap();
            let read: Published = serde_json::from_str(&sent).unwrap();
            let again = read.flags("ops").under(&place, read.document().as_ref()).unwrap();
            assert_eq!((&again.policy, &again.settings), (&in_force.policy, &in_force.settings), "{sent}");
            assert_eq!((read.config_map.as_str(), read.version), ("c", in_force.version));
            assert_eq!((read.refused.as_deref(), read.watch_namespace.as_deref()), (Some("8"), Some("payment")));
        }
    }

    #[test]
    fn keys_of_a_later_version_are_named_and_change_nothing() {
        let sent =
            r#"{"version": "9", "flags": {"new-flag": "1"}, "values": {"new-key": "1", "paused": "false"}, "more": 1}"#;
        let read: Published = serde_json::from_str(sent).unwrap();
        assert_eq!(read.unknown().collect::<Vec<_>>(), ["new-flag", "new-key"]);
        let place = Place { namespace: "ops".to_owned(), name: "c".to_owned() };
        assert!(read.flags("ops").under(&place, read.document().as_ref()).is_ok());
    }
}
