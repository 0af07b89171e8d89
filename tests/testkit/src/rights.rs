//! The rights in the shipped roles, each a verb on a resource.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::assets::repository;
use crate::audit::AuditEntry;
use crate::{manifests, rbac};

/// One verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Such as `get`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with the subresource if there is one: `workflowexecutions/status`.
    pub resource: String,
}

/// Formats a right as `get pods` or `patch kubernaut.ai/workflowexecutions/status`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.group.is_empty() { "" } else { "/" };
        write!(f, "{} {}{separator}{}", self.verb, self.group, self.resource)
    }
}

impl Right {
    /// Returns the right that a request needed.
    #[must_use]
    pub fn of(entry: &AuditEntry) -> Self {
        let separator = if entry.subresource.is_empty() { "" } else { "/" };
        let resource = format!("{}{separator}{}", entry.resource, entry.subresource);
        Self { verb: entry.verb.clone(), group: entry.group.clone(), resource }
    }

    /// Returns the words in which the API server reports that a user lacks this right.
    #[must_use]
    pub fn missing(&self) -> String {
        format!("cannot {} resource \"{}\"", self.verb, self.resource)
    }
}

/// Returns every right that the roles of `config/rbac` grant.
pub fn shipped() -> Result<BTreeSet<Right>> {
    let roles = manifests::read(&repository().join("config/rbac"))?;
    let rights: BTreeSet<Right> = roles.iter().flat_map(rights_of).collect();
    ensure!(!rights.is_empty(), "the roles of config/rbac give no right");
    Ok(rights)
}

/// Returns those of the given rights that an admission policy of `config/admission` checks. They are for subresources
/// that no API server serves, so no request needs them.
pub(crate) fn asked_by_policies(rights: &BTreeSet<Right>) -> Result<BTreeSet<Right>> {
    let policies = manifests::read(&repository().join("config/admission"))?;
    let expressions: String =
        policies.iter().flat_map(|policy| expressions_of(&policy["spec"]["validations"])).collect();
    let asks = |right: &&Right| {
        right.resource.split_once('/').is_some_and(|(resource, subresource)| {
            expressions.contains(&format!(".resource('{resource}').subresource('{subresource}')"))
        })
    };
    Ok(rights.iter().filter(asks).cloned().collect())
}

/// Returns the expressions of validations, without white space.
fn expressions_of(validations: &Value) -> Vec<String> {
    let expressions = validations.as_array().into_iter().flatten().filter_map(|it| it["expression"].as_str());
    expressions.map(|text| text.split_whitespace().collect()).collect()
}

/// Returns the rights that a role grants; none if the object is not a role.
pub(crate) fn rights_of(role: &Value) -> Vec<Right> {
    rules_of(role).flat_map(rights_of_rule).collect()
}

fn rules_of(role: &Value) -> impl Iterator<Item = &Value> {
    role["rules"].as_array().into_iter().flatten()
}

fn rights_of_rule(rule: &Value) -> Vec<Right> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                rights.push(Right { verb, group: group.clone(), resource: resource.clone() });
            }
        }
    }
    rights
}

/// Returns the role without one of its rights. Its other rights stay limited to the same objects.
pub(crate) fn without(mut role: Value, taken: &Right) -> Value {
    let mut left = Vec::new();
    for rule in rules_of(&role) {
        for right in rights_of_rule(rule).into_iter().filter(|right| right != taken) {
            let mut one = json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]});
            if let Some(names) = rule.get("resourceNames") {
                one["resourceNames"] = names.clone();
            }
            left.push(one);
        }
    }
    role["rules"] = json!(left);
    role
}

/// Returns the name of the only object that a role grants a right on; `None` if the role does not limit the right.
pub(crate) fn name_of(role: &Value, right: &Right) -> Option<String> {
    let giving = rules_of(role).find(|rule| rights_of_rule(rule).contains(right))?;
    giving["resourceNames"][0].as_str().map(str::to_owned)
}

/// Returns whether an operator with the shipped roles sent the request, and the authorizer allowed it.
pub(crate) fn is_used_by_operator(entry: &AuditEntry) -> bool {
    let account = entry.user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    entry.allowed && account.is_some_and(|(_, name)| name == rbac::OPERATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_loses_one_right_and_keeps_the_others() {
        let role = json!({"kind": "Role", "rules": [
            {"apiGroups": ["tekton.dev"], "resources": ["taskruns", "customruns"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["one"], "verbs": ["get"]},
        ]});
        let limited =
            json!({"apiGroups": [""], "resources": ["x"], "resourceNames": ["one"], "verbs": ["get", "update"]});
        let limited = json!({"kind": "Role", "rules": [limited]});
        let update = Right { verb: "update".to_owned(), group: String::new(), resource: "x".to_owned() };
        let get = Right { verb: "get".to_owned(), ..update.clone() };
        assert_eq!(name_of(&without(limited, &update), &get).as_deref(), Some("one"));
        let told = |role: &Value| rights_of(role).iter().map(ToString::to_string).collect::<Vec<_>>();
        let taken = Right { verb: "list".to_owned(), group: "tekton.dev".to_owned(), resource: "taskruns".to_owned() };
        assert_eq!(without(role.clone(), &taken)["rules"][3]["resourceNames"], json!(["one"]));
        assert_eq!(
            told(&without(role, &taken)),
            ["get tekton.dev/taskruns", "get tekton.dev/customruns", "list tekton.dev/customruns", "get pods"]
        );
    }

    #[test]
    fn a_right_that_no_request_needs_is_one_that_a_policy_asks_for() {
        let asked = asked_by_policies(&shipped().unwrap()).unwrap();
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        assert_eq!(
            asked,
            [
                "create kubernaut.ai/workflowexecutions/marks",
                "create kubernaut.ai/workflowexecutions/target",
                "create kubernaut.ai/workflowschedules/child"
            ]
        );
    }

    #[test]
    fn only_what_an_operator_was_allowed_counts() {
        let entry = |user: &str, allowed| AuditEntry { user: user.to_owned(), allowed, ..AuditEntry::default() };
        assert!(is_used_by_operator(&entry("system:serviceaccount:x-system:wfe-operator", true)));
        assert!(!is_used_by_operator(&entry("system:serviceaccount:x-system:wfe-operator", false)));
        assert!(!is_used_by_operator(&entry("system:serviceaccount:x-system:somebody", true)));
        assert!(!is_used_by_operator(&entry("admin", true)));
    }
}
