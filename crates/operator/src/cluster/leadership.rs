//! Whether this process leads. Every part of the process can ask at any time.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The shared record of leadership. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Sender<State>);

#[derive(Clone, Debug, Default)]
struct State {
    /// How many terms of this process have begun.
    terms: u64,
    mandate: Mandate,
    /// The name of the leader, if another process leads.
    leader: Option<Box<str>>,
    /// Why the Lease cannot be used.
    trouble: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mandate {
    #[default]
    None,
    Until(Instant),
    /// The process runs without leader election.
    Always,
}

impl Leadership {
    /// Makes the record of a process that takes part in an election and does not lead yet.
    #[must_use]
    pub fn by_election() -> Self {
        Self(watch::Sender::default())
    }

    /// Makes the record of a process without leader election, which always leads.
    #[must_use]
    pub fn without_election() -> Self {
        Self(watch::Sender::new(State { terms: 1, mandate: Mandate::Always, ..State::default() }))
    }

    /// Returns whether this process may write now. Its clock is checked, so a process that slept beyond the end of its
    /// term notices at once.
    #[must_use]
    pub fn leads(&self) -> bool {
        match self.0.borrow().mandate {
            Mandate::None => false,
            Mandate::Until(until) => Instant::now() < until,
            Mandate::Always => true,
        }
    }

    /// Polls a write for as long as this process leads. Returns `None` at the end of leadership: then the write was not
    /// sent, or its outcome is unknown.
    ///
    /// Leadership is checked before each poll, because a request is sent only during a poll.
    pub async fn guard<T>(&self, write: impl Future<Output = T>) -> Option<T> {
        let mut write = pin!(write);
        loop {
            let mandate = self.0.borrow().mandate;
            let while_leading =
                poll_fn(
                    |context| {
                        if self.leads() { write.as_mut().poll(context).map(Some) } else { Poll::Ready(None) }
                    },
                );
            let Mandate::Until(until) = mandate else { return while_leading.await };
            tokio::select! {
                biased;
                answer = while_leading => return answer,
                () = sleep_until(until) => {} // the term is over, or was renewed meanwhile
            }
        }
    }

    /// Returns a receiver that reports the beginning and end of each term.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms { state: self.0.subscribe(), seen: None }
    }

    /// Reports on leader election for `/readyz`. A follower is ready too.
    ///
    /// # Errors
    /// Why this process cannot take part in the election.
    pub fn standing(&self) -> Result<String, String> {
        if self.leads() {
            return Ok("leading".to_owned());
        }
        let state = self.0.borrow();
        match (&state.trouble, &state.leader) {
            (Some(trouble), _) => Err(trouble.clone()),
            (None, Some(leader)) => Ok(format!("following {leader}")),
            (None, None) => Ok("following nobody: no replica leads".to_owned()),
        }
    }

    pub(super) fn begin(&self, until: Instant) {
        self.0.send_modify(|state| {
            state.terms += 1;
            (state.mandate, state.leader) = (Mandate::Until(until), None);
        });
    }

    pub(super) fn renew(&self, until: Instant) {
        self.0.send_modify(|state| state.mandate = Mandate::Until(until));
    }

    pub(super) fn end(&self) {
        self.0.send_modify(|state| state.mandate = Mandate::None);
    }

    /// Records the leader, and returns whether it changed.
    pub(super) fn follow(&self, leader: Option<&str>) -> bool {
        self.0.send_if_modified(|state| {
            let is_news = state.leader.as_deref() != leader;
            state.leader = leader.map(Into::into);
            is_news
        })
    }

    /// Records why the Lease cannot be used; `None` if it can.
    pub(super) fn has_trouble(&self, trouble: Option<&str>) {
        self.0.send_if_modified(|state| {
            let is_news = state.trouble.as_deref() != trouble;
            state.trouble = trouble.map(Into::into);
            is_news
        });
    }
}

/// Reports when a term of this process begins or ends.
#[derive(Debug)]
pub struct Terms {
    state: watch::Receiver<State>,
    seen: Option<u64>,
}

/// The beginning or end of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// A term has begun; the earlier one, if any, has ended.
    Begins,
    /// The term has ended.
    Ends,
}

impl Terms {
    /// Waits until a term begins or ends.
    ///
    /// # Cancellation
    /// Safe: a change is consumed only when this returns.
    pub async fn next(&mut self) -> Term {
        loop {
            let state = self.state.borrow_and_update().clone();
            let term = (state.mandate != Mandate::None).then_some(state.terms);
            if term != self.seen {
                self.seen = term;
                return if term.is_some() { Term::Begins } else { Term::Ends };
            }
            if self.state.changed().await.is_err() {
                std::future::pending::<()>().await; // no sender is left, so nothing will change
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_write_that_begins_after_the_term_is_not_sent() {
        let leadership = Leadership::by_election();
        let unsent = async || panic!("it is sent");
        assert_eq!(leadership.guard(unsent()).await, None, "never elected");
        leadership.begin(Instant::now() + SECOND);
        assert_eq!(leadership.guard(async { 1 }).await, Some(1));
        // The process slept, so no task could record the end of the term.
        advance(SECOND).await;
        assert!(!leadership.leads());
        assert_eq!(leadership.guard(unsent()).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_for_its_turn_does_not_go_on_after_the_term() {
        let leadership = Leadership::by_election();
        leadership.begin(Instant::now() + SECOND);
        let (connected, connects) = tokio::sync::oneshot::channel::<()>();
        let mut write = pin!(leadership.guard(async {
            let _ = connects.await;
            panic!("it is sent")
        }));
        assert!(write.as_mut().now_or_never().is_none());
        advance(SECOND).await;
        connected.send(()).unwrap();
        assert_eq!(write.await, None::<()>);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_under_way_is_given_up_when_the_term_ends_and_not_before() {
        let leadership = Leadership::by_election();
        let start = Instant::now();
        leadership.begin(start + SECOND * 5);
        let renewals = async {
            tokio::time::sleep(SECOND * 4).await;
            leadership.renew(start + SECOND * 9);
            std::future::pending::<()>().await;
        };
        let given_up = async {
            assert_eq!(leadership.guard(std::future::pending::<()>()).await, None);
            start.elapsed()
        };
        tokio::select! {
            () = renewals => unreachable!(),
            took = given_up => assert_eq!(took, SECOND * 9),
        }
    }

    #[tokio::test]
    async fn without_an_election_everything_goes_on() {
        let leadership = Leadership::without_election();
        assert_eq!(leadership.guard(async { 1 }).await, Some(1));
        let mut terms = leadership.terms();
        assert_eq!(terms.next().await, Term::Begins);
        assert_eq!(terms.next().now_or_never(), None);
        assert_eq!(leadership.standing().as_deref(), Ok("leading"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_that_was_missed_is_told_of() {
        let leadership = Leadership::by_election();
        let mut terms = leadership.terms();
        assert_eq!(terms.next().now_or_never(), None);
        leadership.begin(Instant::now() + SECOND);
        assert_eq!(terms.next().now_or_never(), Some(Term::Begins));
        leadership.renew(Instant::now() + SECOND * 2);
        assert_eq!(terms.next().now_or_never(), None);
        leadership.end();
        leadership.begin(Instant::now() + SECOND * 3);
        assert_eq!(terms.next().now_or_never(), Some(Term::Begins), "another one");
        leadership.end();
        assert_eq!(terms.next().now_or_never(), Some(Term::Ends));
    }

    #[test]
    fn it_says_who_leads_and_what_is_wrong() {
        let leadership = Leadership::by_election();
        assert_eq!(leadership.standing().as_deref(), Ok("following nobody: no replica leads"));
        assert!(leadership.follow(Some("other")));
        assert!(!leadership.follow(Some("other")));
        assert_eq!(leadership.standing().as_deref(), Ok("following other"));
        leadership.has_trouble(Some("cannot use it"));
        assert_eq!(leadership.standing().unwrap_err(), "cannot use it");
    }
}
