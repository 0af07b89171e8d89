//! How the API server keeps up: how long its answers to writes take, compared with the quickest of their kind.
//!
//! What is under way for one namespace is what the requests of all others wait behind. How much of that is too much
//! depends on the API server, so nobody has to say it: as soon as answers take longer than they need to, a crowd gets
//! fewer places beside others ([`Places`]), and more again when they do not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::verb::Verb;

/// By how much the quickest answer of a kind grows with each answer that is slower: what was quick once is forgotten
/// after some thousand answers, as an API server may be another one by then.
const FORGETS: f64 = 1.0005;
/// How much one answer counts for how slow the API server is: about the eight latest are what it is judged by.
const WEIGHT: f64 = 1.0 / 8.0;
/// How many times as slow one answer counts as at the most: a single one may be slow for reasons of its own.
const MOST: f64 = 8.0;
/// Answers that take so many times as long as the quickest wait for something: there is too much under way.
const SLOW: f64 = 2.0;
/// Answers that take no more than this wait for nothing.
const QUICK: f64 = 1.5;
/// By how much the places of a crowd become fewer with each work that ends while answers are slow.
const FEWER: f64 = 0.9;
/// What takes longer hangs: a webhook does, or the API server. It says nothing of how much is under way.
pub(crate) const HANGS: Duration = Duration::from_secs(1);

/// How slow the API server's answers are. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Pace(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    /// What the quickest answers of each kind take, in seconds. The kinds are those of the metric's labels.
    quickest: HashMap<(Verb, &'static str), f64>,
    /// How many times as long the latest took.
    lately: f64,
}

impl Pace {
    /// Notes how long an answer took. Reads do not count: a list takes as long as it is large.
    pub fn answered(&self, verb: Verb, resource: &'static str, took: Duration) {
        if !verb.is_write() || took > HANGS {
            return;
        }
        let took = took.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quickest = answers.quickest.entry((verb, resource)).or_insert(took);
        *quickest = took.min(*quickest * FORGETS);
        let times = (took / *quickest).min(MOST);
        answers.lately += (times - answers.lately) * WEIGHT;
    }

    /// Returns how many times as long as the quickest ones the latest answers took.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lately
    }
}

/// How many places a crowd has beside others: as many as the API server answers without getting slower.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    places: f64,
    most: f64,
}

impl Places {
    /// Begins with so many, and never has more than the most.
    #[must_use]
    pub fn new(first: u32, most: u32) -> Self {
        Self { places: f64::from(first), most: f64::from(most) }
    }

    /// Adapts them when work has ended, to how slow the API server is: by one for as many works as there are places,
    /// and faster the other way, since others wait then.
    pub fn adapt(&mut self, slowdown: f64) {
        if slowdown > SLOW {
            self.places = (self.places * FEWER).max(1.0);
        } else if slowdown < QUICK {
            self.places = (self.places + 1.0 / self.places).min(self.most);
        }
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.places.floor()
    }

    /// Tells whether there is a place beside so many.
    #[must_use]
    pub fn has_room(&self, busy: u32) -> bool {
        f64::from(busy) + 1.0 <= self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(pace: &Pace, verb: Verb, milliseconds: u64, times: usize) -> String {
        (0..times).for_each(|_| pace.answered(verb, "pipelineruns", Duration::from_millis(milliseconds)));
        format!("{:.1}", pace.slowdown())
    }

    #[test]
    fn answers_are_compared_with_the_quickest_of_their_kind() {
        let pace = Pace::default();
        assert!(pace.slowdown() < QUICK, "nothing is known to be slow");
        assert_eq!(answered(&pace, Verb::Create, 2, 100), "1.0");
        assert_eq!(answered(&pace, Verb::Patch, 20, 100), "1.0", "another kind takes longer by itself");
        assert_eq!(answered(&pace, Verb::Create, 6, 1), "1.2", "one is no more than one of several");
        answered(&pace, Verb::Create, 6, 50);
        assert!(pace.slowdown() > SLOW, "{pace:?}");
        assert_eq!(answered(&pace, Verb::Create, 2, 50), "1.0");
    }

    #[test]
    fn what_was_quick_once_is_forgotten() {
        let pace = Pace::default();
        answered(&pace, Verb::Create, 2, 1);
        assert_eq!(answered(&pace, Verb::Create, 4, 5_000), "1.0", "this API server takes so long");
    }

    #[test]
    fn one_slow_answer_is_no_slow_api_server() {
        let pace = Pace::default();
        answered(&pace, Verb::Create, 2, 100);
        assert_eq!(answered(&pace, Verb::Create, 900, 1), "1.9");
    }

    #[test]
    fn reads_and_what_hangs_say_nothing() {
        let pace = Pace::default();
        let before = answered(&pace, Verb::Create, 2, 10);
        assert_eq!(answered(&pace, Verb::List, 900, 10), before);
        assert_eq!(answered(&pace, Verb::Create, 10_000, 10), before);
    }

    #[test]
    fn a_crowd_gets_fewer_places_fast_and_more_slowly() {
        let mut places = Places::new(4, 32);
        let mut after = |slowdown: f64, works: usize| {
            (0..works).for_each(|_| places.adapt(slowdown));
            (0..64).find(|busy| !places.has_room(*busy)).unwrap_or(0)
        };
        assert_eq!(after(1.7, 1_000), 4);
        assert_eq!(after(1.0, 3), 4);
        assert_eq!(after(1.0, 3), 5, "one more for as many works as there are places");
        assert_eq!(after(1.0, 10_000), 32);
        assert_eq!(after(2.1, 7), 15);
        assert_eq!(after(2.1, 10_000), 1);
    }
}
