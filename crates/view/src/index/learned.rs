//! What the work on a target has learned, other than from the watches.

use wfe_core::Time;
use wfe_core::chain::RunNumber;
use wfe_core::findings::Findings;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::reason::Refusal;
use wfe_core::retry::Answers;
use wfe_core::schedule::{Heard, RefusedChild};
use wfe_core::target::Elsewhere;
use wfe_core::triage::Gathered;

use super::{Expected, Index, Key, Live};

/// A result of a write or a live read.
#[derive(Debug)]
pub enum Learned {
    /// The operator wrote an object; the watch must deliver the write before the next decision.
    Expect(Expected),
    /// The API server permanently refused to create a run.
    Refused {
        /// The execution whose run was refused.
        execution: Uid,
        /// The attempt, if the execution is Running.
        attempt: Option<u32>,
        /// Why the run was refused.
        refusal: Refusal,
    },
    /// This run was deleted because it could not be released in time.
    Unreleased(Uid),
    /// An object that is not one of our runs has the name with this number.
    NumberTaken(RunNumber),
    /// This owner of a run no longer exists.
    OwnerGone(ExecutionId),
    /// The findings about a run, and whether nothing unfinished was left of the run.
    Looked(Uid, Box<Findings>, bool),
    /// The answers of a retry policy's conditions about an attempt of an execution.
    Answered {
        /// The execution with the policy.
        execution: Uid,
        /// The attempt.
        attempt: u32,
        /// The answers.
        answers: Box<Answers>,
    },
    /// An execution that no watch delivers was read live, with this result.
    OwnerRead(Uid, Box<Elsewhere>),
    /// A write to this execution or schedule succeeded and was announced.
    Told(Uid),
    /// An object whose write is awaited was read live, with this result.
    Read(Expected, Live),
    /// The API server permanently refused to create a child of this schedule.
    ChildRefused(Uid, RefusedChild),
    /// The evidence for a triage of this schedule.
    Gathered(Uid, Box<Gathered>),
    /// The verdict of the analyst of this schedule, or why there is none.
    Heard(Uid, Box<Heard>),
    /// An event announced that steps of this run ran a second time.
    ReplayAnnounced(Uid),
    /// An event announced that Tekton does not react to the request to stop this run.
    CancelAnnounced(Uid),
    /// An event announced that the target does not drain.
    DrainWarned,
    /// A status was accepted, and the API server stored nothing new of it.
    NothingStored,
}

impl Index {
    /// Records a result of the work on a target.
    pub fn learn(&mut self, key: &Key, learned: Learned, now: Time) {
        match learned {
            Learned::Expect(expected) => self.expect(key, expected, now),
            Learned::Refused { execution, attempt, refusal } => self.refuse(key, &execution, attempt, refusal),
            Learned::Unreleased(run) => self.unreleased(key, &run),
            Learned::NumberTaken(number) => self.number_taken(key, number),
            Learned::OwnerGone(owner) => self.owner_gone(key, &owner),
            Learned::Looked(run, findings, is_bare) => self.looked(key, &run, *findings, is_bare, now),
            Learned::Answered { execution, attempt, answers } => self.answered(key, &execution, attempt, *answers),
            Learned::OwnerRead(owner, read) => self.owner_read(key, &owner, *read),
            Learned::Read(expected, live) => self.read_live(key, &expected, live),
            Learned::ChildRefused(schedule, refused) => self.child_refused(key, &schedule, refused),
            Learned::Gathered(schedule, gathered) => self.gathered(key, &schedule, *gathered),
            Learned::Heard(schedule, heard) => self.heard(key, &schedule, *heard),
            Learned::ReplayAnnounced(run) => self.replay_told(key, &run),
            Learned::CancelAnnounced(run) => self.cancel_told(key, &run),
            Learned::DrainWarned => self.drain_warned(key),
            // The view does not depend on these.
            Learned::Told(_) | Learned::NothingStored => {}
        }
    }
}
