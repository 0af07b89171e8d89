//! Rules that can be left out of the protocol, which shows that the searches notice a missing rule.
//!
//! Each variant changes something around the core: the view before a decision, the actions after it, live reads, or the
//! API server's checks. The core itself has no hooks for this.

/// A rule of the protocol that can be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LeftOut {
    /// No rule: the protocol as it is.
    #[default]
    Nothing,
    /// `PipelineRunPending`. Tekton then starts a run as soon as it is created.
    Pending,
    /// The check before a commit. An execution then commits to its pending run even if other runs exist.
    Look,
    /// The rule that the order of creation decides which run came first. Instead, the run with the lower number counts
    /// as earlier.
    Order,
    /// The rule for first lists. Their runs are then assumed to have been created in the order of their numbers.
    ListOrder,
    /// Waiting for the end of a list. Decisions are then made during a list.
    WholeLists,
    /// The check of the owner's uid. An execution with the owner's name is then assumed to be the owner.
    Owner,
    /// The uid and the version as preconditions of the commit.
    CommitPrecondition,
    /// The uid and the version as preconditions of the write that ends an execution.
    EndPrecondition,
    /// The uid and the pending state as preconditions of the release.
    ReleasePrecondition,
    /// The uid and the version as preconditions of the deletion of a pending run.
    DeletePrecondition,
    /// The status write that records that an execution gives up its run. The run is deleted only after that.
    GiveUp,
    /// Waiting for the remains of runs, which are then ignored.
    Drain,
    /// The live list of earlier runs' remains before a commit.
    DrainRead,
    /// The live read before a skip.
    SkipRead,
    /// The live read of a missing owner before a commit, a deletion or a cancellation that depends on it.
    OwnerRead,
    /// The live read of a missing run before its execution fails because of that.
    LostRead,
    /// The check before the commit of a later attempt. The execution then commits to its next pending run at once.
    AttemptLook,
    /// Waiting for the remains of the execution's own earlier attempt.
    OwnRemains,
    /// The rule that a Running execution holds the target even if its run is finished.
    Hold,
    /// The live read of an execution that holds the target, before a skip.
    HoldsRead,
    /// The rule that a pending run is kept if its Running owner may commit to it.
    NextRun,
    /// The uid and the version as preconditions of the record of a failed attempt.
    RetryPrecondition,
    /// The rule that the worst verdict of all attempts counts. The verdict of the last attempt then counts.
    Worst,
    /// Skipping a rival that has a pending run while another execution waits for its next attempt.
    SkipRival,
    /// The live read of an owner that no watch delivers. The owner is then assumed to be over.
    Elsewhere,
    /// Waiting for the end of an execution's own run that a user has released.
    OwnRuns,
    /// Waiting for own writes before the next decision. This saves requests, but no search found a claim that breaks
    /// without it.
    OwnWrites,
}

impl LeftOut {
    /// The rules that are needed: without each of them, a claim is broken.
    pub const NEEDED: [Self; 26] = [
        Self::Pending,
        Self::Look,
        Self::Order,
        Self::ListOrder,
        Self::WholeLists,
        Self::Owner,
        Self::CommitPrecondition,
        Self::EndPrecondition,
        Self::ReleasePrecondition,
        Self::DeletePrecondition,
        Self::GiveUp,
        Self::Drain,
        Self::DrainRead,
        Self::SkipRead,
        Self::OwnerRead,
        Self::LostRead,
        Self::AttemptLook,
        Self::OwnRemains,
        Self::Hold,
        Self::HoldsRead,
        Self::NextRun,
        Self::RetryPrecondition,
        Self::Worst,
        Self::SkipRival,
        Self::Elsewhere,
        Self::OwnRuns,
    ];

    /// Returns the rule's name for a reader.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Pending => "PipelineRunPending",
            Self::Look => "the look",
            Self::Order => "the order rule of the look",
            Self::ListOrder => "the rule for first lists",
            Self::WholeLists => "waiting for the end of a list",
            Self::Owner => "the owner check",
            Self::CommitPrecondition => "the precondition of the commit",
            Self::EndPrecondition => "the precondition of the terminal write",
            Self::ReleasePrecondition => "the precondition of the release",
            Self::DeletePrecondition => "the precondition of the withdrawal",
            Self::GiveUp => "giving a run up before its withdrawal",
            Self::Drain => "the drain",
            Self::DrainRead => "the live list before a commit",
            Self::SkipRead => "the live read before a skip",
            Self::OwnerRead => "the live read of an owner",
            Self::LostRead => "the live read of a lost run",
            Self::AttemptLook => "the look of a later attempt",
            Self::OwnRemains => "waiting for one's own remains",
            Self::Hold => "the hold between attempts",
            Self::HoldsRead => "the live read of a hold",
            Self::NextRun => "keeping the next run",
            Self::RetryPrecondition => "the precondition of a retry",
            Self::Worst => "the worst verdict",
            Self::SkipRival => "skipping a rival that has a run",
            Self::Elsewhere => "the live read of an owner elsewhere",
            Self::OwnRuns => "waiting for a run of one's own",
            Self::OwnWrites => "waiting for one's own writes",
        }
    }
}
