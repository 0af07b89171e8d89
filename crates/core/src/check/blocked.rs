//! Checks the condition `Blocked` (section 15).

use super::Check;
use crate::blocks::Blocked;
use crate::name::ExecutionId;
use crate::reason::BlockReason;

impl Check<'_> {
    /// Checks that a status shows a block only if the execution blocks its target, and the end of a block only if there
    /// was one.
    pub(super) fn show_blocked(&mut self, execution: &ExecutionId, blocked: Blocked) {
        let Some(found) = self.execution(execution) else { return };
        let fits = match blocked {
            Blocked::Yes(reason) => self.record.is_blocked_by(found, reason),
            Blocked::Cleared | Blocked::Superseded | Blocked::Recovered | Blocked::Lifted => {
                let is_recovered = self.record.is_recovered(found);
                let fits = match blocked {
                    Blocked::Recovered => is_recovered && found.blocked_shown.as_deref() != Some("Recovered"),
                    Blocked::Lifted => !is_recovered,
                    _ => true,
                };
                fits && found.blocked_shown.is_some()
                    && BlockReason::ALL.iter().all(|it| !self.record.is_blocked_by(found, *it))
            }
        };
        self.require("15", fits, || format!("says of {execution} that it is {blocked:?}"));
    }
}
