//! The announcement of a write to the status of a schedule.

use wfe_core::action::Record;
use wfe_core::name::Uid;
use wfe_core::schedule::ScheduleStatus;
use wfe_core::target::Target;

use super::Sight;

/// The announcement of a write to the status of a schedule.
#[derive(Clone, Debug)]
pub struct OfSchedule {
    pub(in crate::perform) record: Record,
    /// The status before the write.
    pub(in crate::perform) shown: Box<ScheduleStatus>,
}

impl OfSchedule {
    pub(in crate::perform) fn about(&self) -> &Uid {
        &self.record.schedule.uid
    }

    /// Looks for the result of the write in the present view of the schedule's target. Another replica may have written
    /// the same status, or a different one.
    pub(in crate::perform) fn sight(&self, target: Option<&Target>) -> Sight {
        let Some(schedule) = target.and_then(|target| target.schedules.get(self.about())) else { return Sight::Never };
        let wanted = &self.record.status;
        let triage = |status: &ScheduleStatus| status.triage.as_ref().map(|triage| (triage.of.clone(), triage.state));
        let is_told_of =
            |status: &ScheduleStatus| (status.last_run.clone(), status.last_missed, status.held.by(), triage(status));
        if schedule.version == self.record.version {
            Sight::NotYet
        } else if is_told_of(&schedule.status) == is_told_of(wanted) {
            Sight::Shown
        } else {
            Sight::Never
        }
    }

    pub(crate) fn new(record: Record, shown: ScheduleStatus) -> Self {
        Self { record, shown: Box::new(shown) }
    }
}
