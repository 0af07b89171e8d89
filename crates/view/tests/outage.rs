//! An hour without a registry, for two hundred schedules: index and decisions play it in virtual time (SPEC section
//! 13.9). Requests and their faults are not played here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test says what went wrong by panicking

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use wfe_core::Time;
use wfe_core::action::Action;
use wfe_core::backoff::Thousandths;
use wfe_core::decide::decide;
use wfe_core::execution::{Execution, ExecutionState, FailedState};
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::{ExecutionId, Uid, Version};
use wfe_core::policy::{CircuitPolicy, Policy};
use wfe_core::reason::FailureReason;
use wfe_core::schedule::{ChildOf, Keep, child_name};
use wfe_view::index::{CircuitNews, Delivery, ExecutionRecord, Index, Key, Kind, ScheduleRecord};
use wfe_view::read::read;

const SCHEDULES: usize = 200;
const PULL: &str = "ImagePullBackOff/registry/registry.example";

fn at(second: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

/// When the registry is down.
fn outage() -> Range<Time> {
    at(600)..at(600 + 3600)
}

struct Play {
    index: Index,
    policy: Policy,
    now: Time,
    schedules: HashMap<Uid, ScheduleRecord>,
    executions: HashMap<Uid, ExecutionRecord>,
    wakes: BTreeMap<Time, BTreeSet<Key>>,
    /// The runs that end at a time.
    ends: BTreeMap<Time, Vec<Uid>>,
    /// When runs began, of which schedule.
    runs: Vec<(Time, Uid)>,
    news: Vec<(Time, CircuitNews)>,
    version: u64,
    /// How long a run takes by the number of the run; what hangs is a probe here.
    takes: fn(&Play, usize) -> TimeDelta,
    /// Whose runs fail while the registry is down: all, or those of one namespace, whose bundle is not there.
    fails_in: Option<&'static str>,
}

impl Play {
    /// All schedules are of one namespace.
    fn new(policy: Policy) -> Self {
        Self::of(policy, 1)
    }

    /// The schedules are of so many namespaces, `ops-0` and further.
    fn of(policy: Policy, namespaces: usize) -> Self {
        let mut index = Index::new(None);
        index.rule_circuits(&policy);
        let mut schedules = HashMap::new();
        for kind in Kind::ALL {
            index.apply(Delivery::ListBegins(kind), at(0));
        }
        for n in 0..SCHEDULES {
            let image = "registry.example/w:1";
            let workflow = json!({"workflowId": "w", "version": "1", "containerImage": image});
            let object = json!({
                "metadata": {
                    "name": format!("s{n}"), "namespace": format!("ops-{}", n % namespaces),
                    "uid": format!("uid-{n}"), "resourceVersion": "1", "generation": 1,
                },
                "spec": {
                    "interval": "60s", "spread": "59s",
                    "template": {"spec": {"targetResource": format!("node/n{n}"), "workflowRef": workflow}},
                },
            });
            let read = read(Kind::Schedule, serde_json::from_value(object).unwrap(), "runs").unwrap();
            let Delivery::Schedule(record) = read else { panic!("{read:?}") };
            schedules.insert(record.schedule.id.uid.clone(), (*record).clone());
            index.apply(Delivery::Schedule(record), at(0));
        }
        for kind in Kind::ALL {
            index.apply(Delivery::ListEnds(kind), at(0));
        }
        Self {
            index,
            policy,
            now: at(0),
            schedules,
            executions: HashMap::new(),
            wakes: BTreeMap::new(),
            ends: BTreeMap::new(),
            runs: Vec::new(),
            news: Vec::new(),
            version: 1,
            takes: |_, _| TimeDelta::seconds(1),
            fails_in: None,
        }
    }

    fn play(mut self, until: Time) -> Self {
        self.settle();
        loop {
            // The tick of the engine: circuits change with time.
            let tick = self.now + TimeDelta::seconds(1);
            let next = [self.wakes.keys().next(), self.ends.keys().next()].into_iter().flatten().min();
            self.now = next.map_or(tick, |next| (*next).clamp(self.now, tick));
            if self.now > until {
                return self;
            }
            while let Some(ended) = self.ends.first_entry().filter(|it| *it.key() <= self.now) {
                ended.remove().iter().for_each(|uid| self.end(uid));
            }
            let mut woken = BTreeSet::new();
            while let Some(due) = self.wakes.first_entry().filter(|it| *it.key() <= self.now) {
                woken.extend(due.remove());
            }
            for key in &woken {
                self.decide_on(key);
            }
            self.settle();
        }
    }

    /// Decides until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..100 {
            let news = self.index.settle_circuits(self.now);
            self.news.extend(news.into_iter().map(|news| (self.now, news)));
            let dirty = self.index.take_dirty();
            if dirty.is_empty() {
                return;
            }
            for key in &dirty {
                self.decide_on(key);
            }
        }
        panic!("decisions go on without an end at {}", self.now);
    }

    fn decide_on(&mut self, key: &Key) {
        self.index.show_circuits(key);
        let Some(entry) = self.index.ready(key) else { return };
        let decision = decide(&entry.target, &self.policy, self.now);
        self.index.line_up(&decision, self.now);
        self.wakes.values_mut().for_each(|keys| {
            keys.remove(key);
        });
        if let Some(wake) = decision.wake {
            self.wakes.entry(wake).or_default().insert(key.clone());
        }
        for action in decision.actions {
            match action {
                Action::CreateChild { schedule, slot, .. } => self.make(&schedule.uid, slot),
                Action::Record(record) => {
                    self.version += 1;
                    let known = self.schedules.get_mut(&record.schedule.uid).unwrap();
                    known.schedule.status = *record.status;
                    known.schedule.version = Version::new(&self.version.to_string());
                    self.index.apply(Delivery::Schedule(known.clone().into()), self.now);
                }
                Action::Remove { execution, .. } => {
                    self.executions.remove(&execution.uid);
                    self.index.apply(Delivery::ExecutionDeleted(execution.uid), self.now);
                }
                _ => {}
            }
        }
    }

    fn make(&mut self, schedule: &Uid, slot: Time) {
        self.version += 1;
        let made_by = &self.schedules[schedule];
        let name = child_name(&made_by.schedule.id.name, slot);
        let namespace = made_by.schedule.id.namespace.clone();
        let id = ExecutionId { namespace, name: name.as_str().into(), uid: Uid::new(&name) };
        let child = ChildOf { schedule: schedule.clone(), slot, analyses: false, keep: Keep::Needed };
        let created = Time::from_timestamp(self.now.timestamp(), 0).unwrap();
        let execution = Execution {
            workflow_id: "w".into(),
            origin: made_by.schedule.origin.clone(),
            child: Some(Box::new(child)),
            state: ExecutionState::Running { run: None, started_at: Some(self.now) },
            run_sequence: Some(self.version),
            ..Execution::undecided(id, Version::new(&self.version.to_string()), created)
        };
        let record = ExecutionRecord {
            execution,
            target: made_by.target.clone(),
            generation: 1,
            request: None,
            redaction: None,
            end: None,
        };
        let uid = record.execution.id.uid.clone();
        self.ends.entry(self.now + (self.takes)(self, self.runs.len())).or_default().push(uid.clone());
        self.runs.push((self.now, schedule.clone()));
        self.executions.insert(uid, record.clone());
        self.index.apply(Delivery::Execution(record.into()), self.now);
    }

    fn end(&mut self, uid: &Uid) {
        self.version += 1;
        let ended = Some(Time::from_timestamp(self.now.timestamp(), 0).unwrap());
        let pull = Fingerprint::parse(PULL).unwrap();
        let is_shared = self.index.circuits().is_open_for(&pull, self.now);
        let Some(record) = self.executions.get_mut(uid) else { return };
        record.execution.version = Version::new(&self.version.to_string());
        let is_down = self.fails_in.is_none_or(|namespace| *record.execution.id.namespace == *namespace);
        record.execution.state = if is_down && outage().contains(&record.execution.created) {
            ExecutionState::Failed(FailedState {
                reason: FailureReason::ImagePullBackOff,
                was_execution_failure: false,
                cancelled: false,
                failed_at: ended,
                completed_at: ended,
                next_allowed_execution: None,
                fingerprint: Some(pull),
                shared_outage: is_shared,
            })
        } else {
            ExecutionState::Completed { completed_at: ended }
        };
        self.index.apply(Delivery::Execution(record.clone().into()), self.now);
    }

    /// Returns the minutes after the beginning of the outage at which runs began.
    fn runs_in(&self, span: &Range<Time>) -> Vec<Time> {
        self.runs.iter().map(|(at, _)| *at).filter(|at| span.contains(at)).collect()
    }

    fn opened_at(&self) -> Time {
        let opened = self.news.iter().find_map(|(_, news)| match news {
            CircuitNews::Opened(circuit) => Some(circuit.opened_at),
            _ => None,
        });
        opened.unwrap()
    }

    /// Returns how long after the end of the outage the last schedule had run.
    fn recovered_after(&self) -> TimeDelta {
        let first = |uid: &Uid| self.runs.iter().find(|(at, of)| of == uid && *at >= outage().end).map(|(at, _)| *at);
        let last = self.schedules.keys().map(|uid| first(uid).expect("it runs again")).max();
        last.unwrap() - outage().end
    }

    /// Returns the most runs that began within one second.
    fn most_at_once(&self, span: &Range<Time>) -> usize {
        let mut seconds: BTreeMap<i64, usize> = BTreeMap::new();
        self.runs_in(span).iter().for_each(|at| *seconds.entry(at.timestamp()).or_default() += 1);
        seconds.into_values().max().unwrap_or_default()
    }
}

fn after_it() -> Range<Time> {
    outage().end..at(600 + 3600 + 1800)
}

#[test]
fn an_outage_of_an_hour_costs_a_handful_of_runs_and_nobody_comes_at_once_after_it() {
    let play = Play::new(Policy::default()).play(after_it().end);
    let during = play.runs_in(&outage());
    let opened = play.opened_at();
    let minutes: Vec<i64> = during.iter().map(|at| (*at - opened).num_minutes()).filter(|it| *it > 0).collect();
    assert_eq!(minutes, [1, 3, 7, 15, 25, 35, 45, 55]);
    // Five open it; within the second that each run takes, three more begin.
    assert!((13..=17).contains(&during.len()), "{} runs", during.len());
    let whose: BTreeSet<&Uid> = play
        .runs
        .iter()
        .filter(|(at, _)| *at > opened + TimeDelta::seconds(9) && *at < outage().end)
        .map(|(_, uid)| uid)
        .collect();
    assert!(whose.len() > 4, "the turn goes round: {whose:?}");
    assert!(play.recovered_after() <= TimeDelta::minutes(11), "{}", play.recovered_after());
    assert!(play.most_at_once(&after_it()) <= 16, "{} at once", play.most_at_once(&after_it()));
    let closings = play.news.iter().filter(|(_, news)| matches!(news, CircuitNews::Closed(_))).count();
    let openings = play.news.iter().filter(|(_, news)| matches!(news, CircuitNews::Opened(_))).count();
    assert!(openings <= 2 && closings == openings, "{:?}", play.news);
}

/// Each namespace is held from its own first failure on, and from the fifth on all are: what is at work meanwhile fails
/// as well, in the second that each run takes.
#[test]
fn an_outage_costs_other_namespaces_no_more_than_a_failure_each() {
    for namespaces in [2, 4, 20, 200] {
        let play = Play::of(Policy::default(), namespaces).play(after_it().end);
        let (during, opened) = (play.runs_in(&outage()), play.opened_at());
        let minutes: Vec<i64> = during.iter().map(|at| (*at - opened).num_minutes()).filter(|it| *it > 0).collect();
        assert_eq!(minutes, [1, 3, 7, 15, 25, 35, 45, 55], "{namespaces} namespaces");
        assert!((13..=25).contains(&during.len()), "{} runs, {namespaces} namespaces", during.len());
        assert!(play.recovered_after() <= TimeDelta::minutes(11), "{}", play.recovered_after());
    }
}

/// A tenant lets a hundred targets fail for an hour, by a bundle that is not there. The tenant's schedules are held;
/// those of everybody else, which fetch from the same registry, have each of their runs.
#[test]
fn a_namespace_that_fails_alone_holds_nobody_else() {
    let mut play = Play::of(Policy::default(), 2);
    play.fails_in = Some("ops-0");
    let play = play.play(after_it().end);
    let runs_of = |namespace: &str| -> Vec<Time> {
        let is_of = |uid: &Uid| *play.schedules[uid].schedule.id.namespace == *namespace;
        play.runs.iter().filter(|(at, uid)| outage().contains(at) && is_of(uid)).map(|(at, _)| *at).collect()
    };
    // Until five fail in a row at the registry, with no success of somebody else between them, none is held.
    let opened = play.opened_at();
    assert!(opened < outage().start + TimeDelta::minutes(2), "{opened}");
    let minutes = runs_of("ops-0").into_iter().map(|at| (at - opened).num_minutes()).filter(|it| *it > 0);
    assert_eq!(minutes.collect::<Vec<_>>(), [1, 3, 7, 15, 25, 35, 45, 55], "it is probed as any circuit is");
    assert_eq!(runs_of("ops-1").len(), SCHEDULES / 2 * 60, "an hour, once in a minute");
}

#[test]
fn without_circuits_each_schedule_finds_out_for_itself() {
    let off = CircuitPolicy { outage_targets: 0, breaker_threshold: Thousandths::ZERO, ..CircuitPolicy::default() };
    let play = Play::new(Policy { circuits: off, ..Policy::default() }).play(after_it().end + Duration::from_mins(10));
    assert!(play.news.is_empty());
    assert!(play.runs_in(&outage()).len() >= SCHEDULES * 5, "{}", play.runs_in(&outage()).len());
}

#[test]
fn a_probe_that_hangs_delays_the_next_by_one_wait() {
    let mut play = Play::new(Policy::default());
    play.takes = |play, _| {
        let is_first_probe = play.news.len() == 1 && play.index.circuits().open().any(|it| it.failed_probes == 0);
        TimeDelta::seconds(if is_first_probe && play.index.circuits().open().all(|it| it.next_probe_at <= play.now) {
            7200
        } else {
            1
        })
    };
    let play = play.play(outage().end);
    let opened = play.opened_at();
    let minutes: Vec<i64> =
        play.runs_in(&outage()).iter().map(|at| (*at - opened).num_minutes()).filter(|it| *it > 0).collect();
    // As long as none has failed, each wait is the first one.
    assert_eq!(minutes[..3], [1, 2, 3]);
}
