//! How an execution ends, and whether the end time of its run shows a wrong clock.

use chrono::TimeDelta;

use crate::Time;
use crate::ending::{Failure, Success};

/// How an execution ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Phase Completed.
    Completed(Success),
    /// Phase Failed.
    Failed(Failure),
}

impl Ending {
    /// Compares the end time that the run reports with the recorded end and with the commit (section 9). `None` if the
    /// clocks seem to agree.
    #[must_use]
    pub fn skew(&self, started_at: Option<Time>) -> Option<Skew> {
        let (outcome, taken) = match self {
            Self::Completed(success) => (Some(&success.outcome), success.completed_at),
            Self::Failed(failure) => (failure.outcome.as_ref(), failure.failed_at),
        };
        let said = outcome?.completed_at?;
        match started_at {
            _ if said > taken => Some(Skew::Ahead { said, taken }),
            Some(started_at) if started_at - said > BEHIND => Some(Skew::Behind { said, started_at }),
            _ => None,
        }
    }
}

/// How long before the commit the reported end of a run may lie without an announcement. A clock of Tekton that is some
/// seconds behind does no harm.
const BEHIND: TimeDelta = TimeDelta::minutes(1);

/// How the end time of a run shows that its clock differs from the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// The run reports an end too far in the future; an earlier time was recorded.
    Ahead {
        /// The reported time.
        said: Time,
        /// The time that was recorded.
        taken: Time,
    },
    /// The run reports an end long before the execution committed to it. That time was recorded.
    Behind {
        /// The reported time.
        said: Time,
        /// When the execution committed to the run.
        started_at: Time,
    },
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::evidence::{Doubt, Started};
    use crate::run::Outcome;

    #[test]
    fn a_run_whose_clock_is_not_ours_is_told_and_one_that_is_a_minute_off_is_not() {
        let at = |second| Time::from_timestamp(1_800_000_000 + second, 0).unwrap();
        let skew = |said: Option<i64>, taken, started_at: Option<i64>| {
            let outcome =
                Outcome { succeeded: true, reason: "r".into(), message: "m".into(), completed_at: said.map(at) };
            let (completed_at, started) = (at(taken), Started::Unknown(Doubt::Unread));
            let success =
                Success { completed_at, ran_for: Duration::ZERO, outcome, started, tasks: None, attempt: None };
            Ending::Completed(success).skew(started_at.map(at))
        };
        let behind = |said, started_at| Some(Skew::Behind { said: at(said), started_at: at(started_at) });
        assert_eq!(skew(Some(160), 100, Some(0)), Some(Skew::Ahead { said: at(160), taken: at(100) }));
        assert_eq!(skew(Some(100), 100, Some(0)), None);
        assert_eq!(skew(Some(0), 0, Some(60)), None);
        assert_eq!(skew(Some(0), 0, Some(61)), behind(0, 61));
        assert_eq!(skew(Some(-3600), -3600, Some(0)), behind(-3600, 0));
        assert_eq!(skew(Some(-3600), -3600, None), None, "nobody knows when it was committed");
        assert_eq!(skew(None, 0, Some(3600)), None, "it does not say when it ended");
    }
}
