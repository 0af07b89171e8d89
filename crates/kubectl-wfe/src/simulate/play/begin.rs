//! The start of a play that begins with what a cluster holds about one target. The runs that exist already end as the
//! scenario supposes.

use std::time::Duration;

use wfe_core::execution::{ExecutionState, FailedState};
use wfe_core::name::ExecutionId;
use wfe_core::policy::Policy;
use wfe_core::residue::ResidueKind;
use wfe_core::target::{Target, TargetName};
use wfe_core::triage::FailureSeen;
use wfe_view::index::{Delivery, Index, Key, Kind};

use super::{Happening, Play};
use crate::simulate::scenario::Scenario;

/// How long the tasks and pods of an ended run still go on: as long as a run of a workflow without a history.
const REMAINS: Duration = Duration::from_mins(1);

impl<'a> Play<'a> {
    /// Makes a world with all objects of an index, of which one target is played.
    pub(in crate::simulate) fn on_target(
        scenario: &'a Scenario,
        policy: &Policy,
        index: Index,
        name: &TargetName,
    ) -> Self {
        let key = Key::Chain(name.chain());
        let mut play = Self::on(scenario, policy, index, Some(key.clone()));
        if let Some(target) = play.index.entry(&key).map(|entry| entry.target.clone()) {
            play.begin_with(&key, name, &target);
        }
        play
    }

    fn begin_with(&mut self, key: &Key, name: &TargetName, target: &Target) {
        self.story.begins(key, target, &self.policy);
        // A schedule that cannot be used makes no run, and the play cannot write its status.
        for uid in target.schedules.values().map(|it| &it.id.uid).filter(|uid| !self.schedules.contains_key(*uid)) {
            self.index.apply(Delivery::ScheduleDeleted(uid.clone()), self.now);
        }
        for execution in target.executions.values() {
            match &execution.state {
                ExecutionState::Failed(failed) if execution.child.is_some() => {
                    self.failures.insert(execution.id.uid.clone(), failure_seen(&execution.id, failed));
                }
                _ if execution.is_terminal() => {}
                _ => {
                    self.open.insert(execution.id.to_string(), (key.clone(), execution.id.uid.clone()));
                }
            }
        }
        let mut ends = Vec::new();
        for run in target.runs.values() {
            let lasts = self.take_over(key, name.chain(), run);
            ends.extend(lasts.map(|lasts| (&run.owner, lasts)));
        }
        for (uid, residue) in target.residue.iter() {
            let with_its_run = ends.iter().find(|(owner, _)| *owner == &residue.owner).map(|(_, lasts)| *lasts);
            self.expect(with_its_run.unwrap_or(REMAINS), Happening::Ends(kind(residue.id.kind), uid.clone()));
        }
    }
}

/// Returns the watch that delivers a descendant.
fn kind(of: ResidueKind) -> Kind {
    match of {
        ResidueKind::TaskRun => Kind::TaskRun,
        ResidueKind::CustomRun => Kind::CustomRun,
        ResidueKind::PipelineRun => Kind::Run,
        ResidueKind::Pod => Kind::Pod,
    }
}

/// Returns a failure for a triage, with the fields that the view has.
fn failure_seen(id: &ExecutionId, failed: &FailedState) -> FailureSeen {
    FailureSeen {
        name: (*id.name).into(),
        failed_at: failed.failed_at,
        reason: Some(failed.reason),
        was_execution_failure: failed.was_execution_failure,
        task: None,
        step: None,
        exit_code: None,
        ran_for: None,
        fingerprint: failed.fingerprint.clone(),
        message: "".into(),
    }
}
