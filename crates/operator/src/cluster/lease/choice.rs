//! Chooses what to do about the Lease: a pure function of the Lease as it was seen, and of the monotonic clock.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;
use wfe_settings::timing::LONGEST;

/// The content of a Lease. Its time is only tested for equality with that of an earlier read, and never compared with a
/// clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The holder; `None` after a release.
    pub(super) holder: Option<Box<str>>,
    pub(super) duration: Duration,
    pub(super) renewed: Option<Timestamp>,
    pub(super) transitions: i32,
}

impl Record {
    /// Reads a Lease, which may lack any field.
    pub(super) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()).map(Into::into),
            duration: seconds.map_or(LONGEST, Duration::from_secs).min(LONGEST),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// A record, and since when this process has seen it unchanged.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) record: Record,
    pub(super) since: Instant,
}

impl Sighting {
    /// Updates a sighting with the record of a read, whose answer arrived at `now`.
    pub(super) fn after(previous: Option<Self>, record: Record, now: Instant) -> Self {
        previous.filter(|previous| previous.record == record).unwrap_or(Self { record, since: now })
    }

    /// Returns when the term of the holder has certainly ended, unless the record changes.
    fn runs_out(&self) -> Instant {
        self.since + self.record.duration
    }
}

/// What to do next about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No process leads: take the Lease.
    Take,
    /// This process leads, and must renew the Lease.
    Renew,
    /// Another process leads.
    Wait {
        /// When the other leader's term ends if the record does not change.
        until: Instant,
    },
    /// This process no longer leads, for this reason.
    Lose(&'static str),
}

/// Returns the next step of the process `me`. `leads_until` is the end of its term, if it leads; `seen` is the Lease,
/// if it exists.
pub(super) fn step(me: &str, leads_until: Option<Instant>, seen: Option<&Sighting>, now: Instant) -> Step {
    let holder = seen.and_then(|seen| seen.record.holder.as_deref());
    let holds = holder == Some(me);
    match (leads_until, seen) {
        (Some(until), _) if now >= until => Step::Lose("it was not renewed in time"),
        (Some(_), _) if holds => Step::Renew,
        (Some(_), _) => Step::Lose("somebody else has taken or removed the lease"),
        // This process need not wait if it is the holder from an earlier term: no other process has led since.
        (None, Some(seen)) if holder.is_some() && !holds && now < seen.runs_out() => {
            Step::Wait { until: seen.runs_out() }
        }
        (None, _) => Step::Take,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_settings::timing::Timing;

    const SECOND: Duration = Duration::from_secs(1);

    fn record(holder: Option<&str>, renewed: i64) -> Record {
        Record {
            holder: holder.map(Into::into),
            duration: SECOND * 8,
            renewed: Timestamp::from_second(renewed).ok(),
            transitions: 3,
        }
    }

    #[test]
    fn each_state_has_its_step() {
        let start = Instant::now();
        let at = |seconds: u32| start + SECOND * seconds;
        let wait = |seconds: u32| Step::Wait { until: at(seconds) };
        let lose_late = Step::Lose("it was not renewed in time");
        let lose_taken = Step::Lose("somebody else has taken or removed the lease");
        // The end of the term; the holder, if the Lease exists; since when it is seen; now; the expected step.
        for (leads_until, holder, since, now, expected) in [
            // A candidate.
            (None, None, 0, 0, Step::Take),
            (None, Some(None), 0, 0, Step::Take),
            (None, Some(Some("other")), 0, 0, wait(8)),
            (None, Some(Some("other")), 0, 7, wait(8)),
            (None, Some(Some("other")), 0, 8, Step::Take),
            (None, Some(Some("other")), 5, 8, wait(13)),
            (None, Some(Some("me")), 0, 1, Step::Take),
            // A leader.
            (Some(5), Some(Some("me")), 0, 2, Step::Renew),
            (Some(5), Some(Some("me")), 0, 4, Step::Renew),
            (Some(5), Some(Some("me")), 0, 5, lose_late.clone()),
            (Some(5), Some(Some("me")), 0, 60, lose_late.clone()),
            (Some(5), Some(Some("other")), 1, 2, lose_taken.clone()),
            (Some(5), Some(None), 1, 2, lose_taken.clone()),
            (Some(5), None, 1, 2, lose_taken.clone()),
            (Some(5), Some(Some("other")), 1, 6, lose_late.clone()),
        ] {
            let seen = holder.map(|holder| Sighting { record: record(holder, 0), since: at(since) });
            let found = step("me", leads_until.map(at), seen.as_ref(), at(now));
            assert_eq!(found, expected, "{leads_until:?} {holder:?} {since} {now}");
        }
    }

    #[test]
    fn a_record_is_timed_from_its_last_change() {
        let start = Instant::now();
        let first = Sighting::after(None, record(Some("other"), 10), start);
        let same = Sighting::after(Some(first), record(Some("other"), 10), start + SECOND * 3);
        assert_eq!(same.since, start);
        // A holder's clock that was set back changes the record as any renewal does.
        let renewed = Sighting::after(Some(same), record(Some("other"), 9), start + SECOND * 4);
        assert_eq!(renewed.since, start + SECOND * 4);
        let taken = Sighting::after(Some(renewed), record(Some("third"), 9), start + SECOND * 5);
        assert_eq!(taken.since, start + SECOND * 5);
    }

    #[test]
    fn a_leader_has_stopped_before_a_candidate_begins() {
        let start = Instant::now();
        let timing = Timing::new(SECOND * 8, SECOND * 5, SECOND * 2).unwrap();
        // The candidate sees a renewal as early as possible: at the time of the request.
        let seen = Sighting { record: record(Some("leader"), 0), since: start };
        for half in 0..40 {
            let now = start + SECOND * half / 2;
            let writes = step("leader", Some(start + timing.renew_deadline), Some(&seen), now) == Step::Renew;
            let takes = step("candidate", None, Some(&seen), now) == Step::Take;
            assert!(!(writes && takes), "{half}");
        }
    }

    #[test]
    fn a_lease_of_any_shape_is_read() {
        let lease = |spec: serde_json::Value| -> Lease {
            serde_json::from_value(serde_json::json!({"metadata": {}, "spec": spec})).unwrap()
        };
        let nothing = Record { holder: None, duration: LONGEST, renewed: None, transitions: 0 };
        assert_eq!(Record::of(&Lease::default()), nothing);
        assert_eq!(Record::of(&lease(serde_json::json!({"holderIdentity": "", "leaseDurationSeconds": -1}))), nothing);
        let long = Record::of(&lease(serde_json::json!({"holderIdentity": "x", "leaseDurationSeconds": i32::MAX})));
        assert_eq!((long.holder.as_deref(), long.duration), (Some("x"), LONGEST));
    }
}
