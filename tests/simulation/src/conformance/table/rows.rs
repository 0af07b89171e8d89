//! The rows of the table, except those about schedules.

use serde_json::{Value, json};

use super::Written;
use super::calls::{
    asks, begins, begun, completed, deleted, ended, failed, held, held_in, lease, make, merged, operated, running,
    skipped, then, tried, waits, written,
};
use crate::conformance::Call;
use crate::conformance::Place::{ConfigMaps, Events, Executions, Leases, Namespaces, Pods, Runs, Unknown};
use crate::conformance::generate::valid;

/// The code, the reason, the sentence and the requests of each row.
pub(super) const ROWS: &[Written] = &[
    // Reading and creating.
    (404, "NotFound", "what was never made is not found", |n| vec![Call::get(Executions, n)]),
    (404, "", "a kind that is not installed has no page", |n| vec![Call::get(Unknown, n)]),
    (201, "", "an execution is created", |n| vec![make(Executions, n)]),
    (201, "", "a pending run is created", |n| vec![make(Runs, n)]),
    (201, "", "an event is created", |n| vec![make(Events, n)]),
    (409, "AlreadyExists", "a name is taken once", |n| vec![make(Runs, n), make(Runs, n)]),
    (409, "AlreadyExists", "an event is told once", |n| vec![make(Events, n), make(Events, n)]),
    (409, "AlreadyExists", "a Lease is made once", |n| vec![make(Leases, n), make(Leases, n)]),
    (201, "", "a name is free again after its object is gone", |n| {
        vec![make(Runs, n), Call::delete(Runs, n, Value::Null), make(Runs, n)]
    }),
    (422, "Invalid", "a name must be a DNS subdomain", |n| vec![make(Runs, &format!("{n}_A"))]),
    (422, "Invalid", "a label's value must be legal", |n| {
        let mut body = valid(Runs);
        body["metadata"]["labels"] = json!({"team": "a/b"});
        vec![Call::create(Runs, n, body)]
    }),
    (400, "BadRequest", "another namespace than the path's is refused", |n| {
        let mut body = valid(Runs);
        body["metadata"]["namespace"] = json!("default");
        vec![Call::create(Runs, n, body)]
    }),
    (500, "", "a new object has no version yet", |n| {
        let mut body = valid(ConfigMaps);
        body["metadata"]["resourceVersion"] = json!("1");
        vec![Call::create(ConfigMaps, n, body)]
    }),
    // The schema.
    (201, "", "an unknown field is dropped", |n| asks(n, "unknown", json!(1))),
    (422, "Invalid", "a required field is required", |n| asks(n, "workflowRef", json!({"workflowId": "x"}))),
    (422, "Invalid", "a field has its type", |n| asks(n, "confidence", json!("high"))),
    (422, "Invalid", "a number has a limit", |n| asks(n, "confidence", json!(1.5))),
    (422, "Invalid", "a text has a limit", |n| asks(n, "recoveryOf", json!("x".repeat(254)))),
    (422, "Invalid", "a time must match its pattern", |n| asks(n, "startBefore", json!("2026-01-02"))),
    (422, "Invalid", "a time must lie in its years", |n| asks(n, "startBefore", json!("1960-01-02T03:04:05Z"))),
    (201, "", "a time may have a fraction and an offset", |n| {
        asks(n, "startBefore", json!("2026-01-02T03:04:05.5+01:00"))
    }),
    (422, "Invalid", "a whole number must fit its format", |n| {
        asks(n, "ttlSecondsAfterFinished", json!(3_000_000_000_i64))
    }),
    (422, "Invalid", "a whole number has no fraction", |n| asks(n, "ttlSecondsAfterFinished", json!(0.5))),
    (201, "", "a duration may have several units", |n| asks(n, "executionConfig", json!({"timeout": "1h30m"}))),
    (422, "Invalid", "a duration has a limit", |n| asks(n, "executionConfig", json!({"timeout": "25h"}))),
    (422, "Invalid", "a duration must be one", |n| asks(n, "executionConfig", json!({"timeout": "soon"}))),
    (422, "Invalid", "a parameter has its form", |n| asks(n, "parameters", json!({"lower": "x"}))),
    (201, "", "parameters are passed", |n| asks(n, "parameters", json!({"DISK": "85", "A_B": ""}))),
    (422, "Invalid", "parameters have a limit together", |n| {
        let all = ('A'..='I').map(|key| (key.to_string(), json!("x".repeat(8192))));
        asks(n, "parameters", Value::Object(all.collect()))
    }),
    (422, "Invalid", "a reserved parameter is refused", |n| asks(n, "parameters", json!({"TARGET_RESOURCE": "x"}))),
    (422, "Invalid", "a target has two or three parts", |n| asks(n, "targetResource", json!("a/b/c/d"))),
    (422, "Invalid", "a target's namespace is a DNS label", |n| asks(n, "targetResource", json!("a.b/pod/c"))),
    (422, "Invalid", "a target's name is short enough", |n| {
        asks(n, "targetResource", json!(format!("pod/{}", "x".repeat(254))))
    }),
    (201, "", "a retry may be true", |n| asks(n, "retry", json!(true))),
    (201, "", "a retry may be a number", |n| asks(n, "retry", json!(5))),
    (201, "", "a retry may be an object", |n| asks(n, "retry", json!({"maxAttempts": 2, "maxDelay": "2m"}))),
    (201, "", "an unknown field of a retry stays, and a null of a known one goes", |n| {
        asks(n, "retry", json!({"maxAttempts": null, "unknown": {"a": null}}))
    }),
    (422, "Invalid", "a number of attempts has a limit", |n| asks(n, "retry", json!(21))),
    (422, "Invalid", "a number of attempts is whole", |n| asks(n, "retry", json!(2.5))),
    (422, "Invalid", "a field of a retry has its type", |n| asks(n, "retry", json!({"jitter": "yes"}))),
    (422, "Invalid", "a field of a retry has its range", |n| asks(n, "retry", json!({"backoffMultiplier": 0.5}))),
    (422, "Invalid", "a retry is immutable", |n| {
        then(asks(n, "retry", json!(3)), [Call::merge(Executions, n, json!({"spec": {"retry": 4}}))])
    }),
    (422, "Invalid", "nobody is born cancelled", |n| {
        asks(n, "cancellation", json!({"reason": "r", "requestedBy": "me"}))
    }),
    (200, "", "somebody may be cancelled later", |n| {
        merged(n, json!({"spec": {"cancellation": {"reason": "r", "requestedBy": "me"}}}))
    }),
    (422, "Invalid", "a cancellation stays", |n| {
        let calls = merged(n, json!({"spec": {"cancellation": {"reason": "r", "requestedBy": "me"}}}));
        then(calls, [Call::merge(Executions, n, json!({"spec": {"cancellation": null}}))])
    }),
    (422, "Invalid", "a spec is immutable", |n| merged(n, json!({"spec": {"targetResource": "node/other"}}))),
    // The status.
    (201, "", "a status is dropped from a new object", |n| {
        let mut body = valid(Executions);
        body["status"] = running();
        vec![Call::create(Executions, n, body)]
    }),
    (200, "", "a status is dropped from a write to the object", |n| merged(n, json!({"status": running()}))),
    (200, "", "a spec is dropped from a write to the status", |n| {
        let patch = json!({"spec": {"targetResource": "node/other"}, "status": {"phase": "Pending"}});
        vec![make(Executions, n), Call::merge(Executions, &format!("{n}/status"), patch)]
    }),
    (200, "", "an execution runs", |n| written(n, &[json!({"phase": "Pending"}), running()])),
    (200, "", "an execution completes", |n| written(n, &[running(), completed()])),
    (200, "", "an execution fails without having run", |n| written(n, &[failed()])),
    (200, "", "an execution is skipped", |n| written(n, &[skipped()])),
    (422, "Invalid", "nothing completes that never ran", |n| written(n, &[completed()])),
    (422, "Invalid", "a phase does not go back", |n| written(n, &[running(), json!({"phase": "Pending"})])),
    (422, "Invalid", "an end is final", |n| written(n, &[failed(), running()])),
    (200, "", "an attempt waits after one that failed", |n| tried(n, &[&[begun()], &[ended(), waits()]], "run")),
    (200, "", "an attempt that waited names another run", |n| {
        tried(n, &[&[begun()], &[ended(), waits()], &[ended(), begins("next")]], "next")
    }),
    (422, "Invalid", "an attempt that runs names no other run", |n| tried(n, &[&[begun()], &[begun()]], "next")),
    (422, "Invalid", "an attempt that has ended is frozen", |n| {
        let mut other = ended();
        other["message"] = json!("other");
        tried(n, &[&[begun()], &[ended(), waits()], &[other, waits()]], "run")
    }),
    (422, "Invalid", "a wait is written once", |n| {
        let mut longer = waits();
        longer["notBefore"] = json!("2026-01-01T00:02:01Z");
        tried(n, &[&[begun()], &[ended(), waits()], &[ended(), longer]], "run")
    }),
    (422, "Invalid", "a run is written once", |n| {
        let (one, other) = (begins("next"), begins("other"));
        tried(n, &[&[begun()], &[ended(), waits()], &[ended(), one], &[ended(), other]], "next")
    }),
    (422, "Invalid", "no attempt is taken back", |n| tried(n, &[&[begun()], &[ended(), waits()], &[ended()]], "run")),
    (422, "Invalid", "attempts are not taken back", |n| {
        let status = format!("{n}/status");
        then(tried(n, &[&[begun()]], "run"), [Call::merge(Executions, &status, json!({"status": {"attempts": null}}))])
    }),
    (200, "", "attempts in another order have not changed", |n| {
        tried(n, &[&[begun()], &[ended(), waits()], &[waits(), ended()]], "run")
    }),
    (422, "Invalid", "attempts have no gap", |n| {
        let mut third = waits();
        third["attempt"] = json!(3);
        tried(n, &[&[begun()], &[ended(), third]], "run")
    }),
    (422, "Invalid", "only the last attempt goes on", |n| tried(n, &[&[begun()], &[begun(), waits()]], "run")),
    (422, "Invalid", "an attempt that runs has a start", |n| {
        tried(n, &[&[json!({"attempt": 1, "pipelineRun": "run"})]], "run")
    }),
    (422, "Invalid", "an attempt that ended says whether it ran", |n| {
        let mut silent = ended();
        silent["started"] = json!(null);
        tried(n, &[&[silent]], "run")
    }),
    (422, "Invalid", "an end has a time", |n| written(n, &[running(), json!({"phase": "Completed"})])),
    (422, "Invalid", "a start time stays", |n| written(n, &[running(), json!({"startTime": "2026-01-01T00:00:01Z"})])),
    (200, "", "the same moment may be written otherwise", |n| {
        written(n, &[running(), json!({"startTime": "2026-01-01T00:00:00.000Z"})])
    }),
    (422, "Invalid", "a status stays", |n| {
        let calls = written(n, &[running()]);
        then(calls, [Call::merge(Executions, &format!("{n}/status"), json!({"status": null}))])
    }),
    (422, "Invalid", "a condition is there once", |n| {
        let condition = json!({"type": "A", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        written(n, &[json!({"conditions": [condition, condition]})])
    }),
    (404, "NotFound", "a ConfigMap has no status", |n| {
        vec![make(ConfigMaps, n), Call::merge(ConfigMaps, &format!("{n}/status"), json!({}))]
    }),
    // Versions and uids.
    (200, "", "the newest version lets a write through", |n| {
        merged(
            n,
            json!({"metadata": {"resourceVersion": format!("$version:WorkflowExecution/{n}"), "labels": {"a": "b"}}}),
        )
    }),
    (409, "Conflict", "an older version does not", |n| {
        let old =
            json!({"metadata": {"resourceVersion": format!("$before:WorkflowExecution/{n}")}, "status": running()});
        then(written(n, &[json!({"phase": "Pending"})]), [Call::merge(Executions, &format!("{n}/status"), old)])
    }),
    (409, "Conflict", "an older version forbids also what would change nothing", |n| {
        let old = json!({"metadata": {"resourceVersion": format!("$before:WorkflowExecution/{n}")}});
        then(merged(n, json!({"metadata": {"labels": {"a": "b"}}})), [Call::merge(Executions, n, old)])
    }),
    (422, "Invalid", "a merge patch may not change a uid", |n| merged(n, json!({"metadata": {"uid": "another"}}))),
    (200, "", "a status write may name any uid", |n| {
        let patch = json!({"metadata": {"uid": "another"}, "status": running()});
        vec![make(Executions, n), Call::merge(Executions, &format!("{n}/status"), patch)]
    }),
    (200, "", "a write that changes nothing is no write", |n| merged(n, json!({"spec": valid(Executions)["spec"]}))),
    (404, "NotFound", "nothing is merged into what is not there", |n| vec![Call::merge(Runs, n, json!({}))]),
    (422, "Invalid", "an update of an execution names a version", |n| {
        vec![make(Executions, n), Call::put(Executions, n, valid(Executions))]
    }),
    (200, "", "an update of a ConfigMap need not", |n| {
        vec![make(ConfigMaps, n), Call::put(ConfigMaps, n, valid(ConfigMaps))]
    }),
    (404, "NotFound", "an update of a ConfigMap does not make it", |n| {
        vec![Call::put(ConfigMaps, n, valid(ConfigMaps))]
    }),
    // Leases.
    (201, "", "an update of a Lease makes it", |n| vec![lease(n, None)]),
    (200, "", "a Lease is renewed", |n| vec![make(Leases, n), lease(n, Some("$version"))]),
    (409, "Conflict", "a Lease is taken by one", |n| {
        let other = Call::merge(Leases, n, json!({"spec": {"holderIdentity": "b"}}));
        vec![make(Leases, n), other, lease(n, Some("$before"))]
    }),
    (422, "Invalid", "an update of a Lease names a version", |n| vec![make(Leases, n), lease(n, None)]),
    // JSON patches.
    (200, "", "a pending run is released", |n| {
        operated(
            n,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": format!("$uid:PipelineRun/{n}")},
                {"op": "test", "path": "/spec/status", "value": "PipelineRunPending"},
                {"op": "remove", "path": "/spec/status"},
            ]),
        )
    }),
    (422, "Invalid", "a run is released once", |n| {
        let release = json!([{"op": "test", "path": "/spec/status", "value": "PipelineRunPending"},
            {"op": "remove", "path": "/spec/status"}]);
        then(operated(n, release.clone()), [Call::operations(Runs, n, release)])
    }),
    (422, "Invalid", "a test of another uid fails", |n| {
        operated(n, json!([{"op": "test", "path": "/metadata/uid", "value": "another"}]))
    }),
    (422, "Invalid", "what is not there cannot be removed", |n| {
        operated(n, json!([{"op": "remove", "path": "/spec/nothing"}]))
    }),
    // Deleting.
    (200, "", "an object is deleted", |n| vec![make(Runs, n), Call::delete(Runs, n, Value::Null)]),
    (404, "NotFound", "an object is deleted once", |n| {
        vec![make(Runs, n), Call::delete(Runs, n, Value::Null), Call::delete(Runs, n, Value::Null)]
    }),
    (200, "", "what is as it was seen may be deleted", |n| {
        deleted(
            n,
            &json!({"uid": format!("$uid:PipelineRun/{n}"), "resourceVersion": format!("$version:PipelineRun/{n}")}),
        )
    }),
    (409, "Conflict", "what was changed may not", |n| {
        deleted(n, &json!({"resourceVersion": format!("$before:PipelineRun/{n}")}))
    }),
    (409, "Conflict", "what has another uid may not", |n| deleted(n, &json!({"uid": "another"}))),
    (
        200,
        "",
        "a deletion that only marks an object stores the defaults of its status, so the next write finds them",
        |n| then(held_in(Executions, n), [Call::merge(Executions, n, json!({}))]),
    ),
    (200, "", "a finalizer holds an object", |n| then(held(n), [Call::get(Runs, n)])),
    (200, "", "the last finalizer lets it go", |n| {
        then(held(n), [Call::merge(Runs, n, json!({"metadata": {"finalizers": null}}))])
    }),
    (404, "NotFound", "and then it is gone", |n| {
        then(held(n), [Call::merge(Runs, n, json!({"metadata": {"finalizers": null}})), Call::get(Runs, n)])
    }),
    (422, "Invalid", "what is being deleted gets no new finalizer", |n| {
        then(held(n), [Call::merge(Runs, n, json!({"metadata": {"finalizers": ["kubernaut.ai/hold", "a.b/c"]}}))])
    }),
    (409, "AlreadyExists", "what is being deleted has its name still", |n| then(held(n), [make(Runs, n)])),
    (200, "", "a pod on no node is gone at once", |n| vec![make(Pods, n), Call::delete(Pods, n, Value::Null)]),
    (200, "", "a pod on a node has its time", |n| {
        let mut body = valid(Pods);
        body["spec"]["nodeName"] = json!("node-1");
        vec![Call::create(Pods, n, body), Call::delete(Pods, n, Value::Null), Call::get(Pods, n)]
    }),
    (404, "NotFound", "a pod may be told to hurry", |n| {
        let mut body = valid(Pods);
        body["spec"]["nodeName"] = json!("node-1");
        let hurry = Call::delete(Pods, n, json!({"gracePeriodSeconds": 0}));
        vec![Call::create(Pods, n, body), Call::delete(Pods, n, Value::Null), hurry, Call::get(Pods, n)]
    }),
    // Namespaces.
    (200, "", "a namespace that is deleted stays until it is empty", |n| {
        vec![make(Namespaces, n), Call::delete(Namespaces, n, Value::Null), Call::get(Namespaces, n)]
    }),
    (200, "", "a namespace is paused by an annotation", |n| {
        let pause = json!({"metadata": {"annotations": {"kubernaut.ai/paused": "maintenance"}}});
        vec![make(Namespaces, n), Call::merge(Namespaces, n, pause)]
    }),
    // Lists.
    (200, "", "a list goes on where its page ended", |n| {
        let made = ["a", "b", "c"].map(|end| make(ConfigMaps, &format!("{n}-{end}")));
        let pages = ["limit=2", "limit=2&continue=$continue"].map(|query| Call::list(ConfigMaps, query));
        made.into_iter().chain(pages).collect()
    }),
    (200, "", "a page shows what was there when its list began", |n| {
        let made = ["a", "b", "c"].map(|end| make(ConfigMaps, &format!("{n}-{end}")));
        let first = Call::list(ConfigMaps, "limit=1");
        let change = Call::delete(ConfigMaps, &format!("{n}-c"), Value::Null);
        let rest = Call::list(ConfigMaps, "limit=500&continue=$continue");
        made.into_iter().chain([first, change, rest]).collect()
    }),
    (200, "", "a selector selects", |_| vec![Call::list(Runs, "labelSelector=team%3Da")]),
    (200, "", "a name is a field", |n| {
        vec![make(Runs, n), Call::list(Runs, &format!("fieldSelector=metadata.name%3D{n}"))]
    }),
];
