//! Whether the clearance and the cancellation of an execution count (SPEC section 17).

use super::{Cancellation, Execution, ExecutionState, Recorded};
use crate::guard::{Guard, GuardMark, Touch, Word, WordKind};

impl Execution {
    /// Returns what a person has set on it.
    #[must_use]
    pub fn touch(&self) -> Touch {
        Touch { cancellation: self.cancellation.is_some(), clearance: self.clearance.is_some() }
    }

    /// Returns its cancellation, where that counts.
    #[must_use]
    pub fn cancelled(&self, guard: Guard) -> Option<&Cancellation> {
        self.cancellation.as_deref().filter(|_| self.word(WordKind::Cancellation, guard) == Some(Word::Counts))
    }

    /// Tells whether what a person has set counts; `None` where nothing is set that can do anything. Only a failure can
    /// be cleared, and only what has not ended be cancelled.
    #[must_use]
    pub fn word(&self, kind: WordKind, guard: Guard) -> Option<Word> {
        let is_ignored = match kind {
            WordKind::Clearance => match (&self.state, self.clearance.as_ref()?.recorded) {
                // What a status has recorded as effective stays so.
                (ExecutionState::Failed(_), Recorded::Not) => false,
                (ExecutionState::Failed(_), Recorded::Unguarded) => true,
                _ => return None,
            },
            WordKind::Cancellation => self.cancellation.as_ref().filter(|_| !self.is_terminal())?.unguarded.is_some(),
        };
        Some(if is_ignored { Word::Ignored } else { self.weigh(guard) })
    }

    /// Weighs what is set and not ignored: the policies that protect now must be those that the status named before.
    fn weigh(&self, guard: Guard) -> Word {
        let looked = self.recall().looked.filter(|looked| looked.touch == self.touch());
        match (guard, looked) {
            (Guard::Off, _) => Word::Counts,
            (_, None) => Word::Open,
            (_, Some(looked)) => match looked.found {
                Some(found) if self.guard == Some(found) || self.is_younger_than(guard, found) => Word::Counts,
                _ => Word::Unguarded,
            },
        }
    }

    /// An execution that has no status yet names no policy. Where it was created after this process knew of the
    /// policies, all that was set on it was set under them. The creation time has whole seconds.
    fn is_younger_than(&self, guard: Guard, found: GuardMark) -> bool {
        let is_undecided = matches!(self.state, ExecutionState::Undecided { .. });
        match guard {
            Guard::By { mark, since } => {
                is_undecided && self.guard.is_none() && mark == found && !since.is_after(self.created)
            }
            Guard::Off | Guard::Unknown => false,
        }
    }
}
