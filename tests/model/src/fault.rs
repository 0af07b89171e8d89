//! The faults that can happen, and how often each may happen in one search.

use std::fmt;

/// An event that a search allows a limited number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An operator dies and loses its memory.
    Crash,
    /// A request is in flight when its sender gives it up. It arrives at any later time, or never.
    Late,
    /// A request arrives twice; the second time is any later time, or never.
    Twice,
    /// A request was carried out, but its sender gets no answer.
    AnswerLost,
    /// The API server refuses to create a run.
    Refused,
    /// Tekton writes the status of a pending run.
    Touch,
    /// A user deletes an execution.
    Unmake,
    /// A user creates an execution again, under the name of a deleted one.
    Remake,
    /// A user deletes a run.
    Erase,
    /// A user asks for the cancellation of an execution.
    Cancel,
    /// Pods are left after a run has ended.
    Linger,
    /// A watch of runs expires, and its operator lists them again.
    Relist,
    /// A user releases a pending run, while no request is in flight.
    Poke,
}

impl Fault {
    const COUNT: usize = 13;

    /// Returns its name, for people.
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

/// How often each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Budget([u8; Fault::COUNT]);

impl Budget {
    /// Allows each of these once more.
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

    /// Counts a fault that has happened.
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
