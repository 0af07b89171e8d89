//! A keyed queue with timers: every key is in it at most once, and none is handed out while it is being worked on.
//!
//! Those who ask take turns: each key is asked for by somebody, and whoever has asked for 10,000 delays the one of
//! another by no more than what is under way. That is less while others ask too ([`Shares`]). Bounded by the number of
//! keys, which is bounded by the index.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::pace::{HANGS, Places};

/// How far away a timer can be: it goes off then, and whoever looks sets it again. A queue of timers panics beyond some
/// two years, and statuses hold times as far as the year 9999. Looking once an hour costs nothing, and finds out about
/// a clock that was set meanwhile.
const FARTHEST: Duration = Duration::from_hours(1);

/// After work was begun for another than before, everybody has the share of those who ask beside others for so long.
/// Whoever asks once often asks again soon, and does not wait behind a crowd then.
const SHARED_FOR: Duration = Duration::from_secs(10);

/// Who has asked for so many keys or fewer goes before all who have asked for more.
const FEW: u32 = 2;

/// How many keys may be worked on at once for one of those who ask.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// While nobody else asks.
    pub alone: u32,
    /// While others ask too, at first: what is under way for one is what each of the others waits behind at the API
    /// server, so it becomes less where that is slow, and more where it is not ([`Places`]).
    pub beside: u32,
    /// For who asks for many, while work goes on for another who asks for few.
    pub behind: u32,
}

/// How many keys are being worked on for one of those who ask.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: u32,
    /// Of which so many do not hang. What hangs fills no place beside others: else a namespace that has one place would
    /// stand still behind it.
    lately: u32,
}

/// The queue of keys `K`, asked for by `A`.
#[derive(Debug)]
pub struct Queue<K, A> {
    ready: Turns<K, A>,
    queued: HashSet<K>,
    /// What is being worked on, for whom, and since when.
    busy: HashMap<K, (A, Instant)>,
    shares: Shares,
    /// How many each may have worked on while others ask too.
    beside: Places,
    /// For whom work was begun last.
    latest: Option<A>,
    /// Until when everybody has the share of those who ask beside others.
    shared_until: Option<Instant>,
    /// Marked while it was busy: ready again as soon as it is done.
    again: HashMap<K, A>,
    timers: DelayQueue<(K, A)>,
    timer_of: HashMap<K, delay_queue::Key>,
}

/// The keys that are ready, in a line for each of those who ask.
#[derive(Debug)]
struct Turns<K, A> {
    lines: HashMap<A, VecDeque<K>>,
    /// Who has a line, in the order of their turns.
    turns: VecDeque<A>,
}

impl<K, A: Clone + Eq + Hash> Turns<K, A> {
    fn push(&mut self, key: K, asker: A) {
        let line = self.lines.entry(asker.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(asker);
        }
        line.push_back(key);
    }

    /// Counts the keys that are ready for one of those who ask.
    fn count(&self, asker: &A) -> u32 {
        u32::try_from(self.lines.get(asker).map_or(0, VecDeque::len)).unwrap_or(u32::MAX)
    }

    /// Takes the first key of who has the turn at this place; whoever has more stands behind all others then.
    fn take(&mut self, place: usize) -> Option<K> {
        let asker = self.turns.remove(place)?;
        let line = self.lines.get_mut(&asker)?;
        let key = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&asker);
        } else {
            self.turns.push_back(asker);
        }
        key
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.turns.clear();
    }
}

impl<K: Clone + Eq + Hash, A: Clone + Eq + Hash> Queue<K, A> {
    /// Makes an empty queue that hands out no more than so many keys at once for one of those who ask.
    #[must_use]
    pub fn new(shares: Shares) -> Self {
        Self {
            ready: Turns { lines: HashMap::new(), turns: VecDeque::new() },
            queued: HashSet::new(),
            busy: HashMap::new(),
            beside: Places::new(shares.beside, shares.alone),
            shares,
            latest: None,
            shared_until: None,
            again: HashMap::new(),
            timers: DelayQueue::new(),
            timer_of: HashMap::new(),
        }
    }

    /// Asks for a key to be looked at as soon as possible.
    pub fn mark(&mut self, key: K, asker: A) {
        if self.busy.contains_key(&key) {
            self.again.insert(key, asker);
        } else if self.queued.insert(key.clone()) {
            self.ready.push(key, asker);
        }
    }

    /// Asks for a key to be looked at after a while, an hour at the most. A key has one timer, and the earliest call
    /// counts: whoever looks then asks again for what is still to come.
    pub fn mark_after(&mut self, key: K, asker: A, delay: Duration) {
        let delay = delay.min(FARTHEST);
        if let Some(timer) = self.timer_of.get(&key) {
            if Instant::now() + delay < self.timers.deadline(timer) {
                self.timers.reset(timer, delay);
            }
        } else {
            let timer = self.timers.insert((key.clone(), asker), delay);
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
            if let Some(key) = self.take() {
                self.queued.remove(&key);
                return key;
            }
            if self.timers.is_empty() {
                std::future::pending::<()>().await;
            }
            if let Some(expired) = poll_fn(|context| self.timers.poll_expired(context)).await {
                let (key, asker) = expired.into_inner();
                self.timer_of.remove(&key);
                self.mark(key, asker);
            }
        }
    }

    /// Says that a key is being worked on, and for whom: marks are kept until it is done.
    pub fn start(&mut self, key: K, asker: A) {
        let now = Instant::now();
        if self.latest.as_ref().is_some_and(|latest| *latest != asker) {
            self.shared_until = Some(now + SHARED_FOR);
        }
        self.latest = Some(asker.clone());
        self.busy.insert(key, (asker, now));
    }

    /// Says that the work on a key is over, and how slow the API server is by now.
    pub fn done(&mut self, key: &K, slowdown: f64) {
        self.beside.adapt(slowdown);
        self.busy.remove(key);
        if let Some(asker) = self.again.remove(key) {
            self.mark(key.clone(), asker);
        }
    }

    /// Takes out the next key of somebody who has not all that he may have. One place everybody has.
    fn take(&mut self) -> Option<K> {
        if self.ready.turns.is_empty() {
            return None;
        }
        let now = Instant::now();
        let is_shared = self.shared_until.is_some_and(|until| now < until);
        let mut shares: HashMap<&A, Share> = HashMap::new();
        for (asker, begun) in self.busy.values() {
            let share = shares.entry(asker).or_default();
            share.all += 1;
            share.lately += u32::from(now < *begun + HANGS);
        }
        let Shares { alone, behind, .. } = self.shares;
        let (ready, beside) = (&self.ready, self.beside);
        let asks_for_few = |asker: &A, share: Share| share.all.saturating_add(ready.count(asker)) <= FEW;
        let of_few = shares.iter().any(|(asker, share)| share.lately > 0 && asks_for_few(asker, *share));
        let may = |asker: &A| {
            let share = shares.get(asker).copied().unwrap_or_default();
            let has_room = share.all < alone && (!is_shared || beside.has_room(share.lately));
            let lets_few_go_first = !of_few || asks_for_few(asker, share) || share.lately < behind;
            share.all == 0 || has_room && lets_few_go_first
        };
        let place = ready.turns.iter().position(may)?;
        self.ready.take(place)
    }

    /// Returns how many keys may be worked on at once for one of those who ask, while others ask too.
    #[must_use]
    pub fn places(&self) -> f64 {
        self.beside.count()
    }

    /// Returns how many keys are ready or being worked on.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queued.len() + self.busy.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::time::advance;

    /// How slow an API server is of which nobody wants more or less.
    const STEADY: f64 = 1.7;

    /// A queue in which it makes no difference whether others ask.
    fn with_share<K: Clone + Eq + Hash, A: Clone + Eq + Hash>(share: u32) -> Queue<K, A> {
        Queue::new(Shares { alone: share, beside: u32::MAX, behind: u32::MAX })
    }

    #[tokio::test(start_paused = true)]
    async fn hands_out_a_key_once_however_often_it_is_marked() {
        let mut queue = with_share(8);
        queue.mark("a", ());
        queue.mark("b", ());
        queue.mark("a", ());
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_a_mark_until_the_work_on_its_key_is_done() {
        let mut queue = with_share(8);
        queue.mark("a", ());
        let key = queue.next().await;
        queue.start(key, ());
        queue.mark("a", ());
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&"a", STEADY);
        assert_eq!(queue.next().now_or_never(), Some("a"));
        queue.done(&"a", STEADY);
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_the_times_that_a_key_was_asked_for_counts() {
        for order in [[10, 20], [20, 10]] {
            let mut queue = with_share(8);
            for seconds in order {
                queue.mark_after("a", (), Duration::from_secs(seconds));
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
        let mut queue = with_share(8);
        queue.mark("busy", ());
        let key = queue.next().await;
        queue.start(key, ());
        queue.mark("ready", ());
        queue.mark_after("later", (), Duration::from_secs(1));
        queue.clear();
        advance(Duration::from_secs(2)).await;
        assert_eq!(queue.next().now_or_never(), None);
        queue.mark("busy", ());
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&"busy", STEADY);
        assert_eq!(queue.next().now_or_never(), Some("busy"));
        queue.mark_after("later", (), Duration::ZERO);
        advance(Duration::from_secs(1)).await;
        assert_eq!(queue.next().now_or_never(), Some("later"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_too_far_away_goes_off_after_an_hour() {
        let mut queue = with_share(8);
        queue.mark_after("a", (), Duration::MAX);
        advance(Duration::from_mins(59)).await;
        assert_eq!(queue.next().now_or_never(), None);
        queue.mark_after("a", (), Duration::MAX);
        advance(Duration::from_mins(61)).await;
        assert_eq!(queue.next().now_or_never(), Some("a"));
    }

    /// Whoever asks for many keys at once gets one of them a turn, and another's single key comes second.
    #[tokio::test(start_paused = true)]
    async fn those_who_ask_take_turns() {
        let mut queue = with_share(8);
        for key in 0..1000 {
            queue.mark(key, "storm");
        }
        queue.mark(1000, "calm");
        queue.mark(1001, "calm");
        queue.mark(1002, "late");
        let mut order = Vec::new();
        for _ in 0..6 {
            order.push(queue.next().await);
        }
        assert_eq!(order, [0, 1000, 1002, 1, 1001, 2]);
        assert_eq!(queue.depth(), 997);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_more_than_its_share_worked_on_at_once() {
        let mut queue = with_share(2);
        for key in 0..10 {
            queue.mark(key, "storm");
        }
        for expected in [0, 1] {
            let key = queue.next().await;
            assert_eq!(key, expected);
            queue.start(key, "storm");
        }
        assert_eq!(queue.next().now_or_never(), None, "its share is in use");
        queue.mark(99, "calm");
        assert_eq!(queue.next().now_or_never(), Some(99));
        queue.done(&0, STEADY);
        assert_eq!(queue.next().now_or_never(), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_has_a_larger_share_than_who_asks_beside_others() {
        let mut queue = Queue::new(Shares { alone: 4, beside: 2, behind: 2 });
        for key in 0..10 {
            queue.mark(key, "storm");
        }
        for expected in 0..4 {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, "storm");
        }
        queue.mark(99, "calm");
        assert_eq!(queue.next().now_or_never(), Some(99));
        queue.start(99, "calm");
        for done in [99, 0, 1] {
            queue.done(&done, STEADY);
        }
        assert_eq!(queue.next().now_or_never(), None, "the storm has its share: 2 and 3");
        queue.done(&2, STEADY);
        assert_eq!(queue.next().now_or_never(), Some(4));
        queue.start(4, "storm");
        assert_eq!(queue.next().now_or_never(), None);
        advance(SHARED_FOR).await;
        assert_eq!(queue.next().now_or_never(), Some(5), "nobody else has asked for long");
    }

    /// It never has less than one place, so that nobody stands still behind those who ask all the time.
    #[tokio::test(start_paused = true)]
    async fn beside_others_a_crowd_has_as_many_places_as_the_api_server_keeps_up_with() {
        let mut queue = Queue::new(Shares { alone: 8, beside: 4, behind: 1 });
        queue.start(1_000, "calm");
        queue.done(&1_000, STEADY);
        (0..1_000).for_each(|key| queue.mark(key, "storm"));
        let mut under_way = VecDeque::new();
        let begin = |queue: &mut Queue<i32, &'static str>, under_way: &mut VecDeque<i32>| {
            while let Some(key) = queue.next().now_or_never() {
                queue.start(key, "storm");
                under_way.push_back(key);
            }
        };
        begin(&mut queue, &mut under_way);
        for (slowdown, places) in [(STEADY, 4), (3.0, 1), (STEADY, 1), (1.0, 8), (STEADY, 8)] {
            for _ in 0..100 {
                let oldest = under_way.pop_front().expect("it has a place");
                queue.done(&oldest, slowdown);
                begin(&mut queue, &mut under_way);
            }
            assert_eq!(under_way.len(), places, "answers take {slowdown} times as long as the quickest");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_fills_no_place_beside_others_and_no_more_than_all_that_one_may_have() {
        let mut queue = Queue::new(Shares { alone: 3, beside: 1, behind: 1 });
        queue.start(1_000, "calm");
        (0..10).for_each(|key| queue.mark(key, "storm"));
        for expected in 0..3 {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, "storm");
            assert_eq!(queue.next().now_or_never(), None, "it has one place");
            advance(HANGS).await;
        }
        assert_eq!(queue.next().now_or_never(), None, "all that hang are too many");
    }

    /// Two keys of one hold back a crowd while they are worked on; two crowds do not hold back each other.
    #[tokio::test(start_paused = true)]
    async fn who_asks_for_few_goes_before_who_asks_for_many() {
        let mut queue = Queue::new(Shares { alone: 4, beside: 3, behind: 1 });
        for key in 0..10 {
            queue.mark(key, "storm");
            queue.mark(100 + key, "other storm");
        }
        for expected in [0, 100, 1, 101, 2, 102] {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, if expected < 100 { "storm" } else { "other storm" });
        }
        assert_eq!(queue.next().now_or_never(), None, "each storm has its share");
        queue.mark(99, "calm");
        queue.mark(98, "calm");
        for expected in [99, 98] {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, "calm");
        }
        for done in [0, 1, 100, 101, 98] {
            queue.done(&done, STEADY);
        }
        assert_eq!(queue.next().now_or_never(), None, "each storm still has one, and waits behind the calm one");
        queue.done(&2, STEADY);
        assert_eq!(queue.next().now_or_never(), Some(3), "one at a time goes on");
        queue.start(3, "storm");
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&99, STEADY);
        for expected in [103, 4] {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, if expected < 100 { "storm" } else { "other storm" });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_and_a_mark_while_busy_keep_who_asked() {
        let mut queue = with_share(1);
        queue.start("first", "storm");
        queue.mark("first", "storm");
        queue.mark_after("timed", "storm", Duration::from_secs(1));
        queue.mark_after("other", "calm", Duration::from_secs(2));
        advance(Duration::from_secs(3)).await;
        assert_eq!(queue.next().now_or_never(), Some("other"), "the share of the first is in use");
        queue.done(&"first", STEADY);
        assert_eq!(queue.next().await, "timed", "it was ready first");
        assert_eq!(queue.next().await, "first");
    }
}
