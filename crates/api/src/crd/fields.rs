//! The fields that a CRD in a cluster lacks, compared with the CRD of this build.
//!
//! The API server silently drops a field that its CRD does not have, both in writes and in reads. Another project's CRD
//! can have the same name, and an upgrade by Helm leaves an older CRD in place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::VERSION;

/// The name of the CRD of executions.
pub const EXECUTIONS_CRD: &str = "workflowexecutions.kubernaut.ai";
/// The name of the CRD of schedules.
pub const SCHEDULES_CRD: &str = "workflowschedules.kubernaut.ai";

/// The fields of a `WorkflowExecution`, with everything below them, on which decisions depend. Without one of them the
/// operator would misjudge an execution.
pub const DECISIVE: [&str; 10] = [
    "spec.targetResource",
    "spec.workflowRef",
    "status.completionTime",
    "status.conditions",
    "status.failureDetails.wasExecutionFailure",
    "status.nextAllowedExecution",
    "status.phase",
    "status.pipelineRunRef",
    "status.runSequence",
    "status.startTime",
];

/// Fields below [`DECISIVE`] ones that the first CRDs of this project did not have. The operator works without them.
const ADDED_LATER: [&str; 1] = ["status.pipelineRunRef.namespace"];

/// The fields that a CRD lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Without one of these fields nothing can be decided.
    pub decisive: Vec<String>,
    /// All other fields.
    pub others: Vec<String>,
}

/// The most fields that a message names.
const NAMED: usize = 3;

/// Lists the first of the fields, and counts the others.
#[must_use]
pub fn in_short(fields: &[String]) -> String {
    let first = fields.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match fields.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more fields"),
    }
}

/// Returns the fields that a CRD in a cluster lacks. If a field is missing, the fields below it are not named.
#[must_use]
pub fn lacking(crd: &str, found: &Value) -> Lacking {
    let version = found.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let served = version.into_iter().find(|it| it["name"] == VERSION && it["served"] != false);
    lacking_in_schema(crd, served.map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"]))
}

/// Returns the fields that the schema of a kind lacks, like [`lacking`] for a CRD.
#[must_use]
pub fn lacking_in_schema(crd: &str, schema: &Value) -> Lacking {
    let mut missing = Vec::new();
    if let Some(ours) = SCHEMAS.get(crd) {
        for part in ["spec", "status"] {
            compare(&ours["properties"][part], &schema["properties"][part], part, &mut missing);
        }
    }
    let (decisive, others) = missing.into_iter().partition(|field| crd == EXECUTIONS_CRD && is_decisive(field));
    Lacking { decisive, others }
}

/// Returns whether decisions depend on this field, on a field above it or on a field below it.
#[must_use]
pub fn is_decisive(field: &str) -> bool {
    let is_below = |field: &str, above: &str| field.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'));
    let concerns = |decisive: &str| field == decisive || is_below(field, decisive) || is_below(decisive, field);
    !ADDED_LATER.contains(&field) && DECISIVE.into_iter().any(concerns)
}

/// The schemas of this build, by the names of their CRDs.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let schema_of = |crd: &super::CustomResourceDefinition| {
        let schema = crd.spec.versions.iter().find_map(|it| it.schema.as_ref()?.open_api_v3_schema.as_ref());
        Some((crd.metadata.name.clone()?, serde_json::to_value(schema).unwrap_or_default()))
    };
    super::crds().iter().filter_map(schema_of).collect()
});

/// Adds the fields of `ours` that `found` lacks. `path` names the place of both.
fn compare(ours: &Value, found: &Value, path: &str, missing: &mut Vec<String>) {
    if keeps_everything(found) {
        return;
    }
    if !found.is_object() {
        return missing.push(path.to_owned());
    }
    for (name, field) in ours["properties"].as_object().into_iter().flatten() {
        compare(field, &found["properties"][name], &format!("{path}.{name}"), missing);
    }
    if ours["items"].is_object() {
        compare(&ours["items"], &found["items"], path, missing);
    }
    let values = &found["additionalProperties"];
    if ours["additionalProperties"].is_object() && *values != true {
        compare(&ours["additionalProperties"], values, path, missing);
    }
}

fn keeps_everything(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds;

    fn shipped(name: &str) -> Value {
        let crd = crds().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name));
        serde_json::to_value(crd.unwrap()).unwrap()
    }

    /// Returns a shipped CRD without some fields.
    fn without(name: &str, fields: &[&str]) -> Value {
        let mut crd = shipped(name);
        for field in fields {
            let path = field.replace('.', "/properties/");
            let (parent, last) = path.rsplit_once('/').unwrap();
            let parent = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{parent}");
            let removed = crd.pointer_mut(&parent).unwrap().as_object_mut().unwrap().remove(last);
            assert!(removed.is_some(), "there is no {field}");
        }
        crd
    }

    #[test]
    fn a_shipped_crd_lacks_nothing() {
        for name in [EXECUTIONS_CRD, SCHEDULES_CRD] {
            assert_eq!(lacking(name, &shipped(name)), Lacking::default(), "{name}");
        }
    }

    #[test]
    fn each_decisive_field_is_missed_and_so_is_each_part_of_it() {
        for field in DECISIVE {
            let found = lacking(EXECUTIONS_CRD, &without(EXECUTIONS_CRD, &[field]));
            assert_eq!((found.decisive, found.others), (vec![field.to_owned()], Vec::new()), "{field}");
        }
        for field in ["status.pipelineRunRef.uid", "spec.workflowRef.containerImage"] {
            let found = lacking(EXECUTIONS_CRD, &without(EXECUTIONS_CRD, &[field]));
            assert_eq!(found.decisive, [field], "{field}");
        }
        for above in ["status", "status.failureDetails"] {
            let path = above.replace('.', "/properties/");
            let mut crd = shipped(EXECUTIONS_CRD);
            let node = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{path}");
            *crd.pointer_mut(&node).unwrap() = Value::Null;
            assert_eq!(lacking(EXECUTIONS_CRD, &crd).decisive, [above], "{above}");
        }
    }

    /// Tries each field that an earlier CRD of this project did not have.
    #[test]
    fn every_older_crd_of_this_project_can_be_worked_with() {
        let older = [
            "spec.cancellation",
            "spec.clearance",
            "spec.recoveryOf",
            "spec.retry",
            "spec.startBefore",
            "spec.ttlSecondsAfterFinished",
            "status.attempts",
            "status.failureDetails.fingerprint",
            "status.failureDetails.sharedOutage",
            "status.pipelineRunRef.namespace",
        ];
        let found = lacking(EXECUTIONS_CRD, &without(EXECUTIONS_CRD, &older));
        assert_eq!((found.decisive, found.others), (Vec::new(), older.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_part_that_keeps_what_it_does_not_know_lacks_nothing() {
        let mut crd = without(EXECUTIONS_CRD, &["status.phase", "status.runSequence"]);
        let status = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status").unwrap();
        status["x-kubernetes-preserve-unknown-fields"] = true.into();
        assert_eq!(lacking(EXECUTIONS_CRD, &crd), Lacking::default());
    }

    #[test]
    fn a_crd_that_does_not_serve_our_version_lacks_everything() {
        let mut crd = shipped(EXECUTIONS_CRD);
        crd["spec"]["versions"][0]["name"] = "v1".into();
        assert_eq!(lacking(EXECUTIONS_CRD, &crd).decisive, ["spec", "status"]);
        assert_eq!(lacking(EXECUTIONS_CRD, &Value::Null).decisive, ["spec", "status"]);
    }

    #[test]
    fn of_a_schedule_no_field_is_decisive() {
        let found = lacking(SCHEDULES_CRD, &without(SCHEDULES_CRD, &["status.failureCount"]));
        assert_eq!(found.decisive, Vec::<String>::new());
    }
}
