//! Shows each decision to an observer, which tests use to judge the decision. The released operator has no observer.

use std::fmt;
use std::sync::Arc;

use wfe_core::Time;
use wfe_core::action::Decision;
use wfe_core::policy::Policy;
use wfe_core::target::Target;

/// A decision on a complete view of a target.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// The target that was decided on.
    pub target: &'a Target,
    /// The policy.
    pub policy: &'a Policy,
    /// The time, by the clock of the replica.
    pub now: Time,
    /// What was decided.
    pub decision: &'a Decision,
}

/// The observer that sees each decision. Cheap to clone.
#[derive(Clone)]
pub struct DecisionObserver(Arc<dyn Fn(Decided<'_>) + Send + Sync>);

impl DecisionObserver {
    /// Makes an observer from a function.
    #[must_use]
    pub fn new(observer: impl Fn(Decided<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }

    pub(crate) fn show(&self, decided: Decided<'_>) {
        (self.0)(decided);
    }
}

impl fmt::Debug for DecisionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionObserver")
    }
}
