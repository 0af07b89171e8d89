//! The first lines of a play that begins with the objects of a cluster. They describe the state that exists before the
//! first decision of the play.

use wfe_core::ending::Skip;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::history::History;
use wfe_core::policy::Policy;
use wfe_core::schedule::Schedule;
use wfe_core::target::Target;
use wfe_core::triage::State;
use wfe_view::index::Key;

use super::{Line, Story, named, shown};

impl Story {
    /// The play begins with a target.
    pub(in crate::simulate) fn begins(&mut self, key: &Key, target: &Target, policy: &Policy) {
        let (start, name) = (self.start, target.label());
        self.names.insert(key.clone(), name.to_owned());
        let history = History::of(target, policy, start);
        if let Some(past) = history.blocks(policy, start).first().and_then(Skip::remediation) {
            let (since, by) = (past.completed_at, shown(&past.execution, name));
            self.tell(start, key, "blocked", None, format!("since {} by {by}", self.time(since)));
            self.block(key, name, since, by);
        }
        let is_failed = |execution: &Execution| matches!(execution.state, ExecutionState::Failed(_));
        if history.all().last().is_some_and(|past| is_failed(past.execution)) {
            self.failing.insert(key.clone());
        }
        for execution in target.running() {
            if let ExecutionState::Running { started_at: Some(at), .. } = execution.state {
                let line = self.about(start, key, "runs", &execution.id, format!("since {}", self.time(at)));
                self.add(Line { since: Some(at), ..line });
            }
        }
        for schedule in target.schedules.values() {
            self.begins_with_schedule(schedule);
        }
    }

    fn begins_with_schedule(&mut self, schedule: &Schedule) {
        let name = named(&schedule.id);
        if let Some(reason) = schedule.status.held.by() {
            self.line(self.start, &name, "held", None, reason.as_str().to_owned());
        }
        if schedule.status.triage.as_ref().is_some_and(|triage| triage.state == State::Paused) {
            self.paused.insert(name);
        }
    }
}
