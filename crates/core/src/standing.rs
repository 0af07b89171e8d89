//! What stands in the way of whoever comes next to a target, whether or not somebody asks for a turn now: for the
//! condition `Blocked`, for the metrics, for people.

use crate::Time;
use crate::history::{History, Past};
use crate::name::ExecutionId;
use crate::policy::Policy;

/// What the history of a target comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The pre-execution failures in a row (section 7).
    pub consecutive_failures: u32,
    /// Who blocks the target: what an execution would meet first, first.
    pub blocks: Vec<Block>,
}

/// A standing block (section 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The execution that blocks: the one that a clearance is set on.
    pub execution: ExecutionId,
    /// How.
    pub reason: BlockReason,
}

/// How an execution blocks its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockReason {
    /// It broke half way (rule 2).
    PreviousExecutionFailed,
    /// It is the newest of too many failures in a row (rule 3).
    ExhaustedRetries,
}

/// What the condition `Blocked` of a terminal execution is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// It blocks its target.
    Yes(BlockReason),
    /// It did, until a clearance.
    Cleared,
    /// It did, and another one does now.
    Superseded,
    /// It did, and nothing does any more: by a later success, or by time.
    Lifted,
}

impl BlockReason {
    /// Both.
    pub const ALL: [Self; 2] = [Self::PreviousExecutionFailed, Self::ExhaustedRetries];

    /// Returns the skip reason that it brings, in the spelling of the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreviousExecutionFailed => "PreviousExecutionFailed",
            Self::ExhaustedRetries => "ExhaustedRetries",
        }
    }
}

impl Blocked {
    /// Returns the reason of the condition.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Yes(reason) => reason.as_str(),
            Self::Cleared => "Cleared",
            Self::Superseded => "Superseded",
            Self::Lifted => "Lifted",
        }
    }

    /// Tells a person what that means, and what would end it.
    #[must_use]
    pub fn message(self, target: &str) -> String {
        match self {
            Self::Yes(BlockReason::PreviousExecutionFailed) => format!(
                "something of it ran, or nobody can tell, so what would run next on {target} is skipped; see what it left \
                 behind, then clear it: kubectl wfe clear {target} --reason '...'"
            ),
            Self::Yes(BlockReason::ExhaustedRetries) => format!(
                "it is the latest of too many failures in a row, so what would run next on {target} is skipped; end their \
                 cause, then clear it: kubectl wfe clear {target} --reason '...'"
            ),
            Self::Cleared => format!("a clearance has lifted its block of {target}"),
            Self::Superseded => format!("a later execution blocks {target} in its place"),
            Self::Lifted => format!("its block of {target} has ended, by a later success or by time"),
        }
    }
}

impl Standing {
    /// Reads what stands.
    pub(crate) fn of(history: &History<'_>, policy: &Policy, now: Time) -> Self {
        let broken = history.blocking(policy.previous_execution_failed_scope).into_iter();
        let broken = broken.map(|past| (past, BlockReason::PreviousExecutionFailed));
        let exhausted = history.exhausting(policy, now).map(|past| (past, BlockReason::ExhaustedRetries));
        let block = |(past, reason): (&Past<'_>, _)| Block { execution: past.execution.id.clone(), reason };
        Self {
            consecutive_failures: history.consecutive_failures(policy, now),
            blocks: broken.chain(exhausted).map(block).collect(),
        }
    }
}
