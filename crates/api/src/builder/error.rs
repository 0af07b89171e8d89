//! Why a `WorkflowExecution` cannot be built.

use wfe_core::target::TargetError;

use crate::{limits, variable};

/// Why a `WorkflowExecution` cannot be built: the field, what is wrong with it, and what to do.
///
/// The text never quotes a parameter's value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BuildError {
    /// The field, as the API server would name it, e.g. `spec.targetResource`.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub problem: Problem,
}

impl BuildError {
    pub(super) fn new(field: impl Into<String>, problem: Problem) -> Self {
        Self { field: field.into(), problem }
    }
}

/// What is wrong with a field, and what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// It is empty, and must not be.
    #[error("is empty; give one, e.g. {example}")]
    Empty {
        /// A valid value.
        example: &'static str,
    },
    /// It has too many characters.
    #[error("has {length} characters; shorten it to at most {limit}")]
    TooLong {
        /// Its length in characters.
        length: usize,
        /// The longest length in characters.
        limit: u32,
    },
    /// It does not have the required form.
    #[error("must be {expected}")]
    Malformed {
        /// The form, with an example.
        expected: &'static str,
    },
    /// It is not a valid retry policy.
    #[error("{0}")]
    Retry(String),
    /// It is not a valid target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There are too many parameters.
    #[error("has {0} entries; leave out all but {limit}", limit = limits::PARAMETERS)]
    TooManyParameters(usize),
    /// The parameters are too large together.
    #[error(
        "has {0} characters in keys and values together, of {limit} at most; pass large inputs by reference, e.g. the \
         name of a ConfigMap",
        limit = limits::PARAMETERS_SIZE
    )]
    LargeParameters(usize),
    /// A parameter has the name under which the operator passes the target.
    #[error("is reserved, the operator passes the target under this name; leave it out")]
    Reserved,
    /// The value contains a variable that Tekton would replace by another text.
    #[error("{}", variable::REFUSAL)]
    Variable,
    /// The image contains one digest, and `containerDigest` is another.
    #[error("is another digest than the one inside spec.workflowRef.containerImage; give the digest once")]
    TwoDigests,
    /// The field may be set only later.
    #[error("may be set only on a WorkflowExecution that exists; leave it out")]
    Later,
    /// The execution to recover did not fail half way.
    #[error("names an execution that is not Failed after something of it ran; ask again without recoveryOf")]
    NothingToRecover,
    /// The execution to recover is in another namespace.
    #[error("names an execution in another namespace; create this one in the same namespace")]
    OtherNamespace,
    /// The recovery has the workflow that failed.
    #[error("names an execution of the same workflow ({0}), which is never repeated; pick another workflow")]
    SameWorkflow(String),
    /// The recovery has the bundle that failed.
    #[error("names an execution of the same bundle (by its digest or its repository); pick a workflow from another")]
    SameBundle,
}
