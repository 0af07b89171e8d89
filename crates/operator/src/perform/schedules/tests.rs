use std::sync::atomic::Ordering;

use wfe_core::name::Uid;

use super::super::played::{Answer, failures, performer};
use super::*;

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
    let child = render(&schedule(), "nightly-1800000000", (&template, &Value::Null), at(0), at(600));
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
        let child = render(&schedule(), "nightly-1", (&template, &Value::Null), at(0), at(1));
        assert_eq!(child["spec"]["remediationRequestRef"]["uid"], "u-1", "{template}");
    }
}

#[test]
fn a_child_takes_what_a_triage_has_adjusted_of_what_its_template_has() {
    let template = json!({"spec": {"parameters": {"LEVEL": "1", "A": "a"}, "executionConfig": {"timeout": "5m"}}});
    let of = |template: &Value, adjusted: Value| {
        render(&schedule(), "nightly-1", (template, &adjusted), at(0), at(1))["spec"].clone()
    };
    let spec = of(&template, json!({"timeout": "10m0s", "interval": "2m0s", "parameters": {"LEVEL": "2", "NEW": "x"}}));
    assert_eq!(spec["parameters"], json!({"LEVEL": "2", "A": "a"}), "nobody wrote NEW");
    assert_eq!((&spec["executionConfig"]["timeout"], spec.get("interval")), (&json!("10m0s"), None));
    let bare = of(&json!({"spec": {}}), json!({"timeout": "10m0s", "parameters": {"LEVEL": "2"}}));
    assert_eq!((&bare["executionConfig"], bare.get("parameters")), (&json!({"timeout": "10m0s"}), None));
    for odd in [json!(null), json!([]), json!({"timeout": 3, "parameters": "x"})] {
        assert_eq!(of(&template, odd.clone()), of(&template, json!(null)), "{odd}");
    }
}

/// Returns the creation of a child for the slot 1800000000. `not_made` is the slot of an earlier create whose answer
/// was lost.
fn creation(not_made: Option<Time>) -> ChildCreation {
    let version = Version::new("7");
    ChildCreation { schedule: schedule(), generation: 3, version, slot: at(0), start_before: at(600), not_made }
}

const SCHEDULE: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowschedules/nightly?&resourceVersion=7";
const CHILD: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowexecutions/nightly-1800000000";
const CHILDREN: &str = "/apis/kubernaut.ai/v1alpha1/namespaces/ops/workflowexecutions?";

fn stored(meta: &Value) -> Value {
    let mut metadata = json!({"namespace": "ops", "name": "nightly", "uid": "u-1", "generation": 3});
    for (key, value) in meta.as_object().unwrap() {
        metadata[key] = value.clone();
    }
    let template = json!({"spec": {"targetResource": "node/a", "parameters": {"TOKEN": "s3cr3t-value"}}});
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
        "metadata": metadata, "spec": {"interval": "1m", "template": template},
    })
}

fn child_of(uid: &str) -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
        "metadata": {"namespace": "ops", "name": "nightly-1800000000", "uid": "c-1", "resourceVersion": "9"},
        "spec": {"targetResource": "node/a", "remediationRequestRef": {"kind": "WorkflowSchedule", "uid": uid}},
    })
}

/// Creates a child while the API server gives these answers to the reads and to the create. Returns the result in one
/// word, or the label of the error, and the number of requests.
async fn made(
    creation: ChildCreation,
    schedule: impl Into<Option<Value>>,
    existing: Answer,
    create: Answer,
) -> (String, usize) {
    let schedule = schedule.into().map_or_else(|| Answer::refused(404, "NotFound"), Answer::found);
    let (performer, asked) = performer(move |uri| match uri {
        SCHEDULE => schedule.clone(),
        CHILD => existing.clone(),
        _ if uri.starts_with(CHILDREN) => create.clone(),
        _ => panic!("nobody asks for {uri}"),
    });
    let came = match performer.create_child(&creation, at(1)).await.as_deref() {
        Ok([Learned::Expect(_)]) => "expected".to_owned(),
        Ok([Learned::ChildRefused(uid, refused)]) => {
            assert_eq!((uid, refused.slot), (&Uid::new("u-1"), at(0)));
            format!("refused: {}", refused.message)
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => error.label().to_owned(),
    };
    (came, asked.load(Ordering::Relaxed))
}

fn gone() -> Answer {
    Answer::refused(404, "NotFound")
}

#[tokio::test(start_paused = true)]
async fn a_child_is_made_of_the_schedule_as_it_was_decided_on() {
    let create = || Answer::Json(201, child_of("u-1"));
    let as_decided = stored(&json!({}));
    assert_eq!(made(creation(None), as_decided, gone(), create()).await, ("expected".to_owned(), 2));
    for other in [
        json!({"uid": "u-2"}),
        json!({"generation": 4}),
        json!({"generation": null}),
        json!({"deletionTimestamp": "2027-01-15T08:00:00Z"}),
    ] {
        let found = made(creation(None), stored(&other), gone(), create()).await;
        assert_eq!(found, ("changed".to_owned(), 1), "{other}");
    }
    assert_eq!(made(creation(None), None, gone(), create()).await, ("changed".to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_the_childs_or_a_strangers() {
    let taken = || Answer::refused(409, "AlreadyExists");
    let found = made(creation(None), stored(&json!({})), Answer::found(child_of("u-1")), taken()).await;
    assert_eq!(found, ("expected".to_owned(), 3));
    let (came, _) = made(creation(None), stored(&json!({})), Answer::found(child_of("u-2")), taken()).await;
    assert!(came.starts_with("refused: another WorkflowExecution has the name nightly-1800000000"), "{came}");
    let found = made(creation(None), stored(&json!({})), gone(), taken()).await;
    assert_eq!(found.0, "changed", "it went between the two requests");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_create_whose_answer_was_lost_is_looked_for_first() {
    let never = || Answer::Never;
    let earlier = || creation(Some(at(0)));
    let found = made(earlier(), stored(&json!({})), Answer::found(child_of("u-1")), never()).await;
    assert_eq!(found, ("expected".to_owned(), 1), "it was made: another one is not");
    for existing in [gone(), Answer::found(child_of("u-2"))] {
        let create = Answer::Json(201, child_of("u-1"));
        assert_eq!(made(earlier(), stored(&json!({})), existing, create).await, ("expected".to_owned(), 3));
    }
    for (answer, label) in failures() {
        let shown = format!("{answer:?}");
        assert_eq!(made(earlier(), stored(&json!({})), answer, never()).await, (label.to_owned(), 1), "{shown}");
    }
}

/// Returns a refusal with the message and details of a real API server.
fn refusal(code: u16, message: &str, details: &Value) -> Answer {
    let reason = if code == 403 { "Forbidden" } else { "Invalid" };
    Answer::Json(
        code,
        json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message, "details": details,
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_an_outcome_and_all_else_is_tried_again() {
    let object = json!({"group": "kubernaut.ai", "kind": "workflowexecutions", "name": "nightly-1800000000"});
    let namespace = json!({"kind": "namespaces", "name": "ops"});
    let terminating = json!({"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "f"}]});
    let policy = "workflowexecutions.kubernaut.ai \"nightly-1800000000\" is forbidden: ValidatingAdmissionPolicy \
                  'p' with binding 'b' denied request: no";
    let lacking = "workflowexecutions.kubernaut.ai is forbidden: User \"system:serviceaccount:a:b\" cannot create \
                   resource \"workflowexecutions\" in API group \"kubernaut.ai\" in the namespace \"ops\"";
    let early = "workflowexecutions.kubernaut.ai \"x\" is forbidden: not yet ready to handle request";
    for (code, message, details, expected) in [
        (403, policy, &object, "refused: "),
        (403, "exceeded quota: many", &object, "refused: "),
        (400, "admission webhook denied the request", &object, "refused: "),
        (413, "limit is 3145728", &json!({}), "refused: "),
        (422, "spec.parameters.TOKEN: invalid value \"s3cr3t-value\"", &object, "refused: "),
        (404, "namespaces \"ops\" not found", &namespace, "changed"),
        (403, "unable to create new content in namespace ops", &terminating, "changed"),
        (403, lacking, &json!({"group": "kubernaut.ai", "kind": "workflowexecutions"}), "forbidden"),
        (403, early, &object, "forbidden"),
        (404, "404 page not found", &json!({}), "refused"),
        (401, "Unauthorized", &json!({}), "refused"),
        (409, "Operation cannot be fulfilled on resourcequotas", &json!({}), "conflict"),
    ] {
        let answer = refusal(code, message, details);
        let (came, asked) = made(creation(None), stored(&json!({})), gone(), answer).await;
        let is_as_expected = if expected.ends_with(": ") { came.starts_with(expected) } else { came == expected };
        assert!(is_as_expected, "{code} {message}: {came}");
        assert!(!came.contains("s3cr3t-value"), "{came}");
        assert_eq!(asked, 2, "{code} {message}");
    }
    let for_good = ["forbidden", "refused"];
    for (answer, label) in failures().into_iter().filter(|(_, label)| !for_good.contains(label)) {
        let shown = format!("{answer:?}");
        let (came, _) = made(creation(None), stored(&json!({})), gone(), answer).await;
        assert_eq!(came, label, "{shown}");
    }
    for (answer, label) in failures() {
        let shown = format!("{answer:?}");
        let (performer, _) = performer(move |_| answer.clone());
        let came = performer.create_child(&creation(None), at(1)).await.map_err(|error| error.label().to_owned());
        assert_eq!(came.unwrap_err(), label, "the schedule could not be read: {shown}");
    }
}
