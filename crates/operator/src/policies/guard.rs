//! Which policies guard what a person sets on an execution, read live: as a mark that changes with each of them
//! ([ADR 13](../../../../docs/adr/0013-unguarded-clearances.md)).

use std::time::Duration;

use kube::api::DynamicObject;
use wfe_core::Time;
use wfe_core::guard::GuardMark;
use wfe_settings::policies::{Half, Shipped, guards};
use wfe_tekton::moment;
use wfe_view::call::CallError;

use super::{ANSWERS_WITHIN, wrong_with};
use crate::client::Cluster;
use crate::verb::Verb;

/// How long after a change of a policy every API server goes by it: they hear of it by a watch and compile it, which
/// takes one or two seconds.
pub(super) const SETTLES_IN: Duration = Duration::from_secs(10);

/// The policies that were found to protect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which ones, and in which version of what they say.
    pub mark: GuardMark,
    /// When one of them was changed last, as far as they say so.
    pub(super) changed: Option<Time>,
}

/// Looks at the policies of clearances and cancellations, and at their bindings. None: one of them does not protect.
///
/// They are read one after the other. That is no gap: of each it is compared with the look before whether it was there
/// all the time in between.
///
/// # Errors
/// The API server did not answer, or the operator may not ask.
pub async fn look(cluster: &Cluster) -> Result<Option<Found>, CallError> {
    let (mut names, mut changed) = (String::new(), None);
    for shipped in guards() {
        for half in Half::ALL {
            let api = cluster.admission(half);
            let answer = cluster.ask(Verb::Get, half.plural(), ANSWERS_WITHIN, api.get(&shipped.name)).await;
            let object = match answer {
                Ok(object) => object,
                Err(error) if error.code() == 404 => return Ok(None),
                // A right that the operator itself lacks is its own trouble, and no word of a person is lost for it.
                Err(error) => return Err(error),
            };
            changed = changed.max(changed_at(&object));
            let Some(name) = identity(shipped, half, object) else { return Ok(None) };
            names.push_str(&name);
        }
    }
    Ok((!names.is_empty()).then(|| Found { mark: GuardMark::of(&names), changed }))
}

/// Names an object that protects: by its uid, which no other one ever has, and by its generation, which the API server
/// counts up with each change of its spec. None where it is not as it ships.
fn identity(shipped: &Shipped, half: Half, object: DynamicObject) -> Option<String> {
    let (uid, generation) = (object.metadata.uid.clone()?, object.metadata.generation?);
    let is_leaving = object.metadata.deletion_timestamp.is_some();
    let is_wrong = is_leaving || !matches!(wrong_with(shipped, half, Ok(object)), Ok(None));
    (!is_wrong).then(|| format!("{uid}/{generation}\n"))
}

/// Returns when it was made or changed last, but for its status.
fn changed_at(object: &DynamicObject) -> Option<Time> {
    let fields = object.metadata.managed_fields.iter().flatten();
    let spec = fields.filter(|fields| fields.subresource.as_deref().unwrap_or_default().is_empty());
    let times = spec.filter_map(|fields| fields.time.as_ref()).chain(&object.metadata.creation_timestamp);
    times.map(moment).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn clearance() -> &'static Shipped {
        guards().iter().find(|it| it.name.starts_with("clearance.")).unwrap()
    }

    fn binding(meta: &Value) -> DynamicObject {
        let spec = json!({"policyName": clearance().name, "validationActions": ["Deny"]});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    }

    #[test]
    fn both_policies_of_what_a_person_sets_are_looked_at() {
        let names: Vec<&str> = guards().iter().map(|it| it.name.split('.').next().unwrap()).collect();
        assert_eq!(names, ["cancellation", "clearance"]);
    }

    #[test]
    fn what_is_changed_made_anew_or_on_its_way_out_has_another_name_or_none() {
        let named = |meta: Value| identity(clearance(), Half::Binding, binding(&meta));
        assert_eq!(named(json!({"uid": "u", "generation": 3})).as_deref(), Some("u/3\n"));
        assert_eq!(named(json!({"uid": "u"})), None, "nobody counts its changes");
        assert_eq!(named(json!({"uid": "u", "generation": 1, "deletionTimestamp": "2027-01-01T00:00:00Z"})), None);
        let mut changed = binding(&json!({"uid": "u", "generation": 4}));
        changed.data["spec"]["validationActions"] = json!(["Audit"]);
        assert_eq!(identity(clearance(), Half::Binding, changed), None);
    }

    #[test]
    fn a_change_is_as_old_as_the_newest_of_its_times_but_that_of_the_status() {
        let second = |second: u32| format!("2027-01-01T00:00:{second:02}Z");
        let fields =
            |at: u32, subresource: &str| json!({"manager": "m", "time": second(at), "subresource": subresource});
        let object = binding(&json!({
            "creationTimestamp": second(1), "managedFields": [fields(5, ""), fields(3, ""), fields(9, "status")],
        }));
        assert_eq!(changed_at(&object).map(|at| at.to_rfc3339()), Some("2027-01-01T00:00:05+00:00".to_owned()));
        let bare = binding(&json!({"creationTimestamp": second(1)}));
        assert_eq!(changed_at(&bare).map(|at| at.to_rfc3339()), Some("2027-01-01T00:00:01+00:00".to_owned()));
    }
}
