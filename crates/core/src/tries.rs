//! What prevents a write that the operator retries, and for how long the operator has tried.
//!
//! The start deadline of section 5.8 counts only the time in which a process tries to create a run. A process keeps the
//! count in memory. It stops counting while it does not try: the execution is paused, another execution has its turn,
//! or the process does not lead or cannot see the cluster. The condition `Waiting` records the count, and is updated
//! with every [`step`]. The next leader continues from the recorded count when it tries itself, so a change of leader
//! loses at most one step. A pause overwrites the condition, so the count starts again after it.

use std::time::Duration;

use crate::duration;
use crate::trouble::{OwnCause, OwnTrouble};
use crate::waiting::Waiting;

/// The longest step. With half a minute, even a leader that lasts for only a minute advances the count. A failed try is
/// repeated within half a minute, so each try causes about one status write.
const LONGEST_STEP: Duration = Duration::from_secs(30);
/// The text before the duration in the condition.
const BEFORE: &str = "tried for ";
/// The text after the duration.
const AFTER: &str = " so far: ";

/// What prevents a process from carrying out a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The kind of trouble.
    pub kind: TroubleKind,
    /// What the operator tried, and the answer of the API server.
    pub words: Box<str>,
}

/// The kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// The API server refuses the request or does not answer.
    ApiErrors,
    /// The operator's own trouble, which never fails an execution, however long it lasts.
    Operator(OwnCause),
    /// The cluster does not serve Tekton's kinds.
    TektonUnavailable,
}

impl Trouble {
    /// Returns what an execution waits for if this trouble stops it.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        let words = self.words.clone();
        match self.kind {
            TroubleKind::ApiErrors => Waiting::ApiErrors(words),
            TroubleKind::Operator(cause) => Waiting::Operator(OwnTrouble { cause, words }),
            TroubleKind::TektonUnavailable => Waiting::TektonUnavailable(words),
        }
    }

    /// Returns the operator's own trouble, if it is one.
    #[must_use]
    pub fn own(&self) -> Option<OwnTrouble> {
        match self.kind {
            TroubleKind::Operator(cause) => Some(OwnTrouble { cause, words: self.words.clone() }),
            TroubleKind::ApiErrors | TroubleKind::TektonUnavailable => None,
        }
    }

    /// Returns whether a deadline may end an execution that this trouble stops.
    #[must_use]
    pub fn has_deadline(&self) -> bool {
        !matches!(self.kind, TroubleKind::Operator(_))
    }
}

/// Returns by how much the count must grow before the status is updated. It is a tenth of the deadline, so that a
/// change of leader loses little, and at most half a minute.
#[must_use]
pub fn step(start_deadline: Duration) -> Duration {
    (start_deadline / 10).clamp(Duration::from_secs(1), LONGEST_STEP)
}

/// Adds the duration of the tries, in whole seconds, before the text of the condition `Waiting`.
#[must_use]
pub fn with_duration(tried: Duration, words: &str) -> String {
    format!("{BEFORE}{}{AFTER}{words}", duration::format(Duration::from_secs(tried.as_secs())))
}

/// Reads the duration of the tries from the message of the condition `Waiting`; `None` if the message contains none.
#[must_use]
pub fn read(message: &str) -> Option<Duration> {
    let (tried, _) = message.strip_prefix(BEFORE)?.split_once(AFTER)?;
    duration::parse(tried).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_a_message_tells_is_read_back() {
        for seconds in [0, 1, 59, 60, 90, 86_400] {
            let tried = Duration::from_secs(seconds);
            assert_eq!(read(&with_duration(tried, "cannot create: tried for 5s so far: no")), Some(tried));
        }
        assert_eq!(
            read(&with_duration(Duration::from_millis(1999), "m")),
            Some(Duration::from_secs(1)),
            "no more than it was"
        );
        for silent in ["", "cannot create", "tried for ever", "tried for x so far: m", "it was tried for 5s so far: m"]
        {
            assert_eq!(read(silent), None, "{silent}");
        }
    }

    #[test]
    fn a_step_is_a_tenth_of_the_deadline_within_limits() {
        for (deadline, seconds) in [(1, 1), (5, 1), (20, 2), (300, 30), (86_400, 30)] {
            assert_eq!(step(Duration::from_secs(deadline)), Duration::from_secs(seconds), "{deadline}");
        }
    }
}
