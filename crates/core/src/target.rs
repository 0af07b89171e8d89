//! One target as a value: its canonical name, and all its known executions, runs and schedules.
//!
//! This is the whole input of a decision. It contains no trace of how it was observed.

mod kinds;
mod name;
mod places;

pub use kinds::{Scope, kind_spellings};
pub use name::{TargetError, TargetName, canonical_kind, is_dns_label};

use std::sync::Arc;

use crate::Time;
use crate::chain::RunNumber;
use crate::circuit::Circuits;
use crate::execution::{Execution, ExecutionState};
use crate::guard::Guard;
use crate::limit::Places;
use crate::name::{ExecutionId, RunId};
use crate::residue::Residue;
use crate::retry::NextAttempt;
use crate::run::{Owner, Progress, Run};
use crate::schedule::Schedule;
use crate::tries::Trouble;
use crate::uid_map::{SmallMap, UidMap};

/// Everything that is known about one target.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The name, if an execution has a valid one. Used for display and to derive jitter.
    pub name: Option<TargetName>,
    /// The executions that name this target, by uid.
    pub executions: UidMap<Execution>,
    /// The runs of this target's chain, by uid.
    pub runs: UidMap<Run>,
    /// The unfinished tasks and pods of this target's runs, by uid.
    pub residue: UidMap<Residue>,
    /// The schedules whose template names this target, by uid.
    pub schedules: SmallMap<Schedule>,
    /// Whether the operator cannot see schedules. It then decides on no schedule and removes no child.
    pub blind_to_schedules: bool,
    /// The shared failures of all targets, as far as they are known.
    pub circuits: Circuits,
    /// The places of the target in the limits, as far as they are known.
    pub places: Places,
    /// Whether the name of the target cannot be read. The entry then contains one execution, which neither blocks nor
    /// counts once it has ended.
    pub is_unreadable: bool,
    /// What this process knows about the policies that guard clearances and cancellations.
    pub guard: Guard,
    /// Whether this process has announced that the target drains for too long. As one of several flags, it needs no
    /// extra memory here.
    pub drain_warned: bool,
    /// What else this process remembers of the target.
    pub memory: TargetMemory,
}

/// What this process remembers of a target that its objects do not contain. A new process remembers nothing.
#[derive(Clone, Debug, Default)]
pub struct TargetMemory {
    /// What prevents this process from carrying out a decision on this target, if anything does.
    pub trouble: Option<Box<Trouble>>,
    /// The highest run number that a create found taken by an object that the watch does not show; 0 if none.
    pub highest_taken: RunNumber,
    /// The results of reading the owners of finished runs that no watch delivers, by uid.
    pub unwatched_owners: SmallMap<Elsewhere>,
}

/// The result of reading an execution live that no watch delivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Elsewhere {
    /// When the execution was read.
    pub at: Time,
    /// The state that was found.
    pub found: OwnerRead,
}

/// The state of an execution whose run is done and that no watch delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnerRead {
    /// The execution is terminal or gone, which is final.
    Over,
    /// The execution waits for its next attempt, and holds the target.
    Waits {
        /// Since when the execution is Running.
        started_at: Time,
        /// The attempt that the execution waits for.
        next: NextAttempt,
    },
    /// The status of the execution does not show yet what comes next.
    Late,
}

impl Target {
    /// Returns the number of the next run: one above the highest known from runs and from statuses (section 5).
    #[must_use]
    pub fn next_number(&self) -> RunNumber {
        let from_runs = self.runs.values().map(|run| run.number);
        let from_statuses = self.executions.values().filter_map(|execution| execution.run_sequence);
        from_runs.chain(from_statuses).max().unwrap_or(0).max(self.memory.highest_taken).saturating_add(1)
    }

    /// Returns the highest run number that an execution has tried, if any. Operators without retries wrote statuses
    /// without `runSequence`: for those it is the number of the run that the execution committed to.
    #[must_use]
    pub fn last_number_of(&self, execution: &Execution) -> Option<RunNumber> {
        let committed = match &execution.state {
            ExecutionState::Running { run: Some(run), .. } => self.runs.get(&run.uid).map(|run| run.number),
            _ => None,
        };
        execution.run_sequence.max(committed)
    }

    /// Returns the name of the target, for people and as a key.
    #[must_use]
    pub fn label(&self) -> &str {
        self.name.as_ref().map_or("the target", TargetName::as_str)
    }

    /// Returns the executions that are Running.
    #[must_use]
    pub fn running(&self) -> Vec<&Execution> {
        let is_running = |it: &&Execution| matches!(it.state, ExecutionState::Running { .. });
        self.executions.values().filter(is_running).collect()
    }

    /// Returns the execution that owns a run, if it is known.
    #[must_use]
    pub fn owner_of(&self, run: &Run) -> Option<&Execution> {
        match &run.owner {
            Owner::Execution { id, .. } => self.executions.get(&id.uid),
            Owner::Nobody => None,
        }
    }

    /// Returns the run that an execution's status names, if the run exists and does not belong to another execution. A
    /// run that lost its annotations is still the one that the execution committed to.
    #[must_use]
    pub fn own_run_named(&self, execution: &ExecutionId, run: &RunId) -> Option<&Run> {
        self.runs.get(&run.uid).filter(|run| run.is_owned_by(execution) || run.owner == Owner::Nobody)
    }

    /// Returns the execution that is Running on a run.
    #[must_use]
    pub fn committed_to(&self, run: &Run) -> Option<&Execution> {
        match &run.owner {
            Owner::Execution { .. } => self.owner_of(run).filter(|owner| owner.is_running(&run.id)),
            Owner::Nobody => self.executions.values().find(|execution| execution.is_running(&run.id)),
        }
    }

    /// Returns the remains of an execution's runs.
    pub fn residue_of(&self, execution: &ExecutionId) -> impl Iterator<Item = &Residue> {
        self.residue.values().filter(|residue| residue.owner.is(execution))
    }

    /// Returns whether no unfinished task or pod of a run is visible. For a run without an owner this is only true if
    /// an execution committed to it: otherwise nothing waits for it.
    #[must_use]
    pub fn is_bare(&self, run: &Run) -> bool {
        match &run.owner {
            Owner::Execution { id, .. } => self.residue_of(id).next().is_none(),
            Owner::Nobody => self.committed_to(run).is_some() && self.residue.is_empty(),
        }
    }

    /// Returns whether the target drains: nothing runs on it, but tasks or pods of a run are left (section 5.6).
    #[must_use]
    pub fn is_draining(&self) -> bool {
        let runs = |run: &Run| matches!(run.progress, Progress::Released) && run.is_unfinished();
        !self.residue.is_empty() && !self.runs.values().any(runs)
    }

    /// Returns the namespace that requests work on the target (section 17): that of the oldest execution that has not
    /// ended, or else that of a schedule.
    #[must_use]
    pub fn asker(&self) -> Option<&Arc<str>> {
        let open = self.executions.values().filter(|execution| !execution.is_terminal());
        let oldest = open.min_by(|a, b| (a.created, &a.id.uid).cmp(&(b.created, &b.id.uid)));
        oldest.map(|it| &it.id.namespace).or_else(|| self.schedules.values().next().map(|it| &it.id.namespace))
    }

    /// Returns whether the target has no records left and can be forgotten.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty() && self.runs.is_empty() && self.residue.is_empty() && self.schedules.is_empty()
    }
}
