//! A queue of keys with timers. Each key is queued at most once, and is not handed out while work on it is in progress.
//!
//! Namespaces ("askers") take turns: the single key of one namespace waits only for the work in progress, even if
//! another namespace has 10,000 keys. While several namespaces have work, the queue limits the keys and the requests of
//! each ([`Beside`], [`Lane`]). The index limits the number of keys.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::hash::Hash;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::cluster::concurrency_limit::ConcurrencyLimit;
use crate::cluster::lane::{Beside, Lane, MOST};

/// The longest timer. A later time is split: the timer fires after an hour, and the key is marked again with its real
/// time. A timer beyond some two years would panic, and statuses may hold times up to the year 9999. A decision every
/// hour costs little, and notices a clock that was set meanwhile.
const FARTHEST: Duration = Duration::from_hours(1);

/// For how long all namespaces are limited after the queue has switched to another namespace. A namespace that had work
/// once often has more work soon. That work then does not wait behind a crowd.
const SHARED_FOR: Duration = Duration::from_secs(10);

/// A namespace with at most this many keys and requests goes before all namespaces with more.
const FEW: u32 = 2;

/// The work in progress for one namespace.
#[derive(Clone, Copy, Debug)]
struct Share {
    all: u32,
    /// How many keys in progress do not hang: `all` minus the hanging requests. Hanging work fills no place while other
    /// namespaces have work, because it would block a namespace with one place.
    lately: u32,
    /// Whether the namespace has more than a few keys or requests.
    is_crowd: bool,
}

/// A namespace with keys in progress.
#[derive(Debug)]
struct Working {
    /// How many keys are in progress.
    keys: u32,
    /// The limit of concurrent requests.
    lane: Lane,
}

/// The queue of keys `K`, for namespaces `A`.
#[derive(Debug)]
pub struct Queue<K, A> {
    ready: Turns<K, A>,
    queued: HashSet<K>,
    /// The keys in progress, with their namespaces.
    busy: HashMap<K, A>,
    /// The namespaces with keys in progress. They are sorted, so that waiting requests always wake in the same order.
    working: BTreeMap<A, Working>,
    limit: ConcurrencyLimit,
    /// The namespace whose work began last.
    latest: Option<A>,
    /// Until when all namespaces are limited.
    shared_until: Option<Instant>,
    /// Keys that were marked while they were in progress. They become ready when that work is done.
    again: HashMap<K, A>,
    timers: DelayQueue<(K, A)>,
    timer_of: HashMap<K, delay_queue::Key>,
}

/// The ready keys, in one line for each namespace.
#[derive(Debug)]
struct Turns<K, A> {
    lines: HashMap<A, VecDeque<K>>,
    /// The namespaces with a line, in the order of their turns.
    turns: VecDeque<A>,
}

impl<K, A: Clone + Ord + Hash> Turns<K, A> {
    fn push(&mut self, key: K, asker: A) {
        let line = self.lines.entry(asker.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(asker);
        }
        line.push_back(key);
    }

    /// Counts the ready keys of a namespace.
    fn count(&self, asker: &A) -> u32 {
        u32::try_from(self.lines.get(asker).map_or(0, VecDeque::len)).unwrap_or(u32::MAX)
    }

    /// Takes the first key of the namespace at this position. If that namespace has more keys, it moves behind all
    /// others.
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

impl<K: Clone + Eq + Hash, A: Clone + Ord + Hash> Queue<K, A> {
    /// Makes an empty queue. `limit` limits how many keys of a namespace are in progress while other namespaces have
    /// work.
    #[must_use]
    pub fn new(limit: ConcurrencyLimit) -> Self {
        Self {
            ready: Turns { lines: HashMap::new(), turns: VecDeque::new() },
            queued: HashSet::new(),
            busy: HashMap::new(),
            working: BTreeMap::new(),
            limit,
            latest: None,
            shared_until: None,
            again: HashMap::new(),
            timers: DelayQueue::new(),
            timer_of: HashMap::new(),
        }
    }

    /// Marks a key as ready as soon as possible.
    pub fn enqueue(&mut self, key: K, asker: A) {
        if self.busy.contains_key(&key) {
            self.again.insert(key, asker);
        } else if self.queued.insert(key.clone()) {
            self.ready.push(key, asker);
        }
    }

    /// Marks a key as ready after a delay, at most an hour. A key has one timer, set to the earliest requested time.
    /// The decision at that time requests later times again.
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

    /// Removes all keys except those in progress.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.queued.clear();
        self.again.clear();
        self.timers.clear();
        self.timer_of.clear();
    }

    /// Waits for the next due key and takes it out. The key is not busy until [`start`](Self::start) is called.
    ///
    /// # Cancellation
    /// Safe: a key is taken only when this returns.
    pub async fn next(&mut self) -> K {
        loop {
            // Expired timers come before keys that are marked from now on. If many schedules are due at the same time,
            // the last one then creates its child before the first children are decided on.
            while let Some(Some(expired)) = poll_fn(|context| self.timers.poll_expired(context)).now_or_never() {
                self.take_expired(expired);
            }
            if let Some(key) = self.take() {
                self.queued.remove(&key);
                return key;
            }
            if self.timers.is_empty() {
                std::future::pending::<()>().await;
            }
            if let Some(expired) = poll_fn(|context| self.timers.poll_expired(context)).await {
                self.take_expired(expired);
            }
        }
    }

    fn take_expired(&mut self, expired: delay_queue::Expired<(K, A)>) {
        let (key, asker) = expired.into_inner();
        self.timer_of.remove(&key);
        self.enqueue(key, asker);
    }

    /// Records that work on a key begins for a namespace. Marks that arrive meanwhile are kept. Returns the lane that
    /// all requests of this work must use.
    pub fn start(&mut self, key: K, asker: A) -> Lane {
        if self.latest.as_ref().is_some_and(|latest| *latest != asker) {
            self.shared_until = Some(Instant::now() + SHARED_FOR);
        }
        self.latest = Some(asker.clone());
        self.busy.insert(key, asker.clone());
        let new = || Working { keys: 0, lane: Lane::new(self.limit.clone()) };
        let working = self.working.entry(asker).or_insert_with(new);
        working.keys += 1;
        let lane = working.lane.clone();
        self.share_out();
        lane
    }

    /// Records that the work on a key is done.
    pub fn done(&mut self, key: &K) {
        if let Some(asker) = self.busy.remove(key)
            && let Entry::Occupied(mut working) = self.working.entry(asker)
        {
            working.get_mut().keys -= 1;
            if working.get().keys == 0 {
                working.remove();
            }
        }
        if let Some(asker) = self.again.remove(key) {
            self.enqueue(key.clone(), asker);
        }
        self.share_out();
    }

    /// Takes the next key of a namespace that is below its limit. Every namespace has at least one place.
    fn take(&mut self) -> Option<K> {
        let shares = self.share_out();
        let may = |asker: &A| {
            shares
                .get(asker)
                .is_none_or(|(share, beside)| share.all < MOST && beside.has_room(&self.limit, share.lately))
        };
        let place = self.ready.turns.iter().position(may)?;
        self.ready.take(place)
    }

    /// Sets the limit of each lane. Returns the limits and the work in progress of each namespace.
    fn share_out(&self) -> BTreeMap<A, (Share, Beside)> {
        let now = Instant::now();
        let is_shared = self.shared_until.is_some_and(|until| now < until);
        let mut few_ask = false;
        let mut shares = BTreeMap::new();
        for (asker, Working { keys, lane }) in &self.working {
            let lately = keys.saturating_sub(lane.hanging(now));
            let is_crowd = keys.saturating_add(self.ready.count(asker)).max(lane.asked()) > FEW;
            few_ask |= !is_crowd && lately > 0;
            let beside = if is_shared { Beside::Others } else { Beside::None };
            shares.insert(asker.clone(), (Share { all: *keys, lately, is_crowd }, beside));
        }
        for ((share, beside), Working { lane, .. }) in shares.values_mut().zip(self.working.values()) {
            if few_ask && share.is_crowd {
                *beside = Beside::Few;
            }
            lane.leave_room(*beside);
        }
        shares
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

    use crate::cluster::concurrency_limit::HANGS;
    use crate::verb::Verb;

    fn queue<K: Clone + Eq + Hash, A: Clone + Ord + Hash>() -> Queue<K, A> {
        Queue::new(ConcurrencyLimit::default())
    }

    /// Records that the API server answered this many writes, each in this time.
    fn answers(limit: &ConcurrencyLimit, milliseconds: u64, times: usize) {
        let took = Duration::from_millis(milliseconds);
        (0..times).for_each(|_| limit.wrote(Verb::Patch, "workflowexecutions/status", took));
    }

    /// Returns the limit of an API server so slow that a crowd has one place while others have work.
    fn slow() -> ConcurrencyLimit {
        let limit = ConcurrencyLimit::default();
        answers(&limit, 2, 100);
        answers(&limit, 8, 100);
        limit
    }

    /// Begins work on every key that the queue hands out; all keys belong to "storm".
    fn begin(queue: &mut Queue<u32, &'static str>, under_way: &mut VecDeque<u32>) {
        while let Some(key) = queue.next().now_or_never() {
            queue.start(key, "storm");
            under_way.push_back(key);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hands_out_a_key_once_however_often_it_is_marked() {
        let mut queue = queue();
        queue.enqueue("a", ());
        queue.enqueue("b", ());
        queue.enqueue("a", ());
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_a_mark_until_the_work_on_its_key_is_done() {
        let mut queue = queue();
        queue.enqueue("a", ());
        let key = queue.next().await;
        queue.start(key, ());
        queue.enqueue("a", ());
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&"a");
        assert_eq!(queue.next().now_or_never(), Some("a"));
        queue.done(&"a");
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_the_times_that_a_key_was_asked_for_counts() {
        for order in [[10, 20], [20, 10]] {
            let mut queue = queue();
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
        let mut queue = queue();
        queue.enqueue("busy", ());
        let key = queue.next().await;
        queue.start(key, ());
        queue.enqueue("ready", ());
        queue.mark_after("later", (), Duration::from_secs(1));
        queue.clear();
        advance(Duration::from_secs(2)).await;
        assert_eq!(queue.next().now_or_never(), None);
        queue.enqueue("busy", ());
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&"busy");
        assert_eq!(queue.next().now_or_never(), Some("busy"));
        queue.mark_after("later", (), Duration::ZERO);
        advance(Duration::from_secs(1)).await;
        assert_eq!(queue.next().now_or_never(), Some("later"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_stands_before_what_is_marked_later() {
        let mut queue = queue();
        (0..100).for_each(|key| queue.mark_after(key, (), Duration::from_secs(1)));
        advance(Duration::from_secs(2)).await;
        let first = queue.next().await;
        queue.start(first, ());
        (100..200).for_each(|key| queue.enqueue(key, ()));
        queue.done(&first);
        let mut rest = Vec::new();
        while let Some(key) = queue.next().now_or_never() {
            rest.push(key);
        }
        assert_eq!(rest.len(), 199);
        assert!(rest[..99].iter().all(|key| *key < 100), "{rest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_too_far_away_goes_off_after_an_hour() {
        let mut queue = queue();
        queue.mark_after("a", (), Duration::MAX);
        advance(Duration::from_mins(59)).await;
        assert_eq!(queue.next().now_or_never(), None);
        queue.mark_after("a", (), Duration::MAX);
        advance(Duration::from_mins(61)).await;
        assert_eq!(queue.next().now_or_never(), Some("a"));
    }

    /// A namespace with many keys gets one key a turn, so the single key of another namespace comes second.
    #[tokio::test(start_paused = true)]
    async fn those_who_ask_take_turns() {
        let mut queue = queue();
        for key in 0..1000 {
            queue.enqueue(key, "storm");
        }
        queue.enqueue(1000, "calm");
        queue.enqueue(1001, "calm");
        queue.enqueue(1002, "late");
        let mut order = Vec::new();
        for _ in 0..6 {
            order.push(queue.next().await);
        }
        assert_eq!(order, [0, 1000, 1002, 1, 1001, 2]);
        assert_eq!(queue.depth(), 997);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_more_than_its_share_worked_on_at_once() {
        let mut queue = queue();
        (0..100).for_each(|key| queue.enqueue(key, "storm"));
        for expected in 0..MOST {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, "storm");
        }
        assert_eq!(queue.next().now_or_never(), None, "its share is in use");
        queue.enqueue(1_000, "calm");
        assert_eq!(queue.next().now_or_never(), Some(1_000));
        queue.done(&0);
        assert_eq!(queue.next().now_or_never(), Some(MOST));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_has_a_larger_share_than_who_asks_beside_others() {
        let (mut queue, mut under_way) = (queue(), VecDeque::new());
        (0..100).for_each(|key| queue.enqueue(key, "storm"));
        begin(&mut queue, &mut under_way);
        assert_eq!(under_way.len(), 32);
        queue.enqueue(1_000, "calm");
        assert_eq!(queue.next().now_or_never(), Some(1_000));
        queue.start(1_000, "calm");
        queue.done(&1_000);
        under_way.drain(..28).for_each(|key| queue.done(&key));
        assert_eq!(queue.next().now_or_never(), None, "the storm has its share");
        queue.done(&28);
        assert_eq!(queue.next().now_or_never(), Some(32));
        queue.start(32, "storm");
        assert_eq!(queue.next().now_or_never(), None);
        advance(SHARED_FOR).await;
        assert_eq!(queue.next().now_or_never(), Some(33), "nobody else has asked for long");
    }

    /// A crowd always has at least one place, so a namespace never stands still while others have work all the time.
    #[tokio::test(start_paused = true)]
    async fn beside_others_a_crowd_has_as_many_places_as_the_api_server_keeps_up_with() {
        let limit = ConcurrencyLimit::default();
        let mut queue = Queue::new(limit.clone());
        queue.start(1_000_000, "calm");
        queue.done(&1_000_000);
        (0..10_000).for_each(|key| queue.enqueue(key, "storm"));
        let mut under_way = VecDeque::new();
        begin(&mut queue, &mut under_way);
        assert_eq!(under_way.len(), 4);
        for (milliseconds, places) in [(2, 32), (8, 1), (2, 32)] {
            for _ in 0..1_000 {
                answers(&limit, milliseconds, usize::from(milliseconds == 2 || under_way.len() > 1));
                let oldest = under_way.pop_front().expect("it has a place");
                queue.done(&oldest);
                begin(&mut queue, &mut under_way);
            }
            assert_eq!(under_way.len(), places, "answers take {milliseconds} ms");
        }
    }

    /// A crowd may have few targets in progress that make many requests. All of these requests share its places.
    #[tokio::test(start_paused = true)]
    async fn the_requests_of_a_crowd_on_few_targets_have_the_places_of_one_namespace() {
        let mut queue = queue();
        let lanes: Vec<Lane> = (0..12).map(|key| queue.start(key, "storm")).collect();
        let enter = || -> Vec<_> { lanes.iter().cycle().map_while(|lane| lane.enter().now_or_never()).collect() };
        assert_eq!(enter().len(), 32, "it is alone");
        let calm = queue.start(1_000, "calm");
        let places = enter();
        assert_eq!(places.len(), 1, "another asks for few");
        assert!(calm.enter().now_or_never().is_some());
        drop(places);
        queue.done(&1_000);
        assert_eq!(enter().len(), 4, "another has asked");
        advance(SHARED_FOR).await;
        assert_eq!(queue.next().now_or_never(), None);
        assert_eq!(enter().len(), 32);
    }

    /// Work hangs while none of its requests is answered, no matter how long the work takes.
    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_fills_no_place_beside_others_and_no_more_than_all_that_one_may_have() {
        let mut queue = Queue::new(slow());
        queue.start(1_000, "calm");
        queue.done(&1_000);
        (0..100).for_each(|key| queue.enqueue(key, "storm"));
        let mut hang = Vec::new();
        for expected in 0..MOST {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            let lane = queue.start(expected, "storm");
            assert_eq!(queue.next().now_or_never(), None, "it has one place");
            if expected == 0 {
                for _ in 0..3 {
                    let place = lane.enter().await;
                    advance(HANGS / 2).await;
                    drop(place);
                }
                assert_eq!(queue.next().now_or_never(), None, "its requests are answered");
            }
            hang.push(lane.enter().await);
            advance(HANGS).await;
            queue.start(1_000, "calm");
            queue.done(&1_000);
        }
        assert_eq!(queue.next().now_or_never(), None, "all that hang are too many");
    }

    /// Two keys of one namespace hold back a crowd while they are in progress. Two crowds do not hold back each other.
    #[tokio::test(start_paused = true)]
    async fn who_asks_for_few_goes_before_who_asks_for_many() {
        let mut queue = queue();
        for key in 0..10 {
            queue.enqueue(key, "storm");
            queue.enqueue(100 + key, "other storm");
        }
        for expected in [0, 100, 1, 101, 2, 102, 3, 103] {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, if expected < 100 { "storm" } else { "other storm" });
        }
        assert_eq!(queue.next().now_or_never(), None, "each storm has its share");
        queue.enqueue(99, "calm");
        queue.enqueue(98, "calm");
        for expected in [99, 98] {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, "calm");
        }
        for done in [0, 1, 2, 100, 101, 102, 98] {
            queue.done(&done);
        }
        assert_eq!(queue.next().now_or_never(), None, "each storm still has one, and waits behind the calm one");
        queue.done(&3);
        assert_eq!(queue.next().now_or_never(), Some(4), "one at a time goes on");
        queue.start(4, "storm");
        assert_eq!(queue.next().now_or_never(), None);
        queue.done(&99);
        for expected in [104, 5] {
            assert_eq!(queue.next().now_or_never(), Some(expected));
            queue.start(expected, if expected < 100 { "storm" } else { "other storm" });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_and_a_mark_while_busy_keep_who_asked() {
        let mut queue = Queue::new(slow());
        queue.start("another", "calm");
        queue.done(&"another");
        queue.start("first", "storm");
        queue.enqueue("first", "storm");
        queue.mark_after("timed", "storm", Duration::from_secs(1));
        queue.mark_after("other", "calm", Duration::from_secs(2));
        advance(Duration::from_secs(3)).await;
        assert_eq!(queue.next().now_or_never(), Some("other"), "the share of the first is in use");
        queue.done(&"first");
        assert_eq!(queue.next().await, "timed", "it was ready first");
        assert_eq!(queue.next().await, "first");
    }
}
