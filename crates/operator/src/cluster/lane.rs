//! Limits the concurrent requests of one namespace, for all its targets together.
//!
//! One decision can need thousands of writes, so a limit of targets is no limit of requests. Each request of a target's
//! work waits here for a place, and frees the place when it is answered or times out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::cluster::concurrency_limit::{ConcurrencyLimit, HANGS};

/// The limit of concurrent requests of a namespace, and of targets in progress for it. Hanging requests count. Even a
/// namespace that is alone must not exceed it, so that the next namespace finds room.
pub const MOST: u32 = 32;

/// How much room a namespace must leave for other namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// No other namespace has work.
    #[default]
    None,
    /// Other namespaces have work: this namespace may use as many places as the API server keeps up with.
    Others,
    /// Another namespace has work on few targets, which goes first: this namespace has one place.
    Few,
}

impl Beside {
    /// Returns whether a namespace may send one more request, if this many of its requests are in flight and do not
    /// hang.
    #[must_use]
    pub fn has_room(self, limit: &ConcurrencyLimit, lately: u32) -> bool {
        match self {
            Self::None => true,
            Self::Others => limit.has_room(lately),
            Self::Few => lately == 0,
        }
    }
}

/// The places for requests of one namespace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lane {
    requests: Arc<Mutex<Requests>>,
    /// Notified when a place becomes free.
    freed: Arc<Notify>,
    limit: ConcurrencyLimit,
}

#[derive(Debug, Default)]
struct Requests {
    beside: Beside,
    /// When each request in flight was sent.
    sent: Vec<Instant>,
    /// How many requests are in flight or wait for a place.
    asked: u32,
}

impl Requests {
    /// Returns whether one more request may be sent. A hanging request fills no place, so that it does not block the
    /// namespace.
    fn has_room(&self, limit: &ConcurrencyLimit, now: Instant) -> bool {
        let sent = u32::try_from(self.sent.len()).unwrap_or(u32::MAX);
        sent < MOST && self.beside.has_room(limit, sent.saturating_sub(self.hanging(now)))
    }

    fn hanging(&self, now: Instant) -> u32 {
        let hanging = self.sent.iter().filter(|sent| now >= **sent + HANGS).count();
        u32::try_from(hanging).unwrap_or(u32::MAX)
    }
}

impl Lane {
    /// Makes the lane of a namespace without requests, while no other namespace has work.
    #[must_use]
    pub fn new(limit: ConcurrencyLimit) -> Self {
        Self { requests: Arc::default(), freed: Arc::default(), limit }
    }

    /// Waits for a place.
    ///
    /// # Cancellation
    /// Safe: a cancelled wait takes no place.
    pub async fn enter(&self) -> Place {
        self.lock().asked += 1;
        let mut place = Place { lane: self.clone(), sent: None };
        while !place.take() {
            // A request that begins to hang frees its place without a notification, so check again after that time.
            drop(timeout(HANGS, self.freed.notified()).await);
        }
        place
    }

    /// Sets how much room the namespace must leave from now on.
    pub fn leave_room(&self, beside: Beside) {
        let before = std::mem::replace(&mut self.lock().beside, beside);
        if before != beside {
            self.freed.notify_one();
        }
    }

    /// Returns how many requests are in flight or wait for a place.
    #[must_use]
    pub fn asked(&self) -> u32 {
        self.lock().asked
    }

    /// Returns how many requests hang.
    #[must_use]
    pub fn hanging(&self, now: Instant) -> u32 {
        self.lock().hanging(now)
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a request. Dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    lane: Lane,
    /// When the request was sent; `None` while it waits.
    sent: Option<Instant>,
}

impl Place {
    /// Takes a free place, and wakes the next request if another place is free.
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let mut requests = self.lane.lock();
        if !requests.has_room(&self.lane.limit, now) {
            return false;
        }
        requests.sent.push(now);
        self.sent = Some(now);
        if requests.has_room(&self.lane.limit, now) {
            self.lane.freed.notify_one();
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut requests = self.lane.lock();
        requests.asked = requests.asked.saturating_sub(1);
        // Among several requests sent at the same time, any entry can be removed.
        if let Some(place) = self.sent.and_then(|sent| requests.sent.iter().position(|other| *other == sent)) {
            requests.sent.swap_remove(place);
            self.lane.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::advance;

    use crate::verb::Verb;

    /// Takes all free places, returns their number, and frees them.
    fn enter_all(lane: &Lane) -> u32 {
        let places: Vec<Place> = std::iter::from_fn(|| lane.enter().now_or_never()).collect();
        u32::try_from(places.len()).unwrap()
    }

    /// Records that the API server answered this many writes in this time.
    fn answers(limit: &ConcurrencyLimit, milliseconds: u64, times: usize) {
        (0..times)
            .for_each(|_| limit.wrote(Verb::Patch, "workflowexecutions/status", Duration::from_millis(milliseconds)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_fewer_requests_under_way_the_more_room_it_has_to_leave() {
        let limit = ConcurrencyLimit::default();
        let lane = Lane::new(limit.clone());
        for (beside, places) in [(Beside::None, MOST), (Beside::Others, 4), (Beside::Few, 1)] {
            lane.leave_room(beside);
            assert_eq!(enter_all(&lane), places, "{beside:?}");
        }
        lane.leave_room(Beside::Others);
        answers(&limit, 2, 1_000);
        assert_eq!(enter_all(&lane), MOST, "the API server keeps up");
        answers(&limit, 8, 100);
        assert_eq!(enter_all(&lane), 1, "it has become slow");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_place_gets_one_as_soon_as_there_is_room() {
        let lane = Lane::new(ConcurrencyLimit::default());
        lane.leave_room(Beside::Few);
        let first = lane.enter().await;
        let mut others: Vec<_> = (0..10).map(|_| Box::pin(lane.enter())).collect();
        let mut entered = Vec::new();
        let mut poll = |places: &mut Vec<Place>| {
            others.retain_mut(|waits| waits.as_mut().now_or_never().map(|place| places.push(place)).is_none());
        };
        poll(&mut entered);
        assert_eq!((entered.len(), lane.asked()), (0, 11));
        drop(first);
        (0..3).for_each(|_| poll(&mut entered));
        assert_eq!(entered.len(), 1, "one place was given back");
        lane.leave_room(Beside::None);
        (0..11).for_each(|_| poll(&mut entered));
        assert_eq!(entered.len(), 10, "all may be under way now");
    }

    /// If hanging requests filled places, a namespace with one place would wait for one until its time-out.
    #[tokio::test(start_paused = true)]
    async fn requests_that_hang_fill_no_place_but_no_more_than_all_of_them() {
        let lane = Lane::new(ConcurrencyLimit::default());
        lane.leave_room(Beside::Few);
        let mut hang = Vec::new();
        for number in 0..MOST {
            hang.push(lane.enter().await);
            assert_eq!(lane.hanging(Instant::now()), number);
            assert!(lane.enter().now_or_never().is_none(), "it has one place");
            advance(HANGS).await;
        }
        assert!(timeout(Duration::from_mins(1), lane.enter()).await.is_err(), "all that hang are too many");
        hang.truncate(1);
        assert_eq!(enter_all(&lane), 1);
    }

    /// Thousands of requests are answered, time out, or are cancelled while they wait.
    #[tokio::test(start_paused = true)]
    async fn after_a_storm_of_time_outs_all_places_are_free() {
        let lane = Lane::new(ConcurrencyLimit::default());
        lane.leave_room(Beside::Others);
        let requests = (0..2_000).map(|number| {
            let lane = lane.clone();
            timeout(Duration::from_secs(5 + number % 90), async move {
                let place = lane.enter().await;
                tokio::time::sleep(Duration::from_millis(number % 7 * 3_000)).await;
                drop(place);
            })
        });
        let ended = futures::future::join_all(requests).await;
        assert!(ended.iter().any(Result::is_ok) && ended.iter().any(Result::is_err));
        assert_eq!((lane.asked(), lane.lock().sent.len()), (0, 0));
        lane.leave_room(Beside::None);
        assert_eq!(enter_all(&lane), MOST);
    }
}
