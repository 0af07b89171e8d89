//! The rules that can be left out of the protocol, to show that the searches notice.
//!
//! Every variant wraps the core in the model. It alters the view before a decision, the actions after it, what is read
//! live, or what the API server checks. The core has no hooks for this.

/// A rule that is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LeftOut {
    /// Nothing: the protocol as it is.
    #[default]
    Nothing,
    /// `PipelineRunPending`: Tekton starts a run as soon as it is created.
    Pending,
    /// The look: an execution commits to its pending run, whatever other runs exist.
    Look,
    /// The order rule: at the look, the numbers of runs decide which came first, instead of the order of creation.
    Order,
    /// The rule for first lists: their runs are assumed to be in the order of their numbers.
    ListOrder,
    /// Waiting for the end of a list: decisions are made during a list.
    WholeLists,
    /// The owner check: an execution with the owner's name is assumed to be the owner.
    Owner,
    /// The uid and the version in the commit.
    CommitPrecondition,
    /// The uid and the version in the terminal write.
    EndPrecondition,
    /// The uid, and "pending still", in the release.
    ReleasePrecondition,
    /// The uid and the version in the deletion of a pending run.
    DeletePrecondition,
    /// The status write that gives a run up, before it is withdrawn.
    GiveUp,
    /// The drain: what runs leave behind is ignored.
    Drain,
    /// The live list of what earlier runs left, before a commit.
    DrainRead,
    /// The live read before a skip.
    SkipRead,
    /// The live read that an owner is gone, before a commit, a deletion or a cancellation that rests on it.
    OwnerRead,
    /// The live read that a run is gone, before its execution fails because of that.
    LostRead,
    /// The look of a later attempt: its execution commits to its next pending run at once.
    AttemptLook,
    /// Waiting for what is left of the execution's own earlier attempt.
    OwnRemains,
    /// The rule that a Running execution holds the target although its run is finished.
    Hold,
    /// The live read that an execution holds the target, before a skip.
    HoldsRead,
    /// Keeping a pending run that its Running owner may commit to.
    NextRun,
    /// The uid and the version in the record of a failed attempt.
    RetryPrecondition,
    /// The worst verdict of all attempts: the verdict of the last attempt counts instead.
    Worst,
    /// Skipping a rival that has a pending run while another execution waits for its next attempt.
    SkipRival,
    /// The live read of an owner that no watch delivers: the owner is assumed to be over.
    Elsewhere,
    /// Waiting for the end of an own run that a user has released.
    OwnRuns,
    /// Waiting for own writes before the next decision. It saves requests; no search found a claim that breaks without.
    OwnWrites,
}

impl LeftOut {
    /// The rules without which some claim is broken.
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

    /// Returns its name, for people.
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
