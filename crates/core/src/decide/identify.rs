//! Computes what a failure has in common with others. Every end of an execution is created here, so that no failure is
//! written without its fingerprint.

use super::View;
use crate::Time;
use crate::action::{Action, Ending, Says};
use crate::ending::{Charge, Failure};
use crate::execution::Execution;
use crate::fingerprint::Fingerprint;
use crate::history::Weight;
use crate::verdict::Fact;

impl View<'_> {
    /// Ends an execution if these facts hold.
    pub(super) fn ended(self, execution: &Execution, facts: Vec<Fact>, ending: Ending, draining: bool) -> Action {
        let ending = match ending {
            Ending::Failed(failure) => Ending::Failed(self.identify(execution, failure)),
            completed @ Ending::Completed(_) => completed,
        };
        execution.says_if(facts, Says::Ended { ending, draining })
    }

    /// Adds to a failure its fingerprint, and whether it is shared with other targets and therefore does not count.
    fn identify(self, execution: &Execution, failure: Failure) -> Failure {
        let fingerprint = Fingerprint::of(failure.symptoms(), &execution.origin);
        let is_open = |fingerprint| self.target.circuits.is_open_for(fingerprint, failure.failed_at);
        // A child's failure never counts for its target, but always for its schedule (section 13.5).
        let shared_outage = execution.child.is_none() && failure.may_be_shared() && is_open(&fingerprint);
        let counts = failure.charge.next_allowed_execution.is_some();
        let charge =
            if shared_outage && counts { self.charge(failure.failed_at, Weight::Waits) } else { failure.charge };
        Failure { fingerprint: Some(fingerprint), shared_outage, charge, ..failure }
    }

    /// Returns the effect of a failure on the failure count of the target.
    pub(super) fn charge(self, at: Time, weight: Weight) -> Charge {
        self.history.charge(self.policy, self.target.label(), at, weight)
    }
}
