//! The gauges of waiting and draining: how many executions wait and why, also for their next attempt, and how many
//! targets drain.
//!
//! They are sums over all targets. The share of each target is kept, so that a decision costs one lookup.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prometheus::{IntGauge, IntGaugeVec};
use wfe_core::action::Decision;
use wfe_core::awaiting::Awaiting;
use wfe_core::execution::ExecutionState;
use wfe_core::target::Target;
use wfe_core::trouble::OwnCause;
use wfe_view::index::Key;

use super::now::{Now, slow_label};

/// The label of namespaces without their own series. It is no namespace's name, because such a name contains no `_`.
const OTHERS: &str = "_others";

/// How many namespaces have their own series: each costs Prometheus memory for weeks.
const MOST_NAMESPACES: usize = 1_000;

/// Updates the gauges. Owned by the engine.
pub struct BusyGauges {
    waiting: IntGaugeVec,
    unfinished: Unfinished,
    draining: IntGaugeVec,
    retry_waits: IntGauge,
    cancels_unanswered: IntGauge,
    examining: IntGauge,
    /// The share of each target; targets without a share are absent.
    shown: HashMap<Key, Busy>,
}

/// The share of a target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Busy {
    /// The reasons of the target's waiting executions.
    waiting: Vec<&'static str>,
    /// How many executions of each namespace are Pending, and how many Running.
    unfinished: BTreeMap<Arc<str>, [i64; 2]>,
    /// `Some` if the target drains; true if it has drained for too long.
    draining: Option<bool>,
    /// How many executions wait for their next attempt.
    retry_waits: usize,
    /// How many cancelled runs of the target Tekton does not stop.
    cancels_unanswered: usize,
    /// Whether a failed run of the target cannot be examined.
    is_examined_in_vain: bool,
}

impl BusyGauges {
    pub(super) fn new(now: &Now) -> Self {
        Self {
            waiting: now.waiting.clone(),
            unfinished: Unfinished::new(now.unfinished.clone()),
            draining: now.draining.clone(),
            retry_waits: now.retry_waits.clone(),
            cancels_unanswered: now.cancels_unanswered.clone(),
            examining: now.own_trouble.with_label_values(&[OwnCause::CannotExamine.reason()]),
            shown: HashMap::new(),
        }
    }

    /// Shows a target and its waiting executions as decided.
    pub fn show(&mut self, key: &Key, target: &Target, decision: &Decision) {
        let awaiting = |reason| decision.awaiting.iter().filter(|(_, it)| it.reason() == reason).count();
        let busy = Busy {
            waiting: decision.waiting.iter().map(|(_, waiting)| waiting.reason()).collect(),
            unfinished: unfinished(target),
            draining: target.is_draining().then_some(target.drain_warned),
            retry_waits: target.executions.values().filter(|it| it.next_attempt().is_some()).count(),
            cancels_unanswered: awaiting(Awaiting::CANCELLING),
            is_examined_in_vain: awaiting(Awaiting::EXAMINING) > 0,
        };
        if busy == *self.shown.get(key).unwrap_or(&Busy::default()) {
            return;
        }
        self.forget(key);
        self.add(&busy, 1);
        if busy != Busy::default() {
            self.shown.insert(key.clone(), busy);
        }
    }

    /// Removes the share of a target.
    pub fn forget(&mut self, key: &Key) {
        if let Some(busy) = self.shown.remove(key) {
            self.add(&busy, -1);
        }
    }

    /// Removes the shares of all targets.
    pub fn forget_all(&mut self) {
        for (_, busy) in std::mem::take(&mut self.shown) {
            self.add(&busy, -1);
        }
    }

    fn add(&mut self, busy: &Busy, count: i64) {
        for (namespace, numbers) in &busy.unfinished {
            self.unfinished.add(namespace, numbers.map(|number| number.saturating_mul(count)));
        }
        for reason in &busy.waiting {
            self.waiting.with_label_values(&[reason]).add(count);
        }
        if let Some(slow) = busy.draining {
            self.draining.with_label_values(&[slow_label(slow)]).add(count);
        }
        for (gauge, held) in [
            (&self.retry_waits, busy.retry_waits),
            (&self.cancels_unanswered, busy.cancels_unanswered),
            (&self.examining, usize::from(busy.is_examined_in_vain)),
        ] {
            gauge.add(count.saturating_mul(i64::try_from(held).unwrap_or(i64::MAX)));
        }
    }
}

/// Counts the executions of a target that have not ended: Pending and Running, by namespace.
fn unfinished(target: &Target) -> BTreeMap<Arc<str>, [i64; 2]> {
    let mut unfinished = BTreeMap::new();
    for execution in target.executions.values() {
        let one = match execution.state {
            ExecutionState::Undecided { .. } => [1, 0],
            ExecutionState::Running { .. } => [0, 1],
            _ => continue,
        };
        let counts = unfinished.entry(Arc::clone(&execution.id.namespace)).or_default();
        *counts = sum(*counts, one);
    }
    unfinished
}

/// The executions that have not ended, Pending and Running, by namespace. A namespace without such executions has no
/// series.
struct Unfinished {
    gauge: IntGaugeVec,
    /// The counts of each namespace, and whether it has its own series. A namespace keeps its series while one of its
    /// counts is above zero.
    counts: BTreeMap<Arc<str>, ([i64; 2], bool)>,
    /// How many namespaces have their own series.
    series: usize,
    most: usize,
    /// The sum of the namespaces without their own series.
    others: [i64; 2],
}

impl Unfinished {
    fn new(gauge: IntGaugeVec) -> Self {
        Self { gauge, counts: BTreeMap::new(), series: 0, most: MOST_NAMESPACES, others: [0, 0] }
    }

    fn add(&mut self, namespace: &Arc<str>, change: [i64; 2]) {
        let (counts, has_series) = self.counts.entry(Arc::clone(namespace)).or_insert_with(|| {
            let has_series = self.series < self.most;
            self.series += usize::from(has_series);
            ([0, 0], has_series)
        });
        *counts = sum(*counts, change);
        let (counts, has_series) = (*counts, *has_series);
        if counts == [0, 0] {
            self.counts.remove(namespace);
            self.series -= usize::from(has_series);
        }
        if has_series {
            self.show(namespace, counts);
        } else {
            self.others = sum(self.others, change);
            self.show(OTHERS, self.others);
        }
    }

    fn show(&self, label: &str, counts: [i64; 2]) {
        for (phase, count) in ["Pending", "Running"].into_iter().zip(counts) {
            if counts == [0, 0] {
                // The removal fails if the series never existed.
                let _ = self.gauge.remove_label_values(&[label, phase]);
            } else {
                self.gauge.with_label_values(&[label, phase]).set(count);
            }
        }
    }
}

fn sum(one: [i64; 2], other: [i64; 2]) -> [i64; 2] {
    [one[0].saturating_add(other[0]), one[1].saturating_add(other[1])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::awaiting::Unanswered;
    use wfe_core::execution::Execution;
    use wfe_core::findings::Wait;
    use wfe_core::name::{ExecutionId, RunId, Uid, Version};
    use wfe_core::residue::{Residue, ResidueId, ResidueKind};
    use wfe_core::retry::{Attempt, Retry};
    use wfe_core::run::Owner;
    use wfe_core::target::TargetName;
    use wfe_core::trouble::OwnTrouble;
    use wfe_core::waiting::Waiting;

    fn key(name: &str) -> Key {
        Key::Chain(TargetName::parse(name).unwrap().chain())
    }

    fn id() -> ExecutionId {
        ExecutionId { namespace: "ops".into(), name: "w".into(), uid: Uid::new("u") }
    }

    fn turn() -> Waiting {
        Waiting::Turn(Box::new(id()))
    }

    fn waits(waiting: Vec<Waiting>) -> Decision {
        Decision { waiting: waiting.into_iter().map(|waiting| (id(), waiting)).collect(), ..Decision::default() }
    }

    fn gauges() -> BusyGauges {
        BusyGauges::new(&Now::new().unwrap())
    }

    fn draining(slow: bool) -> Target {
        let id = ResidueId { kind: ResidueKind::Pod, name: "p".into(), uid: Uid::new("p") };
        let residue = Residue { id, owner: Owner::Nobody, created: wfe_core::Time::UNIX_EPOCH };
        Target {
            residue: [(residue.id.uid.clone(), residue)].into_iter().collect(),
            drain_warned: slow,
            ..Target::default()
        }
    }

    #[test]
    fn a_target_adds_what_it_is_now_and_nothing_of_what_it_was() {
        let mut gauges = gauges();
        let seen = |gauges: &BusyGauges| {
            let waiting = |reason| gauges.waiting.with_label_values(&[reason]).get();
            let draining = |slow| gauges.draining.with_label_values(&[slow]).get();
            (waiting("Turn"), waiting("Paused"), draining("false"), draining("true"))
        };
        let (a, b, idle) = (key("node/a"), key("node/b"), Target::default());
        gauges.show(&a, &idle, &waits(vec![turn(), turn()]));
        gauges.show(&b, &draining(false), &waits(vec![Waiting::PausedEverywhere("maintenance".into())]));
        assert_eq!(seen(&gauges), (2, 1, 1, 0));
        gauges.show(&a, &idle, &waits(vec![turn()]));
        gauges.show(&b, &draining(true), &Decision::default());
        gauges.show(&b, &draining(true), &Decision::default());
        assert_eq!(seen(&gauges), (1, 0, 0, 1));
        gauges.show(&a, &idle, &Decision::default());
        gauges.forget(&b);
        assert_eq!(seen(&gauges), (0, 0, 0, 0));
        assert!(gauges.shown.is_empty());
    }

    #[test]
    fn executions_that_wait_for_their_next_attempt_are_counted() {
        let mut gauges = gauges();
        let target = |waits: bool| {
            let policy = wfe_api::retry::read(Some(&true.into())).unwrap().unwrap();
            let started_at = (!waits).then_some(wfe_core::Time::UNIX_EPOCH);
            let last = Attempt { not_before: Some(wfe_core::Time::UNIX_EPOCH), started_at, ..Attempt::default() };
            let undecided = Execution::undecided(id(), Version::new("1"), wfe_core::Time::UNIX_EPOCH);
            let execution = Execution {
                state: ExecutionState::Running { run: None, started_at: None },
                retry: Some(Box::new(Retry { policy, attempts: vec![Attempt::default(), last] })),
                ..undecided
            };
            Target { executions: [(id().uid, execution)].into_iter().collect(), ..Target::default() }
        };
        let (a, b) = (key("node/a"), key("node/b"));
        gauges.show(&a, &target(true), &Decision::default());
        gauges.show(&b, &target(true), &Decision::default());
        assert_eq!(gauges.retry_waits.get(), 2);
        gauges.show(&a, &target(false), &Decision::default());
        assert_eq!(gauges.retry_waits.get(), 1);
        gauges.forget_all();
        assert_eq!(gauges.retry_waits.get(), 0);
    }

    #[test]
    fn a_namespace_beyond_the_limit_is_counted_with_the_others_until_it_has_none() {
        let mut unfinished = Unfinished { most: 1, ..Unfinished::new(Now::new().unwrap().unfinished) };
        let [ops, payment, shop] = ["ops", "payment", "shop"].map(Arc::from);
        let seen = |of: &Unfinished| {
            let families = prometheus::core::Collector::collect(&of.gauge);
            let metrics = families.iter().flat_map(prometheus::proto::MetricFamily::get_metric);
            let mut seen: Vec<String> = metrics
                .map(|metric| {
                    let labels: Vec<&str> =
                        metric.get_label().iter().map(prometheus::proto::LabelPair::value).collect();
                    format!("{} {}", labels.join(" "), metric.get_gauge().get_value())
                })
                .collect();
            seen.sort();
            seen.join(", ")
        };
        unfinished.add(&ops, [2, 1]);
        unfinished.add(&payment, [1, 0]);
        unfinished.add(&shop, [0, 3]);
        assert_eq!(seen(&unfinished), "_others Pending 1, _others Running 3, ops Pending 2, ops Running 1");
        unfinished.add(&ops, [-2, -1]);
        unfinished.add(&payment, [-1, 0]);
        assert_eq!(seen(&unfinished), "_others Pending 0, _others Running 3", "it stays with the others");
        unfinished.add(&payment, [1, 0]);
        unfinished.add(&shop, [0, -3]);
        assert_eq!(seen(&unfinished), "payment Pending 1, payment Running 0", "there is room again");
        unfinished.add(&payment, [-1, 0]);
        assert_eq!(seen(&unfinished), "");
    }

    #[test]
    fn what_running_executions_wait_for_is_counted() {
        let unanswered = Unanswered {
            run: RunId { name: "r".into(), uid: Uid::new("r") },
            since: wfe_core::Time::UNIX_EPOCH,
            why: "w",
            said: "".into(),
            managed_by: None,
            finalizers: "".into(),
            deleting: false,
        };
        let trouble = OwnTrouble { cause: OwnCause::CannotExamine, words: "no".into() };
        let all = [
            Awaiting::Starting { wait: Wait::Image, until: wfe_core::Time::UNIX_EPOCH },
            Awaiting::Cancelling(unanswered),
            Awaiting::Examining { since: wfe_core::Time::UNIX_EPOCH, trouble },
        ];
        assert_eq!(all.each_ref().map(Awaiting::reason), Awaiting::REASONS);
        let decision = Decision { awaiting: all.map(|it| (id(), it)).into(), ..Decision::default() };
        let mut gauges = gauges();
        let seen = |gauges: &BusyGauges| (gauges.cancels_unanswered.get(), gauges.examining.get());
        gauges.show(&key("node/a"), &Target::default(), &decision);
        gauges.show(&key("node/b"), &Target::default(), &decision);
        assert_eq!(seen(&gauges), (2, 2));
        gauges.show(&key("node/a"), &Target::default(), &Decision::default());
        assert_eq!(seen(&gauges), (1, 1));
        gauges.forget_all();
        assert_eq!(seen(&gauges), (0, 0));
    }

    #[test]
    fn every_reason_to_wait_is_listed() {
        let why = || "why".into();
        let own = |cause| Waiting::Operator(OwnTrouble { cause, words: why() });
        let all = [
            turn(),
            Waiting::RivalUndecided,
            Waiting::OwnerLate,
            Waiting::Draining,
            Waiting::PausedEverywhere(why()),
            Waiting::ApiErrors(why()),
            own(OwnCause::LacksRight),
            own(OwnCause::RefusedByPolicy),
            own(OwnCause::CrdLacksFields),
            own(OwnCause::CannotExamine),
            own(OwnCause::WriteDropped),
            Waiting::TektonUnavailable(why()),
            Waiting::Blind(why()),
            Waiting::Unseen(why()),
            Waiting::Withdrawn,
            Waiting::Guard,
            Waiting::Deleting,
            Waiting::Limit(Box::new(wfe_core::limit::LimitWait { limits: Box::default(), ahead: None })),
        ];
        assert_eq!(all.map(|waiting| waiting.reason()), Waiting::REASONS);
    }
}
