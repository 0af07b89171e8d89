//! Checks on the metadata of an object.

use kube::api::{DynamicObject, ObjectMeta};
use wfe_api::labels;
use wfe_core::name::{ExecutionId, Uid};

/// Returns whether an object has this uid.
pub(super) fn is(meta: &ObjectMeta, uid: &Uid) -> bool {
    meta.uid.as_deref().is_some_and(|there| uid == there)
}

/// Returns whether this execution created a run, by the run's annotation.
pub(super) fn is_owned_by(run: &DynamicObject, execution: &ExecutionId) -> bool {
    let uid = run.metadata.annotations.as_ref().and_then(|all| all.get(labels::ANNOTATION_UID));
    uid.is_some_and(|uid| execution.uid == **uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_uid_in_its_annotation_says_which_execution_made_a_run() {
        let run = |annotations| serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
        let execution = |uid: &str| ExecutionId { namespace: "ops".into(), name: "a".into(), uid: Uid::new(uid) };
        let owned = run(json!({labels::ANNOTATION_UID: "v"}));
        assert!(is_owned_by(&owned, &execution("v")) && !is_owned_by(&owned, &execution("w")));
        assert!(!is_owned_by(&run(json!({})), &execution("v")));
    }
}
