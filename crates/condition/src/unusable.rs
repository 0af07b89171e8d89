//! Why a text cannot be used as a condition, with messages for the person who wrote it.

use crate::stack::NoAnswer;
use crate::{MAX_CHARACTERS, MAX_NODES, names};

/// Why a text cannot be used as a condition. A message continues after the name of the field, as in `retryWhen is
/// empty`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The text is empty.
    #[error("is empty: write an expression such as statusCode >= 500, or leave the field out")]
    Empty,
    /// The text has too many characters.
    #[error("has {characters} characters, at most {MAX_CHARACTERS} are allowed")]
    TooLong {
        /// The number of characters.
        characters: usize,
    },
    /// The tree has too many nodes.
    #[error("has {nodes} names, literals, operators and calls, at most {MAX_NODES} are allowed: use fewer terms")]
    TooManyNodes {
        /// The number of nodes.
        nodes: usize,
    },
    /// The text does not follow the grammar of CEL.
    #[error("is not a CEL expression: syntax error at line {line}, column {column}")]
    Syntax {
        /// The line of the first error, from 1.
        line: usize,
        /// The column of the first error, from 1.
        column: usize,
    },
    /// Brackets are nested deeper than the limit of the parser.
    #[error("has brackets nested deeper than 95 levels: simplify it")]
    TooDeep,
    /// The text does not follow the grammar of CEL, and the parser reports no position.
    #[error("is not a CEL expression")]
    NotParsed,
    /// A name is not a variable.
    #[error("uses {name}, which is not a variable: the variables are {}", names::VARIABLES)]
    Variable {
        /// The name, shortened.
        name: String,
    },
    /// A function or macro is not allowed.
    #[error("calls {name}, which is not allowed: the functions are {}", names::FUNCTIONS)]
    Function {
        /// The name, shortened.
        name: String,
    },
    /// A function is called in the wrong form, or with too few or too many arguments.
    #[error("calls {name} in a form that it does not have: write {usage}")]
    Form {
        /// The name of the function.
        name: &'static str,
        /// The correct form.
        usage: &'static str,
    },
    /// The condition uses a part of CEL that is not allowed.
    #[error("contains {0}, which is not allowed: use strings, numbers, lists and maps")]
    Construct(&'static str),
    /// The condition compares values of two types that are never equal.
    #[error("compares {left} with {right}, which are never equal: compare values of one type{}", hint(left, right))]
    NeverEqual {
        /// The type of the left side.
        left: String,
        /// The type of the right side.
        right: String,
    },
    /// The condition compares `reason` with a text that is not a reason.
    #[error("compares reason with {name}, which it never is: the reasons are {}", names::REASONS.join(", "))]
    Reason {
        /// The text, shortened.
        name: String,
    },
    /// An operator or function does not accept values of these types.
    #[error("applies {operator} to {operands}, which it does not take: {}", remedy(operator))]
    Types {
        /// The operator or function.
        operator: String,
        /// The types of its operands.
        operands: String,
    },
    /// The condition reads a field or an element of a type that has none.
    #[error("reads an element of {of} by {by}: a list has elements by int, result by string, and data may have any")]
    Element {
        /// The type that is read from.
        of: String,
        /// The type of the index, or string for a field.
        by: String,
    },
    /// A map in the condition has a key of a type that cannot be a key.
    #[error("has a map with a key of type {0}: keys are bool, int or string")]
    Key(String),
    /// The condition results in something other than true or false.
    #[error("yields {0}, not true or false: compare it, as in statusCode >= 500")]
    NotBoolean(String),
    /// The condition fails on harmless values: `dyn()`, or a list of several types, has hidden a wrong type.
    #[error("fails when it is tried, as types do not fit: leave dyn() out, and compare values of one type")]
    Mistyped,
    /// The evaluator fails on the condition, or does not know a construct.
    #[error("cannot be evaluated: write it in another way")]
    NotEvaluated,
    /// No thread could be started to check the text. The text may be valid, and must be checked again.
    #[error("could not be examined: no thread could be started")]
    NotExamined,
}

impl From<NoAnswer> for Unusable {
    fn from(reason: NoAnswer) -> Self {
        match reason {
            NoAnswer::NoThread => Self::NotExamined,
            NoAnswer::Panicked => Self::NotEvaluated,
        }
    }
}

/// Returns advice about operands of the wrong types.
fn remedy(operator: &str) -> &'static str {
    match operator {
        "in" => "it takes a list or a map, and contains() finds a part of a text",
        "!" | "&&" | "||" | "?:" => "compare first, as in statusCode >= 500",
        "size" => "it takes a text, a list or a map",
        _ => "convert with int(), double() or string()",
    }
}

/// Returns advice about the most common comparisons that are always false.
fn hint(left: &str, right: &str) -> &'static str {
    match (left, right) {
        ("string", "int" | "double") => ", as in '503', or convert with int() or double()",
        ("int" | "double", "string") => ", as in 503",
        ("null", _) | (_, "null") => "; only data can be null",
        ("type", _) | (_, "type") => "; the types are bool, double, int, list, map, null_type and string",
        _ => "",
    }
}
