//! Tests the answers of `simulate --from-cluster`, word for word. Also tests that a play from the state in the middle
//! of another play continues like that play.

use std::cmp::Reverse;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::policy::Policy;
use wfe_view::index::{Index, Key, Kind};
use wfe_view::read::read;

use super::super::play::Happening;
use super::like_explain::seen as seen_in;
use super::*;
use crate::installation::{Config, Installation, Leader};
use crate::policies::Policies;
use crate::view::take_in;

const RUNS: &str = "kubernaut-workflows";

fn object(kind: &str, name: &str, spec: &Value, status: &Value) -> DynamicObject {
    let metadata = json!({
        "namespace": "ops", "name": name, "uid": format!("{kind}-{name}"), "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn of_workflow(workflow: &str, target: &str) -> Value {
    let reference = json!({"workflowId": workflow, "version": "1", "containerImage": "registry.example/w:1"});
    json!({"targetResource": target, "workflowRef": reference})
}

fn execution(name: &str, workflow: &str, status: &Value) -> DynamicObject {
    object("wfe", name, &of_workflow(workflow, "node/n"), status)
}

/// An execution that completed at a minute of the last hour, after some seconds.
fn completed(name: &str, workflow: &str, minute: u32, seconds: u32) -> DynamicObject {
    let status = json!({
        "phase": "Completed", "runSequence": minute,
        "startTime": format!("2026-01-02T11:{minute:02}:00Z"),
        "completionTime": format!("2026-01-02T11:{minute:02}:{seconds:02}Z"),
    });
    execution(name, workflow, &status)
}

/// An execution that failed at a minute of the last hour, after some seconds.
fn failed(name: &str, workflow: &str, minute: u32, seconds: u32, ran: bool) -> DynamicObject {
    let ended = format!("2026-01-02T11:{minute:02}:{seconds:02}Z");
    let status = json!({
        "phase": "Failed", "runSequence": minute, "completionTime": ended,
        "startTime": format!("2026-01-02T11:{minute:02}:00Z"),
        "failureDetails": {
            "reason": "OOMKilled", "wasExecutionFailure": ran, "failedAt": ended, "exitCode": 137,
        },
    });
    execution(name, workflow, &status)
}

fn schedule(name: &str, spec: &Value) -> DynamicObject {
    let mut spec = spec.clone();
    spec["template"] = json!({"spec": of_workflow(name, "node/n")});
    object("wfs", name, &spec, &json!({}))
}

/// Returns what is read of `node/n` at noon.
fn seen(executions: Vec<DynamicObject>, schedules: Vec<DynamicObject>) -> Seen {
    let now = "2026-01-02T12:00:00Z".parse().unwrap();
    let mut index = Index::new(None);
    let mut lists = [(Kind::Execution, executions.clone()), (Kind::Schedule, schedules.clone())];
    for kind in Kind::ALL {
        let list = lists.iter_mut().find(|(of, _)| *of == kind).map(|(_, list)| std::mem::take(list));
        take_in(&mut index, kind, list.unwrap_or_default().into_iter().filter_map(|it| read(kind, &it, RUNS)), now);
    }
    let installation = Installation {
        policy: Policy::default(),
        policy_of: "the defaults".to_owned(),
        config: Config::default(),
        log: String::new(),
        watch_namespace: None,
        execution_namespace: RUNS.to_owned(),
        leader: Leader::Nobody("no operator leads".to_owned()),
        policies: Policies::default(),
    };
    let mut seen = Seen::of(index, executions, installation, now);
    seen.schedules = schedules;
    seen
}

fn node() -> TargetName {
    TargetName::parse("node/n").unwrap()
}

/// Returns the answer for a condition, for people and for programs.
fn answers(seen: Seen, condition: &Condition, until: Duration) -> (String, Value) {
    let target = node();
    let Start { scenario, policy, ends, assumed } = Start::of(&seen, &target, condition).unwrap();
    let policy_of = seen.installation.policy_of.clone();
    let story = Play::on_target(&scenario, &policy, seen.into_index(), &target).play(until, false).unwrap();
    let (ends, assumed, policy) = (&ends, &assumed, &*policy_of);
    let outlook = Outlook { target: &target, condition, until, ends, assumed, policy, story: &story };
    (outlook.to_string(), serde_json::to_value(outlook.json()).unwrap())
}

/// A target that a failure has blocked, with a schedule that completed three times before.
fn blocked() -> Seen {
    let executions = vec![
        completed("nightly-1", "nightly", 10, 4),
        completed("nightly-2", "nightly", 15, 9),
        completed("nightly-3", "nightly", 20, 5),
        failed("broke", "restart", 30, 20, true),
    ];
    seen(executions, vec![schedule("nightly", &json!({"interval": "70m"}))])
}

#[test]
fn a_blocked_target_stays_so_until_somebody_clears_it() {
    let (told, _) = answers(blocked(), &Condition::Nothing, Duration::from_hours(3));
    assert_eq!(
        told,
        "node/n, the next 3h, if no person does anything:\n\n  \
         nightly  as 3 of the last 3 did: Completed after 5s (supposed)\n\n\
         AT                    IN     WHAT     DETAIL\n\
         2026-01-02T12:00:00Z  now    blocked  since 2026-01-02T11:30:20Z (29m ago) by ops/broke\n\
         2026-01-02T13:10:10Z  1h10m  held     ops/nightly: PreviousExecutionFailed\n\
         2026-01-02T15:00:00Z  3h     blocked  for 3h29m40s by ops/broke: kubectl wfe clear node/n --reason '...'\n\n\
         runs 0 | failed 0 | skipped 0 | held 1 | needs a person: 1 target\n\n  \
         policy       the defaults\n  \
         assumed      that an operator decides: no operator leads\n"
    );
    let (told, json) = answers(blocked(), &Condition::Cleared, Duration::from_hours(3));
    assert_eq!(
        told,
        "node/n, the next 3h, if a person clears it now:\n\n  \
         nightly  as 3 of the last 3 did: Completed after 5s (supposed)\n\n\
         AT                    IN     WHAT          DETAIL\n\
         2026-01-02T12:00:00Z  now    blocked       since 2026-01-02T11:30:20Z (29m ago) by ops/broke\n\
         2026-01-02T12:00:00Z  now    person        clears it (supposed)\n\
         2026-01-02T12:00:00Z  now    unblocked     it was blocked since 2026-01-02T11:30:20Z (29m ago)\n\
         2026-01-02T13:10:00Z  1h10m  runs x2       ops/nightly-1767359400..1767363600; last at 2026-01-02T14:20:00Z \
         (in 2h20m)\n\
         2026-01-02T13:10:05Z  1h10m  Completed x2  ops/nightly-1767359400..1767363600; last at 2026-01-02T14:20:05Z \
         (in 2h20m) (supposed)\n\n\
         runs 2 | failed 0 | skipped 0 | needs a person: nothing | last recovery 1h10m5s\n\n  \
         policy       the defaults\n  \
         assumed      that an operator decides: no operator leads\n"
    );
    let supposed = json!([{
        "workflowId": "nightly", "completes": true, "takesSeconds": 5, "message": "as 3 of the last 3 did: Completed after 5s",
    }]);
    let asked = [&json["target"], &json["if"], &json["until"], &json["supposed"]];
    assert_eq!(asked, [&json!("node/n"), &json!("cleared"), &json!("2026-01-02T15:00:00Z"), &supposed]);
    let person = &json["events"][1];
    assert_eq!((&person["what"], &person["isSupposed"]), (&json!("person"), &json!(true)));
    assert_eq!((&json["totals"]["runs"], &json["events"][3]["isSupposed"]), (&json!(2), &json!(false)));
}

#[test]
fn a_workflow_ends_as_most_of_its_last_ends() {
    let asked = |condition: &str| Condition::parse(condition).unwrap();
    let mut lines = Vec::new();
    for (past, condition) in [
        (vec![], "nothing"),
        (vec![("c", 4)], "nothing"),
        (vec![("h", 50), ("h", 50), ("c", 4), ("c", 9), ("c", 5)], "nothing"),
        (vec![("c", 4), ("h", 30), ("n", 9)], "nothing"),
        (vec![("h", 4), ("c", 9)], "nothing"),
        (vec![("c", 4), ("h", 9)], "nothing"),
        (vec![("c", 4), ("c", 9)], "workflow w fails"),
        (vec![("h", 4), ("c", 9)], "workflow w completes"),
        (vec![("h", 4)], "workflow w completes"),
        (vec![("c", 4)], "workflow other fails"),
    ] {
        let executions = (1..).zip(&past).map(|(minute, (how, seconds))| match *how {
            "c" => completed(&format!("e{minute}"), "w", minute, *seconds),
            how => failed(&format!("e{minute}"), "w", minute, *seconds, how == "h"),
        });
        let schedules = vec![schedule("w", &json!({"interval": "1h"})), schedule("other", &json!({"interval": "1h"}))];
        let seen = seen(executions.collect(), schedules);
        let start = Start::of(&seen, &node(), &asked(condition)).unwrap();
        let end = start.ends.iter().find(|end| end.workflow == "w").unwrap();
        lines.push(end.told());
    }
    assert_eq!(
        lines,
        [
            "it has not ended here yet: Completed after 1m",
            "as its one run here did: Completed after 4s",
            "as 3 of the last 3 did: Completed after 5s",
            "as 2 of the last 3 did: failed before anything ran, OOMKilled after 30s",
            "as 1 of the last 2 did: Completed after 9s",
            "as 1 of the last 2 did: failed half way, OOMKilled after 9s",
            "as --if says: failed half way, Unknown after 9s",
            "as --if says: Completed after 9s",
            "as --if says: Completed after 1m",
            "as its one run here did: Completed after 4s",
        ]
    );
}

#[test]
fn a_schedule_that_cannot_be_used_is_left_out() {
    let never = schedule("never", &json!({"cron": "0 2 31 2 *"}));
    let hourly = schedule("hourly", &json!({"interval": "1h"}));
    let (told, json) = answers(seen(vec![], vec![never, hourly]), &Condition::Nothing, Duration::from_mins(90));
    let assumed = json["assumed"][1].as_str().unwrap();
    assert!(assumed.starts_with("that the schedule never makes no run: spec.cron \"0 2 31 2 *\""), "{told}");
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("never") || line.contains("hourly-")).collect();
    assert_eq!(lines.len(), 3, "one run, its end, and the line above: {told}");
}

#[test]
fn what_cannot_be_supposed_is_refused() {
    let refused = |seen: &Seen, condition: &str, target: &str| {
        let target = TargetName::parse(target).unwrap();
        Start::of(seen, &target, &Condition::parse(condition).unwrap()).err().unwrap().to_string()
    };
    let busy = blocked();
    let ended = seen(vec![completed("a", "w", 1, 1)], vec![]);
    let said = [
        refused(&busy, "workflow nightli fails", "node/n"),
        refused(&busy, "workflow restart fails", "node/n"),
        refused(&ended, "workflow w fails", "node/n"),
        refused(&busy, "nothing", "node/m"),
    ];
    let place = "is unknown among the workflows that may run on node/n from now on";
    assert_eq!(
        said,
        [
            format!("--if: \"nightli\" {place}: did you mean \"nightly\"?"),
            format!("--if: \"restart\" {place}: there is nightly"),
            "--if: nothing on node/n is to run: no schedule, and no execution that waits or runs".to_owned(),
            "nothing on node/m is known; check the spelling: kubectl get wfe,wfs --all-namespaces".to_owned(),
        ]
    );
}

/// Plays until a time. From there, compares the rest of the play with a new play, which begins with the statuses that
/// an operator would have written by then. No execution arrives after that time.
fn goes_on(text: &str, after: u64, target: &str) {
    let scenario = scenario(text);
    let policy = scenario.policy(None).unwrap();
    let name = TargetName::parse(target).unwrap();
    let key = Key::Chain(name.chain());
    let mut play = Play::new(&scenario, &policy);
    play.mirror = Some(Mirror::default());
    play.play_until(Duration::from_secs(after), false).unwrap();
    let seen = seen_in(&play, None);
    let (after, until) = (Duration::from_secs(after), Duration::from_hours(1));
    let mut rest = scenario.clone();
    (rest.start, rest.arrivals, rest.people) = (play.now, Vec::new(), Vec::new());
    rest.schedules = play.schedules.values().filter(|it| it.record.target.as_ref() == Some(&name)).cloned().collect();
    for failing in rest.workflows.values_mut().flat_map(|workflow| &mut workflow.fails) {
        failing.from = failing.from.saturating_sub(after);
        failing.to = failing.to.map(|to| to.saturating_sub(after));
    }
    let other = Play::on_target(&rest, &policy, seen.into_index(), &name).play(until, false).unwrap();

    let others_targets = |it: &Reverse<(Time, Happening)>| !matches!(it.0.1, Happening::Arrives(..));
    play.agenda.retain(others_targets);
    play.story = Story::new(play.now, true);
    if let Some(entry) = play.index.entry(&key) {
        play.story.begins(&key, &entry.target, &policy);
    }
    play.play_until(after + until, false).unwrap();
    play.story.end(play.now, 0);
    let lines = |story: &Story| -> Vec<String> {
        let all = story.timeline.lines.iter();
        all.map(|it| format!("{} {} {} {:?} {} x{}", it.at, it.subject, it.what, it.execution, it.why, it.times))
            .collect()
    };
    assert_eq!(lines(&other), lines(&play.story), "after {after:?} of {text}");
}

#[test]
fn a_play_goes_on_from_what_another_has_written() {
    let schedule = "{interval: 4m, template: {spec: {targetResource: node/n, workflowRef: {workflowId: a}}}}";
    let schedules = format!("schedules: [{{spec: {schedule}}}]\n");
    let arrives = |workflow: &str, more: &str| {
        format!("arrive: [{{workflow: {workflow}, on: node/n, every: 100s, times: 12{more}}}]\n")
    };
    let fails = |how: &str| format!("workflows: {{a: {{takes: 50s}}, b: {{takes: 90s, fails: [{how}]}}}}\n");
    for text in [
        fails("{from: 5m, to: 9m, as: ImagePullBackOff}") + &arrives("b", "") + &schedules,
        fails("{from: 5m, as: ImagePullBackOff}") + &arrives("b", ""),
        fails("{from: 5m, exitCode: 1}") + &arrives("b", "") + &schedules,
        fails("{from: 2m, to: 8m, as: ResourceExhausted, ran: true, after: 10s}") + &arrives("b", "") + &schedules,
        "workflows: {retried: {takes: 90s, fails: [{to: 9m, as: ImagePullBackOff}]}}
"
        .to_owned()
            + &arrives("retried", ", retry: 3"),
        schedules.clone(),
    ] {
        for after in (0..1500).step_by(61) {
            goes_on(&text, after, "node/n");
        }
    }
}

#[test]
fn what_runs_now_ends_as_supposed_and_a_failure_that_is_asked_for_blocks() {
    let running = json!({
        "phase": "Running", "runSequence": 1, "startTime": "2026-01-02T11:59:50Z",
        "pipelineRunRef": {"name": "wfe-1", "uid": "run", "namespace": RUNS},
    });
    let waits = || vec![execution("busy", "restart", &json!({})), completed("one", "restart", 10, 9)];
    let (told, _) = answers(seen(waits(), vec![]), &Condition::Nothing, Duration::from_hours(1));
    assert_eq!(
        told,
        "node/n, the next 1h, if no person does anything:\n\n  \
         restart  as its one run here did: Completed after 9s (supposed)\n\n\
         AT                    IN   WHAT       DETAIL\n\
         2026-01-02T12:00:00Z  now  runs       ops/busy\n\
         2026-01-02T12:00:09Z  9s   Completed  ops/busy: cooldown of restart until 2026-01-02T12:05:09Z (in 5m9s) (supposed)\n\n\
         runs 1 | failed 0 | skipped 0 | needs a person: nothing\n\n  \
         policy       the defaults\n  \
         assumed      that an operator decides: no operator leads\n"
    );
    let (told, _) = answers(seen(waits(), vec![]), &Condition::Fails("restart".to_owned()), Duration::from_hours(1));
    assert_eq!(
        told,
        "node/n, the next 1h, if each run of restart fails:\n\n  \
         restart  as --if says: failed half way, Unknown after 9s (supposed)\n\n\
         AT                    IN   WHAT     DETAIL\n\
         2026-01-02T12:00:00Z  now  runs     ops/busy\n\
         2026-01-02T12:00:09Z  9s   failed   ops/busy: Unknown (exit 1) half way: BLOCKED, needs a person (supposed)\n\
         2026-01-02T13:00:00Z  1h   blocked  for 59m51s by ops/busy: kubectl wfe clear node/n --reason '...'\n\n\
         runs 1 | failed 1 | skipped 0 | needs a person: 1 target\n\n  \
         policy       the defaults\n  \
         assumed      that an operator decides: no operator leads\n"
    );
    let lost = vec![execution("lost", "restart", &running)];
    let (told, _) = answers(seen(lost, vec![]), &Condition::Nothing, Duration::from_hours(1));
    assert_eq!(
        told,
        "node/n, the next 1h, if no person does anything:\n\n  \
         restart  it has not ended here yet: Completed after 1m (supposed)\n\n\
         AT                    IN   WHAT     DETAIL\n\
         2026-01-02T12:00:00Z  now  runs     ops/lost: since 2026-01-02T11:59:50Z (10s ago)\n\
         2026-01-02T12:00:00Z  now  failed   ops/lost: Unknown half way: BLOCKED, needs a person\n\
         2026-01-02T13:00:00Z  1h   blocked  for 1h0m0s by ops/lost: kubectl wfe clear node/n --reason '...'\n\n\
         runs 0 | failed 1 | skipped 0 | needs a person: 1 target\n\n  \
         policy       the defaults\n  \
         assumed      that an operator decides: no operator leads\n"
    );
}
