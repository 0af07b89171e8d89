//! Label selectors (existence and equality), and field selectors for `metadata.name`.

use serde_json::Value;

use super::answer::{Answer, bad_request};
use super::target::Query;

/// Selects some objects of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Has(String),
    Lacks(String),
    Is(String, String),
    IsNot(String, String),
}

impl Selector {
    pub(super) fn parse(query: &Query) -> Result<Self, Answer> {
        let terms =
            |name| query.text(name).unwrap_or_default().split(',').map(str::trim).filter(|term| !term.is_empty());
        let labels = terms("labelSelector").map(requirement).collect::<Result<_, _>>()?;
        let mut name = None;
        for term in terms("fieldSelector") {
            let value = term.strip_prefix("metadata.name=").map(|value| value.trim_start_matches('='));
            name = Some(value.ok_or_else(|| not_simulated("fieldSelector", term))?.to_owned());
        }
        Ok(Self { labels, name })
    }

    /// Returns whether the selector selects all objects.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.name.is_none()
    }

    pub(super) fn selects(&self, object: &Value) -> bool {
        let meta = &object["metadata"];
        let label = |key: &str| meta["labels"].get(key).and_then(Value::as_str);
        self.name.as_deref().is_none_or(|name| meta["name"] == *name)
            && self.labels.iter().all(|requirement| match requirement {
                Requirement::Has(key) => label(key).is_some(),
                Requirement::Lacks(key) => label(key).is_none(),
                Requirement::Is(key, value) => label(key) == Some(value),
                Requirement::IsNot(key, value) => label(key) != Some(value),
            })
    }
}

fn requirement(term: &str) -> Result<Requirement, Answer> {
    if term.contains(['(', ' ', '<', '>']) {
        return Err(not_simulated("labelSelector", term));
    }
    let own = str::to_owned;
    if let Some((key, value)) = term.split_once("!=") {
        return Ok(Requirement::IsNot(own(key), own(value)));
    }
    if let Some((key, value)) = term.split_once('=') {
        return Ok(Requirement::Is(own(key), own(value.trim_start_matches('='))));
    }
    Ok(term.strip_prefix('!').map_or_else(|| Requirement::Has(own(term)), |key| Requirement::Lacks(own(key))))
}

fn not_simulated(what: &str, term: &str) -> Answer {
    bad_request(&format!("the fake API server does not know this {what}: {term}"))
}
