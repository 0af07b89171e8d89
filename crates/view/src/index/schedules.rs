//! The schedules, and which executions are their children (section 12.7).
//!
//! A schedule is stored with the target of its template, together with all its children, even children on an earlier
//! target. Each child records whether its schedule still needs it.

use std::collections::HashMap;
use std::sync::Arc;

use wfe_core::Time;
use wfe_core::ending::CANCELLED;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::Uid;
use wfe_core::reason::FailureReason;
use wfe_core::schedule::{Child, ChildState, Outcome, Retention, SaidOfChild, Schedule, ScheduleMemory};
use wfe_core::triage::{AnalystRun, AnalystState, State};

use super::pause::pause_for;
use super::{EndPhase, EndShown, Index, Key, Kind, ScheduleRecord, open};

impl Index {
    /// Returns whether all schedules are known: a list of them is complete, none is in progress, and their watch works.
    #[must_use]
    pub fn sees_schedules(&self) -> bool {
        let list = &self.lists[&Kind::Schedule];
        self.hears_schedules && list.complete_once && list.seen.is_none()
    }

    /// Records whether the watch of schedules works: it does not fail, and has not been silent for too long.
    pub fn hear_schedules(&mut self, heard: bool) {
        let saw = self.sees_schedules();
        self.hears_schedules = heard;
        if saw != self.sees_schedules() {
            self.note_sight(saw);
            self.gather_children();
        }
    }

    /// Records at every target whether schedules can be seen, if this has changed. This is rare: it happens when the
    /// watch fails or starts with a list again.
    pub(super) fn note_sight(&mut self, saw: bool) {
        let sees = self.sees_schedules();
        if saw == sees {
            return;
        }
        for (key, entry) in &mut self.targets {
            let target = &mut entry.target;
            target.blind_to_schedules = !sees;
            let mut executions = target.executions.values();
            if sees && (!target.schedules.is_empty() || executions.any(|it| it.child.is_some())) {
                self.dirty.insert(key.clone());
            }
        }
    }

    pub(super) fn apply_schedule(&mut self, record: ScheduleRecord) {
        let key = record.key();
        let ScheduleRecord { mut schedule, target } = record;
        let uid = schedule.id.uid.clone();
        let place = self.key_of(Kind::Schedule, &uid, &key).unwrap_or_else(|| key.clone());
        let known = self.targets.get_mut(&place).and_then(|entry| entry.target.schedules.remove(&uid));
        if place != key {
            self.remove(Kind::Schedule, &place, &uid);
        }
        if let Some(known) = known {
            schedule.memory = still_valid(known.memory, known.generation, &schedule);
            (schedule.children, schedule.analyst) = (known.children, known.analyst);
        } else {
            (schedule.children, schedule.analyst) = self.find_family(&schedule).into();
        }
        self.note_triage(&schedule);
        schedule.id.namespace = self.share(&schedule.id.namespace);
        self.intern_schedule(&mut schedule);
        schedule.paused = pause_for(&self.paused, &schedule.id.namespace, target.as_ref());
        schedule.leaving |= self.leaving.contains(&*schedule.id.namespace);
        let common = self.in_common();
        let entry = open(&mut self.targets, &key, common);
        entry.expected.seen(Kind::Schedule, &uid, &schedule.version);
        if target.is_some() {
            entry.target.name = target;
        }
        entry.target.is_unreadable = matches!(key, Key::Unreadable(_));
        entry.target.schedules.insert(uid.clone(), schedule);
        self.dirty.insert(key);
        self.keep_family(&uid);
    }

    /// Finds the children and the analyst of a new schedule, because they may have been delivered before it. Most new
    /// schedules have neither, because their plan has not begun.
    fn find_family(&self, schedule: &Schedule) -> Family {
        let mut family = Family::default();
        if schedule.status.planned_from.is_none() || self.will_gather() {
            return family;
        }
        let uid = &schedule.id.uid;
        let executions = self.targets.values().flat_map(|entry| entry.target.executions.values());
        let its_own = executions.filter(|it| it.child.as_ref().is_some_and(|child| child.schedule == *uid));
        its_own.filter_map(relative_of).for_each(|(_, relative)| family.take_in(relative));
        family
    }

    /// Returns whether a list in progress may deliver schedules or children. Schedules and children are related anew
    /// when the list ends.
    fn will_gather(&self) -> bool {
        self.is_listing() || self.lists[&Kind::Schedule].seen.is_some()
    }

    /// Relates children to all schedules anew, and records for each child whether it is needed. This is necessary
    /// because children may be listed before schedules, and because nothing is recorded while schedules cannot be seen.
    /// A child without a schedule is kept for its own time to live.
    pub(super) fn gather_children(&mut self) {
        if self.is_listing() || !self.sees_schedules() {
            return;
        }
        let schedules = self.places[&Kind::Schedule].keys();
        let mut families: HashMap<Uid, Family> = schedules.map(|uid| (uid.clone(), Family::default())).collect();
        for (key, entry) in &mut self.targets {
            for execution in entry.target.executions.values_mut() {
                let Some((schedule, relative)) = relative_of(execution) else { continue };
                if let Some(family) = families.get_mut(&schedule) {
                    family.take_in(relative);
                } else if keep(execution, Retention::Own) {
                    self.dirty.insert(key.clone());
                }
            }
        }
        for (uid, family) in families {
            let (children, analyst) = family.into();
            let is_other = |it: &&mut Schedule| it.children != children || it.analyst != analyst;
            if let Some(schedule) = self.schedule_mut(&uid).filter(is_other) {
                schedule.memory.create_tried.take_if(|tried| children.iter().any(|child| child.slot == *tried));
                (schedule.children, schedule.analyst) = (children, analyst);
                self.mark_schedule(&uid);
            }
            self.keep_family(&uid);
        }
    }

    /// Ends the wait of a schedule's target for the delivery of a new execution, which may have another target.
    pub(super) fn find_child(&mut self, schedule: &Uid, execution: &Execution) {
        let key = self.places[&Kind::Schedule].get(schedule);
        if let Some(entry) = key.and_then(|key| self.targets.get_mut(key)) {
            entry.expected.seen(Kind::Execution, &execution.id.uid, &execution.version);
        }
    }

    /// Records the relation of an execution to a schedule. `is` is the schedule that the execution was created for;
    /// `was` is that of the execution's previous version.
    pub(super) fn relate(&mut self, execution: &Uid, was: Option<Uid>, is: Option<(Uid, Relative)>) {
        if let Some(was) = was.filter(|was| is.as_ref().is_none_or(|(schedule, _)| schedule != was)) {
            self.part(&was, execution);
        }
        let Some((uid, relative)) = is.filter(|_| !self.will_gather()) else { return };
        let Some(schedule) = self.schedule_mut(&uid) else {
            if self.sees_schedules() {
                self.set_retention(execution, Retention::Own);
            }
            return;
        };
        match relative {
            Relative::Analyst(analyst) => newest(&mut schedule.analyst, analyst),
            Relative::Child(child) => {
                schedule.memory.create_tried.take_if(|tried| *tried == child.slot);
                let children = &mut schedule.children;
                match children.iter_mut().find(|known| known.uid == child.uid) {
                    Some(known) => *known = child,
                    None => children.push(child),
                }
                *children = sorted(std::mem::take(children));
            }
        }
        self.mark_schedule(&uid);
        self.keep_family(&uid);
    }

    /// Keeps the message with which the child of a schedule ended, until the schedule's status records this end.
    pub(super) fn note_words(&mut self, child: &Uid, made_for: &Uid, end: Option<&EndShown>) {
        let Some(end) = end.filter(|end| end.phase != EndPhase::Completed) else { return };
        let Some(schedule) = self.schedule_mut(made_for) else { return };
        let slot = schedule.unrecorded().find(|it| it.uid == *child).map(|it| it.slot);
        if let Some(slot) = slot {
            schedule.memory.child_message = Some(Box::new(SaidOfChild { slot, words: end.message.clone() }));
        }
    }

    /// Removes an execution from its schedule, because the execution was deleted or is no longer related.
    pub(super) fn part(&mut self, schedule: &Uid, execution: &Uid) {
        if let Some(known) = self.schedule_mut(schedule) {
            known.children.retain(|child| child.uid != *execution);
            known.analyst.take_if(|analyst| analyst.id.uid == *execution);
            self.mark_schedule(schedule);
            self.keep_family(schedule);
        }
    }

    /// Records that the children of a deleted schedule are kept for their own time to live.
    pub(super) fn abandon(&mut self, children: &[Child]) {
        if !self.is_listing() && self.sees_schedules() {
            for child in children {
                self.set_retention(&child.uid, Retention::Own);
            }
        }
    }

    /// Records for each child of a schedule whether the schedule needs it. During a list it does nothing, because the
    /// end of the list records this for all schedules. While schedules cannot be seen, no child is removed.
    fn keep_family(&mut self, schedule: &Uid) {
        if self.is_listing() || !self.sees_schedules() {
            return;
        }
        let Some(keeps) = self.schedule_mut(schedule).map(|schedule| schedule.keeps()) else { return };
        for (execution, is) in keeps {
            self.set_retention(&execution, is);
        }
    }

    /// Records for an execution whether its schedule needs it.
    fn set_retention(&mut self, execution: &Uid, is: Retention) {
        let Some(key) = self.places[&Kind::Execution].get(execution) else { return };
        let entry = self.targets.get_mut(key);
        if entry.and_then(|entry| entry.target.executions.get_mut(execution)).is_some_and(|it| keep(it, is)) {
            self.dirty.insert(key.clone());
        }
    }

    fn schedule_mut(&mut self, schedule: &Uid) -> Option<&mut Schedule> {
        let key = self.places[&Kind::Schedule].get(schedule)?;
        self.targets.get_mut(key)?.target.schedules.get_mut(schedule)
    }

    /// Marks the target of a schedule as changed.
    fn mark_schedule(&mut self, schedule: &Uid) {
        if let Some(key) = self.places[&Kind::Schedule].get(schedule) {
            self.dirty.insert(key.clone());
        }
    }

    /// Returns the shared copy of a namespace's name, because there may be tens of thousands of records.
    pub(super) fn share(&mut self, namespace: &Arc<str>) -> Arc<str> {
        if let Some(shared) = self.shared.get(namespace) {
            return Arc::clone(shared);
        }
        self.shared.insert(Arc::clone(namespace));
        Arc::clone(namespace)
    }
}

/// The relation of an execution to the schedule that it was made for.
pub(super) enum Relative {
    /// The execution is the child of a slot.
    Child(Child),
    /// The execution is the analyst of a failure.
    Analyst(AnalystRun),
}

/// The executions that were created for a schedule.
#[derive(Default)]
struct Family {
    children: Vec<Child>,
    analyst: Option<Box<AnalystRun>>,
}

impl Family {
    fn take_in(&mut self, relative: Relative) {
        match relative {
            Relative::Child(child) => self.children.push(child),
            Relative::Analyst(analyst) => newest(&mut self.analyst, analyst),
        }
    }
}

impl From<Family> for (Vec<Child>, Option<Box<AnalystRun>>) {
    fn from(family: Family) -> Self {
        (sorted(family.children), family.analyst)
    }
}

/// Keeps the analyst of the latest slot. There is one triage at a time, and earlier analysts are kept for their own
/// time to live.
fn newest(known: &mut Option<Box<AnalystRun>>, analyst: AnalystRun) {
    let place = |it: &AnalystRun| (it.of, it.id.uid.clone());
    if known.as_ref().is_none_or(|known| known.id.uid == analyst.id.uid || place(known) < place(&analyst)) {
        *known = Some(Box::new(analyst));
    }
}

/// Returns the part of a schedule's memory that stays valid in its new version. A refusal does not apply to another
/// template, or to a used slot. A create whose answer was lost is remembered until its slot is used, or its child is
/// seen. Evidence and an analyst's answer are dropped when the status records the result of their triage.
fn still_valid(memory: ScheduleMemory, generation: i64, new: &Schedule) -> ScheduleMemory {
    let is_unused = |slot: Time| Some(slot) > new.used_up_to();
    let is_recorded = |slot: Time| {
        let last = new.status.last_run.as_ref();
        last.is_some_and(|last| last.slot > slot || last.slot == slot && last.outcome.is_some())
    };
    let is_needed = |of: &str| {
        let triage = new.status.triage.as_deref();
        triage.is_none_or(|triage| *triage.of != *of || triage.state == State::Analysing)
    };
    let ScheduleMemory {
        create_refused: refused,
        child_message: said,
        create_tried: tried,
        triage_evidence: gathered,
        analyst_answer: heard,
        others_begun,
    } = memory;
    ScheduleMemory {
        create_refused: refused.filter(|refused| generation == new.generation && is_unused(refused.slot)),
        child_message: said.filter(|said| !is_recorded(said.slot)),
        create_tried: tried.filter(|tried| is_unused(*tried)),
        triage_evidence: gathered.filter(|gathered| generation == new.generation && is_needed(&gathered.of)),
        analyst_answer: heard.filter(|heard| is_needed(&heard.of)),
        others_begun,
    }
}

/// Sorts children by their slots, and releases spare memory.
fn sorted(mut children: Vec<Child>) -> Vec<Child> {
    children.sort_by(|a, b| (a.slot, &a.uid).cmp(&(b.slot, &b.uid)));
    children.shrink_to_fit();
    children
}

/// Records for a child whether its schedule needs it, and returns whether that has changed.
fn keep(execution: &mut Execution, is: Retention) -> bool {
    let child = execution.child.as_mut().filter(|child| child.keep != is);
    child.map(|child| child.keep = is).is_some()
}

/// Returns the relation of an execution to the schedule that it was made for.
pub(super) fn relative_of(execution: &Execution) -> Option<(Uid, Relative)> {
    let child = execution.child.as_ref()?;
    let relative = if child.analyses {
        let state = match &execution.state {
            ExecutionState::Undecided { .. } | ExecutionState::Running { .. } => AnalystState::AtWork,
            ExecutionState::Completed { .. } => AnalystState::Completed,
            ExecutionState::Skipped { .. } => AnalystState::Ended("Skipped"),
            ExecutionState::Failed(failed) if failed.cancelled => AnalystState::Ended(CANCELLED),
            ExecutionState::Failed(failed) => AnalystState::Ended(failed.reason.as_str()),
        };
        Relative::Analyst(AnalystRun { id: execution.id.clone(), of: child.slot, state })
    } else {
        Relative::Child(child_of(execution, child.slot))
    };
    Some((child.schedule.clone(), relative))
}

fn child_of(execution: &Execution, slot: Time) -> Child {
    let fingerprint = match &execution.state {
        ExecutionState::Failed(failed) => failed.fingerprint.clone(),
        _ => None,
    };
    let ended = |outcome, reason| ChildState::Ended { outcome, at: execution.ended_at(), reason, fingerprint };
    let state = match &execution.state {
        ExecutionState::Undecided { .. } | ExecutionState::Running { .. } => ChildState::AtWork,
        ExecutionState::Completed { .. } => ended(Outcome::Completed, None),
        ExecutionState::Skipped { .. } => ended(Outcome::Skipped, None),
        ExecutionState::Failed(failed) if failed.cancelled => ended(Outcome::Cancelled, Some(CANCELLED)),
        ExecutionState::Failed(failed) => {
            let is_late = failed.reason == FailureReason::DeadlineExceeded
                && execution.run_sequence.is_none()
                && !failed.was_execution_failure;
            let outcome = if is_late { Outcome::TooLate } else { Outcome::Failed };
            ended(outcome, Some(failed.reason.as_str()))
        }
    };
    Child { uid: execution.id.uid.clone(), slot, created: execution.created, state }
}
