//! Conditions on a failed attempt: short CEL expressions that are true or false, such as `statusCode >= 500`.
//!
//! [`check`] checks whether a text can be used as a condition. [`ask`] evaluates it for one failed attempt. Both depend
//! only on their arguments. They compile the text at each call, which takes less than a millisecond. The crate does not
//! depend on executions, Kubernetes or Tekton.
//!
//! Users write conditions, and values come from the programs that users run. The crate `cel` parses and evaluates
//! conditions. It has no limit on cost, and checks neither names nor types. This crate therefore adds these limits:
//!
//! - **Size.** A condition has at most [`MAX_CHARACTERS`] characters and [`MAX_NODES`] nodes. `has` is the only macro,
//!   and there are no loops: an evaluation visits each node at most once.
//! - **Memory.** A result is never larger than its operands together: strings and lists can only be joined, and no
//!   intermediate result can be used twice. An operand has at most 64 KiB of text ([`MAX_VALUE`], [`MAX_RESULT`]). A
//!   value therefore has at most 128 times that text, 8 MiB, because a condition has at most [`MAX_NODES`] nodes.
//!   Parsed JSON needs more memory than its text: up to 200 KiB for the 4 KiB of `data` ([`MAX_ENTRY`]). The largest
//!   measured evaluation took 35 MiB and half a second, without optimization. A caller must limit how many conditions
//!   it evaluates in parallel.
//! - **Stack.** Parsing and evaluation are recursive. They run on their own thread with a stack of 64 MiB, of which
//!   only used pages take memory. The caller waits for that thread, so asynchronous code must call from a thread that
//!   may block.
//! - **Panics.** A panic of the evaluator ends that thread and is reported as an error. The panic hook of the program
//!   still prints the panic's message.
//!
//! No error quotes the value of a variable, because values may be secrets. Errors of [`check`] quote names in the
//! condition.

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

/// The limit of a condition's characters.
pub const MAX_CHARACTERS: usize = 512;

/// The limit of nodes in the tree of a condition: names, literals, operators and calls.
pub const MAX_NODES: usize = 128;

/// Returns whether `text` can be used as a condition, and if not, why.
///
/// The condition is parsed, its names and types are checked, and it is evaluated once on harmless values. After that
/// only values can make it fail at run time: a missing key, a division by zero, a text that is not a number, or `data`
/// of another type.
pub fn check(text: &str) -> Result<(), Unusable> {
    stack::on_large_stack(|| {
        let condition = syntax::parse(text)?;
        types::check(&condition)?;
        evaluate::try_out(&condition)
    })?
}

/// Evaluates the condition `text` for one failed attempt.
///
/// A condition that [`check`] refuses leads to [`RunError::Unusable`]: another version may have accepted it.
pub fn ask(text: &str, variables: &Variables) -> Result<bool, RunError> {
    stack::on_large_stack(|| {
        let condition = syntax::parse(text)?;
        types::check(&condition)?;
        evaluate::evaluate(&condition, variables)
    })?
}

#[cfg(test)]
mod tests;
