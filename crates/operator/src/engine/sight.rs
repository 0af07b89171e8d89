//! Applies the deliveries of the watches to the view, and checks whether the view can be trusted.

use std::time::Duration;

use wfe_core::run::Owner;
use wfe_view::index::{Delivery, Kind};

use super::{Engine, EngineError};
use crate::cluster::crds::Fitness;
use crate::events::NewEvent;

impl Engine {
    /// Applies a delivery of a watch to the view, and counts and logs it.
    pub(super) fn apply(&mut self, delivery: Delivery) {
        match &delivery {
            Delivery::ListBegins(_) | Delivery::ListEnds(_) => {}
            Delivery::Execution(record) => {
                self.metrics.delivered(Kind::Execution);
                let went_on = self.index.goes_on(&record.execution.id.uid);
                self.ends.note(record, went_on, self.settings.clock.now());
            }
            Delivery::ExecutionDeleted(_) => self.metrics.delivered(Kind::Execution),
            Delivery::Run(_, run) => {
                self.metrics.delivered(Kind::Run);
                if run.owner == Owner::Nobody && !self.index.knows_run(&run.id.uid) {
                    self.metrics.foreign_run();
                    tracing::warn!(
                        run = %run.id,
                        "a PipelineRun has a name of ours, but no uid of a WorkflowExecution: left alone"
                    );
                }
            }
            Delivery::RunDeleted(..) => self.metrics.delivered(Kind::Run),
            Delivery::Descendant(kind, _) | Delivery::DescendantDeleted(kind, ..) => self.metrics.delivered(*kind),
            Delivery::Namespace { name, paused: why, .. } => {
                self.metrics.delivered(Kind::Namespace);
                let before = self.index.pause_of(name).map(|pause| &*pause.why);
                match why {
                    Some(why) if before != Some(why) => {
                        tracing::info!(namespace = %name, %why, "namespace paused: nothing new starts for it");
                    }
                    None if before.is_some() => {
                        tracing::info!(namespace = %name, "the pause of the namespace has ended");
                    }
                    _ => {}
                }
            }
            Delivery::NamespaceDeleted(_) => self.metrics.delivered(Kind::Namespace),
            Delivery::Schedule(_) | Delivery::ScheduleDeleted(_) => self.metrics.delivered(Kind::Schedule),
        }
        self.index.apply(delivery, self.settings.clock.now());
    }

    /// Begins to work on a view that has just become complete, unless a run exists in another execution namespace.
    pub(super) fn begin(&mut self) -> Result<(), EngineError> {
        tracing::info!(targets = self.index.len(), "caches synced");
        self.show();
        if let Some(execution) = self.index.elsewhere().next() {
            return Err(EngineError::OtherNamespace { execution: execution.clone() });
        }
        self.tell_of_ends(); // the term may have begun before the view was complete
        Ok(())
    }

    /// Announces the ends of the last minute, because the last leader may have failed to announce them.
    pub(super) fn tell_of_ends(&mut self) {
        if self.leads && self.index.is_synced() {
            for (execution, end) in self.ends.take(self.settings.clock.now()) {
                self.performer.announce(NewEvent::end_shown(&execution, end));
            }
        }
    }

    /// Checks whether the watch of schedules works. If it fails, schedules create no executions, but nothing else is
    /// delayed.
    pub(super) fn hear_schedules(&mut self) {
        let silence = self.staleness.silence(Kind::Schedule);
        let silent = || (silence > self.settings.max_staleness).then(|| silent(Kind::Schedule, silence));
        let why = self.health.failure(Kind::Schedule).or_else(silent);
        self.index.hear_schedules(why.is_none());
        self.health.unscheduled(why);
        self.enqueue_changed();
    }

    /// Describes the watch that has been silent for too long, so that the view cannot be trusted; `None` if there is
    /// none.
    pub(super) fn stale(&self) -> Option<String> {
        let (kind, silence) = self.staleness.longest_silence();
        (silence > self.settings.max_staleness).then(|| silent(kind, silence))
    }

    /// Returns whether the CRD of executions lacks a field that decisions depend on. Then the operator decides nothing.
    pub(super) fn is_unfit(&self) -> bool {
        matches!(*self.settings.fitness.borrow(), Fitness::Unfit(_))
    }

    /// Returns why the view cannot be trusted now; `None` if it can.
    pub(super) fn blind(&self) -> Option<String> {
        if !self.index.is_synced() {
            let why = self.health.failing();
            let unsynced: Vec<&str> = self.index.unsynced().into_iter().map(Kind::label).collect();
            return Some(why.unwrap_or_else(|| format!("it is still listing {}", unsynced.join(", "))));
        }
        if let Some(why) = self.health.failing().filter(|_| self.index.is_listing()) {
            return Some(why);
        }
        self.stale()
    }
}

fn silent(kind: Kind, silence: Duration) -> String {
    format!("the watch of {} has been silent for {} s", kind.label(), silence.as_secs())
}
