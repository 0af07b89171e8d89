//! Stores the deliveries of the watches as small parsed records, by target.
//!
//! The index is synchronous and owned by one task, so it needs no locks. It has no clock: times come with the
//! deliveries. A target may be decided on only after the watch has delivered this process's own writes to it (section
//! 5.7).

mod circuits;
mod delivery;
mod expect;
mod follow;
mod intern;
mod keep;
mod learn;
mod learned;
mod live;
mod pause;
mod places;
mod schedules;
mod take_in;
mod triage;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wfe_core::Time;
use wfe_core::execution::Execution;
use wfe_core::fingerprint::{Fingerprint, Origin};
use wfe_core::guard::Guard;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::target::Target;
use wfe_core::uid_map::{SmallMap, UidMap};
use wfe_core::waiting::Pause;
use wfe_tekton::{Evidence, Redaction, RunRequest};

use circuits::Breakers;
pub use circuits::CircuitNews;
pub use delivery::{Delivery, EndPhase, EndShown, ExecutionRecord, Key, Kind, ScheduleRecord};
use expect::Expectations;
pub use expect::{Expected, Live, READ_AFTER, Written};
use intern::Interner;
pub use learned::Learned;
use places::AllPlaces;
pub use places::LimitCount;

/// One target, with further records that the operator needs.
#[derive(Debug, Default)]
pub struct Entry {
    /// The input of decisions.
    pub target: Target,
    beside: UidMap<Beside>,
    expected: Expectations,
    /// The executions and runs that were deleted since the last decision. If the answer to a write to one of them
    /// arrives late, the operator does not await the delivery of the write.
    vanished: SmallMap<()>,
    /// The evidence about runs, by uid, until their executions have ended.
    evidence: UidMap<Evidence>,
}

/// What the operator stores about an execution beyond the input of decisions.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// `metadata.generation`.
    pub generation: i64,
    /// What the execution requests to run. Stored while it is undecided; with a retry policy, until it has ended.
    pub request: Option<Arc<RunRequest>>,
    /// The redaction for texts about the execution, until everything about it is announced.
    pub redaction: Option<Arc<Redaction>>,
    /// Whether any run of the execution was seen, even if that run is gone.
    pub had_run: bool,
}

impl Entry {
    /// Makes the entry of a target that has no records yet.
    fn new(common: InCommon) -> Self {
        let InCommon { blind_to_schedules, guard } = common;
        Self { target: Target { blind_to_schedules, guard, ..Target::default() }, ..Self::default() }
    }

    /// Returns what the operator stores about an execution.
    #[must_use]
    pub fn beside(&self, uid: &Uid) -> Beside {
        self.beside.get(uid).cloned().unwrap_or_default()
    }
}

/// The values that are the same for all targets.
#[derive(Clone, Copy, Debug)]
struct InCommon {
    blind_to_schedules: bool,
    guard: Guard,
}

/// The records of all targets.
#[derive(Debug)]
pub struct Index {
    /// The only namespace whose executions are watched; `None` for all namespaces.
    watch_namespace: Option<String>,
    targets: Targets,
    /// The target of each object, by kind. When a list ends, an object that is here but not in the list was deleted.
    places: HashMap<Kind, HashMap<Uid, Key>>,
    /// The namespaces, by uid.
    namespaces: HashMap<Uid, Box<str>>,
    /// The paused namespaces, by name.
    paused: HashMap<Box<str>, Arc<Pause>>,
    /// The names of the namespaces that are being deleted.
    leaving: HashSet<Box<str>>,
    /// The names of the namespaces with executions or schedules. Records share these strings.
    shared: HashSet<Arc<str>>,
    /// The triages that began within the last hour: the namespace of each schedule, and when its triage began. The time
    /// comes from the schedule's status, or from this process's own request.
    triages: HashMap<Uid, (Arc<str>, Time)>,
    /// The shared copies of what executions run, and of what the children of schedules would run.
    origins: Interner<Arc<Origin>>,
    /// The shared copies of fingerprints of failures.
    fingerprints: Interner<Fingerprint>,
    /// Whether the watch of schedules works.
    hears_schedules: bool,
    /// The state of the policies that guard clearances and cancellations.
    guard: Guard,
    lists: HashMap<Kind, List>,
    next_order: u64,
    dirty: HashSet<Key>,
    /// The circuits.
    breakers: Breakers,
    /// The places of all targets in the concurrency limits.
    limited: AllPlaces,
}

/// The targets by key. Entries are boxed, because a hash table reserves room for half as many additional entries.
type Targets = HashMap<Key, Box<Entry>>;

/// The progress of the lists of one kind.
#[derive(Debug, Default)]
struct List {
    /// How many lists have begun.
    epoch: u64,
    /// Whether a list has been completed. Before that, nothing is known about the kind.
    complete_once: bool,
    /// The position of the current list in the order of creation. All objects that the list adds get this position.
    place: u64,
    /// The objects that the current list has delivered.
    seen: Option<HashSet<Uid>>,
}

impl Index {
    /// Makes an empty index.
    #[must_use]
    pub fn new(watch_namespace: Option<String>) -> Self {
        Self {
            watch_namespace,
            targets: Targets::new(),
            places: HashMap::from(Kind::ALL.map(|kind| (kind, HashMap::new()))),
            namespaces: HashMap::new(),
            paused: HashMap::new(),
            leaving: HashSet::new(),
            shared: HashSet::new(),
            triages: HashMap::new(),
            origins: Interner::default(),
            fingerprints: Interner::default(),
            hears_schedules: true,
            guard: Guard::default(),
            lists: HashMap::from(Kind::ALL.map(|kind| (kind, List::default()))),
            next_order: 0,
            dirty: HashSet::new(),
            breakers: Breakers::default(),
            limited: AllPlaces::default(),
        }
    }

    /// Returns whether all watches except that of schedules have delivered their first list. Before that, no target may
    /// be decided on.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        Kind::NEEDED.iter().all(|kind| self.lists[kind].complete_once)
    }

    /// Returns which of these watches have not delivered their first list, in order.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Kind> {
        Kind::NEEDED.into_iter().filter(|kind| !self.lists[kind].complete_once).collect()
    }

    /// Returns the executions whose run is in another execution namespace.
    pub fn elsewhere(&self) -> impl Iterator<Item = &ExecutionId> {
        self.targets
            .values()
            .flat_map(|entry| entry.target.executions.values())
            .filter(|execution| execution.elsewhere)
            .map(|execution| &execution.id)
    }

    fn in_common(&self) -> InCommon {
        InCommon { blind_to_schedules: !self.sees_schedules(), guard: self.guard }
    }

    /// Returns whether a run is known.
    #[must_use]
    pub fn knows_run(&self, uid: &Uid) -> bool {
        self.places[&Kind::Run].contains_key(uid)
    }

    /// Returns an execution and its target, if the execution is known.
    #[must_use]
    pub fn execution(&self, uid: &Uid) -> Option<(&Target, &Execution)> {
        let target = &self.entry(self.places[&Kind::Execution].get(uid)?)?.target;
        Some((target, target.executions.get(uid)?))
    }

    /// Returns whether an execution is known and has not ended.
    #[must_use]
    pub fn goes_on(&self, execution: &Uid) -> bool {
        self.execution(execution).is_some_and(|(_, known)| !known.is_terminal())
    }

    /// Applies a delivery of a watch. `now` is the time of the delivery.
    pub fn apply(&mut self, delivery: Delivery, now: Time) {
        match delivery {
            Delivery::ListBegins(kind) => {
                let saw_schedules = self.sees_schedules();
                self.next_order += 1;
                let list = self.lists.entry(kind).or_default();
                list.place = self.next_order;
                list.epoch += 1;
                list.seen = Some(HashSet::new());
                if matches!(kind, Kind::TaskRun | Kind::Pod) {
                    self.targets.values_mut().for_each(|entry| entry.interrupt());
                }
                self.note_sight(saw_schedules);
            }
            Delivery::ListEnds(kind) => self.end_list(kind),
            Delivery::Execution(record) => self.apply_execution(*record),
            Delivery::ExecutionDeleted(uid) => self.delete(Kind::Execution, &uid),
            Delivery::Run(chain, run) => self.apply_run(chain, *run, now),
            Delivery::RunDeleted(uid, last) => {
                if last.is_some_and(|last| last.is_pending()) {
                    self.note_never_released(&uid);
                }
                self.delete(Kind::Run, &uid);
            }
            Delivery::Descendant(kind, descendant) => self.apply_descendant(kind, *descendant),
            Delivery::DescendantDeleted(kind, uid, last) => {
                if let Some(last) = last {
                    self.see(&last, true);
                }
                self.delete(kind, &uid);
            }
            Delivery::Namespace { uid, name, paused, leaving } => {
                self.apply_namespace(uid, &name, paused.as_deref(), leaving);
            }
            Delivery::NamespaceDeleted(uid) => self.delete_namespace(&uid),
            Delivery::Schedule(record) => self.apply_schedule(*record),
            Delivery::ScheduleDeleted(uid) => self.delete(Kind::Schedule, &uid),
        }
    }

    /// Returns the targets that have changed since the last call, including removed ones, in the order of their keys.
    pub fn take_dirty(&mut self) -> Vec<Key> {
        let mut keys: Vec<Key> = std::mem::take(&mut self.dirty).into_iter().collect();
        keys.sort_unstable();
        keys
    }

    /// Returns a target if it may be decided on now: all watches have delivered, no list is in progress, and the
    /// process's own writes were seen. Half a list can contain an execution's newest run and lack an earlier one. The
    /// watch of schedules does not matter here: without it, only decisions on schedules wait.
    #[must_use]
    pub fn ready(&self, key: &Key) -> Option<&Entry> {
        let is_awaited = |entry: &Entry| entry.expected.holds(entry.target.blind_to_schedules);
        self.entry(key).filter(|entry| self.is_synced() && !self.is_listing() && !is_awaited(entry))
    }

    /// Returns whether any list except that of schedules is in progress. Until it ends, nothing is decided.
    #[must_use]
    pub fn is_listing(&self) -> bool {
        Kind::NEEDED.iter().any(|kind| self.lists[kind].seen.is_some())
    }

    /// Returns a target, even if it must not be decided on now.
    #[must_use]
    pub fn entry(&self, key: &Key) -> Option<&Entry> {
        self.targets.get(key).map(Box::as_ref)
    }

    /// Returns the keys of all known targets.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.targets.keys()
    }

    /// Returns the number of known targets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns whether no target is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

/// Returns the entry of a target, and adds it if it is missing.
fn open<'a>(targets: &'a mut Targets, key: &Key, common: InCommon) -> &'a mut Entry {
    targets.entry(key.clone()).or_insert_with(|| Box::new(Entry::new(common)))
}

#[cfg(test)]
mod tests;
