//! What must hold for every play of every plan. The auditor judges the records of the server. Each decision is checked
//! a second time, and so is the final state.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use wfe_auditor::silence::{self, TOLD_WITHIN};
use wfe_auditor::{Change, ChangeType, Options, Policy, Request, audit};
use wfe_core::Time;
use wfe_core::check;
use wfe_core::target::{Target, TargetName};
use wfe_operator::clock::Clock;
use wfe_operator::engine::observer::{Decided, DecisionObserver};

use crate::network::OPERATOR;
use crate::plan::{Millis, Plan, Trouble};
use crate::record::Record;
use crate::server::Server;
use crate::service::FakeApi;
use crate::users::{self, executions_in, schedules_in};

/// The kinds that the auditor reads.
const AUDITED: [&str; 7] =
    ["WorkflowExecution", "WorkflowSchedule", "Namespace", "PipelineRun", "TaskRun", "CustomRun", "Pod"];

/// A replica is in a busy loop if it makes this many decisions within a second on the same view of a target. Some
/// repetitions are legal: the changes of a task's pods may add nothing to the view.
const ON_ONE_VIEW: u32 = 20;

/// How many writes one execution may need without faults:
/// - its run is created, committed to, released and deleted;
/// - the status records Running, progress (twice), the end, the free target, and a block or its clearance;
/// - three events report this.
const WRITES_EACH: u64 = 14;
/// How many writes each further attempt may need: its record, its run, the commit, the release, progress (twice), the
/// deletion of its run, and three events.
const WRITES_AGAIN: u64 = 10;
/// How long an execution may wait for its first status if only watches have faults. A silent watch is restarted after
/// three minutes. The limit is twice that time, plus a reserve.
const UNSEEN: chrono::TimeDelta = chrono::TimeDelta::minutes(10);

/// How long an execution may wait for its first status if nothing delays the operator. The operator reports a wait
/// after ten seconds, and the rest is reserve.
const TOLD: chrono::TimeDelta = chrono::TimeDelta::seconds(20);
/// How long a fault, or the start, may still delay the operator afterwards: a silent watch is restarted after three
/// minutes.
const AFTERMATH: chrono::TimeDelta = chrono::TimeDelta::minutes(4);

/// Judges two properties that depend on the plan: the number of writes without faults, and whether an execution was
/// overlooked.
pub fn judge_course(plan: &Plan, server: &Server, (begin, end): (Time, Time), record: &Record, created: u64) {
    let again = attempts_again(server);
    let allowed = created * WRITES_EACH + again * WRITES_AGAIN + writes_of_schedules(server);
    if plan.faults.is_empty() && record.writes() > allowed {
        let writes = record.writes();
        record
            .broken(format!("{created} executions and {again} retries took {writes} writes though nothing went wrong"));
    }
    let only_watches_fail = plan.faults.iter().all(|fault| fault.what.is_about_watches());
    let hinders = |from: Time, to: Time| {
        let at = |millis: Millis| begin + chrono::TimeDelta::milliseconds(millis.cast_signed());
        let mut hindering = plan.faults.iter().filter(|fault| !fault.what.leaves_statuses());
        from - begin < AFTERMATH || hindering.any(|fault| at(fault.from) <= to && from <= at(fault.to) + AFTERMATH)
    };
    judge_silence(plan, server, end, hinders, record);
    let mut unseen: BTreeMap<String, Time> = BTreeMap::new();
    for (_, change) in server.archive().filter(|(kind, _)| kind.kind == "WorkflowExecution") {
        let Some(object) = change.is.as_deref().or(change.was.as_deref()) else { continue };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        if change.was.is_none() {
            unseen.insert(uid, change.at);
        } else if (change.is.is_none() || object["status"].is_object())
            && let Some(created) = unseen.remove(&uid)
        {
            let waited = change.at - created;
            let is_overlooked = only_watches_fail && waited > UNSEEN;
            if is_overlooked || waited > TOLD && !hinders(created, change.at) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                record.broken(format!("execution {name} had no status for {} seconds", waited.num_seconds()));
            }
        }
    }
}

/// Judges waits that the status does not report, unless a fault delayed the operator at the time. If a clock is wrong,
/// nothing is judged, because every deadline may be late.
fn judge_silence(plan: &Plan, server: &Server, end: Time, hinders: impl Fn(Time, Time) -> bool, record: &Record) {
    if plan.faults.iter().any(|fault| matches!(fault.what, Trouble::Clock { .. })) {
        return;
    }
    let versions = server.archive().map(|(kind, change)| {
        let object = change.is.as_deref();
        let uid = object.or(change.was.as_deref()).and_then(|it| it["metadata"]["uid"].as_str()).unwrap_or_default();
        silence::Version { at: change.at, kind: &kind.kind, uid, object }
    });
    let was_calm = |until: Time| !hinders(until - TOLD_WITHIN, until);
    for lasted in silence::lasted(versions, end) {
        // A fault delays overdue work until the fault is over. The state has lasted too long if no fault delayed the
        // operator just before the state's limit, or just before its end.
        if was_calm(lasted.late) || was_calm(lasted.until) {
            record.broken(lasted.to_string());
        }
    }
}

/// Counts the writes that schedules may need without faults:
/// - a child is created, named and recorded;
/// - a new plan, or a person's change, is written once;
/// - the beginning and end of a hold, and the results of a triage, are written and reported.
fn writes_of_schedules(server: &Server) -> u64 {
    let held = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.filter(|it| it["type"] == "Held").map(|it| it["reason"].clone()).next()
    };
    let mut allowed = 0;
    for (kind, change) in server.archive() {
        let Some(is) = change.is.as_deref() else { continue };
        let was = change.was.as_deref().unwrap_or(&Value::Null);
        let is_new = |field: &str| was["status"][field] != is["status"][field];
        allowed += match kind.kind.as_str() {
            "WorkflowExecution" if was.is_null() && is["spec"]["remediationRequestRef"].is_object() => 3,
            "WorkflowSchedule" if was["spec"] != is["spec"] => 2,
            "WorkflowSchedule" if held(was) != held(is) => 2,
            "WorkflowSchedule" if is_new("triage") => 2,
            "WorkflowSchedule" if is_new("plannedFrom") || is_new("lastMissed") => 2,
            _ => 0,
        };
    }
    allowed
}

/// Counts all attempts except the first attempt of each execution.
fn attempts_again(server: &Server) -> u64 {
    let mut most: BTreeMap<String, usize> = BTreeMap::new();
    for (_, change) in server.archive().filter(|(kind, _)| kind.kind == "WorkflowExecution") {
        let Some(object) = change.is.as_deref() else { continue };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let attempts = object["status"]["attempts"].as_array().map_or(0, Vec::len);
        let known = most.entry(uid.to_owned()).or_default();
        *known = attempts.max(*known);
    }
    most.values().map(|attempts| attempts.saturating_sub(1) as u64).sum()
}

/// Returns an observer that judges every decision of a replica when it is made.
#[must_use]
pub fn observer(replica: u8, clock: Clock, record: Record) -> DecisionObserver {
    let views: Mutex<BTreeMap<String, View>> = Mutex::default();
    DecisionObserver::new(move |decided: Decided<'_>| {
        let target = decided.target.name.as_ref().map_or("(no target)", TargetName::as_str);
        let left = decided.decision.wake.map(|wake| (wake - decided.now).to_std().unwrap_or_default());
        record.decided(target, left.and_then(|left| Instant::now().checked_add(left)));
        for violation in check::violations(decided.target, decided.policy, decided.now, decided.decision) {
            let check::Violation { section, what } = violation;
            record.broken(format!("replica {replica}: a decision on {target} violates section {section}: {what}"));
        }
        if decided.target.name.is_some() {
            record.viewed(target, held(decided.target));
        }
        let second = clock.now().timestamp();
        let mut hasher = DefaultHasher::new();
        format!("{:?}", decided.target).hash(&mut hasher);
        let seen = hasher.finish();
        let mut views = views.lock().unwrap_or_else(PoisonError::into_inner);
        let view = views.entry(target.to_owned()).or_default();
        if (view.seen, view.second) == (seen, second) {
            view.decided += 1;
        } else {
            *view = View { seen, second, decided: 1 };
        }
        if view.decided == ON_ONE_VIEW {
            record.broken(format!(
                "replica {replica}: decided on {target} {ON_ONE_VIEW} times within a second, and saw the same each time"
            ));
        }
    })
}

/// Returns how old the view for a child's creation may be, including the duration of the request. A silent watch is
/// restarted after three minutes, and a request may be forty seconds late.
fn lag(plan: &Plan) -> Duration {
    let is_harmless = |what: &Trouble| {
        matches!(
            what,
            Trouble::Paused
                | Trouble::NamespacePaused { .. }
                | Trouble::TektonDown
                | Trouble::CancelsLost
                | Trouble::RegistryDown { .. }
                | Trouble::Doubled { .. }
        )
    };
    let is_calm = plan.faults.iter().all(|fault| is_harmless(&fault.what));
    if is_calm { Duration::from_secs(5) } else { Duration::from_mins(6) }
}

/// Lists the objects in a target's view, with their versions if the view contains them.
fn held(target: &Target) -> BTreeSet<String> {
    let executions = target.executions.values().map(|it| format!("{} {}", it.id, it.version.as_str()));
    let runs = target.runs.values().map(|it| format!("{} {}", it.id, it.version.as_str()));
    let residue = target.residue.values().map(|it| format!("{} {}", it.id.kind.as_str(), it.id.name));
    let schedules = target.schedules.values().map(|it| {
        let children: Vec<String> = it.children.iter().map(|child| child.slot.timestamp().to_string()).collect();
        format!("{} {} with {}", it.id, it.version.as_str(), children.join(" "))
    });
    executions.chain(runs).chain(residue).chain(schedules).collect()
}

/// Compares the views of the last decisions with the lists of the newcomer, a replica that starts when the world is at
/// rest.
pub fn judge_views(record: &Record, newcomer: &Record) {
    let known = record.views();
    for (target, (listed, _)) in newcomer.views() {
        let Some((_, last)) = known.get(&target) else { continue };
        let lacks: Vec<&String> = listed.difference(last).collect();
        let keeps: Vec<&String> = last.difference(&listed).collect();
        if !lacks.is_empty() || !keeps.is_empty() {
            record.broken(format!(
                "at rest, the view of {target} is not what a list has: it lacks {lacks:?}, and has {keeps:?}"
            ));
        }
    }
}

/// The view of a replica's last decision on a target, and how often the replica has decided on it.
#[derive(Default)]
struct View {
    seen: u64,
    second: i64,
    decided: u32,
}

/// Judges the whole play when everything is at rest. `policy` is `None` if a replica's clock is wrong.
#[must_use]
pub fn judge(
    plan: &Plan,
    server: &Server,
    begin: Time,
    policy: Option<Policy>,
    record: &Record,
) -> BTreeMap<String, u64> {
    let changes: Vec<Change> = server
        .archive()
        .filter(|(kind, _)| AUDITED.contains(&kind.kind.as_str()))
        .filter_map(|(kind, change)| {
            let (was, is) = (change.was.as_deref(), change.is.as_deref());
            let what = match (was, is) {
                (None, Some(_)) => ChangeType::Added,
                (Some(_), Some(_)) => ChangeType::Modified,
                (_, None) => ChangeType::Deleted,
            };
            Some(Change {
                kind: kind.kind.clone(),
                change: what,
                resource_version: change.revision,
                at_ms: u64::try_from((change.at - begin).num_milliseconds()).unwrap_or_default(),
                object: is.or(was)?.clone(),
            })
        })
        .collect();
    // The server's log lacks a request that did not arrive. The auditor needs to know it: after a failed release, the
    // operator may delete the run.
    let unpatched = record.unpatched_runs().into_iter().map(|((namespace, name), code)| Request {
        verb: "patch".to_owned(),
        user: OPERATOR.to_owned(),
        group: "tekton.dev".to_owned(),
        resource: "pipelineruns".to_owned(),
        namespace,
        name,
        code: i64::from(code),
        ..Request::default()
    });
    let requests: Vec<Request> = server
        .audit_log()
        .iter()
        .filter(|entry| !matches!(entry.verb, "watch" | "list"))
        .map(|entry| Request {
            verb: entry.verb.to_owned(),
            user: entry.user.clone(),
            group: entry.group.clone(),
            resource: entry.resource.clone(),
            subresource: entry.subresource.to_owned(),
            namespace: entry.namespace.clone(),
            name: entry.name.clone(),
            code: i64::from(entry.code),
            resource_version: entry.response["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()),
            request: entry.request.clone(),
            response: entry.response.clone(),
            received_at: entry.at.to_rfc3339(),
        })
        .chain(unpatched)
        .collect();
    let are_clocks_right = policy.is_some();
    let options = Options { operators: BTreeSet::from([OPERATOR.to_owned()]), settled: true, policy, lag: lag(plan) };
    let report = audit(&changes, &requests, &options);
    // A replica whose clock is wrong may delete too early by the clock of the server.
    let is_early = |rule: &str| matches!(rule, "removed-early" | "deleted-early");
    for violation in report.violations.iter().filter(|it| are_clocks_right || !is_early(it.rule)) {
        record.broken(violation.to_string().trim_end());
    }
    for gap in &report.gaps {
        record.broken(format!("the recording is incomplete: {gap}"));
    }
    report.counts.iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Returns the final state of each execution: name, phase and reason.
#[must_use]
pub fn standing(api: &FakeApi, namespaces: &[&str]) -> Vec<String> {
    let executions = namespaces.iter().flat_map(|namespace| api.all(&executions_in(namespace)));
    let lines = executions.map(|execution| {
        let conditions = execution["status"]["conditions"].as_array();
        let succeeded = conditions.and_then(|all| all.iter().find(|it| it["type"] == "Succeeded"));
        let text = |value: &Value| value.as_str().unwrap_or("(none)").to_owned();
        let (meta, phase) = (&execution["metadata"], text(&execution["status"]["phase"]));
        let reason = succeeded.map_or_else(|| "(none)".to_owned(), |it| text(&it["reason"]));
        format!("{}/{} {phase} {reason}", text(&meta["namespace"]), text(&meta["name"]))
    });
    let schedules = namespaces.iter().flat_map(|namespace| api.all(&schedules_in(namespace)));
    lines.chain(schedules.map(|schedule| standing_of_schedule(&schedule))).collect()
}

/// Returns the final state of a schedule: its consecutive failures, its last outcome, and what holds it.
fn standing_of_schedule(schedule: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("(none)").to_owned();
    let (meta, status) = (&schedule["metadata"], &schedule["status"]);
    let held = status["conditions"].as_array().and_then(|all| all.iter().find(|it| it["type"] == "Held"));
    let held = held.map_or_else(|| "(none)".to_owned(), |held| text(&held["reason"]));
    let failures = status["failureCount"].as_u64().unwrap_or(0);
    let last = text(&status["lastRun"]["outcome"]);
    let triage = &status["triage"];
    let triage = triage["state"].as_str().map_or_else(String::new, |state| {
        format!(", triage {state} by {} verdict {}", text(&triage["analyst"]), text(&triage["verdict"]))
    });
    format!(
        "schedule {}/{} {failures} failures, last {last}, held {held}{triage}",
        text(&meta["namespace"]),
        text(&meta["name"])
    )
}

/// Returns a description of everything that is not at rest.
#[must_use]
pub fn unrest(api: &FakeApi, namespaces: &[&str]) -> Vec<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for execution in namespaces.iter().flat_map(|namespace| api.all(&executions_in(namespace))) {
        let phase = execution["status"]["phase"].as_str().unwrap_or("(none)");
        if !matches!(phase, "Completed" | "Failed" | "Skipped") {
            let why = &execution["status"]["conditions"][0]["message"];
            found.push(format!("{} is {phase}: {why}", name(&execution)));
        }
    }
    for run in api.all(&users::runs()) {
        let is_ours = !run["metadata"]["annotations"].is_null();
        if is_ours && !is_finished(&run) {
            found.push(format!("PipelineRun {} is unfinished", name(&run)));
        }
    }
    found
}

fn is_finished(run: &Value) -> bool {
    let conditions = run["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == "Succeeded" && it["status"] != "Unknown"))
}
