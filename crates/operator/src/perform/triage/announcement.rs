//! Announces the outcome of a triage after the status records it.

use wfe_core::name::ScheduleId;
use wfe_core::schedule::ScheduleStatus;
use wfe_core::triage::{Adjust, Field, State, Verdict};

use super::super::Performer;
use crate::events::NewEvent;

impl Performer {
    /// Announces from a written status how a triage ended, and that an earlier triage was undone.
    pub(in super::super) fn tell_of_triage(
        &self,
        schedule: &ScheduleId,
        shown: &ScheduleStatus,
        wanted: &ScheduleStatus,
    ) {
        let Some(triage) = wanted.triage.as_deref().filter(|triage| shown.triage.as_deref() != Some(triage)) else {
            return;
        };
        let was = shown.triage.as_ref().filter(|was| was.of == triage.of).map(|was| was.state);
        if was == Some(triage.state) || triage.state == State::Analysing {
            if was.is_none() {
                tracing::info!(%schedule, of = &*triage.of, "a triage begins");
            }
            return;
        }
        if triage.state == State::Over {
            if was.is_some_and(State::is_standing) {
                tracing::info!(%schedule, of = &*triage.of, "what a triage had done is undone");
                self.events.announce(NewEvent::resumed(schedule, triage));
            }
            return;
        }
        let (verdict, state) = (triage.verdict.map_or("None", Verdict::as_str), triage.state.as_str());
        self.metrics.schedules().triaged(triage);
        tracing::info!(%schedule, of = &*triage.of, verdict, state, "triage ended");
        self.events.announce(match triage.state {
            State::Paused => NewEvent::paused(schedule, triage),
            State::Adjusted => NewEvent::adjusted(schedule, triage, &changed(shown, wanted)),
            _ => NewEvent::triaged(schedule, triage),
        });
        if !triage.refused.is_empty() {
            self.events.announce(NewEvent::adjust_refused(schedule, triage));
        }
    }
}

/// Names the adjusted fields. Values are left out, because the value of a parameter may be a secret.
fn changed(shown: &ScheduleStatus, wanted: &ScheduleStatus) -> String {
    let none = Adjust::default();
    let was = shown.adjust.as_deref().unwrap_or(&none);
    let is = wanted.adjust.as_deref().unwrap_or(&none);
    let parameters = is.parameters.iter().filter(|(key, value)| was.parameters.get(*key) != Some(value));
    let interval = (is.interval != was.interval).then_some(Field::Interval);
    let timeout = (is.timeout != was.timeout).then_some(Field::Timeout);
    let fields = interval.into_iter().chain(timeout);
    let fields = fields.chain(parameters.map(|(key, _)| Field::Parameter(key.clone())));
    fields.map(|field| field.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_adjusted_is_named_without_its_values() {
        let adjust = |interval: Option<u64>, level: &str| ScheduleStatus {
            adjust: Some(Box::new(Adjust {
                interval: interval.map(Duration::from_secs),
                timeout: Some(Duration::from_mins(1)),
                parameters: [("LEVEL".into(), level.into())].into(),
            })),
            ..ScheduleStatus::default()
        };
        assert_eq!(changed(&ScheduleStatus::default(), &adjust(Some(60), "9")), "interval, timeout, parameters.LEVEL");
        assert_eq!(changed(&adjust(Some(60), "9"), &adjust(Some(60), "hunter2")), "parameters.LEVEL");
    }
}
