//! Applies the deliveries of the watches to the view.

use wfe_core::Time;
use wfe_core::chain::ChainName;
use wfe_core::name::Uid;
use wfe_core::run::{Order, Owner, Run};
use wfe_core::target::Target;
use wfe_tekton::Descendant;

use super::keep::{
    end_tries, forget_owners, keep_presence, keep_release, keep_stop, mark_gone, place_owner, share_strings,
};
use super::pause::pause_for;
use super::schedules::relative_of;
use super::{Beside, ExecutionRecord, Index, Key, Kind, open};

impl Index {
    pub(super) fn apply_execution(&mut self, record: ExecutionRecord) {
        let uid = record.execution.id.uid.clone();
        let key = record.key();
        if let Some(previous) = self.key_of(Kind::Execution, &uid, &key) {
            self.remove(Kind::Execution, &previous, &uid);
        }
        let mut execution = record.execution;
        execution.id.namespace = self.share(&execution.id.namespace);
        self.intern_execution(&mut execution);
        let relative = relative_of(&execution);
        if let Some((schedule, _)) = &relative {
            self.find_child(schedule, &execution);
        }
        let common = self.in_common();
        let entry = open(&mut self.targets, &key, common);
        entry.expected.seen(Kind::Execution, &uid, &execution.version);
        entry.target.name = record.target;
        entry.target.is_unreadable = matches!(key, Key::Unreadable(_));
        let beside = Beside {
            generation: record.generation,
            request: record.request,
            redaction: record.redaction,
            had_run: entry.beside.get(&uid).is_some_and(|known| known.had_run),
        };
        entry.beside.insert(uid.clone(), beside);
        execution.paused = pause_for(&self.paused, &execution.id.namespace, entry.target.name.as_ref());
        let (mut made_for, mut was_terminal) = (None, None);
        if let Some(known) = entry.target.executions.get_mut(&uid) {
            was_terminal = Some(known.is_terminal());
            let memory = known.memory.take();
            execution.memory = memory.and_then(|memory| memory.kept(known, &execution));
            made_for = known.child.take().map(|child| child.schedule);
        }
        let has_ended =
            execution.is_terminal() || execution.retry.as_ref().is_some_and(|it| it.ended().next().is_some());
        entry.target.executions.insert(uid.clone(), execution);
        if has_ended {
            entry.forget();
        }
        self.record_events(&key, &uid, was_terminal);
        self.dirty.insert(key);
        let of = relative.as_ref().map(|(schedule, _)| schedule.clone());
        self.relate(&uid, made_for, relative);
        if let Some(schedule) = of {
            self.note_words(&uid, &schedule, record.end.as_deref());
        }
    }

    pub(super) fn apply_run(&mut self, chain: ChainName, mut run: Run, now: Time) {
        let key = Key::Chain(chain);
        // The run was a pipeline in a pipeline before, and has lost its controller.
        if let Some(previous) = self.key_of(Kind::Run, &run.id.uid, &key) {
            self.remove(Kind::Run, &previous, &run.id.uid);
        }
        let listing = self.lists.get(&Kind::Run).filter(|list| list.seen.is_some()).map(|list| list.place);
        let uid = run.id.uid.clone();
        let common = self.in_common();
        let entry = open(&mut self.targets, &key, common);
        keep_release(&mut run, entry.target.runs.get(&uid), now);
        keep_stop(&mut run, entry.target.runs.get_mut(&uid), now);
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
            end_tries(execution, &run);
        }
        share_strings(&mut run.owner, &entry.target.executions);
        entry.follow(&mut run, listing.is_some());
        if !run.is_unfinished() {
            run.memory.done_seen.get_or_insert(now);
        }
        entry.expected.seen(Kind::Run, &uid, &run.version);
        entry.target.runs.insert(uid, run);
        self.dirty.insert(key);
    }

    /// Records that a run was still pending in its last version, so nothing of it ran.
    pub(super) fn note_never_released(&mut self, uid: &Uid) {
        let key = self.places[&Kind::Run].get(uid);
        if let Some(entry) = key.and_then(|key| self.targets.get_mut(key)) {
            entry.note_never_released(uid);
        }
    }

    /// Stores a descendant only while it is unfinished. Its evidence is stored with the run.
    pub(super) fn apply_descendant(&mut self, kind: Kind, mut descendant: Descendant) {
        let uid = descendant.residue.id.uid.clone();
        self.see(&descendant, false);
        let key = Key::Chain(descendant.chain);
        if !descendant.unfinished {
            self.note_seen(kind, &uid);
            self.delete(kind, &uid);
            // A descendant that had finished before changes nothing. When runs are deleted, many of these are delivered
            // together.
            if self.targets.get(&key).is_some_and(|entry| entry.target.is_empty()) {
                self.touch(&key);
            }
            return;
        }
        // The target annotation of the descendant may have changed, but each descendant belongs to one target.
        if let Some(previous) = self.key_of(kind, &uid, &key) {
            self.remove(kind, &previous, &uid);
        }
        let common = self.in_common();
        let entry = open(&mut self.targets, &key, common);
        share_strings(&mut descendant.residue.owner, &entry.target.executions);
        entry.target.residue.insert(uid, descendant.residue);
        self.dirty.insert(key);
    }

    /// Adds the evidence of a descendant to its target.
    pub(super) fn see(&mut self, descendant: &Descendant, is_deleted: bool) {
        let Some(sighting) = &descendant.sighting else { return };
        let key = Key::Chain(descendant.chain);
        let is_listing = !self.is_synced() || self.is_listing();
        if is_listing {
            // The target may not be known yet, because lists arrive in any order.
            let common = self.in_common();
            open(&mut self.targets, &key, common);
        }
        if self.targets.get_mut(&key).is_some_and(|entry| entry.see(sighting, is_deleted, is_listing)) {
            self.dirty.insert(key);
        }
    }

    /// Records the target of an object. Returns the previous target if it differs.
    pub(super) fn key_of(&mut self, kind: Kind, uid: &Uid, key: &Key) -> Option<Key> {
        self.note_seen(kind, uid);
        let previous = self.places.entry(kind).or_default().insert(uid.clone(), key.clone());
        previous.filter(|previous| previous != key)
    }

    pub(super) fn delete(&mut self, kind: Kind, uid: &Uid) {
        if let Some(key) = self.places.entry(kind).or_default().remove(uid) {
            self.remove(kind, &key, uid);
        }
    }

    pub(super) fn remove(&mut self, kind: Kind, key: &Key, uid: &Uid) {
        let (mut made_for, mut children, mut gone) = (None, Vec::new(), None);
        if let Some(entry) = self.targets.get_mut(key) {
            match kind {
                Kind::Execution => {
                    let removed = entry.target.executions.remove(uid);
                    made_for = removed.as_ref().and_then(|it| it.child.as_ref()).map(|child| child.schedule.clone());
                    gone = removed;
                    entry.vanished.insert(uid.clone(), ());
                    entry.beside.remove(uid);
                    mark_gone(&mut entry.target, uid);
                }
                Kind::Run => {
                    if let Some(run) = entry.target.runs.remove(uid) {
                        entry.lose(run);
                        entry.vanished.insert(uid.clone(), ());
                    }
                    entry.target.residue.remove(uid);
                    forget_owners(&mut entry.target);
                }
                Kind::TaskRun | Kind::CustomRun | Kind::Pod => {
                    entry.target.residue.remove(uid);
                }
                Kind::Schedule => {
                    children = entry.target.schedules.remove(uid).map(|removed| removed.children).unwrap_or_default();
                }
                Kind::Namespace => {}
            }
            entry.expected.gone(kind, uid);
            entry.target.drain_warned &= !entry.target.residue.is_empty();
        }
        self.touch(key);
        if let Some(gone) = gone {
            self.forget_probe(&gone);
        }
        if kind == Kind::Schedule {
            self.leave_line(uid);
        }
        if let Some(schedule) = made_for {
            self.part(&schedule, uid);
        }
        self.abandon(&children);
    }

    pub(super) fn note_seen(&mut self, kind: Kind, uid: &Uid) {
        if let Some(seen) = self.lists.get_mut(&kind).and_then(|list| list.seen.as_mut()) {
            seen.insert(uid.clone());
        }
    }

    /// Ends a list. Objects that the list lacks were deleted while no watch was running, and expectations from before
    /// the list no longer apply.
    pub(super) fn end_list(&mut self, kind: Kind) {
        let saw_schedules = self.sees_schedules();
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
        let is_needed = kind != Kind::Schedule;
        // Mark all targets, because nothing was decided on during the list. A list of schedules delays only schedules.
        for (key, entry) in &mut self.targets {
            if is_needed && !is_listing {
                entry.forget();
                // Lists arrive in any order, so a run may have been delivered before its execution.
                let Target { executions, runs, .. } = &mut entry.target;
                runs.values_mut().for_each(|run| share_strings(&mut run.owner, executions));
            }
            entry.expected.listed(kind, epoch, &seen);
            if is_needed {
                self.dirty.insert(key.clone());
            }
        }
        self.note_sight(saw_schedules);
        self.gather_children();
    }

    /// Marks a target as changed. The target is removed if it has no records and no list can deliver any.
    pub(super) fn touch(&mut self, key: &Key) {
        if self.is_synced() && self.targets.get(key).is_some_and(|entry| entry.target.is_empty()) {
            self.targets.remove(key);
        }
        self.dirty.insert(key.clone());
    }
}
