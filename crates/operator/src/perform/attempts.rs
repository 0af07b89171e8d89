//! The live reads between two attempts of an execution: what its conditions ask about, and whether the owner of a
//! finished run waits for another attempt.

use wfe_core::Time;
use wfe_core::execution::ExecutionState;
use wfe_core::name::ExecutionId;
use wfe_core::retry::Answers;
use wfe_core::target::{Elsewhere, OwnerRead};

use super::task::Question;
use super::{Learned, Performer, Result};

impl Performer {
    /// Reads an execution that no watch delivers, and whose run is done.
    pub(super) async fn read_owner(&self, owner: &ExecutionId, now: Time) -> Result<Vec<Learned>> {
        let found = match self.observe_live(owner).await? {
            None => OwnerRead::Over,
            Some(found) if found.is_terminal() => OwnerRead::Over,
            Some(found) => match (found.next_attempt(), &found.state) {
                (Some(next), ExecutionState::Running { started_at, .. }) => {
                    OwnerRead::Waits { started_at: started_at.unwrap_or(found.created), next }
                }
                _ => OwnerRead::Late,
            },
        };
        tracing::debug!(wfe = %owner, ?found, "read an execution that no watch delivers");
        Ok(vec![Learned::OwnerRead(owner.uid.clone(), Box::new(Elsewhere { at: now, found }))])
    }

    /// Asks the conditions of a retry policy about an attempt that has failed.
    #[expect(clippy::unused_async, reason = "the reads come with the conditions")]
    pub(super) async fn ask(&self, question: &Question) -> Result<Vec<Learned>> {
        let (execution, attempt) = (question.execution.uid.clone(), question.failed.attempt);
        Ok(vec![Learned::Answered { execution, attempt, answers: Box::new(Answers::default()) }])
    }
}
