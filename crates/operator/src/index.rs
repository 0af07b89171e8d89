//! What the watches have delivered, as small parsed records by target.
//!
//! Synchronous and owned by one task, so there are no locks. It knows when a target may be decided on: not before the
//! watch has delivered what this process itself wrote to it (SPEC section 5, 7).

mod expect;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wfe_core::ending::Refusal;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::run::{Order, Owner, Presence, Run};
use wfe_core::target::{ChainName, RunNumber, Target, TargetName};
use wfe_tekton::RunRequest;

use expect::Expectations;
pub use expect::Expected;

/// What a decision is about, and what is decided one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A target, by the name of its chain.
    Chain(ChainName),
    /// An execution whose target cannot be read: it locks nothing and stands alone.
    Unreadable(Uid),
}

/// Which of the two watches an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `WorkflowExecution`.
    Execution,
    /// `PipelineRun`.
    Run,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Execution, Self::Run];

    /// Returns the closed label for metrics and logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Execution => "workflowexecutions",
            Self::Run => "pipelineruns",
        }
    }
}

/// What the index keeps of one `WorkflowExecution`.
#[derive(Clone, Debug)]
pub struct ExecutionRecord {
    /// What decisions need.
    pub execution: Execution,
    /// Its target, where it can be read.
    pub target: Option<TargetName>,
    /// `metadata.generation`, for `observedGeneration`.
    pub generation: i64,
    /// What it asks to run; kept only while it is undecided and usable.
    pub request: Option<Arc<RunRequest>>,
}

impl ExecutionRecord {
    fn key(&self) -> Key {
        match &self.target {
            Some(target) => Key::Chain(target.chain()),
            None => Key::Unreadable(self.execution.id.uid.clone()),
        }
    }
}

/// What one watch has delivered.
#[derive(Debug)]
pub enum Delivery {
    /// A list begins: what it does not hold at its end is gone.
    ListBegins(Kind),
    /// A list is complete.
    ListEnds(Kind),
    /// An execution was listed or changed.
    Execution(Box<ExecutionRecord>),
    /// An execution was deleted.
    ExecutionDeleted(Uid),
    /// A run was listed or changed. Its order is given here, not by the watch.
    Run(ChainName, Box<Run>),
    /// A run was deleted.
    RunDeleted(Uid),
}

/// One target with what the shell needs beside it.
#[derive(Debug, Default)]
pub struct Entry {
    /// The input of decisions.
    pub target: Target,
    /// Its name, from the executions; of a chain whose executions are all gone it is not known.
    pub name: Option<TargetName>,
    beside: HashMap<Uid, Beside>,
    expected: Expectations,
}

/// What the shell keeps of an execution beside what decisions need.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// `metadata.generation`.
    pub generation: i64,
    /// What it asks to run, while it is undecided.
    pub request: Option<Arc<RunRequest>>,
}

impl Entry {
    /// Returns what the shell keeps of an execution.
    #[must_use]
    pub fn beside(&self, uid: &Uid) -> Beside {
        self.beside.get(uid).cloned().unwrap_or_default()
    }
}

/// All targets.
#[derive(Debug)]
pub struct Index {
    /// The one namespace whose executions are watched; `None`: all.
    watch_namespace: Option<String>,
    targets: HashMap<Key, Entry>,
    execution_keys: HashMap<Uid, Key>,
    run_keys: HashMap<Uid, Key>,
    lists: HashMap<Kind, List>,
    next_order: u64,
    dirty: HashSet<Key>,
}

/// How far the lists of one watch are.
#[derive(Debug, Default)]
struct List {
    /// How many lists have begun.
    epoch: u64,
    /// Whether one has been completed: before that nothing is known.
    complete_once: bool,
    /// The place in the order of creation that all share which the current list brings new.
    place: u64,
    /// What the list that is under way has delivered.
    seen: Option<HashSet<Uid>>,
}

impl Index {
    /// Makes an empty index.
    #[must_use]
    pub fn new(watch_namespace: Option<String>) -> Self {
        Self {
            watch_namespace,
            targets: HashMap::new(),
            execution_keys: HashMap::new(),
            run_keys: HashMap::new(),
            lists: HashMap::from(Kind::ALL.map(|kind| (kind, List::default()))),
            next_order: 0,
            dirty: HashSet::new(),
        }
    }

    /// Tells whether both watches have delivered their first list. Before that every view is blind.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.lists.values().all(|list| list.complete_once)
    }

    /// Takes in what a watch has delivered.
    pub fn apply(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::ListBegins(kind) => {
                self.next_order += 1;
                let list = self.lists.entry(kind).or_default();
                list.place = self.next_order;
                list.epoch += 1;
                list.seen = Some(HashSet::new());
            }
            Delivery::ListEnds(kind) => self.end_list(kind),
            Delivery::Execution(record) => self.apply_execution(*record),
            Delivery::ExecutionDeleted(uid) => self.delete_execution(&uid),
            Delivery::Run(chain, run) => self.apply_run(chain, *run),
            Delivery::RunDeleted(uid) => self.delete_run(&uid),
        }
    }

    /// Returns the targets that have changed since the last call.
    pub fn take_dirty(&mut self) -> HashSet<Key> {
        std::mem::take(&mut self.dirty)
    }

    /// Returns a target that may be decided on now: both watches have spoken, and its own writes are seen.
    #[must_use]
    pub fn ready(&self, key: &Key) -> Option<&Entry> {
        self.targets.get(key).filter(|entry| self.is_synced() && entry.expected.is_empty())
    }

    /// Returns a target, whether or not it may be decided on.
    #[must_use]
    pub fn entry(&self, key: &Key) -> Option<&Entry> {
        self.targets.get(key)
    }

    /// Returns how many targets are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Tells whether no target is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Holds a target back until the watch has delivered a write of this process.
    pub fn expect(&mut self, key: &Key, expected: Expected) {
        let epoch = self.lists.get(&expected.kind()).map_or(0, |list| list.epoch);
        if let Some(entry) = self.targets.get_mut(key)
            && !already_seen(&entry.target, &expected)
        {
            entry.expected.add(expected, epoch);
        }
    }

    /// Records that the API server refused to create an execution's run.
    pub fn refuse(&mut self, key: &Key, execution: &Uid, refusal: Refusal) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
            && let ExecutionState::Undecided { refusal: slot, .. } = &mut execution.state
        {
            *slot = Some(refusal);
        }
    }

    /// Records that a number of the chain is taken by an object that the watch does not show.
    pub fn number_taken(&mut self, key: &Key, number: RunNumber) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.highest_taken = entry.target.highest_taken.max(number);
        }
    }

    /// Records that a live read found an owner gone. A uid never comes back, so this stays true.
    pub fn owner_gone(&mut self, key: &Key, owner: &ExecutionId) {
        if let Some(entry) = self.targets.get_mut(key) {
            mark_gone(&mut entry.target, &owner.uid);
        }
    }

    fn apply_execution(&mut self, record: ExecutionRecord) {
        let uid = record.execution.id.uid.clone();
        let key = record.key();
        self.note_seen(Kind::Execution, &uid);
        let previous = self.execution_keys.insert(uid.clone(), key.clone());
        if let Some(previous) = previous.filter(|previous| *previous != key) {
            self.forget_execution(&previous, &uid);
        }
        let entry = self.targets.entry(key.clone()).or_default();
        entry.expected.seen(Kind::Execution, &uid, &record.execution.version);
        entry.name = record.target;
        entry.beside.insert(uid.clone(), Beside { generation: record.generation, request: record.request });
        let mut execution = record.execution;
        let known = entry.target.executions.get(&uid);
        keep_refusal(&mut execution, known);
        entry.target.executions.insert(uid, execution);
        self.dirty.insert(key);
    }

    fn delete_execution(&mut self, uid: &Uid) {
        if let Some(key) = self.execution_keys.remove(uid) {
            self.forget_execution(&key, uid);
        }
    }

    fn forget_execution(&mut self, key: &Key, uid: &Uid) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.executions.remove(uid);
            entry.beside.remove(uid);
            entry.expected.gone(Kind::Execution, uid);
            mark_gone(&mut entry.target, uid);
        }
        self.touch(key);
    }

    fn apply_run(&mut self, chain: ChainName, mut run: Run) {
        let uid = run.id.uid.clone();
        let key = Key::Chain(chain);
        self.note_seen(Kind::Run, &uid);
        self.run_keys.insert(uid.clone(), key.clone());
        let listing = self.lists.get(&Kind::Run).filter(|list| list.seen.is_some()).map(|list| list.place);
        let entry = self.targets.entry(key.clone()).or_default();
        if let Some(known) = entry.target.runs.get(&uid) {
            run.order = known.order;
            keep_presence(&mut run, known);
        } else {
            run.order = Order(listing.unwrap_or_else(|| {
                self.next_order += 1;
                self.next_order
            }));
            place_owner(&mut run, self.watch_namespace.as_deref());
        }
        entry.expected.seen(Kind::Run, &uid, &run.version);
        entry.target.runs.insert(uid, run);
        self.dirty.insert(key);
    }

    fn delete_run(&mut self, uid: &Uid) {
        let Some(key) = self.run_keys.remove(uid) else { return };
        if let Some(entry) = self.targets.get_mut(&key) {
            entry.target.runs.remove(uid);
            entry.expected.gone(Kind::Run, uid);
        }
        self.touch(&key);
    }

    fn note_seen(&mut self, kind: Kind, uid: &Uid) {
        if let Some(seen) = self.lists.get_mut(&kind).and_then(|list| list.seen.as_mut()) {
            seen.insert(uid.clone());
        }
    }

    /// What a complete list does not hold was deleted while nobody watched, and expectations from before it are moot.
    fn end_list(&mut self, kind: Kind) {
        let list = self.lists.entry(kind).or_default();
        let seen = list.seen.take().unwrap_or_default();
        let epoch = list.epoch;
        let first = !std::mem::replace(&mut list.complete_once, true);
        let keys = match kind {
            Kind::Execution => &self.execution_keys,
            Kind::Run => &self.run_keys,
        };
        let vanished: Vec<Uid> = keys.keys().filter(|uid| !seen.contains(uid)).cloned().collect();
        for uid in &vanished {
            match kind {
                Kind::Execution => self.delete_execution(uid),
                Kind::Run => self.delete_run(uid),
            }
        }
        for (key, entry) in &mut self.targets {
            if entry.expected.listed(kind, epoch, &seen) || first {
                self.dirty.insert(key.clone());
            }
        }
    }

    /// Marks a target as changed, or forgets it when nothing is left of it.
    fn touch(&mut self, key: &Key) {
        if self.targets.get(key).is_some_and(|entry| entry.target.is_empty()) {
            self.targets.remove(key);
            self.dirty.remove(key);
        } else {
            self.dirty.insert(key.clone());
        }
    }
}

/// The answer to a write can come after the watch has delivered it.
fn already_seen(target: &Target, expected: &Expected) -> bool {
    match expected {
        Expected::Version { kind, uid, version } => {
            let seen = match kind {
                Kind::Execution => target.executions.get(uid).map(|execution| &execution.version),
                Kind::Run => target.runs.get(uid).map(|run| &run.version),
            };
            seen.is_some_and(|seen| expect::at_least(seen, version))
        }
        Expected::Absence { uid } => !target.runs.contains_key(uid),
    }
}

fn keep_refusal(execution: &mut Execution, known: Option<&Execution>) {
    if let ExecutionState::Undecided { refusal, .. } = &mut execution.state
        && let Some(ExecutionState::Undecided { refusal: Some(known), .. }) = known.map(|known| &known.state)
    {
        *refusal = Some(known.clone());
    }
}

fn keep_presence(run: &mut Run, known: &Run) {
    if let (Owner::Execution { id, presence, .. }, Owner::Execution { id: known_id, presence: known, .. }) =
        (&mut run.owner, &known.owner)
        && id.uid == known_id.uid
    {
        *presence = *known;
    }
}

fn place_owner(run: &mut Run, watch_namespace: Option<&str>) {
    if let Owner::Execution { id, presence, .. } = &mut run.owner
        && watch_namespace.is_some_and(|namespace| namespace != &*id.namespace)
    {
        *presence = Presence::Elsewhere;
    }
}

fn mark_gone(target: &mut Target, owner: &Uid) {
    for run in target.runs.values_mut() {
        if let Owner::Execution { id, presence, .. } = &mut run.owner
            && id.uid == *owner
        {
            *presence = Presence::Gone;
        }
    }
}

#[cfg(test)]
mod tests;
