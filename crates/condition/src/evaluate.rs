//! Evaluates a condition whose names and types were checked, and classifies errors.

use std::sync::Arc;

use cel::common::ast::IdedExpr;
use cel::common::types::CelBool;
use cel::{Context, ExecutionError, Value};

use crate::stack::NoAnswer;
use crate::syntax;
use crate::types;
use crate::unusable::Unusable;
use crate::variables::{self, Variables};

/// Why a condition has no answer. The evaluator's own text is dropped, because it quotes values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A map does not have the key or field that the condition reads.
    #[error("no such key")]
    NoSuchKey,
    /// A list is shorter than the index.
    #[error("index out of bounds")]
    IndexOutOfBounds,
    /// A division or a remainder has zero as its divisor.
    #[error("division by zero")]
    DivisionByZero,
    /// The result of an arithmetic operation does not fit into 64 bits.
    #[error("overflow")]
    Overflow,
    /// An operator or function does not accept values of these types.
    #[error("no such overload: an operator or function does not take values of these types")]
    Overload,
    /// A text or a number cannot be converted.
    #[error("a conversion failed")]
    Conversion,
    /// A map in the condition has the same key twice.
    #[error("repeated key")]
    RepeatedKey,
    /// The result is neither true nor false.
    #[error("the result is not true or false")]
    NotBoolean,
    /// The text cannot be used as a condition.
    #[error("the condition cannot be used: it {0}")]
    Unusable(#[from] Unusable),
    /// No thread could be started to evaluate the condition. The caller can try again.
    #[error("no thread could be started")]
    NoThread,
    /// The evaluator has failed in another way.
    #[error("the evaluation failed")]
    Other,
}

/// Evaluates a condition.
pub(crate) fn evaluate(condition: &IdedExpr, variables: &Variables) -> Result<bool, RunError> {
    let result = variables.limited_result();
    let data = variables::data(&result);
    let mut context = Context::with_env(Arc::new(syntax::environment()));
    variables::provide(&mut context, variables, &result, &data);
    let answer = Value::resolve_val(condition, &context).map_err(|error| class(&error))?;
    answer.downcast_ref::<CelBool>().map(|answer| *answer.inner()).ok_or(RunError::NotBoolean)
}

/// Evaluates a condition on harmless values. Refuses the condition if types do not fit, unless it reads `data`, whose
/// type depends on the value.
pub(crate) fn try_out(condition: &IdedExpr) -> Result<(), Unusable> {
    match evaluate(condition, &Variables::harmless()) {
        Err(RunError::Overload | RunError::NotBoolean) if !types::reads_data(condition) => Err(Unusable::Mistyped),
        Err(RunError::Other) => Err(Unusable::NotEvaluated),
        _ => Ok(()),
    }
}

fn class(error: &ExecutionError) -> RunError {
    match error {
        ExecutionError::NoSuchKey(_) => RunError::NoSuchKey,
        ExecutionError::IndexOutOfBounds(_) => RunError::IndexOutOfBounds,
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => RunError::DivisionByZero,
        ExecutionError::Overflow(..) => RunError::Overflow,
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedIndex(..)
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(..) => RunError::Overload,
        // Of all functions, only `int()` and `double()` can fail.
        ExecutionError::FunctionError { .. } => RunError::Conversion,
        ExecutionError::DuplicateKey(_) => RunError::RepeatedKey,
        _ => RunError::Other,
    }
}

impl From<NoAnswer> for RunError {
    fn from(reason: NoAnswer) -> Self {
        match reason {
            NoAnswer::NoThread => Self::NoThread,
            NoAnswer::Panicked => Self::Other,
        }
    }
}
