//! The events about a schedule (section 13.7). A schedule that runs as planned has no events.

use wfe_core::Time;
use wfe_core::name::ScheduleId;
use wfe_core::schedule::{HeldBy, Missed};
use wfe_core::triage::builtin::advice_on_refusal;
use wfe_core::triage::{State, Triage};

use super::{About, NewEvent};

impl NewEvent {
    /// Slots of the schedule passed without a run.
    #[must_use]
    pub fn slots_missed(schedule: &ScheduleId, missed: Missed) -> Self {
        let Missed { slot, count } = missed;
        let note = match count {
            1 => format!("the slot of {} passed without a run", shown(slot)),
            _ => format!("{count} slots passed without a run, the latest at {}", shown(slot)),
        };
        let about = About::Schedule(schedule.clone(), slot.timestamp().to_string());
        Self { warning: true, ..Self::normal(about, "SlotsMissed", "Plan", note) }
    }

    /// Something keeps the schedule from running. `version` is that of the last status without this hold.
    #[must_use]
    pub fn held(schedule: &ScheduleId, version: &str, by: HeldBy, message: &str) -> Self {
        let about = About::Schedule(schedule.clone(), version.to_owned());
        // A person must act before the schedule runs again.
        let warning = matches!(by, HeldBy::PreviousExecutionFailed | HeldBy::ExhaustedRetries | HeldBy::TriagePaused);
        Self { warning, ..Self::normal(about, "Held", "Hold", format!("{}: {message}", by.as_str())) }
    }

    /// Nothing keeps the schedule from running any more.
    #[must_use]
    pub fn released(schedule: &ScheduleId, version: &str, was: HeldBy) -> Self {
        let about = About::Schedule(schedule.clone(), version.to_owned());
        Self::normal(about, "Released", "Release", format!("it is not held any more ({})", was.as_str()))
    }

    /// The spec of the schedule cannot be used. `version` is that of the last status without this reason.
    #[must_use]
    pub fn invalid_spec(schedule: &ScheduleId, version: &str, why: &str) -> Self {
        let about = About::Schedule(schedule.clone(), version.to_owned());
        let note = format!("it makes no execution until this is corrected: {why}");
        Self { warning: true, ..Self::normal(about, "InvalidSpec", "Plan", note) }
    }

    /// The API server refuses to create a child of the schedule.
    #[must_use]
    pub fn child_refused(schedule: &ScheduleId, slot: Time, message: &str) -> Self {
        let about = About::Schedule(schedule.clone(), slot.timestamp().to_string());
        let advice = advice_on_refusal(message);
        let note = format!("{message}; it is tried again at its next slot. {advice}");
        Self { warning: true, ..Self::normal(about, "ChildRefused", "Create", note) }
    }

    /// A triage has ended, with or without a verdict.
    #[must_use]
    pub fn triaged(schedule: &ScheduleId, triage: &Triage) -> Self {
        let note = match triage.verdict {
            Some(verdict) => format!("{}: {}", verdict.as_str(), said(triage)),
            None => format!("the triage of {} gave no verdict: {}", triage.of, said(triage)),
        };
        let warning = triage.state == State::Failed;
        Self { warning, ..Self::normal(of_triage(schedule, triage), "Triaged", "Triage", note) }
    }

    /// A triage has paused the schedule.
    #[must_use]
    pub fn paused(schedule: &ScheduleId, triage: &Triage) -> Self {
        let note = format!("paused for a person by the triage of {}: {}", triage.of, said(triage));
        Self { warning: true, ..Self::normal(of_triage(schedule, triage), "Paused", "Triage", note) }
    }

    /// A triage has replaced values of the spec. The values are in the status.
    #[must_use]
    pub fn adjusted(schedule: &ScheduleId, triage: &Triage, fields: &str) -> Self {
        let note = format!("the triage of {} has adjusted {fields} (status.adjust): {}", triage.of, said(triage));
        Self::normal(of_triage(schedule, triage), "Adjusted", "Triage", note)
    }

    /// A triage requested a change that it is not allowed to make.
    #[must_use]
    pub fn adjust_refused(schedule: &ScheduleId, triage: &Triage) -> Self {
        let note = format!("the triage of {} may not adjust: {}", triage.of, triage.refused.join("; "));
        Self { warning: true, ..Self::normal(of_triage(schedule, triage), "AdjustRefused", "Triage", note) }
    }

    /// The pause or the values of a triage were removed, because the plan of the schedule began anew.
    #[must_use]
    pub fn resumed(schedule: &ScheduleId, triage: &Triage) -> Self {
        let note = format!("what the triage of {} had done is undone, and the plan begins anew", triage.of);
        Self::normal(of_triage(schedule, triage), "Resumed", "Triage", note)
    }

    /// The hint of the schedule has no effect.
    #[must_use]
    pub fn hint_ignored(schedule: &ScheduleId, generation: i64, why: &str) -> Self {
        let about = About::Schedule(schedule.clone(), generation.to_string());
        Self::normal(about, "HintIgnored", "Plan", why.to_owned())
    }
}

/// Identifies a triage by its start: a schedule has only one at a time.
fn of_triage(schedule: &ScheduleId, triage: &Triage) -> About {
    About::Schedule(schedule.clone(), triage.at.timestamp().to_string())
}

fn said(triage: &Triage) -> &str {
    triage.why.as_deref().unwrap_or("it did not say why")
}

fn shown(time: Time) -> impl std::fmt::Display {
    time.format("%Y-%m-%dT%H:%M:%SZ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::rendered;
    use super::*;
    use wfe_core::name::Uid;

    #[test]
    fn an_event_of_a_schedule_has_one_name_for_one_transition() {
        let id = ScheduleId { namespace: "ops".into(), name: "nightly".into(), uid: Uid::new("u-1") };
        let slot = Time::from_timestamp(1_800_000_000, 0).unwrap();
        let event = |announcement: &NewEvent| {
            let event = rendered(announcement);
            (event.metadata.name.unwrap(), event.type_.unwrap(), event.note.unwrap())
        };
        let (name, kind, note) = event(&NewEvent::slots_missed(&id, Missed { slot, count: 6 }));
        assert_eq!((&*name, &*kind), ("nightly.u-1.1800000000.slotsmissed", "Warning"));
        assert_eq!(note, "6 slots passed without a run, the latest at 2027-01-15T08:00:00Z");
        let (name, kind, note) = event(&NewEvent::held(&id, "77", HeldBy::PreviousExecutionFailed, "clear it"));
        assert_eq!((&*name, &*kind, &*note), ("nightly.u-1.77.held", "Warning", "PreviousExecutionFailed: clear it"));
        let (_, kind, _) = event(&NewEvent::held(&id, "78", HeldBy::Suspended, "spec.suspend is true"));
        assert_eq!(kind, "Normal");
        assert_eq!(event(&NewEvent::released(&id, "79", HeldBy::Suspended)).0, "nightly.u-1.79.released");
        assert_eq!(event(&NewEvent::hint_ignored(&id, 3, "late")).0, "nightly.u-1.3.hintignored");
        let (name, kind, _) = event(&NewEvent::invalid_spec(&id, "80", "spec.cron: odd"));
        assert_eq!((&*name, &*kind), ("nightly.u-1.80.invalidspec", "Warning"));
        let regarding = rendered(&NewEvent::child_refused(&id, slot, "no")).regarding.unwrap();
        assert_eq!(regarding.kind.as_deref(), Some("WorkflowSchedule"));
    }
}
