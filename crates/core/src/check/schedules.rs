//! Checks decisions on schedules (sections 12.6 and 16.10 to 16.12).

mod status_writes;
mod triage;

use std::time::Duration;

use super::Check;
use crate::Time;
use crate::action::{Action, Announce, Decision, Probe};
use crate::circuit::goes_on_at;
use crate::execution::{Execution, ExecutionState};
use crate::fingerprint::Fingerprint;
use crate::name::{ExecutionId, Uid, Version};
use crate::run::{Owner, Presence, Progress, Run};
use crate::schedule::plan::offset;
use crate::schedule::{ChildOf, ChildState, Every, HeldBy, Outcome, Plan, Retention, Schedule, Wish};
use crate::target::OwnerRead;
use crate::triage::State;

/// Returns a time in whole seconds, rounded up. Sums of such numbers cannot overflow.
fn secs(time: Time) -> i128 {
    i128::from(time.timestamp()) + i128::from(time.timestamp_subsec_nanos() > 0)
}

/// Returns whether a time lies more than a minute after `now`.
fn is_in_future(time: Time, now: Time) -> bool {
    time.signed_duration_since(now) > chrono::TimeDelta::minutes(1)
}

fn whole(duration: Duration) -> i128 {
    i128::from(duration.as_secs()) + i128::from(duration.subsec_nanos() > 0)
}

impl Check<'_> {
    /// Checks each action on a schedule, and all of them together.
    pub(super) fn schedules(&mut self, decision: &Decision) {
        let mut made = Vec::new();
        let mut written = Vec::new();
        for action in &decision.actions {
            match action {
                Action::CreateChild { schedule, generation, slot, start_before, not_made } => {
                    made.push(&schedule.uid);
                    let Some(found) = self.target.schedules.get(&schedule.uid) else {
                        self.require("12.6", false, || format!("makes a child for {schedule}, which is unknown"));
                        continue;
                    };
                    let current = *generation == found.generation;
                    self.require("12.7", current, || format!("makes a child of generation {generation} of {schedule}"));
                    self.makes(found, *slot, *start_before, *not_made);
                }
                Action::Record(record) => {
                    written.push(&record.schedule.uid);
                    self.check_record(record);
                }
                Action::Triage(step) => self.triages(step),
                Action::Tell(Announce::HintIgnored { .. }) => {
                    let sees = !self.target.blind_to_schedules;
                    self.require("12.7", sees, || "speaks of a hint that it cannot see".to_owned());
                }
                _ => {}
            }
        }
        self.require("12.6", made.len() <= 1, || format!("makes children for {made:?}"));
        let gives_turn = decision.actions.iter().any(|action| matches!(action, Action::Create { .. }));
        self.require("12.6", made.is_empty() || !gives_turn, || "makes a child beside a turn".to_owned());
        let blind = self.target.blind_to_schedules;
        self.require("12.7", !blind || made.is_empty() && written.is_empty(), || {
            "acts on what it cannot see".to_owned()
        });
        for (id, judged) in &decision.schedules {
            let waits = matches!(judged.probe, Probe::Awaits(_));
            // A schedule may wait for a turn to probe only if a circuit or a limit is its only hold. Another schedule
            // could not use its turn, and would block the others. A schedule in the line of a limit gets its place
            // sooner or later.
            let can_use_it = matches!(judged.held, Some(HeldBy::CircuitOpen | HeldBy::Limit));
            self.require("12.6.8", !waits || can_use_it, || {
                format!("{id} waits for its turn to probe, and {:?} holds it", judged.held)
            });
        }
        for schedule in self.target.schedules.values() {
            let uid = &schedule.id.uid;
            let touched = made.iter().chain(&written).filter(|it| **it == uid).count();
            self.require("12.6", touched <= 1, || format!("acts twice on {}", schedule.id));
            let judged = decision.schedules.iter().filter(|(id, _)| id.uid == *uid).count();
            self.require("12.6", judged == usize::from(!blind), || format!("judges {} {judged} times", schedule.id));
            if touched == 0 && !blind {
                self.rests(schedule, decision);
            }
        }
    }

    /// Checks that a schedule without an action is decided again when its slot comes.
    fn rests(&mut self, schedule: &Schedule, decision: &Decision) {
        let Ok(plan) = &schedule.plan else { return };
        let is_held = decision.schedules.iter().any(|(id, it)| *id == schedule.id && it.held.is_some());
        let at_work = schedule.children.iter().any(|child| child.state == ChildState::AtWork);
        if schedule.leaving || is_held || at_work {
            return;
        }
        self.require("12.6.3", !schedule.suspended, || format!("{} is suspended, and is not held", schedule.id));
        let Some(usual) = usual(schedule, plan) else { return };
        let now = secs(self.now);
        let due = match (moved(schedule, self.now), &plan.every) {
            (Some(Moved { slot, until, .. }), _) => slot.min(until),
            (None, _) if usual > now => usual,
            // The slot was missed, and the schedule waits for the next one.
            (None, Every::Interval(written)) => now + whole(interval(schedule, *written)),
            (None, Every::Cron(_)) => return,
        };
        // At the end of representable time nothing is due.
        let never = due >= secs(Time::MAX_UTC);
        let wakes = never || decision.wake.is_some_and(|wake| secs(wake) <= due);
        let wake = decision.wake;
        self.require("12.6.6", wakes, || format!("{} is forgotten until {wake:?}, and due at {due}", schedule.id));
    }

    /// Checks that a child is made only if no row of the table forbids it.
    fn makes(&mut self, it: &Schedule, slot: Time, start_before: Time, not_made: Option<Time>) {
        let (status, now) = (&it.status, self.now);
        let mut forbids = |row: &'static str, forbidden: bool, why: &str| {
            self.require(row, !forbidden, || format!("makes a child of {} for {slot}, {why}", it.id));
        };
        let last = status.last_run.as_ref();
        let used = [status.planned_from, last.map(|last| last.slot)].into_iter().flatten().max();
        let is_far = |time: &Time| is_in_future(*time, now);
        forbids("12.6.0", it.leaving, "which is on its way out");
        forbids("12.6.0", it.plan.is_err(), "whose spec cannot be used");
        forbids("12.6.1", status.revision != Some(it.revision), "whose plan is of another revision");
        forbids("12.6.1", status.planned_from.is_none(), "whose plan has not begun");
        let resumed = status.held.by() == Some(HeldBy::Suspended) && !it.suspended;
        forbids("12.6.1", resumed, "which was just resumed");
        let adjusts = status.triage.as_ref().is_some_and(|triage| triage.state == State::Adjusted);
        let of = status.triage.as_ref().map(|triage| &triage.of);
        forbids("12.6.1", adjusts && it.resume.as_ref() == of, "whose adjustment was just lifted");
        let times = [status.planned_from, last.map(|last| last.slot), last.and_then(|last| last.ended_at)];
        forbids("12.6.1", times.iter().flatten().any(is_far), "by a clock that was ahead");
        forbids("12.6.2", last.is_some_and(|last| last.outcome.is_none()), "while its last run is open");
        let open = |child: &&crate::schedule::Child| Some(child.slot) > used && !is_far(&child.slot);
        forbids("12.6.2", it.children.iter().any(|child| open(&child)), "while a child is not recorded");
        let refused = it.memory.create_refused.as_ref();
        let refused = refused.is_some_and(|refused| Some(refused.slot) > used && !is_far(&refused.slot));
        forbids("12.6.2", refused, "while a refusal is not recorded");
        forbids("12.6.3", it.suspended, "which is suspended");
        forbids("12.6.4", status.paused_by().is_some(), "which a triage has paused");
        let at_work = it.children.iter().any(|child| child.state == ChildState::AtWork);
        forbids("12.6.5", at_work, "which has one at work");
        forbids("12.2", it.children.iter().any(|child| child.slot == slot), "which has one");
        forbids("12.2", used.is_some_and(|used| slot <= used), "which is used");
        forbids("12.2", slot.timestamp_subsec_nanos() > 0, "which is no whole second");
        forbids("12.6.6", slot > now, "which lies ahead");
        let paused = it.paused.is_some() || self.policy.paused_by.is_some();
        self.require("12.6.7", !paused, || format!("makes a child of {}, which is paused", it.id));
        let tried = it.memory.create_tried.filter(|tried| *tried != slot && Some(*tried) > used);
        self.require("12.7", tried.is_none() || not_made == tried, || {
            format!("makes a child of {} and does not read what became of {tried:?}", it.id)
        });
        self.is_time(it, slot, start_before);
        self.is_free_for_a_child(it, slot);
        self.no_circuit_holds(it);
    }

    /// Checks circuits. While the circuit of its newest failure is open, a schedule creates a child only in its turn.
    /// After the circuit has closed, the schedule waits for its own point within a base cooldown.
    fn no_circuit_holds(&mut self, it: &Schedule) {
        let (now, circuits) = (self.now, &self.target.circuits);
        let Some((failed_at, mine)) = newest_failure(it) else { return };
        let open = circuits.open().find(|one| one.fingerprint == *mine);
        let holds = open.filter(|one| one.holds_from <= now && now < one.quiet_at);
        let has_turn = holds.is_some_and(|one| one.turn.as_ref() == Some(&it.id.uid) && now >= one.next_probe_at);
        self.require("13.5", holds.is_none() || has_turn, || {
            format!("makes a child of {}, which is held by {holds:?}", it.id)
        });
        let Ok(plan) = &it.plan else { return };
        let due = moved(it, now).map(|moved| moved.due).or_else(|| usual(it, plan));
        let quiet = open.map(|one| one.quiet_at).filter(|at| now >= *at);
        let closed = circuits.closed().filter(|one| one.fingerprint == *mine).map(|one| one.closed_at);
        let closed = quiet.or_else(|| closed.max()).filter(|closed| failed_at <= *closed);
        let is_early = |closed: &Time| {
            let share = goes_on_at(&it.id.uid, *closed, self.policy.backoff.base);
            due.is_some_and(|due| due <= secs(*closed)) && now < share
        };
        let early = closed.filter(is_early);
        self.require("13.5", holds.is_some() || early.is_none(), || {
            format!("makes a child of {} too soon after a circuit closed at {early:?}", it.id)
        });
    }

    /// Checks that a child is made after its slot, before its deadline, and only for the latest slot that has passed.
    fn is_time(&mut self, it: &Schedule, slot: Time, start_before: Time) {
        let Ok(plan) = &it.plan else { return };
        let (now, at) = (secs(self.now), secs(slot));
        let again = again(it, plan, self.now).filter(|_| hinted(it, self.now).is_none()).and_then(|_| last_slot(it));
        let ends = plan.deadline.map_or(now + 3600, |deadline| again.unwrap_or(at) + whole(deadline));
        let fits = secs(start_before) == ends.min(secs(Time::MAX_UTC)) && start_before >= self.now;
        self.require("12.5", fits, || format!("the child of {} may start before {start_before}", it.id));
        if let Some(Moved { slot: moved, .. }) = moved(it, self.now) {
            self.require("12.2", at == moved, || format!("makes {} run at {at}, not at {moved}", it.id));
            return;
        }
        let Some(earliest) = usual(it, plan) else { return };
        self.require("16.11", at >= earliest, || format!("makes {} run at {at}, before {earliest}", it.id));
        let is_latest = match &plan.every {
            Every::Interval(written) => {
                let interval = interval(it, *written);
                // `now` is not rounded up here: the next slot may lie at the end of the current second.
                (at - earliest) % whole(interval) == 0 && self.now < slot + interval
            }
            Every::Cron(cron) => {
                let share = offset(&it.id.uid, plan.spread);
                let on_clock = slot - share;
                let is_slot = cron.first_after(on_clock - Duration::from_secs(1)) == Some(on_clock);
                is_slot && cron.first_after(on_clock).is_none_or(|next| next + share > self.now)
            }
        };
        self.require("12.2", is_latest, || format!("makes {} run at {at}, and is due since {earliest}", it.id));
    }

    /// Checks that nothing on the target would make a new child wait or be skipped.
    fn is_free_for_a_child(&mut self, it: &Schedule, slot: Time) {
        let id =
            ExecutionId { uid: Uid::new("no such child"), namespace: it.id.namespace.clone(), name: "child".into() };
        let child = ChildOf { schedule: it.id.uid.clone(), slot, analyses: false, keep: Retention::Needed };
        let child = Execution {
            workflow_id: it.workflow_id.clone(),
            child: Some(Box::new(child)),
            ..Execution::undecided(id, Version::new(""), self.now)
        };
        let reasons = self.record.forbids(&child);
        self.require("12.6.7", reasons.is_empty(), || format!("makes a child of {}, but {reasons:?}", it.id));
        let target = self.target;
        let in_the_way = target.executions.values().find(|other| match other.state {
            ExecutionState::Running { .. } => true,
            ExecutionState::Undecided { .. } => !other.deleting && other.paused.is_none(),
            _ => false,
        });
        let other = in_the_way.map(|other| &other.id);
        self.require("12.6.7", other.is_none(), || format!("makes a child of {} beside {other:?}", it.id));
        let holds = |run: &&Run| match (&run.owner, &run.progress) {
            (Owner::Nobody, _) => false,
            (Owner::Execution { .. }, Progress::Pending | Progress::Released) => !run.never_starts(),
            (Owner::Execution { id, presence, .. }, Progress::Done(_)) => {
                let read = || target.memory.unwatched_owners.get(&id.uid).map(|read| &read.found);
                match target.executions.get(&id.uid) {
                    Some(owner) => !owner.is_terminal(),
                    None => *presence == Presence::Unwatched && read() != Some(&OwnerRead::Over),
                }
            }
        };
        let run = target.runs.values().find(holds).map(|run| &run.id);
        self.require("12.6.7", run.is_none(), || format!("makes a child of {} beside {run:?}", it.id));
        let drains = !target.residue.is_empty();
        self.require("12.6.7", !drains, || format!("makes a child of {} while the target drains", it.id));
    }

    /// Returns how long an execution is kept after its end. `None` means that it may not be removed.
    pub(super) fn time_to_live(&self, found: &Execution) -> Option<Duration> {
        let own = found.ttl.or(self.policy.ttl);
        let Some(child) = &found.child else { return own };
        // A slot far later than the creation of its child comes from a wrong clock. Nothing depends on such a record.
        let is_true = !is_in_future(child.slot, found.created);
        let schedule = self.target.schedules.get(&child.schedule).filter(|_| is_true);
        let is_open = schedule.is_some_and(|it| {
            let last = it.status.last_run.as_ref();
            let named = last.filter(|last| last.slot == child.slot);
            let used = it.status.planned_from.max(last.map(|last| last.slot));
            named.map_or(Some(child.slot) > used, |last| last.outcome.is_none())
        });
        match child.keep {
            _ if self.target.blind_to_schedules || is_open => None,
            Retention::Needed => None,
            Retention::Own => own,
            Retention::Expendable => Some(Duration::ZERO),
        }
    }
}

/// Returns the interval that applies: that of a triage if it has set one, else that of the spec.
fn interval(it: &Schedule, written: Duration) -> Duration {
    it.status.adjust.as_ref().and_then(|adjust| adjust.interval).unwrap_or(written)
}

/// Returns when the newest run of this plan that completed or failed has failed, and its fingerprint.
fn newest_failure(it: &Schedule) -> Option<(Time, &Fingerprint)> {
    let last = it.status.last_run.as_ref()?;
    let recorded = last.outcome.map(|outcome| (last.slot, outcome, last.ended_at, last.fingerprint.as_ref()));
    let earlier = it.children.iter().filter(|child| child.slot < last.slot).filter_map(|child| match &child.state {
        ChildState::Ended { outcome, at, fingerprint, .. } => Some((child.slot, *outcome, *at, fingerprint.as_ref())),
        ChildState::AtWork => None,
    });
    let of_this_plan =
        recorded.into_iter().chain(earlier).filter(|run| it.status.planned_from.is_none_or(|from| from < run.0));
    let decisive = of_this_plan.filter(|run| [Outcome::Completed, Outcome::Failed].contains(&run.1));
    let (slot, outcome, ended_at, fingerprint) = decisive.max_by_key(|run| run.0)?;
    let failed = fingerprint.filter(|_| outcome == Outcome::Failed);
    failed.map(|fingerprint| (ended_at.unwrap_or(slot), fingerprint))
}

/// Returns the last slot of this plan that was used, in seconds.
fn last_slot(it: &Schedule) -> Option<i128> {
    let last = it.status.last_run.as_ref()?;
    (Some(last.slot) > it.status.planned_from).then_some(secs(last.slot))
}

/// Returns the first slot that the plan allows without a hint, according to section 12.2. It includes the schedule's
/// share of the spread.
fn usual(it: &Schedule, plan: &Plan) -> Option<i128> {
    let (status, since) = (&it.status, secs(it.status.planned_from?));
    let share = offset(&it.id.uid, plan.spread);
    let every = match &plan.every {
        Every::Interval(written) => whole(interval(it, *written)),
        Every::Cron(cron) => {
            let used = status.last_run.as_ref().map(|last| last.slot).max(status.planned_from)?;
            let used = (used - share).max(status.phase.unwrap_or(Time::MIN_UTC));
            return cron.first_after(used).map(|slot| secs(slot) + whole(share));
        }
    };
    let failures = status.failure_count.min(5);
    let Some(last) = last_slot(it).filter(|_| failures > 0) else {
        let first = phase(it, plan)? + every;
        let used = last_slot(it).unwrap_or(since);
        return Some(if used < first { first } else { first + ((used - first) / every + 1) * every });
    };
    let ended = status.last_run.as_ref().and_then(|last| last.ended_at).map_or(last, secs);
    Some(ended.max(last) + (every << failures).min(every.max(whole(plan.max_interval))))
}

/// Returns the time from which the slots of an interval are counted.
fn phase(it: &Schedule, plan: &Plan) -> Option<i128> {
    let since = secs(it.status.planned_from?) + whole(offset(&it.id.uid, plan.spread));
    Some(it.status.phase.map(secs).or(last_slot(it)).unwrap_or(since))
}

/// A slot that does not follow from the plan alone.
struct Moved {
    /// The first slot that was due.
    due: i128,
    /// The latest slot that is due.
    slot: i128,
    /// Until when the slot counts.
    until: i128,
}

/// Returns the slot of a second try or of a hint.
fn moved(it: &Schedule, now: Time) -> Option<Moved> {
    hinted(it, now).or_else(|| again(it, it.plan.as_ref().ok()?, now))
}

/// Returns the second try after a run that was skipped or too late. There is only one, before the next slot and within
/// the deadline.
fn again(it: &Schedule, plan: &Plan, now: Time) -> Option<Moved> {
    let (slot, last) = (last_slot(it)?, it.status.last_run.as_ref()?);
    let is_lost = matches!(last.outcome, Some(Outcome::Skipped | Outcome::TooLate)) && !last.again;
    let due = last.ended_at.map_or(slot, secs).max(slot + 1);
    let late = plan.deadline.map_or(i128::MAX, |deadline| slot + whole(deadline) + 1);
    let until = late.min(usual(it, plan).unwrap_or(i128::MAX));
    // `secs` rounds up, but the next slot is due only when its full second has come.
    let is_over = if until == late { secs(now) >= until } else { i128::from(now.timestamp()) >= until };
    (is_lost && !is_over && due < until).then_some(Moved { due, slot: due, until })
}

/// Returns the slot that a hint asks for, within minInterval and maxInterval, and until when it counts.
fn hinted(it: &Schedule, now: Time) -> Option<Moved> {
    let (hint, plan) = (it.hint.as_ref()?, it.plan.as_ref().ok()?);
    let since = secs(it.status.planned_from?);
    let (last, from) = (last_slot(it), last_slot(it).unwrap_or(since));
    let wish = match hint.wish {
        Wish::At(at) if secs(at) <= from => return None,
        Wish::At(at) => secs(at),
        Wish::Interval(interval) => from + whole(interval),
    };
    let not_before = last.map_or(wish, |last| last + whole(plan.min_interval));
    let not_after = (from + whole(plan.max_interval)).max(usual(it, plan).unwrap_or(i128::MIN));
    let due = wish.max(not_before).min(not_after);
    let late = |slot: i128| plan.deadline.map_or(i128::MAX, |deadline| slot + whole(deadline) + 1);
    let expires = secs(hint.expires_at);
    let (slot, ends) = match hint.wish {
        Wish::At(_) => (due, late(due)),
        Wish::Interval(_) => {
            let step = (due - from).max(1);
            let passed = (i128::from(now.timestamp()) - due).max(0) / step;
            let latest = due + passed * step;
            (if secs(now) < late(latest) { latest } else { latest + step }, i128::MAX)
        }
    };
    // If the hint names an interval, the next slot replaces one that is too late.
    let due = if slot > secs(now) { slot } else { due };
    (now < hint.expires_at && secs(now) < ends).then_some(Moved { due, slot, until: ends.min(expires) })
}
