//! Limits of how many targets are worked on at once (section 18).
//!
//! A limit counts targets. An execution or a schedule that a limit matches needs a place before it creates anything. A
//! [`Ledger`] counts the places of all targets, and gives free ones to the oldest that wait. A decision sees the
//! [`Places`] of its own target, and reports who asks for a place, and whether the given place is used.

mod ledger;

use std::fmt::Write as _;
use std::sync::Arc;

use crate::name::Uid;

pub use ledger::{Ask, Count, Ledger};

/// How many limits there can be: more than a person keeps in mind, and one word of memory for each target.
pub const MOST_LIMITS: usize = 20;
/// The highest `maxRunning`: twice as many targets as an installation is made for.
pub const MOST_RUNNING: u32 = 100_000;

/// A limit. The given fields must all match a target and its workflow; a limit without any of them matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name, for people and metrics.
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

/// The limits of a configuration, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(Arc<[Limit]>);

impl Limits {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns them in order.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.0.iter()
    }

    /// Returns the limits that are met.
    pub fn matching(&self, is_met: impl Fn(&Limit) -> bool) -> LimitSet {
        let met = self.0.iter().enumerate().filter(|(_, limit)| is_met(limit));
        LimitSet(met.fold(0, |set, (place, _)| set | 1 << place))
    }
}

impl FromIterator<Limit> for Limits {
    /// Takes the first [`MOST_LIMITS`].
    fn from_iter<I: IntoIterator<Item = Limit>>(limits: I) -> Self {
        Self(limits.into_iter().take(MOST_LIMITS).collect())
    }
}

/// Some of the limits of a configuration, by their positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitSet(u32);

impl LimitSet {
    /// Returns whether it contains none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether it contains the limit at a position.
    #[must_use]
    pub fn contains(self, position: usize) -> bool {
        self.0 >> position & 1 == 1
    }

    /// Returns the limits of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the limits that the other one lacks.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether both contain a limit.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the positions, in order.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..MOST_LIMITS).filter(move |place| self.contains(*place))
    }
}

/// The places, as a decision on one target sees them. By default the target has none, and nothing is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(Option<Box<SeenPlaces>>);

/// The places at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenPlaces {
    /// The execution or schedule of this target that has a place in every limit that it matches.
    pub given: Option<Uid>,
    /// How many places of each limit are taken.
    pub taken: Vec<u32>,
    /// How many older ones wait for a limit that the oldest of this target waits for, too. None if none of this target
    /// is in line.
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

    /// Returns what an asker waits for.
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

/// What an execution or a schedule waits for that asks for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitWait {
    /// The limits that match it.
    pub limits: Box<[LimitTaken]>,
    /// How many older ones wait, if that is known.
    pub ahead: Option<usize>,
}

/// A limit, and how much of it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitTaken {
    /// Its name.
    pub name: Box<str>,
    /// How many places are taken.
    pub taken: u32,
    /// How many there are.
    pub max: u32,
}

impl LimitWait {
    /// Describes the limits and the place in the line.
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
