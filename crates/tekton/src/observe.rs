//! Reads a `PipelineRun` into the little that decisions need. Total: any shape of object has an answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use wfe_api::labels;
use wfe_api::limits::cut;
use wfe_core::name::{ExecutionId, RunId, Uid, Version};
use wfe_core::residue::{Residue, ResidueId, ResidueKind};
use wfe_core::run::{CancelReason, Order, Outcome, Owner, Presence, Progress, Run, Tasks};
use wfe_core::target::{ChainName, RunNumber, TargetName};

use crate::moment::{moment, parse_moment};

/// How much of a message is kept, in characters: Tekton's are one line, and a status shows them to people.
pub const MAX_MESSAGE: u32 = 1024;

/// Reads a run of a chain: one whose name is a chain's and that no controller owns. Anything else is `None`.
///
/// The order is not in the object: the caller gives the place at which its watch delivered it.
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
        cancelled: requested.is_some_and(|requested| requested != crate::PENDING),
        cancel_reason: annotation(meta, labels::ANNOTATION_CANCEL_REASON).and_then(cancel_reason),
        started: false,
        tasks: tasks(data, &progress),
        progress,
        done_seen: None,
    };
    Some((chain, run))
}

/// A task, a child run or a pod of some run of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Descendant {
    /// The chain that its run belongs to.
    pub chain: ChainName,
    /// The number of that run, where its label says it.
    pub number: Option<RunNumber>,
    /// What it is.
    pub residue: Residue,
    /// Whether it may still do something.
    pub unfinished: bool,
    /// Whether it shows that something of the run has started: a pod that left Pending, a task that has ended.
    pub started: bool,
}

/// Reads a descendant of a run: an object that has the annotations which Tekton copies from the run.
#[must_use]
pub fn observe_descendant(kind: ResidueKind, meta: &ObjectMeta, data: &Value) -> Option<Descendant> {
    let target = annotation(meta, labels::ANNOTATION_TARGET).and_then(|target| TargetName::parse(target).ok())?;
    let id = ResidueId { kind, name: meta.name.as_deref()?.into(), uid: Uid::new(meta.uid.as_deref()?) };
    let (finished, started) = match kind {
        ResidueKind::Pod => {
            let phase = data.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
            (matches!(phase, "Succeeded" | "Failed"), phase != "Pending")
        }
        ResidueKind::TaskRun | ResidueKind::CustomRun | ResidueKind::PipelineRun => {
            let done = matches!(progress(data, None), Progress::Done(_));
            // A CustomRun or a child pipeline is opaque: that it was made counts as a start.
            (done, done || kind != ResidueKind::TaskRun)
        }
    };
    let label = meta.labels.as_ref().and_then(|labels| labels.get(labels::LABEL_RUN_SEQUENCE));
    Some(Descendant {
        chain: target.chain(),
        number: label.and_then(|number| number.parse().ok()),
        residue: Residue {
            id,
            owner: owner(meta),
            created: meta.creation_timestamp.as_ref().map(moment).unwrap_or_default(),
        },
        unfinished: !finished,
        started,
    })
}

/// Reads whether Tekton says that it made something of a run. What it made, it lists in `status.childReferences`, and
/// keeps there.
fn tasks(data: &Value, progress: &Progress) -> Tasks {
    let children = data.pointer("/status/childReferences").and_then(Value::as_array);
    if children.is_some_and(|children| !children.is_empty()) {
        Tasks::Made
    } else if matches!(progress, Progress::Done(_)) {
        Tasks::NoneMade
    } else {
        Tasks::Unknown
    }
}

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// Reads why the operator cancelled a run.
fn cancel_reason(annotation: &str) -> Option<CancelReason> {
    CANCEL_REASONS.iter().find(|(_, text)| *text == annotation).map(|(reason, _)| *reason)
}

/// Returns what the annotation of a cancelled run says.
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
    let succeeded = data
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Succeeded");
    let text = |key: &str| succeeded.and_then(|condition| condition[key].as_str()).unwrap_or_default();
    match text("status") {
        status @ ("True" | "False") => Progress::Done(Outcome {
            succeeded: status == "True",
            reason: cut(text("reason"), MAX_MESSAGE).into(),
            message: cut(text("message"), MAX_MESSAGE).into(),
            completed_at: data.pointer("/status/completionTime").and_then(Value::as_str).and_then(parse_moment),
        }),
        _ if requested == Some(crate::PENDING) => Progress::Pending,
        _ => Progress::Released,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

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
    fn reads_whether_anything_was_made_of_a_run() {
        let tasks_of = |data: &Value| observe_run(&meta(NAME, &[]), data, Order(1)).unwrap().1.tasks;
        let done = json!([{"type": "Succeeded", "status": "False", "reason": "CouldntGetPipeline"}]);
        let child = json!([{"kind": "TaskRun", "name": "t"}]);
        assert_eq!(tasks_of(&json!({"status": {}})), Tasks::Unknown, "there may be some yet");
        assert_eq!(tasks_of(&json!({"status": {"conditions": done}})), Tasks::NoneMade);
        assert_eq!(tasks_of(&json!({"status": {"conditions": done, "childReferences": []}})), Tasks::NoneMade);
        assert_eq!(tasks_of(&json!({"status": {"conditions": done, "childReferences": child}})), Tasks::Made);
        assert_eq!(tasks_of(&json!({"status": {"childReferences": child}})), Tasks::Made);
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
        assert_eq!((id.to_string().as_str(), id.uid.as_str()), ("ops/fix", "u"));
    }

    #[test]
    fn reads_whether_a_descendant_is_finished_and_shows_a_start() {
        let copied = [(labels::ANNOTATION_TARGET, "node/worker-node-1"), (labels::ANNOTATION_UID, "u")];
        let mut meta = meta("some-pod", &copied);
        meta.labels = Some([(labels::LABEL_RUN_SEQUENCE.to_owned(), "2".to_owned())].into());
        let done = |status: &str| json!({"status": {"conditions": [{"type": "Succeeded", "status": status}]}});
        for (kind, data, unfinished, started) in [
            (ResidueKind::Pod, json!({"status": {"phase": "Pending"}}), true, false),
            (ResidueKind::Pod, json!({"status": {"phase": "Running"}}), true, true),
            (ResidueKind::Pod, json!({"status": {"phase": "Failed"}}), false, true),
            (ResidueKind::TaskRun, json!({}), true, false),
            (ResidueKind::TaskRun, done("Unknown"), true, false),
            (ResidueKind::TaskRun, done("False"), false, true),
            (ResidueKind::CustomRun, json!({}), true, true),
            (ResidueKind::PipelineRun, done("True"), false, true),
        ] {
            let seen = observe_descendant(kind, &meta, &data).unwrap();
            assert_eq!((seen.unfinished, seen.started, seen.number), (unfinished, started, Some(2)), "{kind:?} {data}");
            assert_eq!(seen.chain.to_string(), "ac45b7d6911e97a5");
        }
        meta.annotations = None;
        assert_eq!(observe_descendant(ResidueKind::Pod, &meta, &json!({})), None);
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
        child.owner_references = Some(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            controller: Some(true),
            ..Default::default()
        }]);
        assert!(observe_run(&child, &json!({}), Order(1)).is_none());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key =
            prop::sample::select(vec!["spec", "status", "conditions", "type", "reason", "message", "completionTime"]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(vec!["Succeeded", "True", "False", "PipelineRunPending", "x"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_shape_has_an_answer(data in any_json()) {
            let copied = meta("x", &[(labels::ANNOTATION_TARGET, "node/worker-node-1")]);
            for kind in [ResidueKind::Pod, ResidueKind::TaskRun] {
                prop_assert!(observe_descendant(kind, &copied, &data).is_some());
            }
            prop_assert!(observe_run(&meta(NAME, &[]), &data, Order(1)).is_some());
        }
    }
}
