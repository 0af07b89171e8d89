//! Invariant 11: no child is made while section 12.6 forbids it. The true state decides, with an allowance for lag.
//!
//! A create does not name the versions on which it was decided. A child is therefore right if a view that is not older
//! than [`Options::lag`](crate::Options::lag) allows it. Schedules and executions come from two watches, so a view
//! consists of two moments.

use serde_json::Value;
use wfe_api::Phase;
use wfe_api::labels::ANNOTATION_PAUSED;

use super::fold::is_lifted;
use super::{Finding, made_for, views};
use crate::Evidence;
use crate::history::{Execution, LastRun, Schedule, phase, planned_from, text};
use crate::moment::{Seconds, seconds};
use crate::record::Ledger;
use crate::report::{Counts, Moment, Violation};
use crate::section_6::Reading;

/// The fields that define a plan, besides what the template runs. A change to one of them begins a new plan (section
/// 12.2).
const PLANNED_BY: [&str; 4] = ["interval", "cron", "timeZone", "spread"];
/// The fields of a template that do not affect what it runs.
const BESIDE: [&str; 2] = ["rationale", "ttlSecondsAfterFinished"];

/// The rule that forbids a child, and a clause that completes "it was made, and".
type Ban = (&'static str, String);

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let ledgers = Ledger::open(&evidence.history);
    let mut found = Vec::new();
    for schedule in evidence.history.schedules.values() {
        for (slot, child) in made_for(evidence, schedule) {
            if evidence.authors.is_strangers(child.created) {
                continue;
            }
            counts.add("children");
            let ledger = child.target.as_ref().and_then(|target| ledgers.get(target));
            let birth = Birth { evidence, schedule, child, slot, ledger };
            if let Some((rule, what)) = birth.ban() {
                let text = format!("{} was made, and {what}", child.object);
                let objects = vec![child.object.clone(), schedule.object.clone()];
                found.push(Finding::new(11, rule, text).on(child.shown_target(), objects, &[child.created]));
            }
        }
    }
    found
}

/// A child that was made.
struct Birth<'j, 'e> {
    evidence: &'j Evidence<'e>,
    schedule: &'j Schedule<'e>,
    child: &'j Execution<'e>,
    slot: Seconds,
    /// The history of the child's target, if it is known.
    ledger: Option<&'j Ledger<'j>>,
}

impl Birth<'_, '_> {
    /// Returns what forbade the child on the newest view, provided that every possible view forbids it.
    fn ban(&self) -> Option<Ban> {
        let of_schedule = self.views(self.schedule.versions.iter().map(|(at, _)| *at).chain(self.schedule.gone));
        let executions = self.evidence.history.executions.values();
        let beside = executions.filter(|it| it.target == self.child.target || it.is_sibling_of(self.child));
        let of_executions = self.views(beside.flat_map(Execution::changes));
        let mut newest = None;
        for at in &of_schedule {
            if let Some(ban) = self.by_schedule(*at) {
                newest.get_or_insert(ban);
                continue;
            }
            for beside in &of_executions {
                match self.by_executions(*at, *beside) {
                    Some(ban) => newest.get_or_insert(ban),
                    None => return self.paused(),
                };
            }
        }
        newest
    }

    /// Lists the views on which the create may be based, the newest first. The oldest is from the beginning of the lag.
    fn views(&self, changes: impl Iterator<Item = Moment>) -> Vec<Moment> {
        views(self.evidence, self.child.created, changes)
    }

    /// Rows 0, 1, 3, 4, 6 and 9: what forbids a child by the schedule itself.
    fn by_schedule(&self, at: Moment) -> Option<Ban> {
        let object = self.schedule.object_at(at);
        let (spec, status) = (&object["spec"], &object["status"]);
        let ban = |rule: &'static str, what: &str| Some((rule, what.to_owned()));
        if object.is_null() || text(object, "/metadata/deletionTimestamp").is_some() {
            return ban("child-leaving", "its schedule was deleted");
        }
        if spec["suspend"] == true {
            return ban("child-suspended", "its schedule was suspended");
        }
        let Some(used) = used(status).filter(|_| !self.begins_anew(at, spec, status)) else {
            return ban("child-plan", "the plan of its schedule was to begin anew");
        };
        if status["triage"]["state"] == "Paused" {
            return ban("child-triage-paused", "a triage had paused its schedule");
        }
        if self.slot <= used {
            return ban("child-used", "its slot was used, or before the plan");
        }
        if LastRun::read(status).is_some_and(|last| last.outcome.is_none()) {
            return ban("child-unrecorded", "the last run of its schedule had no outcome yet");
        }
        let now = self.now()?;
        if self.slot > *now.end() {
            return ban("child-early", "its slot lay ahead");
        }
        let deadline = spec["startingDeadlineSeconds"].as_i64();
        if deadline.is_some_and(|deadline| self.slot + deadline < *now.start()) {
            return ban("child-late", "its starting deadline was over");
        }
        None
    }

    /// Returns when the creation may have been decided, by the API server's clock; `None` without a policy, because a
    /// clock may then be wrong.
    fn now(&self) -> Option<std::ops::RangeInclusive<Seconds>> {
        self.evidence.options.policy.as_ref()?;
        let created = seconds(self.child.object_at(self.child.created), "/metadata/creationTimestamp")?;
        let lag = Seconds::try_from(self.evidence.options.lag.as_secs()).unwrap_or(Seconds::MAX);
        Some(created.saturating_sub(lag)..=created)
    }

    /// Returns whether a new plan must begin: a field of the plan has changed since its beginning, or the schedule was
    /// resumed.
    fn begins_anew(&self, at: Moment, spec: &Value, status: &Value) -> bool {
        let held = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Held");
        let is_resumed = held.is_some_and(|held| held["status"] == "True" && held["reason"] == "Suspended");
        let versions = self.schedule.versions.iter().rev().skip_while(|(version, _)| *version > at);
        let planned = versions.take_while(|(_, object)| object["status"]["revision"] == status["revision"]);
        // The version with which a plan began has the same spec as the version on which this was decided.
        let begun = planned.last().map_or(&Value::Null, |(_, object)| &object["spec"]);
        let runs = |spec: &Value| {
            let mut runs = spec["template"]["spec"].as_object().cloned().unwrap_or_default();
            runs.retain(|field, _| !BESIDE.contains(&field.as_str()));
            runs
        };
        let is_other = PLANNED_BY.iter().any(|field| begun[field] != spec[field]) || runs(begun) != runs(spec);
        is_resumed || is_lifted(spec, status) || is_other
    }

    /// Rows 2, 5 and 7: what forbids a child by its siblings and its target.
    fn by_executions(&self, at: Moment, beside: Moment) -> Option<Ban> {
        let status = &self.schedule.object_at(at)["status"];
        let used = used(status).unwrap_or(Seconds::MIN);
        let others = self.evidence.history.executions.values();
        let others = others.filter(|it| it.object.uid != self.child.object.uid && it.exists_at(beside));
        for other in others {
            let stands = phase(other.at(beside));
            let is_over = stands.is_some_and(Phase::is_terminal);
            if other.is_sibling_of(self.child) {
                let is_open = other.child.is_some_and(|child| child.slot > used);
                let name = &other.object;
                if !is_over {
                    return Some(("child-at-work", format!("{name} of the same schedule was at work")));
                } else if is_open && self.evidence.options.policy.is_some() {
                    // Without a policy, a clock may be wrong. The slot of the child may then lie in the future, and the
                    // schedule is right to wait.
                    return Some(("child-unrecorded", format!("{name} of the same schedule had no outcome yet")));
                }
            } else if other.target == self.child.target && !is_over {
                // An undecided execution may be paused. It counts only if its pause would also hold the child.
                let is_paused = stands != Some(Phase::Running);
                if !is_paused || other.object.namespace == self.child.object.namespace && is_asking(other, beside) {
                    return Some(("child-busy", format!("{} was not over", other.object)));
                }
            }
        }
        let now = *self.now()?.end();
        let policy = self.evidence.options.policy.as_ref()?;
        let record = self.ledger?.at(beside);
        let ban = Reading::of(&record, policy, now).ban(self.child)?;
        Some(("child-blocked", format!("rule {} forbade a run: {}", ban.rule.number(), ban.tell(now))))
    }

    /// Finds a pause of the child's namespace, or of its target's, that lasted through all views.
    fn paused(&self) -> Option<Ban> {
        let target = self.child.target.as_ref().and_then(|target| target.namespace());
        let namespaces = [Some(self.child.object.namespace.as_str()), target];
        let paused = namespaces.into_iter().flatten().find(|namespace| {
            let Some(versions) = self.evidence.history.namespaces.get(namespace) else { return false };
            let is_paused = |at: &Moment| {
                let version = versions.iter().rev().find(|(version, _)| version <= at);
                version.is_some_and(|(_, object)| object["metadata"]["annotations"][ANNOTATION_PAUSED].is_string())
            };
            self.views(versions.iter().map(|(at, _)| *at)).iter().all(is_paused)
        })?;
        Some(("child-paused", format!("the namespace {paused} was paused")))
    }
}

/// Returns the time up to which all slots of the plan are used; `None` before the first plan.
fn used(status: &Value) -> Option<Seconds> {
    let since = planned_from(status)?;
    Some(LastRun::read(status).map_or(since, |last| last.slot.max(since)))
}

/// Returns whether an execution could get its turn, because it was not being deleted.
fn is_asking(execution: &Execution<'_>, at: Moment) -> bool {
    text(execution.object_at(at), "/metadata/deletionTimestamp").is_none()
}
