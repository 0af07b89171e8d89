//! Measures whether the API server keeps up: the latency of its answers to writes, relative to quick answers of the
//! same kind.
//!
//! Requests in flight for one namespace delay the requests of all others. How many requests are harmless depends on the
//! API server, so the number is measured and not configured. While several namespaces have work, slow answers reduce
//! the places of a busy namespace, and quick answers increase them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::verb::Verb;

/// The share of answers that are quicker than the latency called "quick". The very quickest answer is no measure: a
/// single answer that took a shortcut would make all others look slow.
const QUICKER: f64 = 0.1;
/// The lower bound of the quick latency, in seconds: no write takes less than a tenth of a millisecond.
const QUICKEST: f64 = 1e-4;
/// How far the quick latency of a kind moves towards each answer, as a fraction. After a thousand answers, a few
/// seconds of a burst, it fits the present state of the API server.
const MOVES: f64 = 0.01;
/// The same fraction while a busy namespace has a single place. One request in flight delays no other, so a slow answer
/// then means that the API server itself has become slower.
const MOVES_AT_FLOOR: f64 = 10.0 * MOVES;
/// The weight of one answer: about the eight latest answers decide how slow the API server is.
const WEIGHT: f64 = 1.0 / 8.0;
/// The upper bound of one answer, as a multiple of quick: a single answer may be slow for its own reasons.
const MOST: f64 = 8.0;
/// Above this multiple of quick, requests wait for each other: too many are in flight.
const SLOW: f64 = 2.0;
/// Below this multiple of quick, requests do not wait for each other.
const QUICK: f64 = 1.5;
/// The factor by which each slow answer reduces the places of a busy namespace.
const FEWER: f64 = 0.9;
/// The initial number of places of a busy namespace, and their upper limit.
const FIRST_PLACES: f64 = 4.0;
const MOST_PLACES: f64 = 32.0;
/// A request that takes longer than this hangs, in a webhook or in the API server. Its latency does not show how busy
/// the API server is.
pub(crate) const HANGS: Duration = Duration::from_secs(1);

/// The measured latency of the API server. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ConcurrencyLimit(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    /// The quick latency of each kind of write, in seconds: about one answer in ten is quicker. Verb and resource are
    /// labels of the metric.
    quick: HashMap<(Verb, &'static str), f64>,
    /// The recent latency, as a multiple of quick.
    lately: f64,
    /// How many requests a busy namespace may have in flight while other namespaces have work: as many as do not slow
    /// down answers.
    places: Places,
}

/// A number of places that adapts to the latency.
#[derive(Clone, Copy, Debug)]
struct Places(f64);

impl ConcurrencyLimit {
    /// Records the latency of a successful write. Other answers are no measure: a list takes longer if it is larger,
    /// and a refusal does not show how long a write takes.
    pub fn wrote(&self, verb: Verb, resource: &'static str, took: Duration) {
        if took > HANGS {
            return;
        }
        let took = took.as_secs_f64().max(QUICKEST);
        let mut answers = self.lock();
        let moves = if answers.places.count() <= 1.0 { MOVES_AT_FLOOR } else { MOVES };
        let quick = answers.quick.entry((verb, resource)).or_insert(took);
        *quick *= if took < *quick { 1.0 - moves * (1.0 - QUICKER) } else { 1.0 + moves * QUICKER };
        let times = (took / *quick).min(MOST);
        answers.lately += (times - answers.lately) * WEIGHT;
        let slowdown = answers.lately;
        answers.places.adapt(slowdown);
    }

    /// Returns how many requests a busy namespace may have in flight while other namespaces have work.
    #[must_use]
    pub fn places(&self) -> f64 {
        self.lock().places.count()
    }

    /// Returns whether a busy namespace with this many requests in flight may send one more.
    #[must_use]
    pub fn has_room(&self, under_way: u32) -> bool {
        f64::from(under_way) + 1.0 <= self.lock().places.0
    }

    /// Returns the recent latency, as a multiple of quick.
    #[cfg(test)]
    pub(crate) fn slowdown(&self) -> f64 {
        self.lock().lately
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Places {
    fn default() -> Self {
        Self(FIRST_PLACES)
    }
}

impl Places {
    /// Adapts the number of places to the latency. It rises by one after as many quick answers as there are places.
    /// Each slow answer lowers it by a tenth.
    fn adapt(&mut self, slowdown: f64) {
        if slowdown > SLOW {
            self.0 = (self.0 * FEWER).max(1.0);
        } else if slowdown < QUICK {
            self.0 = (self.0 + 1.0 / self.0).min(MOST_PLACES);
        }
    }

    fn count(self) -> f64 {
        self.0.floor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: (Verb, &str) = (Verb::Create, "pipelineruns");

    fn wrote(limit: &ConcurrencyLimit, verb: Verb, milliseconds: u64, times: usize) -> String {
        (0..times).for_each(|_| limit.wrote(verb, KIND.1, Duration::from_millis(milliseconds)));
        format!("{:.1}", limit.slowdown())
    }

    /// Records these latencies in several rounds. Returns how many places a busy namespace then has.
    fn places_after(limit: &ConcurrencyLimit, milliseconds: &[u64], rounds: usize) -> String {
        for took in (0..rounds).flat_map(|_| milliseconds) {
            limit.wrote(KIND.0, KIND.1, Duration::from_millis(*took));
        }
        limit.places().to_string()
    }

    #[test]
    fn answers_are_compared_with_quick_ones_of_their_kind() {
        let limit = ConcurrencyLimit::default();
        assert!(limit.slowdown() < QUICK, "nothing is known to be slow");
        assert_eq!(wrote(&limit, Verb::Create, 2, 100), "1.0");
        assert_eq!(wrote(&limit, Verb::Patch, 20, 100), "1.0", "another kind takes longer by itself");
        assert_eq!(wrote(&limit, Verb::Create, 7, 1), "1.3", "one is no more than one of several");
        wrote(&limit, Verb::Create, 6, 50);
        assert!(limit.slowdown() > SLOW, "{limit:?}");
        assert_eq!(wrote(&limit, Verb::Create, 2, 50), "1.0");
    }

    #[test]
    fn what_was_quick_once_is_forgotten() {
        let limit = ConcurrencyLimit::default();
        wrote(&limit, Verb::Create, 2, 1);
        assert_eq!(wrote(&limit, Verb::Create, 4, 5_000), "1.0", "this API server takes so long");
    }

    #[test]
    fn an_api_server_that_is_slower_for_good_is_known_soon_at_the_floor() {
        let limit = ConcurrencyLimit::default();
        assert_eq!(places_after(&limit, &[2], 1_000), "32");
        assert_eq!(places_after(&limit, &[20], 100), "1", "it has just become slow");
        assert_eq!(places_after(&limit, &[20], 1_000), "32", "{limit:?}");
    }

    #[test]
    fn one_slow_answer_is_no_slow_api_server() {
        let limit = ConcurrencyLimit::default();
        wrote(&limit, Verb::Create, 2, 100);
        assert_eq!(wrote(&limit, Verb::Create, 900, 1), "1.9");
    }

    /// One answer in twenty takes a quarter of the usual time, like a write that changes nothing.
    #[test]
    fn a_few_quick_answers_do_not_make_a_steady_api_server_slow() {
        let steady: Vec<u64> = (0..20).map(|number| if number == 0 { 1 } else { 4 }).collect();
        assert_eq!(places_after(&ConcurrencyLimit::default(), &steady, 1_000), "32");
        let limit = ConcurrencyLimit::default();
        wrote(&limit, KIND.0, 0, 1);
        assert_eq!(places_after(&limit, &[4], 2_000), "32", "the first answer of all was one of these: {limit:?}");
    }

    #[test]
    fn what_hangs_says_nothing() {
        let limit = ConcurrencyLimit::default();
        let before = wrote(&limit, Verb::Create, 2, 10);
        assert_eq!(wrote(&limit, Verb::Create, 10_000, 10), before);
    }

    #[test]
    fn a_crowd_gets_fewer_places_fast_and_more_slowly() {
        let mut places = Places::default();
        let mut after = |slowdown: f64, answers: usize| {
            (0..answers).for_each(|_| places.adapt(slowdown));
            places.count().to_string()
        };
        assert_eq!(after(1.7, 1_000), "4");
        assert_eq!(after(1.0, 3), "4");
        assert_eq!(after(1.0, 3), "5", "one more for as many answers as there are places");
        assert_eq!(after(1.0, 10_000), "32");
        assert_eq!(after(2.1, 7), "15");
        assert_eq!(after(2.1, 10_000), "1");
    }
}
