//! Checks a decision as a whole.

use std::collections::BTreeMap;

use super::Check;
use super::record::{Record, next_allowed};
use crate::action::{Action, Decision, Ending, Says, Write};
use crate::ending::Failure;
use crate::execution::Execution;
use crate::fingerprint::Stage;
use crate::name::{ExecutionId, Uid};
use crate::reason::{BlockReason, FailureReason};
use crate::run::Run;
use crate::target::Target;

impl Check<'_> {
    /// Checks removals: without the removed executions the history gives the same results.
    pub(super) fn removals(&mut self, decision: &Decision) {
        let mut rest = self.target.clone();
        for action in &decision.actions {
            if let Action::Remove { execution, .. } = action {
                rest.executions.remove(&execution.uid);
            }
        }
        if rest.executions.len() == self.target.executions.len() {
            return;
        }
        let without = Record::new(&rest, self.policy, self.now);
        let reasons = |record: &Record<'_>, contender: &Execution| -> Vec<&'static str> {
            record.forbids(contender).into_iter().map(|(reason, _)| reason).collect()
        };
        let mut found = Vec::new();
        let lengths = |record: &Record<'_>| (record.counted(self.now).len(), record.row(self.now).len());
        if lengths(&without) != lengths(&self.record) {
            found.push("removed what counts, or what is waited for".to_owned());
        }
        for other in rest.executions.values() {
            let (before, after) = (reasons(&self.record, other), reasons(&without, other));
            if before != after {
                found.push(format!("after the removals {after:?} forbids what {} wants, not {before:?}", other.id));
            }
            let same = |reason| self.record.is_blocked_by(other, reason) == without.is_blocked_by(other, reason);
            if !BlockReason::ALL.into_iter().all(same) {
                found.push(format!("after the removals {} blocks otherwise", other.id));
            }
        }
        for what in found {
            self.require("7", false, || what);
        }
        let highest = |target: &Target| target.executions.values().filter_map(|it| it.run_sequence).max();
        let (before, after) = (highest(self.target), highest(&rest));
        self.require("5", before == after, || format!("the highest number becomes {after:?}, it was {before:?}"));
    }

    /// Checks that the blocks of a target are reported, whether or not an execution asks for a turn.
    pub(super) fn blocks(&mut self, decision: &Decision) {
        let row = self.record.counted(self.now).len();
        let counted = decision.blocks.consecutive_failures;
        self.require("7", usize::try_from(counted).is_ok_and(|it| it == row), || {
            format!("counts {counted}, not {row}")
        });
        for execution in self.target.executions.values() {
            for reason in BlockReason::ALL {
                let told = decision.blocks.blocks.iter().any(|it| {
                    it.reason() == reason.as_str() && it.remediation().is_some_and(|it| it.execution == execution.id)
                });
                let blocks = self.record.is_blocked_by(execution, reason);
                self.require("15", told == blocks, || format!("{} blocks, {reason:?}: {blocks}", execution.id));
            }
        }
    }

    pub(super) fn whole(&mut self, decision: &Decision) {
        let creates = decision.actions.iter().filter(|action| matches!(action, Action::Create { .. })).count();
        self.require("6", creates <= 1, || "more than one gets a turn".to_owned());
        self.require("6", decision.wake.is_none_or(|wake| wake > self.now), || {
            "asks to be woken in the past".to_owned()
        });
        let mut written: BTreeMap<&Uid, u32> = BTreeMap::new();
        for action in &decision.actions {
            match action {
                Action::Create { execution, .. }
                | Action::Write(Write {
                    execution,
                    says: Says::Running { .. } | Says::GaveUp { .. } | Says::Ended { .. },
                    ..
                }) => {
                    *written.entry(&execution.uid).or_default() += 1;
                }
                Action::Skip { skipped, .. } => {
                    for (execution, _) in skipped {
                        *written.entry(&execution.uid).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        self.require("16.3", written.values().all(|count| *count == 1), || format!("decided twice: {written:?}"));
        for execution in self.target.executions.values().filter(|execution| execution.is_undecided()) {
            let waits = decision.waiting.iter().any(|(id, _)| *id == execution.id);
            let is_forgotten = !waits && !written.contains_key(&execution.id.uid);
            self.require("16.6", !is_forgotten, || format!("{} was forgotten", execution.id));
        }
    }

    /// Checks that every failure has a fingerprint which fits its cause.
    fn fingerprint(&mut self, execution: &ExecutionId, failure: &Failure) {
        let Some(fingerprint) = &failure.fingerprint else {
            return self.require("13.1", false, || format!("{execution} ends without a fingerprint"));
        };
        let (reason, subject) = fingerprint.as_str().split_once('/').unwrap_or_default();
        self.require("13.1", reason == failure.reason.as_str(), || format!("{execution}: {fingerprint}"));
        let origin = self.execution(execution).map(|it| &it.origin);
        let workflow = origin.map(|it| format!("workflow/{}@{}", it.workflow_id, it.version)).unwrap_or_default();
        let is_of_image = failure.reason == FailureReason::ImagePullBackOff;
        // If nothing shows why a bundle gave no pipeline, the registry is not blamed.
        let is_unresolved = failure.stage == Stage::Unresolved;
        // A cancellation, or a failure after something ran, does not show anything about the cluster.
        let may_be_clusters = !failure.was_execution_failure() && !failure.cancelled;
        let fits = match subject {
            "cluster" => may_be_clusters && !is_of_image,
            _ if subject.starts_with("registry/") => is_of_image && !failure.cancelled && !is_unresolved,
            _ => subject.starts_with(&workflow) && (!is_of_image || failure.cancelled || is_unresolved),
        };
        self.require("13.1", fits, || format!("{execution}: {fingerprint} of {failure:?}"));
        let is_late = failure.reason == FailureReason::DeadlineExceeded && failure.number.is_none();
        let had_its_turn = self.execution(execution).is_none_or(Execution::started_once);
        let is_excused = failure.was_execution_failure() || failure.cancelled || is_late && !had_its_turn;
        let is_open = self.target.circuits.open().any(|circuit| {
            let was_open = circuit.opened_at <= failure.failed_at && failure.failed_at < circuit.quiet_at;
            was_open && circuit.fingerprint == *fingerprint
        });
        let is_child = self.execution(execution).is_some_and(|it| it.child.is_some());
        let expected = is_open && !is_excused && !is_child;
        self.require("13.5", failure.shared_outage == expected, || {
            format!("{execution} is shared: {}, with {fingerprint}", failure.shared_outage)
        });
    }

    /// Checks that the counter follows from the history: at most one failure that counts is written at a time.
    pub(super) fn counters(&mut self, decision: &Decision) {
        let mut counted = 0;
        for action in &decision.actions {
            let Action::Write(Write { execution, says, .. }) = action else { continue };
            let Says::Ended { ending: Ending::Failed(failure), .. } = says else { continue };
            let Failure { charge, failed_at, .. } = failure;
            let row = self.record.counted(*failed_at).len();
            let to_wait_for = self.record.row(*failed_at).len() + 1;
            let shown = usize::try_from(charge.consecutive_failures).unwrap_or(usize::MAX);
            let expected = charge
                .next_allowed_execution
                .map(|_| next_allowed(self.policy, self.target.label(), to_wait_for, *failed_at));
            let late = charge.next_allowed_execution == expected;
            self.require("16.8", late, || format!("{execution}: {charge:?}, not {expected:?}"));
            let waits = charge.next_allowed_execution.is_some();
            let is_pre_execution = !failure.was_execution_failure();
            self.require("7", is_pre_execution || !waits, || format!("{execution} ran, and counts"));
            self.fingerprint(execution, failure);
            let counts = waits && !failure.shared_outage;
            let exhausts = counts
                && self.policy.max_consecutive_failures > 0
                && charge.consecutive_failures >= self.policy.max_consecutive_failures;
            self.require("6.3", charge.exhausts == exhausts, || format!("{execution} exhausts: {charge:?}"));
            // A failure is excused if a person cancelled the execution, if `startBefore` passed before there was a run,
            // or if the execution is a child of a schedule.
            let had_its_turn = self.execution(execution).is_none_or(Execution::started_once);
            let is_late = failure.reason == FailureReason::DeadlineExceeded && failure.number.is_none();
            let is_child = self.execution(execution).is_some_and(|it| it.child.is_some());
            let is_excused = failure.cancelled || is_late && !had_its_turn || is_child;
            let right = !is_pre_execution || waits != is_excused;
            self.require("7", right, || format!("{execution} counts: {waits}, after {failure:?}"));
            let fits = shown == row + usize::from(counts);
            self.require("16.8", fits, || format!("{execution}: {shown} in a row, after {row}"));
            counted += u32::from(waits && self.execution(execution).is_some_and(|it| !it.started_once()));
        }
        self.require("16.8", counted <= 1, || format!("{counted} failures are written at once, and each counts"));
        let commits = decision.actions.iter().any(|action| match action {
            Action::Write(Write { says: Says::Running { run, .. }, .. }) => {
                self.target.runs.get(&run.uid).is_some_and(Run::is_pending)
            }
            // A further attempt of an execution that already has its turn is not a new turn.
            Action::Create { execution, .. } => self.execution(execution).is_none_or(|it| !it.started_once()),
            _ => false,
        });
        self.require("16.4", counted == 0 || !commits, || "one gets its turn beside a failure that counts".to_owned());
    }
}
