//! Random plans: valid and invalid requests by people, controllers and the operator, for a few objects of each kind.

use fastrand::Rng;
use serde_json::{Value, json};

use super::spoil::spoil;
use super::status::{least_spec, spec, status};
use super::{Call, Place, Plan, schedule};

/// Draws a plan with this many requests from a seed.
#[must_use]
pub fn generated(seed: u64, requests: usize) -> Plan {
    let mut random = Rng::with_seed(seed);
    let namespace = format!("conformance-{seed}");
    let calls = (0..requests).map(|_| call(&mut random, &namespace)).collect();
    Plan { title: format!("seed {seed}"), namespace, calls }
}

/// Returns a valid object of a kind.
pub(super) fn valid(place: Place) -> Value {
    match place {
        Place::Executions => json!({"spec": least_spec()}),
        Place::Schedules => json!({"spec": schedule::least_spec()}),
        Place::Runs => json!({"spec": {"pipelineRef": {"name": "workflow"}, "status": "PipelineRunPending"}}),
        Place::Leases => json!({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "renewTime": "2026-01-01T00:00:00.000000Z"}}),
        Place::Events => json!({"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "kubernaut.ai/x",
            "reportingInstance": "pod-1", "action": "Skip", "reason": "Skipped", "type": "Normal", "note": "a note",
            "regarding": {"kind": "Pod", "apiVersion": "v1", "name": "a", "namespace": "$namespace"}}),
        Place::ConfigMaps => json!({"data": {"a": "1"}}),
        Place::Namespaces | Place::Unknown => json!({}),
        Place::Pods => json!({"spec": {"containers": [{"name": "step", "image": "registry.invalid/x"}]}}),
    }
}

/// Draws the name of an object. There are few names, so that several requests often address the same object.
fn name(random: &mut Rng, place: Place, namespace: &str) -> String {
    let name = random.choice(["a", "b", "c", "d"]).unwrap_or("a");
    if place == Place::Namespaces { format!("{namespace}-{name}") } else { name.to_owned() }
}

fn call(random: &mut Rng, namespace: &str) -> Call {
    use Place::{ConfigMaps, Events, Executions, Leases, Namespaces, Pods, Runs, Schedules};
    let places = [
        Executions, Executions, Executions, Executions, Schedules, Schedules, Runs, Runs, Runs, Leases, ConfigMaps,
        Pods, Pods, Events, Namespaces,
    ];
    let place = random.choice(places).unwrap_or(Executions);
    let name = name(random, place, namespace);
    let key = format!("{}/{name}", place.names().1);
    match random.u8(..20) {
        0..5 => create(random, place, &name, namespace),
        5 => Call::get(place, &name),
        6 => list(random, place, namespace),
        7 | 8 => delete(random, place, &name, &key),
        9 | 10 => put(random, place, &name, &key),
        11 => Call::operations(place, &name, operations(random, place, &key)),
        12..14 => Call::merge(place, &name, merge(random, place, &key)),
        _ if matches!(place, Executions | Schedules | Runs | Pods) => written(random, place, &name, &key),
        14 => Call::get(place, &name),
        _ => Call::merge(place, &name, merge(random, place, &key)),
    }
}

fn create(random: &mut Rng, place: Place, name: &str, namespace: &str) -> Call {
    let mut body = valid(place);
    match place {
        Place::Executions => {
            body["spec"] = spec(random);
            if random.u8(..8) == 0 {
                body["status"] = status(random);
            }
        }
        Place::Schedules => {
            body["spec"] = schedule::spec(random);
            if random.u8(..8) == 0 {
                body["status"] = schedule::status(random);
            }
        }
        Place::Pods if random.bool() => body["spec"]["nodeName"] = json!("node-1"),
        _ => {}
    }
    if place != Place::Events {
        dress(random, &mut body);
    }
    if place == Place::Namespaces {
        body["metadata"]["labels"]["plan"] = json!(namespace);
    }
    match random.u8(..24) {
        0 => body["metadata"]["uid"] = json!("00000000-0000-4000-8000-00000000abcd"),
        1 => body["metadata"]["namespace"] = json!("default"),
        2 => body["metadata"]["name"] = json!("Not_A_Name"),
        _ => {}
    }
    Call::create(place, name, body)
}

/// Adds random labels, annotations and finalizers to an object.
fn dress(random: &mut Rng, body: &mut Value) {
    if random.bool() {
        body["metadata"]["labels"] = json!({"team": random.choice(["a", "b", ""])});
    }
    if random.u8(..4) == 0 {
        body["metadata"]["annotations"] = json!({"kubernaut.ai/note": "x"});
    }
    if random.u8(..6) == 0 {
        body["metadata"]["finalizers"] = json!(["kubernaut.ai/hold"]);
    }
}

/// Adds a version or a uid as a precondition. In most cases it is the current one.
fn precondition(random: &mut Rng, key: &str, names: [&str; 2]) -> Option<Value> {
    match random.u8(..8) {
        0..3 => None,
        3 => Some(json!(format!("{}:{key}", names[1]))),
        _ => Some(json!(format!("{}:{key}", names[0]))),
    }
}

fn preconditions(random: &mut Rng, key: &str) -> Value {
    let mut both = json!({});
    if let Some(uid) = precondition(random, key, ["$uid", "$gone"]) {
        both["uid"] = uid;
    }
    if let Some(version) = precondition(random, key, ["$version", "$before"]) {
        both["resourceVersion"] = version;
    }
    both
}

fn delete(random: &mut Rng, place: Place, name: &str, key: &str) -> Call {
    let mut options = json!({});
    if random.bool() {
        options["preconditions"] = preconditions(random, key);
    }
    match random.u8(..6) {
        // The real server orders a namespace's finalizers by a Go map, in other words at random.
        0 if place != Place::Namespaces => options["propagationPolicy"] = json!("Foreground"),
        1 | 2 => options["propagationPolicy"] = json!("Background"),
        3 if place == Place::Pods => options["gracePeriodSeconds"] = json!(random.choice([0, 1, 60])),
        _ => {}
    }
    Call::delete(place, name, options)
}

fn put(random: &mut Rng, place: Place, name: &str, key: &str) -> Call {
    let mut body = valid(place);
    body["metadata"] = preconditions(random, key);
    match place {
        Place::Executions => {
            body["spec"] = if random.bool() { least_spec() } else { spec(random) };
            if random.bool() {
                body["status"] = status(random);
                return Call::put(place, &format!("{name}/status"), body);
            }
        }
        Place::Schedules => {
            body["spec"] = if random.bool() { schedule::least_spec() } else { schedule::spec(random) };
        }
        Place::Leases => {
            body["spec"]["holderIdentity"] = json!(random.choice(["a", "b"]));
            body["spec"]["leaseDurationSeconds"] = json!(random.choice([15, 15, 0]));
        }
        Place::ConfigMaps => body["data"]["a"] = json!(random.choice(["1", "2"])),
        // A PUT of such an object would have to contain a spec with all its defaults, which no client here sends.
        Place::Pods | Place::Events | Place::Namespaces => return Call::get(place, name),
        Place::Runs | Place::Unknown => {}
    }
    dress(random, &mut body);
    Call::put(place, name, body)
}

fn merge(random: &mut Rng, place: Place, key: &str) -> Value {
    let mut patch = json!({});
    if random.u8(..3) == 0 {
        patch["metadata"] = preconditions(random, key);
    }
    match random.u8(..10) {
        0 | 1 => {
            patch["metadata"]["labels"] =
                json!({"team": random.choice([json!("a"), json!("b"), json!(null), json!("not valid")])});
        }
        2 => patch["metadata"]["annotations"] = json!({"kubernaut.ai/note": random.choice([json!("x"), json!(null)])}),
        3 => patch["metadata"]["finalizers"] = json!(["kubernaut.ai/hold"]),
        4 | 5 => patch["metadata"]["finalizers"] = json!(null),
        6 => {}
        _ => match place {
            Place::Executions => patch["spec"] = later(random),
            Place::Schedules => patch["spec"] = schedule::later(random),
            Place::Runs => patch["spec"] = json!({"status": random.choice([json!("Cancelled"), json!(null)])}),
            Place::ConfigMaps => patch["data"] = json!({"b": random.choice([json!("x"), json!(null)])}),
            Place::Leases => patch["spec"] = json!({"holderIdentity": random.choice([json!("c"), json!(null)])}),
            _ => {}
        },
    }
    patch
}

/// Draws a change of an existing spec, which may be forbidden.
fn later(random: &mut Rng) -> Value {
    let mut later = match random.u8(..6) {
        0 | 1 => json!({"cancellation": {"reason": "wrong", "requestedBy": random.choice(["me", "you"])}}),
        2 | 3 => json!({"clearance": {"reason": "mended", "clearedBy": random.choice(["me", "you"])}}),
        4 => json!({"cancellation": null, "clearance": null}),
        _ => spec(random),
    };
    if random.u8(..6) == 0 {
        spoil(random, &mut later);
    }
    later
}

fn operations(random: &mut Rng, place: Place, key: &str) -> Value {
    let mut all = vec![];
    if random.bool() {
        let uid = precondition(random, key, ["$uid", "$gone"]).unwrap_or_default();
        all.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
    }
    if place == Place::Runs && random.u8(..4) != 0 {
        all.push(json!({"op": "test", "path": "/spec/status", "value": "PipelineRunPending"}));
        all.push(json!({"op": "remove", "path": "/spec/status"}));
    } else {
        all.push(match random.u8(..4) {
            0 => json!({"op": "remove", "path": "/metadata/labels/team"}),
            1 => json!({"op": "add", "path": "/metadata/labels", "value": {"team": "b"}}),
            2 => json!({"op": "replace", "path": "/metadata/labels/team", "value": "a"}),
            _ => json!({"op": "test", "path": "/metadata/labels/team", "value": "a"}),
        });
    }
    Value::Array(all)
}

/// Draws a write of a status.
fn written(random: &mut Rng, place: Place, name: &str, key: &str) -> Call {
    let mut patch = json!({});
    if random.u8(..3) != 0 {
        patch["metadata"] = preconditions(random, key);
    }
    patch["status"] = match place {
        Place::Executions => status(random),
        Place::Schedules => schedule::status(random),
        Place::Runs => {
            let condition = json!({"type": "Succeeded", "status": random.choice(["Unknown", "True", "False"]), "reason": "Running"});
            json!({"conditions": [condition], "startTime": "2026-01-01T00:00:00Z"})
        }
        _ => {
            json!({"phase": random.choice(["Running", "Succeeded", "Failed", "Pending"]), "reason": random.choice(["Evicted", "Odd"])})
        }
    };
    if random.u8(..12) == 0 {
        patch["status"] = json!(null);
    }
    Call::merge(place, &format!("{name}/status"), patch)
}

fn list(random: &mut Rng, place: Place, namespace: &str) -> Call {
    if place == Place::Namespaces {
        // Without this selector, the list would contain the namespaces of other plans.
        return Call::list(place, &format!("labelSelector=plan%3D{namespace},team"));
    }
    let queries = [
        "",
        "labelSelector=team%3Da",
        "labelSelector=team",
        "labelSelector=team%21%3Da,team",
        "labelSelector=%21team",
        "fieldSelector=metadata.name%3Da",
        "limit=2&labelSelector=team",
        "limit=1",
        "limit=1000",
    ];
    Call::list(place, random.choice(queries).unwrap_or_default())
}
