//! How the API server keeps up: how long its answers to writes take, compared with quick answers of the same kind.
//!
//! The requests of one namespace that are under way delay the requests of all others. How many are too many depends on
//! the API server, so it is measured and not configured: as soon as answers take longer than they need to, a crowd gets
//! fewer places beside others, and more again when they do not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::verb::Verb;

/// Which share of the answers of a kind is quicker than what counts as quick. The very quickest would not do: a single
/// answer that took a short cut would make all others look slow.
const QUICKER: f64 = 0.1;
/// No answer counts as quicker, in seconds: a tenth of a millisecond is less than any write takes.
const QUICKEST: f64 = 1e-4;
/// By what share of itself the quick time of a kind moves towards each answer: after a thousand answers, some seconds
/// of a crowd, it describes the API server as it is by then.
const MOVES: f64 = 0.01;
/// How much faster it moves while a crowd has a single place. So little under way delays nobody, so what answers take
/// then is what they need: the API server may be a slower one for good.
const MOVES_AT_FLOOR: f64 = 10.0 * MOVES;
/// How much one answer counts for how slow the API server is: about the eight latest are what it is judged by.
const WEIGHT: f64 = 1.0 / 8.0;
/// How many times as slow one answer counts as at the most: a single one may be slow for reasons of its own.
const MOST: f64 = 8.0;
/// Answers that take so many times as long as the quickest wait for something: there is too much under way.
const SLOW: f64 = 2.0;
/// Answers that take no more than this wait for nothing.
const QUICK: f64 = 1.5;
/// By how much the places of a crowd become fewer with each answer while answers are slow.
const FEWER: f64 = 0.9;
/// How many places a crowd begins with, and how many it has at the most.
const FIRST_PLACES: f64 = 4.0;
const MOST_PLACES: f64 = 32.0;
/// What takes longer hangs: a webhook does, or the API server. It says nothing of how much is under way.
pub(crate) const HANGS: Duration = Duration::from_secs(1);

/// How slow the API server's answers are. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Pace(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    /// What a quick answer of each kind takes, in seconds: about one of ten is quicker. The kinds are those of the
    /// metric's labels.
    quick: HashMap<(Verb, &'static str), f64>,
    /// How many times as long the latest took.
    lately: f64,
    /// How many requests of a crowd may be under way beside others: as many as get their answers no later for that.
    places: Places,
}

/// A number of places that adapts.
#[derive(Clone, Copy, Debug)]
struct Places(f64);

impl Pace {
    /// Records how long a successful write took. Other answers must not come here: a list takes as long as it is large,
    /// and a refusal says nothing about what a write takes.
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

    /// Returns how many requests a crowd may have under way beside others.
    #[must_use]
    pub fn places(&self) -> f64 {
        self.lock().places.count()
    }

    /// Returns whether a crowd has a place beside so many of its requests.
    #[must_use]
    pub fn has_room(&self, under_way: u32) -> bool {
        f64::from(under_way) + 1.0 <= self.lock().places.0
    }

    /// Returns how many times as long as a quick one the latest answers took.
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
    /// Adapts them to how slow the API server is: by one for as many answers as there are places, and faster the other
    /// way, since others wait then.
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

    fn wrote(pace: &Pace, verb: Verb, milliseconds: u64, times: usize) -> String {
        (0..times).for_each(|_| pace.wrote(verb, KIND.1, Duration::from_millis(milliseconds)));
        format!("{:.1}", pace.slowdown())
    }

    /// The API server answers like this, again and again; returns how many places a crowd has then.
    fn places_after(pace: &Pace, milliseconds: &[u64], rounds: usize) -> String {
        for took in (0..rounds).flat_map(|_| milliseconds) {
            pace.wrote(KIND.0, KIND.1, Duration::from_millis(*took));
        }
        pace.places().to_string()
    }

    #[test]
    fn answers_are_compared_with_quick_ones_of_their_kind() {
        let pace = Pace::default();
        assert!(pace.slowdown() < QUICK, "nothing is known to be slow");
        assert_eq!(wrote(&pace, Verb::Create, 2, 100), "1.0");
        assert_eq!(wrote(&pace, Verb::Patch, 20, 100), "1.0", "another kind takes longer by itself");
        assert_eq!(wrote(&pace, Verb::Create, 7, 1), "1.3", "one is no more than one of several");
        wrote(&pace, Verb::Create, 6, 50);
        assert!(pace.slowdown() > SLOW, "{pace:?}");
        assert_eq!(wrote(&pace, Verb::Create, 2, 50), "1.0");
    }

    #[test]
    fn what_was_quick_once_is_forgotten() {
        let pace = Pace::default();
        wrote(&pace, Verb::Create, 2, 1);
        assert_eq!(wrote(&pace, Verb::Create, 4, 5_000), "1.0", "this API server takes so long");
    }

    #[test]
    fn an_api_server_that_is_slower_for_good_is_known_soon_at_the_floor() {
        let pace = Pace::default();
        assert_eq!(places_after(&pace, &[2], 1_000), "32");
        assert_eq!(places_after(&pace, &[20], 100), "1", "it has just become slow");
        assert_eq!(places_after(&pace, &[20], 1_000), "32", "{pace:?}");
    }

    #[test]
    fn one_slow_answer_is_no_slow_api_server() {
        let pace = Pace::default();
        wrote(&pace, Verb::Create, 2, 100);
        assert_eq!(wrote(&pace, Verb::Create, 900, 1), "1.9");
    }

    /// One answer of twenty takes a quarter of the time of the others, as one does that finds nothing to write.
    #[test]
    fn a_few_quick_answers_do_not_make_a_steady_api_server_slow() {
        let steady: Vec<u64> = (0..20).map(|number| if number == 0 { 1 } else { 4 }).collect();
        assert_eq!(places_after(&Pace::default(), &steady, 1_000), "32");
        let pace = Pace::default();
        wrote(&pace, KIND.0, 0, 1);
        assert_eq!(places_after(&pace, &[4], 2_000), "32", "the first answer of all was one of these: {pace:?}");
    }

    #[test]
    fn what_hangs_says_nothing() {
        let pace = Pace::default();
        let before = wrote(&pace, Verb::Create, 2, 10);
        assert_eq!(wrote(&pace, Verb::Create, 10_000, 10), before);
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
