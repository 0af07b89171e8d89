//! Plays of the whole operator in virtual time. A single program contains all of them, so that they share the
//! processors and are linked once. With `WFE_TEST_ALL=1` it also plays the long ones.

// The whole file is test code: clippy lets helpers panic as tests do.
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

/// Returns whether the long variants are requested.
fn all() -> bool {
    std::env::var_os("WFE_TEST_ALL").is_some()
}

/// Calls `work` with each number below a limit, on all processors.
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
