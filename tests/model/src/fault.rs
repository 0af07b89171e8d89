//! The possible faults, and how many times each may happen in a search.

use std::fmt;

/// An event that may happen a limited number of times in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An operator's process dies, and its memory is lost.
    Crash,
    /// The sender of a request gives up while the request is in flight. The request arrives at any later time, or
    /// never.
    Late,
    /// A request arrives, and may arrive again at any later time.
    Twice,
    /// A request is carried out, but its sender gets no answer.
    AnswerLost,
    /// The API server refuses to create a run.
    Refused,
    /// Tekton writes the status of a pending run.
    Touch,
    /// A user deletes an execution.
    Unmake,
    /// A user creates an execution with the name of a deleted one.
    Remake,
    /// A user deletes a run.
    Erase,
    /// A user requests the cancellation of an execution.
    Cancel,
    /// Pods are left after the end of a run.
    Linger,
    /// An operator's watch of runs expires, and the operator lists the runs again.
    Relist,
    /// A user releases a pending run while no request is in flight.
    Poke,
}

impl Fault {
    const COUNT: usize = 13;

    /// Returns the fault's name for a reader.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Late => "late request",
            Self::Twice => "duplicated request",
            Self::AnswerLost => "lost answer",
            Self::Refused => "refused create",
            Self::Touch => "write of Tekton",
            Self::Unmake => "execution deleted",
            Self::Remake => "execution made again",
            Self::Erase => "run deleted",
            Self::Cancel => "cancellation",
            Self::Linger => "pods left",
            Self::Relist => "second list",
            Self::Poke => "run released by somebody",
        }
    }

    const ALL: [Self; Self::COUNT] = [
        Self::Crash,
        Self::Late,
        Self::Twice,
        Self::AnswerLost,
        Self::Refused,
        Self::Touch,
        Self::Unmake,
        Self::Remake,
        Self::Erase,
        Self::Cancel,
        Self::Linger,
        Self::Relist,
        Self::Poke,
    ];
}

/// How many times each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Budget([u8; Fault::COUNT]);

impl Budget {
    /// Returns a budget in which each of these faults may happen once for each time it is listed.
    #[must_use]
    pub fn of(faults: &[Fault]) -> Self {
        let mut budget = Self::default();
        for fault in faults {
            budget.0[*fault as usize] += 1;
        }
        budget
    }

    /// Returns whether a fault may still happen.
    #[must_use]
    pub fn allows(&self, fault: Fault) -> bool {
        self.0[fault as usize] > 0
    }

    /// Subtracts a fault that has happened.
    pub fn spend(&mut self, fault: Fault) {
        let left = &mut self.0[fault as usize];
        *left = left.saturating_sub(1);
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for fault in Fault::ALL {
            let allowed = self.0[fault as usize];
            if allowed > 0 {
                write!(f, "{separator}{}", fault.name())?;
                separator = ", ";
            }
            if allowed > 1 {
                write!(f, " ×{allowed}")?;
            }
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}
