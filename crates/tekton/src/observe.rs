//! Converts a `PipelineRun` to the record that decisions need. Objects of any shape can be read.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use wfe_api::labels;
use wfe_api::limits::cut;

use wfe_core::chain::ChainName;
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::residue::{Residue, ResidueId, ResidueKind};
use wfe_core::run::{CancelReason, Order, Outcome, Owner, Presence, Progress, Run, RunMemory, Stays, StopRequest};
use wfe_core::target::TargetName;
use wfe_core::{Time, duration};

use crate::evidence::Sighting;
use crate::moment::{moment, parse_moment};
use crate::object::{Condition, Object, list, text};
use crate::reasons::RunReason;
use crate::redaction::Redaction;
use crate::render::TARGET_PARAMETER;
use crate::words::MAX_MESSAGE;

/// The limit of a stored reason from Tekton, in characters: a reason is one word.
const MAX_WORD: u32 = 64;
/// The limit of the stored finalizers of a run that is being stopped, in characters. A status shows them, and most runs
/// have one or two.
const MAX_FINALIZERS: u32 = 256;

/// Reads a run of a chain: an object with the name of such a run, and without a controller. Returns `None` for anything
/// else.
///
/// The object does not show the order of delivery, so the caller passes it.
#[must_use]
pub fn observe_run(meta: &ObjectMeta, data: &Value, order: Order) -> Option<(ChainName, Run)> {
    let name = meta.name.as_deref()?;
    let (chain, number) = ChainName::of_run(name)?;
    let controlled = meta.owner_references.iter().flatten().any(|owner| owner.controller == Some(true));
    if controlled {
        return None;
    }
    let requested = data.pointer("/spec/status").and_then(Value::as_str);
    let progress = progress(data, requested);
    let run = Run {
        id: RunId { name: name.into(), uid: Uid::new(meta.uid.as_deref()?) },
        number,
        version: Version::new(meta.resource_version.as_deref().unwrap_or_default()),
        created: meta.creation_timestamp.as_ref().map(moment).unwrap_or_default(),
        order,
        owner: owner(meta),
        stays: match annotation(meta, labels::ANNOTATION_SCHEDULED_FOR) {
            Some(_) => Stays::WithItsExecution,
            None => Stays::ForItsRetention,
        },
        cancelled: matches!(requested, Some(crate::CANCELLED | crate::CANCELLED_RUN_FINALLY)),
        stopped: requested == Some(crate::STOPPED_RUN_FINALLY),
        cancel_reason: annotation(meta, labels::ANNOTATION_CANCEL_REASON).and_then(cancel_reason),
        doing: doing(data),
        total_tasks: total_tasks(data),
        skipped_tasks: skipped_tasks(data),
        undeclared: undeclared(data),
        timeout: timeout(data),
        progress,
        released_at: released_at(meta, data),
        deleting: meta.deletion_timestamp.is_some(),
        stop: stop_request(meta, data, requested).map(Box::new),
        memory: RunMemory::default(),
    };
    Some((chain, run))
}

/// A descendant of a run of a chain: a task, a child run or a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Descendant {
    /// The chain of the run.
    pub chain: ChainName,
    /// The kind and identity of the object.
    pub residue: Residue,
    /// Whether the object may still do something.
    pub unfinished: bool,
    /// What the object shows about whether anything ran, if it names its run.
    pub sighting: Option<Sighting>,
}

/// Reads a descendant of a run. Either it has the annotations that Tekton copies from the run, or it is owned by an
/// object that Tekton created for a run. Returns `None` for anything else.
#[must_use]
pub fn observe_descendant(kind: ResidueKind, meta: &ObjectMeta, data: &Value) -> Option<Descendant> {
    let chain = chain_of(meta)?;
    let id = ResidueId { kind, name: meta.name.as_deref()?.into(), uid: Uid::new(meta.uid.as_deref()?) };
    let is_finished = match kind {
        ResidueKind::Pod => {
            matches!(data.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
        }
        ResidueKind::TaskRun | ResidueKind::CustomRun | ResidueKind::PipelineRun => {
            Condition::of(&data["status"]).is_done()
        }
    };
    Some(Descendant {
        chain,
        residue: Residue {
            id,
            owner: owner(meta),
            created: meta.creation_timestamp.as_ref().map(moment).unwrap_or_default(),
        },
        unfinished: !is_finished,
        sighting: Sighting::of(kind, Object { meta, data }),
    })
}

/// Returns whether an object in the execution namespace is a run of a chain, or a descendant of one.
#[must_use]
pub fn belongs(meta: &ObjectMeta) -> bool {
    meta.name.as_deref().and_then(ChainName::of_run).is_some() || chain_of(meta).is_some()
}

/// Returns the chain of a descendant of a run. If our annotation was removed, the name of the owner shows the chain:
/// Tekton owns the objects that it creates, and names them after the run.
fn chain_of(meta: &ObjectMeta) -> Option<ChainName> {
    let said = annotation(meta, labels::ANNOTATION_TARGET).and_then(|target| TargetName::parse_recorded(target).ok());
    said.map(|target| target.chain()).or_else(|| {
        let is_tektons = |version: &str| version.split_once('/').is_some_and(|(group, _)| group == crate::GROUP);
        let mut owners = meta.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true) && is_tektons(&owner.api_version))?;
        ChainName::of_made(&owner.name)
    })
}

/// Reads the reason of the condition of a run that is not done.
fn doing(data: &Value) -> Box<str> {
    let condition = Condition::of(&data["status"]);
    let reason = if condition.is_done() { "" } else { condition.reason };
    cut(reason, MAX_WORD).into()
}

/// Counts the tasks of the pipeline; `None` until Tekton has fetched the pipeline.
fn total_tasks(data: &Value) -> Option<u16> {
    let pipeline = data.pointer("/status/pipelineSpec").filter(|pipeline| pipeline.is_object())?;
    u16::try_from(list(pipeline, "tasks").chain(list(pipeline, "finally")).count()).ok()
}

/// Returns the parameters of a run that its pipeline does not declare, the target first. Tekton does not report them.
/// The list is empty until Tekton has fetched the pipeline.
fn undeclared(data: &Value) -> Box<[Box<str>]> {
    let Some(pipeline) = data.pointer("/status/pipelineSpec").filter(|pipeline| pipeline.is_object()) else {
        return Box::default();
    };
    let declared: BTreeSet<&str> = list(pipeline, "params").filter_map(|param| text(param, "name")).collect();
    let passed = list(&data["spec"], "params").filter_map(|param| text(param, "name"));
    let mut undeclared: Vec<&str> = passed.filter(|name| !declared.contains(name)).collect();
    undeclared.sort_unstable_by_key(|name| (*name != TARGET_PARAMETER, *name));
    undeclared.into_iter().map(Into::into).collect()
}

fn skipped_tasks(data: &Value) -> u16 {
    let names: BTreeSet<&str> = list(&data["status"], "skippedTasks").filter_map(|task| text(task, "name")).collect();
    u16::try_from(names.len()).unwrap_or(u16::MAX)
}

/// Reads the time-out that the run was created with; `None` if it is missing, invalid, or zero (no time-out).
fn timeout(data: &Value) -> Option<Duration> {
    let text = data.pointer("/spec/timeouts/pipeline").and_then(Value::as_str)?;
    duration::parse(text).ok().filter(|timeout| !timeout.is_zero())
}

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// Parses why the operator cancelled a run.
fn cancel_reason(annotation: &str) -> Option<CancelReason> {
    CANCEL_REASONS.iter().find(|(_, text)| *text == annotation).map(|(reason, _)| *reason)
}

/// Returns the text of the annotation on a run that the operator cancels.
#[must_use]
pub fn cancel_annotation(why: CancelReason) -> &'static str {
    CANCEL_REASONS.iter().find(|(reason, _)| *reason == why).map_or("", |(_, text)| *text)
}

const CANCEL_REASONS: [(CancelReason, &str); 4] = [
    (CancelReason::OwnerDeleted, labels::CANCEL_DELETED),
    (CancelReason::Requested, labels::CANCEL_REQUESTED),
    (CancelReason::NotStarted, labels::CANCEL_NOT_STARTED),
    (CancelReason::TimedOut, labels::CANCEL_TIMED_OUT),
];

/// Reads the request to stop a run, if there is one and the run is not done.
fn stop_request(meta: &ObjectMeta, data: &Value, requested: Option<&str>) -> Option<StopRequest> {
    let is_requested =
        matches!(requested, Some(crate::CANCELLED | crate::CANCELLED_RUN_FINALLY | crate::STOPPED_RUN_FINALLY));
    let condition = Condition::of(&data["status"]);
    let deleted_at = meta.deletion_timestamp.as_ref().map(moment);
    if condition.is_done() || !is_requested && deleted_at.is_none() {
        return None;
    }
    let asked_at = annotation(meta, labels::ANNOTATION_CANCELLED_AT).and_then(parse_moment);
    let said = match (condition.reason, condition.message) {
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    let finalizers = meta.finalizers.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
    let managed_by = text(&data["spec"], "managedBy").filter(|manager| !manager.is_empty());
    Some(StopRequest {
        // The object does not record when a person cancelled the run, so the index adds a time.
        since: if is_requested { asked_at } else { deleted_at },
        deleted_at,
        // Events and the statuses of waiting executions quote this text.
        said: cut(&Redaction::of_run(&data["spec"]).apply(&said), MAX_MESSAGE).into(),
        runs_finally: RunReason::parse(condition.reason).is_some_and(RunReason::runs_finally),
        managed_by: managed_by.map(|manager| cut(manager, MAX_WORD).into()),
        finalizers: cut(&finalizers, MAX_FINALIZERS).into(),
        asked: annotation(meta, labels::ANNOTATION_CANCEL_ASKED).and_then(|asked| asked.parse().ok()).unwrap_or(1),
        ..StopRequest::default()
    })
}

/// Reads when a run was released: from its annotation, else from its start time.
fn released_at(meta: &ObjectMeta, data: &Value) -> Option<Time> {
    let said = annotation(meta, labels::ANNOTATION_RELEASED_AT).and_then(parse_moment);
    said.or_else(|| text(&data["status"], "startTime").and_then(parse_moment))
}

fn owner(meta: &ObjectMeta) -> Owner {
    let (Some(uid), Some((namespace, name))) = (
        annotation(meta, labels::ANNOTATION_UID),
        annotation(meta, labels::ANNOTATION_WORKFLOW_EXECUTION).and_then(|value| value.split_once('/')),
    ) else {
        return Owner::Nobody;
    };
    Owner::Execution {
        id: ExecutionId { namespace: namespace.into(), name: name.into(), uid: Uid::new(uid) },
        workflow_id: annotation(meta, labels::ANNOTATION_WORKFLOW_ID).unwrap_or_default().into(),
        presence: Presence::Watched,
    }
}

fn progress(data: &Value, requested: Option<&str>) -> Progress {
    let condition = Condition::of(&data["status"]);
    if condition.is_done() {
        Progress::Done(Outcome {
            succeeded: condition.status == "True",
            reason: cut(condition.reason, MAX_MESSAGE).into(),
            message: cut(condition.message, MAX_MESSAGE).into(),
            completed_at: text(&data["status"], "completionTime").and_then(parse_moment),
        })
    } else if requested == Some(crate::PENDING) {
        Progress::Pending
    } else {
        Progress::Released
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use serde_json::json;

    use super::*;

    fn meta(name: &str, annotations: &[(&str, &str)]) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some("run-uid".to_owned()),
            resource_version: Some("7".to_owned()),
            annotations: Some(annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
            ..ObjectMeta::default()
        }
    }

    const NAME: &str = "wfe-ac45b7d6911e97a5-2";

    fn progress_of(data: &Value) -> Progress {
        observe_run(&meta(NAME, &[]), data, Order(1)).unwrap().1.progress
    }

    #[test]
    fn reads_how_far_a_run_is() {
        assert_eq!(progress_of(&json!({"spec": {"status": "PipelineRunPending"}})), Progress::Pending);
        assert_eq!(progress_of(&json!({"spec": {}})), Progress::Released);
        let unknown = json!([{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]);
        assert_eq!(progress_of(&json!({"spec": {}, "status": {"conditions": unknown}})), Progress::Released);
        let done = json!([{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "m"}]);
        let status = json!({"conditions": done, "completionTime": "2026-11-21T20:52:33Z"});
        let Progress::Done(outcome) = progress_of(&json!({"spec": {}, "status": status})) else { panic!("not done") };
        assert!(!outcome.succeeded);
        assert_eq!((&*outcome.reason, &*outcome.message), ("Failed", "m"));
        assert_eq!(outcome.completed_at, parse_moment("2026-11-21T20:52:33Z"));
    }

    #[test]
    fn only_a_cancel_counts_as_cancelled_and_no_other_word_in_spec_status() {
        for (status, cancelled, stopped) in [
            (json!("Cancelled"), true, false),
            (json!("CancelledRunFinally"), true, false),
            // Tasks are still running, so the run can still be cancelled.
            (json!("StoppedRunFinally"), false, true),
            (json!("PipelineRunPending"), false, false),
            (json!(""), false, false),
            (json!("cancelled"), false, false),
            (json!("Anything"), false, false),
            (Value::Null, false, false),
            (json!(7), false, false),
        ] {
            let data = json!({"spec": {"status": status}});
            let run = observe_run(&meta(NAME, &[]), &data, Order(1)).unwrap().1;
            assert_eq!((run.cancelled, run.stopped), (cancelled, stopped), "{data}");
        }
    }

    #[test]
    fn reads_a_request_to_stop_a_run_and_who_should_answer_it() {
        let stop = |meta: &ObjectMeta, data: Value| observe_run(meta, &data, Order(1)).unwrap().1.stop;
        let asked = [(labels::ANNOTATION_CANCELLED_AT, "2026-11-21T20:52:33Z"), (labels::ANNOTATION_CANCEL_ASKED, "3")];
        let condition = |status: &str, reason: &str, message: &str| json!([{"type": "Succeeded", "status": status, "reason": reason, "message": message}]);
        let data = |status: &str, conditions: Value| json!({"spec": {"status": status, "managedBy": "example.com/queue"}, "status": {"conditions": conditions}});
        let ours = stop(&meta(NAME, &asked), data("Cancelled", condition("Unknown", "PipelineRunCouldntCancel", "m")));
        let ours = *ours.unwrap();
        assert_eq!((ours.since, ours.asked, ours.deleted_at), (parse_moment("2026-11-21T20:52:33Z"), 3, None));
        assert_eq!((&*ours.said, ours.runs_finally), ("PipelineRunCouldntCancel: m", false));
        assert_eq!((ours.managed_by.as_deref(), &*ours.finalizers), (Some("example.com/queue"), ""));
        for status in ["CancelledRunFinally", "StoppedRunFinally"] {
            for (doing, runs_finally) in
                [("CancelledRunningFinally", true), ("StoppedRunningFinally", true), ("Running", false)]
            {
                let persons = *stop(&meta(NAME, &[]), data(status, condition("Unknown", doing, ""))).unwrap();
                assert_eq!((persons.since, persons.asked, persons.runs_finally), (None, 1, runs_finally), "{doing}");
            }
        }
        assert_eq!(stop(&meta(NAME, &asked), data("Cancelled", condition("False", "Cancelled", "m"))), None, "done");
        assert_eq!(stop(&meta(NAME, &asked), data("PipelineRunPending", Value::Null)), None, "nobody asks");
        let mut leaving = meta(NAME, &[]);
        leaving.deletion_timestamp = serde_json::from_value(json!("2026-11-21T20:52:40Z")).unwrap();
        leaving.finalizers = Some(vec!["chains.tekton.dev".to_owned(), "x".repeat(300)]);
        let leaving = *stop(&leaving, json!({"spec": {}})).unwrap();
        assert_eq!((leaving.since, leaving.deleted_at), (leaving.deleted_at, parse_moment("2026-11-21T20:52:40Z")));
        assert!(leaving.finalizers.starts_with("chains.tekton.dev, x") && leaving.finalizers.chars().count() == 256);
    }

    #[test]
    fn reads_when_a_run_was_released_from_its_annotation_or_else_from_its_start() {
        let (said, started) = ("2026-11-21T20:52:33.250Z", "2026-11-21T20:52:34Z");
        let status = json!({"status": {"startTime": started}});
        for (annotation, data, released_at) in [
            (said, &status, Some(said)),
            (said, &json!({}), Some(said)),
            ("soon", &status, Some(started)),
            ("", &json!({"status": {"startTime": 5}}), None),
            ("", &Value::Null, None),
        ] {
            let meta = meta(NAME, &[(labels::ANNOTATION_RELEASED_AT, annotation)]);
            let run = observe_run(&meta, data, Order(1)).unwrap().1;
            assert_eq!(run.released_at, released_at.and_then(parse_moment), "{annotation} {data}");
        }
    }

    #[test]
    fn reads_what_a_run_does_and_of_how_many_tasks() {
        let read = |status: Value| {
            let run = observe_run(&meta(NAME, &[]), &json!({"status": status}), Order(1)).unwrap().1;
            (run.doing.to_string(), run.total_tasks, run.skipped_tasks)
        };
        let condition = |status: &str, reason: &str| json!([{"type": "Succeeded", "status": status, "reason": reason}]);
        let resolving = json!({"conditions": condition("Unknown", "ResolvingPipelineRef")});
        assert_eq!(read(resolving), ("ResolvingPipelineRef".to_owned(), None, 0));
        let pipeline = json!({"tasks": [{"name": "a"}, {"name": "b"}], "finally": [{"name": "c"}]});
        let skipped = json!([{"name": "b"}, {"name": "b"}, {}]);
        let done =
            json!({"conditions": condition("True", "Completed"), "pipelineSpec": pipeline, "skippedTasks": skipped});
        assert_eq!(read(done), (String::new(), Some(3), 1));
    }

    #[test]
    fn reads_the_time_out_that_a_run_was_made_with() {
        let read = |timeouts: Value| {
            let data = json!({"spec": {"timeouts": timeouts}});
            observe_run(&meta(NAME, &[]), &data, Order(1)).unwrap().1.timeout
        };
        assert_eq!(read(json!({"pipeline": "1h30m0s"})), Some(Duration::from_mins(90)));
        for none in
            [json!({"pipeline": "0s"}), json!({"pipeline": "soon"}), json!({"pipeline": 5}), json!({}), json!(1)]
        {
            assert_eq!(read(none), None);
        }
    }

    #[test]
    fn parameters_that_a_pipeline_does_not_declare_are_named_the_target_first() {
        let undeclared = |passed: &[&str], pipeline: &Value| {
            let params: Vec<Value> = passed.iter().map(|name| json!({"name": name, "value": "v"})).collect();
            let data = json!({"spec": {"params": params}, "status": {"pipelineSpec": pipeline}});
            observe_run(&meta(NAME, &[]), &data, Order(1)).unwrap().1.undeclared.join(" ")
        };
        let declares =
            |names: &[&str]| json!({"params": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
        let passed = ["ZONE", "AGE", "TARGET_RESOURCE"];
        assert_eq!(undeclared(&passed, &declares(&["TARGET_RESOURCE", "ZONE", "AGE", "OTHER"])), "");
        assert_eq!(undeclared(&passed, &declares(&["TARGET_RESOURCE", "AGE"])), "ZONE");
        assert_eq!(undeclared(&passed, &declares(&["AGE"])), "TARGET_RESOURCE ZONE");
        assert_eq!(undeclared(&passed, &json!({"tasks": []})), "TARGET_RESOURCE AGE ZONE");
        assert_eq!(undeclared(&passed, &Value::Null), "", "Tekton has not fetched the pipeline");
    }

    #[test]
    fn what_tekton_said_is_kept_as_it_is() {
        let condition = json!([{"type": "Succeeded", "status": "False", "message": "'hunter2' is not an int"}]);
        let params = json!([{"name": "PASSWORD", "value": "hunter2"}]);
        let data = json!({"spec": {"params": params}, "status": {"conditions": condition}});
        let Progress::Done(outcome) = progress_of(&data) else { panic!("not done") };
        assert_eq!(&*outcome.message, "'hunter2' is not an int");
    }

    #[test]
    fn a_run_without_our_annotations_is_nobodys() {
        assert_eq!(observe_run(&meta(NAME, &[]), &json!({}), Order(1)).unwrap().1.owner, Owner::Nobody);
        let no_name = [(labels::ANNOTATION_UID, "u")];
        assert_eq!(observe_run(&meta(NAME, &no_name), &json!({}), Order(1)).unwrap().1.owner, Owner::Nobody);
        let ours = [(labels::ANNOTATION_UID, "u"), (labels::ANNOTATION_WORKFLOW_EXECUTION, "ops/fix")];
        let Owner::Execution { id, .. } = observe_run(&meta(NAME, &ours), &json!({}), Order(1)).unwrap().1.owner else {
            panic!("not ours")
        };
        assert_eq!((id.to_string().as_str(), &id.uid), ("ops/fix", &Uid::new("u")));
    }

    #[test]
    fn reads_whether_a_descendant_is_finished() {
        let copied = [(labels::ANNOTATION_TARGET, "node/worker-node-1"), (labels::ANNOTATION_UID, "u")];
        let mut meta = meta("some-pod", &copied);
        let done = |status: &str| json!({"status": {"conditions": [{"type": "Succeeded", "status": status}]}});
        for (kind, data, unfinished) in [
            (ResidueKind::Pod, json!({"status": {"phase": "Pending"}}), true),
            (ResidueKind::Pod, json!({"status": {"phase": "Running"}}), true),
            (ResidueKind::Pod, json!({"status": {"phase": "Failed"}}), false),
            (ResidueKind::TaskRun, json!({}), true),
            (ResidueKind::TaskRun, done("Unknown"), true),
            (ResidueKind::TaskRun, done("False"), false),
            (ResidueKind::CustomRun, json!({}), true),
            (ResidueKind::PipelineRun, done("True"), false),
        ] {
            let seen = observe_descendant(kind, &meta, &data).unwrap();
            assert_eq!(seen.unfinished, unfinished, "{kind:?} {data}");
            assert_eq!(seen.chain.to_string(), "ac45b7d6911e97a5");
        }
        meta.annotations = None;
        assert_eq!(observe_descendant(ResidueKind::Pod, &meta, &json!({})), None);
    }

    #[test]
    fn what_lost_our_annotations_belongs_to_the_run_that_owns_it() {
        let chain = |version: &str, kind: &str, name: &str, controller| {
            let mut meta = meta("some-pod", &[]);
            meta.owner_references = Some(vec![OwnerReference {
                api_version: version.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                uid: "owner".to_owned(),
                controller,
                ..OwnerReference::default()
            }]);
            let seen = observe_descendant(ResidueKind::Pod, &meta, &json!({}));
            assert_eq!(belongs(&meta), seen.is_some(), "{meta:?}");
            seen.map(|seen| (seen.chain.to_string(), seen.residue.owner))
        };
        let ours = Some(("ac45b7d6911e97a5".to_owned(), Owner::Nobody));
        let long = "wfe-ac45b7d6911e97a5-2d41d8cd98f00b204e9800998ecf8427e-a-long-na";
        for (version, kind, name, controller, found) in [
            ("tekton.dev/v1", "PipelineRun", NAME, Some(true), ours.clone()),
            ("tekton.dev/v1", "TaskRun", "wfe-ac45b7d6911e97a5-2-apply", Some(true), ours.clone()),
            ("tekton.dev/v1beta1", "CustomRun", "wfe-ac45b7d6911e97a5-12-apply-0", Some(true), ours.clone()),
            ("tekton.dev/v1", "TaskRun", long, Some(true), ours),
            ("tekton.dev/v1", "PipelineRun", NAME, None, None),
            ("tekton.dev/v1", "PipelineRun", "somebodys", Some(true), None),
            ("tekton.dev/v1", "TaskRun", "wfe-ac45b7d6911e97a5-apply", Some(true), None),
            ("tekton.dev/v1", "TaskRun", "wfe-AC45B7D6911E97A5-2-apply", Some(true), None),
            ("apps/v1", "ReplicaSet", NAME, Some(true), None),
            ("v1", "ReplicationController", NAME, Some(true), None),
        ] {
            assert_eq!(chain(version, kind, name, controller), found, "{version} {kind} {name}");
        }
    }

    #[test]
    fn every_reason_of_a_cancel_is_read_back() {
        for (reason, _) in CANCEL_REASONS {
            let cancelled = meta(NAME, &[(labels::ANNOTATION_CANCEL_REASON, cancel_annotation(reason))]);
            assert_eq!(observe_run(&cancelled, &json!({}), Order(1)).unwrap().1.cancel_reason, Some(reason));
        }
    }

    #[test]
    fn children_and_strangers_are_no_runs_of_a_chain() {
        assert!(observe_run(&meta("something-else", &[]), &json!({}), Order(1)).is_none());
        let mut child = meta(NAME, &[]);
        child.owner_references = Some(vec![OwnerReference { controller: Some(true), ..OwnerReference::default() }]);
        assert!(observe_run(&child, &json!({}), Order(1)).is_none());
    }
}
