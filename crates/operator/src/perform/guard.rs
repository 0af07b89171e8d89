//! The look at the policies that guard what a person has set on an execution. It begins after that was seen.

use wfe_core::guard::{Looked, Touch};
use wfe_core::name::ExecutionId;

use super::{Learned, Performer, Result, call};
use crate::policies::guard;

impl Performer {
    /// Looks as which policies those protect that guard what is set.
    pub(super) async fn look(&self, execution: ExecutionId, touch: Touch) -> Result<Vec<Learned>> {
        let what = || format!("read the admission policies that guard what is set on WorkflowExecution {execution}");
        let found = guard::look(&self.cluster).await.map_err(|error| call(what(), error))?;
        let found = found.map(|found| found.mark);
        tracing::debug!(wfe = %execution, ?found, "looked at the policies that guard what is set on it");
        Ok(vec![Learned::Guarded(execution.uid, Looked { touch, found })])
    }
}
