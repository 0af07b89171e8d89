//! What would stop a new execution on a target, even if no execution asks for a turn now. Used for the condition
//! `Blocked`, for metrics and for messages.

use crate::Time;
use crate::ending::Skip;
use crate::history::History;
use crate::name::ExecutionId;
use crate::policy::Policy;
use crate::reason::BlockReason;

/// The reason of the condition `Blocked` if the recovery of the failure is the newest execution that ran on the target.
pub const RECOVERED: &str = "Recovered";

/// The blocks and the failure count of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetBlocks {
    /// The number of pre-execution failures in a row (section 7).
    pub consecutive_failures: u32,
    /// What blocks the target until a person clears it, newest first. A clearance of the newest one lifts all.
    pub blocks: Vec<Skip>,
}

/// The value of the condition `Blocked` of a terminal execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The execution blocks its target.
    Yes(BlockReason),
    /// The execution blocked its target until a clearance.
    Cleared,
    /// The execution blocked its target; now another execution does.
    Superseded,
    /// The execution blocked its target; the newest execution that ran there is the recovery that lifted the block.
    Recovered,
    /// The execution blocked its target; a later success or time lifted the block, and nothing blocks the target now.
    Lifted,
}

impl Blocked {
    /// Returns the reason of the condition.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Yes(reason) => reason.as_str(),
            Self::Cleared => "Cleared",
            Self::Superseded => "Superseded",
            Self::Recovered => RECOVERED,
            Self::Lifted => "Lifted",
        }
    }

    /// Describes what the condition means, and what would lift the block.
    #[must_use]
    pub fn message(self, target: &str) -> String {
        match self {
            Self::Yes(BlockReason::PreviousExecutionFailed) => format!(
                "something of it ran, or may have run, so what would run next on {target} is skipped; see what it left \
                 behind, then clear it: kubectl wfe clear {target} --reason '...'"
            ),
            Self::Yes(BlockReason::ExhaustedRetries) => format!(
                "it is the latest of too many failures in a row, so what would run next on {target} is skipped; end their \
                 cause, then clear it: kubectl wfe clear {target} --reason '...'"
            ),
            Self::Cleared => format!("a clearance has lifted its block of {target}"),
            Self::Superseded => format!("a later execution blocks {target} in its place"),
            Self::Recovered => format!(
                "the recovery of this execution has succeeded and ended its block of {target}; until a later execution \
                 has run there, deleting this one requires permission to clear it"
            ),
            Self::Lifted => format!("its block of {target} has ended, by a later success or by time"),
        }
    }
}

impl TargetBlocks {
    /// Reads the blocks and the failure count from a history.
    pub(crate) fn of(history: &History<'_>, policy: &Policy, now: Time) -> Self {
        let consecutive_failures = history.consecutive_failures(policy, now);
        Self { consecutive_failures, blocks: history.blocks(policy, now) }
    }

    /// Returns how an execution blocks the target, if it does.
    #[must_use]
    pub fn blocked_by(&self, execution: &ExecutionId) -> Option<BlockReason> {
        let block = self.blocks.iter().find(|block| block.remediation().is_some_and(|it| it.execution == *execution));
        block.and_then(reason_of)
    }

    /// Returns the reason for which a new execution would be skipped, if the target is blocked.
    #[must_use]
    pub fn reason(&self) -> Option<BlockReason> {
        self.blocks.iter().filter_map(reason_of).min()
    }
}

/// Returns the block reason that corresponds to a skip, if there is one.
fn reason_of(block: &Skip) -> Option<BlockReason> {
    match block {
        Skip::PreviousExecutionFailed { .. } => Some(BlockReason::PreviousExecutionFailed),
        Skip::ExhaustedRetries { .. } => Some(BlockReason::ExhaustedRetries),
        Skip::ResourceBusy(_) | Skip::Backoff { .. } | Skip::Cooldown { .. } => None,
    }
}
