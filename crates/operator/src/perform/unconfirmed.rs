//! Announcements of writes whose answers were lost.
//!
//! An announcement is made when the view shows the result of the write, and dropped when the view shows that the write
//! did not succeed. A crash loses the announcements; the conditions remain the source of truth.

use std::collections::HashMap;

use wfe_core::name::Uid;
use wfe_core::target::Target;
use wfe_view::index::Key;

use crate::perform::{Announcement, AnnouncementKey, Sight};

/// The limit of kept announcements: the same as the limit of waiting events.
const MOST: usize = 16_384;

/// The announcements by target, so that a decision on a target finds them.
#[derive(Debug, Default)]
pub struct UnconfirmedAnnouncements {
    announcements: HashMap<Key, HashMap<AnnouncementKey, Announcement>>,
    count: usize,
}

impl UnconfirmedAnnouncements {
    /// Keeps the announcement of a write with an unknown outcome. A later try of the same write replaces the earlier
    /// announcement. Returns whether there was room.
    pub fn keep(&mut self, key: &Key, announcement: Announcement) -> bool {
        if self.count >= MOST {
            return false;
        }
        let earlier = self.announcements.entry(key.clone()).or_default().insert(announcement.key(), announcement);
        self.count += usize::from(earlier.is_none());
        true
    }

    /// Drops the announcements about an execution or a schedule after a later write to it succeeded and was announced.
    /// That write shows that the earlier tries failed.
    pub fn forget(&mut self, key: &Key, about: &Uid) {
        self.retain(key, |announcement| announcement.about() != about);
    }

    /// Drops all announcements: another replica leads, and announces what it finds.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes and returns the announcements whose result the view of a target shows, in the order of their uids.
    /// Announcements of writes that can no longer succeed are dropped.
    pub fn take_shown(&mut self, key: &Key, target: Option<&Target>) -> Vec<Announcement> {
        let mut shown = Vec::new();
        self.retain(key, |announcement| match announcement.sight(target) {
            Sight::Shown => {
                shown.push(announcement.clone());
                false
            }
            Sight::NotYet => true,
            Sight::Never => false,
        });
        shown.sort_unstable_by(|a, b| a.about().cmp(b.about()));
        shown
    }

    fn retain(&mut self, key: &Key, mut stays: impl FnMut(&Announcement) -> bool) {
        let Some(of_key) = self.announcements.get_mut(key) else { return };
        let before = of_key.len();
        of_key.retain(|_, announcement| stays(announcement));
        self.count -= before - of_key.len();
        if of_key.is_empty() {
            self.announcements.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::DateTime;
    use serde_json::json;
    use wfe_core::action::{Record, Says};
    use wfe_core::ending::{Conflict, Skip};
    use wfe_core::evidence::Ran;
    use wfe_core::execution::{Execution, ExecutionState};
    use wfe_core::name::{ExecutionId, RunId, ScheduleId, Version};
    use wfe_core::retry::{Attempt, AttemptEnd, Retry};
    use wfe_core::schedule::{LastRun, Outcome, ScheduleStatus};
    use wfe_core::target::TargetName;
    use wfe_view::observe::observe_schedule;

    use super::*;
    use crate::perform::{AnnouncedWrite, OfSchedule};

    fn id(uid: &str) -> ExecutionId {
        ExecutionId { namespace: "ops".into(), name: uid.into(), uid: Uid::new(uid) }
    }

    fn run() -> RunId {
        RunId { name: "wfe-x-1".into(), uid: Uid::new("r") }
    }

    fn key() -> Key {
        Key::Chain(TargetName::parse("node/n").unwrap().chain())
    }

    fn said(says: Says) -> AnnouncedWrite {
        AnnouncedWrite::Said(Box::new(says), Box::default())
    }

    fn committed() -> AnnouncedWrite {
        said(Says::Running { run: run(), number: 1, consecutive_failures: 0 })
    }

    fn skip() -> AnnouncedWrite {
        let started_at = DateTime::UNIX_EPOCH;
        let conflict = Conflict {
            holder: id("holder"),
            workflow_id: "w".into(),
            started_at,
            deleted: false,
            draining: false,
            next: None,
            unanswered: None,
        };
        AnnouncedWrite::Skipped(Arc::new(Skip::ResourceBusy(conflict)), "busy".to_owned())
    }

    /// Returns the announcement of a write that requires version 5 of an execution.
    fn announcement(uid: &str, told: AnnouncedWrite) -> Announcement {
        Announcement::new(None, &id(uid), &Version::new("5"), told)
    }

    fn target(executions: &[(&str, &str, ExecutionState)]) -> Target {
        let mut target = Target::default();
        for (uid, version, state) in executions {
            let undecided = Execution::undecided(id(uid), Version::new(version), DateTime::UNIX_EPOCH);
            target.executions.insert(Uid::new(uid), Execution { state: state.clone(), ..undecided });
        }
        target
    }

    fn undecided() -> ExecutionState {
        Execution::undecided(id("x"), Version::new(""), DateTime::UNIX_EPOCH).state
    }

    fn running(run: RunId) -> ExecutionState {
        ExecutionState::Running { run: Some(run), started_at: None }
    }

    #[test]
    fn a_write_whose_answer_was_lost_is_told_once_when_the_view_shows_it() {
        let mut unconfirmed = UnconfirmedAnnouncements::default();
        assert!(unconfirmed.keep(&key(), announcement("a", committed())));
        assert!(unconfirmed.keep(&key(), announcement("b", skip())));
        let before = target(&[("a", "5", undecided()), ("b", "5", undecided())]);
        assert!(unconfirmed.take_shown(&key(), Some(&before)).is_empty(), "the view is as it was");
        let skipped = ExecutionState::Skipped { completed_at: None };
        let after = target(&[("a", "6", running(run())), ("b", "7", skipped)]);
        let told = unconfirmed.take_shown(&key(), Some(&after));
        assert_eq!(told.iter().map(|it| it.about().clone()).collect::<Vec<_>>(), [Uid::new("a"), Uid::new("b")]);
        assert!(unconfirmed.take_shown(&key(), Some(&after)).is_empty(), "once");
        assert_eq!((unconfirmed.count, unconfirmed.announcements.len()), (0, 0));
    }

    /// Returns a Running execution in version 6 that is on this attempt.
    fn on_attempt(attempt: usize) -> Target {
        let policy = wfe_api::retry::read(Some(&true.into())).unwrap().unwrap();
        let mut target = target(&[("a", "6", running(run()))]);
        let execution = target.executions.get_mut(&Uid::new("a")).unwrap();
        execution.retry = Some(Box::new(Retry { policy, attempts: vec![Attempt::default(); attempt] }));
        target
    }

    #[test]
    fn an_attempt_that_failed_is_told_when_the_view_shows_another() {
        let (delay, not_before) = (std::time::Duration::from_secs(1), DateTime::UNIX_EPOCH);
        let end = AttemptEnd { completed_at: not_before, started: Ran::Unknown, reason: None, message: "no".into() };
        let retry = Says::Retry { attempt: 2, of: 3, run: None, end, proof: None, delay, not_before };
        let retried = || said(retry.clone());
        for (on, told) in [(2, 0), (3, 1), (4, 1)] {
            let mut unconfirmed = UnconfirmedAnnouncements::default();
            unconfirmed.keep(&key(), announcement("a", retried()));
            assert_eq!(unconfirmed.take_shown(&key(), Some(&on_attempt(on))).len(), told, "{on}");
            assert_eq!(unconfirmed.count, 0, "{on}");
        }
    }

    #[test]
    fn a_create_for_the_next_attempt_may_happen_until_it_begins() {
        let mut unconfirmed = UnconfirmedAnnouncements::default();
        unconfirmed.keep(&key(), announcement("a", AnnouncedWrite::Created("wfe-x-2".into())));
        let mut waits = on_attempt(2);
        let execution = waits.executions.get_mut(&Uid::new("a")).unwrap();
        execution.retry.as_mut().unwrap().attempts[1].not_before = Some(DateTime::UNIX_EPOCH);
        assert!(unconfirmed.take_shown(&key(), Some(&waits)).is_empty());
        assert_eq!(unconfirmed.count, 1);
        assert!(unconfirmed.take_shown(&key(), Some(&on_attempt(3))).is_empty());
        assert_eq!(unconfirmed.count, 0, "it got another run");
    }

    #[test]
    fn a_write_that_did_not_happen_is_never_told() {
        let other = RunId { uid: Uid::new("other"), ..run() };
        for (what, view) in [
            ("somebody else was faster", target(&[("a", "6", undecided())])),
            ("it runs by another run", target(&[("a", "6", running(other))])),
            ("it was deleted", target(&[])),
        ] {
            let mut unconfirmed = UnconfirmedAnnouncements::default();
            unconfirmed.keep(&key(), announcement("a", committed()));
            assert!(unconfirmed.take_shown(&key(), Some(&view)).is_empty(), "{what}");
            assert_eq!(unconfirmed.count, 0, "{what}");
        }
    }

    #[test]
    fn a_later_try_that_was_answered_is_told_by_its_answer_alone() {
        let mut unconfirmed = UnconfirmedAnnouncements::default();
        unconfirmed.keep(&key(), announcement("a", committed()));
        unconfirmed.keep(&key(), announcement("a", committed()));
        unconfirmed.keep(&key(), announcement("a", skip()));
        assert_eq!(unconfirmed.count, 2, "the second try takes the place of the first");
        unconfirmed.forget(&key(), &Uid::new("a"));
        assert!(unconfirmed.take_shown(&key(), Some(&target(&[("a", "6", running(run()))]))).is_empty());
        assert_eq!(unconfirmed.count, 0);
    }

    #[test]
    fn what_was_created_or_removed_is_told_when_its_object_is_there_or_gone() {
        let mut unconfirmed = UnconfirmedAnnouncements::default();
        unconfirmed.keep(&key(), announcement("a", AnnouncedWrite::Created("wfe-x-1".into())));
        unconfirmed.keep(&key(), announcement("gone", AnnouncedWrite::Removed));
        let view = target(&[("a", "9", undecided()), ("gone", "5", undecided())]);
        assert!(unconfirmed.take_shown(&key(), Some(&view)).is_empty());
        assert_eq!(unconfirmed.count, 2, "the version of the execution says nothing of a create");
        let view = target(&[("a", "9", undecided())]);
        assert_eq!(unconfirmed.take_shown(&key(), Some(&view)).len(), 1);
        unconfirmed.keep(&key(), announcement("gone", AnnouncedWrite::Removed));
        assert_eq!(unconfirmed.take_shown(&key(), None).len(), 1, "nothing is known of the target any more");
    }

    /// Returns a schedule in this version whose status shows a last run with this outcome.
    fn scheduled(version: &str, outcome: Option<Outcome>) -> Target {
        let object = json!({
            "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
            "metadata": {"namespace": "ops", "name": "nightly", "uid": "s", "resourceVersion": version, "generation": 1},
            "spec": {"interval": "1m", "template": {"spec": {"targetResource": "node/n"}}},
        });
        let mut schedule = observe_schedule(&serde_json::from_value(object).unwrap()).unwrap().schedule;
        schedule.status.last_run = Some(last_run(outcome));
        let mut target = Target::default();
        target.schedules.insert(Uid::new("s"), schedule);
        target
    }

    fn last_run(outcome: Option<Outcome>) -> LastRun {
        let slot = DateTime::UNIX_EPOCH;
        LastRun {
            again: false,
            slot,
            started_at: Some(slot),
            ended_at: None,
            outcome,
            reason: None,
            fingerprint: None,
            message: None,
        }
    }

    #[test]
    fn a_status_of_a_schedule_is_told_when_the_view_shows_it() {
        let shown = ScheduleStatus { last_run: Some(last_run(None)), ..ScheduleStatus::default() };
        let status = ScheduleStatus { last_run: Some(last_run(Some(Outcome::Failed))), ..ScheduleStatus::default() };
        let record = Record {
            schedule: ScheduleId { namespace: "ops".into(), name: "nightly".into(), uid: Uid::new("s") },
            version: Version::new("5"),
            gone: None,
            suppressed: None,
            status: Box::new(status),
        };
        for (what, view, told, left) in [
            ("the view is as it was", scheduled("5", None), 0, 1),
            ("the view shows it", scheduled("6", Some(Outcome::Failed)), 1, 0),
            ("somebody else was faster", scheduled("6", None), 0, 0),
            ("it was deleted", Target::default(), 0, 0),
        ] {
            let mut unconfirmed = UnconfirmedAnnouncements::default();
            let announcement = Announcement::Schedule(OfSchedule::new(record.clone(), shown.clone()));
            assert!(unconfirmed.keep(&key(), announcement));
            assert_eq!(unconfirmed.take_shown(&key(), Some(&view)).len(), told, "{what}");
            assert_eq!(unconfirmed.count, left, "{what}");
        }
    }

    #[test]
    fn there_is_a_limit_to_what_is_kept() {
        let mut unconfirmed = UnconfirmedAnnouncements::default();
        for number in 0..MOST {
            assert!(unconfirmed.keep(&key(), announcement(&number.to_string(), said(Says::Freed))));
        }
        assert!(!unconfirmed.keep(&key(), announcement("one-more", said(Says::Freed))));
        unconfirmed.clear();
        assert!(unconfirmed.keep(&key(), announcement("one-more", said(Says::Freed))));
    }
}
