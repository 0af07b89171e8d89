//! Compares plays of random histories with `kubectl wfe explain`. Beside each play, the statuses of the operator are
//! written. Read back, they must equal the records of the play. A new execution must be treated as `explain` says.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use kube::api::DynamicObject;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::action::{Action, Write};
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::target::TargetName;
use wfe_core::verdict::Verdict;
use wfe_operator::status::{self, Subject};
use wfe_tekton::{Descendant, rfc3339};
use wfe_view::index::{Delivery, Index, Key, Kind};
use wfe_view::observe::{conditions, observe_execution};

use super::super::play::Play;
use super::super::scenario::{Act, Scenario, uid};
use crate::installation::{Installation, Leader};
use crate::view::{Seen, take_in};

const RUNS: &str = "kubernaut-workflows";

/// The statuses that an operator would write.
#[derive(Debug, Default)]
pub(in super::super) struct Mirror(HashMap<Uid, Value>);

impl Mirror {
    /// Writes what an action writes, before the play carries it out.
    pub(in super::super) fn follow(&mut self, index: &Index, key: &Key, action: &Action, now: Time) {
        let Some(target) = index.entry(key).map(|entry| &entry.target) else { return };
        let name = target.name.as_ref();
        match action {
            Action::Write(Write { execution, says, .. }) => {
                let known = &target.executions.get(&execution.uid).unwrap();
                let shown = self.0.entry(execution.uid.clone()).or_default();
                let kept = if says.keeps_conditions() { conditions(&json!({"status": shown})) } else { Vec::new() };
                let subject = subject(known);
                let written = status::render(name, &subject, says, kept, RUNS, now);
                let ends = written.phase.is_some_and(wfe_api::Phase::is_terminal);
                let mut written = json!(written);
                if subject.gave_up && ends && written["runSequence"].is_null() {
                    written["runSequence"] = Value::Null;
                }
                merge(shown, &written);
            }
            Action::Skip { skipped, skip, .. } => {
                for (id, _) in skipped {
                    let known = target.executions.get(&id.uid).unwrap();
                    let written = status::skipped(name, &subject(known), skip, now);
                    merge(self.0.entry(id.uid.clone()).or_default(), &json!(written));
                }
            }
            _ => {}
        }
    }

    /// Returns an execution as the API server would.
    fn object(&self, execution: &Execution, target: &TargetName) -> DynamicObject {
        let id = &execution.id;
        let mut spec = json!({
            "targetResource": target.as_str(),
            "workflowRef": {"workflowId": &*execution.workflow_id, "version": "1",
                "containerImage": format!("registry.example/workflows/{}:1", execution.workflow_id)},
            "clearance": execution.clearance.as_ref().map(|it| json!({"reason": it.reason, "clearedBy": it.cleared_by})),
            "cancellation":
                execution.cancellation.as_ref().map(|it| json!({"reason": it.reason, "requestedBy": it.requested_by})),
        });
        if execution.workflow_id.starts_with("retried") {
            spec["retry"] = json!(RETRY);
        }
        if let Some(child) = &execution.child {
            spec["remediationRequestRef"] = json!({"apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
                "name": id.name.rsplit_once('-').unwrap().0, "uid": child.schedule.to_string()});
        }
        if let ExecutionState::Undecided { start_before: Some(before), .. } = &execution.state {
            spec["startBefore"] = json!(rfc3339(*before));
        }
        let object = json!({
            "metadata": {"namespace": &*id.namespace, "name": &*id.name, "uid": id.uid.to_string(), "generation": 1,
                "resourceVersion": "1", "creationTimestamp": rfc3339(execution.created)},
            "spec": spec,
            "status": self.0.get(&id.uid),
        });
        serde_json::from_value(object).unwrap()
    }
}

const RETRY: u32 = 3;

fn subject(execution: &Execution) -> Subject {
    let (run, started_at) = match &execution.state {
        ExecutionState::Running { run, started_at } => (run.clone(), *started_at),
        _ => (None, None),
    };
    let is_running = matches!(execution.state, ExecutionState::Running { .. });
    Subject {
        generation: 1,
        workflow_id: (*execution.workflow_id).into(),
        is_running,
        started_at,
        run,
        proof: execution.run_shown.proof.clone(),
        retry: execution.retry.clone(),
        gave_up: !is_running && execution.run_sequence.is_some(),
        ..Subject::default()
    }
}

/// Merges a patch, as the API server does.
fn merge(into: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else { return into.clone_from(patch) };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// Removes the fields that the index adds to a record.
fn as_read(execution: &Execution) -> Execution {
    let mut read = Execution { memory: None, paused: None, ..execution.clone() };
    // The time of a proof that was read is the time of the condition.
    if let Some(proof) = &mut read.run_shown.proof {
        proof.at = None;
    }
    if let Some(child) = &mut read.child {
        child.keep = wfe_core::schedule::Retention::Needed;
    }
    read
}

/// Builds what `explain` would see, from objects; and compares each object with the record of the play.
pub(super) fn seen(play: &Play<'_>, added: Option<&DynamicObject>) -> Seen {
    let mirror = play.mirror.as_ref().unwrap();
    let (mut objects, mut runs, mut tasks) = (added.into_iter().cloned().collect::<Vec<_>>(), Vec::new(), Vec::new());
    let mut keys: Vec<&Key> = play.index.keys().collect();
    keys.sort();
    for key in keys {
        let (Key::Chain(chain), Some(entry)) = (key, play.index.entry(key)) else { continue };
        for execution in entry.target.executions.values() {
            let object = mirror.object(execution, entry.target.name.as_ref().unwrap());
            let read = observe_execution(&object, RUNS).unwrap().execution;
            assert_eq!(as_read(&read), as_read(execution), "{}", serde_json::to_string(&object).unwrap());
            objects.push(object);
        }
        tasks.extend(entry.target.residue.values().map(|residue| {
            let task = Descendant { chain: *chain, residue: residue.clone(), unfinished: true, sighting: None };
            Delivery::Descendant(Kind::TaskRun, Box::new(task))
        }));
        runs.extend(entry.target.runs.values().map(|run| Delivery::Run(*chain, Box::new(run.clone()))));
    }
    let schedules = play.schedules.values().map(|it| Delivery::Schedule(Box::new(it.record.clone())));
    let mut index = Index::new(None);
    let mut lists = HashMap::from([(Kind::Run, runs), (Kind::TaskRun, tasks), (Kind::Schedule, schedules.collect())]);
    let executions = objects.iter().map(|it| Delivery::Execution(Box::new(observe_execution(it, RUNS).unwrap())));
    lists.insert(Kind::Execution, executions.collect());
    lists.insert(Kind::Namespace, paused(play).into_iter().collect());
    for kind in Kind::ALL {
        take_in(&mut index, kind, lists.remove(&kind).unwrap_or_default().into_iter(), play.now);
    }
    let installation = Installation {
        policy: play.scenario.policy(None).unwrap(),
        policy_of: String::new(),
        config: crate::installation::Config::default(),
        log: String::new(),
        watch_namespace: None,
        execution_namespace: RUNS.to_owned(),
        leader: Leader::Is("it".to_owned()),
        policies: crate::policies::Policies::default(),
    };
    Seen::of(index, objects, installation, play.now)
}

/// Returns the namespace with its pause, if people have paused it.
fn paused(play: &Play<'_>) -> Option<Delivery> {
    let mut acts: Vec<_> =
        play.scenario.people.iter().filter(|(at, _)| play.scenario.start + *at <= play.now).collect();
    acts.sort_by_key(|(at, _)| *at);
    let last = acts.iter().rev().find_map(|(_, act)| match act {
        Act::Pause(_) => Some(true),
        Act::Resume(_) => Some(false),
        _ => None,
    });
    last.filter(|paused| *paused).map(|_| Delivery::Namespace {
        uid: Uid::new("default"),
        name: "default".into(),
        paused: Some("a person".into()),
        leaving: false,
    })
}

/// Creates a new execution in the play, and compares how it fares with what `explain` says.
fn compare(text: &str, until: u64, target: &str, workflow: &str) -> &'static str {
    let scenario = Scenario::read(text, Path::new("")).unwrap_or_else(|fault| panic!("{fault:?} in {text}"));
    let mut play = Play::new(&scenario, &scenario.policy(None).unwrap());
    play.mirror = Some(Mirror::default());
    play.play_until(Duration::from_secs(until), false).unwrap();
    let own = Uid::new(&uid(1, 1_000_000));
    let id = ExecutionId { uid: own.clone(), namespace: "default".into(), name: "new".into() };
    let target = TargetName::parse(target).unwrap();
    let mut execution = Execution::undecided(id.clone(), wfe_core::name::Version::new("1"), play.now);
    execution.workflow_id = workflow.into();
    let object = play.mirror.as_ref().unwrap().object(&execution, &target);
    let record = observe_execution(&object, RUNS).unwrap();
    let seen = seen(&play, Some(&object));
    let answer = seen.answer(seen.target_of(&record).unwrap(), &id);

    let (key, before) = (record.key(), play.story.totals.clone());
    play.index.apply(Delivery::Execution(Box::new(record)), play.now);
    play.decide_all().unwrap();
    let fares = play.index.entry(&key).and_then(|entry| entry.target.executions.get(&own)).map(|it| &it.state);
    let skipped = play.story.totals.skipped.by_reason();
    let mut counted = skipped.iter().zip(before.skipped.by_reason()).filter(|(is, was)| is.1 > was.1);
    let counted = counted.next().map(|(is, _)| is.0);
    let verdict = answer.judgement.map(|judgement| judgement.verdict);
    let said = format!("{verdict:?}, {:?} on {text} at {until}", answer.waiting);
    match (verdict, &answer.waiting) {
        (Some(Verdict::Run), None) => {
            assert!(matches!(fares, Some(ExecutionState::Running { .. })), "{fares:?}: {said}");
            "runs"
        }
        (Some(Verdict::Skip { skip, .. }), _) => {
            assert!(fares.is_none(), "{fares:?}: {said}");
            let expected = match skip {
                wfe_core::ending::Skip::ResourceBusy(_) => "busy",
                wfe_core::ending::Skip::PreviousExecutionFailed { .. } => "blocked",
                wfe_core::ending::Skip::ExhaustedRetries { .. } => "exhausted",
                wfe_core::ending::Skip::Backoff { .. } => "backoff",
                wfe_core::ending::Skip::Cooldown { .. } => "cooldown",
            };
            assert_eq!(counted, Some(expected), "{said}");
            expected
        }
        _ => {
            assert!(matches!(fares, Some(ExecutionState::Undecided { .. })), "{fares:?}: {said}");
            "waits"
        }
    }
}

/// Draws a scenario with two targets, whose workflows fail now and then, and people who act.
fn histories() -> impl Strategy<Value = String> {
    let reason = prop::sample::select(vec!["ImagePullBackOff", "ResourceExhausted", "Forbidden", "Unknown"]);
    let fails = (reason, 1_u32..4, 0_u32..30, any::<bool>()).prop_map(|(reason, every, from, short)| {
        let after = if short { ", after: 10s" } else { "" };
        format!("{{as: {reason}, every: {every}, from: {from}m{after}}}")
    });
    let workflow = (20_u32..200, prop::collection::vec(fails, 0..3), 0_u32..2).prop_map(|(takes, fails, drains)| {
        format!("{{takes: {takes}s, drains: {}s, fails: [{}]}}", drains * 30, fails.join(", "))
    });
    let arrival = (prop::sample::select(vec!["a", "b", "retried"]), 1_u32..3, 0_u32..600, 30_u32..400, 1_u32..12)
        .prop_map(|(workflow, on, at, every, times)| {
            let retry = if workflow == "retried" { format!(", retry: {RETRY}") } else { String::new() };
            format!("- {{workflow: {workflow}, on: node/n{on}, at: {at}s, every: {every}s, times: {times}{retry}}}\n")
        });
    let act = (
        60_u32..3000,
        prop::sample::select(vec![
            "clear: node/n1",
            "clear: node/n2",
            "cancel: a-2",
            "cancel: b-1",
            "pause: default",
            "resume: default",
        ]),
    );
    let act = act.prop_map(|(at, act)| format!("- {{at: {at}s, {act}}}\n"));
    let policy = (1_u32..6, 0_u32..8, any::<bool>()).prop_map(|(most, cooldown, narrow)| {
        let scope = if narrow { "Workflow" } else { "Target" };
        format!(
            "{{base-cooldown-period: 3m, max-consecutive-failures: {most}, cooldown-period: {cooldown}m, previous-execution-failed-scope: {scope}}}"
        )
    });
    let schedule = any::<bool>().prop_map(|is| {
        let spec = "{interval: 4m, template: {spec: {targetResource: node/n1, workflowRef: {workflowId: a}}}}";
        if is { format!("schedules: [{{spec: {spec}}}]\n") } else { String::new() }
    });
    let lists = (prop::collection::vec(arrival, 1..5), prop::collection::vec(act, 0..4));
    (policy, [workflow.clone(), workflow.clone(), workflow], lists, schedule).prop_map(
        |(policy, [a, b, retried], (arrivals, acts), schedule)| {
            format!(
                "policy: {policy}\nworkflows:\n  a: {a}\n  b: {b}\n  retried: {retried}\narrive:\n{}people:\n{}{schedule}",
                arrivals.concat(),
                acts.concat()
            )
        },
    )
}

#[test]
fn a_new_execution_fares_as_explain_says_after_a_thousand_histories() {
    let mut fared: HashMap<&'static str, u32> = HashMap::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let asked = (0_u64..2400, prop::sample::select(vec!["node/n1", "node/n2"]));
    let all = (histories(), asked, prop::sample::select(vec!["a", "b", "c"]));
    for _ in 0..1000 {
        let (text, (until, target), workflow) = all.new_tree(&mut runner).unwrap().current();
        *fared.entry(compare(&text, until, target, workflow)).or_default() += 1;
    }
    for how in ["runs", "busy", "blocked", "exhausted", "backoff", "cooldown", "waits"] {
        assert!(fared.get(how).is_some_and(|times| *times >= 10), "{how} is too rare: {fared:?}");
    }
}
