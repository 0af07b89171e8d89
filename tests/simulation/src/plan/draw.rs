//! Draws a plan from a seed: some targets, several executions for each, some operations by people, and a few kinds of
//! faults.

mod limits;
mod meetings;
mod schedules;
mod triages;

use fastrand::Rng;

use super::{Act, Create, Fault, Millis, NAMESPACES, Operation, Plan, Trouble};
use crate::cluster::scripts::{VERSIONS, playable};

const SECOND: Millis = 1000;
const MINUTE: Millis = 60 * SECOND;

/// The time after the start within which people act.
const LASTS: Millis = 15 * MINUTE;
const TARGETS: [&str; 4] =
    ["payment/deployment/payment-api", "ops/statefulset/db", "node/worker-node-1", "payment/deployment/cart"];
const WORKFLOWS: [&str; 3] = ["restart", "cleanup", "scale-out"];
/// Stories that end before a step has started. Most failures that count are of this kind. Each exists for all versions
/// of Tekton.
const BEFORE_ANYTHING_RAN: [&str; 4] = ["image-pull-first", "bad-graph", "unknown-task", "no-such-story"];
/// A story whose pod never ends. Tekton fails the TaskRun, but leaves the pod, whose container the kubelet keeps trying
/// to start. The container could still run, so the next attempt waits until the pod has ended.
const DRAINS_FOR_EVER: &str = "container-config-error";
/// The retry policy of an execution with this story. Its next attempt waits for up to `maxDuration`, which is a day by
/// default.
const BOUNDED: &str = r#"{"maxAttempts": 4, "initialDelay": "5s", "maxDuration": "2m", "retryWhen": "true"}"#;
/// The resources whose watches may have faults; empty for all resources.
const WATCHED: [&str; 6] = ["", "workflowexecutions", "pipelineruns", "taskruns", "pods", "namespaces"];
/// One of this many plans has no faults. These plans show how many writes the operator needs without faults.
const CALM: u64 = 8;

/// One of this many plans has schedules.
const SCHEDULING: u64 = 3;
/// One of this many plans has executions with retry policies.
const RETRYING: u64 = 3;
/// Policies with short and long waits, with and without limits, and with conditions that are true, are false or fail.
const POLICIES: [&str; 10] = [
    "true",
    "2",
    r#"{"maxAttempts": 4, "initialDelay": "0s"}"#,
    r#"{"maxAttempts": 3, "initialDelay": "5s", "backoffMultiplier": 1.5, "jitter": true}"#,
    r#"{"initialDelay": "20s", "maxDelay": "30s", "retryExecutionFailures": true}"#,
    r#"{"maxAttempts": 5, "retryExecutionFailures": true, "retryWhen": "true"}"#,
    r#"{"maxAttempts": 4, "initialDelay": "10s", "maxDelay": "10s", "maxDuration": "35s", "retryWhen": "true"}"#,
    r#"{"retryWhen": "attempt < 2 || exitCode != 3", "retryExecutionFailures": true}"#,
    r#"{"stopWhen": "attempt == 2", "retryWhen": "reason != 'ResourceExhausted'", "initialDelay": "1m"}"#,
    r#"{"retryWhen": "100 / statusCode == 0", "retryExecutionFailures": true}"#,
];

impl Plan {
    /// Draws the plan of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut chance = Rng::with_seed(seed);
        let tekton = if chance.u8(0..4) == 0 { VERSIONS[1] } else { VERSIONS[0] };
        let mut plan = Self {
            seed,
            replicas: if chance.u8(0..4) == 0 { 1 } else { 2 },
            flags: flags(&mut chance),
            tekton: tekton.to_owned(),
            acts: Vec::new(),
            faults: Vec::new(),
        };
        let targets = &TARGETS[..chance.usize(1..=TARGETS.len())];
        let names = executions(&mut plan, targets, &mut chance);
        people(&mut plan, &names, &mut chance);
        if seed % RETRYING == 1 {
            retries(&mut plan, seed);
        }
        if !seed.is_multiple_of(CALM) {
            faults(&mut plan, &mut chance);
        }
        if seed % SCHEDULING == 2 {
            schedules::add(&mut plan, seed);
            triages::add(&mut plan, seed);
        }
        meetings::add(&mut plan, seed);
        limits::add(&mut plan, seed);
        plan.acts.sort_by_key(|act| act.at);
        plan.faults.sort_by_key(|fault| fault.from);
        plan
    }
}

fn pick<'a>(chance: &mut Rng, of: &[&'a str]) -> &'a str {
    chance.choice(of).copied().unwrap_or_default()
}

fn flags(chance: &mut Rng) -> Vec<String> {
    let choices: [(&str, &[&str]); 8] = [
        ("--cooldown-period", &["0", "30s", "5m"]),
        ("--base-cooldown-period", &["2s", "20s", "1m"]),
        ("--max-consecutive-failures", &["2", "5", "0"]),
        ("--backoff-jitter", &["0", "0.5"]),
        ("--previous-execution-failed-scope", &["Target", "Workflow"]),
        ("--failure-quiet-period", &["0", "20m"]),
        ("--pipelinerun-retention", &["24h", "2m", "5s"]),
        ("--start-deadline", &["5m", "1m", "20s"]),
    ];
    let mut flags = Vec::new();
    for (flag, values) in choices {
        flags.push(format!("{flag}={}", pick(chance, values)));
    }
    flags
}

/// Adds executions, often several for the same target at the same time, and returns their names.
fn executions(plan: &mut Plan, targets: &[&str], chance: &mut Rng) -> Vec<(String, Millis)> {
    let stories = playable(&plan.tekton).unwrap_or_default(); // an error in the fixtures is reported when they are played
    let mut names: Vec<(String, Millis)> = Vec::new();
    for number in 0..chance.usize(4..22) {
        let at = match names.last() {
            // A rival that is created at the same time, or a few seconds later.
            Some((_, before)) if chance.bool() => before + chance.u64(0..3) * chance.u64(0..2000),
            _ => chance.u64(0..LASTS),
        };
        let name = format!("{}/fix-{number}", pick(chance, &NAMESPACES));
        let story = match chance.u8(0..8) {
            0..=2 => "success",
            3..=5 => pick(chance, &BEFORE_ANYTHING_RAN),
            _ => pick(chance, &stories),
        };
        let create = Create {
            name: name.clone(),
            target: pick(chance, targets).to_owned(),
            workflow: pick(chance, &WORKFLOWS).to_owned(),
            story: story.to_owned(),
            timeout: (chance.u8(0..8) == 0).then(|| "2s".to_owned()),
            recovery_of: names.last().filter(|_| chance.u8(0..6) == 0).and_then(|(before, _)| {
                // The name of an earlier execution, if it is in the same namespace.
                let (namespace, _) = name.split_once('/')?;
                Some(before.strip_prefix(namespace)?.strip_prefix('/')?.to_owned())
            }),
            start_within: (chance.u8(0..8) == 0).then(|| chance.u32(1..60)),
            ttl: (chance.u8(0..10) == 0).then(|| chance.u32(0..120)),
            ..Create::default()
        };
        plan.acts.push(Act { at, what: Operation::Create(create) });
        names.push((name, at));
    }
    names
}

/// Adds retry policies to executions, and stories for their further attempts. These draws do not affect the rest of the
/// plan.
fn retries(plan: &mut Plan, seed: u64) {
    let mut chance = Rng::with_seed(!seed);
    let stories = playable(&plan.tekton).unwrap_or_default();
    for act in &mut plan.acts {
        let Operation::Create(create) = &mut act.what else { continue };
        if chance.u8(0..4) == 0 {
            continue;
        }
        create.retry = serde_json::from_str(pick(&mut chance, &POLICIES)).ok();
        if create.story == "success" {
            pick(&mut chance, &BEFORE_ANYTHING_RAN).clone_into(&mut create.story);
        }
        for _ in 0..chance.usize(0..3) {
            let story = match chance.u8(0..4) {
                0 | 1 => "success",
                2 => pick(&mut chance, &BEFORE_ANYTHING_RAN),
                _ => pick(&mut chance, &stories),
            };
            create.then.push(story.to_owned());
        }
        if drains_for_ever(create) {
            create.retry = serde_json::from_str(BOUNDED).ok();
        }
    }
}

/// Returns whether an attempt of an execution leaves a pod that never ends.
fn drains_for_ever(create: &Create) -> bool {
    create.then.iter().chain([&create.story]).any(|story| story == DRAINS_FOR_EVER)
}

/// Adds operations by people on executions and their runs, mostly soon after an execution is created.
fn people(plan: &mut Plan, names: &[(String, Millis)], chance: &mut Rng) {
    let deeds: [fn(String) -> Operation; 11] = [
        Operation::Delete,
        Operation::Delete,
        Operation::Cancel,
        Operation::Clear,
        Operation::Touch,
        Operation::Scribble,
        Operation::TouchRun,
        Operation::UnlabelRun,
        Operation::HoldRun,
        Operation::CancelRun,
        Operation::DeleteRun,
    ];
    for (name, created) in names {
        if chance.u8(0..3) > 0 {
            continue;
        }
        let after = if chance.bool() { chance.u64(0..300) } else { chance.u64(0..2 * MINUTE) };
        let deed = chance.choice(deeds).unwrap_or(Operation::Touch)(name.clone());
        if matches!(deed, Operation::Delete(_)) && chance.bool() {
            // The execution is created again with the same name.
            let again = plan.acts.iter().find_map(|act| match &act.what {
                Operation::Create(create) if create.name == *name => Some(create.clone()),
                _ => None,
            });
            let at = created + after + chance.u64(0..2000);
            plan.acts.extend(again.map(|create| Act { at, what: Operation::Create(create) }));
        }
        plan.acts.push(Act { at: created + after, what: deed });
    }
    // A person clears some of the executions later.
    for (name, created) in names {
        if chance.u8(0..4) == 0 {
            plan.acts
                .push(Act { at: created + chance.u64(10 * SECOND..4 * MINUTE), what: Operation::Clear(name.clone()) });
        }
    }
    if chance.u8(0..6) == 0
        && let Some((name, created)) = chance.choice(names)
    {
        let at = (created + chance.u64(0..MINUTE)).saturating_sub(30 * SECOND);
        plan.acts.push(Act { at, what: Operation::ForgeRun(name.clone()) });
    }
}

/// Draws a few kinds of faults, each at several times.
fn faults(plan: &mut Plan, chance: &mut Rng) {
    for _ in 0..chance.usize(1..5) {
        let kind = chance.u8(0..18);
        for _ in 0..chance.usize(1..4) {
            let from = chance.u64(0..LASTS);
            let to = from + if chance.bool() { chance.u64(100..20 * SECOND) } else { chance.u64(SECOND..4 * MINUTE) };
            // The fault lasts long enough for a watch to be restarted twice.
            let to = if kind == 9 && chance.bool() { from + 20 * MINUTE } else { to };
            let replica = if chance.u8(0..3) > 0 { Some(chance.u8(0..plan.replicas)) } else { None };
            let percent = [5, 20, 50, 100][chance.usize(0..4)];
            let resource = pick(chance, &WATCHED).to_owned();
            let what = match kind {
                0 => Trouble::Lost { percent },
                1 => Trouble::AnswerLost { percent },
                2 => Trouble::Doubled { percent },
                3 => Trouble::Late { percent, by: chance.u64(10..40 * SECOND) },
                4 => Trouble::Refused {
                    percent,
                    code: [429, 500, 503, 504][chance.usize(0..4)],
                    // The fault affects all verbs, or only reads. Without reads, the operator cannot confirm facts
                    // before its writes.
                    verb: if chance.bool() { "get".to_owned() } else { String::new() },
                    resource: String::new(),
                },
                5 => {
                    let (verb, resource) = [
                        ("create", "pipelineruns"),
                        ("patch", "workflowexecutions"),
                        ("get", "pods"),
                        ("list", "taskruns"),
                    ][chance.usize(0..4)];
                    Trouble::Denied { verb: verb.to_owned(), resource: resource.to_owned() }
                }
                6 => Trouble::KindMissing {
                    resource: pick(chance, &["pipelineruns", "taskruns", "customruns"]).to_owned(),
                },
                7 | 8 => Trouble::WatchLate { resource, by: chance.u64(10..30 * SECOND) },
                9 => Trouble::WatchSilent { resource },
                10 => Trouble::WatchRefused { resource, code: [403, 410, 500][chance.usize(0..3)] },
                11 | 12 => Trouble::Partition,
                13 => Trouble::Crash,
                14 => Trouble::Restart,
                15 => Trouble::Compacted,
                16 if chance.bool() => Trouble::CancelsLost,
                16 => Trouble::TektonDown,
                _ if chance.bool() => Trouble::Paused,
                _ => Trouble::NamespacePaused { namespace: pick(chance, &NAMESPACES).to_owned() },
            };
            plan.faults.push(Fault { from, to, replica, what });
        }
    }
    if chance.u8(0..8) == 0 {
        let ahead = chance.i32(-90..90);
        let replica = Some(chance.u8(0..plan.replicas));
        plan.faults.push(Fault { from: 0, to: 0, replica, what: Trouble::Clock { ahead } });
    }
}
