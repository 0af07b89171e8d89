//! The value of the flag `--limits`: a YAML list.

use std::fmt::Display;

use serde_json::{Map, Value};
use wfe_core::limit::{Limit, Limits, MOST_LIMITS, MOST_RUNNING};
use wfe_core::target::{Scope, canonical_kind};

use super::LONGEST_NAME;

/// The fields of an entry.
const FIELDS: [&str; 5] = ["name", "kind", "workflowId", "namespace", "maxRunning"];

/// Parses the limits of how many targets are worked on at once.
///
/// # Errors
/// Which entry is wrong, in which field, and what the field may be.
pub(super) fn parse_limits(text: &str) -> Result<Limits, String> {
    let list: Value = serde_saphyr::from_str(text).map_err(|_| "is not YAML".to_owned())?;
    let Value::Array(entries) = list else {
        return Err("is not a list, such as [] or [{name: a, maxRunning: 1}]".into());
    };
    if entries.len() > MOST_LIMITS {
        return Err(format!("has more than {MOST_LIMITS} entries"));
    }
    let mut limits: Vec<Limit> = Vec::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        let limit = read(entry).map_err(|why| format!("{}: {why}", called(place, entry)))?;
        if limits.iter().any(|other| other.name == limit.name) {
            return Err(format!("{}: name is that of an earlier entry", called(place, entry)));
        }
        limits.push(limit);
    }
    Ok(limits.into_iter().collect())
}

/// Names an entry: by its position, and by its name if that can be read.
fn called(place: usize, entry: &Value) -> String {
    let name = entry["name"].as_str().filter(|name| wfe_api::is_dns_label(name));
    name.map_or_else(|| format!("entry {}", place + 1), |name| format!("entry {} ({name})", place + 1))
}

fn read(entry: &Value) -> Result<Limit, String> {
    let fields = entry.as_object().ok_or("is not an object with the fields name and maxRunning")?;
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        let unknown: String = unknown.chars().take(32).collect();
        return Err(format!("unknown field {unknown:?}; the fields are {}", FIELDS.join(", ")));
    }
    let name = text(fields, "name", wfe_api::is_dns_label, "a name of 1 to 63 of a-z, 0-9 and -")?;
    let name = name.ok_or("name is missing")?;
    let namespace = text(fields, "namespace", wfe_api::is_dns_label, "the name of a namespace")?;
    let workflow_id = text(
        fields,
        "workflowId",
        |it| !it.is_empty() && it.len() <= LONGEST_NAME,
        format_args!("a text of 1 to {LONGEST_NAME} bytes"),
    )?;
    let kind = text(fields, "kind", |it| canonical_kind(it).is_some(), "a kind such as node or deployment")?;
    let kind = kind.and_then(canonical_kind);
    if let (Some((kind, Some(Scope::Cluster))), Some(_)) = (&kind, namespace) {
        return Err(format!("namespace: a {kind} has no namespace"));
    }
    let max = fields.get("maxRunning").ok_or("maxRunning is missing")?;
    let max = max.as_u64().and_then(|max| u32::try_from(max).ok()).filter(|max| (1..=MOST_RUNNING).contains(max));
    Ok(Limit {
        name: name.into(),
        kind: kind.map(|(kind, _)| kind.into()),
        workflow_id: workflow_id.map(Into::into),
        namespace: namespace.map(Into::into),
        max_running: max.ok_or_else(|| format!("maxRunning is not a whole number from 1 to {MOST_RUNNING}"))?,
    })
}

/// Returns the text of a field, if the field is there.
fn text<'a>(
    fields: &'a Map<String, Value>,
    field: &str,
    is_usable: impl Fn(&str) -> bool,
    wanted: impl Display,
) -> Result<Option<&'a str>, String> {
    let Some(value) = fields.get(field) else { return Ok(None) };
    match value.as_str() {
        Some(text) if is_usable(text) => Ok(Some(text)),
        _ => Err(format!("{field} is not {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_kinds_in_canonical_form() {
        let yaml = "- name: drains\n  kind: Nodes\n  workflowId: drain-node\n  maxRunning: 3\n\
                    - {name: all, maxRunning: 100000}\n\
                    - {name: shop, kind: deployments.apps, namespace: shop, maxRunning: 1}";
        let read: Vec<Limit> = parse_limits(yaml).unwrap().iter().cloned().collect();
        let limit =
            |name: &str, kind: Option<&str>, workflow: Option<&str>, namespace: Option<&str>, max_running| Limit {
                name: name.into(),
                kind: kind.map(Into::into),
                workflow_id: workflow.map(Into::into),
                namespace: namespace.map(Into::into),
                max_running,
            };
        let expected = [
            limit("drains", Some("node"), Some("drain-node"), None, 3),
            limit("all", None, None, None, 100_000),
            limit("shop", Some("deployment"), None, Some("shop"), 1),
        ];
        assert_eq!(read, expected);
        assert!(parse_limits("[]").unwrap().is_empty());
    }

    #[test]
    fn a_bad_entry_is_refused_with_its_place_its_name_and_the_field() {
        let with = |fields: &str| format!("[{{name: ok, maxRunning: 1}}, {{{fields}}}]");
        for (yaml, why) in [
            ("{".to_owned(), "is not YAML"),
            (String::new(), "is not a list, such as [] or [{name: a, maxRunning: 1}]"),
            ("3".to_owned(), "is not a list, such as [] or [{name: a, maxRunning: 1}]"),
            ("[3]".to_owned(), "entry 1: is not an object with the fields name and maxRunning"),
            (with("maxRunning: 1"), "entry 2: name is missing"),
            (with("name: A_b, maxRunning: 1"), "entry 2: name is not a name of 1 to 63 of a-z, 0-9 and -"),
            (with("name: 7, maxRunning: 1"), "entry 2: name is not a name of 1 to 63 of a-z, 0-9 and -"),
            (with("name: ok, maxRunning: 1"), "entry 2 (ok): name is that of an earlier entry"),
            (with("name: b"), "entry 2 (b): maxRunning is missing"),
            (with("name: b, maxRunning: 0"), "entry 2 (b): maxRunning is not a whole number from 1 to 100000"),
            (with("name: b, maxRunning: -1"), "entry 2 (b): maxRunning is not a whole number from 1 to 100000"),
            (with("name: b, maxRunning: 1.5"), "entry 2 (b): maxRunning is not a whole number from 1 to 100000"),
            (with("name: b, maxRunning: 100001"), "entry 2 (b): maxRunning is not a whole number from 1 to 100000"),
            (with("name: b, maxRunning: '3'"), "entry 2 (b): maxRunning is not a whole number from 1 to 100000"),
            (
                with("name: b, maxRunning: 1, max: 2"),
                "entry 2 (b): unknown field \"max\"; the fields are name, kind, workflowId, namespace, maxRunning",
            ),
            (with("name: b, maxRunning: 1, kind: a/b"), "entry 2 (b): kind is not a kind such as node or deployment"),
            (with("name: b, maxRunning: 1, kind: null"), "entry 2 (b): kind is not a kind such as node or deployment"),
            (with("name: b, maxRunning: 1, workflowId: ''"), "entry 2 (b): workflowId is not a text of 1 to 253 bytes"),
            (with("name: b, maxRunning: 1, namespace: A"), "entry 2 (b): namespace is not the name of a namespace"),
            (
                with("name: b, maxRunning: 1, kind: nodes, namespace: shop"),
                "entry 2 (b): namespace: a node has no namespace",
            ),
        ] {
            assert_eq!(parse_limits(&yaml).unwrap_err(), why, "{yaml}");
        }
        let many: Vec<String> = (0..21).map(|n| format!("{{name: l-{n}, maxRunning: 1}}")).collect();
        assert_eq!(parse_limits(&format!("[{}]", many.join(","))).unwrap_err(), "has more than 20 entries");
    }
}
