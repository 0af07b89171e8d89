//! Shows each decision to somebody who judges it, with what it was made on. A product has none.

use std::fmt;
use std::sync::Arc;

use wfe_core::Time;
use wfe_core::action::Decision;
use wfe_core::policy::Policy;
use wfe_core::target::Target;

/// A decision on a target that was seen whole.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// What it was made on.
    pub target: &'a Target,
    /// By what.
    pub policy: &'a Policy,
    /// When, by the clock of the replica.
    pub now: Time,
    /// What was decided.
    pub decision: &'a Decision,
}

/// Who is shown each decision. Cheap to clone.
#[derive(Clone)]
pub struct Witness(Arc<dyn Fn(Decided<'_>) + Send + Sync>);

impl Witness {
    /// Makes one of a function.
    #[must_use]
    pub fn new(witness: impl Fn(Decided<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(witness))
    }

    pub(crate) fn show(&self, decided: Decided<'_>) {
        (self.0)(decided);
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}
