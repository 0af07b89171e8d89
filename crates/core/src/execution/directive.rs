//! Whether the clearance and the cancellation of an execution count (section 17).

use super::{Cancellation, Clearance, Execution, ExecutionState, Recorded};
use crate::guard::{Directive, DirectiveState, Guard, Unguarded};

impl Execution {
    /// Returns the cancellation, if it counts.
    #[must_use]
    pub fn cancelled(&self, guard: Guard) -> Option<&Cancellation> {
        self.cancellation
            .as_deref()
            .filter(|_| self.directive(Directive::Cancellation, guard) == Some(DirectiveState::Counts))
    }

    /// Returns whether a clearance or cancellation counts; `None` if there is none that can have an effect. Only a
    /// failure can be cleared, and only an execution that has not ended can be cancelled.
    #[must_use]
    pub fn directive(&self, kind: Directive, guard: Guard) -> Option<DirectiveState> {
        let word = match (self.shown_unguarded(kind), guard) {
            // If a status has recorded that the directive counts, it counts for ever.
            (Some(Unguarded { counts: true, .. }), _) | (_, Guard::InForce) | (None, Guard::Recorded) => {
                DirectiveState::Counts
            }
            (_, Guard::Unknown) => DirectiveState::Open,
            (None, Guard::Missing) => DirectiveState::Unguarded,
            (Some(_), Guard::Missing | Guard::Recorded) => DirectiveState::Ignored,
        };
        self.can_act(kind).then_some(word)
    }

    /// Returns the new value of the condition `Unguarded`: whether the clearance or cancellation counts, although no
    /// policy was in force when it was seen. `None` if the status is up to date, or a policy was in force.
    #[must_use]
    pub fn unguarded_anew(&self, kind: Directive, guard: Guard) -> Option<bool> {
        match (self.directive(kind, guard)?, self.shown_unguarded(kind)) {
            (DirectiveState::Unguarded, _) => Some(false),
            (DirectiveState::Counts, Some(Unguarded { counts: false, .. })) => Some(true),
            _ => None,
        }
    }

    /// Returns whether a clearance or cancellation is set that can still have an effect.
    fn can_act(&self, kind: Directive) -> bool {
        match kind {
            Directive::Clearance => {
                let is_new = self.clearance.as_ref().is_some_and(|clearance| clearance.recorded == Recorded::Not);
                is_new && matches!(self.state, ExecutionState::Failed(_))
            }
            Directive::Cancellation => self.cancellation.is_some() && !self.is_terminal(),
        }
    }

    pub(crate) fn shown_unguarded(&self, kind: Directive) -> Option<Unguarded> {
        match kind {
            Directive::Clearance => self.clearance.as_ref()?.unguarded,
            Directive::Cancellation => self.cancellation.as_ref()?.unguarded,
        }
    }
}

impl Clearance {
    /// Returns whether the status records that the clearance has no effect, now or for ever.
    #[must_use]
    pub fn is_in_vain(&self) -> bool {
        let is_ignored = self.unguarded.is_some_and(|it| !it.counts);
        self.recorded == Recorded::Ineffective || self.recorded == Recorded::Not && is_ignored
    }
}
