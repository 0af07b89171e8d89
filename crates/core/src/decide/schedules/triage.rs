//! Decides when the failures of a schedule are analysed, and what its status records of the analysis (sections 13.2 and
//! 13.4).
//!
//! A triage advances by writes to the status of its schedule. Each step is derived from the objects, so a restarted
//! operator resumes where the last process stopped. A triage never delays its schedule: children continue while
//! evidence is read and an analyst works.

mod suppress;

use super::{Case, Row, Step};
use crate::Time;
use crate::action::{Action, Analyse, Decision, Gather, TriageDoes, TriageStep};
use crate::moment::{after, round_up};
use crate::schedule::{Child, ChildState, Every, Held, HeldBy, LastRun, Outcome, ScheduleStatus, child_name};
use crate::text::cut;
use crate::triage::apply::{Applied, Bounds, apply};
use crate::triage::{
    Analyst, AnalystRun, AnalystState, FailureSeen, Gathered, Judgement, MOST_FAILURES, State, Suppressed, Triage,
    builtin,
};

/// How long after its latest start an analyst may still appear. None appears later, because an API server answers much
/// sooner.
const LATE: std::time::Duration = std::time::Duration::from_mins(1);

/// The next step of a schedule's triage.
enum Stage<'a> {
    /// No step is due, and time alone does not change that. Contains the reason.
    Rests(String),
    /// The triage would begin, but something prevents it.
    Suppressed {
        /// The reason.
        why: Suppressed,
        /// The reason as text.
        because: String,
        /// When time alone ends the reason.
        until: Time,
    },
    /// The evidence must be read, before this time if there is one.
    Gather(Option<Time>),
    /// The triage begins with this evidence.
    Begin(&'a Gathered),
    /// An analyst must be created with this evidence.
    Create(&'a Gathered),
    /// The evidence for the analyst differs from the recorded evidence.
    Regathered(&'a Gathered),
    /// The analyst exists, and the status does not name it yet.
    Name,
    /// The verdict of the analyst must be read.
    Hear,
    /// The verdict of the analyst.
    Heard(&'a Judgement),
    /// The analyst with this name does not exist any more.
    Gone(&'a str),
    /// The triage ends without a verdict. Contains the reason.
    Fail(String),
}

/// Row 4: a triage has paused the schedule, until a person resumes it.
pub(super) fn paused(case: Case<'_>) -> Row {
    let Some(triage) = case.schedule.status.paused_by() else { return Row::Passes("no triage has paused it".into()) };
    let message = pause_message(triage);
    let held = Held::By { reason: HeldBy::TriagePaused, message: message.clone().into() };
    let status = ScheduleStatus { next: None, held, ..case.status() };
    let step = Step::says(status, format!("held, TriagePaused: {message}"));
    Row::Decides(Step { held: Some(HeldBy::TriagePaused), ..step })
}

/// How many characters of an analyst's explanation a pause quotes; `status.triage.why` contains all of it. With the
/// name of an execution and the advice, the message stays below the 1,024 characters of a condition that are read back.
/// A longer text would be written again and again.
const QUOTED: usize = 500;

/// Returns why a triage has paused a schedule, and who can end the pause.
pub(super) fn pause_message(triage: &Triage) -> String {
    let why = cut(triage.why.as_deref().unwrap_or("it did not say why"), QUOTED);
    format!(
        "the triage of {} has paused it: {why}; it runs again after an edit of its plan or template, or when somebody \
         with the right to resume sets spec.resume (kubectl wfe schedule resume)",
        triage.of
    )
}

/// Row 4, second half: the triage must record something in the status.
pub(super) fn speaks(case: Case<'_>) -> Row {
    match stage(case, &case.schedule.status) {
        Stage::Rests(because) | Stage::Suppressed { because, .. } => Row::Passes(because.into()),
        Stage::Gather(_) => Row::Passes("the evidence for a triage is read".into()),
        Stage::Create(_) => Row::Passes("the analyst of its triage is created".into()),
        Stage::Hear => Row::Passes("the verdict of its triage is read".into()),
        Stage::Begin(gathered) => case.begins(gathered),
        Stage::Regathered(gathered) => {
            let of = |triage: Triage| Triage { evidence: Some(gathered.digest.clone()), ..triage };
            Row::Decides(case.says_of_triage(of, "its evidence was read anew"))
        }
        Stage::Name => {
            let run = case.schedule.analyst.as_deref().map(|it| (it.id.name.clone(), it.id.uid.clone()));
            Row::Decides(case.says_of_triage(|triage| Triage { run, ..triage }, "its analyst is at work"))
        }
        Stage::Heard(judgement) => match case.schedule.status.triage.as_deref() {
            Some(triage) => case.applies(judgement, triage.clone()),
            None => Row::Passes("no triage has begun".into()),
        },
        Stage::Gone(analyst) => {
            let step = case.fails("the execution that analysed was deleted");
            Row::Decides(Step { gone: Some(analyst.into()), ..step })
        }
        Stage::Fail(why) => Row::Decides(case.fails(&why)),
    }
}

/// Requests the actions that a triage needs besides writes to the status, once rows 0 to 4 have passed.
pub(super) fn ask(case: Case<'_>, decision: &mut Decision) {
    let schedule = case.schedule;
    let (of, does) = match stage(case, &schedule.status) {
        Stage::Suppressed { until, .. } => return decision.wake_at(until),
        Stage::Gather(until) => {
            if let Some(until) = until {
                decision.wake_at(until);
            }
            (case.failed_child(&schedule.status), TriageDoes::Gather(Box::new(case.gather())))
        }
        Stage::Create(gathered) => {
            let Some(triage) = &schedule.status.triage else { return };
            let analyse = Analyse {
                generation: schedule.generation,
                start_before: round_up(after(triage.at, schedule.triage.timeout)),
                timeout: schedule.triage.timeout,
                evidence: gathered.text.clone(),
            };
            decision.wake_at(after(analyse.start_before, LATE));
            (Some(gathered.of.clone()), TriageDoes::Analyse(Box::new(analyse)))
        }
        Stage::Hear => {
            let Some(analyst) = &schedule.analyst else { return };
            let of = schedule.status.triage.as_ref().map(|triage| triage.of.clone());
            (of, TriageDoes::ReadVerdict(analyst.id.clone()))
        }
        Stage::Rests(_)
        | Stage::Begin(_)
        | Stage::Regathered(_)
        | Stage::Name
        | Stage::Heard(_)
        | Stage::Gone(_)
        | Stage::Fail(_) => return,
    };
    let Some(of) = of else { return };
    decision.actions.push(Action::Triage(TriageStep { schedule: schedule.id.clone(), of, does }));
}

/// Returns why a recorded failure starts no triage, if it otherwise would.
pub(super) fn suppressed(case: Case<'_>, status: &ScheduleStatus) -> Option<Suppressed> {
    match due(case, status) {
        Stage::Suppressed { why, .. } => Some(why),
        _ => None,
    }
}

fn stage<'a>(case: Case<'a>, status: &'a ScheduleStatus) -> Stage<'a> {
    match &status.triage {
        Some(triage) if triage.state == State::Analysing => analysing(case, triage),
        _ => due(case, status),
    }
}

/// Returns whether a triage begins now (section 13.2).
fn due<'a>(case: Case<'a>, status: &ScheduleStatus) -> Stage<'a> {
    let Case { schedule, view, .. } = case;
    let spec = &schedule.triage;
    let rests = Stage::Rests;
    if spec.analyst == Analyst::Off {
        return rests("spec.triage.analyst is Off".to_owned());
    }
    if view.policy.triage.max_per_hour == 0 {
        return rests("triage-max-per-hour is 0, so no triage begins".to_owned());
    }
    let (count, after_) = (status.failure_count, spec.after);
    if count < after_ {
        return rests(format!("{count} of the {after_} failures in a row that begin a triage"));
    }
    let Some(of) = case.failed_child(status) else {
        return rests("its last run has not failed".to_owned());
    };
    if status.triage.as_ref().is_some_and(|triage| triage.of == of) {
        return rests(format!("{of} has had its triage"));
    }
    if schedule.paused.is_some() || view.policy.paused_by.is_some() {
        return rests("no triage begins during a pause".to_owned());
    }
    let in_the_way = suppress::suppressors(case, status);
    if let Some((why, because, until)) = in_the_way.first() {
        let until = in_the_way.iter().map(|(.., until)| *until).max().unwrap_or(*until);
        return Stage::Suppressed { why: *why, because: because.clone(), until };
    }
    match schedule.memory.triage_evidence.as_deref() {
        Some(gathered) if gathered.of == of => Stage::Begin(gathered),
        _ => Stage::Gather(None),
    }
}

/// Returns the next step with an analyst that is a workflow.
fn analysing<'a>(case: Case<'a>, triage: &'a Triage) -> Stage<'a> {
    let Case { schedule, view, .. } = case;
    let heard =
        schedule.memory.analyst_answer.as_deref().filter(|heard| heard.of == triage.of).map(|heard| &heard.said);
    match heard {
        Some(Ok(judgement)) => return Stage::Heard(judgement),
        Some(Err(why)) => return Stage::Fail(why.to_string()),
        None => {}
    }
    let is_of = |analyst: &&AnalystRun| *child_name(&schedule.id.name, analyst.of) == *triage.of;
    let Some(analyst) = schedule.analyst.as_deref().filter(is_of) else {
        let begins_by = after(after(triage.at, schedule.triage.timeout), LATE);
        if let Some((analyst, _)) = &triage.run {
            return Stage::Gone(analyst);
        }
        return match schedule.memory.triage_evidence.as_deref().filter(|gathered| gathered.of == triage.of) {
            _ if view.now >= begins_by => {
                Stage::Fail("the execution that was to analyse could not be created in time".to_owned())
            }
            None => Stage::Gather(Some(begins_by)),
            Some(gathered) if triage.evidence.as_ref() != Some(&gathered.digest) => Stage::Regathered(gathered),
            Some(gathered) => Stage::Create(gathered),
        };
    };
    match &analyst.state {
        _ if triage.run.as_ref().is_none_or(|(_, uid)| *uid != analyst.id.uid) => Stage::Name,
        AnalystState::AtWork => Stage::Rests(format!("{} analyses its failures", analyst.id)),
        AnalystState::Completed => Stage::Hear,
        AnalystState::Ended(how) => Stage::Fail(format!("{} ended without a verdict: {how}", analyst.id)),
    }
}

impl<'a> Case<'a> {
    /// Returns the name of the last child, if that failed or was refused.
    fn failed_child(self, status: &ScheduleStatus) -> Option<Box<str>> {
        if let Some(triage) = status.triage.as_ref().filter(|triage| triage.state == State::Analysing) {
            return Some(triage.of.clone());
        }
        let failed = |last: &&LastRun| {
            Some(last.slot) > status.planned_from && matches!(last.outcome, Some(Outcome::Failed | Outcome::Refused))
        };
        let last = status.last_run.as_ref().filter(failed)?;
        Some(child_name(&self.schedule.id.name, last.slot).into())
    }

    /// Returns the children that failed in a row in this plan, newest first, with the time at which each one ended.
    fn failures(self, status: &ScheduleStatus) -> impl Iterator<Item = (&'a Child, Option<Time>)> {
        let (from, success) = (status.planned_from, status.last_success);
        let newest_first = self.schedule.children.iter().rev().filter(move |child| Some(child.slot) > from);
        newest_first.filter_map(move |child| match &child.state {
            ChildState::Ended { outcome: Outcome::Failed, at, .. } if *at > success => Some((child, *at)),
            _ => None,
        })
    }

    /// Returns which evidence must be read.
    fn gather(self) -> Gather {
        let Self { schedule, view, .. } = self;
        let status = &schedule.status;
        let refused = status.last_run.as_ref().filter(|last| last.outcome == Some(Outcome::Refused));
        // A refused child never ran, so the failures of other children are not relevant.
        let failed = self.failures(status).filter(|_| refused.is_none());
        Gather {
            target: view.target.label().into(),
            failure_count: status.failure_count,
            last_success: status.last_success,
            // A circuit of a workflow concerns schedules of other users (otherwise no triage would begin), and its name
            // contains free text of those users.
            open_circuits: view
                .target
                .circuits
                .open()
                .filter(|circuit| !circuit.fingerprint.is_of_workflow())
                .map(|circuit| circuit.fingerprint.as_str().into())
                .collect(),
            default_timeout: view.policy.default_timeout,
            children: failed.take(MOST_FAILURES).map(|(it, _)| (it.slot, it.uid.clone())).collect(),
            refused: refused.map(|last| FailureSeen {
                name: child_name(&schedule.id.name, last.slot).into(),
                failed_at: last.ended_at,
                reason: None,
                was_execution_failure: false,
                task: None,
                step: None,
                exit_code: None,
                ran_for: None,
                fingerprint: last.fingerprint.clone(),
                message: last.message.clone().unwrap_or_default(),
            }),
        }
    }

    /// Starts a triage. The verdict of the built-in analyst is known at once.
    fn begins(self, gathered: &Gathered) -> Row {
        let schedule = self.schedule;
        let triage = Triage {
            of: gathered.of.clone(),
            at: round_up(self.view.now),
            analyst: schedule.triage.analyst,
            run: None,
            fingerprint: gathered.evidence.common().cloned(),
            evidence: Some(gathered.digest.clone()),
            verdict: None,
            why: None,
            fix: None,
            refused: Vec::new(),
            state: State::Analysing,
        };
        if schedule.triage.analyst == Analyst::BuiltIn {
            return self.applies(&builtin::judge(&gathered.evidence), triage);
        }
        let status = ScheduleStatus { triage: Some(Box::new(triage)), ..self.status() };
        Row::Decides(Step::says(status, "a triage begins"))
    }

    /// Applies the verdict of an analyst: records it, and carries out the effect that it may have.
    fn applies(self, judgement: &Judgement, triage: Triage) -> Row {
        let Self { schedule, .. } = self;
        let Ok(plan) = &schedule.plan else { return Row::Passes("its spec cannot be used".into()) };
        let status = self.status();
        // The verdict concerns failures that have ended. It has no effect after a later success, or after the plan
        // began anew.
        let goes_on = status.last_success.is_none_or(|at| at <= triage.at) && status.planned_from <= Some(triage.at);
        let is_failing = goes_on && status.failure_count >= schedule.triage.after;
        let intervals = match plan.every {
            Every::Interval(_) => Some(plan.min_interval..=plan.max_interval),
            Every::Cron(_) => None,
        };
        let timeout = schedule.triage.template_timeout.unwrap_or(self.view.policy.default_timeout);
        let bounds = Bounds { intervals, timeout };
        let Applied { state, why, fix, adjust, refused } =
            apply(judgement, &schedule.triage, &bounds, status.adjust.as_deref(), is_failing);
        let triage = Triage { verdict: Some(judgement.verdict), why: Some(why), fix, refused, state, ..triage };
        let because = format!("the verdict of its triage is {}: {}", judgement.verdict.as_str(), state.as_str());
        let adjust = adjust.map(Box::new);
        let held = match state {
            State::Paused => Held::By { reason: HeldBy::TriagePaused, message: pause_message(&triage).into() },
            _ => status.held.clone(),
        };
        let next = status.next.filter(|_| state != State::Paused);
        let status = ScheduleStatus { triage: Some(Box::new(triage)), adjust, held, next, ..status };
        let step = Step::says(status, because);
        Row::Decides(Step { held: (state == State::Paused).then_some(HeldBy::TriagePaused), ..step })
    }

    fn says_of_triage(self, change: impl FnOnce(Triage) -> Triage, because: &str) -> Step {
        let status = self.status();
        let triage = status.triage.as_deref().cloned().map(change).map(Box::new);
        Step::says(ScheduleStatus { triage, ..status }, because.to_owned())
    }

    fn fails(self, why: &str) -> Step {
        let of = |triage: Triage| Triage { state: State::Failed, why: Some(why.into()), ..triage };
        self.says_of_triage(of, &format!("its triage has failed: {why}"))
    }
}
