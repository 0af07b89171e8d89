//! What the watches have delivered, as small parsed records by target.
//!
//! Synchronous and owned by one task, so there are no locks. It has no clock: times come with the deliveries. It knows
//! when a target may be decided on: not before the watch has delivered what this process itself wrote to it (SPEC
//! section 5, 7).

mod delivery;
mod expect;
mod follow;
mod keep;
mod live;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use wfe_core::Time;
use wfe_core::action::Decision;
use wfe_core::by_uid::ByUid;
use wfe_core::chain::{ChainName, RunNumber};
use wfe_core::execution::{ExecutionState, Lost};
use wfe_core::findings::Findings;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::reason::Refusal;
use wfe_core::run::{Order, Owner, Run};
use wfe_core::target::{Target, TargetName};
use wfe_core::tries::Trouble;
use wfe_core::waiting::Pause;
use wfe_tekton::{Descendant, Evidence, RunRequest};

pub use delivery::{Delivery, ExecutionRecord, Key, Kind};
use expect::Expectations;
pub use expect::{Expected, Live, READ_AFTER, Written};
use keep::{end_tries, keep_presence, keep_release, mark_gone, place_owner, share_strings};

/// One target with what the shell needs beside it.
#[derive(Debug, Default)]
pub struct Entry {
    /// The input of decisions.
    pub target: Target,
    beside: ByUid<Beside>,
    expected: Expectations,
    /// The runs that were deleted since the last decision: a write of it that answers late waits for none of them.
    vanished: ByUid<()>,
    /// What was seen of the runs, by uid, until their executions have ended.
    evidence: ByUid<Evidence>,
}

/// What the shell keeps of an execution beside what decisions need.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// `metadata.generation`.
    pub generation: i64,
    /// What it asks to run, while it is undecided.
    pub request: Option<Arc<RunRequest>>,
    /// Whether a run of it was seen, be it there still or not.
    pub had_run: bool,
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
    /// Boxed, since a table has room for half as many entries again.
    targets: HashMap<Key, Box<Entry>>,
    /// Where each object is, by kind: also what a list must hold for it to be still there.
    places: HashMap<Kind, HashMap<Uid, Key>>,
    /// The namespaces, by uid.
    namespaces: HashMap<Uid, Box<str>>,
    /// The paused namespaces, by name.
    paused: HashMap<Box<str>, Arc<Pause>>,
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
            places: HashMap::from(Kind::ALL.map(|kind| (kind, HashMap::new()))),
            namespaces: HashMap::new(),
            paused: HashMap::new(),
            lists: HashMap::from(Kind::ALL.map(|kind| (kind, List::default()))),
            next_order: 0,
            dirty: HashSet::new(),
        }
    }

    /// Tells whether all watches have delivered their first list. Before that every view is blind.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.lists.values().all(|list| list.complete_once)
    }

    /// Returns the watches that have not delivered their first list, in order.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| !self.lists[kind].complete_once).collect()
    }

    /// Returns the executions whose run lives in another execution namespace.
    pub fn elsewhere(&self) -> impl Iterator<Item = &ExecutionId> {
        self.targets
            .values()
            .flat_map(|entry| entry.target.executions.values())
            .filter(|execution| execution.elsewhere)
            .map(|execution| &execution.id)
    }

    /// Tells whether a run is known.
    #[must_use]
    pub fn knows_run(&self, uid: &Uid) -> bool {
        self.places[&Kind::Run].contains_key(uid)
    }

    /// Returns why a namespace is paused, where it is.
    #[must_use]
    pub fn pause_of(&self, namespace: &str) -> Option<&Pause> {
        self.paused.get(namespace).map(Arc::as_ref)
    }

    /// Returns the watched namespaces that are paused, in order.
    #[must_use]
    pub fn paused_namespaces(&self) -> Vec<&str> {
        let watched = |name: &str| self.watch_namespace.as_deref().is_none_or(|watched| watched == name);
        let mut paused: Vec<&str> = self.paused.keys().map(AsRef::as_ref).filter(|name| watched(name)).collect();
        paused.sort_unstable();
        paused
    }

    /// Takes in what a watch has delivered at a time.
    pub fn apply(&mut self, delivery: Delivery, now: Time) {
        match delivery {
            Delivery::ListBegins(kind) => {
                self.next_order += 1;
                let list = self.lists.entry(kind).or_default();
                list.place = self.next_order;
                list.epoch += 1;
                list.seen = Some(HashSet::new());
                if matches!(kind, Kind::TaskRun | Kind::Pod) {
                    self.targets.values_mut().for_each(|entry| entry.interrupt());
                }
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
            Delivery::Namespace(uid, name, paused) => self.apply_namespace(uid, &name, paused.as_deref()),
            Delivery::NamespaceDeleted(uid) => self.delete_namespace(&uid),
        }
    }

    /// Returns the targets that have changed since the last call, also those that are forgotten, in the order of their
    /// keys.
    pub fn take_dirty(&mut self) -> Vec<Key> {
        let mut keys: Vec<Key> = std::mem::take(&mut self.dirty).into_iter().collect();
        keys.sort_unstable();
        keys
    }

    /// Returns a target that may be decided on now: all watches have spoken, none is in the middle of a list, and its
    /// own writes are seen. Half a list can hold one's own run and not yet the one that came before it.
    #[must_use]
    pub fn ready(&self, key: &Key) -> Option<&Entry> {
        self.entry(key).filter(|entry| self.is_synced() && !self.is_listing() && entry.expected.is_empty())
    }

    /// Tells whether a list is under way: until it ends, nothing is decided.
    #[must_use]
    pub fn is_listing(&self) -> bool {
        self.lists.values().any(|list| list.seen.is_some())
    }

    /// Returns a target, whether or not it may be decided on.
    #[must_use]
    pub fn entry(&self, key: &Key) -> Option<&Entry> {
        self.targets.get(key).map(Box::as_ref)
    }

    /// Returns the targets that are known.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.targets.keys()
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

    /// Records that the API server refused to create an execution's run.
    pub fn refuse(&mut self, key: &Key, execution: &Uid, refusal: Refusal) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
            && matches!(execution.state, ExecutionState::Undecided { .. })
        {
            execution.remember().refusal = Some(refusal);
        }
    }

    /// Forgets what this process knows of its own tries, as another has led since: it begins anew, as after a restart.
    /// What it has seen stays, and so do its own writes that no watch has delivered yet.
    pub fn forget_tries(&mut self) {
        self.targets.values_mut().for_each(|entry| keep::forget_tries(&mut entry.target));
    }

    /// Records that a number of the chain is taken by an object that the watch does not show.
    pub fn number_taken(&mut self, key: &Key, number: RunNumber) {
        if let Some(entry) = self.targets.get_mut(key) {
            let taken = &mut entry.target.memory.highest_taken;
            *taken = number.max(*taken);
        }
    }

    /// Records that a live read found an owner gone. A uid never comes back, so this stays true.
    pub fn owner_gone(&mut self, key: &Key, owner: &ExecutionId) {
        if let Some(entry) = self.targets.get_mut(key) {
            mark_gone(&mut entry.target, &owner.uid);
        }
    }

    /// Records that no write of this process to a target is on its way now.
    pub fn settle(&mut self, key: &Key) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.vanished = ByUid::default();
        }
    }

    /// Records that an execution's run is tried to be created. The time for which the status says that it was tried
    /// counts, the time since then does not.
    pub fn tried(&mut self, key: &Key, execution: &Uid, now: Time) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
            && matches!(execution.state, ExecutionState::Undecided { .. })
        {
            let before = execution.waiting_shown.as_ref().map_or(Duration::ZERO, |shown| shown.tried);
            let first = TimeDelta::from_std(before).ok().and_then(|before| now.checked_sub_signed(before));
            execution.remember().first_try.get_or_insert(first.unwrap_or(now));
        }
    }

    /// Records that a run is tried to be released.
    pub fn release_tried(&mut self, key: &Key, run: &Uid, now: Time) {
        if let Some(run) = self.targets.get_mut(key).and_then(|entry| entry.target.runs.get_mut(run)) {
            run.memory.release_tried.get_or_insert(now);
        }
    }

    /// Records that a run was deleted because it could not be released.
    pub fn unreleased(&mut self, key: &Key, run: &Uid) {
        if let Some(Entry { target, .. }) = self.targets.get_mut(key).map(Box::as_mut)
            && let Some(trouble) = &target.memory.trouble
            && let Some(owner) = target.executions.values_mut().find(|it| it.is_running_on(run))
        {
            owner.remember().lost_proof = Some(Lost::Unreleased(Trouble::clone(trouble)));
        }
    }

    /// Records who waits by a decision, so that the status can say so when it lasts, and what is not tried any more.
    pub fn waits(&mut self, key: &Key, decision: &Decision, now: Time) {
        self.waits_on(key, decision, now);
        if let Some(entry) = self.targets.get_mut(key) {
            keep::end_other_tries(&mut entry.target, decision);
        }
    }

    /// Records who waits until a write of this process is seen. What is tried goes on: nothing was decided about it.
    pub fn waits_on(&mut self, key: &Key, decision: &Decision, now: Time) {
        let Some(entry) = self.targets.get_mut(key) else { return };
        for (id, _) in &decision.waiting {
            if let Some(execution) = entry.target.executions.get_mut(&id.uid) {
                execution.remember().waits_since.get_or_insert(now);
            }
        }
    }

    /// Records what keeps this process from carrying out decisions on a target; `None` when nothing does any more.
    pub fn trouble(&mut self, key: &Key, trouble: Option<Trouble>) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.memory.trouble = trouble.map(Box::new);
        }
    }

    /// Records what a live look at a run has found.
    pub fn looked(&mut self, key: &Key, run: &Uid, findings: Findings, now: Time) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.looked(run, findings, now);
        }
    }

    /// Records that it has been told that steps of a run have run again.
    pub fn replay_told(&mut self, key: &Key, run: &Uid) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.replay_told(run);
        }
    }

    /// Records when the status of an execution was last told how far its run is.
    pub fn showed_progress(&mut self, key: &Key, execution: &Uid, now: Time) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
        {
            execution.remember().progress_shown_at = Some(now);
        }
    }

    /// Records that it has been said that a target drains for too long.
    pub fn drain_warned(&mut self, key: &Key) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.memory.drain_warned = true;
        }
    }

    fn apply_execution(&mut self, record: ExecutionRecord) {
        let uid = record.execution.id.uid.clone();
        let key = record.key();
        if let Some(previous) = self.place(Kind::Execution, &uid, &key) {
            self.remove(Kind::Execution, &previous, &uid);
        }
        let entry = self.targets.entry(key.clone()).or_default();
        entry.expected.seen(Kind::Execution, &uid, &record.execution.version);
        entry.target.name = record.target;
        entry.target.is_unreadable = matches!(key, Key::Unreadable(_));
        let beside = Beside {
            generation: record.generation,
            request: record.request,
            had_run: entry.beside.get(&uid).is_some_and(|known| known.had_run),
        };
        entry.beside.insert(uid.clone(), beside);
        let mut execution = record.execution;
        execution.paused = pause_for(&self.paused, &execution.id.namespace, entry.target.name.as_ref());
        if let Some(known) = entry.target.executions.get_mut(&uid) {
            let memory = known.memory.take();
            execution.memory = memory.and_then(|memory| memory.kept(&known.state, &execution.state));
        }
        let has_ended = execution.is_terminal();
        entry.target.executions.insert(uid, execution);
        if has_ended {
            entry.forget();
        }
        self.dirty.insert(key);
    }

    fn apply_run(&mut self, chain: ChainName, run: Run, now: Time) {
        let key = Key::Chain(chain);
        self.place(Kind::Run, &run.id.uid, &key);
        let listing = self.lists.get(&Kind::Run).filter(|list| list.seen.is_some()).map(|list| list.place);
        self.keep_run(key, run, listing, now);
    }

    fn keep_run(&mut self, key: Key, mut run: Run, listing: Option<u64>, now: Time) {
        let uid = run.id.uid.clone();
        let entry = self.targets.entry(key.clone()).or_default();
        keep_release(&mut run, entry.target.runs.get(&uid), now);
        if let Some(known) = entry.target.runs.get_mut(&uid) {
            run.order = known.order;
            run.memory = std::mem::take(&mut known.memory);
            keep_presence(&mut run, known);
        } else {
            run.order = Order(listing.unwrap_or_else(|| {
                self.next_order += 1;
                self.next_order
            }));
            place_owner(&mut run, self.watch_namespace.as_deref());
        }
        if let Owner::Execution { id, .. } = &run.owner
            && let Some(execution) = entry.target.executions.get_mut(&id.uid)
        {
            entry.beside.get_or_insert_with(&id.uid, Beside::default).had_run = true;
            end_tries(execution);
        }
        share_strings(&mut run.owner, &entry.target.executions);
        entry.find(&run.id);
        entry.follow(&mut run, listing.is_some());
        if !run.is_unfinished() {
            run.memory.done_seen.get_or_insert(now);
        }
        entry.expected.seen(Kind::Run, &uid, &run.version);
        let is_unwatched = run.unwatched.is_some();
        entry.target.runs.insert(uid, run);
        if is_unwatched {
            entry.drop_unwatched();
        }
        self.dirty.insert(key);
    }

    /// Records that the last version of a run was pending still: nothing of it ran.
    fn note_never_released(&mut self, uid: &Uid) {
        let key = self.places[&Kind::Run].get(uid);
        if let Some(entry) = key.and_then(|key| self.targets.get_mut(key)) {
            entry.note_never_released(uid);
        }
    }

    /// Keeps a descendant only while it is unfinished; what it shows is kept with the run.
    fn apply_descendant(&mut self, kind: Kind, mut descendant: Descendant) {
        let uid = descendant.residue.id.uid.clone();
        self.see(&descendant, false);
        let key = Key::Chain(descendant.chain);
        if !descendant.unfinished {
            self.note_seen(kind, &uid);
            self.delete(kind, &uid);
            return self.touch(&key);
        }
        self.place(kind, &uid, &key);
        let entry = self.targets.entry(key.clone()).or_default();
        share_strings(&mut descendant.residue.owner, &entry.target.executions);
        entry.target.residue.insert(uid, descendant.residue);
        self.dirty.insert(key);
    }

    /// Takes in what a descendant shows.
    fn see(&mut self, descendant: &Descendant, is_deleted: bool) {
        let Some(sighting) = &descendant.sighting else { return };
        let key = Key::Chain(descendant.chain);
        let is_listing = !self.is_synced() || self.is_listing();
        if is_listing {
            // Nothing else of the target may be known yet: the lists come in any order.
            self.targets.entry(key.clone()).or_default();
        }
        if self.targets.get_mut(&key).is_some_and(|entry| entry.see(sighting, is_deleted, is_listing)) {
            self.dirty.insert(key);
        }
    }

    fn apply_namespace(&mut self, uid: Uid, name: &str, paused: Option<&str>) {
        self.note_seen(Kind::Namespace, &uid);
        self.namespaces.insert(uid, name.into());
        let pause = paused.map(|why| Arc::new(Pause { namespace: name.into(), why: why.into() }));
        let previous = match pause.clone() {
            Some(pause) => self.paused.insert(name.into(), pause),
            None => self.paused.remove(name),
        };
        if previous != pause {
            self.spread_pause(name);
        }
    }

    fn delete_namespace(&mut self, uid: &Uid) {
        if let Some(name) = self.namespaces.remove(uid)
            && self.paused.remove(&name).is_some()
        {
            self.spread_pause(&name);
        }
    }

    /// Pauses or resumes the executions that a namespace concerns: those in it, and those whose target is in it. Goes
    /// through all executions, as people do this by hand and rarely.
    fn spread_pause(&mut self, namespace: &str) {
        for (key, entry) in &mut self.targets {
            let Target { name, executions, .. } = &mut entry.target;
            let is_target_in_it = name.as_ref().and_then(TargetName::namespace) == Some(namespace);
            for execution in executions.values_mut().filter(|e| is_target_in_it || &*e.id.namespace == namespace) {
                execution.paused = pause_for(&self.paused, &execution.id.namespace, name.as_ref());
                self.dirty.insert(key.clone());
            }
        }
    }

    /// Notes where an object is. Returns where it was, if that was elsewhere.
    fn place(&mut self, kind: Kind, uid: &Uid, key: &Key) -> Option<Key> {
        self.note_seen(kind, uid);
        let previous = self.places.entry(kind).or_default().insert(uid.clone(), key.clone());
        previous.filter(|previous| previous != key)
    }

    fn delete(&mut self, kind: Kind, uid: &Uid) {
        if let Some(key) = self.places.entry(kind).or_default().remove(uid) {
            self.remove(kind, &key, uid);
        }
    }

    fn remove(&mut self, kind: Kind, key: &Key, uid: &Uid) {
        if let Some(entry) = self.targets.get_mut(key) {
            match kind {
                Kind::Execution => {
                    entry.target.executions.remove(uid);
                    entry.beside.remove(uid);
                    mark_gone(&mut entry.target, uid);
                }
                Kind::Run => {
                    if let Some(run) = entry.target.runs.remove(uid) {
                        entry.lose(run);
                        entry.vanished.insert(uid.clone(), ());
                    }
                    entry.target.residue.remove(uid);
                }
                Kind::TaskRun | Kind::CustomRun | Kind::Pod => {
                    entry.target.residue.remove(uid);
                }
                Kind::Namespace => {}
            }
            entry.expected.gone(kind, uid);
            entry.target.memory.drain_warned &= !entry.target.residue.is_empty();
        }
        self.touch(key);
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
        list.complete_once = true;
        let known: Vec<&Uid> = match kind {
            Kind::Namespace => self.namespaces.keys().collect(),
            _ => self.places[&kind].keys().collect(),
        };
        let vanished: Vec<Uid> = known.into_iter().filter(|uid| !seen.contains(uid)).cloned().collect();
        for uid in &vanished {
            match kind {
                Kind::Namespace => self.delete_namespace(uid),
                _ => self.delete(kind, uid),
            }
        }
        if self.is_synced() {
            let emptied = self.targets.extract_if(|_, entry| entry.target.is_empty());
            self.dirty.extend(emptied.map(|(key, _)| key));
        }
        let is_listing = self.is_listing();
        // All of them: nothing was decided on while the list was under way.
        for (key, entry) in &mut self.targets {
            if !is_listing {
                entry.forget();
                // Lists come in any order: a run may have come before its execution.
                let Target { executions, runs, .. } = &mut entry.target;
                runs.values_mut().for_each(|run| share_strings(&mut run.owner, executions));
            }
            entry.expected.listed(kind, epoch, &seen);
            self.dirty.insert(key.clone());
        }
    }

    /// Marks a target as changed, and forgets it when nothing is left of it and nothing of it can be still to come.
    fn touch(&mut self, key: &Key) {
        if self.is_synced() && self.targets.get(key).is_some_and(|entry| entry.target.is_empty()) {
            self.targets.remove(key);
        }
        self.dirty.insert(key.clone());
    }
}

/// Returns the pause that holds an execution back: that of its own namespace, else that of its target's.
fn pause_for(
    paused: &HashMap<Box<str>, Arc<Pause>>,
    namespace: &str,
    target: Option<&TargetName>,
) -> Option<Arc<Pause>> {
    let of_target = || paused.get(target?.namespace()?);
    paused.get(namespace).or_else(of_target).cloned()
}

#[cfg(test)]
mod tests;
