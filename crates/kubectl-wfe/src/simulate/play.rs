//! Plays a scenario in virtual time: the operator's own index and decision, with an API server and a Tekton that carry
//! out every request.
//!
//! The operator's readers read each object once. After that, the play changes the records of the index instead of
//! statuses, and delivers the records again. Index, circuits, schedules, triage and decisions are therefore the
//! operator's own code, and no step writes or parses JSON.

mod begin;
mod workload;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use chrono::{SubsecRound, TimeDelta};
use wfe_core::Time;
use wfe_core::decide::decide;
use wfe_core::execution::{Cancellation, Clearance, Execution, Recorded};
use wfe_core::guard::Guard;
use wfe_core::history::History;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::policy::Policy;
use wfe_core::triage::FailureSeen;
use wfe_view::index::{CircuitNews, Delivery, EndShown, ExecutionRecord, Index, Key, Kind};

use super::scenario::{Act, MOST, Planned, Scenario, uid};
use super::story::{Story, named};
use crate::view::take_in;
pub(super) use workload::InProgress;
use workload::Workload;

/// After how long ended executions and runs are removed: a removal never changes a decision, and a play stays small.
const KEPT: Duration = Duration::from_mins(1);
/// The limit of rounds at one moment; a round decides on all changed targets. If more are needed, the decisions make no
/// progress.
const MOST_ROUNDS: usize = 20_000;

/// The state of the world.
pub(super) struct Play<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) policy: Policy,
    pub(super) index: Index,
    pub(super) now: Time,
    pub(super) story: Story,
    pub(super) workload: Workload,
    /// The runs that exist, by uid.
    pub(super) runs: HashMap<Uid, InProgress>,
    /// The schedules, by uid, as they were delivered last.
    pub(super) schedules: HashMap<Uid, Planned>,
    /// The failures of schedules' children, for triage.
    pub(super) failures: HashMap<Uid, FailureSeen>,
    /// The uids of the executions that have not ended, by namespace and name.
    pub(super) open: HashMap<String, (Key, Uid)>,
    /// The agenda of the world, the earliest first. Entries of the same time are in the order of [`Happening`].
    pub(super) agenda: BinaryHeap<Reverse<(Time, Happening)>>,
    wakes: BTreeSet<(Time, Key)>,
    wake_of: HashMap<Key, Time>,
    /// The targets to decide on.
    pub(super) changed: BTreeSet<Key>,
    /// The only target that is decided on. None: all targets.
    only: Option<Key>,
    created: u64,
    /// Collects the statuses that an operator would write.
    #[cfg(test)]
    pub(super) mirror: Option<super::tests::Mirror>,
}

/// Something that the world does. At the same time, runs end before people act, and people act before executions
/// arrive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    /// A task or pod that existed at the start ends.
    Ends(Kind, Uid),
    /// Tekton ends a run.
    RunEnds(Uid),
    /// The last task of a run is gone.
    Drained(Uid),
    /// A person acts. The number is the place of the act in the scenario.
    Acts(usize),
    /// The n-th execution of an arrival is created, from 1.
    Arrives(usize, u64),
}

impl<'a> Play<'a> {
    /// Makes a world at the start of a scenario.
    pub(super) fn new(scenario: &'a Scenario, policy: &Policy) -> Self {
        let mut index = Index::new(None);
        for kind in Kind::ALL {
            take_in(&mut index, kind, std::iter::empty(), scenario.start);
        }
        index.guard(Guard::InForce);
        Self::on(scenario, policy, index, None)
    }

    /// Makes a world that begins with the objects of an index. If `only` is given, no other target is decided on.
    fn on(scenario: &'a Scenario, policy: &Policy, mut index: Index, only: Option<Key>) -> Self {
        let now = scenario.start;
        index.set_circuit_policy(policy);
        let retention = policy.retention.min(KEPT);
        let ttl = Some(policy.ttl.map_or(KEPT, |ttl| ttl.min(KEPT)));
        let mut play = Self {
            scenario,
            policy: Policy { retention, ttl, ..policy.clone() },
            index,
            now,
            story: Story::new(now, only.is_some()),
            workload: Workload::default(),
            runs: HashMap::new(),
            schedules: HashMap::new(),
            failures: HashMap::new(),
            open: HashMap::new(),
            agenda: BinaryHeap::new(),
            wakes: BTreeSet::new(),
            wake_of: HashMap::new(),
            changed: BTreeSet::new(),
            only,
            created: 0,
            #[cfg(test)]
            mirror: None,
        };
        for planned in &scenario.schedules {
            let target = planned.record.target.as_ref().map(ToString::to_string).unwrap_or_default();
            play.story.drawing.of_schedules.insert(named(&planned.record.schedule.id), target);
            play.schedules.insert(planned.record.schedule.id.uid.clone(), planned.clone());
            play.index.apply(Delivery::Schedule(Box::new(planned.record.clone())), now);
        }
        for (number, (after, _)) in scenario.people.iter().enumerate() {
            play.expect(*after, Happening::Acts(number));
        }
        for (number, arrival) in scenario.arrivals.iter().enumerate() {
            play.expect(arrival.at, Happening::Arrives(number, 1));
        }
        play
    }

    /// Plays until a time, or until all is quiet.
    pub(super) fn play(mut self, until: Duration, stops_when_quiet: bool) -> Result<Story> {
        self.play_until(until, stops_when_quiet)?;
        self.story.end(self.now, self.open.len());
        Ok(self.story)
    }

    /// Plays all that happens until a time.
    pub(super) fn play_until(&mut self, until: Duration, stops_when_quiet: bool) -> Result<()> {
        let end = self.scenario.start + until;
        self.decide_all()?;
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.now = next;
            while self.agenda.peek().is_some_and(|Reverse((at, _))| *at <= self.now) {
                self.happen()?;
                self.decide_all()?;
            }
            while let Some((_, key)) = self.wakes.first().filter(|(at, _)| *at <= self.now).cloned() {
                self.wake(&key, None);
                self.changed.insert(key);
            }
            self.decide_all()?;
            if stops_when_quiet && self.is_quiet() {
                return Ok(());
            }
        }
        self.now = end;
        Ok(())
    }

    /// Adds something that happens later.
    pub(super) fn expect(&mut self, after: Duration, what: Happening) {
        let now = self.now;
        self.agenda.push(Reverse((now + TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX), what)));
    }

    /// Returns when something happens next. The operator looks at open circuits every second.
    fn next(&self) -> Option<Time> {
        let circuits = self.index.circuits();
        let is_moving =
            circuits.open().next().is_some() || circuits.closed().next().is_some() || circuits.degraded().is_some();
        let tick = is_moving.then(|| self.now.trunc_subsecs(0) + TimeDelta::seconds(1));
        let agenda = self.agenda.peek().map(|Reverse((at, _))| *at);
        let wake = self.wakes.first().map(|(at, _)| *at);
        [tick, agenda, wake].into_iter().flatten().min()
    }

    /// Returns whether nothing is left to happen except removals.
    fn is_quiet(&self) -> bool {
        self.agenda.is_empty() && self.open.is_empty() && self.schedules.is_empty()
    }

    /// Carries out everything that is due now and of the same kind as the first entry. Executions that arrive at the
    /// same moment are thus judged together.
    fn happen(&mut self) -> Result<()> {
        let mut first = None;
        while let Some(Reverse((at, what))) = self.agenda.peek() {
            let kind = std::mem::discriminant(what);
            if *at > self.now || *first.get_or_insert(kind) != kind {
                break;
            }
            let Some(Reverse((_, what))) = self.agenda.pop() else { break };
            match what {
                Happening::Ends(kind, uid) => self.index.apply(Delivery::DescendantDeleted(kind, uid, None), self.now),
                Happening::RunEnds(run) => self.end_run(&run),
                Happening::Drained(run) => self.drain(&run),
                Happening::Acts(number) => self.act(number),
                Happening::Arrives(number, n) => self.arrive(number, n)?,
            }
        }
        Ok(())
    }

    /// Decides on all changed targets until nothing is left to do now.
    pub(super) fn decide_all(&mut self) -> Result<()> {
        for _ in 0..MOST_ROUNDS {
            let mut news = self.index.update_circuits(self.now);
            news.retain(|it| self.is_told(it));
            self.story.circuits(&news, self.now);
            self.index.give_places(self.now);
            self.changed.extend(self.index.take_dirty());
            self.changed.retain(|key| self.only.as_ref().is_none_or(|only| only == key));
            if self.changed.is_empty() {
                return Ok(());
            }
            for key in std::mem::take(&mut self.changed) {
                self.decide_on(&key)?;
            }
        }
        bail!("the decisions at {} do not come to an end; please report this scenario", self.story.time(self.now))
    }

    /// Decides on one target and carries the decision out, as `Engine::decide_on` does.
    fn decide_on(&mut self, key: &Key) -> Result<()> {
        self.index.settle(key);
        self.index.show_circuits(key);
        self.index.show_places(key, &self.policy.limits, self.now);
        self.index.tell_of_triages(key, self.now);
        let Some(entry) = self.index.ready(key) else {
            self.wake(key, None);
            return Ok(());
        };
        let decision = decide(&entry.target, &self.policy, self.now);
        self.story.stands(key, entry.target.label(), &decision.blocks, self.now);
        self.index.waits(key, &decision, self.now);
        self.index.queue_probes(&decision, self.now);
        self.index.ask_for_places(key, &decision, self.now);
        self.wake(key, decision.wake);
        self.index.begun(key, &decision.actions, self.now);
        for action in decision.actions {
            self.carry_out(key, action)?;
            self.changed.insert(key.clone());
        }
        Ok(())
    }

    /// Sets when a target is decided on even if nothing changes.
    fn wake(&mut self, key: &Key, at: Option<Time>) {
        let before = match at {
            Some(at) => self.wake_of.insert(key.clone(), at),
            None => self.wake_of.remove(key),
        };
        if let Some(before) = before {
            self.wakes.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.wakes.insert((at, key.clone()));
        }
    }

    /// Returns whether a change of circuits concerns the target that is played.
    fn is_told(&self, news: &CircuitNews) -> bool {
        let Some(only) = &self.only else { return true };
        let circuit = match news {
            CircuitNews::Opened(it) => &it.fingerprint,
            CircuitNews::Closed(it) => &it.fingerprint,
            CircuitNews::Probed { fingerprint, .. } => fingerprint,
        };
        let mut schedules = self.index.entry(only).into_iter().flat_map(|entry| entry.target.schedules.values());
        schedules.any(|it| it.failed_last().is_some_and(|(with, _)| with == circuit))
    }

    fn arrive(&mut self, number: usize, n: u64) -> Result<()> {
        let arrival = &self.scenario.arrivals[number];
        let Some(target) = arrival.target(n) else { return Ok(()) };
        let mut record = arrival.record.clone();
        record.target = Some(target);
        let name = self.workload.next_name(&arrival.record.execution.id.namespace, &arrival.name);
        let is_last = arrival.times.is_some_and(|times| n >= times);
        self.create(record, &name)?;
        if !is_last {
            self.expect(arrival.every.unwrap_or_default(), Happening::Arrives(number, n + 1));
        }
        Ok(())
    }

    /// Creates an execution from a template, as the API server would.
    pub(super) fn create(&mut self, mut record: ExecutionRecord, name: &str) -> Result<()> {
        self.created += 1;
        ensure!(
            self.created <= MOST,
            "by {} the scenario has made {MOST} executions, and no more are played; give an earlier --until",
            self.story.time(self.now)
        );
        let execution = &mut record.execution;
        let own = Uid::new(&uid(1, self.created));
        execution.id = ExecutionId { uid: own.clone(), namespace: execution.id.namespace.clone(), name: name.into() };
        execution.created = self.now.trunc_subsecs(0);
        self.open.insert(execution.id.to_string(), (record.key(), own));
        self.index.apply(Delivery::Execution(Box::new(record)), self.now);
        Ok(())
    }

    fn act(&mut self, number: usize) {
        let (_, act) = &self.scenario.people[number];
        let (what, of) = match act {
            Act::Clear(target) => (self.clear(&Key::Chain(target.chain())), target.to_string()),
            Act::Cancel(name) => (self.cancel(name), name.clone()),
            Act::Pause(namespace) => (self.pause(namespace, true), namespace.clone()),
            Act::Resume(namespace) => (self.pause(namespace, false), namespace.clone()),
        };
        self.story.person(self.now, &of, what);
    }

    /// Sets a clearance on the execution that blocks a target, as `kubectl wfe clear` does.
    fn clear(&mut self, key: &Key) -> &'static str {
        let blocker = self.index.entry(key).and_then(|entry| {
            let blocks = History::of(&entry.target, &self.policy, self.now).blocks(&self.policy, self.now);
            Some(blocks.first()?.remediation()?.execution.clone())
        });
        let Some(blocker) = blocker else { return "asks to clear it, but nothing blocks it" };
        if self.execution(key, &blocker.uid).is_some_and(|it| it.clearance.is_some()) {
            return "cannot clear it: what blocks it has a clearance already";
        }
        let clearance = Clearance {
            reason: "scenario".into(),
            cleared_by: "a person".into(),
            recorded: Recorded::Not,
            unguarded: None,
        };
        self.update(key, &blocker.uid, None, |it| it.clearance = Some(Box::new(clearance)));
        "clears it"
    }

    fn cancel(&mut self, name: &str) -> &'static str {
        let Some((key, uid)) = self.open.get(name).cloned() else {
            return "asks to cancel it, but it does not exist any more";
        };
        let cancellation = Cancellation { reason: "scenario".into(), requested_by: "a person".into(), unguarded: None };
        self.update(&key, &uid, None, |it| it.cancellation = Some(Box::new(cancellation)));
        "cancels it"
    }

    fn pause(&mut self, namespace: &str, pauses: bool) -> &'static str {
        if namespace == "all" {
            self.policy.paused_by = pauses.then(|| "a person".into());
            self.changed.extend(self.index.keys().cloned());
        } else {
            let why = pauses.then(|| "a person".into());
            let (uid, name) = (Uid::new(&format!("namespace-{namespace}")), namespace.into());
            self.index.apply(Delivery::Namespace { uid, name, paused: why, leaving: false }, self.now);
        }
        if pauses { "pauses it" } else { "ends the pause" }
    }

    /// Changes an execution, and delivers it.
    pub(super) fn update(&mut self, key: &Key, uid: &Uid, end: Option<EndShown>, change: impl FnOnce(&mut Execution)) {
        let Some(entry) = self.index.entry(key) else { return };
        let Some(mut execution) = entry.target.executions.get(uid).cloned() else { return };
        let target = entry.target.name.clone();
        change(&mut execution);
        if execution.is_terminal() {
            self.open.remove(&execution.id.to_string());
        }
        let end = end.map(Box::new);
        let record = ExecutionRecord { execution, target, generation: 1, request: None, redaction: None, end };
        self.index.apply(Delivery::Execution(Box::new(record)), self.now);
    }
}
