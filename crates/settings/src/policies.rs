//! The shipped admission policies, and how the policies of a cluster differ from them.
//!
//! The policies decide who may create, clear, cancel and delete executions, and change their owners. Without the
//! policies, every user with write access to the objects may do all this. The operator and the plugin therefore report
//! a policy that is missing or changed.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use serde_json::Value;

/// Includes the files of one policy and its binding.
macro_rules! files {
    ($($name:literal),*) => {
        [$((
            include_str!(concat!("../../../config/admission/", $name, "_policy.yaml")),
            include_str!(concat!("../../../config/admission/", $name, "_policy_binding.yaml")),
        )),*]
    };
}

const FILES: [(&str, &str); 13] = files![
    "author",
    "cancellation",
    "child",
    "clearance",
    "deletion",
    "kind",
    "marks",
    "operator",
    "owner",
    "recovery",
    "retry",
    "target",
    "workflow"
];

/// Defaults that the API server adds to a manifest. Any other additional field is a change.
const DEFAULTS: [(&str, &str); 3] = [("matchPolicy", "Equivalent"), ("scope", "*"), ("failurePolicy", "Fail")];

/// The prefix of the names of service accounts. The chart writes the account of its release into a policy.
const ACCOUNT: &str = "system:serviceaccount:";
/// The only account that no installation chooses. A policy with another account in its place does not admit the garbage
/// collector.
const COLLECTOR: &str = "kube-system:generic-garbage-collector";

/// The paths of the namespaces that an installation chooses: the namespace of the parameters, and that of the runs.
const NAMESPACES: [&str; 2] =
    ["spec.paramRef.namespace", "spec.matchResources.namespaceSelector.matchLabels.kubernetes.io/metadata.name"];

/// A shipped policy.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// The name of the policy, and of its binding.
    pub name: String,
    policy: Value,
    binding: Value,
}

/// One of the two objects of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The `ValidatingAdmissionPolicy`.
    Policy,
    /// The `ValidatingAdmissionPolicyBinding`.
    Binding,
}

impl Half {
    /// Both objects, in the order in which they are read.
    pub const ALL: [Self; 2] = [Self::Policy, Self::Binding];

    /// Returns the kind of the object.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Policy => "ValidatingAdmissionPolicy",
            Self::Binding => "ValidatingAdmissionPolicyBinding",
        }
    }

    /// Returns the plural name of the resource.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Policy => "validatingadmissionpolicies",
            Self::Binding => "validatingadmissionpolicybindings",
        }
    }
}

/// Returns the shipped policies.
///
/// # Errors
/// Never in a released build: the files are compiled in, and a test parses them.
pub fn shipped() -> Result<Vec<Shipped>> {
    FILES.iter().map(|(policy, binding)| Shipped::read(policy, binding)).collect()
}

/// Returns the policies for clearances and cancellations.
#[must_use]
pub fn guards() -> &'static [Shipped] {
    static GUARDS: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
        let is_guard = |it: &Shipped| ["cancellation.", "clearance."].iter().any(|kind| it.name.starts_with(kind));
        // A test parses the files, so there is no error to report here.
        shipped().unwrap_or_default().into_iter().filter(is_guard).collect()
    });
    &GUARDS
}

impl Shipped {
    fn read(policy: &str, binding: &str) -> Result<Self> {
        let object = |text| serde_saphyr::from_str::<Value>(text).context("a shipped policy is not YAML");
        let (policy, binding) = (object(policy)?, object(binding)?);
        let name = policy["metadata"]["name"].as_str().context("a shipped policy has no name")?.to_owned();
        Ok(Self { name, policy, binding })
    }

    /// Returns the path of the first difference between an object in a cluster and the shipped one, if there is any.
    ///
    /// Two kinds of values may differ, because the chart, or the administrator of several releases, chooses them. These
    /// are the names of service accounts, and the namespaces of parameters and runs in a binding.
    #[must_use]
    pub fn difference(&self, half: Half, spec: &Value) -> Option<String> {
        let shipped = match half {
            Half::Policy => &self.policy["spec"],
            Half::Binding => &self.binding["spec"],
        };
        difference("spec", shipped, spec)
    }
}

/// Returns the path of the first value that differs.
fn difference(path: &str, shipped: &Value, found: &Value) -> Option<String> {
    let differs = match (shipped, found) {
        (Value::Object(shipped), Value::Object(found)) => {
            let of_shipped = shipped.iter().find_map(|(key, value)| {
                difference(&format!("{path}.{key}"), value, found.get(key).unwrap_or(&Value::Null))
            });
            let added = || {
                let added = found.iter().find(|(key, value)| !shipped.contains_key(*key) && !is_default(key, value));
                added.map(|(key, _)| format!("{path}.{key}"))
            };
            return of_shipped.or_else(added);
        }
        (Value::Array(shipped), Value::Array(found)) if shipped.len() == found.len() => {
            let mut pairs = shipped.iter().zip(found).enumerate();
            return pairs.find_map(|(place, (shipped, found))| difference(&format!("{path}[{place}]"), shipped, found));
        }
        (Value::String(shipped), Value::String(found)) => {
            !NAMESPACES.contains(&path) && without_accounts(shipped) != without_accounts(found)
        }
        (shipped, found) => shipped != found,
    };
    differs.then(|| path.to_owned())
}

/// Returns whether an additional field has no meaning, because it is empty or a default.
fn is_default(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => DEFAULTS.contains(&(key, text)),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns an expression without the names of service accounts, except that of the garbage collector.
fn without_accounts(text: &str) -> String {
    let mut parts = text.split(ACCOUNT);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let is_of_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, ':' | '-' | '.');
        let rest = part.trim_start_matches(is_of_name);
        text + ACCOUNT + if part.strip_suffix(rest) == Some(COLLECTOR) { part } else { rest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wfe_core::target::{Scope, kind_spellings};

    fn clearance() -> Shipped {
        shipped().unwrap().into_iter().find(|it| it.name.starts_with("clearance.")).unwrap()
    }

    #[test]
    fn every_policy_of_the_repository_is_looked_after() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/admission");
        let paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let is_of_policy = |path: &std::path::PathBuf| path.to_string_lossy().contains("_policy");
        let files = paths.filter(|path| is_of_policy(path) && path.extension().is_some_and(|it| it == "yaml")).count();
        assert_eq!(files, 2 * FILES.len(), "files of {folder}: add the new one to FILES");
        for Shipped { name, policy, binding } in shipped().unwrap() {
            assert_eq!(
                (&policy["kind"], &binding["kind"]),
                (&json!(Half::Policy.kind()), &json!(Half::Binding.kind()))
            );
            assert_eq!((&binding["metadata"]["name"], &binding["spec"]["policyName"]), (&json!(name), &json!(name)));
        }
    }

    #[test]
    fn the_policy_on_kinds_lists_every_spelling_of_the_built_in_ones() {
        let kind = shipped().unwrap().into_iter().find(|it| it.name.starts_with("kind.")).unwrap();
        let conditions = kind.policy["spec"]["matchConditions"].as_array().unwrap();
        let condition = conditions.iter().find(|it| it["name"] == "kind-is-unknown").unwrap();
        let (_, list) = condition["expression"].as_str().unwrap().split_once(" in ['").unwrap();
        let list = list.strip_suffix("'])").unwrap();
        let mut known: Vec<&str> = [Scope::Cluster, Scope::Namespaced].into_iter().flat_map(kind_spellings).collect();
        known.sort_unstable();
        assert_eq!(list.split("', '").collect::<Vec<_>>(), known);
    }

    /// A request to delete a collection has no name, and an expression that reads the name would fail.
    #[test]
    fn no_policy_on_deletions_asks_for_the_name_of_the_request() {
        for Shipped { name, policy, .. } in shipped().unwrap() {
            let text = policy["spec"].to_string();
            let asks = text.replace("request.namespace", "").contains("request.name");
            assert!(!(asks && text.contains("\"DELETE\"")), "{name}: take oldObject.metadata.name");
        }
    }

    #[test]
    fn what_the_api_server_puts_in_is_no_change() {
        let shipped = clearance();
        let mut policy = shipped.policy["spec"].clone();
        policy["matchConstraints"]["matchPolicy"] = json!("Equivalent");
        policy["matchConstraints"]["namespaceSelector"] = json!({});
        policy["matchConstraints"]["resourceRules"][0]["scope"] = json!("*");
        assert_eq!(shipped.difference(Half::Policy, &policy), None);
        assert_eq!(shipped.difference(Half::Binding, &shipped.binding["spec"]), None);
    }

    #[test]
    fn a_change_is_named_by_its_place() {
        let shipped = clearance();
        let changed = |half, pointer: &str, value: Value| {
            let mut spec = match half {
                Half::Policy => shipped.policy["spec"].clone(),
                Half::Binding => shipped.binding["spec"].clone(),
            };
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            spec.pointer_mut(parent).unwrap()[key] = value;
            shipped.difference(half, &spec).unwrap_or_default()
        };
        let nobody = json!({"matchLabels": {"a": "b"}});
        for (half, pointer, value, place) in [
            (Half::Policy, "/failurePolicy", json!("Ignore"), "spec.failurePolicy"),
            (
                Half::Policy,
                "/matchConstraints/namespaceSelector",
                nobody.clone(),
                "spec.matchConstraints.namespaceSelector.matchLabels",
            ),
            (Half::Policy, "/matchConditions", json!([]), "spec.matchConditions"),
            (Half::Policy, "/validations", json!([{"expression": "true"}]), "spec.validations"),
            (Half::Binding, "/validationActions", json!(["Audit"]), "spec.validationActions[0]"),
            (Half::Binding, "/matchResources", json!({"namespaceSelector": nobody}), "spec.matchResources"),
            (Half::Binding, "/policyName", json!("another"), "spec.policyName"),
            (Half::Binding, "/paramRef", json!({"name": "a"}), "spec.paramRef"),
        ] {
            assert_eq!(changed(half, pointer, value), place, "{pointer}");
        }
        let mut first = shipped.policy["spec"].clone();
        first["validations"][0]["expression"] = json!("true");
        assert_eq!(shipped.difference(Half::Policy, &first).unwrap(), "spec.validations[0].expression");
        assert_eq!(shipped.difference(Half::Policy, &Value::Null).unwrap(), "spec");
    }

    #[test]
    fn a_release_has_its_own_account_and_its_own_parameters() {
        let named = |name: &str| shipped().unwrap().into_iter().find(|it| it.name.starts_with(name)).unwrap();
        let operator = named("operator.");
        let text = operator.policy["spec"].to_string();
        let ours = "system:serviceaccount:kubernaut-system:wfe-operator'";
        assert!(text.contains(ours), "{text}");
        let released = text.replace(ours, "system:serviceaccount:ops:release-wfe'");
        assert_eq!(operator.difference(Half::Policy, &serde_json::from_str(&released).unwrap()), None);
        let opened = text.replace(ours, "system:serviceaccount:ops:release-wfe' && false");
        assert!(operator.difference(Half::Policy, &serde_json::from_str(&opened).unwrap()).is_some());
        let marks = named("marks.");
        let mut binding = marks.binding["spec"].clone();
        binding["matchResources"]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] = json!("runs");
        assert_eq!(marks.difference(Half::Binding, &binding), None);
        let deletion = named("deletion.");
        let text = deletion.policy["spec"].to_string();
        for theirs in ["system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"]
        {
            assert!(text.contains(theirs), "{text}");
            for other in ["system:serviceaccount:kube-system:another", "somebody"] {
                let changed = serde_json::from_str(&text.replace(theirs, other)).unwrap();
                assert!(deletion.difference(Half::Policy, &changed).is_some(), "{theirs} is {other}");
            }
        }
        let workflow = named("workflow.");
        let mut binding = workflow.binding["spec"].clone();
        binding["paramRef"]["namespace"] = json!("ops");
        assert_eq!(workflow.difference(Half::Binding, &binding), None);
        binding["paramRef"]["name"] = json!("another");
        assert_eq!(workflow.difference(Half::Binding, &binding).unwrap(), "spec.paramRef.name");
    }
}
