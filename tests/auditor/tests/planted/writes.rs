//! Invariant 7: the operator's requests in the audit log.

use serde_json::{Value, json};
use wfe_auditor::Request;

use crate::story::{NAMESPACE, NODE, OPERATOR, PERSON, Plant, Story, release_patch, run, uid};

/// Returns a story without a violation, whose requests a test can spoil.
fn told() -> Story {
    let mut story = Story::default();
    story.live("one", NODE, 1);
    story
}

/// Spoils the operator's only request with this verb on this resource, and returns the findings.
fn spoilt(story: &Story, verb: &str, resource: &str, how: impl FnOnce(&mut Request)) -> Vec<String> {
    let mut story = story.clone();
    let request = story
        .requests
        .iter_mut()
        .find(|request| request.user == OPERATOR && request.verb == verb && request.resource == resource)
        .unwrap();
    how(request);
    story.found()
}

#[test]
fn a_status_without_its_preconditions() {
    let planted: [(&str, Plant); 4] = [
        ("no uid", |sent| sent["metadata"] = json!({"resourceVersion": "1"})),
        ("an empty uid", |sent| sent["metadata"]["uid"] = json!("")),
        ("no version", |sent| sent["metadata"] = json!({"uid": "uid-one"})),
        ("a spec", |sent| sent["spec"] = json!({})),
    ];
    for (what, plant) in planted {
        let found = spoilt(&told(), "patch", "workflowexecutions", |request| plant(&mut request.request));
        assert_eq!(found, ["7 status"], "{what}");
    }
}

#[test]
fn a_status_by_json_patch() {
    let tests = |also: Value| {
        json!([{"op": "test", "path": "/metadata/uid", "value": "uid-one"},
            {"op": "add", "path": "/status", "value": {}}, also])
    };
    for (also, expected) in [
        (json!({"op": "test", "path": "/metadata/resourceVersion", "value": "1"}), vec![]),
        (json!({"op": "test", "path": "/status", "value": {}}), vec!["7 status"]),
    ] {
        let found = spoilt(&told(), "patch", "workflowexecutions", |request| request.request = tests(also));
        assert_eq!(found, expected);
    }
}

#[test]
fn a_create_that_is_not_as_it_must_be() {
    let planted: [(&str, Plant); 5] = [
        ("released", |sent| sent["spec"] = json!({})),
        ("cancelled", |sent| sent["spec"]["status"] = json!("Cancelled")),
        ("nobody's", |sent| sent["metadata"]["annotations"] = json!({})),
        ("unnamed", |sent| sent["metadata"]["name"] = Value::Null),
        ("misnamed", |sent| sent["metadata"]["name"] = json!("wfe-ac45b7d6911e97a5-01")),
    ];
    for (what, plant) in planted {
        let found = spoilt(&told(), "create", "pipelineruns", |request| plant(&mut request.request));
        assert_eq!(found, ["7 create"], "{what}");
        // A precondition must not be missing, even in a request that the API server refuses.
        let mut refused = told();
        let mut object = refused.run_object("one", 2);
        plant(&mut object);
        refused.ask(OPERATOR, "create", "", &object.clone(), object, 409);
        assert_eq!(refused.found(), ["7 create"], "{what}, refused");
    }
}

#[test]
fn a_release_that_tests_too_little() {
    let step = |index: usize| {
        let mut patch = release_patch(&run("one", 1));
        patch.as_array_mut().unwrap().remove(index);
        patch
    };
    let pending = |value: Value| {
        let mut patch = release_patch(&run("one", 1));
        patch[1]["value"] = value;
        patch
    };
    let replaced = json!([{"op": "test", "path": "/metadata/uid", "value": run("one", 1)},
        {"op": "replace", "path": "/spec/status", "value": ""}]);
    for (patch, expected) in [
        (step(0), "7 patch"),
        (step(1), "7 release"),
        (pending(json!("")), "7 release"),
        (replaced, "7 release"),
        (json!({"metadata": {"uid": run("one", 1)}, "spec": {"status": null}}), "7 release"),
        (json!({"spec": {"status": "Cancelled"}}), "7 patch"),
        (json!({"metadata": {"uid": run("one", 1), "finalizers": []}}), "7 patch"),
        (json!({"metadata": {"uid": run("one", 1)}, "spec": {"timeouts": {}}}), "7 patch"),
    ] {
        let found = spoilt(&told(), "patch", "pipelineruns", |request| request.request = patch.clone());
        assert_eq!(found, [expected], "{patch}");
    }
}

#[test]
fn a_cancel_in_either_form() {
    let uid = run("one", 1);
    for patch in [
        json!({"metadata": {"uid": uid, "annotations": {"kubernaut.ai/cancel-reason": "x"}}, "spec": {"status": "Cancelled"}}),
        json!([{"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/spec/status", "value": "Cancelled"}]),
    ] {
        let found = spoilt(&told(), "patch", "pipelineruns", |request| request.request = patch.clone());
        assert_eq!(found, Vec::<String>::new(), "{patch}");
    }
}

#[test]
fn a_patch_of_something_else_in_a_run() {
    for path in ["/spec/timeouts/pipeline", "/metadata/labels/x", "/metadata/finalizers", "/status"] {
        let found = spoilt(&told(), "patch", "pipelineruns", |request| {
            request.request.as_array_mut().unwrap().push(json!({"op": "add", "path": path, "value": "x"}));
        });
        assert_eq!(found, ["7 patch"], "{path}");
    }
}

/// Adds a run with a name of the chain and our labels that belongs to no execution.
fn foreign_run(story: &mut Story) {
    let mut object = story.run_object("one", 2);
    object["metadata"]["annotations"] = json!({});
    story.add(PERSON, object, "foreign");
}

#[test]
fn a_foreign_run_that_is_changed_or_deleted() {
    let mut story = told();
    foreign_run(&mut story);
    assert_eq!(story.found(), Vec::<String>::new());
    let mut changed = story.clone();
    changed.change(OPERATOR, "foreign", "", release_patch("foreign"), |run| run["spec"] = json!({}));
    assert_eq!(changed.found(), ["7 foreign"]);
    story.remove(OPERATOR, "foreign", &json!({"uid": "foreign", "resourceVersion": "1"}));
    assert_eq!(story.found(), ["7 foreign"]);
    // A person may delete this run.
    story.requests.last_mut().unwrap().user = PERSON.to_owned();
    assert_eq!(story.found(), Vec::<String>::new());
}

#[test]
fn a_foreign_run_in_another_namespace_is_known_by_the_answer() {
    let mut story = told();
    let mut object = story.run_object("one", 2);
    object["metadata"]["annotations"] = json!({});
    object["metadata"]["uid"] = json!("elsewhere");
    story.ask(OPERATOR, "patch", "", &object, release_patch("elsewhere"), 200);
    assert_eq!(story.found(), ["7 foreign"]);
    story.requests.last_mut().unwrap().code = 422;
    story.requests.last_mut().unwrap().response = json!({"kind": "Status"});
    assert_eq!(story.found(), Vec::<String>::new(), "nobody knows what it would have met");
}

/// Returns a story with a pending run whose owner is gone.
fn leftover() -> Story {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.delete_wfe("one");
    story
}

#[test]
fn a_deletion_without_its_preconditions() {
    let mut right = leftover();
    right.delete_run("one", 1);
    assert_eq!(right.found_settled(), Vec::<String>::new());
    for preconditions in [Value::Null, json!({}), json!({"resourceVersion": "2"}), json!({"uid": run("one", 1)})] {
        let mut story = leftover();
        story.remove(OPERATOR, &run("one", 1), &preconditions);
        assert_eq!(story.found_settled(), ["7 delete"], "{preconditions}");
    }
}

#[test]
fn a_finished_run_is_deleted_by_uid_alone_once_its_owner_has_ended() {
    let uid = json!({"uid": run("one", 1)});
    let mut right = told();
    right.remove(OPERATOR, &run("one", 1), &uid);
    assert_eq!(right.found_settled(), Vec::<String>::new());

    let mut open = Story::default();
    open.wfe("one", NODE);
    open.start("one", 1);
    let mut unfinished = open.clone();
    unfinished.remove(OPERATOR, &run("one", 1), &uid);
    assert_eq!(unfinished.found(), ["7 deleted-early"]);

    open.run_ends("one", 1, "True");
    open.remove(OPERATOR, &run("one", 1), &uid);
    open.complete("one");
    assert_eq!(open.found_settled(), ["7 deleted-early"]);

    let mut draining = Story::default();
    draining.wfe("one", NODE);
    draining.start("one", 1);
    draining.work("one", 1);
    draining.run_ends("one", 1, "True");
    draining.complete("one");
    draining.remove(OPERATOR, &run("one", 1), &uid);
    draining.pod_ends("one", 1);
    draining.task_ends("one", 1);
    assert_eq!(draining.found_settled(), ["7 deleted-early"]);
}

#[test]
fn a_pending_run_that_is_deleted_under_its_owner() {
    let mut story = Story::default();
    story.wfe("one", NODE);
    story.create("one", 1);
    story.commit("one", 1);
    story.delete_run("one", 1);
    assert_eq!(story.found(), ["7 deleted-committed"]);
}

#[test]
fn a_run_whose_release_is_refused_may_be_deleted_under_its_owner() {
    let told = |refused_by: &str, code: i64| {
        let mut story = Story::default();
        story.wfe("one", NODE);
        story.create("one", 1);
        story.commit("one", 1);
        let object = story.object(&run("one", 1)).clone();
        story.ask(refused_by, "patch", "", &object, release_patch(&run("one", 1)), code);
        story.delete_run("one", 1);
        story.fail("one", "Unknown", false);
        story.found_settled()
    };
    for code in [403, 422, 500] {
        assert_eq!(told(OPERATOR, code), Vec::<String>::new(), "{code}");
        assert_eq!(told(PERSON, code), ["7 deleted-committed"], "{code}");
    }
}

#[test]
fn an_execution_that_is_over_is_removed_but_not_the_newest_nor_one_that_blocks() {
    let removed = |mut story: Story, preconditions: Value| {
        story.remove(OPERATOR, &uid("one"), &preconditions);
        story.found()
    };
    let both = json!({"uid": uid("one"), "resourceVersion": "1"});
    let two = || {
        let mut story = Story::default();
        story.live("one", NODE, 1);
        story.live_of("two", NODE, "other", 2);
        story
    };
    assert_eq!(removed(two(), both.clone()), Vec::<String>::new());
    for preconditions in [json!({"uid": uid("one")}), json!({"resourceVersion": "1"}), Value::Null] {
        assert_eq!(removed(two(), preconditions), ["7 delete"]);
    }
    let mut newest = Story::default();
    newest.live("one", NODE, 1);
    assert_eq!(removed(newest, both.clone()), ["7 removed-early"]);
    let mut blocks = Story::default();
    blocks.breaks("one", NODE, "w", 1);
    blocks.comes_too_late("two", NODE);
    assert_eq!(removed(blocks, both.clone()), ["7 removed-early"]);
    let mut open = Story::default();
    open.wfe("one", NODE);
    assert_eq!(removed(open, both), ["7 removed-early"]);
}

#[test]
fn a_removal_is_judged_by_what_the_operator_could_see() {
    let removed = |is_seen: bool| {
        let mut story = Story::default();
        story.live("one", NODE, 1);
        story.live_of("two", NODE, "other", 2);
        story.delete_wfe("two");
        if is_seen {
            // The removal is then based on a version after the deletion of the other execution.
            story.write("one", &json!({"conditions": [{"type": "TargetLocked", "status": "False"}]}));
        }
        story.remove(OPERATOR, &uid("one"), &json!({"uid": uid("one"), "resourceVersion": "1"}));
        story.found()
    };
    assert_eq!(removed(false), Vec::<String>::new(), "the deletion may still be on its way");
    assert_eq!(removed(true), ["7 removed-early"]);
}

#[test]
fn a_write_to_what_is_not_its_business() {
    for (group, resource, subresource, verb) in [
        ("kubernaut.ai", "workflowexecutions", "", "patch"),
        ("kubernaut.ai", "workflowexecutions", "", "deletecollection"),
        ("kubernaut.ai", "workflowschedules", "", "patch"),
        ("tekton.dev", "pipelineruns", "", "update"),
        ("tekton.dev", "pipelineruns", "status", "patch"),
        ("tekton.dev", "pipelineruns", "", "deletecollection"),
        ("tekton.dev", "taskruns", "", "delete"),
        ("", "pods", "", "delete"),
        ("events.k8s.io", "events", "", "delete"),
        ("", "configmaps", "", "update"),
    ] {
        let mut story = told();
        story.requests.push(Request {
            verb: verb.to_owned(),
            user: OPERATOR.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: NAMESPACE.to_owned(),
            name: "one".to_owned(),
            code: 403,
            ..Request::default()
        });
        assert_eq!(story.found(), ["7 foreign"], "{verb} {resource}/{subresource}");
        story.requests.last_mut().unwrap().user = PERSON.to_owned();
        assert_eq!(story.found(), Vec::<String>::new(), "{verb} {resource}/{subresource} by a person");
    }
}

#[test]
fn a_lease_a_review_and_a_read_are_its_business() {
    for (group, resource, verb) in [
        ("coordination.k8s.io", "leases", "update"),
        ("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
        ("", "configmaps", "watch"),
    ] {
        let mut story = told();
        story.requests.push(Request {
            verb: verb.to_owned(),
            user: OPERATOR.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            code: 200,
            ..Request::default()
        });
        assert_eq!(story.found(), Vec::<String>::new(), "{verb} {resource}");
    }
}
