//! The failure count follows from all outcomes, even if they are recorded one by one (section 16.12). After a limited
//! number of writes, the decisions request no more.

use std::collections::BTreeSet;

use super::*;
use crate::schedule::{Child, ScheduleMemory};
use crate::testing::generate::{NOW, any_history, any_policy, any_scheduled, any_target};

/// An event in the life of a schedule and its children.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Another writer creates the child of the next slot, even if a child is running.
    Make,
    /// The n-th running child ends with an outcome.
    End(usize, Outcome),
    /// The n-th of all children is deleted.
    Delete(usize),
    /// The API server refuses the child of the next slot.
    Refuse,
    /// The operator decides, and its write succeeds.
    Decide,
    /// The operator restarts without memory.
    Restart,
    /// A person edits the template.
    Edit,
}

fn any_step() -> impl Strategy<Value = Step> {
    use Outcome::{Cancelled, Completed, Failed, Skipped, TooLate};
    let outcome = prop::sample::select(vec![Completed, Failed, Failed, Failed, Skipped, Cancelled, TooLate]);
    prop_oneof![
        6 => Just(Step::Make),
        6 => (0..4_usize, outcome).prop_map(|(which, outcome)| Step::End(which, outcome)),
        1 => (0..9_usize).prop_map(Step::Delete),
        1 => Just(Step::Refuse),
        6 => Just(Step::Decide),
        1 => Just(Step::Restart),
        1 => Just(Step::Edit),
    ]
}

/// A schedule and its past.
struct Story {
    schedule: Schedule,
    second: i64,
    /// The outcomes of all slots that count, as the events created them.
    all: Vec<(i64, Outcome)>,
    recorded: BTreeSet<Time>,
    edits: u64,
}

impl Story {
    fn new() -> Self {
        Self { schedule: schedule("s"), second: 10, all: vec![], recorded: BTreeSet::new(), edits: 7 }
    }

    fn fold(&self) -> u32 {
        let mut all = self.all.clone();
        all.sort_by_key(|(slot, _)| *slot);
        all.into_iter().fold(0, |count, (_, outcome)| match outcome {
            Outcome::Completed => 0,
            Outcome::Failed | Outcome::Refused => count + 1,
            _ => count,
        })
    }

    fn is_at_work(child: &Child) -> bool {
        child.state == ChildState::AtWork
    }

    /// Decides once, and returns whether something was written.
    fn decide(&mut self) -> bool {
        let view = scheduled(Target::default(), vec![self.schedule.clone()]);
        let decision = decide(&view, &Policy::default(), at(self.second));
        let found = crate::check::violations(&view, &Policy::default(), at(self.second), &decision);
        assert_eq!(found, []);
        let record = decision.actions.into_iter().find_map(|action| match action {
            Action::Record(record) => Some(record),
            _ => None,
        });
        let Some(record) = record else { return false };
        let name = |child: &Child| Box::from(child_name("wfs-s", child.slot));
        let is_absent = record.gone.is_none_or(|gone| self.schedule.children.iter().all(|child| name(child) != gone));
        assert!(is_absent, "a live read would find the child");
        let run = record.status.last_run.clone().filter(|run| run.outcome.is_some());
        if let Some(run) = run.filter(|_| record.status.last_run != self.schedule.status.last_run) {
            assert!(self.recorded.insert(run.slot), "{} is recorded twice", run.slot);
            assert_eq!(self.recorded.last(), Some(&run.slot), "out of order");
        }
        self.schedule.status = *record.status;
        true
    }

    fn settle(&mut self) {
        let writes = (0..200).take_while(|_| self.decide()).count();
        assert!(writes < 200, "{:?}", self.schedule);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Make => {
                self.second += 60;
                self.schedule.children.push(child(self.second));
            }
            Step::End(which, outcome) => {
                let mut open = self.schedule.children.iter_mut().filter(|child| Self::is_at_work(child));
                let Some(found) = open.nth(which) else { return };
                self.second += 1;
                let slot = (found.slot - at(0)).num_seconds();
                *found = ended_child(slot, outcome, self.second);
                if Some(found.slot) > self.schedule.status.planned_from {
                    self.all.push((slot, outcome));
                }
            }
            Step::Delete(which) => {
                self.settle();
                if which >= self.schedule.children.len() {
                    return;
                }
                let gone = self.schedule.children.remove(which);
                let is_behind = self.schedule.unrecorded().any(|it| it.slot < gone.slot && Self::is_at_work(it));
                if is_behind {
                    // The end of this child was not recorded.
                    self.all.retain(|(slot, _)| at(*slot) != gone.slot);
                }
            }
            Step::Refuse if !self.schedule.children.iter().any(Self::is_at_work) => {
                self.settle();
                self.second += 60;
                let refused = RefusedChild { slot: at(self.second), message: "no".into() };
                self.schedule.memory.create_refused = Some(Box::new(refused));
                self.all.push((self.second, Outcome::Refused));
                self.settle();
            }
            Step::Refuse => {}
            Step::Decide => {
                self.decide();
            }
            Step::Restart => self.schedule.memory = ScheduleMemory::default(),
            Step::Edit => {
                self.edits += 1;
                self.schedule.revision = Revision(self.edits);
                self.decide();
                self.all.clear();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn outcomes_that_are_recorded_one_by_one_are_the_fold_of_all(steps in prop::collection::vec(any_step(), 0..60)) {
        let mut story = Story::new();
        for step in steps {
            story.take(step);
        }
        for _ in 0..60 {
            story.take(Step::End(0, Outcome::Skipped));
        }
        story.settle();
        prop_assert_eq!(story.schedule.status.failure_count, story.fold(), "{:?}", story.all);
        prop_assert!(story.schedule.unrecorded().next().is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// The limit is one write for a plan that begins anew, one for each outcome, and one for the last row. A triage has
    /// two writes: one names its analyst, and one ends the triage.
    #[test]
    fn acting_on_decisions_ends(
        target in prop_oneof![any_scheduled(), any_target(), any_history()],
        policy in any_policy(),
    ) {
        let mut target = target;
        let outcomes = |it: &Schedule| it.children.len() + usize::from(it.memory.create_refused.is_some()) + 1;
        let most: usize = target.schedules.values().map(|it| outcomes(it) + 4).sum();
        for write in 0.. {
            let decision = decide(&target, &policy, at(NOW));
            let records: Vec<Record> = decision.actions.into_iter().filter_map(|action| match action {
                Action::Record(record) => Some(record),
                _ => None,
            }).collect();
            if records.is_empty() {
                break;
            }
            prop_assert!(write < most, "{:?}", records);
            for record in records {
                target.schedules.get_mut(&record.schedule.uid).unwrap().status = *record.status;
            }
        }
    }

    #[test]
    fn what_is_made_is_waited_for_and_made_once(target in any_scheduled(), policy in any_policy()) {
        let mut target = target;
        let decision = decide(&target, &policy, at(NOW));
        let made = decision.actions.iter().find_map(|action| match action {
            Action::CreateChild { schedule, slot, .. } => Some((schedule.uid.clone(), *slot)),
            _ => None,
        });
        let Some((uid, slot)) = made else { return Ok(()) };
        let found = target.schedules.get_mut(&uid).unwrap();
        found.children.push(Child { uid: Uid::new("made"), slot, created: at(NOW), ..child(0) });
        found.children.sort_by_key(|child| child.slot);
        let again = decide(&target, &policy, at(NOW));
        let makes = again.actions.iter().any(|action| {
            matches!(action, Action::CreateChild { schedule, .. } if schedule.uid == uid)
        });
        prop_assert!(!makes, "{:?}", again.actions);
        let named = again.actions.iter().any(|action| {
            matches!(action, Action::Record(Record { schedule, status, .. })
                if schedule.uid == uid && status.last_run.as_ref().is_some_and(|last| last.slot == slot))
        });
        prop_assert!(named, "{:?}", again.actions);
    }
}
