//! Converts the numbers of the model to the names, uids, versions and times of `core`, and vice versa.

use wfe_core::Time;
use wfe_core::execution::{ExecutionState, FailedState};
use wfe_core::name::{self, Uid};
use wfe_core::reason::FailureReason;

use crate::object::{Number, RunUid, Version};

/// The largest uid. All uids have one digit, so that they sort as text in the same way as numbers.
pub(super) const LAST_UID: u8 = 7;

/// Returns a failure whose backoff is over.
pub(super) fn failed(was_execution_failure: bool) -> ExecutionState {
    let (ended, next_allowed_execution) = (Some(moment(60)), Some(moment(61)));
    ExecutionState::Failed(FailedState {
        reason: FailureReason::Unknown,
        was_execution_failure,
        cancelled: false,
        failed_at: ended,
        completed_at: ended,
        next_allowed_execution,
        fingerprint: None,
        shared_outage: false,
    })
}

pub(super) fn moment(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap_or_default()
}

pub(super) fn version(version: Version) -> name::Version {
    name::Version::new(&version.to_string())
}

pub(super) fn read_version(version: &name::Version) -> Version {
    parse(version.as_str())
}

pub(super) fn run_id(uid: RunUid, number: Number) -> name::RunId {
    name::RunId { name: number.to_string().into(), uid: Uid::new(&format!("{:02}", uid.0)) }
}

pub(super) fn read_run(run: &name::RunId) -> RunUid {
    RunUid(parse(&run.uid.to_string()))
}

pub(super) fn number_of(run: &name::RunId) -> Number {
    parse(&run.name)
}

/// Parses a number that the model has formatted.
pub(super) fn parse(text: &str) -> u8 {
    text.parse().unwrap_or(u8::MAX)
}

pub(super) fn small(number: u64) -> Number {
    Number::try_from(number).unwrap_or(Number::MAX)
}
