//! Which ended children are kept, and for how long (section 12.7, "History").

use std::collections::HashMap;

use super::{Child, ChildState, Outcome, Schedule};
use crate::moment::{MAX_AHEAD, after};
use crate::name::Uid;

/// Whether a child that has ended is kept for its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// The child's outcome is not recorded yet, or the record cannot be seen: the child is never removed.
    #[default]
    Needed,
    /// The child is kept for its own time to live.
    Own,
    /// Newer children fill the history: the child is removed as if its time to live were over.
    Expendable,
}

impl Schedule {
    /// Returns for each child whether it is kept.
    #[must_use]
    pub fn keeps(&self) -> HashMap<Uid, Retention> {
        // A slot that is later than the creation of its child comes from a wrong clock. The child is recorded when that
        // time comes, if it still exists; nothing depends on this record.
        let is_true = |child: &&Child| child.slot <= after(child.created, MAX_AHEAD);
        let needed: Vec<&Uid> = self.unrecorded().filter(is_true).map(|child| &child.uid).collect();
        let (mut successful, mut failed) = (self.history.successful, self.history.failed);
        let mut keeps = HashMap::with_capacity(self.children.len());
        // The newest children come first, so that they fill the limits.
        for Child { uid, state, .. } in self.children.iter().rev() {
            let keep = match state {
                ChildState::AtWork => Retention::Needed,
                ChildState::Ended { .. } if needed.contains(&uid) => Retention::Needed,
                ChildState::Ended { outcome, .. } => {
                    let room = if *outcome == Outcome::Completed { &mut successful } else { &mut failed };
                    let stays = *room > 0;
                    *room = room.saturating_sub(1);
                    if stays { Retention::Own } else { Retention::Expendable }
                }
            };
            keeps.insert(uid.clone(), keep);
        }
        keeps
    }
}
