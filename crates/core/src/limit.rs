//! Limits of how many targets are worked on at once (section 18).
//!
//! A limit counts targets. An execution or a schedule that matches a limit needs a place before it creates anything. A
//! [`Ledger`] counts the places of all targets, and gives free ones to those that have waited longest. A decision reads
//! the [`Places`] of its own target. It reports who requests a place, and whether the given place is used.

mod ledger;

use std::fmt::Write as _;
use std::sync::Arc;

use crate::name::Uid;

pub use ledger::{Ask, Count, Ledger};

/// The maximum number of limits: more than a person keeps in mind, and few enough for a set of them to fit into a
/// `u32`.
pub const MOST_LIMITS: usize = 20;
/// The highest `maxRunning`: twice as many targets as the operator is designed for.
pub const MOST_RUNNING: u32 = 100_000;

/// A limit. All fields that are set must match a target and its workflow. If none is set, the limit matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name of the limit, for people and metrics.
    pub name: Box<str>,
    /// The kind of the target, in canonical form.
    pub kind: Option<Box<str>>,
    /// The workflow.
    pub workflow_id: Option<Box<str>>,
    /// The namespace of the target.
    pub namespace: Option<Box<str>>,
    /// How many targets may be worked on at once.
    pub max_running: u32,
}

/// The limits of a configuration, in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(Arc<[Limit]>);

impl Limits {
    /// Returns whether there are no limits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of limits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the limits in order.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.0.iter()
    }

    /// Returns the limits for which `is_met` returns true.
    pub fn matching(&self, is_met: impl Fn(&Limit) -> bool) -> LimitSet {
        let met = self.0.iter().enumerate().filter(|(_, limit)| is_met(limit));
        LimitSet(met.fold(0, |set, (place, _)| set | 1 << place))
    }
}

impl FromIterator<Limit> for Limits {
    /// Keeps the first [`MOST_LIMITS`] limits.
    fn from_iter<I: IntoIterator<Item = Limit>>(limits: I) -> Self {
        Self(limits.into_iter().take(MOST_LIMITS).collect())
    }
}

/// Some of the limits of a configuration, by their positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitSet(u32);

impl LimitSet {
    /// Returns whether the set contains no limit.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set contains the limit at a position.
    #[must_use]
    pub fn contains(self, position: usize) -> bool {
        self.0 >> position & 1 == 1
    }

    /// Returns the limits of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the limits that the other set lacks.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the sets have a limit in common.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the positions of the limits, in order.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..MOST_LIMITS).filter(move |place| self.contains(*place))
    }
}

/// The places in limits, as a decision on one target sees them. By default the target has no place, and no place is
/// taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(Option<Box<SeenPlaces>>);

/// The places in limits at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenPlaces {
    /// The execution or schedule of this target that has a place in every limit that it matches.
    pub given: Option<Uid>,
    /// How many places of each limit are taken.
    pub taken: Vec<u32>,
    /// How many older requests wait for a limit that the oldest request of this target waits for, too. `None` if no
    /// request of this target waits.
    pub ahead: Option<usize>,
}

impl From<SeenPlaces> for Places {
    fn from(seen: SeenPlaces) -> Self {
        Self(Some(Box::new(seen)))
    }
}

impl Places {
    /// Returns whether the execution or schedule with this uid has a place.
    #[must_use]
    pub fn are_given_to(&self, uid: &Uid) -> bool {
        self.0.as_ref().is_some_and(|seen| seen.given.as_ref() == Some(uid))
    }

    /// Returns what a request for a place waits for.
    #[must_use]
    pub fn wait(&self, limits: &Limits, asked: LimitSet) -> LimitWait {
        let taken = |place: usize| self.0.as_ref().and_then(|seen| seen.taken.get(place)).copied().unwrap_or_default();
        let of = |(place, limit): (usize, &Limit)| LimitTaken {
            name: limit.name.clone(),
            taken: taken(place),
            max: limit.max_running,
        };
        let limits = limits.iter().enumerate().filter(|(place, _)| asked.contains(*place)).map(of).collect();
        LimitWait { limits, ahead: self.0.as_ref().and_then(|seen| seen.ahead) }
    }
}

/// What an execution or a schedule waits for if it has requested a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitWait {
    /// The limits that match the execution or schedule.
    pub limits: Box<[LimitTaken]>,
    /// How many older requests wait, if that is known.
    pub ahead: Option<usize>,
}

/// A limit, with the number of places that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitTaken {
    /// The name of the limit.
    pub name: Box<str>,
    /// How many places are taken.
    pub taken: u32,
    /// How many places there are.
    pub max: u32,
}

impl LimitWait {
    /// Describes the limits and the position in the line.
    #[must_use]
    pub fn message(&self) -> String {
        let one = |LimitTaken { name, taken, max }: &LimitTaken| format!("{name} ({taken} of {max} taken)");
        let limits: Vec<String> = self.limits.iter().map(one).collect();
        let mut message = format!("it needs a place in each of these limits: {}", limits.join(", "));
        if let Some(ahead) = self.ahead {
            let _ = match ahead {
                0 => write!(message, "; it is the first in the line"),
                1 => write!(message, "; 1 older target waits"),
                more if more > ledger::MOST_AHEAD => {
                    write!(message, "; more than {} older targets wait", ledger::MOST_AHEAD)
                }
                more => write!(message, "; {more} older targets wait"),
            };
        }
        message
    }
}
