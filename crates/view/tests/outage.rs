//! Simulates failures that many targets share (section 13.5), with 200 schedules in a few seconds. It tests what
//! circuits save, and that healthy schedules lose nothing. The index and the decisions are the real ones; a run is only
//! an entry that ends. `docs/testing-records.md` lists the numbers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_core::action::{Action, TriageDoes};
use wfe_core::backoff::Thousandths;
use wfe_core::decide::decide;
use wfe_core::execution::{Execution, ExecutionState, FailedState};
use wfe_core::fingerprint::{Fingerprint, Origin};
use wfe_core::history::History;
use wfe_core::name::{ExecutionId, Uid, Version};
use wfe_core::policy::{CircuitPolicy, Policy};
use wfe_core::reason::FailureReason;
use wfe_core::schedule::{ChildOf, RefusedChild, Retention, child_name};
use wfe_core::target::TargetName;
use wfe_view::index::{CircuitNews, Delivery, ExecutionRecord, Index, Key, Kind, Learned, ScheduleRecord};
use wfe_view::read::read;

const SCHEDULES: usize = 200;
const PULL: &str = "ImagePullBackOff/registry/registry.example";
const IMAGE: &str = "registry.example/w:1";
/// When probes occur in an outage of an hour, in minutes after the circuit opened. The first probe is due after one
/// minute, but every schedule waits for two minutes after its first failure.
const PROBES: [i64; 8] = [2, 4, 8, 16, 26, 36, 46, 56];

fn at(second: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

/// Returns the time in which the registry is down.
fn outage() -> Range<Time> {
    at(600)..at(600 + 3600)
}

fn after_it() -> Range<Time> {
    outage().end..at(600 + 3600 + 1800)
}

fn without_circuits() -> Policy {
    let off = CircuitPolicy { outage_targets: 0, breaker_threshold: Thousandths::ZERO, ..CircuitPolicy::default() };
    Policy { circuits: off, ..Policy::default() }
}

/// The start of an execution.
struct Begins {
    /// The number of its schedule; or of its target, if an orchestrator created it.
    of: usize,
    /// How many executions this schedule or target had before.
    before: usize,
    at: Time,
}

type Fails = Box<dyn Fn(&Begins) -> bool>;

struct Play {
    index: Index,
    policy: Policy,
    now: Time,
    schedules: HashMap<Uid, (usize, ScheduleRecord)>,
    executions: HashMap<Uid, (Begins, ExecutionRecord)>,
    wakes: BTreeMap<Time, BTreeSet<Key>>,
    /// The runs that end at each time.
    ends: BTreeMap<Time, Vec<Uid>>,
    /// When each run began, and for which schedule or target.
    runs: Vec<(Time, usize)>,
    /// How many runs each schedule or target had.
    count: HashMap<usize, usize>,
    /// When the evidence for a triage was first requested, by schedule.
    triaged: BTreeMap<usize, Time>,
    /// Since when a triage is due, by schedule.
    due: BTreeMap<usize, Time>,
    /// The longest time between a triage becoming due and the request for its evidence.
    longest_due: TimeDelta,
    news: Vec<(Time, CircuitNews)>,
    version: u64,
    fails: Fails,
    /// The API server refuses the executions of this many schedules, counted from the first, once the outage has begun.
    refused: usize,
    /// How long a run takes.
    takes: fn(&Play) -> TimeDelta,
    /// How many targets an orchestrator keeps trying.
    orchestrated: usize,
    exhausted: BTreeSet<usize>,
}

impl Play {
    /// Makes a simulation of two hundred schedules with a slot every minute, all in one namespace.
    fn new(policy: Policy, fails: impl Fn(&Begins) -> bool + 'static) -> Self {
        let every = json!({"interval": "60s", "spread": "59s"});
        Self::of(policy, SCHEDULES, &every, |_| 0, fails)
    }

    /// Makes a simulation of this many schedules with this plan. `namespace` returns the number of the namespace of the
    /// n-th schedule.
    fn of(
        policy: Policy,
        schedules: usize,
        every: &Value,
        namespace: impl Fn(usize) -> usize,
        fails: impl Fn(&Begins) -> bool + 'static,
    ) -> Self {
        let mut play = Self {
            index: Index::new(None),
            policy,
            now: at(0),
            schedules: HashMap::new(),
            executions: HashMap::new(),
            wakes: BTreeMap::new(),
            ends: BTreeMap::new(),
            runs: Vec::new(),
            count: HashMap::new(),
            triaged: BTreeMap::new(),
            due: BTreeMap::new(),
            longest_due: TimeDelta::zero(),
            news: Vec::new(),
            version: 1,
            fails: Box::new(fails),
            refused: 0,
            takes: |_| TimeDelta::seconds(1),
            orchestrated: 0,
            exhausted: BTreeSet::new(),
        };
        play.index.set_circuit_policy(&play.policy);
        for kind in Kind::ALL {
            play.index.apply(Delivery::ListBegins(kind), at(0));
        }
        for n in 0..schedules {
            let workflow = json!({"workflowId": "w", "version": "1", "containerImage": IMAGE});
            let mut object = json!({
                "metadata": {
                    "name": format!("s{n}"), "namespace": format!("ops-{}", namespace(n)),
                    "uid": format!("uid-{n}"), "resourceVersion": "1", "generation": 1,
                },
                "spec": {"template": {"spec": {"targetResource": format!("node/n{n}"), "workflowRef": workflow}}},
            });
            object["spec"].as_object_mut().unwrap().extend(every.as_object().unwrap().clone());
            let read = read(Kind::Schedule, &serde_json::from_value(object).unwrap(), "runs").unwrap();
            let Delivery::Schedule(record) = read else { panic!("{read:?}") };
            play.schedules.insert(record.schedule.id.uid.clone(), (n, (*record).clone()));
            play.index.apply(Delivery::Schedule(record), at(0));
        }
        for kind in Kind::ALL {
            play.index.apply(Delivery::ListEnds(kind), at(0));
        }
        play
    }

    fn play(mut self, until: Time) -> Self {
        self.settle();
        loop {
            // The tick of the engine: circuits can change with time alone.
            let tick = self.now + TimeDelta::seconds(1);
            let next = [self.wakes.keys().next(), self.ends.keys().next()].into_iter().flatten().min();
            self.now = next.map_or(tick, |next| (*next).clamp(self.now, tick));
            if self.now > until {
                return self;
            }
            let untold = self.due.iter().filter(|(n, _)| !self.triaged.contains_key(n)).map(|(_, due)| self.now - *due);
            self.longest_due = untold.chain([self.longest_due]).max().unwrap_or_default();
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
            // The orchestrator creates an execution for each target once a minute, one target after the other.
            let turn = usize::try_from(self.now.timestamp() % 60).unwrap();
            if self.now.timestamp_subsec_millis() == 0 {
                (0..self.orchestrated).filter(|n| n % 60 == turn).for_each(|n| self.orchestrate(n));
            }
            self.settle();
        }
    }

    /// Makes decisions until nothing changes.
    fn settle(&mut self) {
        for _ in 0..100 {
            let news = self.index.update_circuits(self.now);
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
        self.index.queue_probes(&decision, self.now);
        self.wakes.values_mut().for_each(|keys| {
            keys.remove(key);
        });
        if let Some(wake) = decision.wake {
            self.wakes.entry(wake).or_default().insert(key.clone());
        }
        for action in decision.actions {
            match action {
                Action::CreateChild { schedule, slot, .. } => {
                    let (n, _) = self.schedules[&schedule.uid];
                    if n < self.refused && self.now >= outage().start {
                        self.runs.push((self.now, n));
                        let refused = RefusedChild { slot, message: "a quota is used up".into() };
                        self.index.learn(key, Learned::ChildRefused(schedule.uid, refused), self.now);
                        self.decide_on(key); // as the engine does after it has learned something
                    } else {
                        self.make(&schedule.uid, slot);
                    }
                }
                Action::Record(record) => {
                    self.version += 1;
                    let (n, known) = self.schedules.get_mut(&record.schedule.uid).unwrap();
                    if record.status.failure_count < known.schedule.triage.after {
                        self.due.remove(n);
                    } else {
                        self.due.entry(*n).or_insert(self.now);
                    }
                    known.schedule.status = *record.status;
                    known.schedule.version = Version::new(&self.version.to_string());
                    self.index.apply(Delivery::Schedule(known.clone().into()), self.now);
                }
                Action::Remove { execution, .. } => {
                    self.executions.remove(&execution.uid);
                    self.index.apply(Delivery::ExecutionDeleted(execution.uid), self.now);
                }
                Action::Triage(step) if matches!(step.does, TriageDoes::Gather(_)) => {
                    let (n, _) = self.schedules[&step.schedule.uid];
                    self.triaged.entry(n).or_insert(self.now);
                }
                _ => {}
            }
        }
    }

    fn make(&mut self, schedule: &Uid, slot: Time) {
        let (n, made_by) = &self.schedules[schedule];
        let (n, target, origin) = (*n, made_by.target.clone(), made_by.schedule.origin.clone());
        let name = child_name(&made_by.schedule.id.name, slot);
        let namespace = made_by.schedule.id.namespace.clone();
        let id = ExecutionId { namespace, name: name.as_str().into(), uid: Uid::new(&name) };
        let child = ChildOf { schedule: schedule.clone(), slot, analyses: false, keep: Retention::Needed };
        self.run(n, id, target, origin, Some(Box::new(child)));
    }

    /// Lets the orchestrator create an execution for a target again as soon as the rules allow it.
    fn orchestrate(&mut self, n: usize) {
        let target = TargetName::parse(&format!("node/n{n}")).unwrap();
        if let Some(entry) = self.index.entry(&Key::Chain(target.chain())) {
            let history = History::of(&entry.target, &self.policy, self.now);
            if history.exhausted(&self.policy, self.now).is_some() {
                self.exhausted.insert(n);
                return;
            }
            let latest = history.latest().filter(|past| past.backs_off());
            let next = latest.and_then(|past| history.next_allowed(past, &self.policy, entry.target.label()));
            if next.is_some_and(|next| self.now < next) {
                return;
            }
        }
        let name = format!("o{n}-{}", self.version);
        let id = ExecutionId { namespace: "ops-0".into(), name: name.as_str().into(), uid: Uid::new(&name) };
        self.run(n, id, Some(target), Arc::new(Origin::new("w", "1", IMAGE)), None);
    }

    fn run(
        &mut self,
        of: usize,
        id: ExecutionId,
        target: Option<TargetName>,
        origin: Arc<Origin>,
        child: Option<Box<ChildOf>>,
    ) {
        self.version += 1;
        let created = Time::from_timestamp(self.now.timestamp(), 0).unwrap();
        let execution = Execution {
            workflow_id: "w".into(),
            origin,
            child,
            state: ExecutionState::Running { run: None, started_at: Some(self.now) },
            run_sequence: Some(self.version),
            ..Execution::undecided(id, Version::new(&self.version.to_string()), created)
        };
        let record = ExecutionRecord { execution, target, generation: 1, request: None, redaction: None, end: None };
        let uid = record.execution.id.uid.clone();
        let takes = (self.takes)(self);
        self.ends.entry(self.now + takes).or_default().push(uid.clone());
        let count = self.count.entry(of).or_default();
        let before = std::mem::replace(count, *count + 1);
        self.runs.push((self.now, of));
        self.executions.insert(uid, (Begins { of, before, at: created }, record.clone()));
        self.index.apply(Delivery::Execution(record.into()), self.now);
    }

    fn end(&mut self, uid: &Uid) {
        self.version += 1;
        let ended = Some(Time::from_timestamp(self.now.timestamp(), 0).unwrap());
        let pull = Fingerprint::parse(PULL).unwrap();
        let is_open = self.index.circuits().is_open_for(&pull, self.now);
        let Some((begins, record)) = self.executions.get_mut(uid) else { return };
        record.execution.version = Version::new(&self.version.to_string());
        record.execution.state = if (self.fails)(begins) {
            ExecutionState::Failed(FailedState {
                reason: FailureReason::ImagePullBackOff,
                was_execution_failure: false,
                cancelled: false,
                failed_at: ended,
                completed_at: ended,
                next_allowed_execution: None,
                fingerprint: Some(pull),
                shared_outage: is_open && record.execution.child.is_none(),
            })
        } else {
            let ExecutionState::Running { started_at, .. } = record.execution.state else { panic!("{record:?}") };
            ExecutionState::Completed { started_at, completed_at: ended }
        };
        self.index.apply(Delivery::Execution(record.clone().into()), self.now);
    }

    /// Returns when the runs of these schedules began within a span of time.
    fn runs_of(&self, which: Range<usize>, span: &Range<Time>) -> Vec<Time> {
        let is_in = |(at, of): &&(Time, usize)| which.contains(of) && span.contains(at);
        self.runs.iter().filter(is_in).map(|(at, _)| *at).collect()
    }

    fn opened_at(&self) -> Time {
        let opened = self.news.iter().find_map(|(_, news)| match news {
            CircuitNews::Opened(circuit) => Some(circuit.opened_at),
            _ => None,
        });
        opened.expect("a circuit opened")
    }

    fn openings(&self) -> usize {
        self.news.iter().filter(|(_, news)| matches!(news, CircuitNews::Opened(_))).count()
    }

    /// Returns the time from the end of the outage until every schedule had run again.
    fn recovered_after(&self) -> TimeDelta {
        let first = |n: usize| self.runs.iter().find(|(at, of)| *of == n && *at >= outage().end).map(|(at, _)| *at);
        let last = (0..self.schedules.len()).map(|n| first(n).expect("it runs again")).max();
        last.unwrap() - outage().end
    }

    /// Returns the largest number of runs that began within one second.
    fn most_at_once(&self, span: &Range<Time>) -> usize {
        let mut seconds: BTreeMap<i64, usize> = BTreeMap::new();
        for at in self.runs_of(0..usize::MAX, span) {
            *seconds.entry(at.timestamp()).or_default() += 1;
        }
        seconds.into_values().max().unwrap_or_default()
    }
}

/// Returns whether the random draw for this run is within `percent`. The same run always gets the same draw.
fn falls_among(percent: u64, begins: &Begins) -> bool {
    let mut hasher = DefaultHasher::new(); // without a random seed, so the same in each process
    (begins.of, begins.before).hash(&mut hasher);
    hasher.finish() % 100 < percent
}

#[test]
fn an_outage_of_an_hour_costs_each_a_failure_and_eight_probes() {
    for namespaces in [1, 4, 200] {
        let every = json!({"interval": "60s", "spread": "59s"});
        let is_down = |begins: &Begins| outage().contains(&begins.at);
        let play = Play::of(Policy::default(), SCHEDULES, &every, move |n| n % namespaces, is_down);
        let play = play.play(after_it().end);
        let during = play.runs_of(0..SCHEDULES, &outage());
        let opened = play.opened_at();
        let minutes: Vec<i64> = during.iter().map(|at| (*at - opened).num_minutes()).filter(|it| *it > 0).collect();
        let (after, at_once) = (play.recovered_after(), play.most_at_once(&after_it()));
        println!("{namespaces} namespaces: {} runs, recovered after {after}, {at_once} at once", during.len());
        assert_eq!(minutes, PROBES, "{namespaces} namespaces");
        assert_eq!(during.len(), SCHEDULES + PROBES.len());
        assert!(after <= TimeDelta::minutes(11), "{after}");
        assert!(at_once <= 16, "{at_once} at once");
        assert_eq!(play.openings(), 1, "{:?}", play.news);
    }
}

#[test]
fn without_circuits_each_schedule_finds_out_for_itself() {
    let play = Play::new(without_circuits(), |begins| outage().contains(&begins.at)).play(after_it().end);
    let runs = play.runs_of(0..SCHEDULES, &outage()).len();
    println!("{runs} runs, recovered after {}", play.recovered_after());
    assert!(play.news.is_empty());
    assert!(runs >= SCHEDULES * 5, "{runs}");
}

/// Some schedules have a wrong tag, or the API server refuses their executions, while the registry works. Circuits then
/// change nothing for healthy or broken schedules, whether slots are spread or not. `WFE_TEST_ALL=1` also simulates
/// fewer and more broken schedules.
#[test]
fn what_is_broken_by_itself_holds_nobody() {
    let spread = json!({"interval": "60s", "spread": "59s"});
    let cron = json!({"cron": "* * * * *"});
    let plays = [
        ("by a bad tag, spread", &spread, 50, 0),
        ("by a bad tag, at the minute", &cron, 50, 0),
        ("by refused creates", &spread, 50, 50),
        ("by a bad tag, spread", &spread, 20, 0),
        ("by a bad tag, spread", &spread, 100, 0),
        ("by a bad tag, at the minute", &cron, 20, 0),
        ("by a bad tag, at the minute", &cron, 100, 0),
    ];
    let most = if std::env::var_os("WFE_TEST_ALL").is_some() { plays.len() } else { 3 };
    for (what, every, broken, refused) in plays.into_iter().take(most) {
        let [with, without] = [Policy::default(), without_circuits()].map(|policy| {
            let is_broken = move |begins: &Begins| begins.of < broken && begins.at >= outage().start;
            let play = Play::of(policy, SCHEDULES, every, |_| 0, is_broken);
            Play { refused, ..play }.play(at(4500))
        });
        let all = at(0)..at(4500);
        let runs = |play: &Play| [0..broken, broken..SCHEDULES].map(|which| play.runs_of(which, &all).len());
        let ([broken_with, healthy_with], [broken_without, healthy_without]) = (runs(&with), runs(&without));
        let latest = |play: &Play| play.triaged.values().max().map(|at| *at - outage().start);
        println!(
            "{broken} {what}: {broken_with} of {broken_without} runs of the broken, {healthy_with} of \
             {healthy_without} of the healthy, {} openings, triaged {} of {}, the last after {:?} and {:?}",
            with.openings(),
            with.triaged.len(),
            without.triaged.len(),
            latest(&with),
            latest(&without),
        );
        assert_eq!(healthy_with, healthy_without, "{broken} {what}");
        assert!(broken_with * 100 >= broken_without * 95, "{broken} {what}: {broken_with} of {broken_without}");
        assert_eq!(with.triaged.len(), broken, "{what}");
        assert_eq!(without.triaged.len(), broken, "{what}");
    }
}

/// Two hundred schedules run at the full hour while the registry is down. Each failure counts for its own schedule.
#[test]
fn failures_of_the_same_minute_all_count() {
    let every = json!({"cron": "0 * * * *"});
    let is_down = |begins: &Begins| outage().contains(&begins.at);
    let play = Play::of(Policy::default(), SCHEDULES, &every, |_| 0, is_down).play(at(7000));
    assert_eq!(play.runs_of(0..SCHEDULES, &outage()).len(), SCHEDULES);
    assert_eq!(play.openings(), 1);
    assert!(play.schedules.values().all(|(_, it)| it.schedule.status.failure_count == 1));
}

/// The bundle of a tenant does not exist, and a hundred of the tenant's targets keep failing. A schedule of another
/// tenant failed once with the same fingerprint, and still gets to run again.
#[test]
fn a_tenants_failures_hold_a_victim_for_two_waits() {
    let every = json!({"interval": "60s", "spread": "59s"});
    let failed_at = at(600 + 1800);
    let fails = move |begins: &Begins| {
        let is_victim = begins.of == 100;
        begins.at >= outage().start && !is_victim
            || is_victim && (failed_at..failed_at + TimeDelta::minutes(1)).contains(&begins.at)
    };
    let play = Play::of(Policy::default(), 101, &every, |n| n / 100, fails).play(at(7200));
    let again = play.runs_of(100..101, &(failed_at + TimeDelta::minutes(1)..at(7200)))[0];
    println!("the victim runs again {} after its failure", again - failed_at);
    assert!(again - failed_at <= TimeDelta::minutes(22), "{again}");
    // If only one tenant has failures, only that tenant is held.
    let fails = |begins: &Begins| begins.of < 100 && outage().contains(&begins.at);
    let play = Play::of(Policy::default(), SCHEDULES, &every, |n| n / 100, fails).play(outage().end);
    assert_eq!(play.runs_of(100..SCHEDULES, &outage()).len(), 100 * 60, "an hour, once in a minute");
}

/// A registry answers some of the time. Schedules that fail three times in a row get their triage, as they do without
/// circuits. If most runs fail, circuits delay the triage by an hour at most. A schedule that succeeds within the hour
/// needs no triage.
#[test]
fn a_flaky_registry_delays_triages_by_an_hour_at_most() {
    for (percent, least) in [(30, 100), (50, 100), (70, 50)] {
        let [with, without] = [Policy::default(), without_circuits()]
            .map(|policy| Play::new(policy, move |begins| falls_among(percent, begins)).play(at(2 * 3600)));
        let all = at(0)..at(2 * 3600);
        println!(
            "{percent} of a hundred fail: triaged {} of {}, due for {} s at the longest, {} of {} runs, {} openings",
            with.triaged.len(),
            without.triaged.len(),
            with.longest_due.num_seconds(),
            with.runs_of(0..SCHEDULES, &all).len(),
            without.runs_of(0..SCHEDULES, &all).len(),
            with.openings()
        );
        assert!(with.triaged.len() * 100 >= without.triaged.len() * least, "{percent}");
        assert!(with.longest_due <= TimeDelta::hours(1) + TimeDelta::seconds(5), "{percent}");
    }
}

/// An orchestrator retries a hundred targets again and again. Shared failures use up none of their attempts, even if a
/// cache lets one in ten succeed, or the registry works for one minute in ten.
#[test]
fn an_outage_uses_up_few_targets_of_an_orchestrator() {
    let cached = |begins: &Begins| outage().contains(&begins.at) && !falls_among(10, begins);
    let up_now_and_then = |begins: &Begins| outage().contains(&begins.at) && begins.at.timestamp() / 60 % 10 != 0;
    let down: [(&str, Fails); 2] = [("caches", Box::new(cached)), ("up one minute in ten", Box::new(up_now_and_then))];
    for (name, fails) in down {
        let mut play = Play::of(Policy::default(), 0, &json!({}), |_| 0, fails);
        play.orchestrated = 100;
        play.takes = |_| TimeDelta::seconds(20);
        let play = play.play(after_it().end);
        println!("{name}: {} exhausted, {} runs", play.exhausted.len(), play.runs.len());
        assert!(play.exhausted.len() <= 5, "{name}: {:?}", play.exhausted);
    }
    let mut play = Play::of(without_circuits(), 0, &json!({}), |_| 0, cached);
    play.orchestrated = 100;
    play.takes = |_| TimeDelta::seconds(20);
    let exhausted = play.play(after_it().end).exhausted.len();
    println!("without circuits: {exhausted} exhausted");
    assert!(exhausted > 20, "{exhausted}");
}

#[test]
fn a_probe_that_hangs_delays_the_next_by_one_wait() {
    let mut play = Play::new(Policy::default(), |begins| outage().contains(&begins.at));
    play.takes = |play| {
        let is_first_probe =
            |it: &wfe_core::circuit::OpenCircuit| it.failed_probes == 0 && it.next_probe_at <= play.now;
        let hangs = play.openings() == 1 && play.index.circuits().open().any(is_first_probe);
        TimeDelta::seconds(if hangs { 7200 } else { 1 })
    };
    let play = play.play(outage().end);
    let opened = play.opened_at();
    let minutes: Vec<i64> = play
        .runs_of(0..SCHEDULES, &outage())
        .iter()
        .map(|at| (*at - opened).num_minutes())
        .filter(|it| *it > 0)
        .collect();
    // Until a probe has failed, each wait is as long as the first one.
    assert_eq!(minutes[..3], [2, 3, 4]);
}
