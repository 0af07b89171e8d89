//! The errors that keep an engine from starting.

use wfe_core::name::ExecutionId;

/// Why the engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An execution runs in another execution namespace. Two execution namespaces would mean two locks.
    #[error(
        "{execution} is Running on a PipelineRun in another execution namespace than the one this operator was started \
         with; start it with --execution-namespace as before, or wait until that run has ended"
    )]
    OtherNamespace {
        /// The execution.
        execution: ExecutionId,
    },
}
