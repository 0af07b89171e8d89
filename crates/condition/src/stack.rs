//! Runs a function on a thread with a large stack, for deep recursion.

use std::thread;

/// The stack size of the thread that parses and evaluates. Without optimization of the parser, 250 terms in 501
/// characters overflow 8 MiB. With optimization, the conditions of the tests need less than 2 MiB.
const STACK_BYTES: usize = 64 << 20;

/// Why the thread returned no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The system has no free thread or memory.
    NoThread,
    /// The function panicked.
    Panicked,
}

/// Runs `work` on a thread with a large stack, and waits for its result.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NoAnswer> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("condition".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|_| NoAnswer::NoThread)?;
        thread.join().map_err(|_| NoAnswer::Panicked)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(on_large_stack(|| "done"), Ok("done"));
        assert_eq!(on_large_stack(|| panic!("on purpose")), Err::<(), _>(NoAnswer::Panicked));
    }
}
