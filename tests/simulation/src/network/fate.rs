//! What happens to a request according to the plan.

use http::Method;
use http::request::Parts;

use super::{is_about, refusal};
use crate::plan::{Millis, Plan, Trouble};
use crate::service::Answered;

/// What happens to a request.
pub(super) enum Fate {
    /// The request arrives, this many milliseconds late, possibly twice. Its answer may be lost.
    Arrives { late: Millis, twice: bool, answer_lost: bool },
    /// The request does not arrive.
    Lost,
    /// The request gets this answer, and changes nothing.
    Refused(Box<Answered>),
}

const ARRIVES: Fate = Fate::Arrives { late: 0, twice: false, answer_lost: false };

/// Finds the first fault of the plan that affects a request. Returns what happens to the request, and the label of the
/// fault.
pub(super) fn of(
    plan: &Plan,
    replica: u8,
    at: Millis,
    parts: &Parts,
    watched: Option<&str>,
    chance: &mut fastrand::Rng,
) -> (Fate, Option<&'static str>) {
    let path = parts.uri.path();
    let segments: Vec<&str> = path.split('/').collect();
    let concerns = |resource: &str| segments.contains(&resource);
    for fault in plan.faults.iter().filter(|fault| fault.strikes(replica, at)) {
        let mut hits = |percent: u8| chance.u8(0..100) < percent;
        let fate = match &fault.what {
            Trouble::Partition => Fate::Lost,
            Trouble::Lost { percent } if hits(*percent) => Fate::Lost,
            Trouble::AnswerLost { percent } if hits(*percent) => {
                Fate::Arrives { late: 0, twice: false, answer_lost: true }
            }
            Trouble::Doubled { percent } if hits(*percent) && watched.is_none() => {
                Fate::Arrives { late: 0, twice: true, answer_lost: false }
            }
            Trouble::Late { percent, by } if hits(*percent) => {
                Fate::Arrives { late: *by, twice: false, answer_lost: false }
            }
            Trouble::Refused { percent, code, verb, resource }
                if (verb.is_empty() || verb == verb_of(parts, watched))
                    && (resource.is_empty() || concerns(resource))
                    && hits(*percent) =>
            {
                Fate::Refused(Box::new(refusal::of_code(*code)))
            }
            Trouble::Denied { verb, resource } if concerns(resource) && verb == verb_of(parts, watched) => {
                Fate::Refused(Box::new(refusal::denied(verb, resource, &segments)))
            }
            Trouble::KindMissing { resource } if concerns(resource) => Fate::Refused(Box::new(refusal::not_served())),
            Trouble::WatchRefused { resource, code } if watched.is_some_and(|watched| is_about(resource, watched)) => {
                Fate::Refused(Box::new(refusal::of_code(*code)))
            }
            _ => continue,
        };
        return (fate, Some(fault.what.label()));
    }
    (ARRIVES, None)
}

fn verb_of(parts: &Parts, watched: Option<&str>) -> &'static str {
    match parts.method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if watched.is_some() => "watch",
        _ if parts.uri.query().is_some_and(|query| query.contains("limit=")) => "list",
        _ => "get",
    }
}
