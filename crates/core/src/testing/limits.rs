//! Builders of limits and places.

use crate::limit::{Limit, Limits, Places, SeenPlaces};
use crate::name::Uid;
use crate::policy::Policy;

/// A limit of three targets, for everything.
pub(crate) fn limit(name: &str) -> Limit {
    Limit { name: name.into(), kind: None, workflow_id: None, namespace: None, max_running: 3 }
}

pub(crate) fn limited(limits: &[Limit]) -> Policy {
    Policy { limits: limits.iter().cloned().collect::<Limits>(), ..Policy::default() }
}

/// The places of a target whose execution or schedule has one.
pub(crate) fn place_of(uid: &str) -> Places {
    SeenPlaces { given: Some(Uid::new(uid)), ..SeenPlaces::default() }.into()
}
