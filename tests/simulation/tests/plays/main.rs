//! Plays of the whole operator in virtual time, in one program: so they share the processors, and are linked once.
//! `WFE_TEST_ALL=1` plays the long ones, too.

// All of it is test code, so that a helper may panic as a test does.
#![cfg(test)]

mod cluster;
mod conformance;
mod crowd;
mod day;
mod kill;
mod outage;
mod plans;
mod scenarios;
mod seeds;
mod watches;

/// Returns whether the long variants are asked for.
fn all() -> bool {
    std::env::var_os("WFE_TEST_ALL").is_some()
}

/// Hands out the numbers below a limit to all processors.
fn on_all_processors(numbers: usize, work: impl Fn(usize) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= numbers {
                        break;
                    }
                    work(number);
                }
            });
        }
    });
}
