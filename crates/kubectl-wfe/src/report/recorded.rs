//! The part of a report that the operator has recorded in the status.

use super::{Report, Word};
use crate::recorded::Recorded;

impl Report {
    /// Puts what is recorded before the prediction. Returns whether that changes the answer.
    pub(super) fn put_first(&mut self, recorded: &Recorded, log: &str) -> bool {
        let predicted = std::mem::take(&mut self.head);
        let is_new = self.verdict != Word::Wait || self.reason.as_deref() != Some(recorded.reason());
        match recorded {
            Recorded::Waits { reason, message, age } => {
                self.head = format!("waits for {age}, {reason}: {message}");
                self.message = Some(message.clone());
                if is_new && self.verdict != Word::Run {
                    self.facts.push(("by now", predicted));
                }
            }
            Recorded::Nothing { age } => {
                self.head =
                    format!("has not been decided for {age}, although it {predicted}: the operator does not act on it");
                self.message = Some(format!("no operator has decided on it for {age}"));
                self.facts.push(("ask it", format!("{log}; /readyz names what it lacks")));
            }
        }
        self.reason = Some(recorded.reason().to_owned());
        self.verdict = Word::Wait;
        is_new
    }
}
