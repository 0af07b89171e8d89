use super::*;
use wfe_core::name::Uid;

fn schedule() -> ScheduleId {
    ScheduleId { namespace: "ops".into(), name: "nightly".into(), uid: Uid::new("u-1") }
}

fn at(second: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

#[test]
fn a_child_has_the_template_and_says_whose_it_is() {
    let template = json!({
        "metadata": {"labels": {"team": "payments"}, "annotations": {"why": "disk"}},
        "spec": {"targetResource": "node/a", "workflowRef": {"workflowId": "w"}, "parameters": {"A": "1"}},
    });
    let child = render(&schedule(), "nightly-1800000000", &template, at(0), at(600));
    assert_eq!(
        child["metadata"],
        json!({
            "name": "nightly-1800000000",
            "namespace": "ops",
            "labels": {"team": "payments", "kubernaut.ai/schedule": "nightly"},
            "annotations": {"why": "disk", "kubernaut.ai/scheduled-for": "2027-01-15T08:00:00Z"},
        })
    );
    assert_eq!(
        child["spec"],
        json!({
            "targetResource": "node/a", "workflowRef": {"workflowId": "w"}, "parameters": {"A": "1"},
            "startBefore": "2027-01-15T08:10:00Z",
            "remediationRequestRef": {
                "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": "nightly", "uid": "u-1",
            },
        })
    );
    let found: DynamicObject = serde_json::from_value(child).unwrap();
    assert!(is_child_of(&found, &schedule()));
    assert!(!is_child_of(&found, &ScheduleId { uid: Uid::new("u-2"), ..schedule() }), "of one that was made again");
}

#[test]
fn a_template_of_any_shape_makes_some_object() {
    for template in [json!(null), json!([]), json!({"metadata": 1, "spec": "x"}), json!({"metadata": {"labels": []}})] {
        let child = render(&schedule(), "nightly-1", &template, at(0), at(1));
        assert_eq!(child["spec"]["remediationRequestRef"]["uid"], "u-1", "{template}");
    }
}

#[test]
fn a_namespace_on_its_way_out_is_no_refusal() {
    let refused = |details: Value| {
        let status = serde_json::from_value(json!({"code": 403, "message": "m", "details": details})).unwrap();
        CallError::Refused(Box::new(status))
    };
    let causes = json!({"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "f"}]});
    assert!(is_going_away(&refused(causes)));
    assert!(!is_going_away(&refused(json!({}))));
}
