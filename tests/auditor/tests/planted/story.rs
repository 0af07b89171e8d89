//! Small recordings, written in code. Each write is a change in the watch and a request in the audit log.

mod acts;
mod attempts;
mod lives;
mod past;
mod schedules;

pub(crate) use acts::release_patch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use wfe_auditor::{Change, ChangeType, Options, Policy, Report, Request, audit};

pub(crate) const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";
pub(crate) const TEKTON: &str = "tekton-controller";
pub(crate) const PERSON: &str = "admin";
pub(crate) const NAMESPACE: &str = "ops";
pub(crate) const EXECUTION_NAMESPACE: &str = "kubernaut-workflows";
pub(crate) const NODE: &str = "node/worker-node-1";
pub(crate) const API: &str = "payment/deployment/payment-api";

/// A recording that grows with each write.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) changes: Vec<Change>,
    pub(crate) requests: Vec<Request>,
    /// The current objects, by uid.
    objects: BTreeMap<String, Value>,
    /// The current version, which is also the time in seconds: each write takes one second.
    pub(crate) version: u64,
    /// The policy of the operator.
    pub(crate) policy: Policy,
    /// How old the operator's views may be.
    pub(crate) lag: Duration,
    /// The consecutive failures on each target, as the operator counts them.
    pub(crate) failures: BTreeMap<String, u64>,
}

impl Default for Story {
    /// Returns a story whose policy forbids little, because most stories are about the lock.
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self::by(Policy {
            base_cooldown_period: second,
            max_cooldown_period: second,
            cooldown_period: Duration::ZERO,
            ..Policy::default()
        })
    }
}

/// A change that spoils a part of a story.
pub(crate) type Plant = fn(&mut Value);

pub(crate) fn time(seconds: u64) -> String {
    let (day, hour) = (1 + seconds / 86_400, seconds / 3600 % 24);
    format!("2026-01-{day:02}T{hour:02}:{:02}:{:02}Z", seconds / 60 % 60, seconds % 60)
}

/// Returns the uid of an execution.
pub(crate) fn uid(name: &str) -> String {
    format!("uid-{name}")
}

/// Returns the uid of an execution's run.
pub(crate) fn run(owner: &str, number: u64) -> String {
    format!("run-{owner}-{number}")
}

// === impl Story: what the auditor says ===

impl Story {
    /// Begins a story with this policy.
    pub(crate) fn by(policy: Policy) -> Self {
        Self {
            changes: Vec::new(),
            requests: Vec::new(),
            objects: BTreeMap::new(),
            version: 0,
            policy,
            lag: Duration::ZERO,
            failures: BTreeMap::new(),
        }
    }

    pub(crate) fn report(&self, settled: bool) -> Report {
        let operators = BTreeSet::from([OPERATOR.to_owned()]);
        let options = Options { operators, settled, policy: Some(self.policy.clone()), lag: self.lag };
        audit(&self.changes, &self.requests, &options)
    }

    /// Returns the number of the invariant and the rule of each violation. The recording must be complete.
    pub(crate) fn found(&self) -> Vec<String> {
        found(&self.report(false))
    }

    pub(crate) fn found_settled(&self) -> Vec<String> {
        found(&self.report(true))
    }
}

fn found(report: &Report) -> Vec<String> {
    assert_eq!(report.gaps, Vec::<String>::new(), "the recording is complete");
    report.violations.iter().map(|one| format!("{} {}", one.invariant, one.rule)).collect()
}

// === impl Story: any write ===

impl Story {
    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Returns the current time, which is later after every write.
    pub(crate) fn now(&self) -> String {
        self.later(0)
    }

    /// Returns the time after this many seconds.
    pub(crate) fn later(&self, seconds: u64) -> String {
        time(self.version + seconds)
    }

    pub(crate) fn object(&self, uid: &str) -> &Value {
        &self.objects[uid]
    }

    fn show(&mut self, change: ChangeType, object: &Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let resource_version = self.version;
        self.changes.push(Change {
            kind,
            change,
            resource_version,
            at_ms: resource_version * 10,
            object: object.clone(),
        });
    }

    /// Creates an object as a user.
    pub(crate) fn add(&mut self, user: &str, mut object: Value, uid: &str) {
        let sent = object.clone();
        let version = self.next();
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["creationTimestamp"] = json!(self.now());
        object["metadata"]["generation"] = json!(1);
        self.show(ChangeType::Added, &object);
        self.ask(user, "create", "", &object, sent, 201);
        self.objects.insert(uid.to_owned(), object);
    }

    /// Changes an object as a user. `sent` is the body in the audit log.
    pub(crate) fn change(&mut self, user: &str, uid: &str, sub: &str, sent: Value, how: impl FnOnce(&mut Value)) {
        let version = self.next();
        let mut object = self.objects[uid].clone();
        let spec = object["spec"].clone();
        how(&mut object);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if object["spec"] != spec {
            object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap() + 1);
        }
        self.show(ChangeType::Modified, &object);
        self.ask(user, "patch", sub, &object, sent, 200);
        self.objects.insert(uid.to_owned(), object);
    }

    /// Deletes an object as a user.
    pub(crate) fn remove(&mut self, user: &str, uid: &str, preconditions: &Value) {
        let version = self.next();
        let mut object = self.objects.remove(uid).unwrap();
        let sent = json!({"kind": "DeleteOptions", "preconditions": preconditions});
        self.ask(user, "delete", "", &object, sent, 200);
        self.requests.last_mut().unwrap().response = json!({"kind": "Status", "details": {"uid": uid}});
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        self.show(ChangeType::Deleted, &object);
    }

    /// Adds a request to the audit log. The request changes nothing.
    pub(crate) fn ask(&mut self, user: &str, verb: &str, sub: &str, object: &Value, sent: Value, code: i64) {
        let (group, resource) = match object["kind"].as_str().unwrap() {
            "WorkflowExecution" => ("kubernaut.ai", "workflowexecutions"),
            "WorkflowSchedule" => ("kubernaut.ai", "workflowschedules"),
            "PipelineRun" => ("tekton.dev", "pipelineruns"),
            "TaskRun" => ("tekton.dev", "taskruns"),
            "Namespace" => ("", "namespaces"),
            "Event" => ("events.k8s.io", "events"),
            "Pod" => ("", "pods"),
            kind => panic!("{kind}"),
        };
        let response = if (200..300).contains(&code) { object.clone() } else { json!({"kind": "Status"}) };
        self.requests.push(Request {
            verb: verb.to_owned(),
            user: user.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: sub.to_owned(),
            namespace: object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned(),
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            code,
            resource_version: response["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()),
            request: sent,
            response,
            received_at: self.now(),
        });
    }
}
