//! A keyed queue with timers: every key is in it at most once, and none is handed out while it is being worked on.
//!
//! Bounded by the number of keys, which is bounded by the index.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

/// How far away a timer can be: it goes off then, and whoever looks sets it again. A queue of timers panics beyond some
/// two years, and statuses hold times as far as the year 9999. Looking once an hour costs nothing, and finds out about
/// a clock that was set meanwhile.
const FARTHEST: Duration = Duration::from_hours(1);

/// The queue.
#[derive(Debug)]
pub struct Queue<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    busy: HashSet<K>,
    /// Marked while it was busy: ready again as soon as it is done.
    again: HashSet<K>,
    timers: DelayQueue<K>,
    timer_of: HashMap<K, delay_queue::Key>,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Makes an empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            again: HashSet::new(),
            timers: DelayQueue::new(),
            timer_of: HashMap::new(),
        }
    }

    /// Asks for a key to be looked at as soon as possible.
    pub fn mark(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Asks for a key to be looked at after a while, an hour at the most. A key has one timer, and the earliest call
    /// counts: whoever looks then asks again for what is still to come.
    pub fn mark_after(&mut self, key: K, delay: Duration) {
        let delay = delay.min(FARTHEST);
        if let Some(timer) = self.timer_of.get(&key) {
            if Instant::now() + delay < self.timers.deadline(timer) {
                self.timers.reset(timer, delay);
            }
        } else {
            let timer = self.timers.insert(key.clone(), delay);
            self.timer_of.insert(key, timer);
        }
    }

    /// Forgets all that were asked for, but for those that are being worked on.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.queued.clear();
        self.again.clear();
        self.timers.clear();
        self.timer_of.clear();
    }

    /// Waits for the next key that is due and takes it out. It is not busy until [`start`](Self::start) says so.
    ///
    /// # Cancellation
    /// Safe: a key is taken only when this returns.
    pub async fn next(&mut self) -> K {
        loop {
            if let Some(key) = self.ready.pop_front() {
                self.queued.remove(&key);
                return key;
            }
            if self.timers.is_empty() {
                std::future::pending::<()>().await;
            }
            if let Some(expired) = poll_fn(|context| self.timers.poll_expired(context)).await {
                let key = expired.into_inner();
                self.timer_of.remove(&key);
                self.mark(key);
            }
        }
    }

    /// Says that a key is being worked on: marks are kept until it is done.
    pub fn start(&mut self, key: K) {
        self.busy.insert(key);
    }

    /// Says that the work on a key is over.
    pub fn done(&mut self, key: &K) {
        self.busy.remove(key);
        if self.again.remove(key) {
            self.mark(key.clone());
        }
    }

    /// Returns how many keys are ready or being worked on.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.ready.len() + self.busy.len()
    }
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn hands_out_a_key_once_however_often_it_is_marked() {
        let mut queue = Queue::new();
        queue.mark("a");
        queue.mark("b");
        queue.mark("a");
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_a_mark_until_the_work_on_its_key_is_done() {
        let mut queue = Queue::new();
        queue.mark("a");
        let key = queue.next().await;
        queue.start(key);
        queue.mark("a");
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&"a");
        assert_eq!(queue.next().now_or_never(), Some("a"));
        queue.done(&"a");
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_the_times_that_a_key_was_asked_for_counts() {
        for order in [[10, 20], [20, 10]] {
            let mut queue = Queue::new();
            for seconds in order {
                queue.mark_after("a", Duration::from_secs(seconds));
            }
            advance(Duration::from_secs(9)).await;
            assert_eq!(queue.next().now_or_never(), None, "{order:?}");
            advance(Duration::from_secs(2)).await;
            assert_eq!(queue.next().now_or_never(), Some("a"), "{order:?}");
            advance(Duration::from_secs(20)).await;
            assert_eq!(queue.next().now_or_never(), None, "it has one timer");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn forgets_what_was_asked_for_but_not_what_is_being_worked_on() {
        let mut queue = Queue::new();
        queue.mark("busy");
        let key = queue.next().await;
        queue.start(key);
        queue.mark("ready");
        queue.mark_after("later", Duration::from_secs(1));
        queue.clear();
        advance(Duration::from_secs(2)).await;
        assert_eq!(queue.next().now_or_never(), None);
        queue.mark("busy");
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&"busy");
        assert_eq!(queue.next().now_or_never(), Some("busy"));
        queue.mark_after("later", Duration::ZERO);
        advance(Duration::from_secs(1)).await;
        assert_eq!(queue.next().now_or_never(), Some("later"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_too_far_away_goes_off_after_an_hour() {
        let mut queue = Queue::new();
        queue.mark_after("a", Duration::MAX);
        advance(Duration::from_mins(59)).await;
        assert_eq!(queue.next().now_or_never(), None);
        queue.mark_after("a", Duration::MAX);
        advance(Duration::from_mins(61)).await;
        assert_eq!(queue.next().now_or_never(), Some("a"));
    }
}
