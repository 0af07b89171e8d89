//! What happens in a play, line by line, and the totals.

mod begins;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use wfe_core::action::{Ending, Record, Says};
use wfe_core::blocks::TargetBlocks;
use wfe_core::ending::{Conflict, Failure, Skip};
use wfe_core::execution::Execution;
use wfe_core::name::{ExecutionId, ScheduleId};
use wfe_core::policy::Policy;
use wfe_core::reason::BlockReason;
use wfe_core::schedule::{Outcome, ScheduleStatus};
use wfe_core::triage::State;
use wfe_core::{Time, duration};
use wfe_view::index::{CircuitNews, Key};

use super::drawing::Drawing;
use super::timeline::{Line, Timeline};
use super::totals::Totals;
use crate::moment::beside;

/// The story of a play.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) start: Time,
    /// Whether the play begins with the objects of a cluster. The ends of runs are then assumptions, and times are
    /// shown as dates.
    from_cluster: bool,
    /// What happened.
    pub(super) timeline: Timeline,
    /// The lanes of the targets.
    pub(super) drawing: Drawing,
    /// When the play has ended.
    pub(super) ended: Time,
    /// The totals of the play.
    pub(super) totals: Totals,
    blocked: BTreeMap<Key, Block>,
    /// The targets whose last execution has failed.
    failing: BTreeSet<Key>,
    /// The names of targets, by key.
    names: HashMap<Key, String>,
    /// The schedules that a triage has paused.
    paused: BTreeSet<String>,
    last_recovery: Option<Time>,
}

/// What blocks a target until a person clears it.
#[derive(Debug)]
struct Block {
    since: Time,
    by: String,
    skipped: u64,
}

impl Story {
    pub(super) fn new(start: Time, from_cluster: bool) -> Self {
        Self {
            start,
            from_cluster,
            timeline: Timeline::default(),
            drawing: Drawing::default(),
            ended: start,
            totals: Totals::default(),
            blocked: BTreeMap::new(),
            failing: BTreeSet::new(),
            names: HashMap::new(),
            paused: BTreeSet::new(),
            last_recovery: None,
        }
    }

    /// Shows a time as the time since the start: `7m00`, `1h07m00`. In a play of a cluster, shows it as other commands
    /// do.
    pub(super) fn time(&self, at: Time) -> String {
        if self.from_cluster {
            return beside(at, self.start);
        }
        let seconds = (at - self.start).num_seconds();
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 { format!("{hours}h{minutes:02}m{seconds:02}") } else { format!("{minutes}m{seconds:02}") }
    }

    /// Returns a time of the API.
    pub(super) fn date(at: Time) -> String {
        DateTime::<Utc>::to_rfc3339_opts(&at, SecondsFormat::Secs, true)
    }

    /// Returns how long after the start a time is, in seconds.
    pub(super) fn seconds(&self, at: Time) -> u64 {
        u64::try_from((at - self.start).num_seconds()).unwrap_or_default()
    }

    /// A run is released. One that fails at once has no line of its own.
    pub(super) fn runs(&mut self, at: Time, key: &Key, execution: &Execution, lasts: Duration) {
        self.totals.runs += 1;
        if lasts.is_zero() {
            return;
        }
        let attempt = execution.retry.as_ref().filter(|retry| retry.current() > 1);
        let why = attempt
            .map_or_else(String::new, |retry| format!("attempt {} of {}", retry.current(), retry.policy.max_attempts));
        let line = self.about(at, key, "runs", &execution.id, why);
        self.add(Line { is_scheduled: execution.child.is_some(), ..line });
    }

    /// The status of an execution is about to say something new.
    pub(super) fn says(&mut self, at: Time, key: &Key, execution: &Execution, says: &Says, policy: &Policy) {
        let id = Some(&execution.id);
        match says {
            Says::Ended { ending: Ending::Completed(success), .. } => {
                self.totals.completed += 1;
                if self.failing.remove(key) {
                    self.last_recovery = Some(at);
                }
                // The cooldown does not hold between the children of schedules.
                let cools = !policy.cooldown_period.is_zero() && execution.child.is_none();
                let until = cools.then(|| success.completed_at + policy.cooldown_period);
                let why = until.map(|it| format!("cooldown of {} until {}", execution.workflow_id, self.time(it)));
                let line = self.about(at, key, "Completed", &execution.id, why.unwrap_or_default());
                let (is_scheduled, is_supposed) = (execution.child.is_some(), self.from_cluster);
                self.add(Line { is_scheduled, is_supposed, until, ..line });
            }
            Says::Ended { ending: Ending::Failed(failure), .. } => {
                self.totals.failed += 1;
                self.failing.insert(key.clone());
                let why = self.failed(execution, failure, policy);
                let line = self.about(at, key, "failed", &execution.id, why);
                // Without an outcome there was no run, or it is gone.
                let is_supposed = self.from_cluster && failure.outcome.is_some();
                let until = failure.charge.next_allowed_execution.filter(|_| failure.blocks().is_none());
                self.add(Line { is_supposed, until, ..line });
            }
            Says::Retry { attempt, of, end, not_before, .. } => {
                let reason = end.reason.map_or("Unknown", |reason| reason.as_str());
                let why = format!("{reason}, attempt {attempt} of {of}, next {}", self.time(*not_before));
                let line = self.about(at, key, "waits", &execution.id, why);
                self.add(Line { is_supposed: self.from_cluster, until: Some(*not_before), ..line });
            }
            Says::Waiting { waiting, .. } | Says::HeldBack { waiting } => {
                self.tell(at, key, "waits", id, waiting.reason().to_owned());
            }
            Says::Freed => self.tell(at, key, "free", id, "its tasks and pods have ended".to_owned()),
            Says::Cleared { effective: false, .. } => {
                self.tell(at, key, "cleared", id, "nothing was blocked by it".to_owned());
            }
            _ => {}
        }
    }

    /// Describes a failure, with what follows from it for the target.
    fn failed(&self, execution: &Execution, failure: &Failure, policy: &Policy) -> String {
        let mut why = failure.shown_reason().to_owned();
        if let Some(code) = failure.task.as_ref().and_then(|task| task.exit_code) {
            let _ = write!(why, " (exit {code})");
        }
        let charge = failure.charge;
        match failure.blocks() {
            Some(BlockReason::PreviousExecutionFailed) => return why + " half way: BLOCKED, needs a person",
            Some(BlockReason::ExhaustedRetries) => {
                let limit = policy.max_consecutive_failures;
                let _ = write!(why, ", {} of {limit}: EXHAUSTED, needs a person", charge.consecutive_failures);
                return why;
            }
            None => {}
        }
        if failure.shared_outage {
            why.push_str(", shared outage");
        } else if charge.consecutive_failures > 0 && execution.child.is_none() && !failure.cancelled {
            let _ = write!(why, ", {}", charge.consecutive_failures);
            if policy.max_consecutive_failures > 0 {
                let _ = write!(why, " of {}", policy.max_consecutive_failures);
            }
        }
        if let Some(next) = charge.next_allowed_execution {
            let _ = write!(why, ", next {}", self.time(next));
        }
        why
    }

    /// An execution is skipped.
    pub(super) fn skipped(&mut self, at: Time, key: &Key, execution: &Execution, skip: &Skip) {
        let until =
            |until: &Option<Time>| until.map_or_else(String::new, |until| format!(" until {}", self.time(until)));
        let mut skipped = self.totals.skipped;
        let target = self.names.get(key).map_or("", String::as_str);
        let (count, why) = match skip {
            Skip::ResourceBusy(Conflict { holder, draining, next, .. }) => {
                let how = match (draining, next) {
                    (true, _) => " drains",
                    (_, Some(_)) => " tries again",
                    _ => " runs",
                };
                (&mut skipped.busy, format!("ResourceBusy, {}{how}", shown(holder, target)))
            }
            Skip::PreviousExecutionFailed { failed, .. } => {
                let why = format!("PreviousExecutionFailed, {} failed", shown(&failed.execution, target));
                (&mut skipped.blocked, why)
            }
            Skip::ExhaustedRetries { failures, .. } => {
                (&mut skipped.exhausted, format!("ExhaustedRetries, {failures} failures in a row"))
            }
            Skip::Backoff { until: end, .. } => (&mut skipped.backoff, format!("backoff{}", until(end))),
            Skip::Cooldown { until: end, .. } => (&mut skipped.cooldown, format!("cooldown{}", until(end))),
        };
        *count += 1;
        self.totals.skipped = skipped;
        if let Some(block) = self.blocked.get_mut(key) {
            block.skipped += 1;
        }
        self.tell(at, key, "skipped", Some(&execution.id), why);
    }

    /// The status of a schedule is about to change.
    pub(super) fn schedule(&mut self, at: Time, record: &Record, was: &ScheduleStatus) {
        let is = &record.status;
        let name = named(&record.schedule);
        if let Some(run) = is.last_run.as_ref().filter(|run| was.last_run.as_ref() != Some(run))
            && run.outcome == Some(Outcome::Refused)
        {
            self.line(at, &name, "refused", None, run.message.as_deref().unwrap_or_default().to_owned());
        }
        if is.failure_count > was.failure_count {
            let next = is
                .next
                .map_or_else(String::new, |next| format!(", next {} ({})", self.time(next.at), next.why.as_str()));
            self.line(at, &name, "waits", None, format!("{} failed in a row{next}", is.failure_count));
        }
        if let Some(missed) = is.last_missed.filter(|missed| was.last_missed != Some(*missed)) {
            let used = was.last_run.as_ref().map(|run| run.slot).max(was.planned_from);
            self.totals.missed += u64::from(missed.beyond(was.last_missed, used));
        }
        // The end of a hold needs no line: the run that follows shows it.
        if let Some(reason) = is.held.by().filter(|reason| was.held.by() != Some(*reason)) {
            self.totals.held += 1;
            self.line(at, &name, "held", None, reason.as_str().to_owned());
        }
        let state = |status: &ScheduleStatus| status.triage.as_ref().map(|triage| (triage.of.clone(), triage.state));
        if let Some(triage) = is.triage.as_ref().filter(|_| state(is) != state(was)) {
            let why = triage.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            let verdict = triage.verdict.map_or(triage.state.as_str(), |verdict| verdict.as_str());
            self.line(at, &name, "triage", None, format!("{verdict}{why}"));
        }
        if is.triage.as_ref().is_some_and(|triage| triage.state == State::Paused) {
            self.paused.insert(name);
        } else {
            self.paused.remove(&name);
        }
    }

    /// Circuits have changed.
    pub(super) fn circuits(&mut self, news: &[CircuitNews], at: Time) {
        for news in news {
            let (what, why) = match news {
                CircuitNews::Opened(it) => ("opened", format!("{}, {} targets", it.fingerprint, it.failed)),
                CircuitNews::Closed(it) => ("closed", format!("{}: {}", it.fingerprint, it.why.as_str())),
                CircuitNews::Probed { completed: true, .. } => continue, // it closes the circuit
                CircuitNews::Probed { fingerprint, .. } => ("probed", format!("{fingerprint}: the probe failed")),
            };
            self.line(at, "circuit", what, None, why);
        }
    }

    /// A decision has shown what blocks a target.
    pub(super) fn stands(&mut self, key: &Key, name: &str, blocks: &TargetBlocks, at: Time) {
        if !self.names.contains_key(key) {
            self.names.insert(key.clone(), name.to_owned());
        }
        let by = blocks.blocks.first().and_then(Skip::remediation).map(|it| shown(&it.execution, name));
        match (by, self.blocked.contains_key(key)) {
            (Some(by), false) => {
                self.block(key, name, at, by);
            }
            (None, true) => {
                let ended = self.blocked.remove(key).map(|block| block.since);
                self.drawing.frees(name, at);
                self.totals.blocked_seconds += ended.map_or(0, |since| self.seconds(at) - self.seconds(since));
                let since = ended.map_or_else(String::new, |since| self.time(since));
                self.tell(at, key, "unblocked", None, format!("it was blocked since {since}"));
            }
            _ => {}
        }
    }

    /// A target drains for too long.
    pub(super) fn drains_long(&mut self, at: Time, key: &Key, holder: &ExecutionId) {
        self.tell(at, key, "drains", Some(holder), "for longer than drain-deadline".to_owned());
    }

    /// A person acts.
    pub(super) fn person(&mut self, at: Time, subject: &str, what: &str) {
        let subject = subject.strip_prefix("default/").unwrap_or(subject);
        let line = Line::new(at, subject, "person", None, what.to_owned());
        self.add(Line { is_supposed: self.from_cluster, ..line });
    }

    /// The play ends. The last line of a blocked target or paused schedule names the command that ends it.
    pub(super) fn end(&mut self, at: Time, open: usize) {
        let blocked = std::mem::take(&mut self.blocked);
        for (key, block) in &blocked {
            self.totals.blocked_seconds += self.seconds(at) - self.seconds(block.since);
            let name = self.names.get(key).cloned().unwrap_or_default();
            let lasts = duration::format((at - block.since).to_std().unwrap_or_default());
            let skipped = match block.skipped {
                0 => String::new(),
                skipped => format!("; {skipped} requests skipped for it"),
            };
            let why = format!("for {lasts} by {}{skipped}: kubectl wfe clear {name} --reason '...'", block.by);
            self.totals.blocked_targets.push(name);
            self.tell(at, key, "blocked", None, why);
        }
        for name in std::mem::take(&mut self.paused) {
            let (namespace, own) = name.split_once('/').unwrap_or(("default", &name));
            let why = format!("kubectl wfe schedule resume {own} -n {namespace} --reason '...'");
            self.line(at, &name, "paused", None, why);
            self.totals.paused_schedules.push(name);
        }
        self.timeline.flush();
        self.ended = at;
        self.totals.blocked_targets.sort();
        self.totals.last_recovery_seconds = self.last_recovery.map(|at| self.seconds(at));
        (self.totals.failing_targets, self.totals.open) = (self.failing.len(), open);
    }

    /// A failure blocks a target.
    fn block(&mut self, key: &Key, name: &str, since: Time, by: String) {
        self.drawing.blocks(name, since, &by);
        self.blocked.insert(key.clone(), Block { since, by, skipped: 0 });
    }

    /// Makes a line about an execution on a target.
    fn about(&self, at: Time, key: &Key, what: &'static str, id: &ExecutionId, why: String) -> Line {
        let subject = self.names.get(key).cloned().unwrap_or_default();
        Line::new(at, &subject, what, Some(shown(id, &subject)), why)
    }

    fn tell(&mut self, at: Time, key: &Key, what: &'static str, execution: Option<&ExecutionId>, why: String) {
        let subject = self.names.get(key).cloned().unwrap_or_default();
        let execution = execution.map(|id| shown(id, &subject));
        self.line(at, &subject, what, execution, why);
    }

    fn add(&mut self, line: Line) {
        self.drawing.take(&line);
        self.timeline.add(line);
    }

    fn line(&mut self, at: Time, subject: &str, what: &'static str, execution: Option<String>, why: String) {
        self.add(Line::new(at, subject, what, execution, why));
    }
}

/// Shows a schedule. The namespace `default` is left out.
pub(super) fn named(id: &ScheduleId) -> String {
    let name = id.to_string();
    name.strip_prefix("default/").unwrap_or(&name).to_owned()
}

/// Shows an execution. Its namespace is left out if it is `default`, or that of its target.
fn shown(id: &ExecutionId, target: &str) -> String {
    let is_plain = &*id.namespace == "default" || target.split('/').next() == Some(&*id.namespace);
    if is_plain { id.name.to_string() } else { id.to_string() }
}
