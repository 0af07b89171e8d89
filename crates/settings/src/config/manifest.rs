//! Reads a `ConfigMap` from an object of the API server, or from a file.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::{Document, Place};

/// The version that is shown for a `ConfigMap` from a file.
const OF_FILE: &str = "(file)";

impl Document {
    /// Reads an object of the API server, whose `data` contains only texts.
    #[must_use]
    pub fn of(object: ConfigMap) -> Self {
        let texts = object.data.unwrap_or_default().into_iter().map(|(key, text)| (key, Ok(text)));
        let binaries = object.binary_data.unwrap_or_default().into_keys().map(|key| (key, Err("is binary, not text")));
        Self {
            uid: object.metadata.uid.unwrap_or_default(),
            version: object.metadata.resource_version.unwrap_or_default(),
            values: texts.chain(binaries).collect(),
        }
    }

    /// Reads the operator's `ConfigMap` from a file, which may contain other objects.
    ///
    /// # Errors
    /// If the file does not contain the operator's `ConfigMap`.
    pub fn of_yaml(text: &str, place: &Place) -> anyhow::Result<Self> {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(text).map_err(|error| anyhow::anyhow!("not YAML: {error}"))?;
        let named = |object: &&Value| object.pointer("/metadata/name").is_some_and(|name| *name == place.name);
        let found: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "ConfigMap").collect();
        let object = match (&found[..], found.iter().copied().find(named)) {
            (_, Some(object)) => object,
            ([], None) => bail!("it holds no ConfigMap"),
            (_, None) => bail!("it holds no ConfigMap {}; --config-map names another one", place.name),
        };
        let data = &object["data"];
        ensure!(data.is_object() || data.is_null(), "its data is not a map of keys to texts");
        let mut values = BTreeMap::new();
        for (key, value) in data.as_object().into_iter().flatten() {
            let text = value.as_str().map(str::to_owned).ok_or("is not a text: put it in quotes");
            values.insert(key.clone(), text);
        }
        for (key, _) in object["binaryData"].as_object().into_iter().flatten() {
            values.insert(key.clone(), Err("is binary, not text"));
        }
        Ok(Self { uid: String::new(), version: OF_FILE.to_owned(), values })
    }
}
