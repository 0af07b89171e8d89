//! Operations by people on schedules and their children.

use http::Method;
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_operator::clock::Clock;

use super::{PERSON, REGISTRY, executions_in};
use crate::cluster::scripts::THEN;
use crate::plan::{Hint, NAMESPACES, NewSchedule, Operation};
use crate::service::FakeApi;

/// The suffix in the name of an execution that analyses the failure of a child.
const ANALYST: &str = "-triage";

/// A person who manages schedules.
pub(super) struct Schedules<'a> {
    pub(super) api: &'a FakeApi,
    pub(super) clock: &'a Clock,
    pub(super) tekton: &'a str,
}

impl Schedules<'_> {
    /// Performs an operation. Refused requests are ignored, because people make mistakes.
    pub(super) fn act(&self, deed: &Operation) {
        let (namespace, name) = deed.object().split_once('/').unwrap_or_default();
        let path = format!("{}/{name}", schedules_in(namespace));
        match deed {
            Operation::Schedule(schedule) => self.create(schedule, namespace, name),
            Operation::EditSchedule(edit) => self.ask(&Method::PATCH, &path, &json!({"spec": edit.spec})),
            Operation::Hint(hint) => self.ask(&Method::PATCH, &path, &json!({"spec": {"hint": self.hint(hint)}})),
            Operation::DeleteSchedule(_) => self.ask(&Method::DELETE, &path, &Value::Null),
            Operation::WipeSchedule(_) => self.ask(&Method::PATCH, &format!("{path}/status"), &json!({"status": null})),
            Operation::DeleteChild(_) => self.of_child(namespace, name, &Method::DELETE, &Value::Null),
            Operation::CancelChild(_) => {
                let cancellation = json!({"requestedBy": "alice", "reason": "not needed"});
                let change = json!({"spec": {"cancellation": cancellation}});
                self.of_child(namespace, name, &Method::PATCH, &change);
            }
            Operation::Resume(_) => self.resume(&path),
            Operation::ClearChild(_) => {
                let clearance = json!({"clearedBy": "alice", "reason": "looked at it"});
                self.of_child(namespace, name, &Method::PATCH, &json!({"spec": {"clearance": clearance}}));
            }
            _ => {}
        }
    }

    /// Suspends all schedules that are not suspended.
    pub(super) fn suspend_all(&self) {
        for namespace in NAMESPACES {
            for schedule in self.api.all(&schedules_in(namespace)) {
                let name = schedule["metadata"]["name"].as_str().unwrap_or_default();
                if schedule["spec"]["suspend"] != true {
                    let path = format!("{}/{name}", schedules_in(namespace));
                    self.ask(&Method::PATCH, &path, &json!({"spec": {"suspend": true}}));
                }
            }
        }
    }

    fn create(&self, schedule: &NewSchedule, namespace: &str, name: &str) {
        let stories = [std::slice::from_ref(&schedule.story), &schedule.then].concat().join(THEN);
        let registry = schedule.registry.as_deref().unwrap_or(REGISTRY);
        let image = format!("{registry}/{}/{stories}:1.0", self.tekton);
        let mut spec = schedule.spec.clone();
        spec["template"]["spec"]["targetResource"] = json!(schedule.target);
        spec["template"]["spec"]["workflowRef"] =
            json!({"workflowId": schedule.workflow, "version": "1.0", "containerImage": image});
        let object = json!({
            "apiVersion": format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION),
            "kind": "WorkflowSchedule",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        });
        self.ask(&Method::POST, &schedules_in(namespace), &object);
    }

    /// Resumes the triage in the schedule's status, as a person does who has read the status.
    fn resume(&self, path: &str) {
        let shown = self.api.ask(PERSON, &Method::GET, path, &Value::Null).body;
        let triage = &shown["status"]["triage"]["of"];
        if triage.is_string() {
            let resume = json!({"triage": triage, "reason": "looked at it", "resumedBy": PERSON});
            self.ask(&Method::PATCH, path, &json!({"spec": {"resume": resume}}));
        }
    }

    fn hint(&self, hint: &Hint) -> Value {
        let later = |seconds: u32| {
            let time: Time = self.clock.now() + chrono::TimeDelta::seconds(i64::from(seconds));
            time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
        };
        json!({"nextRunAt": hint.after.map(later), "interval": hint.interval, "expiresAt": later(hint.lasts)})
    }

    /// Sends a request about the newest child of a schedule.
    fn of_child(&self, namespace: &str, schedule: &str, method: &Method, body: &Value) {
        let children = self.api.all(&executions_in(namespace)).into_iter();
        let its = children.filter(|child| child["spec"]["remediationRequestRef"]["name"] == *schedule);
        let name = |child: &Value| child["metadata"]["name"].as_str().map(str::to_owned);
        let is_child = |name: &String| !name.ends_with(ANALYST);
        // The names of children sort in the order of their slots.
        if let Some(newest) = its.filter_map(|child| name(&child)).filter(is_child).max() {
            self.ask(method, &format!("{}/{newest}", executions_in(namespace)), body);
        }
    }

    fn ask(&self, method: &Method, path: &str, body: &Value) {
        let _ = self.api.ask(PERSON, method, path, body);
    }
}

/// Returns the path of a namespace's schedules.
#[must_use]
pub fn schedules_in(namespace: &str) -> String {
    format!("/apis/{}/{}/namespaces/{namespace}/workflowschedules", wfe_api::GROUP, wfe_api::VERSION)
}
