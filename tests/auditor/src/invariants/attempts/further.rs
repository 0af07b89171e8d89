//! The further attempts of an execution with a retry policy: their number, their beginning, and the waits that the
//! policy demands. Some ends of an attempt allow no further one (section 11).

use std::time::Duration;

use serde_json::Value;
use wfe_api::{FailureReason, Phase, conditions};
use wfe_core::duration;

use super::super::Finding;
use crate::Evidence;
use crate::history::{Attempt, Execution, Written, listed, phase, text, waits};
use crate::moment::{Seconds, seconds};
use crate::report::{Counts, Moment, Violation};
use crate::section_7::whole;
use crate::section_11::Retry;

/// The rule that an attempt breaks, and a clause that describes the fault.
type Flaw = (&'static str, String);

/// A write that changes the entry of one attempt in a status.
struct Step<'e, 'a> {
    execution: &'e Execution<'a>,
    retry: &'e Retry,
    /// The index of the attempt in the list, which is the number of attempts before it.
    index: usize,
    at: Moment,
    before: &'a Value,
    after: &'a Value,
}

/// Judges all attempts of an execution with a retry policy.
pub(super) fn judge(evidence: &Evidence<'_>, execution: &Execution<'_>, counts: &mut Counts) -> Vec<Violation> {
    let Some(retry) = &execution.retry else { return Vec::new() };
    let (mut found, mut before) = (Vec::new(), &Value::Null);
    for Written { at, status } in &execution.written {
        let steps = (0..listed(status).len()).map(|index| {
            let (at, after) = (*at, *status);
            Step { execution, retry, index, at, before, after }
        });
        // Writes by other users are not judged: admission refuses a wrong write, or its author is responsible.
        let steps = steps.filter(|step| !evidence.authors.is_strangers(step.at));
        let flaws = steps.filter_map(|step| {
            if step.index > 0 && step.begins() {
                counts.add("attempts");
            }
            step.flaw(evidence)
        });
        found.extend(flaws.map(|(rule, what)| Finding::new(2, rule, what).about(execution, *at)));
        before = status;
    }
    if execution.ended().is_some_and(|ended| waits(execution.at(execution.version_before(ended.at)))) {
        counts.add("ended-waiting");
    }
    let is_told = |rule: &str| found.iter().any(|one: &Violation| one.rule == rule);
    let many = (!is_told("attempt-many")).then(|| too_many_runs(evidence, execution, retry)).flatten();
    let late: Vec<_> = if is_told("attempt-after") { Vec::new() } else { released_late(evidence, execution) };
    found.into_iter().chain(many).chain(late).collect()
}

/// Finds more released runs than the policy allows attempts. The list in the status does not matter.
fn too_many_runs(evidence: &Evidence<'_>, execution: &Execution<'_>, retry: &Retry) -> Option<Violation> {
    let runs = evidence.history.runs.values().filter(|run| run.owner == execution.object.uid);
    let mut released: Vec<Moment> = runs.filter_map(|run| run.released).collect();
    released.sort_unstable();
    let first_too_many = *released.get(retry.max_attempts)?;
    let (count, of) = (released.len(), retry.max_attempts);
    let text = format!("{} had {count} runs released, and its policy allows {of} attempts", execution.object);
    Some(Finding::new(2, "attempt-many", text).about(execution, first_too_many))
}

/// Finds runs of further attempts that were released after the execution had ended.
fn released_late(evidence: &Evidence<'_>, execution: &Execution<'_>) -> Vec<Violation> {
    let Some(ended) = execution.ended() else { return Vec::new() };
    let of_further = execution.attempts.iter().skip(1).filter_map(Attempt::run);
    let runs = of_further.filter_map(|name| {
        let mut own = evidence.history.runs.values().filter(|run| run.owner == execution.object.uid);
        own.find(|run| run.object.name == name)
    });
    let late = runs.filter_map(|run| {
        let released = run.released.filter(|released| ended.at < *released)?;
        let text = format!("{} of {} was released after the end", run.object, execution.object);
        let objects = vec![execution.object.clone(), run.object.clone()];
        let finding = Finding::new(2, "attempt-after", text);
        (!evidence.authors.is_strangers(released))
            .then(|| finding.on(execution.shown_target(), objects, &[released, ended.at]))
    });
    late.collect()
}

// === impl Step ===

impl<'a> Step<'_, 'a> {
    fn was(&self) -> &'a Value {
        listed(self.before).get(self.index).unwrap_or(&Value::Null)
    }

    fn is(&self) -> &'a Value {
        listed(self.after).get(self.index).unwrap_or(&Value::Null)
    }

    /// Returns the entry of the previous attempt.
    fn previous(&self) -> &'a Value {
        self.index.checked_sub(1).and_then(|index| listed(self.after).get(index)).unwrap_or(&Value::Null)
    }

    fn adds(&self) -> bool {
        self.was().is_null()
    }

    fn begins(&self) -> bool {
        self.was()["startTime"].is_null() && !self.is()["startTime"].is_null()
    }

    /// Returns a clause that begins with the attempt.
    fn tell(&self, what: &str) -> String {
        format!("attempt {} of {} {what}", self.index + 1, self.execution.object)
    }

    fn flaw(&self, evidence: &Evidence<'_>) -> Option<Flaw> {
        if self.adds() && self.index == self.retry.max_attempts {
            let what = format!("was added, and its policy allows {}", self.retry.max_attempts);
            return Some(("attempt-many", self.tell(&what)));
        }
        if let Some(what) = self.wrong_wait() {
            return Some(("attempt-delay", self.tell(&what)));
        }
        if self.index == 0 {
            return None;
        }
        if let Some(what) = self.adds().then(|| self.forbidden()).flatten() {
            return Some(("attempt-after", self.tell(&format!("was added {what}"))));
        }
        // An execution commits to a run that another user has released or stopped, even if something forbids the
        // attempt.
        if !self.begins() || self.is_past_operator(evidence) {
            return None;
        }
        let (began, not_before) = (seconds(self.is(), "/startTime"), seconds(self.is(), "/notBefore"));
        if began.zip(not_before).is_some_and(|(began, not_before)| began < not_before) {
            let what = format!("began at {}, and not before {}", self.is()["startTime"], self.is()["notBefore"]);
            return Some(("attempt-early", self.tell(&what)));
        }
        let what = self.left().or_else(|| self.too_late(began))?;
        Some(("attempt-after", self.tell(&format!("began {what}"))))
    }

    fn is_past_operator(&self, evidence: &Evidence<'_>) -> bool {
        let run = text(self.after, "/pipelineRunRef/uid").and_then(|uid| evidence.history.runs.get(uid));
        run.is_some_and(|run| run.was_touched_by(self.at))
    }

    /// Returns what had already forbidden any further attempt in the version on which the write was decided.
    fn left(&self) -> Option<&'static str> {
        let object = self.execution.object_at(self.execution.version_before(self.at));
        if phase(&object["status"]).is_some_and(Phase::is_terminal) {
            Some("after the end")
        } else if object["spec"]["cancellation"].is_object() && !is_unguarded(&object["status"]) {
            Some("after the execution was cancelled")
        } else if text(object, "/metadata/deletionTimestamp").is_some() {
            Some("after the deletion of the execution had begun")
        } else {
            None
        }
    }

    /// Returns why the previous attempt forbids a further one.
    fn forbidden(&self) -> Option<&'static str> {
        let (retry, previous) = (self.retry, self.previous());
        let ran = matches!(previous["started"].as_str(), Some("True" | "Unknown"));
        let has_ended = !previous["completionTime"].is_null();
        let is_configuration = previous["reason"] == FailureReason::ConfigurationError.as_str();
        self.left()
            .or_else(|| (has_ended && previous["reason"].is_null()).then_some("after one that succeeded"))
            .or_else(|| (ran && !retry.tries_what_ran).then_some("after one that ran, or that may have run"))
            .or_else(|| {
                (is_configuration && retry.has_default_condition)
                    .then_some("after one that failed by its configuration")
            })
            .or_else(|| self.too_late(seconds(self.is(), "/notBefore")))
    }

    fn too_late(&self, begin: Option<Seconds>) -> Option<&'static str> {
        let since = seconds(self.after, "/startTime")?;
        let is_over = begin? >= since.saturating_add(whole(self.retry.max_duration.as_nanos()));
        is_over.then_some("when maxDuration was over")
    }

    /// Returns the fault if the wait has the wrong length, or if it was changed later.
    fn wrong_wait(&self) -> Option<String> {
        let (was, is) = (self.was(), self.is());
        if let Some(field) = ["delay", "notBefore"].into_iter().find(|field| {
            let is_new = was[*field] != is[*field];
            is_new && !self.adds() && (self.index > 0 || !was[*field].is_null())
        }) {
            return Some(format!("had {field} {}, and then {}", was[field], is[field]));
        }
        if self.index == 0 {
            let waits = !is["delay"].is_null() || !is["notBefore"].is_null();
            return (self.adds() && waits).then(|| "has a wait, and is the first".to_owned());
        }
        if !self.adds() {
            return None;
        }
        let Some(delay) = text(is, "/delay").and_then(|delay| duration::parse(delay).ok()) else {
            return Some(format!("has delay {}, which is none", is["delay"]));
        };
        let wait = self.retry.wait_after(self.index);
        if !wait.contains(&delay) {
            let (least, most) = (wait.start(), wait.end());
            return Some(format!("has a delay of {delay:?}, and the policy says {least:?} to {most:?}"));
        }
        let Some(not_before) = seconds(is, "/notBefore") else {
            return Some(format!("has notBefore {}, which is no time", is["notBefore"]));
        };
        let (earliest, latest) = self.written_at()?.begins_after(delay);
        (!(earliest..=latest).contains(&not_before))
            .then(|| format!("has notBefore {}, which is not {delay:?} after that was written", is["notBefore"]))
    }

    /// Returns when the write was decided, according to itself: at the new transition time of the condition `Retrying`,
    /// or at the end of a refused create. Other ends have the time of Tekton's clock.
    fn written_at(&self) -> Option<Said> {
        let since = |status: &Value| {
            let conditions = status["conditions"].as_array()?;
            let is_retrying = |one: &&Value| one["type"] == conditions::RETRYING && one["status"] == "True";
            seconds(conditions.iter().find(is_retrying)?, "/lastTransitionTime")
        };
        let refused = || seconds(self.previous(), "/completionTime").filter(|_| self.previous()["startTime"].is_null());
        let said = since(self.after).filter(|said| since(self.before) != Some(*said)).or_else(refused);
        said.map(Said)
    }
}

/// A time in whole seconds that an operator wrote, rounded down or up.
struct Said(Seconds);

impl Said {
    /// Returns the earliest and the latest whole second at which a wait that began at this time can end.
    fn begins_after(&self, delay: Duration) -> (Seconds, Seconds) {
        let cut = Seconds::try_from(delay.as_secs()).unwrap_or(Seconds::MAX);
        (self.0.saturating_add(cut), self.0.saturating_add(whole(delay.as_nanos())).saturating_add(1))
    }
}

/// Returns whether a status says that the cancellation of the execution does not count at present (section 17).
fn is_unguarded(status: &Value) -> bool {
    let says_so = |it: &Value| {
        it["type"] == conditions::UNGUARDED
            && it["status"] == "True"
            && it["reason"] == conditions::CANCELLATION_UNGUARDED
    };
    status["conditions"].as_array().is_some_and(|all| all.iter().any(says_so))
}
