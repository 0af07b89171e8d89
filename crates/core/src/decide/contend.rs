//! Decides which execution gets the next turn: all undecided executions of a target are judged together.

use std::time::Duration;

use super::{View, own_run};
use crate::Time;
use crate::action::{Action, Decision, Ending, Says, Write};
use crate::chain::RunNumber;
use crate::duration;
use crate::ending::{Failure, Skip};
use crate::evidence::{Absence, Started};
use crate::execution::{Execution, ExecutionState};
use crate::fingerprint::Stage;
use crate::history::Weight;
use crate::limit::Ask;
use crate::moment::{after, round_up};
use crate::name::{ExecutionId, Uid};
use crate::reason::{FailureReason, Refusal};
use crate::rules::{self, Contender};
use crate::run::{Owner, Presence, Run};
use crate::target::Target;
use crate::tries::{Trouble, TroubleKind};
use crate::verdict::Fact;
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Judges all executions that ask for a turn, oldest first, then by uid.
pub(super) fn decide_contenders(view: View<'_>, decision: &mut Decision) {
    let mut failures = Failures::new(view);
    let running = view.target.running();
    let mut judged: Vec<(Contender<'_>, Verdict)> = Vec::new();
    for contender in contenders(view, &running) {
        match contender.run {
            // Another program released the run: the execution commits to a run that is or was active, so that the
            // status shows it.
            Some(run) if !run.is_pending() => {
                decision.actions.push(commit(view, contender.execution, run, Left::OfOthers));
            }
            _ => {
                if let Some(refusal) = refusal_of(&contender) {
                    failures.add(contender.execution, refusal.reason, &refusal.message, Some(refusal.number), true);
                } else {
                    judged.push((contender, judge(&contender, decision)));
                }
            }
        }
    }
    // Executions that fail without taking a turn fail first. The other executions are judged with those failures
    // counted, also at the look.
    judged.retain(|(contender, verdict)| match verdict {
        Verdict::Fail { reason, message, counts } => {
            failures.add(contender.execution, *reason, message, None, *counts);
            false
        }
        _ => true,
    });
    let failing = failures.first_that_counts().cloned();
    let creating = decision.actions.iter().find_map(|action| match action {
        Action::Create { execution, .. } => Some(execution.clone()),
        _ => None,
    });
    // The execution that has the turn; no other execution gets a turn in this decision.
    let mut first = failing.clone().or(creating);
    for (contender, verdict) in judged {
        let execution = contender.execution;
        match (verdict, contender.run) {
            (Verdict::Run, Some(_)) if let Some(failing) = &failing => {
                decision.waiting.push((execution.id.clone(), Waiting::Turn(Box::new(failing.clone()))));
            }
            (Verdict::Run, Some(run)) => decision.actions.push(commit(view, execution, run, Left::OfOthers)),
            (Verdict::Run, None) if has_run_to_withdraw(view.target, execution) => {
                decision.waiting.push((execution.id.clone(), Waiting::Withdrawn));
            }
            (Verdict::Run, None) if let Some(first) = &first => {
                decision.waiting.push((execution.id.clone(), Waiting::Turn(Box::new(first.clone()))));
            }
            (Verdict::Run, None) => {
                first = Some(execution.id.clone());
                create(&contender, &mut failures, decision);
            }
            (Verdict::Wait(waiting @ (Waiting::OwnerLate | Waiting::Guard)), _) | (Verdict::Wait(waiting), None) => {
                decision.waiting.push((execution.id.clone(), waiting));
            }
            (Verdict::Wait(_), Some(_)) => decision.actions.push(give_up(view.target, execution)),
            // `cleanup` deletes the pending run of a terminal execution.
            (Verdict::Skip { skip, fact }, _) => add_skip(decision, execution, skip, fact),
            (Verdict::Fail { .. }, _) => {} // dealt with above
        }
    }
    failures.write(decision);
}

fn contenders<'a>(view: View<'a>, running: &'a [&'a Execution]) -> impl Iterator<Item = Contender<'a>> {
    let View { target, history, policy, now } = view;
    let mut undecided: Vec<&Execution> =
        target.executions.values().filter(|execution| execution.is_undecided()).collect();
    undecided.sort_by(|a, b| (a.created, &a.id.uid).cmp(&(b.created, &b.id.uid)));
    let with_run = move |execution| (execution, own_run(target, execution));
    undecided.into_iter().map(with_run).map(move |(execution, run)| Contender {
        target,
        running,
        history,
        execution,
        run,
        policy,
        now,
    })
}

/// Applies the rules, and records in the decision what each rule found.
fn judge(contender: &Contender<'_>, decision: &mut Decision) -> Verdict {
    let judgement = rules::judge_with_limits(contender);
    if let Verdict::Wait(Waiting::Limit(_)) = judgement.verdict {
        let Contender { target, execution, policy, .. } = contender;
        let limits = target.limits_of(execution, &policy.limits);
        decision.ask_for_place(Ask { limits, since: execution.created, uid: execution.id.uid.clone() });
    }
    if let Some(until) = judgement.until() {
        decision.wake_at(until);
    }
    let verdict = judgement.verdict.clone();
    decision.judged.push((contender.execution.id.clone(), judgement));
    verdict
}

/// Returns the refused create of an execution's run, unless a run of the execution exists after all.
fn refusal_of<'a>(contender: &Contender<'a>) -> Option<&'a Refusal> {
    contender.execution.recall().refusal.as_ref().filter(|_| contender.run.is_none())
}

/// Creates a run (step a), unless the first try was too long ago (section 5.8).
fn create<'a>(contender: &Contender<'a>, failures: &mut Failures<'a>, decision: &mut Decision) {
    let (execution, number) = (contender.execution, contender.target.next_number());
    if let Some(deadline) = create_deadline(failures.view, execution) {
        if deadline <= contender.now {
            return failures.add_uncreated(contender.execution);
        }
        decision.wake_at(deadline);
    }
    let at_most = execution.retry.as_ref().map(|retry| retry.policy.max_duration);
    decision.actions.push(Action::Create { execution: execution.id.clone(), number, at_most });
    decision.uses_place |= contender.target.has_place(execution);
}

/// Returns when it is too late to create the run of an execution, if the tries are subject to a deadline.
pub(super) fn create_deadline(view: View<'_>, execution: &Execution) -> Option<Time> {
    let first_try = execution.recall().first_try?;
    let has_deadline = view.target.memory.trouble.as_ref().is_none_or(|trouble| trouble.has_deadline());
    has_deadline.then(|| after(first_try, view.policy.start_deadline))
}

/// Returns whether the operator tries to create the execution's run, but Tekton's kinds are missing.
pub(super) fn misses_tekton(execution: &Execution, trouble: &Trouble) -> bool {
    execution.recall().first_try.is_some() && trouble.kind == TroubleKind::TektonUnavailable
}

/// Fails executions that have waited for Tekton's kinds until the start deadline. Without these kinds the operator
/// cannot see the target.
pub(super) fn fail_without_tekton(view: View<'_>, decision: &mut Decision) {
    let Some(trouble) = &view.target.memory.trouble else { return };
    let mut failures = Failures::new(view);
    for execution in view.target.executions.values().filter(|it| it.is_undecided() && misses_tekton(it, trouble)) {
        match create_deadline(view, execution) {
            Some(deadline) if deadline <= view.now => failures.add_uncreated(execution),
            Some(deadline) => decision.wake_at(deadline),
            None => {}
        }
    }
    let is_over = |id: &ExecutionId| failures.all.iter().any(|failing| failing.execution.id == *id);
    decision.waiting.retain(|(id, _)| !is_over(id));
    failures.write(decision);
}

/// Returns whether a run of the execution must still be withdrawn. A run that a finalizer holds never starts, so the
/// operator does not wait for it.
fn has_run_to_withdraw(target: &Target, execution: &Execution) -> bool {
    target.runs.values().any(|run| run.is_owned_by(&execution.id) && !run.never_starts())
}

/// Which runs must be gone before an execution commits to its run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Runs of other executions (first attempt). No earlier run can belong to the execution itself. A run that another
    /// program released is committed to without delay.
    OfOthers,
    /// All runs, including earlier ones of the same execution (later attempts).
    OfAll,
}

/// Commits an execution to its run (step c).
pub(super) fn commit(view: View<'_>, execution: &Execution, run: &Run, left: Left) -> Action {
    let target = view.target;
    let mut gone: Vec<ExecutionId> = target
        .runs
        .values()
        .filter(|other| !other.is_unfinished() && target.owner_of(other).is_none())
        .filter_map(|other| match &other.owner {
            Owner::Execution { id, presence: Presence::Watched, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    gone.sort_by(|a, b| a.uid.cmp(&b.uid));
    gone.dedup();
    let mut facts: Vec<Fact> = gone.into_iter().map(Fact::OwnerGone).collect();
    // The look proves that the view of runs is complete, but not that the watches of tasks and pods are. Before the
    // first run of a chain, nothing can be left.
    match left {
        Left::OfOthers if run.number == 1 => {}
        Left::OfOthers => facts.push(Fact::Drained(execution.id.clone())),
        Left::OfAll => facts.push(Fact::DrainedOfAll(execution.id.clone())),
    }
    let consecutive_failures = view.history.consecutive_failures(view.policy, view.now);
    let (run, number) = (run.id.clone(), run.number);
    execution.says_if(facts, Says::Running { run, number, consecutive_failures })
}

/// Gives up all runs of an execution (the first half of a withdrawal), so it does not matter which of several runs is
/// its own.
fn give_up(target: &Target, execution: &Execution) -> Action {
    let own = target.runs.values().filter(|run| run.is_owned_by(&execution.id));
    execution.says(Says::GaveUp { number: own.map(|run| run.number).max().unwrap_or_default() })
}

/// Executions that fail without getting a turn.
struct Failures<'a> {
    view: View<'a>,
    all: Vec<Failing<'a>>,
}

struct Failing<'a> {
    execution: &'a Execution,
    reason: FailureReason,
    message: Box<str>,
    number: Option<RunNumber>,
    stage: Stage,
    counts: bool,
    cancelled: bool,
}

impl Failing<'_> {
    /// Returns the position that the failure will have in the history.
    fn turn_order(&self) -> (bool, Option<RunNumber>, &Uid) {
        (self.number.is_none(), self.number, &self.execution.id.uid)
    }
}

impl<'a> Failures<'a> {
    fn new(view: View<'a>) -> Self {
        Self { view, all: Vec::new() }
    }

    fn add(
        &mut self,
        execution: &'a Execution,
        reason: FailureReason,
        message: &str,
        number: Option<RunNumber>,
        counts: bool,
    ) {
        // An execution that was cancelled and is too late counts as cancelled: the rule of cancellation comes first.
        let cancelled = !counts && execution.cancelled(self.view.target.guard).is_some();
        // A child's failure counts only for its schedule.
        let counts = counts && execution.child.is_none();
        // An execution with a run number was about to get a run.
        let stage = if number.is_some() { Stage::Creating } else { Stage::Asking };
        self.all.push(Failing { execution, reason, message: message.into(), number, stage, counts, cancelled });
    }

    /// Adds an execution whose run could not be created before the start deadline.
    fn add_uncreated(&mut self, execution: &'a Execution) {
        let (reason, message) = uncreated(self.view);
        self.add(execution, reason, &message, Some(self.view.target.next_number()), true);
    }

    /// Returns the first failure that counts for the target, if any.
    fn first_that_counts(&self) -> Option<&ExecutionId> {
        let counting = self.all.iter().filter(|failing| failing.counts);
        counting.min_by_key(|failing| failing.turn_order()).map(|failing| &failing.execution.id)
    }

    /// Adds the terminal writes. Failures that count are written one after the other, in the order of the history, and
    /// each on a history that contains the previous one. Otherwise, if a write failed, the next status would count a
    /// failure that was never recorded.
    fn write(mut self, decision: &mut Decision) {
        self.all.sort_by(|a, b| a.turn_order().cmp(&b.turn_order()));
        let View { target, now, .. } = self.view;
        // The time is rounded as in a status, so that every reader computes the same from it, and nothing runs early.
        let now = round_up(now);
        let mut written = decision.actions.iter().find_map(|action| match action {
            Action::Write(Write { execution, says: Says::Ended { .. }, .. }) => Some(execution.clone()),
            _ => None,
        });
        for Failing { execution, reason, message, number, stage, counts, cancelled } in self.all {
            if let Some(first) = written.as_ref().filter(|_| counts) {
                decision.waiting.push((execution.id.clone(), Waiting::Turn(Box::new(first.clone()))));
                continue;
            }
            if counts {
                written = Some(execution.id.clone());
            }
            let failure = Failure {
                reason,
                message,
                started: Started::NotStarted(Absence::NoRun),
                task: None,
                tasks: None,
                failed_at: now,
                ran_for: Duration::ZERO,
                number,
                outcome: None,
                cancelled,
                stage,
                fingerprint: None,
                shared_outage: false,
                charge: self.view.charge(now, if counts { Weight::Counts } else { Weight::None }),
                tried: None,
            };
            let facts = nothing_made(target, execution).into_iter().collect();
            decision.actions.push(self.view.ended(execution, facts, Ending::Failed(failure), false));
        }
    }
}

/// Requires that a live read finds no run: an earlier create may have succeeded although its answer was lost, and the
/// watch of runs may be behind.
fn nothing_made(target: &Target, execution: &Execution) -> Option<Fact> {
    let is_usable = matches!(execution.state, ExecutionState::Undecided { unusable: None, .. });
    let may_have_made_one = is_usable && execution.recall().refusal.is_none() && own_run(target, execution).is_none();
    may_have_made_one.then(|| Fact::NothingMade(execution.id.clone(), target.next_number()))
}

/// Returns why the run of an execution could not be created before the start deadline.
pub(super) fn uncreated(View { target, policy, .. }: View<'_>) -> (FailureReason, String) {
    let (reason, why) = match target.memory.trouble.as_deref() {
        Some(Trouble { kind: TroubleKind::TektonUnavailable, words }) => {
            (FailureReason::ConfigurationError, format!("Tekton's kinds are missing; install Tekton: {words}"))
        }
        Some(trouble) => (FailureReason::Unknown, trouble.words.to_string()),
        None => (FailureReason::Unknown, "the API server did not say why".to_owned()),
    };
    let minutes = duration::format(policy.start_deadline);
    (reason, format!("the PipelineRun could not be created within {minutes}: {why}"))
}

/// Adds a skip to the batch with the same reason and fact, so that one live read serves all.
fn add_skip(decision: &mut Decision, execution: &Execution, why: Skip, because: Fact) {
    let one = (execution.id.clone(), execution.version.clone());
    for action in &mut decision.actions {
        if let Action::Skip { skipped, fact, skip } = action
            && *fact == because
            && *skip == why
        {
            skipped.push(one);
            return;
        }
    }
    decision.actions.push(Action::Skip { skipped: vec![one], skip: why, fact: because });
}
