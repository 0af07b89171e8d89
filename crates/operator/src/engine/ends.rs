//! The ends of executions that a watch has delivered within the last minute.
//!
//! If a leader loses its Lease before a status write is answered, it can no longer announce the end that it wrote. The
//! next leader therefore creates the event of each recent end. If the API server accepts the event, none existed
//! before, and the operator counts the end, too.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use wfe_core::Time;
use wfe_core::name::{ExecutionId, Uid};
use wfe_view::index::{EndShown, ExecutionRecord};

/// The age up to which a new leader announces an end. A takeover takes fifteen seconds.
const RECENT: TimeDelta = TimeDelta::seconds(60);
/// The limit of remembered ends: a quarter of the events that may wait to be written, because a new leader also has
/// other events to write.
const MOST: usize = 4096;

/// The recent ends, each with its time.
#[derive(Debug, Default)]
pub struct Ends(BTreeMap<Uid, (Time, ExecutionId, EndShown)>);

impl Ends {
    /// Records the end of an execution from a delivered version. Without an end in the previous version, the end was
    /// written just now, whatever time the status shows.
    pub fn note(&mut self, record: &ExecutionRecord, went_on: bool, now: Time) {
        let Some(end) = record.end.as_deref() else { return };
        let id = &record.execution.id;
        let at = if went_on { now } else { end.at };
        if now - at > RECENT || self.0.contains_key(&id.uid) || self.0.len() >= MOST {
            return;
        }
        self.0.insert(id.uid.clone(), (at, id.clone(), end.clone()));
    }

    /// Removes the ends that are no longer recent.
    pub fn forget(&mut self, now: Time) {
        self.0.retain(|_, (at, ..)| now - *at <= RECENT);
    }

    /// Removes and returns the recent ends, in the order of their uids.
    pub fn take(&mut self, now: Time) -> Vec<(ExecutionId, EndShown)> {
        self.forget(now);
        std::mem::take(&mut self.0).into_values().map(|(_, execution, end)| (execution, end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use wfe_core::execution::Execution;
    use wfe_core::name::Version;
    use wfe_view::index::EndPhase;

    use super::*;

    fn at(second: i64) -> Time {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn record(uid: &str, ended: Option<i64>) -> ExecutionRecord {
        let id = ExecutionId { namespace: "ops".into(), name: uid.into(), uid: Uid::new(uid) };
        let end = ended.map(|second| {
            let (reason, message) = ("Completed".into(), "the workflow completed".into());
            Box::new(EndShown { at: at(second), phase: EndPhase::Completed, reason, message, ran_for: None })
        });
        let execution = Execution::undecided(id, Version::new("1"), at(0));
        ExecutionRecord { execution, target: None, generation: 1, request: None, redaction: None, end }
    }

    #[test]
    fn the_ends_of_the_last_minute_are_told_once() {
        let mut ends = Ends::default();
        for (uid, ended, went_on) in [
            ("goes-on", None, true),
            ("old", Some(39), false),
            ("recent", Some(40), false),
            ("written-late", Some(0), true),
            ("early", Some(95), false),
        ] {
            ends.note(&record(uid, ended), went_on, at(100));
        }
        let told = |ends: &mut Ends, second| {
            let taken = ends.take(at(second)).into_iter().map(|(execution, _)| execution.name.to_string());
            taken.collect::<Vec<_>>()
        };
        assert_eq!(told(&mut ends, 100), ["early", "recent", "written-late"]);
        assert_eq!(told(&mut ends, 100), [""; 0]);
        ends.note(&record("recent", Some(40)), false, at(100));
        ends.note(&record("written-late", Some(0)), true, at(100));
        assert_eq!(told(&mut ends, 101), ["written-late"], "the other is too old by then");
    }

    #[test]
    fn a_storm_of_ends_is_kept_to_a_limit_and_forgotten_with_time() {
        let mut ends = Ends::default();
        for number in 0..=MOST {
            ends.note(&record(&number.to_string(), Some(0)), false, at(0));
        }
        assert_eq!(ends.0.len(), MOST);
        ends.forget(at(61));
        assert!(ends.0.is_empty());
    }
}
