//! What may have been written and is not told yet, as the answer was lost.
//!
//! It is told when the view shows that it was written, and forgotten when the view shows that it was not. A crash loses
//! it: the conditions hold the truth.

use std::collections::HashMap;

use wfe_core::name::Uid;
use wfe_core::target::Target;
use wfe_view::index::Key;

use crate::perform::{Sight, Telling, TellingKey};

/// How many are kept: as many as there may be events that wait to be written.
const MOST: usize = 16_384;

/// By target, so that a look at a target finds its own.
#[derive(Debug, Default)]
pub struct Untold {
    tellings: HashMap<Key, HashMap<TellingKey, Telling>>,
    count: usize,
}

impl Untold {
    /// Keeps what there is to tell of a write whose outcome is unknown. A later try of the same write takes the place
    /// of an earlier one. Says whether there was room.
    pub fn keep(&mut self, key: &Key, telling: Telling) -> bool {
        if self.count >= MOST {
            return false;
        }
        let earlier = self.tellings.entry(key.clone()).or_default().insert(telling.key(), telling);
        self.count += usize::from(earlier.is_none());
        true
    }

    /// Forgets what there was to tell of an execution, as a later write to it has happened and was told: so none of the
    /// earlier tries has.
    pub fn forget(&mut self, key: &Key, execution: &Uid) {
        self.retain(key, |telling| telling.execution() != execution);
    }

    /// Forgets everything: another replica leads, and tells of what it finds.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes out what the view of a target shows to have been written, in the order of the executions, and forgets what
    /// can never be written any more.
    pub fn take_shown(&mut self, key: &Key, target: Option<&Target>) -> Vec<Telling> {
        let mut shown = Vec::new();
        self.retain(key, |telling| match telling.sight(target) {
            Sight::Shown => {
                shown.push(telling.clone());
                false
            }
            Sight::NotYet => true,
            Sight::Never => false,
        });
        shown.sort_unstable_by(|a, b| a.execution().cmp(b.execution()));
        shown
    }

    fn retain(&mut self, key: &Key, mut stays: impl FnMut(&Telling) -> bool) {
        let Some(of_key) = self.tellings.get_mut(key) else { return };
        let before = of_key.len();
        of_key.retain(|_, telling| stays(telling));
        self.count -= before - of_key.len();
        if of_key.is_empty() {
            self.tellings.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::DateTime;
    use wfe_core::ending::{Conflict, Skip};
    use wfe_core::execution::{Execution, ExecutionState};
    use wfe_core::name::{ExecutionId, RunId, Version};
    use wfe_core::target::TargetName;

    use super::*;
    use crate::perform::Told;

    fn id(uid: &str) -> ExecutionId {
        ExecutionId { namespace: "ops".into(), name: uid.into(), uid: Uid::new(uid) }
    }

    fn run() -> RunId {
        RunId { name: "wfe-x-1".into(), uid: Uid::new("r") }
    }

    fn key() -> Key {
        Key::Chain(TargetName::parse("node/n").unwrap().chain())
    }

    fn skip() -> Told {
        let started_at = DateTime::UNIX_EPOCH;
        let conflict =
            Conflict { holder: id("holder"), workflow_id: "w".into(), started_at, draining: false, next: None };
        Told::Skipped(Arc::new(Skip::ResourceBusy(conflict)), "busy".to_owned())
    }

    /// What there is to tell of a write to an execution that rests on version 5.
    fn telling(uid: &str, told: Told) -> Telling {
        Telling::new(None, &id(uid), &Version::new("5"), told)
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
        let mut untold = Untold::default();
        assert!(untold.keep(&key(), telling("a", Told::Committed(run()))));
        assert!(untold.keep(&key(), telling("b", skip())));
        let before = target(&[("a", "5", undecided()), ("b", "5", undecided())]);
        assert!(untold.take_shown(&key(), Some(&before)).is_empty(), "the view is as it was");
        let skipped = ExecutionState::Skipped { completed_at: None };
        let after = target(&[("a", "6", running(run())), ("b", "7", skipped)]);
        let told = untold.take_shown(&key(), Some(&after));
        assert_eq!(told.iter().map(|it| it.execution().clone()).collect::<Vec<_>>(), [Uid::new("a"), Uid::new("b")]);
        assert!(untold.take_shown(&key(), Some(&after)).is_empty(), "once");
        assert_eq!((untold.count, untold.tellings.len()), (0, 0));
    }

    #[test]
    fn a_write_that_did_not_happen_is_never_told() {
        let other = RunId { uid: Uid::new("other"), ..run() };
        for (what, view) in [
            ("somebody else was faster", target(&[("a", "6", undecided())])),
            ("it runs by another run", target(&[("a", "6", running(other))])),
            ("it was deleted", target(&[])),
        ] {
            let mut untold = Untold::default();
            untold.keep(&key(), telling("a", Told::Committed(run())));
            assert!(untold.take_shown(&key(), Some(&view)).is_empty(), "{what}");
            assert_eq!(untold.count, 0, "{what}");
        }
    }

    #[test]
    fn a_later_try_that_was_answered_is_told_by_its_answer_alone() {
        let mut untold = Untold::default();
        untold.keep(&key(), telling("a", Told::Committed(run())));
        untold.keep(&key(), telling("a", Told::Committed(run())));
        untold.keep(&key(), telling("a", skip()));
        assert_eq!(untold.count, 2, "the second try takes the place of the first");
        untold.forget(&key(), &Uid::new("a"));
        assert!(untold.take_shown(&key(), Some(&target(&[("a", "6", running(run()))]))).is_empty());
        assert_eq!(untold.count, 0);
    }

    #[test]
    fn what_was_created_or_removed_is_told_when_its_object_is_there_or_gone() {
        let mut untold = Untold::default();
        untold.keep(&key(), telling("a", Told::Created("wfe-x-1".into())));
        untold.keep(&key(), telling("gone", Told::Removed));
        let view = target(&[("a", "9", undecided()), ("gone", "5", undecided())]);
        assert!(untold.take_shown(&key(), Some(&view)).is_empty());
        assert_eq!(untold.count, 2, "the version of the execution says nothing of a create");
        let view = target(&[("a", "9", undecided())]);
        assert_eq!(untold.take_shown(&key(), Some(&view)).len(), 1);
        untold.keep(&key(), telling("gone", Told::Removed));
        assert_eq!(untold.take_shown(&key(), None).len(), 1, "nothing is known of the target any more");
    }

    #[test]
    fn there_is_a_limit_to_what_is_kept() {
        let mut untold = Untold::default();
        for number in 0..MOST {
            assert!(untold.keep(&key(), telling(&number.to_string(), Told::Freed)));
        }
        assert!(!untold.keep(&key(), telling("one-more", Told::Freed)));
        untold.clear();
        assert!(untold.keep(&key(), telling("one-more", Told::Freed)));
    }
}
