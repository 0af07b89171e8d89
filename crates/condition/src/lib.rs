//! Conditions on a failed attempt: short CEL expressions that answer yes or no, such as `statusCode >= 500`.
//!
//! [`check`] says whether a text can be used as a condition. [`ask`] evaluates it for one failed attempt. Both are
//! functions of their arguments, and nothing compiled is kept between calls: compiling takes less than a millisecond.
//! The crate knows nothing of executions, Kubernetes or Tekton.
//!
//! Conditions are written by users, and values come from the programs that users run. The crate `cel`, which parses
//! and evaluates, has no limit on cost, and checks neither names nor types. So all of it is bounded here:
//!
//! - **Size.** A condition has at most [`MAX_CHARACTERS`] characters and [`MAX_NODES`] nodes. There are no macros but
//!   `has`, so nothing repeats: an evaluation visits each node once at most.
//! - **Memory.** No operation yields more than its operands together: strings and lists are only ever joined, and
//!   nothing names an intermediate result to use it twice. An operand has at most 64 KiB of text ([`MAX_VALUE`],
//!   [`MAX_RESULT`]), so a value has at most 128 times that, 8 MiB. JSON takes more memory than its text, up to 200 KiB
//!   for the 4 KiB of `data` ([`MAX_ENTRY`]). The most that was measured for one evaluation is 35 MiB and half a second
//!   without optimization, so whoever asks many conditions at once has to limit how many.
//! - **Stack.** Parsing and evaluation recurse. They run on a thread of their own with a stack of 64 MiB, of which only
//!   touched pages cost memory. The caller waits for that thread: asynchronous code has to call from a thread that may
//!   block.
//! - **Panics.** A panic of the evaluator ends that thread and is reported as an error. The panic hook of the program
//!   still prints its message.
//!
//! No error quotes a value of a variable, as values may be secrets. Errors of [`check`] quote names in the condition.

mod evaluate;
mod names;
mod stack;
mod syntax;
mod types;
mod unusable;
mod variables;

pub use evaluate::RunError;
pub use names::REASONS;
pub use unusable::Unusable;
pub use variables::{MAX_ENTRIES, MAX_ENTRY, MAX_RESULT, MAX_VALUE, Variables};

/// How many characters a condition may have.
pub const MAX_CHARACTERS: usize = 512;

/// How many nodes the tree of a condition may have: names, literals, operators and calls.
pub const MAX_NODES: usize = 128;

/// Returns whether `text` can be used as a condition, and if not, why.
///
/// A condition is parsed, its names and types are examined, and it is evaluated once on harmless values. Whether it
/// fails at run time depends on the values alone after that: a key that is missing, a division by zero, a text that is
/// no number, `data` of another type.
pub fn check(text: &str) -> Result<(), Unusable> {
    stack::on_large_stack(|| {
        let condition = syntax::parse(text)?;
        types::check(&condition)?;
        evaluate::try_out(&condition)
    })?
}

/// Evaluates the condition `text` for one failed attempt.
///
/// A condition that [`check`] refuses is [`RunError::Unusable`], as it may have been accepted by another version.
pub fn ask(text: &str, variables: &Variables) -> Result<bool, RunError> {
    stack::on_large_stack(|| {
        let condition = syntax::parse(text)?;
        types::check(&condition)?;
        evaluate::evaluate(&condition, variables)
    })?
}

#[cfg(test)]
mod tests;
